#include "engine/text/segment.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/mem.h"
#include "engine/text/normalize.h"
#include "engine/text/sentence.h"

void s2_segments_done(s2_segments *segments)
{
    sl__free(segments->items);
    memset(segments, 0, sizeof *segments);
}

static int push(s2_segments *list, const char *p, size_t n, sl_error *reterr)
{
    void *items = list->items;
    if (!sl__grow(&items, &list->cap, list->n + 1, sizeof *list->items)) {
        return sl__fail_nomem(reterr, (list->n + 1) * sizeof *list->items, "pieces of a text");
    }
    list->items = items;
    list->items[list->n++] = (sl_span){p, n};
    return 0;
}

/* Places where an overlong sentence may be cut, the last of each kind; 0 = none. */
typedef struct cuts {
    size_t clause;
    size_t blank;
    size_t word; /* not inside a run of ASCII characters */
    size_t grapheme;
} cuts;

static bool is_ascii_graphic(char c)
{
    return c > 0x20 && c < 0x7F;
}

/* Notes what may be cut behind the part that ends at `end` and is no blank. */
static void note_cuts(const char *text, size_t n_bytes, size_t at, s2_part part, cuts *found)
{
    size_t end = at + part.n;
    bool is_inside =
            end < n_bytes && is_ascii_graphic(text[end - 1]) && is_ascii_graphic(text[end]);
    found->grapheme = end;
    found->word = is_inside ? found->word : end;
    /* A mark that closes goes with the clause in front of it. */
    bool follows_clause = found->clause == at && at > 0 && part.kind == S2_PART_CLOSER;
    if (follows_clause || s2_ends_clause(text, n_bytes, at, part)) {
        found->clause = end;
    }
}

/* Bytes to cut off the front of a sentence that is longer than max_bytes; the piece ends with no blank. */
static size_t cut_len(const char *text, size_t n_bytes, size_t max_bytes)
{
    cuts found = {0};
    size_t at = 0;
    size_t solid_end = 0;
    while (at <= max_bytes && at < n_bytes) {
        s2_part part = s2_part_at(text + at, n_bytes - at, max_bytes);
        bool is_blank = part.kind == S2_PART_BLANK || part.kind == S2_PART_LINE;
        if (is_blank) {
            /* 1 000 000 is one number. */
            bool is_in_number = s2_is_between_digits(text, n_bytes, solid_end, at + part.n);
            found.blank = is_in_number ? found.blank : solid_end;
        } else if (at + part.n <= max_bytes) {
            note_cuts(text, n_bytes, at, part, &found);
            solid_end = at + part.n;
        } else {
            break;
        }
        at += part.n;
    }
    if (found.clause > 0) {
        return found.clause;
    }
    if (found.blank > 0) {
        return found.blank;
    }
    if (found.word > 0) {
        return found.word;
    }
    return found.grapheme > 0 ? found.grapheme : s2_part_at(text, n_bytes, max_bytes).n;
}

static int push_sentence(
        s2_segments *list, const char *text, size_t n_bytes, size_t max_bytes, sl_error *reterr)
{
    int r = 0;
    while (r == 0 && max_bytes > 0 && n_bytes > max_bytes) {
        size_t n = cut_len(text, n_bytes, max_bytes);
        r = push(list, text, n, reterr);
        n += s2_skip_blanks(text + n, n_bytes - n);
        text += n;
        n_bytes -= n;
    }
    return r == 0 && n_bytes > 0 ? push(list, text, n_bytes, reterr) : r;
}

/* Bytes from the first byte of a piece to the last of a later one. */
static size_t joined_bytes(sl_span first, sl_span last)
{
    return (size_t)(last.p + last.n - first.p);
}

static void join_short(s2_segments *list, size_t min_bytes)
{
    size_t n = 0;
    for (size_t i = 1; i < list->n; i++) {
        size_t n_bytes = joined_bytes(list->items[n], list->items[i]);
        if (n_bytes <= min_bytes) {
            list->items[n].n = n_bytes;
        } else {
            list->items[++n] = list->items[i];
        }
    }
    list->n = list->n > 0 ? n + 1 : 0;
}

/* A last piece that says nothing (a tag, an ellipsis) goes with the one in front of it if it fits. */
static void join_silent_tail(s2_segments *list, size_t i_tail, size_t max_bytes)
{
    if (i_tail == 0 || i_tail + 1 != list->n) {
        return;
    }
    size_t n_bytes = joined_bytes(list->items[i_tail - 1], list->items[i_tail]);
    if (max_bytes == 0 || n_bytes <= max_bytes) {
        list->items[i_tail - 1].n = n_bytes;
        list->n--;
    }
}

int s2_text_segment(const char *text, size_t n_bytes, size_t min_bytes, size_t max_bytes,
        s2_segments *segments, sl_error *reterr)
{
    size_t max_tag = max_bytes > 0 ? max_bytes : SIZE_MAX;
    segments->n = 0;
    int r = s2_text_check_utf8(text, n_bytes, reterr);
    size_t at = r == 0 ? s2_skip_blanks(text, n_bytes) : n_bytes;
    while (r == 0 && at < n_bytes) {
        bool has_speech = true;
        size_t i_first = segments->n;
        size_t n = s2_sentence_len(text + at, n_bytes - at, max_tag, &has_speech);
        r = push_sentence(segments, text + at, n, max_bytes, reterr);
        if (r == 0 && !has_speech) {
            join_silent_tail(segments, i_first, max_bytes);
        }
        at += n;
        at += s2_skip_blanks(text + at, n_bytes - at);
    }
    if (r < 0) {
        segments->n = 0;
        return r;
    }
    join_short(segments, max_bytes > 0 && min_bytes > max_bytes ? max_bytes : min_bytes);
    return 0;
}
