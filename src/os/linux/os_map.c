/*
 * The path is looked at before it is opened: opening alone has effects on FIFOs and devices. What was
 * opened is looked at again, since the path may have come to name something else in between.
 */
#define _GNU_SOURCE

#include "os/os_map.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/os_path.h"

static sl_file_id identity(const struct stat *st)
{
    sl_file_id id = {
            .device = (uint64_t)st->st_dev,
            .inode = (uint64_t)st->st_ino,
            .size_bytes = (uint64_t)st->st_size,
            .mtime_ns = (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec,
    };
    return id;
}

static int check_size(const char *shown, uint64_t n_bytes, sl_error *reterr)
{
    if (n_bytes == 0) {
        return sl__fail(reterr, SL_EFORMAT, "%s: the file is empty", shown);
    }
    if (n_bytes > SIZE_MAX / 2) {
        return sl__fail(
                reterr, SL_ELIMIT, "%s: the file is too large for this machine's addresses", shown);
    }
    return 0;
}

/* Where the address space of the process is limited, that is what is in the way, and the user can change it. */
static int fail_mapping(const char *shown, size_t n_bytes, int os_error, sl_error *reterr)
{
    struct rlimit limit;
    if (os_error == ENOMEM && getrlimit(RLIMIT_AS, &limit) == 0 &&
            limit.rlim_cur != RLIM_INFINITY) {
        return sl__fail(reterr, SL_ENOMEM,
                "%s: cannot map %zu bytes: this process may have %llu bytes of addresses; raise "
                "that "
                "with 'ulimit -v'",
                shown, n_bytes, (unsigned long long)limit.rlim_cur);
    }
    return sl__fail_os(reterr, os_error, "%s: cannot map %zu bytes", shown, n_bytes);
}

static int map_open_file(
        const char *shown, int fd, bool is_guarded, sl__os_map *map, sl_error *reterr)
{
    struct stat st;
    if (fstat(fd, &st) != 0) {
        return sl__fail_os(reterr, errno, "%s", shown);
    }
    map->id = identity(&st);
    int r = check_size(shown, map->id.size_bytes, reterr);
    if (r < 0) {
        return r;
    }
    size_t n_bytes = (size_t)map->id.size_bytes;
    void *data = mmap(NULL, n_bytes, PROT_READ, MAP_SHARED, fd, 0);
    if (data == MAP_FAILED) {
        return fail_mapping(shown, n_bytes, errno, reterr);
    }
    r = is_guarded ? sl__guard_add(data, n_bytes, fd, &map->guard, reterr) : 0;
    if (r < 0) {
        munmap(data, n_bytes);
        return r;
    }
    /*
     * No advice of sequential reading: the kernel then reads a window and waits for it, instead of the next one
     * meanwhile. Keeping it out of core dumps is advice too; a system may not know it.
     */
    madvise(data, n_bytes, MADV_DONTDUMP);
    map->fd = fd;
    map->data = data;
    return 0;
}

int sl__os_map_open(const char *path, sl__os_map *ret, sl_error *reterr)
{
    char shown[256];
    sl__os_map map = {.fd = -1};
    int fd = -1;
    int r = sl__open_regular(path, &fd, reterr);
    if (r < 0) {
        return r;
    }
    r = map_open_file(sl__quote(shown, sizeof shown, path, strlen(path)), fd, true, &map, reterr);
    if (r < 0) {
        close(fd);
        return r;
    }
    *ret = map;
    return 0;
}

int sl__os_map_adopt(int fd, const char *name, sl__os_map *ret, sl_error *reterr)
{
    char shown[256];
    sl__os_map map = {.fd = -1};
    int r = map_open_file(
            sl__quote(shown, sizeof shown, name, strlen(name)), fd, false, &map, reterr);
    if (r == 0) {
        *ret = map;
    }
    return r;
}

void sl__os_map_close(sl__os_map *map)
{
    if (map->data) {
        sl__guard_remove(&map->guard);
        munmap(map->data, (size_t)map->id.size_bytes);
        close(map->fd);
        map->data = NULL;
        map->fd = -1;
    }
}

int64_t sl__os_map_read(const sl__os_map *map, void *buf, uint64_t offset, size_t n_bytes)
{
    /* Linux moves at most 2 GiB less a page in one call. */
    size_t n = n_bytes < (1u << 30) ? n_bytes : 1u << 30;
    for (;;) {
        ssize_t got = pread(map->fd, buf, n, (off_t)offset);
        if (got >= 0 || errno != EINTR) {
            return got >= 0 ? got : -errno;
        }
    }
}

int sl__os_map_id(const sl__os_map *map, sl_file_id *ret)
{
    struct stat st;
    if (fstat(map->fd, &st) != 0) {
        return -errno;
    }
    *ret = identity(&st);
    return 0;
}
