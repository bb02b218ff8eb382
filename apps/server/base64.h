/* Base64 of RFC 4648. Pure. */
#ifndef SERVER_BASE64_H
#define SERVER_BASE64_H

#include <stdbool.h>
#include <stddef.h>

/* Characters of n bytes, without the NUL. */
size_t base64_bound(size_t n);

/* Writes base64_bound(n) characters and a NUL. Returns their number. */
size_t base64_encode(const void *data, size_t n, char *ret_text);

/*
 * Decodes into `ret_data`, which has room for 3 * (n / 4) + 3 bytes. White space is skipped, padding may
 * lack, and - and _ mean + and /.
 * False if anything else is in the text.
 */
bool base64_decode(const char *text, size_t n, unsigned char *ret_data, size_t *ret_n);

#endif
