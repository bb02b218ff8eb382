#include "device/map_windows.h"

#include <string.h>

#include "base/mem.h"

int sl__map_windows_init(sl__map_windows *w, size_t n, sl_error *reterr)
{
    w->items = sl__alloc(n, sizeof *w->items);
    if (!w->items) {
        return sl__fail_nomem(reterr, n * sizeof *w->items, "windows");
    }
    w->n = n;
    return 0;
}

void sl__map_windows_done(sl__map_windows *w)
{
    sl__map_windows_forget(w, NULL);
    sl__free(w->items);
    memset(w, 0, sizeof *w);
}

/* The window itself, else the one that nobody holds and nobody used for longest. */
static size_t find(const sl__map_windows *w, const sl_map *map, uint64_t index)
{
    size_t oldest = w->n;
    for (size_t i = 0; i < w->n; i++) {
        const sl__window *item = &w->items[i];
        if (item->map == map && item->index == index) {
            return i;
        }
        if (item->n_users == 0 && (oldest == w->n || item->used < w->items[oldest].used)) {
            oldest = i;
        }
    }
    return oldest;
}

size_t sl__map_windows_hold(
        sl__map_windows *w, const sl_map *map, uint64_t offset, bool *ret_is_new)
{
    uint64_t index = offset / w->window_bytes;
    size_t i = find(w, map, index);
    sl__window *item = &w->items[i];
    *ret_is_new = item->map != map || item->index != index;
    if (*ret_is_new) {
        item->map = map;
        item->index = index;
        item->is_busy = true;
    }
    w->n_holds++;
    item->used = w->n_holds;
    item->n_users++;
    return i;
}

void sl__map_windows_register(sl__map_windows *w, size_t i)
{
    sl__window *item = &w->items[i];
    uint64_t begin = item->index * w->window_bytes;
    uint64_t left = sl_map_size(item->map) - begin;
    sl_unregister(&item->registration);
    /* What is refused is copied as it is. */
    (void)sl_register(w->device, (const char *)sl_map_data(item->map) + begin,
            left < w->window_bytes ? left : w->window_bytes, &item->registration, NULL);
}

void sl__map_windows_let_go(sl__map_windows *w, size_t i)
{
    w->items[i].n_users--;
}

void sl__map_windows_forget(sl__map_windows *w, const sl_map *map)
{
    for (size_t i = 0; i < w->n; i++) {
        if (!map || w->items[i].map == map) {
            sl_unregister(&w->items[i].registration);
            w->items[i] = (sl__window){0};
        }
    }
}
