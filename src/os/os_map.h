/*
 * One regular file opened and mapped read-only: the system calls behind sluice/map.h.
 *
 * Threads: any; open and close of one object by one thread.
 */
#ifndef SL_OS_MAP_H
#define SL_OS_MAP_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "os/os_guard.h"
#include "sluice/map.h"

typedef struct sl__os_map {
    int fd;
    void *data;
    sl__guard *guard;
    sl_file_id id;
} sl__os_map;

/*
 * Opens and maps a regular file of at least one byte, puts it behind the guard (os_guard.h), keeps it
 * out of core dumps where the system can. Never blocks on a FIFO.
 * Errors: those of sl_map_open; nothing is left open.
 */
int sl__os_map_open(const char *path, sl__os_map *ret, sl_error *reterr) SL_MUST_CHECK;

/*
 * Maps the file behind an open descriptor, which becomes the map's if it succeeds. There is no guard behind the
 * mapping: nobody may touch its pages, only have them populated. For processes whose signals are not ours.
 * Errors: SL_EFORMAT (empty), SL_ELIMIT, SL_ENOMEM, SL_EIO.
 */
int sl__os_map_adopt(int fd, const char *name, sl__os_map *ret, sl_error *reterr) SL_MUST_CHECK;

void sl__os_map_close(sl__os_map *map);

/* Reads up to n_bytes at `offset`; returns the bytes read, 0 at the end of the file, or -errno. */
int64_t sl__os_map_read(const sl__os_map *map, void *buf, uint64_t offset, size_t n_bytes);

/* Identity of the open file as it is now; 0 or -errno. */
int sl__os_map_id(const sl__os_map *map, sl_file_id *ret);

#endif
