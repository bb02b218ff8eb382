/*
 * A mapping and the question whether it still is what was opened. Size and modification time both count: a
 * model that is rewritten in place while it is used would otherwise turn into noise without a word.
 */
#include "sluice/map.h"

#include <inttypes.h>
#include <string.h>

#include "base/mem.h"
#include "base/status.h"
#include "os/os_guard.h"
#include "os/os_map.h"
#include "source/map_os.h"

struct sl_map {
    sl__os_map os;
    char *path;
};

static int new_map(const char *path, sl_map **ret_map, sl_error *reterr)
{
    sl_map *map = sl__alloc(1, sizeof *map);
    if (!map) {
        return sl__fail_nomem(reterr, sizeof *map, "a mapped file");
    }
    map->path = sl__strndup(path, strlen(path));
    if (!map->path) {
        sl__free(map);
        return sl__fail_nomem(reterr, strlen(path) + 1, "a path");
    }
    *ret_map = map;
    return 0;
}

int sl_map_open(const char *path, sl_map **ret_map, sl_error *reterr)
{
    sl_map *map = NULL;
    int r = new_map(path, &map, reterr);
    if (r >= 0) {
        r = sl__os_map_open(path, &map->os, reterr);
    }
    if (r < 0) {
        sl_map_close(&map);
        return r;
    }
    *ret_map = map;
    return 0;
}

int sl__map_adopt(int fd, const char *name, sl_map **ret_map, sl_error *reterr)
{
    sl_map *map = NULL;
    int r = new_map(name, &map, reterr);
    if (r >= 0) {
        r = sl__os_map_adopt(fd, name, &map->os, reterr);
    }
    if (r < 0) {
        sl_map_close(&map);
        return r;
    }
    *ret_map = map;
    return 0;
}

void sl_map_close(sl_map **map)
{
    if (map && *map) {
        sl__os_map_close(&(*map)->os);
        sl__free((*map)->path);
        sl__free(*map);
        *map = NULL;
    }
}

const sl__os_map *sl__map_os(const sl_map *map)
{
    return &map->os;
}

const void *sl_map_data(const sl_map *map)
{
    return map->os.data;
}

uint64_t sl_map_size(const sl_map *map)
{
    return map->os.id.size_bytes;
}

const char *sl_map_path(const sl_map *map)
{
    return map->path;
}

sl_file_id sl_map_id(const sl_map *map)
{
    return map->os.id;
}

static int fail_shorter(const sl_map *map, uint64_t offset, uint64_t n_bytes_now, sl_error *reterr)
{
    char shown[256];
    return sl__fail_at(reterr, SL_ECHANGED, offset,
            "%s: the file had %" PRIu64 " bytes when it was opened and has %" PRIu64
            " now; open it again",
            sl__quote(shown, sizeof shown, map->path, strlen(map->path)), sl_map_size(map),
            n_bytes_now);
}

int sl_map_pread(const sl_map *map, void *buf, uint64_t offset, size_t n_bytes, sl_error *reterr)
{
    char shown[256];
    uint64_t size = sl_map_size(map);
    if (offset > size || n_bytes > size - offset) {
        return sl__fail_at(reterr, SL_EINVAL, offset,
                "%s: %zu bytes at %" PRIu64 " were asked for, file has %" PRIu64,
                sl__quote(shown, sizeof shown, map->path, strlen(map->path)), n_bytes, offset,
                size);
    }
    char *at = buf;
    while (n_bytes > 0) {
        int64_t got = sl__os_map_read(&map->os, at, offset, n_bytes);
        if (got < 0) {
            return sl__fail_os(reterr, (int)-got, "%s: cannot read at %" PRIu64,
                    sl__quote(shown, sizeof shown, map->path, strlen(map->path)), offset);
        }
        if (got == 0) {
            return fail_shorter(map, offset, offset, reterr);
        }
        at += got;
        offset += (uint64_t)got;
        n_bytes -= (size_t)got;
    }
    return 0;
}

int sl_map_check(const sl_map *map, sl_error *reterr)
{
    char shown[256];
    sl_file_id now;
    sl__quote(shown, sizeof shown, map->path, strlen(map->path));
    uint64_t lost = map->os.guard ? sl__guard_first_lost(map->os.guard) : SL_GUARD_INTACT;
    int os_error = sl__os_map_id(&map->os, &now);
    if (os_error < 0) {
        return sl__fail_os(reterr, -os_error, "%s", shown);
    }
    if (now.size_bytes < sl_map_size(map)) {
        uint64_t gone = now.size_bytes < lost ? now.size_bytes : lost;
        return fail_shorter(map, gone, now.size_bytes, reterr);
    }
    if (lost != SL_GUARD_INTACT) {
        return sl__fail_at(reterr, SL_ECHANGED, lost,
                "%s: the page at %" PRIu64
                " could not be read (the file was cut, or its disk failed); open it again",
                shown, lost);
    }
    if (now.size_bytes != sl_map_size(map) || now.mtime_ns != map->os.id.mtime_ns) {
        return sl__fail_at(reterr, SL_ECHANGED, 0,
                "%s: the file was written to while in use (%" PRIu64 " bytes at open, %" PRIu64
                " now); open it again",
                shown, sl_map_size(map), now.size_bytes);
    }
    return 0;
}
