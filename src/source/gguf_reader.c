/*
 * Vocabularies are most of the bytes in front of the weights: half a million strings, of which only the
 * lengths are needed here. Walking them costs 1.5 ns a string, but a page that is touched for the first time
 * costs 2 us in the mapping and 0.6 us through pread. So long arrays are walked in a window that is read;
 * the mapping's pages are left for whoever wants the strings.
 */
#include "source/gguf_reader.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/le_bytes.h"
#include "base/mem.h"

#define WINDOW_BYTES  (64u << 10)
#define WINDOWED_FROM 4096u /* strings; fewer are walked in place */

/* Where strings are walked: bytes begin..begin+n of the file. */
typedef struct window {
    const char *p;
    uint64_t begin;
    uint64_t n;
} window;

static int bad_text(const sl__gguf_reader *r, int code, uint64_t offset, const char *text)
{
    char name[256];
    sl__quote(name, sizeof name, r->src.name, strlen(r->src.name));
    return sl__fail_at(r->reterr, code, offset, "%s: %s", name, text);
}

int sl__gguf_bad(const sl__gguf_reader *r, int code, uint64_t offset, const char *fmt, ...)
{
    char text[320];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return bad_text(r, code, offset, text);
}

int sl__gguf_bad_item(const sl__gguf_reader *r, int code, uint64_t offset, const char *kind,
        sl_span item, const char *fmt, ...)
{
    char text[400];
    char what[256];
    char shown[80];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    sl__quote(shown, sizeof shown, item.p, item.n);
    snprintf(text, sizeof text, "%s '%s' %s", kind, shown, what);
    return bad_text(r, code, offset, text);
}

static int need(const sl__gguf_reader *r, uint64_t n, const char *what)
{
    uint64_t left = sl__gguf_left(r);
    if (n > left) {
        return sl__gguf_bad(r, SL_EFORMAT, r->at,
                "the file ends inside %s at offset %" PRIu64 ": %" PRIu64 " bytes needed, %" PRIu64
                " left; it is truncated or damaged",
                what, r->at, n, left);
    }
    return 0;
}

int sl__gguf_read_u32(sl__gguf_reader *r, const char *what, uint32_t *ret)
{
    int e = need(r, 4, what);
    if (e >= 0) {
        *ret = sl__load_u32(r->src.bytes + r->at);
        r->at += 4;
    }
    return e;
}

int sl__gguf_read_u64(sl__gguf_reader *r, const char *what, uint64_t *ret)
{
    int e = need(r, 8, what);
    if (e >= 0) {
        *ret = sl__load_u64(r->src.bytes + r->at);
        r->at += 8;
    }
    return e;
}

int sl__gguf_read_name(sl__gguf_reader *r, const char *what, uint64_t max_bytes, sl_span *ret)
{
    uint64_t start = r->at;
    uint64_t n = 0;
    int e = sl__gguf_read_u64(r, what, &n);
    if (e >= 0) {
        e = need(r, n, what);
    }
    if (e < 0) {
        return e;
    }
    ret->p = r->src.bytes + r->at;
    ret->n = (size_t)n;
    if (n > max_bytes) {
        return sl__gguf_bad_item(r, SL_EFORMAT, start, what, *ret,
                "has %" PRIu64 " bytes, at most %" PRIu64, n, max_bytes);
    }
    if (memchr(ret->p, 0, ret->n)) {
        return sl__gguf_bad_item(r, SL_EFORMAT, start, what, *ret, "holds a NUL byte");
    }
    r->at += n;
    return 0;
}

/* Why the string at r->at does not fit. */
static int bad_string(const sl__gguf_reader *r)
{
    if (sl__gguf_left(r) < 8) {
        return need(r, 8, "the length of a string");
    }
    return sl__gguf_bad(r, SL_EFORMAT, r->at,
            "a string at offset %" PRIu64 " has %" PRIu64 " bytes, but only %" PRIu64
            " are left; the file is truncated or damaged",
            r->at, sl__load_u64(r->src.bytes + r->at), sl__gguf_left(r) - 8);
}

/* Walks the strings whose lengths lie in the window, counting *n down; false if one does not fit the file. */
static bool walk(sl__gguf_reader *r, const window *w, uint64_t *n)
{
    uint64_t at = r->at;
    uint64_t n_left = *n;
    uint64_t end = r->src.n_bytes;
    uint64_t last = w->begin + w->n - 8; /* where the last length in the window can begin */
    bool fits = true;
    while (n_left > 0 && at <= last) {
        uint64_t n_string = sl__load_u64(w->p + (at - w->begin));
        if (n_string > end - at - 8) {
            fits = false;
            break;
        }
        at += 8 + n_string;
        n_left--;
    }
    r->at = at;
    *n = n_left;
    return fits;
}

/* Reads the window's bytes from r->at on, at least the 8 that are left there. */
static int fill_window(const sl__gguf_reader *r, window *w, char *buf)
{
    uint64_t left = sl__gguf_left(r);
    w->begin = r->at;
    w->n = left < WINDOW_BYTES ? left : WINDOW_BYTES;
    return r->src.read(r->src.ud, buf, w->begin, (size_t)w->n, r->reterr);
}

static int skip_in_place(sl__gguf_reader *r, uint64_t n)
{
    window w = {.p = r->src.bytes, .n = r->src.n_bytes};
    if (n > 0 && (sl__gguf_left(r) < 8 || !walk(r, &w, &n) || n > 0)) {
        return bad_string(r);
    }
    return 0;
}

static int skip_in_window(sl__gguf_reader *r, char *buf, uint64_t n)
{
    window w = {.p = buf};
    while (n > 0) {
        if (sl__gguf_left(r) < 8) {
            return bad_string(r);
        }
        int e = fill_window(r, &w, buf);
        if (e < 0) {
            return e;
        }
        if (!walk(r, &w, &n)) {
            return bad_string(r);
        }
    }
    return 0;
}

int sl__gguf_skip_strings(sl__gguf_reader *r, uint64_t n)
{
    if (!r->src.read || n < WINDOWED_FROM) {
        return skip_in_place(r, n);
    }
    char *buf = sl__alloc(WINDOW_BYTES, 1);
    if (!buf) {
        return sl__fail_nomem(r->reterr, WINDOW_BYTES, "the index of a GGUF file");
    }
    int e = skip_in_window(r, buf, n);
    sl__free(buf);
    return e;
}
