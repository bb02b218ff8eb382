#include "base64.h"

#include <stdint.h>

size_t base64_bound(size_t n)
{
    return (n + 2) / 3 * 4;
}

size_t base64_encode(const void *data, size_t n, char *ret_text)
{
    static const char letters[] =
            "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const unsigned char *in = data;
    size_t n_out = 0;
    for (size_t i = 0; i < n; i += 3) {
        size_t n_left = n - i;
        uint32_t v = (uint32_t)in[i] << 16 | (n_left > 1 ? (uint32_t)in[i + 1] << 8 : 0) |
                     (n_left > 2 ? in[i + 2] : 0u);
        ret_text[n_out++] = letters[v >> 18];
        ret_text[n_out++] = letters[v >> 12 & 63];
        ret_text[n_out++] = n_left > 1 ? letters[v >> 6 & 63] : '=';
        ret_text[n_out++] = n_left > 2 ? letters[v & 63] : '=';
    }
    ret_text[n_out] = '\0';
    return n_out;
}

/* 0..63, or 64 for padding, 65 for white space, -1 for anything else. */
static int value_of(char c)
{
    if (c >= 'A' && c <= 'Z') {
        return c - 'A';
    }
    if (c >= 'a' && c <= 'z') {
        return c - 'a' + 26;
    }
    if (c >= '0' && c <= '9') {
        return c - '0' + 52;
    }
    switch (c) {
    case '+':
    case '-':
        return 62;
    case '/':
    case '_':
        return 63;
    case '=':
        return 64;
    case ' ':
    case '\t':
    case '\r':
    case '\n':
        return 65;
    default:
        return -1;
    }
}

bool base64_decode(const char *text, size_t n, unsigned char *ret_data, size_t *ret_n)
{
    uint32_t bits = 0;
    unsigned n_bits = 0;
    size_t n_letters = 0;
    size_t n_pads = 0;
    size_t n_out = 0;
    for (size_t i = 0; i < n; i++) {
        int v = value_of(text[i]);
        if (v < 0 || (v < 64 && n_pads > 0)) {
            return false;
        }
        n_pads += v == 64;
        if (v >= 64) {
            continue;
        }
        n_letters++;
        bits = bits << 6 | (uint32_t)v;
        n_bits += 6;
        if (n_bits >= 8) {
            n_bits -= 8;
            ret_data[n_out++] = (unsigned char)(bits >> n_bits);
        }
    }
    *ret_n = n_out;
    return n_letters % 4 != 1 && n_pads <= 2;
}
