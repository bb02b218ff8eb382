/*
 * Merges are keyed by the ids of the pair, so that encoding never builds a string. A heap holds every pair
 * that has a merge; entries of symbols that have changed since are recognised when they come out.
 */
#include "engine/text/bpe.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

#include "base/mem.h"
#include "engine/text/strmap.h"

#define NONE UINT32_MAX

/* As in strmap.c: no file may make a lookup slow. */
#define MAX_PROBES 1024

void s2_tokens_done(s2_tokens *tokens)
{
    sl__free(tokens->ids);
    memset(tokens, 0, sizeof *tokens);
}

int s2_tokens_push(s2_tokens *tokens, int32_t id, sl_error *reterr)
{
    void *ids = tokens->ids;
    if (!sl__grow(&ids, &tokens->cap, tokens->n + 1, sizeof *tokens->ids)) {
        return sl__fail_nomem(reterr, (tokens->n + 1) * sizeof *tokens->ids, "token ids");
    }
    tokens->ids = ids;
    tokens->ids[tokens->n++] = id;
    return 0;
}

int s2_bpe_init(s2_bpe *bpe, size_t n_max, sl_error *reterr)
{
    size_t n_slots = 16;
    while (n_slots / 4 * 3 < n_max) {
        n_slots *= 2;
    }
    s2_bpe_merge *slots = sl__alloc(n_slots, sizeof *slots);
    if (!slots) {
        return sl__fail_nomem(reterr, n_slots * sizeof *slots, "the merges of a tokenizer");
    }
    memset(bpe, 0, sizeof *bpe);
    bpe->slots = slots;
    bpe->n_slots = n_slots;
    return 0;
}

void s2_bpe_done(s2_bpe *bpe)
{
    sl__free(bpe->slots);
    memset(bpe, 0, sizeof *bpe);
}

static uint64_t pair_key(int32_t left, int32_t right)
{
    return ((uint64_t)(uint32_t)left << 32 | (uint32_t)right) + 1;
}

/* The slot of the pair, or the free slot where it belongs, or NULL after too many probes. */
static s2_bpe_merge *locate(const s2_bpe *bpe, uint64_t pair)
{
    size_t mask = bpe->n_slots - 1;
    size_t i = (size_t)s2_hash_u64(pair) & mask;
    for (int n_probes = 0; n_probes < MAX_PROBES; n_probes++) {
        s2_bpe_merge *slot = &bpe->slots[i];
        if (slot->pair == pair || slot->pair == 0) {
            return slot;
        }
        i = (i + 1) & mask;
    }
    return NULL;
}

int s2_bpe_add(s2_bpe *bpe, int32_t left, int32_t right, int32_t id, sl_error *reterr)
{
    assert(left >= 0 && right >= 0 && id >= 0 && bpe->n_merges < bpe->n_slots / 4 * 3);
    uint64_t pair = pair_key(left, right);
    s2_bpe_merge *slot = locate(bpe, pair);
    if (!slot) {
        return sl__fail(reterr, SL_ELIMIT, "more than %d merges collide", MAX_PROBES);
    }
    if (slot->pair != 0) {
        return sl__fail(reterr, SL_EEXIST, "the merge is already there");
    }
    *slot = (s2_bpe_merge){.pair = pair, .rank = (int32_t)bpe->n_merges++, .id = id};
    return 0;
}

/* Restores the heap from entry i downwards. */
static void sift_down(s2_bpe_candidate *heap, size_t n, size_t i)
{
    s2_bpe_candidate item = heap[i];
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= n) {
            break;
        }
        child += child + 1 < n && heap[child + 1].order < heap[child].order;
        if (item.order <= heap[child].order) {
            break;
        }
        heap[i] = heap[child];
        i = child;
    }
    heap[i] = item;
}

