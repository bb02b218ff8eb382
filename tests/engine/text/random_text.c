#include "random_text.h"

#include <string.h>

#include "test_support.h"

uint64_t random_next(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

size_t put_text(char *out, const char *part)
{
    size_t n = 0;
    for (; part[n]; n++) {
        out[n] = part[n];
    }
    return n;
}

size_t repeat_text(char *out, size_t n, const char *part)
{
    size_t n_part = strlen(part);
    size_t at = 0;
    while (n - at >= n_part) {
        at += put_text(out + at, part);
    }
    return at;
}

size_t random_text(uint64_t *state, const char *const *parts, size_t n_parts, size_t max_parts,
        char *out, size_t cap)
{
    size_t n = random_next(state) % (max_parts + 1);
    size_t at = 0;
    for (size_t i = 0; i < n; i++) {
        const char *part = parts[random_next(state) % n_parts];
        assert_true(at + strlen(part) <= cap);
        at += put_text(out + at, part);
    }
    return at;
}
