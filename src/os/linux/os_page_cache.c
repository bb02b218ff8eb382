/*
 * cachestat(2) looks into the file that was opened; on overlay file systems that is another object than the one
 * that is mapped, and it finds nothing. So an answer of nothing is checked with mincore(2), which goes by the
 * mapping. mincore says "everything" to a process that could not write to the file: then its word is not taken.
 */
#define _GNU_SOURCE

#include "os/os_page_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/mem.h"
#include "os/os_file.h"
#include "os/os_process.h"

#ifndef SYS_cachestat
#define SYS_cachestat 451
#endif
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif

#define PAGES_AT_ONCE    4096
#define SMALL_FILE_BYTES 4096

/*
 * The kernel takes at most a read-ahead window of one request and forgets the rest. That window is seldom less than
 * 128 KiB; where it is more, larger requests are read faster.
 */
#define READ_AHEAD_BYTES     (UINT64_C(128) << 10)
#define MAX_READ_AHEAD_BYTES (UINT64_C(2) << 20)

typedef struct cachestat_range {
    uint64_t off;
    uint64_t len;
} cachestat_range;

typedef struct cachestat {
    uint64_t n_cache;
    uint64_t n_dirty;
    uint64_t n_writeback;
    uint64_t n_evicted;
    uint64_t n_recently_evicted;
} cachestat;

/* Where the range lies in memory. madvise takes a pointer to what it may change, which the map is not. */
static void *address_of(const sl__os_map *map, uint64_t begin)
{
    return (char *)map->data + begin;
}

/* True if mincore tells this process the truth about the file. */
static bool may_ask_mincore(int fd)
{
    struct stat st;
    char path[40];
    if (geteuid() == 0 || (fstat(fd, &st) == 0 && st.st_uid == geteuid())) {
        return true;
    }
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) == 0;
}

static uint64_t n_pages_of(uint64_t n_bytes)
{
    return n_bytes == 0 ? 0 : (n_bytes - 1) / sl__page_bytes() + 1;
}

static int marks_by_mincore(
        const sl__os_map *map, uint64_t begin, uint64_t end, unsigned char *ret_marks)
{
    if (!may_ask_mincore(map->fd)) {
        return -ENOTSUP;
    }
    if (mincore(address_of(map, begin), (size_t)(end - begin), ret_marks) != 0) {
        return -errno;
    }
    for (uint64_t i = 0; i < n_pages_of(end - begin); i++) {
        ret_marks[i] &= 1;
    }
    return 0;
}

static int count_by_mincore(
        const sl__os_map *map, uint64_t begin, uint64_t end, uint64_t *ret_pages)
{
    unsigned char marks[PAGES_AT_ONCE];
    uint64_t window = PAGES_AT_ONCE * (uint64_t)sl__page_bytes();
    uint64_t n = 0;
    for (uint64_t at = begin; at < end; at += window) {
        uint64_t n_bytes = end - at < window ? end - at : window;
        int r = marks_by_mincore(map, at, at + n_bytes, marks);
        if (r < 0) {
            return r;
        }
        for (uint64_t i = 0; i < n_pages_of(n_bytes); i++) {
            n += marks[i];
        }
    }
    *ret_pages = n;
    return 0;
}

static int count_by_stat(const sl__os_map *map, uint64_t begin, uint64_t end, uint64_t *ret_pages)
{
    cachestat_range range = {begin, end - begin};
    cachestat stat = {0};
    if (syscall(SYS_cachestat, map->fd, &range, &stat, 0) != 0) {
        return -errno;
    }
    *ret_pages = stat.n_cache;
    return 0;
}

int sl__os_cached(const sl__os_map *map, uint64_t begin, uint64_t end, uint64_t *ret_pages)
{
    uint64_t n = 0;
    if (begin >= end) {
        *ret_pages = 0;
        return 0;
    }
    int by_stat = count_by_stat(map, begin, end, &n);
    if (by_stat == 0 && n > 0) {
        *ret_pages = n;
        return 0;
    }
    int r = count_by_mincore(map, begin, end, ret_pages);
    if (r < 0 && by_stat == 0) {
        *ret_pages = 0;
        r = 0;
    }
    return r;
}

