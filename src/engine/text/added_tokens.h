/*
 * The added tokens of a tokenizer: whole strings that are cut out of a text before anything else is done.
 *
 * Threads: immutable once sorted. Lifetime: spellings are borrowed from the owner of the list.
 */
#ifndef S2_TEXT_ADDED_TOKENS_H
#define S2_TEXT_ADDED_TOKENS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "sluice/span.h"

typedef struct s2_added_token {
    sl_span text; /* at least one byte */
    int32_t id;
} s2_added_token;

/* Zeroed memory is empty. */
typedef struct s2_added_tokens {
    s2_added_token *items; /* sorted by their bytes */
    size_t n;
    size_t cap;
    bool starts[256]; /* bytes that a token begins with */
} s2_added_tokens;

int s2_added_push(s2_added_tokens *list, sl_span text, int32_t id, sl_error *reterr) SL_MUST_CHECK;
void s2_added_sort(s2_added_tokens *list);
void s2_added_done(s2_added_tokens *list);

/* Id of the token with exactly this spelling, or -1. */
int32_t s2_added_find(const s2_added_tokens *list, sl_span text);

/*
 * Finds the leftmost token in text[0..n_bytes-1], the longest at that place. Returns its length and sets
 * *ret_at and *ret_id, or returns 0.
 */
size_t s2_added_next(const s2_added_tokens *list, const char *text, size_t n_bytes, size_t *ret_at,
        int32_t *ret_id);

#endif
