/*
 * The program's own mapping of a file while its pages are made present: which addresses are still that mapping.
 * The program may take parts of it away at any time. Pure.
 *
 * Threads: under the lock of the owner.
 */
#ifndef PRELOAD_LIVE_MAP_H
#define PRELOAD_LIVE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LIVE_MAP_MAX_LOST 16 /* parts that are remembered; one more and all of it is given up */

/* Addresses begin <= a < end. */
typedef struct live_part {
    uintptr_t begin;
    uintptr_t end;
} live_part;

typedef struct live_map {
    live_part all;
    uint64_t offset; /* in the file, of its first byte */
    live_part lost[LIVE_MAP_MAX_LOST];
    size_t n_lost;
    bool is_gone;
} live_map;

/* Takes note that addresses are no longer the mapping. */
void live_map_lose(live_map *map, live_part part);

/*
 * The next part of bytes *at..end of the file that is mapped; *at moves behind it. False if there is none.
 */
bool live_map_next(const live_map *map, uint64_t *at, uint64_t end, live_part *ret_part);

#endif
