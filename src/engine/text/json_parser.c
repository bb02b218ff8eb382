/*
 * One pass over the text. Strings without escapes are spans of it; the others are decoded into one block
 * that is as large as the text, since no escape is shorter than what it stands for. Line and column are
 * counted only for a message.
 */
#include "engine/text/json_doc.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <utf8proc.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "engine/text/strmap.h"

#define MAX_DEPTH 64
#define MAX_BYTES ((size_t)1 << 30)

/* Up to this many members, comparing every pair is cheaper than a table. */
#define FEW_MEMBERS 12

typedef struct parser {
    s2_json_doc *doc;
    const char *s;
    size_t n;
    size_t i;
    int depth;
    sl_error *reterr;
} parser;

static int fail_here(const parser *ps, const char *fmt, ...) SL_PRINTF(2, 3);

static int fail_here(const parser *ps, const char *fmt, ...)
{
    char what[192];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    return s2_json_fail_at(ps->doc, ps->i, SL_EFORMAT, ps->reterr, what);
}

static void skip_blanks(parser *ps)
{
    while (ps->i < ps->n && (ps->s[ps->i] == ' ' || ps->s[ps->i] == '\n' || ps->s[ps->i] == '\r' ||
                                    ps->s[ps->i] == '\t')) {
        ps->i++;
    }
}

/* The next byte, or 0 at the end; a NUL in the text is no token either. */
static char peek(const parser *ps)
{
    if (ps->i >= ps->n) {
        return '\0';
    }
    return ps->s[ps->i];
}

/* "'x'" or "the end of the file", for messages. */
static const char *found(const parser *ps, char *buf, size_t buf_bytes)
{
    char one[16];
    if (ps->i >= ps->n) {
        return "the end of the file";
    }
    size_t n = sl__utf8_char_len(ps->s + ps->i, ps->n - ps->i);
    snprintf(buf, buf_bytes, "'%s'", sl__quote(one, sizeof one, ps->s + ps->i, n));
    return buf;
}

