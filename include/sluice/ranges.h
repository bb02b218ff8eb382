/*
 * Sets of byte ranges: sorted, merged, never empty inside, never touching each other.
 *
 * Pure functions; no system calls. Results are written to a set of the caller, which may be the same object
 * as an input. Zeroed memory is the empty set.
 *
 * Threads: a set belongs to one thread at a time.
 */
#ifndef SLUICE_RANGES_H
#define SLUICE_RANGES_H

#include <stddef.h>
#include <stdint.h>

#include "sluice/api.h"
#include "sluice/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes begin <= b < end. */
typedef struct sl_range {
    uint64_t begin;
    uint64_t end;
} sl_range;

typedef struct sl_ranges {
    sl_range *items;
    size_t n;
    size_t cap;
} sl_ranges;

/* Frees the items and makes the set empty. Accepts NULL. */
SL_API void sl_ranges_done(sl_ranges *set);

/* Adds begin..end (an empty or inverted range adds nothing). Errors: SL_ENOMEM, the set then unchanged. */
SL_API int sl_ranges_add(sl_ranges *set, uint64_t begin, uint64_t end);

/* Rounds every range outward to multiples of `page` (a power of two), clamped to 0..limit, and merges. */
SL_API int sl_ranges_align(sl_ranges *set, uint64_t page, uint64_t limit);

/* Set operations; errors: SL_ENOMEM, *ret_set then unchanged. */
SL_API int sl_ranges_union(const sl_ranges *a, const sl_ranges *b, sl_ranges *ret_set);
SL_API int sl_ranges_intersect(const sl_ranges *a, const sl_ranges *b, sl_ranges *ret_set);
SL_API int sl_ranges_complement(
        const sl_ranges *a, uint64_t begin, uint64_t end, sl_ranges *ret_set);
SL_API int sl_ranges_subtract(const sl_ranges *a, const sl_ranges *b, sl_ranges *ret_set);
SL_API int sl_ranges_clamp(const sl_ranges *a, uint64_t begin, uint64_t end, sl_ranges *ret_set);

/* Sum of the lengths; cannot overflow, since ranges do not overlap. */
SL_API uint64_t sl_ranges_bytes(const sl_ranges *set);

#ifdef __cplusplus
}
#endif

#endif
