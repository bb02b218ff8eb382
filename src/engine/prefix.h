/*
 * The beginning that the prompts of requests share, the system message with the voice, as the slow AR has evaluated it.
 *
 * Where the slow AR's keys and values leave a device with their phase, those of the beginning stay as a copy in host
 * memory (2 * layers * row elements * element size a position, at most S2_PREFIX_MAX_BYTES, booked as the host's KV), and
 * come back by a copy instead of being computed again. It is always evaluated by itself, so that a request that finds it
 * computes what a request that evaluates it computes, to the bit.
 *
 * It is in the cache while the slow AR, which nobody else begins sequences on, has that many positions.
 *
 * Threads: as the engine. Lifetime: the residency outlives it. Zeroed memory is an empty one.
 */
#ifndef S2_ENGINE_PREFIX_H
#define S2_ENGINE_PREFIX_H

#include <stddef.h>
#include <stdint.h>

#include "engine/model/slow_ar.h"
#include "sluice/residency.h"

/* A voice of half a minute in the real model takes 100 MB; a longer beginning is evaluated again. */
#define S2_PREFIX_MAX_BYTES ((size_t)256 << 20)

typedef struct s2_prefix {
    int32_t *columns;
    uint32_t n;         /* columns; 0: none */
    sl_scratch *booked; /* for the copy */
    void *copy;         /* of those n positions, or NULL */
} s2_prefix;

/*
 * Puts the slow AR behind `columns` (n of `height` values, column by column): they are still there, or come from the
 * copy, or are evaluated. Gives how many were evaluated: n or 0.
 * Errors: those of s2_slow_ar_eval, SL_ENOMEM.
 */
int s2_prefix_need(s2_prefix *p, s2_slow_ar *slow, const int32_t *columns, uint32_t n,
        uint32_t height, uint32_t *ret_n_evaluated, sl_error *reterr) SL_MUST_CHECK;

/*
 * The slow AR's keys and values are about to go: copies those of the beginning unless there is a copy. Without memory
 * for it, or budget, there is none.
 */
void s2_prefix_keep(s2_prefix *p, s2_slow_ar *slow, sl_residency *residency);

/* Gives the copy back. What the slow AR holds stays. */
void s2_prefix_drop(s2_prefix *p);

void s2_prefix_done(s2_prefix *p);

#endif
