/*
 * Unicode normalisation form C, in time linear in the text: a hostile run of combining marks costs no more
 * than other text.
 *
 * The Unicode version is that of utf8proc (15.0 in Debian 12). Pure functions; any thread.
 */
#ifndef S2_TEXT_NFC_H
#define S2_TEXT_NFC_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

/* True if a quick look shows that the text is in form C already (false says nothing). UTF-8 required. */
bool s2_nfc_is_plain(const char *text, size_t n_bytes);

/* *ret_text: a new string with a NUL behind it (sl__free it). The text must be UTF-8. Errors: SL_ENOMEM. */
int s2_nfc(const char *text, size_t n_bytes, char **ret_text, size_t *ret_n_bytes,
        sl_error *reterr) SL_MUST_CHECK;

#endif