static int push_node(parser *ps, s2_json_kind kind, size_t *ret_index)
{
    s2_json_doc *doc = ps->doc;
    void *nodes = doc->nodes;
    if (!sl__grow(&nodes, &doc->cap, doc->n_nodes + 1, sizeof *doc->nodes)) {
        return sl__fail_nomem(ps->reterr, (doc->n_nodes + 1) * sizeof *doc->nodes, doc->name);
    }
    doc->nodes = nodes;
    *ret_index = doc->n_nodes++;
    doc->nodes[*ret_index] = (s2_json_node){.kind = (uint8_t)kind, .offset = (uint32_t)ps->i};
    return 0;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    char lower = (char)(c | 0x20);
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

/* Four hex digits at ps->i; false if they are not there. */
static bool take_hex4(parser *ps, uint32_t *ret)
{
    uint32_t v = 0;
    if (ps->n - ps->i < 4) {
        return false;
    }
    for (size_t k = 0; k < 4; k++) {
        int digit = hex_digit(ps->s[ps->i + k]);
        if (digit < 0) {
            return false;
        }
        v = v << 4 | (uint32_t)digit;
    }
    ps->i += 4;
    *ret = v;
    return true;
}

/* \uXXXX, or two of them that make one character; ps->i is behind the first 'u'. */
static int take_unicode_escape(parser *ps, uint32_t *ret_cp)
{
    uint32_t low = 0;
    uint32_t cp = 0;
    if (!take_hex4(ps, &cp)) {
        return fail_here(ps, "\\u needs four hex digits");
    }
    if (cp >= 0xDC00 && cp <= 0xDFFF) {
        return fail_here(ps, "\\u%04x is half a surrogate pair", (unsigned)cp);
    }
    if (cp >= 0xD800 && cp <= 0xDBFF) {
        bool has_low = ps->n - ps->i >= 6 && ps->s[ps->i] == '\\' && ps->s[ps->i + 1] == 'u';
        ps->i += has_low ? 2 : 0;
        if (!has_low || !take_hex4(ps, &low) || low < 0xDC00 || low > 0xDFFF) {
            return fail_here(ps, "\\u%04x is half a surrogate pair", (unsigned)cp);
        }
        cp = 0x10000 + ((cp - 0xD800) << 10) + (low - 0xDC00);
    }
    *ret_cp = cp;
    return 0;
}

/* One escape, ps->i at the backslash, appended to the decoded strings. */
static int take_escape(parser *ps)
{
    static const char from[] = "\"\\/bfnrt";
    static const char to[] = "\"\\/\b\f\n\r\t";
    s2_json_doc *doc = ps->doc;
    uint32_t cp = 0;
    ps->i++;
    char c = peek(ps);
    const char *at = c ? strchr(from, c) : NULL;
    if (at) {
        ps->i++;
        doc->decoded[doc->n_decoded++] = to[at - from];
        return 0;
    }
    if (c != 'u') {
        char buf[24];
        return fail_here(ps, "%s is no escape", found(ps, buf, sizeof buf));
    }
    ps->i++;
    int r = take_unicode_escape(ps, &cp);
    if (r < 0) {
        return r;
    }
    utf8proc_uint8_t *out = (utf8proc_uint8_t *)doc->decoded + doc->n_decoded;
    doc->n_decoded += (size_t)utf8proc_encode_char((utf8proc_int32_t)cp, out);
    return 0;
}

/* The rest of a string with escapes; its plain beginning is at `start`. */
static int decode_string(parser *ps, size_t start, s2_json_node *node)
{
    s2_json_doc *doc = ps->doc;
    int r = 0;
    if (!doc->decoded) {
        doc->decoded = sl__alloc(ps->n, 1);
        if (!doc->decoded) {
            return sl__fail_nomem(ps->reterr, ps->n, doc->name);
        }
    }
    size_t first = doc->n_decoded;
    memcpy(doc->decoded + first, ps->s + start, ps->i - start);
    doc->n_decoded += ps->i - start;
    while (r == 0 && ps->i < ps->n && ps->s[ps->i] != '"' && (unsigned char)ps->s[ps->i] >= 0x20) {
        if (ps->s[ps->i] == '\\') {
            r = take_escape(ps);
        } else {
            doc->decoded[doc->n_decoded++] = ps->s[ps->i++];
        }
    }
    node->is_decoded = true;
    node->link = (uint32_t)first;
    node->n = (uint32_t)(doc->n_decoded - first);
    return r;
}

static int parse_string(parser *ps)
{
    size_t index = 0;
    int r = push_node(ps, S2_JSON_STRING, &index);
    if (r < 0) {
        return r;
    }
    size_t start = ++ps->i;
    while (ps->i < ps->n && ps->s[ps->i] != '"' && ps->s[ps->i] != '\\' &&
            (unsigned char)ps->s[ps->i] >= 0x20) {
        ps->i++;
    }
    s2_json_node *node = &ps->doc->nodes[index];
    node->n = (uint32_t)(ps->i - start);
    if (peek(ps) == '\\') {
        r = decode_string(ps, start, node);
        if (r < 0) {
            return r;
        }
    }
    if (ps->i >= ps->n) {
        return fail_here(ps, "a string does not end");
    }
    if (ps->s[ps->i] != '"') {
        return fail_here(ps, "a control character inside a string");
    }
    ps->i++;
    return 0;
}

static size_t count_digits(const parser *ps)
{
    size_t n = 0;
    while (ps->i + n < ps->n && ps->s[ps->i + n] >= '0' && ps->s[ps->i + n] <= '9') {
        n++;
    }
    return n;
}

/* Moves past digits; false if there are none. */
static bool skip_digits(parser *ps)
{
    size_t n = count_digits(ps);
    ps->i += n;
    return n > 0;
}

static int parse_number(parser *ps)
{
    size_t index = 0;
    size_t start = ps->i;
    int r = push_node(ps, S2_JSON_NUMBER, &index);
    if (r < 0) {
        return r;
    }
    ps->i += peek(ps) == '-';
    bool is_padded = peek(ps) == '0' && count_digits(ps) > 1;
    bool is_ok = !is_padded && skip_digits(ps);
    if (is_ok && peek(ps) == '.') {
        ps->i++;
        is_ok = skip_digits(ps);
    }
    if (is_ok && (peek(ps) == 'e' || peek(ps) == 'E')) {
        ps->i++;
        ps->i += peek(ps) == '-' || peek(ps) == '+';
        is_ok = skip_digits(ps);
    }
    if (!is_ok) {
        return fail_here(ps, "this is no number");
    }
    ps->doc->nodes[index].n = (uint32_t)(ps->i - start);
    return 0;
}

static int parse_word(parser *ps)
{
    static const struct {
        const char *word;
        s2_json_kind kind;
    } words[] = {{"null", S2_JSON_NULL}, {"true", S2_JSON_TRUE}, {"false", S2_JSON_FALSE}};
    char buf[24];
    for (size_t k = 0; k < sizeof words / sizeof words[0]; k++) {
        size_t n = strlen(words[k].word);
        if (ps->n - ps->i >= n && memcmp(ps->s + ps->i, words[k].word, n) == 0) {
            size_t index = 0;
            int r = push_node(ps, words[k].kind, &index);
            ps->i += n;
            return r;
        }
    }
    return fail_here(ps, "found %s, needed a value", found(ps, buf, sizeof buf));
}

static int fail_twice(const parser *ps, sl_span key, size_t offset)
{
    char what[128];
    char quoted[96];
    snprintf(what, sizeof what, "the key \"%s\" is there twice",
            sl__quote(quoted, sizeof quoted, key.p, key.n));
    return s2_json_fail_at(ps->doc, offset, SL_EFORMAT, ps->reterr, what);
}

/* Is a key equal to one in front of it in its object? */
static bool is_among(const s2_json_doc *doc, const s2_json_node *first, const s2_json_node *key)
{
    sl_span span = s2_json_span(doc, key);
    const s2_json_node *other = first;
    while (other != key) {
        sl_span other_span = s2_json_span(doc, other);
        if (other_span.n == span.n && memcmp(other_span.p, span.p, span.n) == 0) {
            return true;
        }
        other = s2_json_next(doc, s2_json_next(doc, other));
    }
    return false;
}

static int check_keys(const parser *ps, size_t i_object)
{
    const s2_json_doc *doc = ps->doc;
    const s2_json_node *object = &doc->nodes[i_object];
    const s2_json_node *key = s2_json_first(object);
    s2_strmap map = {0};
    bool is_small = object->n <= FEW_MEMBERS;
    int r = is_small ? 0 : s2_strmap_init(&map, object->n, ps->reterr);
    for (uint32_t k = 0; r == 0 && k < object->n; k++) {
        sl_span span = s2_json_span(doc, key);
        if (is_small) {
            r = is_among(doc, s2_json_first(object), key) ? SL_EEXIST : 0;
        } else {
            r = s2_strmap_add(&map, span, 0, ps->reterr);
        }
        if (r == SL_EEXIST) {
            r = fail_twice(ps, span, key->offset);
        }
        key = s2_json_next(doc, s2_json_next(doc, key));
    }
    s2_strmap_done(&map);
    return r;
}

static int parse_value(parser *ps);

/* "key": in front of a value */
static int parse_key(parser *ps)
{
    char buf[24];
    if (peek(ps) != '"') {
        return fail_here(ps, "found %s, needed a key in quotes", found(ps, buf, sizeof buf));
    }
    int r = parse_string(ps);
    if (r < 0) {
        return r;
    }
    skip_blanks(ps);
    if (peek(ps) != ':') {
        return fail_here(ps, "found %s, needed ':'", found(ps, buf, sizeof buf));
    }
    ps->i++;
    skip_blanks(ps);
    return 0;
}

/* Items up to the closing bracket, ps->i behind the opening one. */
static int parse_items(parser *ps, bool has_keys, char closing, uint32_t *ret_n)
{
    char buf[24];
    uint32_t n = 0;
    skip_blanks(ps);
    while (peek(ps) != closing || n > 0) {
        int r = has_keys ? parse_key(ps) : 0;
        if (r == 0) {
            r = parse_value(ps);
        }
        if (r < 0) {
            return r;
        }
        n++;
        skip_blanks(ps);
        if (peek(ps) == closing) {
            break;
        }
        if (peek(ps) != ',') {
            return fail_here(
                    ps, "found %s, needed ',' or '%c'", found(ps, buf, sizeof buf), closing);
        }
        ps->i++;
        skip_blanks(ps);
    }
    ps->i++;
    *ret_n = n;
    return 0;
}

static int parse_group(parser *ps)
{
    bool is_object = peek(ps) == '{';
    size_t index = 0;
    uint32_t n = 0;
    if (ps->depth >= MAX_DEPTH) {
        return fail_here(ps, "nested deeper than %d levels", MAX_DEPTH);
    }
    int r = push_node(ps, is_object ? S2_JSON_OBJECT : S2_JSON_ARRAY, &index);
    if (r < 0) {
        return r;
    }
    ps->i++;
    ps->depth++;
    r = parse_items(ps, is_object, is_object ? '}' : ']', &n);
    ps->depth--;
    if (r < 0) {
        return r;
    }
    ps->doc->nodes[index].n = n;
    ps->doc->nodes[index].link = (uint32_t)ps->doc->n_nodes;
    return is_object ? check_keys(ps, index) : 0;
}

static int parse_value(parser *ps)
{
    char c = peek(ps);
    if (c == '{' || c == '[') {
        return parse_group(ps);
    }
    if (c == '"') {
        return parse_string(ps);
    }
    if (c == '-' || (c >= '0' && c <= '9')) {
        return parse_number(ps);
    }
    return parse_word(ps);
}

static int parse_text(parser *ps)
{
    char buf[24];
    ps->i = sl__utf8_valid_prefix(ps->s, ps->n);
    if (ps->i < ps->n) {
        return fail_here(ps, "byte 0x%02x is not UTF-8", (unsigned)(unsigned char)ps->s[ps->i]);
    }
    ps->i = 0;
    skip_blanks(ps);
    int r = parse_value(ps);
    if (r < 0) {
        return r;
    }
    skip_blanks(ps);
    if (ps->i < ps->n) {
        return fail_here(ps, "found %s behind the end of the JSON", found(ps, buf, sizeof buf));
    }
    return 0;
}

int s2_json_parse(
        const char *text, size_t n_bytes, const char *name, s2_json_doc *doc, sl_error *reterr)
{
    if (n_bytes > MAX_BYTES) {
        return sl__fail(reterr, SL_ELIMIT, "%s: %zu bytes of JSON; at most %zu are read", name,
                n_bytes, MAX_BYTES);
    }
    *doc = (s2_json_doc){.text = text, .n_bytes = n_bytes, .name = name};
    parser ps = {.doc = doc, .s = text, .n = n_bytes, .reterr = reterr};
    int r = parse_text(&ps);
    if (r < 0) {
        s2_json_done(doc);
    }
    return r;
}
