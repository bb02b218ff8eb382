#include "svg_out.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"

#define REPLACEMENT "\xEF\xBF\xBD"
#define ELLIPSIS    "\xE2\x80\xA6"

void svg_done(svg_out *o)
{
    sl__free(o->buf);
    memset(o, 0, sizeof *o);
}

static bool reserve(svg_out *o, size_t n)
{
    o->is_dead = o->is_dead || !sl__grow((void **)&o->buf, &o->cap, o->n + n + 1, 1);
    return !o->is_dead;
}

static void append(svg_out *o, const char *s, size_t n)
{
    if (reserve(o, n)) {
        memcpy(o->buf + o->n, s, n);
        o->n += n;
        o->buf[o->n] = '\0';
    }
}

void svg_put(svg_out *o, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    va_list again;
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, fmt, args);
    if (n >= 0 && reserve(o, (size_t)n)) {
        vsnprintf(o->buf + o->n, (size_t)n + 1, fmt, again);
        o->n += (size_t)n;
    }
    va_end(again);
    va_end(args);
}

/* What XML 1.0 calls a character, without those that move the pen. */
static bool is_allowed(uint32_t cp)
{
    return cp >= 0x20 && cp != 0x7F && cp != 0xFFFE && cp != 0xFFFF;
}

/* Appends the character at `s` and returns its bytes. */
static size_t put_char(svg_out *o, const char *s, size_t n)
{
    static const char special[] = "&<>\"'";
    static const char *const escapes[] = {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"};
    uint32_t cp = 0;
    size_t len = sl__utf8_decode(s, n, &cp);
    const char *at = len == 1 ? strchr(special, *s) : NULL;
    if (len == 0 || !is_allowed(cp)) {
        append(o, REPLACEMENT, 3);
    } else if (at) {
        const char *escape = escapes[at - special];
        append(o, escape, strlen(escape));
    } else {
        append(o, s, len);
    }
    return len > 0 ? len : 1;
}

void svg_text(svg_out *o, const char *text)
{
    size_t n = strlen(text);
    for (size_t i = 0; i < n;) {
        i += put_char(o, text + i, n - i);
    }
}

size_t svg_n_chars(const char *text)
{
    size_t n = strlen(text);
    size_t n_chars = 0;
    for (size_t i = 0; i < n; n_chars++) {
        size_t len = sl__utf8_char_len(text + i, n - i);
        i += len > 0 ? len : 1;
    }
    return n_chars;
}

void svg_text_cut(svg_out *o, const char *text, size_t n)
{
    size_t n_bytes = strlen(text);
    bool is_cut = svg_n_chars(text) > n;
    size_t n_shown = is_cut && n > 0 ? n - 1 : n;
    size_t at = 0;
    for (size_t i = 0; i < n_shown && at < n_bytes; i++) {
        at += put_char(o, text + at, n_bytes - at);
    }
    if (is_cut && n > 0) {
        append(o, ELLIPSIS, 3);
    }
}

const char *svg_result(const svg_out *o, size_t *ret_n)
{
    if (o->is_dead || !o->buf) {
        return NULL;
    }
    if (ret_n) {
        *ret_n = o->n;
    }
    return o->buf;
}
