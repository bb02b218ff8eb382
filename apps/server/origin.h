/* Names in Host and Origin headers, and keys. Pure. */
#ifndef SERVER_ORIGIN_H
#define SERVER_ORIGIN_H

#include <stdbool.h>

/* True for localhost and its sub-names, and for numeric addresses: names that no foreign DNS entry can stand for. */
bool host_is_local(const char *host);

/* True if `host`, with or without a port, is the name; case does not matter. */
bool host_is(const char *host, const char *name);

/* True if an Origin ("http://name:port") is of the site that `host` names. */
bool origin_is_host(const char *origin, const char *host);

/* Compares in a time that tells nothing about `key`. */
bool key_is_equal(const char *given, const char *key);

#endif
