/* Texts for tests: put together piece by piece, at random or not. */
#ifndef TEST_RANDOM_TEXT_H
#define TEST_RANDOM_TEXT_H

#include <stddef.h>
#include <stdint.h>

/* The next number of a sequence that only depends on *state, which is not 0. */
uint64_t random_next(uint64_t *state);

/* Copies the bytes of a string, without its NUL; returns how many. */
size_t put_text(char *out, const char *part);

/* Fills out[0..n-1] with whole copies of the part; returns the bytes used. */
size_t repeat_text(char *out, size_t n, const char *part);

/* Puts at most max_parts of the parts together; returns the bytes, at most `cap` (or the test fails). */
size_t random_text(uint64_t *state, const char *const *parts, size_t n_parts, size_t max_parts,
        char *out, size_t cap);

#endif
