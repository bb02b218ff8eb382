#include "url.h"

#include <string.h>

static int hex_value(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    if (c >= 'a' && c <= 'f') {
        return c - 'a' + 10;
    }
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

bool url_decode(const char *text, size_t n, char *buf, size_t buf_bytes)
{
    size_t n_out = 0;
    for (size_t i = 0; i < n; i++) {
        char c = text[i];
        if (c == '%') {
            int high = n - i > 2 ? hex_value(text[i + 1]) : -1;
            int low = high >= 0 ? hex_value(text[i + 2]) : -1;
            if (low < 0) {
                return false;
            }
            c = (char)(16 * high + low);
            i += 2;
        }
        if (c == '\0' || n_out + 1 >= buf_bytes) {
            return false;
        }
        buf[n_out++] = c;
    }
    if (buf_bytes == 0) {
        return false;
    }
    buf[n_out] = '\0';
    return true;
}

bool url_query_get(const char *query, const char *name, char *buf, size_t buf_bytes)
{
    size_t n_name = strlen(name);
    while (query && *query) {
        size_t n = strcspn(query, "&");
        if (n > n_name && strncmp(query, name, n_name) == 0 && query[n_name] == '=') {
            return url_decode(query + n_name + 1, n - n_name - 1, buf, buf_bytes);
        }
        query += n + (query[n] == '&');
    }
    return false;
}
