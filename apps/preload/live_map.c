#include "live_map.h"

void live_map_lose(live_map *map, live_part part)
{
    if (map->is_gone || part.end <= map->all.begin || part.begin >= map->all.end) {
        return;
    }
    if (map->n_lost == LIVE_MAP_MAX_LOST) {
        map->is_gone = true;
        return;
    }
    map->lost[map->n_lost] = part;
    map->n_lost++;
}

/* The first address from `a` on that is not lost. */
static uintptr_t skip_lost(const live_map *map, uintptr_t a)
{
    for (size_t i = 0; i < map->n_lost; i++) {
        if (map->lost[i].begin <= a && a < map->lost[i].end) {
            a = map->lost[i].end;
            i = (size_t)-1; /* another one may begin here */
        }
    }
    return a;
}

bool live_map_next(const live_map *map, uint64_t *at, uint64_t end, live_part *ret_part)
{
    uint64_t n_bytes = map->all.end - map->all.begin;
    uint64_t first = *at > map->offset ? *at - map->offset : 0;
    uint64_t last = end > map->offset ? end - map->offset : 0;
    last = last < n_bytes ? last : n_bytes;
    if (map->is_gone || first >= last) {
        return false;
    }
    uintptr_t stop = map->all.begin + (uintptr_t)last;
    uintptr_t a = skip_lost(map, map->all.begin + (uintptr_t)first);
    if (a >= stop) {
        return false;
    }
    for (size_t i = 0; i < map->n_lost; i++) {
        if (map->lost[i].begin > a && map->lost[i].begin < stop) {
            stop = map->lost[i].begin;
        }
    }
    *ret_part = (live_part){a, stop};
    *at = map->offset + (stop - map->all.begin);
    return true;
}
