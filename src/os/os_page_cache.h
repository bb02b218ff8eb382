/*
 * Pages of a mapped file: which are in memory, bringing them in, letting them go. The system calls behind
 * sluice/page_cache.h and sluice/populate.h.
 *
 * Ranges are bytes of the file, begin page aligned, inside the file as it was opened. Results are 0 or -errno.
 * Threads: any.
 */
#ifndef SL_OS_PAGE_CACHE_H
#define SL_OS_PAGE_CACHE_H

#include <stddef.h>
#include <stdint.h>

#include "os/os_map.h"

/*
 * Counts the pages of begin..end that are in the page cache, by cachestat(2) where the kernel has it, else by
 * mincore(2). -ENOTSUP if the system does not say (mincore answers only the owner of a file).
 */
int sl__os_cached(const sl__os_map *map, uint64_t begin, uint64_t end, uint64_t *ret_pages);

/*
 * Marks each page of begin..end: 1 = in the page cache. By mincore(2), or by halves with cachestat(2) where mincore
 * does not answer. -ENOTSUP if neither says.
 */
int sl__os_cached_marks(
        const sl__os_map *map, uint64_t begin, uint64_t end, unsigned char *ret_marks);

/* The same by cachestat(2) alone; -ENOSYS on a kernel without it. */
int sl__os_cached_marks_by_stat(
        const sl__os_map *map, uint64_t begin, uint64_t end, unsigned char *ret_marks);

/*
 * Brings pages in and enters them into the page table: MADV_POPULATE_READ. -EINVAL or -ENOSYS on a kernel
 * without it, -EFAULT for a page that the file does not have (any more).
 */
int sl__os_populate(const sl__os_map *map, uint64_t begin, uint64_t end);

/*
 * Asks the kernel to read a range, piece by piece, and does not wait. Exactly these pages are read: a fault or a
 * read(2) would go on beyond the end. It is advice; what is not taken is read when it is needed.
 */
void sl__os_read_ahead(const sl__os_map *map, uint64_t begin, uint64_t end);

/*
 * The most that the kernel reads ahead of a reader of this file, in whole pages; 0 if the system does not say.
 */
uint64_t sl__os_read_ahead_bytes(const sl__os_map *map);

/* Reads one byte of every page, behind the guard of the mapping (os_guard.h). */
void sl__os_touch(const sl__os_map *map, uint64_t begin, uint64_t end);

/* Takes whole pages out of this process's page table, then out of the page cache. -EINVAL if pages are locked. */
int sl__os_drop(const sl__os_map *map, uint64_t begin, uint64_t end);

/* Writes out what of the file is still dirty: such pages cannot be dropped. */
int sl__os_sync(const sl__os_map *map);

#endif
