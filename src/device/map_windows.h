/*
 * Windows of mappings that are registered with a device: a few at a time, the one that was not used for longest makes
 * room for the next. A window is a part of a file that begins at a multiple of the window's size.
 *
 * Threads: under the caller's lock, except map, which is for whoever got a new window from hold.
 */
#ifndef SL_DEVICE_MAP_WINDOWS_H
#define SL_DEVICE_MAP_WINDOWS_H

#include <stdbool.h>

#include "base/status.h"
#include "sluice/device.h"
#include "sluice/map.h"

typedef struct sl__window {
    const sl_map *map; /* NULL: a window of nothing */
    uint64_t index;    /* in the file */
    uint64_t used;     /* when it was held last, by counting */
    size_t n_users;
    bool is_busy;                  /* being registered */
    sl_registration *registration; /* NULL: the device refused, and copies are plain ones */
} sl__window;

typedef struct sl__map_windows {
    sl_device *device;
    uint64_t window_bytes; /* a multiple of the page */
    sl__window *items;
    size_t n;
    uint64_t n_holds;
    uint64_t n_registered; /* windows, ever */
    uint64_t n_refused;
} sl__map_windows;

/* Room for n windows, 0 for none. `device` and `window_bytes` are set. Errors: SL_ENOMEM. */
int sl__map_windows_init(sl__map_windows *w, size_t n, sl_error *reterr) SL_MUST_CHECK;

/* Unregisters everything; accepts zeroed memory. No copy reads a window any more. */
void sl__map_windows_done(sl__map_windows *w);

/*
 * Holds the window with the byte at `offset` and returns its number. At most n windows are held at once; *ret_is_new:
 * the caller calls register on it, without the lock, then sets is_busy to false under it.
 */
size_t sl__map_windows_hold(
        sl__map_windows *w, const sl_map *map, uint64_t offset, bool *ret_is_new);

/* Registers a new window, after what was registered in its place is unregistered. */
void sl__map_windows_register(sl__map_windows *w, size_t i);

void sl__map_windows_let_go(sl__map_windows *w, size_t i);

/* Unregisters the windows of `map`, NULL for all; nobody holds one. */
void sl__map_windows_forget(sl__map_windows *w, const sl_map *map);

#endif
