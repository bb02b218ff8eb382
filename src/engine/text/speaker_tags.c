#include "engine/text/speaker_tags.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <utf8proc.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "engine/text/split.h"
#include "sluice/span.h"

#define MAX_TURNS 5

static const char tag_begin[] = "<|speaker:";
static const char tag_end[] = "|>";

/* Bytes of the decimal digits at the start. */
static size_t digits_len(const char *text, size_t n_bytes)
{
    size_t at = 0;
    while (at < n_bytes) {
        uint32_t cp = 0;
        size_t len = sl__utf8_decode(text + at, n_bytes - at, &cp);
        if (len == 0 || utf8proc_category((utf8proc_int32_t)cp) != UTF8PROC_CATEGORY_ND) {
            break;
        }
        at += len;
    }
    return at;
}

/* Bytes of the tag at the start, or 0. */
static size_t tag_len(const char *text, size_t n_bytes)
{
    size_t n_begin = sizeof tag_begin - 1;
    size_t n_end = sizeof tag_end - 1;
    if (n_bytes < n_begin || memcmp(text, tag_begin, n_begin) != 0) {
        return 0;
    }
    size_t n_digits = digits_len(text + n_begin, n_bytes - n_begin);
    size_t n = n_begin + n_digits;
    if (n_digits == 0 || n_bytes - n < n_end || memcmp(text + n, tag_end, n_end) != 0) {
        return 0;
    }
    return n + n_end;
}

size_t s2_find_speaker_tag(const char *text, size_t n_bytes, size_t *ret_at)
{
    size_t at = 0;
    while (at < n_bytes) {
        const char *next = memchr(text + at, tag_begin[0], n_bytes - at);
        if (!next) {
            break;
        }
        at = (size_t)(next - text);
        size_t len = tag_len(next, n_bytes - at);
        if (len > 0) {
            *ret_at = at;
            return len;
        }
        at++;
    }
    return 0;
}

/* What the original strips: White_Space and the separators U+001C..U+001F. */
static bool is_stripped(uint32_t cp)
{
    return s2_is_blank(cp) || (cp >= 0x1C && cp <= 0x1F);
}

/* Cuts blanks off the end; a turn begins with its tag. */
static sl_span strip_end(sl_span turn)
{
    size_t end = 0;
    size_t at = 0;
    while (at < turn.n) {
        uint32_t cp = 0;
        size_t len = sl__utf8_decode(turn.p + at, turn.n - at, &cp);
        bool is_blank = len > 0 && is_stripped(cp);
        at += len > 0 ? len : 1;
        end = is_blank ? end : at;
    }
    return (sl_span){turn.p, end};
}

/* The turn at the start of a text that begins with a tag; *ret_n_used bytes belong to it. */
static sl_span next_turn(const char *text, size_t n_bytes, size_t *ret_n_used)
{
    size_t n_tag = tag_len(text, n_bytes);
    size_t n_used = n_bytes - n_tag;
    (void)s2_find_speaker_tag(text + n_tag, n_bytes - n_tag, &n_used);
    *ret_n_used = n_tag + n_used;
    return strip_end((sl_span){text, *ret_n_used});
}

typedef struct batch_list {
    char **items;
    size_t n;
    size_t cap;
    char *open; /* the batch that turns are added to, NULL = none */
    size_t n_open;
    size_t n_turns;
    size_t n_turn_bytes; /* of the open batch, without the line ends */
} batch_list;

static int close_batch(batch_list *list, sl_error *reterr)
{
    void *items = list->items;
    if (!list->open) {
        return 0;
    }
    if (!sl__grow(&items, &list->cap, list->n + 1, sizeof *list->items)) {
        return sl__fail_nomem(reterr, (list->n + 1) * sizeof *list->items, "batches of text");
    }
    list->items = items;
    list->items[list->n++] = list->open;
    list->open = NULL;
    return 0;
}

static int add_turn(batch_list *list, sl_span turn, size_t max_bytes, sl_error *reterr)
{
    bool is_full = list->n_turns >= MAX_TURNS ||
                   (max_bytes > 0 && list->n_turn_bytes + turn.n > max_bytes);
    if (list->open && is_full) {
        int r = close_batch(list, reterr);
        if (r < 0) {
            return r;
        }
    }
    size_t n_old = list->open ? list->n_open + 1 : 0;
    char *grown = sl__realloc(list->open, n_old + turn.n + 1, 1);
    if (!grown) {
        return sl__fail_nomem(reterr, n_old + turn.n + 1, "a batch of text");
    }
    if (n_old > 0) {
        grown[n_old - 1] = '\n';
    }
    memcpy(grown + n_old, turn.p, turn.n);
    grown[n_old + turn.n] = '\0';
    list->n_turns = n_old > 0 ? list->n_turns + 1 : 1;
    list->n_turn_bytes = n_old > 0 ? list->n_turn_bytes + turn.n : turn.n;
    list->n_open = n_old + turn.n;
    list->open = grown;
    return 0;
}

static int cut_turns(
        batch_list *list, const char *text, size_t n_bytes, size_t max_bytes, sl_error *reterr)
{
    size_t at = 0;
    int r = 0;
    if (s2_find_speaker_tag(text, n_bytes, &at) == 0) {
        list->open = sl__strndup(text, n_bytes);
        if (!list->open) {
            return sl__fail_nomem(reterr, n_bytes + 1, "a batch of text");
        }
        return close_batch(list, reterr);
    }
    while (r == 0 && at < n_bytes) {
        size_t n_used = 0;
        sl_span turn = next_turn(text + at, n_bytes - at, &n_used);
        r = add_turn(list, turn, max_bytes, reterr);
        at += n_used;
    }
    return r < 0 ? r : close_batch(list, reterr);
}

int s2_text_batches(const char *text, size_t n_bytes, size_t max_bytes, char ***ret_batches,
        size_t *ret_n, sl_error *reterr)
{
    batch_list list = {0};
    const char *nul = n_bytes > 0 ? memchr(text, '\0', n_bytes) : NULL;
    if (nul) {
        return sl__fail_at(reterr, SL_EINVAL, (uint64_t)(nul - text),
                "the text has a NUL character at offset %zu; remove it", (size_t)(nul - text));
    }
    int r = cut_turns(&list, text, n_bytes, max_bytes, reterr);
    if (r < 0) {
        sl__free(list.open);
        s2_batches_free(list.items, list.n);
        return r;
    }
    *ret_batches = list.items;
    *ret_n = list.n;
    return 0;
}

void s2_batches_free(char **batches, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        sl__free(batches[i]);
    }
    sl__free(batches);
}
