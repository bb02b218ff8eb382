/*
 * Addresses at which the program has GGUF files mapped, for those that this library populates: what the program asks
 * the kernel to read of them ahead of its need. Pure; of a fixed size, since nothing may be allocated while memory is
 * unmapped.
 *
 * Threads: under the lock of the owner.
 */
#ifndef PRELOAD_GGUF_MAPS_H
#define PRELOAD_GGUF_MAPS_H

#include <stdbool.h>
#include <stddef.h>

#include "live_map.h"

#define GGUF_MAPS_MAX 256 /* parts that are remembered; what is beyond is not known */

/* A program that asks for no more than this at a time, and not for most of a mapping, says what it needs next. */
#define GGUF_MAPS_STEP_BYTES ((uintptr_t)64 << 20)

typedef struct gguf_map_part {
    live_part part;
    uintptr_t n_mapped; /* bytes of the mapping that it is of */
} gguf_map_part;

/* Zeroed memory is empty. */
typedef struct gguf_maps {
    gguf_map_part items[GGUF_MAPS_MAX];
    size_t n;
} gguf_maps;

void gguf_maps_add(gguf_maps *maps, live_part part);

/* Takes note that addresses are something else now. */
void gguf_maps_lose(gguf_maps *maps, live_part part);

/* True if all of it is in one mapping, and it is more than a step or most of the mapping. */
bool gguf_maps_is_bulk(const gguf_maps *maps, live_part part);

#endif
