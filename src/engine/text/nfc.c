/*
 * utf8proc knows the tables; the order of combining marks is made here. Its own ordering swaps neighbours
 * one by one, which takes hours for a megabyte of marks in the wrong order.
 */
#include "engine/text/nfc.h"

#include <stdint.h>
#include <string.h>
#include <utf8proc.h>

#include "base/mem.h"
#include "base/utf8.h"

/* No canonical decomposition of one character is longer. */
#define MAX_DECOMPOSED 8

#define N_CLASSES 256

typedef struct cp_list {
    utf8proc_int32_t *cps;
    size_t n;
    size_t cap;
} cp_list;

bool s2_nfc_is_plain(const char *text, size_t n_bytes)
{
    /* Below U+0300 nothing combines and nothing decomposes for good: lead bytes up to 0xCB. */
    for (size_t i = 0; i < n_bytes; i++) {
        if ((unsigned char)text[i] >= 0xCC) {
            return false;
        }
    }
    return true;
}

static unsigned combining_class(utf8proc_int32_t cp)
{
    return (unsigned)utf8proc_get_property(cp)->combining_class % N_CLASSES;
}

static int decompose(const char *text, size_t n_bytes, cp_list *list, sl_error *reterr)
{
    size_t i = 0;
    while (i < n_bytes) {
        uint32_t cp = 0;
        int boundary = 0;
        i += sl__utf8_decode(text + i, n_bytes - i, &cp);
        void *cps = list->cps;
        if (!sl__grow(&cps, &list->cap, list->n + MAX_DECOMPOSED, sizeof *list->cps)) {
            return sl__fail_nomem(reterr, (list->n + MAX_DECOMPOSED) * 4, "normalising a text");
        }
        list->cps = cps;
        utf8proc_ssize_t n = utf8proc_decompose_char((utf8proc_int32_t)cp, list->cps + list->n,
                MAX_DECOMPOSED, UTF8PROC_DECOMPOSE, &boundary);
        if (n < 0 || n > MAX_DECOMPOSED) {
            return sl__fail(reterr, SL_EINTERNAL, "U+%04X cannot be normalised", (unsigned)cp);
        }
        list->n += (size_t)n;
    }
    return 0;
}

/* Stable sort of a run of marks by their class: counts first, then places. */
static void sort_marks(utf8proc_int32_t *marks, size_t n, utf8proc_int32_t *scratch)
{
    size_t begin[N_CLASSES + 1] = {0};
    for (size_t i = 0; i < n; i++) {
        begin[combining_class(marks[i]) + 1]++;
    }
    for (size_t c = 1; c <= N_CLASSES; c++) {
        begin[c] += begin[c - 1];
    }
    for (size_t i = 0; i < n; i++) {
        scratch[begin[combining_class(marks[i])]++] = marks[i];
    }
    memcpy(marks, scratch, n * sizeof *marks);
}

static int order_marks(cp_list *list, sl_error *reterr)
{
    utf8proc_int32_t *scratch = sl__alloc(list->n, sizeof *scratch);
    if (!scratch) {
        return sl__fail_nomem(reterr, list->n * sizeof *scratch, "normalising a text");
    }
    size_t i = 0;
    while (i < list->n) {
        size_t end = i;
        while (end < list->n && combining_class(list->cps[end]) != 0) {
            end++;
        }
        if (end - i > 1) {
            sort_marks(list->cps + i, end - i, scratch);
        }
        i = end + 1;
    }
    sl__free(scratch);
    return 0;
}

static char *encode(const cp_list *list, size_t *ret_n_bytes)
{
    char *text = list->n < SIZE_MAX / 4 ? sl__alloc(4 * list->n + 1, 1) : NULL;
    size_t n = 0;
    for (size_t i = 0; text && list->cps && i < list->n; i++) {
        n += (size_t)utf8proc_encode_char(list->cps[i], (utf8proc_uint8_t *)text + n);
    }
    *ret_n_bytes = n;
    return text;
}

int s2_nfc(const char *text, size_t n_bytes, char **ret_text, size_t *ret_n_bytes, sl_error *reterr)
{
    cp_list list = {0};
    size_t n = 0;
    char *out = NULL;
    int r = decompose(text, n_bytes, &list, reterr);
    if (r == 0) {
        r = order_marks(&list, reterr);
    }
    if (r < 0) {
        goto out;
    }
    /* The composing step of utf8proc is one pass over an ordered list. */
    utf8proc_ssize_t n_cps = utf8proc_normalize_utf32(
            list.cps, (utf8proc_ssize_t)list.n, UTF8PROC_COMPOSE | UTF8PROC_STABLE);
    if (n_cps < 0) {
        r = sl__fail(reterr, SL_EINTERNAL, "the text cannot be normalised");
        goto out;
    }
    list.n = (size_t)n_cps;
    out = encode(&list, &n);
    if (!out) {
        r = sl__fail_nomem(reterr, 4 * list.n + 1, "normalising a text");
        goto out;
    }
    *ret_text = out;
    *ret_n_bytes = n;
out:
    sl__free(list.cps);
    return r;
}