/* A block that is wholly in or wholly out is marked at once, others in halves. */
int sl__os_cached_marks_by_stat(
        const sl__os_map *map, uint64_t begin, uint64_t end, unsigned char *ret_marks)
{
    uint64_t page = sl__page_bytes();
    uint64_t n_pages = n_pages_of(end - begin);
    uint64_t n = 0;
    int r = count_by_stat(map, begin, end, &n);
    if (r < 0 || n == 0 || n >= n_pages) {
        memset(ret_marks, n > 0, r < 0 ? 0 : (size_t)n_pages);
        return r;
    }
    uint64_t half = n_pages / 2;
    r = sl__os_cached_marks_by_stat(map, begin, begin + half * page, ret_marks);
    return r < 0 ? r : sl__os_cached_marks_by_stat(map, begin + half * page, end, ret_marks + half);
}

int sl__os_cached_marks(
        const sl__os_map *map, uint64_t begin, uint64_t end, unsigned char *ret_marks)
{
    int r = marks_by_mincore(map, begin, end, ret_marks);
    if (r == -ENOTSUP) {
        r = sl__os_cached_marks_by_stat(map, begin, end, ret_marks);
    }
    return r == -ENOSYS || r == -EPERM ? -ENOTSUP : r;
}

int sl__os_populate(const sl__os_map *map, uint64_t begin, uint64_t end)
{
    int r = madvise(address_of(map, begin), (size_t)(end - begin), MADV_POPULATE_READ);
    return r == 0 ? 0 : -errno;
}

void sl__os_read_ahead(const sl__os_map *map, uint64_t begin, uint64_t end)
{
    uint64_t size = MAX_READ_AHEAD_BYTES;
    for (uint64_t at = begin; at < end;) {
        uint64_t n = end - at < size ? end - at : size;
        uint64_t n_taken = 0;
        (void)posix_fadvise(map->fd, (off_t)at, (off_t)n, POSIX_FADV_WILLNEED);
        /* Pages count as cached as soon as they are asked for; what was forgotten is asked for again in small. */
        if (n > READ_AHEAD_BYTES &&
                (count_by_stat(map, at, at + n, &n_taken) < 0 || n_taken < n_pages_of(n))) {
            size = READ_AHEAD_BYTES;
            continue;
        }
        at += n;
    }
}

uint64_t sl__os_read_ahead_bytes(const sl__os_map *map)
{
    char path[80];
    char *text = NULL;
    size_t n = 0;
    uint64_t kib = 0;
    snprintf(path, sizeof path, "/sys/class/bdi/%u:%u/read_ahead_kb", major((dev_t)map->id.device),
            minor((dev_t)map->id.device));
    if (sl__read_file(path, "file", SMALL_FILE_BYTES, &text, &n, NULL) < 0) {
        return 0;
    }
    for (const char *c = text; *c >= '0' && *c <= '9' && kib < UINT32_MAX; c++) {
        kib = kib * 10 + (uint64_t)(*c - '0');
    }
    sl__free(text);
    return (kib << 10) & ~(uint64_t)(sl__page_bytes() - 1);
}

void sl__os_touch(const sl__os_map *map, uint64_t begin, uint64_t end)
{
    const volatile char *data = map->data;
    size_t page = sl__page_bytes();
    for (uint64_t at = begin; at < end; at += page) {
        (void)data[at];
    }
}

int sl__os_drop(const sl__os_map *map, uint64_t begin, uint64_t end)
{
    if (begin >= end) {
        return 0;
    }
    /* The call itself: posix_madvise of the C library takes this advice and does nothing. */
    if (madvise(address_of(map, begin), (size_t)(end - begin), MADV_DONTNEED) != 0) {
        return -errno;
    }
    return -posix_fadvise(map->fd, (off_t)begin, (off_t)(end - begin), POSIX_FADV_DONTNEED);
}

int sl__os_sync(const sl__os_map *map)
{
    return fdatasync(map->fd) == 0 ? 0 : -errno;
}
