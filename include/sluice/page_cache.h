/*
 * Which bytes of a mapped file are in the page cache; bringing them in and letting them go.
 *
 * Does not promise: that pages stay. The kernel drops clean pages when memory is short, and other processes
 * may bring them in or keep them.
 *
 * Threads: any; several may work on one map. Dropping pages that another thread reads costs that thread time,
 * never its data.
 */
#ifndef SLUICE_PAGE_CACHE_H
#define SLUICE_PAGE_CACHE_H

#include <stdint.h>

#include "sluice/api.h"
#include "sluice/error.h"
#include "sluice/map.h"
#include "sluice/ranges.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How far something is; called between steps, never with a lock held. Zeroed = nobody asks. */
typedef struct sl_progress {
    int (*fn)(void *ud, uint64_t done_bytes, uint64_t total_bytes); /* not 0 = cancel */
    void *ud;
} sl_progress;

/*
 * Bytes of begin..end that are cached; pages count as whole, but never more than the range.
 * Errors: SL_EINVAL (not inside the file), SL_EUNSUPPORTED (the system does not say), SL_EIO.
 */
SL_API int sl_page_cache_cached(
        const sl_map *map, uint64_t begin, uint64_t end, uint64_t *ret_bytes, sl_error *reterr);

/* The sum of the same over a set. */
SL_API int sl_page_cache_cached_in(
        const sl_map *map, const sl_ranges *ranges, uint64_t *ret_bytes, sl_error *reterr);

/* Pages of the whole file: the last one may be partly behind the end. */
SL_API uint64_t sl_page_cache_n_pages(const sl_map *map);

/* Bytes of a page. */
SL_API uint64_t sl_page_cache_page_bytes(void);

/*
 * One byte a page of the whole file: 1 = cached. `ret_marks` has sl_page_cache_n_pages bytes.
 * Errors: SL_EUNSUPPORTED (the system does not say), SL_EIO.
 */
SL_API int sl_page_cache_marks(const sl_map *map, unsigned char *ret_marks, sl_error *reterr);

/*
 * Reads the ranges into the page cache, without the page tables, in windows of at most 1 MiB of private memory.
 * What is cached already is not read again. Takes no budget: the caller has checked it.
 * Errors: SL_EINVAL, SL_ECHANGED, SL_EIO, SL_ENOMEM, SL_ECANCELLED.
 */
SL_API int sl_page_cache_warm(
        const sl_map *map, const sl_ranges *ranges, sl_progress progress, sl_error *reterr);

/*
 * Lets go of the ranges: first this process's page table, then the cache, then counts what is left. Whole pages
 * only: a page at the edge that holds bytes outside the set stays, unless only padding of less than a page lies
 * between two ranges. Dirty pages are written out first, and what is being read just then is waited for: a quarter
 * of a second behind the last page that went.
 * *ret_left_bytes: what is still cached, because another process maps it or the kernel keeps it; UINT64_MAX if
 * the system does not say.
 * Errors: SL_EINVAL, SL_EBUSY (locked pages), SL_ENOMEM, SL_EIO.
 */
SL_API int sl_page_cache_drop(
        const sl_map *map, const sl_ranges *ranges, uint64_t *ret_left_bytes, sl_error *reterr);

#ifdef __cplusplus
}
#endif

#endif
