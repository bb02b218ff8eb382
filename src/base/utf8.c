#include "base/utf8.h"

size_t sl__utf8_decode(const char *s, size_t n, uint32_t *ret_cp)
{
    /* Smallest code point that needs a sequence of this length: anything below is overlong. */
    static const uint32_t min_cp[5] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char *u = (const unsigned char *)s;
    size_t len;
    uint32_t cp;

    if (n == 0) {
        return 0;
    }
    if (u[0] < 0x80) {
        *ret_cp = u[0];
        return 1;
    }
    if ((u[0] & 0xE0) == 0xC0) {
        len = 2;
        cp = u[0] & 0x1Fu;
    } else if ((u[0] & 0xF0) == 0xE0) {
        len = 3;
        cp = u[0] & 0x0Fu;
    } else if ((u[0] & 0xF8) == 0xF0) {
        len = 4;
        cp = u[0] & 0x07u;
    } else {
        return 0;
    }
    if (len > n) {
        return 0;
    }
    for (size_t i = 1; i < len; i++) {
        if ((u[i] & 0xC0) != 0x80) {
            return 0;
        }
        cp = (cp << 6) | (u[i] & 0x3Fu);
    }
    if (cp < min_cp[len] || cp > 0x10FFFF || (cp >= 0xD800 && cp <= 0xDFFF)) {
        return 0;
    }
    *ret_cp = cp;
    return len;
}

size_t sl__utf8_char_len(const char *s, size_t n)
{
    uint32_t cp = 0;
    return sl__utf8_decode(s, n, &cp);
}

size_t sl__utf8_valid_prefix(const char *s, size_t n)
{
    size_t i = 0;
    while (i < n) {
        size_t len = sl__utf8_char_len(s + i, n - i);
        if (len == 0) {
            break;
        }
        i += len;
    }
    return i;
}
