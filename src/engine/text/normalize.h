/*
 * What is done to a user's text before it is spoken, in the command and in the server alike.
 *
 * Checked: UTF-8. Removed: a byte order mark, control characters except tab and line end, soft hyphens and
 * zero-width characters that join nothing (U+200B, U+2060, U+FEFF; the joiners inside emoji stay).
 * Replaced: CR LF and CR by LF, no-break spaces by spaces. Everything else, punctuation included, stays:
 * the model was trained on it.
 */
#ifndef S2_TEXT_NORMALIZE_H
#define S2_TEXT_NORMALIZE_H

#include <stddef.h>

#include "base/status.h"

/*
 * *ret_text is a new NUL-terminated string (sl__free it). Errors: SL_EINVAL with the offset of the first
 * byte that is not UTF-8, SL_ENOMEM. A text of nothing but removed characters gives an empty string.
 */
int s2_text_normalize(const char *text, size_t n_bytes, char **ret_text, size_t *ret_n_bytes,
        sl_error *reterr) SL_MUST_CHECK;

#endif
