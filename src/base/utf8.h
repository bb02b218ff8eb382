/*
 * UTF-8 as RFC 3629 defines it: no overlong forms, no surrogates, nothing above U+10FFFF.
 * Pure functions over length-counted bytes; NUL is an ordinary character.
 */
#ifndef SL_BASE_UTF8_H
#define SL_BASE_UTF8_H

#include <stddef.h>
#include <stdint.h>

/* Bytes of the well-formed character at `s` (1..4), or 0 if there is none within `n` bytes. */
size_t sl__utf8_char_len(const char *s, size_t n);

/* Decodes the character at `s`; returns its bytes (1..4) and sets *ret_cp, or returns 0 and leaves it. */
size_t sl__utf8_decode(const char *s, size_t n, uint32_t *ret_cp);

/* Bytes from the start of `s` that are well formed: n if all of them are. */
size_t sl__utf8_valid_prefix(const char *s, size_t n);

#endif
