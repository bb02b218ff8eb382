#include "source/shard_name.h"

#include <string.h>

#include "base/mem.h"

/* "-00002-of-00005.gguf": where the numbers lie in it. */
#define TAIL_BYTES 20u
#define NO_AT      1u
#define OF_AT      6u
#define COUNT_AT   10u
#define SUFFIX_AT  15u
#define N_DIGITS   5u

static bool read_digits(const char *s, uint32_t *ret)
{
    uint32_t v = 0;
    for (unsigned i = 0; i < N_DIGITS; i++) {
        if (s[i] < '0' || s[i] > '9') {
            return false;
        }
        v = v * 10 + (uint32_t)(s[i] - '0');
    }
    *ret = v;
    return true;
}

bool sl__shard_name_parse(const char *path, sl__shard_name *ret)
{
    size_t n = strlen(path);
    sl__shard_name name;
    if (n <= TAIL_BYTES) {
        return false;
    }
    const char *tail = path + n - TAIL_BYTES;
    if (tail[0] != '-' || memcmp(tail + OF_AT, "-of-", 4) != 0 ||
            memcmp(tail + SUFFIX_AT, ".gguf", 5) != 0 || !read_digits(tail + NO_AT, &name.no) ||
            !read_digits(tail + COUNT_AT, &name.count) || name.no < 1 || name.no > name.count) {
        return false;
    }
    *ret = name;
    return true;
}

char *sl__shard_path(const char *path, uint32_t no)
{
    size_t n = strlen(path);
    char *shard = sl__strndup(path, n);
    if (shard) {
        char *digits = shard + n - TAIL_BYTES + NO_AT;
        for (unsigned i = N_DIGITS; i > 0; i--) {
            digits[i - 1] = (char)('0' + no % 10);
            no /= 10;
        }
    }
    return shard;
}
