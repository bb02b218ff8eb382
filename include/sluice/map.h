/*
 * One file, mapped read-only.
 *
 * Does not promise: that the bytes stay what they were. A file that another process changes changes under
 * the mapping; a file that shrinks makes pages vanish. Bulk reads go through sl_map_pread, which answers
 * with an error. Bytes that are touched in place stand behind the guard: a page that vanished reads as
 * zeros from then on, and sl_map_check reports it. Whoever computes on mapped bytes calls sl_map_check
 * before the result is used.
 *
 * Threads: an open map may be used from any thread; open and close by one thread at a time.
 * Lifetime: pointers into the map are valid until sl_map_close.
 */
#ifndef SLUICE_MAP_H
#define SLUICE_MAP_H

#include <stddef.h>
#include <stdint.h>

#include "sluice/api.h"
#include "sluice/error.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sl_map sl_map;

/* What a file was when it was opened: two equal identities mean the same unchanged file. */
typedef struct sl_file_id {
    uint64_t device;
    uint64_t inode;
    uint64_t size_bytes;
    int64_t mtime_ns;
} sl_file_id;

/*
 * Opens and maps a regular file of at least one byte by its UTF-8 path (on POSIX: by its bytes). The whole
 * range is kept out of core dumps where the system can.
 * A directory, FIFO, socket or device is refused without blocking; so is an empty file.
 * Errors: SL_ENOENT, SL_EACCES, SL_EINVAL (not a regular file), SL_EFORMAT (empty), SL_ENOMEM, SL_EIO.
 */
SL_API int sl_map_open(const char *path, sl_map **ret_map, sl_error *reterr);

/* Unmaps and sets *map to NULL. Accepts NULL and a pointer to NULL. */
SL_API void sl_map_close(sl_map **map);

/* First byte of the mapping; page aligned. */
SL_API const void *sl_map_data(const sl_map *map);

/* Bytes of the file at open. */
SL_API uint64_t sl_map_size(const sl_map *map);

/* The path given at open. Owned by the map. */
SL_API const char *sl_map_path(const sl_map *map);

/* Identity taken at open. */
SL_API sl_file_id sl_map_id(const sl_map *map);

/*
 * Reads exactly n_bytes at `offset` into buf through the file handle, not through the mapping.
 * Errors: SL_EINVAL (range outside the file as opened), SL_ECHANGED (the file is shorter now), SL_EIO.
 */
SL_API int sl_map_pread(
        const sl_map *map, void *buf, uint64_t offset, size_t n_bytes, sl_error *reterr);

/*
 * Says whether the file is still what was opened: no page vanished under a reader, and size and modification
 * time are those of the open file. A file that was only touched counts as changed: nothing tells it from one
 * that was rewritten in place, whose weights would be another model's. Removing or replacing the path changes
 * nothing here, since the open file stays. Costs one fstat.
 * Errors: SL_ECHANGED with the path and both sizes; offset = first byte that is gone, 0 if none is.
 */
SL_API int sl_map_check(const sl_map *map, sl_error *reterr);

#ifdef __cplusplus
}
#endif

#endif
