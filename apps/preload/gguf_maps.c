#include "gguf_maps.h"

static void put(gguf_maps *maps, live_part part, uintptr_t n_mapped)
{
    if (part.begin < part.end && maps->n < GGUF_MAPS_MAX) {
        maps->items[maps->n] = (gguf_map_part){part, n_mapped};
        maps->n++;
    }
}

void gguf_maps_add(gguf_maps *maps, live_part part)
{
    put(maps, part, part.end - part.begin);
}

void gguf_maps_lose(gguf_maps *maps, live_part part)
{
    for (size_t i = maps->n; i > 0; i--) {
        gguf_map_part was = maps->items[i - 1];
        if (part.end <= was.part.begin || part.begin >= was.part.end) {
            continue;
        }
        /* The last one takes its place, and what is left of it goes behind: both were looked at. */
        maps->n--;
        maps->items[i - 1] = maps->items[maps->n];
        put(maps, (live_part){was.part.begin, part.begin}, was.n_mapped);
        put(maps, (live_part){part.end, was.part.end}, was.n_mapped);
    }
}

bool gguf_maps_is_bulk(const gguf_maps *maps, live_part part)
{
    for (size_t i = 0; i < maps->n; i++) {
        const gguf_map_part *item = &maps->items[i];
        if (item->part.begin <= part.begin && part.begin < part.end && part.end <= item->part.end) {
            uintptr_t n = part.end - part.begin;
            return n > GGUF_MAPS_STEP_BYTES || n > item->n_mapped / 2;
        }
    }
    return false;
}
