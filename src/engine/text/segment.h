/*
 * Cuts long text at sentence borders.
 *
 * A border is after a sentence end (sentence.h: . ! ? and their kin in other scripts, with closing quotes and
 * brackets) or a line end. Never cut: inside a number, an abbreviation, a URL or domain, a grapheme, or a [tag];
 * a tag stays with the sentence that follows it. A sentence longer than max_bytes is cut at its last clause mark,
 * else at its last blank, else in front of or behind a run of ASCII characters, else between graphemes.
 * The pieces and the blanks between them are the input: nothing is dropped.
 *
 * Pure function; any thread.
 */
#ifndef S2_TEXT_SEGMENT_H
#define S2_TEXT_SEGMENT_H

#include <stddef.h>

#include "base/status.h"
#include "sluice/span.h"

/* Spans into the text, without the blanks around them. Zeroed memory is empty. */
typedef struct s2_segments {
    sl_span *items;
    size_t n;
    size_t cap;
} s2_segments;

void s2_segments_done(s2_segments *segments);

/*
 * Replaces the list by the pieces of text[0..n_bytes-1]; a text of blanks has none. max_bytes 0 = no limit; a
 * single grapheme or, with no limit, a sentence is never cut. Neighbouring sentences are joined while the whole
 * has at most min_bytes (and max_bytes). Errors: SL_EINVAL (not UTF-8: offset), SL_ENOMEM; the list is
 * then empty.
 */
int s2_text_segment(const char *text, size_t n_bytes, size_t min_bytes, size_t max_bytes,
        s2_segments *segments, sl_error *reterr) SL_MUST_CHECK;

#endif
