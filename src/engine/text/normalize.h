/*
 * What is done to a user's text before it is spoken, in the command and in the server alike.
 *
 * Checked: UTF-8. Removed: control characters except tab and line end, a byte order mark and soft hyphens, and
 * invisible characters that join nothing (U+200B, U+2060, U+FEFF, direction marks, annotation marks).
 * Replaced: the line ends CR LF, CR, U+000B, U+000C, U+0085, U+2028 and U+2029 by LF; the no-break spaces
 * U+00A0, U+2007 and U+202F by a space. Everything else stays, punctuation and the joiners U+200C and
 * U+200D included: the model was trained on it.
 *
 * Pure functions; any thread.
 */
#ifndef S2_TEXT_NORMALIZE_H
#define S2_TEXT_NORMALIZE_H

#include <stddef.h>

#include "base/status.h"

/*
 * *ret_text is a new NUL-terminated string without a NUL inside (sl__free it). Errors: SL_EINVAL with the
 * offset of the first byte that is not UTF-8, SL_ENOMEM. A text of nothing but removed characters gives an
 * empty string.
 */
int s2_text_normalize(const char *text, size_t n_bytes, char **ret_text, size_t *ret_n_bytes,
        sl_error *reterr) SL_MUST_CHECK;

/* The check alone: 0, or SL_EINVAL with the offset of the first byte that is not UTF-8. */
int s2_text_check_utf8(const char *text, size_t n_bytes, sl_error *reterr) SL_MUST_CHECK;

#endif
