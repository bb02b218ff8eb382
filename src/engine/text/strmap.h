/*
 * A map from byte strings to numbers, for lists that come out of a file.
 *
 * Keys are borrowed: their bytes must outlive the map. The size is fixed at init. A file can be made so that
 * its keys collide; a probe that gets too long is an error, so that no file makes a lookup slow.
 *
 * Threads: one thread at a time may change a map; any thread may read one that nobody changes.
 */
#ifndef S2_TEXT_STRMAP_H
#define S2_TEXT_STRMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "sluice/span.h"

typedef struct s2_strmap_slot {
    const char *p; /* NULL = free */
    uint32_t n;
    uint32_t value;
    uint64_t hash;
} s2_strmap_slot;

/* Zeroed memory is an empty map of no room. */
typedef struct s2_strmap {
    s2_strmap_slot *slots;
    size_t n_slots; /* a power of two, or 0 */
    size_t n;
} s2_strmap;

/* Room for n_max keys. Errors: SL_ENOMEM. */
int s2_strmap_init(s2_strmap *map, size_t n_max, sl_error *reterr) SL_MUST_CHECK;
void s2_strmap_done(s2_strmap *map);

/* Adds a key that is not NULL. Errors: SL_EEXIST (already there), SL_ELIMIT (too many collide). */
int s2_strmap_add(s2_strmap *map, sl_span key, uint32_t value, sl_error *reterr) SL_MUST_CHECK;

/* False and *ret_value untouched if the key is absent. */
bool s2_strmap_find(const s2_strmap *map, sl_span key, uint32_t *ret_value);

/* A well-mixed 64-bit hash of bytes; not secret, not stable between versions. */
uint64_t s2_hash_bytes(const char *p, size_t n);

/* The mixing step alone, for keys that are numbers. */
uint64_t s2_hash_u64(uint64_t v);

#endif
