/*
 * Open addressing with linear probing at a load of at most three quarters: one cache line for most lookups,
 * which is what three lookups for each of 150,000 merges ask for.
 */
#include "engine/text/strmap.h"

#include <assert.h>
#include <string.h>

#include "base/mem.h"

/* Honest lists of a million keys stay below 512 probes at this load. */
#define MAX_PROBES 1024

uint64_t s2_hash_u64(uint64_t v)
{
    v ^= v >> 32;
    v *= 0xD6E8FEB86659FD93u;
    v ^= v >> 32;
    v *= 0xD6E8FEB86659FD93u;
    v ^= v >> 32;
    return v;
}

uint64_t s2_hash_bytes(const char *p, size_t n)
{
    uint64_t h = n;
    while (n > 0) {
        uint64_t word = 0;
        size_t take = n < 8 ? n : 8;
        memcpy(&word, p, take);
        h = s2_hash_u64(h ^ word) + 0x9E3779B97F4A7C15u;
        p += take;
        n -= take;
    }
    return h;
}

int s2_strmap_init(s2_strmap *map, size_t n_max, sl_error *reterr)
{
    size_t n_slots = 16;
    while (n_slots / 4 * 3 < n_max) {
        n_slots *= 2;
    }
    s2_strmap_slot *slots = sl__alloc(n_slots, sizeof *slots);
    if (!slots) {
        return sl__fail_nomem(reterr, n_slots * sizeof *slots, "a table of names");
    }
    map->slots = slots;
    map->n_slots = n_slots;
    map->n = 0;
    return 0;
}

void s2_strmap_done(s2_strmap *map)
{
    sl__free(map->slots);
    memset(map, 0, sizeof *map);
}

/* The slot of the key, or the free slot where it belongs, or NULL after too many probes. */
static s2_strmap_slot *locate(const s2_strmap *map, sl_span key, uint64_t hash)
{
    size_t mask = map->n_slots - 1;
    size_t i = (size_t)hash & mask;
    for (int n_probes = 0; n_probes < MAX_PROBES; n_probes++) {
        s2_strmap_slot *slot = &map->slots[i];
        /* The hash is compared first, since the bytes of another key are far away in memory. */
        if (!slot->p ||
                (slot->hash == hash && slot->n == key.n && memcmp(slot->p, key.p, key.n) == 0)) {
            return slot;
        }
        i = (i + 1) & mask;
    }
    return NULL;
}

int s2_strmap_add(s2_strmap *map, sl_span key, uint32_t value, sl_error *reterr)
{
    assert(key.p && key.n <= UINT32_MAX && map->n < map->n_slots / 4 * 3);
    uint64_t hash = s2_hash_bytes(key.p, key.n);
    s2_strmap_slot *slot = locate(map, key, hash);
    if (!slot) {
        return sl__fail(reterr, SL_ELIMIT, "more than %d names collide", MAX_PROBES);
    }
    if (slot->p) {
        return sl__fail(reterr, SL_EEXIST, "the name is already there");
    }
    slot->p = key.p;
    slot->n = (uint32_t)key.n;
    slot->value = value;
    slot->hash = hash;
    map->n++;
    return 0;
}

bool s2_strmap_find(const s2_strmap *map, sl_span key, uint32_t *ret_value)
{
    const s2_strmap_slot *slot =
            map->n_slots > 0 ? locate(map, key, s2_hash_bytes(key.p, key.n)) : NULL;
    if (!slot || !slot->p) {
        return false;
    }
    *ret_value = slot->value;
    return true;
}
