/* Percent-decoding and query strings, on bytes from outside. Pure. */
#ifndef SERVER_URL_H
#define SERVER_URL_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Decodes %HH of n bytes into `buf` with a NUL behind them. False if it does not fit, an escape is malformed, or a
 * NUL byte would come of it.
 */
bool url_decode(const char *text, size_t n, char *buf, size_t buf_bytes);

/* Value of the first `name` of a query string ("a=1&b=2"), decoded. False if it is not there or malformed. */
bool url_query_get(const char *query, const char *name, char *buf, size_t buf_bytes);

#endif
