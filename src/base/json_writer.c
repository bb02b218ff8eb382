#include "base/json_writer.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"

void sl__json_done(sl__json *j)
{
    sl__free(j->buf);
    memset(j, 0, sizeof *j);
}

static void put(sl__json *j, const char *s, size_t n)
{
    if (j->is_dead) {
        return;
    }
    /* One byte more than the text: sl__json_text puts the NUL there. */
    if (n > SIZE_MAX - j->n - 1 || !sl__grow((void **)&j->buf, &j->cap, j->n + n + 1, 1)) {
        j->is_dead = true;
        return;
    }
    memcpy(j->buf + j->n, s, n);
    j->n += n;
}

static void put_cstr(sl__json *j, const char *s)
{
    put(j, s, strlen(s));
}

static void put_escaped(sl__json *j, unsigned char c)
{
    char text[8];
    switch (c) {
    case '"':
        put_cstr(j, "\\\"");
        break;
    case '\\':
        put_cstr(j, "\\\\");
        break;
    case '\n':
        put_cstr(j, "\\n");
        break;
    case '\r':
        put_cstr(j, "\\r");
        break;
    case '\t':
        put_cstr(j, "\\t");
        break;
    default:
        snprintf(text, sizeof text, "\\u%04x", c);
        put_cstr(j, text);
        break;
    }
}

static void put_string(sl__json *j, const char *s, size_t n)
{
    size_t i = 0;
    put(j, "\"", 1);
    while (i < n) {
        unsigned char c = (unsigned char)s[i];
        size_t n_char = sl__utf8_char_len(s + i, n - i);
        if (n_char == 0) {
            put_cstr(j, "\xEF\xBF\xBD");
            i++;
        } else if (c < 0x20 || c == '"' || c == '\\') {
            put_escaped(j, c);
            i++;
        } else {
            put(j, s + i, n_char);
            i += n_char;
        }
    }
    put(j, "\"", 1);
}

/* Comma and bookkeeping in front of a value; false if the writer is dead. */
static bool begin_value(sl__json *j)
{
    if (j->is_dead) {
        return false;
    }
    if (j->depth > 0) {
        int top = j->depth - 1;
        assert(!j->in_object[top] || j->has_key);
        if (!j->in_object[top] && j->has_items[top]) {
            put(j, ",", 1);
        }
        j->has_items[top] = true;
    }
    j->has_key = false;
    return true;
}

static void begin_container(sl__json *j, bool is_object)
{
    if (!begin_value(j)) {
        return;
    }
    assert(j->depth < SL_JSON_MAX_DEPTH);
    if (j->depth >= SL_JSON_MAX_DEPTH) {
        j->is_dead = true;
        return;
    }
    j->in_object[j->depth] = is_object;
    j->has_items[j->depth] = false;
    j->depth++;
    put_cstr(j, is_object ? "{" : "[");
}

void sl__json_object(sl__json *j)
{
    begin_container(j, true);
}

void sl__json_array(sl__json *j)
{
    begin_container(j, false);
}

void sl__json_end(sl__json *j)
{
    if (j->is_dead) {
        return;
    }
    assert(j->depth > 0 && !j->has_key);
    if (j->depth > 0) {
        j->depth--;
        put_cstr(j, j->in_object[j->depth] ? "}" : "]");
    }
}

void sl__json_key(sl__json *j, const char *key)
{
    if (j->is_dead) {
        return;
    }
    assert(j->depth > 0 && j->in_object[j->depth - 1] && !j->has_key);
    int top = j->depth > 0 ? j->depth - 1 : 0;
    if (j->has_items[top]) {
        put(j, ",", 1);
    }
    put_string(j, key, strlen(key));
    put(j, ":", 1);
    j->has_key = true;
}

void sl__json_str(sl__json *j, const char *s, size_t n)
{
    if (begin_value(j)) {
        put_string(j, s, n);
    }
}

void sl__json_cstr(sl__json *j, const char *s)
{
    if (s) {
        sl__json_str(j, s, strlen(s));
    } else {
        sl__json_null(j);
    }
}

void sl__json_u64(sl__json *j, uint64_t v)
{
    char text[24];
    if (begin_value(j)) {
        snprintf(text, sizeof text, "%" PRIu64, v);
        put_cstr(j, text);
    }
}

void sl__json_i64(sl__json *j, int64_t v)
{
    char text[24];
    if (begin_value(j)) {
        snprintf(text, sizeof text, "%" PRId64, v);
        put_cstr(j, text);
    }
}

/* The fewest digits that read back equal: 15 always survive, 17 always suffice. */
static void format_double(char *text, size_t text_bytes, double v)
{
    for (int n_digits = 15; n_digits <= 17; n_digits++) {
        snprintf(text, text_bytes, "%.*g", n_digits, v);
        if (strtod(text, NULL) == v) {
            break;
        }
    }
    /* The program's locale may have another decimal point. */
    size_t n_point = strspn(text, "0123456789+-e.");
    if (text[n_point] != '\0') {
        text[n_point] = '.';
    }
}

void sl__json_f64(sl__json *j, double v)
{
    char text[40];
    if (!isfinite(v)) {
        sl__json_null(j);
    } else if (begin_value(j)) {
        format_double(text, sizeof text, v);
        put_cstr(j, text);
    }
}

void sl__json_bool(sl__json *j, bool v)
{
    if (begin_value(j)) {
        put_cstr(j, v ? "true" : "false");
    }
}

void sl__json_null(sl__json *j)
{
    if (begin_value(j)) {
        put_cstr(j, "null");
    }
}

void sl__json_put_str(sl__json *j, const char *key, const char *s, size_t n)
{
    sl__json_key(j, key);
    sl__json_str(j, s, n);
}

void sl__json_put_cstr(sl__json *j, const char *key, const char *s)
{
    sl__json_key(j, key);
    sl__json_cstr(j, s);
}

void sl__json_put_u64(sl__json *j, const char *key, uint64_t v)
{
    sl__json_key(j, key);
    sl__json_u64(j, v);
}

void sl__json_put_u64_or_null(sl__json *j, const char *key, bool has, uint64_t v)
{
    sl__json_key(j, key);
    if (has) {
        sl__json_u64(j, v);
    } else {
        sl__json_null(j);
    }
}

void sl__json_put_f64(sl__json *j, const char *key, double v)
{
    sl__json_key(j, key);
    sl__json_f64(j, v);
}

void sl__json_put_bool(sl__json *j, const char *key, bool v)
{
    sl__json_key(j, key);
    sl__json_bool(j, v);
}

const char *sl__json_text(sl__json *j, size_t *ret_n)
{
    put(j, "", 0); /* a buffer also for no text at all */
    if (j->is_dead) {
        return NULL;
    }
    j->buf[j->n] = '\0';
    if (ret_n) {
        *ret_n = j->n;
    }
    return j->buf;
}