static void heap_push(s2_bpe_scratch *s, s2_bpe_candidate item)
{
    size_t i = s->n_heap++;
    while (i > 0 && item.order < s->heap[(i - 1) / 2].order) {
        s->heap[i] = s->heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    s->heap[i] = item;
}

static s2_bpe_candidate heap_pop(s2_bpe_scratch *s)
{
    s2_bpe_candidate top = s->heap[0];
    s->heap[0] = s->heap[--s->n_heap];
    if (s->n_heap > 0) {
        sift_down(s->heap, s->n_heap, 0);
    }
    return top;
}

/* The pair of symbol i and its right neighbour, if it has a merge. */
static bool candidate_at(
        const s2_bpe *bpe, const s2_bpe_scratch *s, uint32_t i, s2_bpe_candidate *ret)
{
    if (i == NONE || s->symbols[i].next == NONE) {
        return false;
    }
    int32_t left = s->symbols[i].id;
    int32_t right = s->symbols[s->symbols[i].next].id;
    const s2_bpe_merge *merge = locate(bpe, pair_key(left, right));
    if (!merge || merge->pair == 0) {
        return false;
    }
    *ret = (s2_bpe_candidate){.order = (uint64_t)(uint32_t)merge->rank << 32 | i,
            .left = left,
            .right = right,
            .id = merge->id};
    return true;
}

/* One symbol a byte, and the heap of the pairs that have a merge. */
static int start_piece(
        const s2_bpe *bpe, const char *piece, size_t n_bytes, s2_bpe_scratch *s, sl_error *reterr)
{
    void *symbols = s->symbols;
    void *heap = s->heap;
    bool has_room = sl__grow(&symbols, &s->symbols_cap, n_bytes, sizeof *s->symbols);
    s->symbols = symbols;
    /* A merge removes one pair and makes at most two: never more than twice the bytes at a time. */
    has_room = has_room && sl__grow(&heap, &s->heap_cap, 2 * n_bytes, sizeof *s->heap);
    s->heap = heap;
    if (!has_room) {
        return sl__fail_nomem(reterr, n_bytes * 2 * sizeof *s->heap, "splitting a word");
    }
    for (size_t i = 0; i < n_bytes; i++) {
        s->symbols[i] = (s2_bpe_symbol){.id = bpe->byte_ids[(unsigned char)piece[i]],
                .prev = i > 0 ? (uint32_t)i - 1 : NONE,
                .next = i + 1 < n_bytes ? (uint32_t)i + 1 : NONE};
    }
    s->n_heap = 0;
    for (size_t i = 0; i + 1 < n_bytes; i++) {
        if (candidate_at(bpe, s, (uint32_t)i, &s->heap[s->n_heap])) {
            s->n_heap++;
        }
    }
    for (size_t i = s->n_heap / 2; i > 0; i--) {
        sift_down(s->heap, s->n_heap, i - 1);
    }
    return 0;
}

/* Joins the pair of the candidate, unless one of its symbols has changed since it was found. */
static void apply(const s2_bpe *bpe, s2_bpe_scratch *s, s2_bpe_candidate c)
{
    uint32_t i = (uint32_t)c.order;
    s2_bpe_candidate found;
    s2_bpe_symbol *left = &s->symbols[i];
    if (left->id != c.left || left->next == NONE || s->symbols[left->next].id != c.right) {
        return;
    }
    s2_bpe_symbol *right = &s->symbols[left->next];
    left->id = c.id;
    left->next = right->next;
    right->id = -1;
    if (left->next != NONE) {
        s->symbols[left->next].prev = i;
    }
    if (candidate_at(bpe, s, left->prev, &found)) {
        heap_push(s, found);
    }
    if (candidate_at(bpe, s, i, &found)) {
        heap_push(s, found);
    }
}

int s2_bpe_encode(const s2_bpe *bpe, const char *piece, size_t n_bytes, s2_bpe_scratch *scratch,
        s2_tokens *tokens, sl_error *reterr)
{
    assert(n_bytes < NONE);
    if (n_bytes == 0) {
        return 0;
    }
    int r = start_piece(bpe, piece, n_bytes, scratch, reterr);
    if (r < 0) {
        return r;
    }
    while (scratch->n_heap > 0) {
        apply(bpe, scratch, heap_pop(scratch));
    }
    for (uint32_t i = 0; i != NONE && r == 0; i = scratch->symbols[i].next) {
        r = s2_tokens_push(tokens, scratch->symbols[i].id, reterr);
    }
    return r;
}

void s2_bpe_scratch_done(s2_bpe_scratch *scratch)
{
    sl__free(scratch->symbols);
    sl__free(scratch->heap);
    memset(scratch, 0, sizeof *scratch);
}
