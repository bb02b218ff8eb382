#include "engine/text/added_tokens.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

int s2_added_push(s2_added_tokens *list, sl_span text, int32_t id, sl_error *reterr)
{
    void *items = list->items;
    if (!sl__grow(&items, &list->cap, list->n + 1, sizeof *list->items)) {
        return sl__fail_nomem(reterr, (list->n + 1) * sizeof *list->items, "added tokens");
    }
    list->items = items;
    list->items[list->n++] = (s2_added_token){.text = text, .id = id};
    list->starts[(unsigned char)text.p[0]] = true;
    return 0;
}

static int compare_spans(sl_span a, sl_span b)
{
    int c = memcmp(a.p, b.p, a.n < b.n ? a.n : b.n);
    if (c != 0) {
        return c;
    }
    return a.n < b.n ? -1 : a.n > b.n;
}

static int compare_tokens(const void *a, const void *b)
{
    return compare_spans(((const s2_added_token *)a)->text, ((const s2_added_token *)b)->text);
}

void s2_added_sort(s2_added_tokens *list)
{
    if (list->n > 1) {
        qsort(list->items, list->n, sizeof *list->items, compare_tokens);
    }
}

void s2_added_done(s2_added_tokens *list)
{
    sl__free(list->items);
    memset(list, 0, sizeof *list);
}

int32_t s2_added_find(const s2_added_tokens *list, sl_span text)
{
    size_t lo = 0;
    size_t hi = list->n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        int c = compare_spans(list->items[mid].text, text);
        if (c == 0) {
            return list->items[mid].id;
        }
        lo = c < 0 ? mid + 1 : lo;
        hi = c < 0 ? hi : mid;
    }
    return -1;
}

/* Byte i of a token for ordering: -1 behind its end. */
static int byte_of(const s2_added_token *token, size_t i)
{
    return i < token->text.n ? (int)(unsigned char)token->text.p[i] : -1;
}

/* First of items[lo..hi-1], which agree in their first i bytes, whose byte i is at least `byte`. */
static size_t lower_bound(const s2_added_tokens *list, size_t lo, size_t hi, size_t i, int byte)
{
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (byte_of(&list->items[mid], i) < byte) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo;
}

/* The longest token that begins at text: its length, or 0. Narrows the sorted list byte by byte. */
static size_t longest_at(
        const s2_added_tokens *list, const char *text, size_t n_bytes, int32_t *ret_id)
{
    size_t lo = 0;
    size_t hi = list->n;
    size_t longest = 0;
    for (size_t i = 0; i < n_bytes && lo < hi; i++) {
        int byte = (unsigned char)text[i];
        lo = lower_bound(list, lo, hi, i, byte);
        hi = lower_bound(list, lo, hi, i, byte + 1);
        if (lo < hi && list->items[lo].text.n == i + 1) {
            longest = i + 1;
            *ret_id = list->items[lo].id;
        }
    }
    return longest;
}

size_t s2_added_next(const s2_added_tokens *list, const char *text, size_t n_bytes, size_t *ret_at,
        int32_t *ret_id)
{
    for (size_t at = 0; at < n_bytes; at++) {
        if (!list->starts[(unsigned char)text[at]]) {
            continue;
        }
        size_t n = longest_at(list, text + at, n_bytes - at, ret_id);
        if (n > 0) {
            *ret_at = at;
            return n;
        }
    }
    return 0;
}
