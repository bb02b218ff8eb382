/*
 * Speaker tags, <|speaker:N|>: plain text to the tokenizer, but they cut a text into turns.
 *
 * Pure functions over UTF-8; any thread.
 */
#ifndef S2_TEXT_SPEAKER_TAGS_H
#define S2_TEXT_SPEAKER_TAGS_H

#include <stddef.h>

#include "base/status.h"

/*
 * Finds the first tag in text[0..n_bytes-1]: returns its length and sets *ret_at, or returns 0. N is any run of
 * decimal digits of any script, as the original takes it.
 */
size_t s2_find_speaker_tag(const char *text, size_t n_bytes, size_t *ret_at);

/*
 * Cuts a text with speaker tags into the batches of the original model: turns at the tags (text before the
 * first tag is dropped), each stripped, grouped to at most 5 turns and max_bytes bytes (0 = no limit; the
 * line ends between turns do not count, a longer turn stays whole), joined by a line end. A text without
 * tags is one batch, unchanged.
 *
 * *ret_batches is an array of NUL-terminated strings that s2_batches_free frees.
 * Errors: SL_EINVAL (a NUL inside the text), SL_ENOMEM.
 */
int s2_text_batches(const char *text, size_t n_bytes, size_t max_bytes, char ***ret_batches,
        size_t *ret_n, sl_error *reterr) SL_MUST_CHECK;
void s2_batches_free(char **batches, size_t n);

#endif
