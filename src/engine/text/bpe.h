/*
 * Byte-level byte pair encoding: a piece of bytes to token ids.
 *
 * Starts with one symbol a byte; of all neighbouring pairs that a merge names, the one whose merge comes
 * first in the list is joined, the leftmost of equals; and so on until no pair has a merge. n bytes cost
 * O(n log n), whatever they are.
 *
 * Pure functions. Threads: a table that is complete is read by any thread; scratch belongs to one thread.
 */
#ifndef S2_TEXT_BPE_H
#define S2_TEXT_BPE_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* A growing list of token ids. Zeroed memory is empty. */
typedef struct s2_tokens {
    int32_t *ids;
    size_t n;
    size_t cap;
} s2_tokens;

void s2_tokens_done(s2_tokens *tokens);
int s2_tokens_push(s2_tokens *tokens, int32_t id, sl_error *reterr) SL_MUST_CHECK;

typedef struct s2_bpe_merge {
    uint64_t pair; /* (left << 32 | right) + 1, or 0 for a free slot */
    int32_t rank;
    int32_t id; /* of what the two make */
} s2_bpe_merge;

/* Zeroed memory is empty. */
typedef struct s2_bpe {
    int32_t byte_ids[256];
    s2_bpe_merge *slots;
    size_t n_slots; /* a power of two, or 0 */
    size_t n_merges;
} s2_bpe;

/* A symbol of a piece, in a doubly linked list by index. */
typedef struct s2_bpe_symbol {
    int32_t id; /* -1 = swallowed by its left neighbour */
    uint32_t prev;
    uint32_t next;
} s2_bpe_symbol;

/* A pair that might be merged, in a heap ordered by (rank, position). */
typedef struct s2_bpe_candidate {
    uint64_t order; /* rank << 32 | index of the left symbol */
    int32_t left;
    int32_t right;
    int32_t id;
} s2_bpe_candidate;

/* Zeroed memory is empty. */
typedef struct s2_bpe_scratch {
    s2_bpe_symbol *symbols;
    size_t symbols_cap;
    s2_bpe_candidate *heap;
    size_t n_heap;
    size_t heap_cap;
} s2_bpe_scratch;

/* Room for n_max merges; the caller then sets byte_ids. Errors: SL_ENOMEM. */
int s2_bpe_init(s2_bpe *bpe, size_t n_max, sl_error *reterr) SL_MUST_CHECK;
void s2_bpe_done(s2_bpe *bpe);

/* Adds the next merge of the list (ids >= 0). Errors: SL_EEXIST (twice), SL_ELIMIT (too many collide). */
int s2_bpe_add(
        s2_bpe *bpe, int32_t left, int32_t right, int32_t id, sl_error *reterr) SL_MUST_CHECK;

/* Appends the ids of piece[0..n_bytes-1] (less than 4 GiB). Errors: SL_ENOMEM. */
int s2_bpe_encode(const s2_bpe *bpe, const char *piece, size_t n_bytes, s2_bpe_scratch *scratch,
        s2_tokens *tokens, sl_error *reterr) SL_MUST_CHECK;
void s2_bpe_scratch_done(s2_bpe_scratch *scratch);

#endif
