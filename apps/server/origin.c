#include "origin.h"

#include <stddef.h>
#include <string.h>
#include <strings.h>

/* Bytes of the name without its port. */
static size_t name_bytes(const char *host)
{
    if (*host == '[') {
        const char *end = strchr(host, ']');
        return end ? (size_t)(end - host) + 1 : strlen(host);
    }
    return strcspn(host, ":");
}

static bool ends_with(const char *text, size_t n, const char *suffix)
{
    size_t n_suffix = strlen(suffix);
    return n >= n_suffix && strncasecmp(text + n - n_suffix, suffix, n_suffix) == 0;
}

bool host_is_local(const char *host)
{
    size_t n = name_bytes(host);
    bool is_numeric = n > 0 && (*host == '[' || strspn(host, "0123456789.") == n);
    /* HTTP/1.0 has no Host, and no browser speaks it. */
    return n == 0 || is_numeric || ends_with(host, n, ".localhost") ||
           (n == 9 && ends_with(host, n, "localhost"));
}

bool host_is(const char *host, const char *name)
{
    size_t n = name_bytes(host);
    return n == strlen(name) && strncasecmp(host, name, n) == 0;
}

bool origin_is_host(const char *origin, const char *host)
{
    const char *at = strstr(origin, "://");
    return at && *host && strcasecmp(at + 3, host) == 0;
}

bool key_is_equal(const char *given, const char *key)
{
    size_t n_given = strlen(given);
    size_t n_key = strlen(key);
    unsigned char difference = n_given != n_key;
    for (size_t i = 0; i < n_given; i++) {
        /* The index depends on the given text alone. */
        unsigned char k = (unsigned char)key[n_key > 0 ? i % n_key : 0];
        difference |= (unsigned char)((unsigned char)given[i] ^ k);
    }
    return difference == 0;
}
