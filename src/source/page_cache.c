#include "sluice/page_cache.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "base/mem.h"
#include "base/status.h"
#include "os/os_page_cache.h"
#include "os/os_process.h"
#include "os/os_thread.h"
#include "source/map_os.h"

#define WARM_BYTES (UINT64_C(1) << 20)

/* How long a drop waits for pages that are on their way in: until none has gone for a quarter of a second. */
#define STEP_NS     UINT64_C(5000000)
#define STILL_STEPS 50

static const char *shown_path(const sl_map *map, char *buf, size_t n)
{
    return sl__quote(buf, n, sl_map_path(map), strlen(sl_map_path(map)));
}

static int fail_outside(const sl_map *map, uint64_t begin, uint64_t end, sl_error *reterr)
{
    char shown[256];
    return sl__fail_at(reterr, SL_EINVAL, begin,
            "%s: bytes %" PRIu64 " to %" PRIu64 " were asked for, file has %" PRIu64,
            shown_path(map, shown, sizeof shown), begin, end, sl_map_size(map));
}

static int check_inside(const sl_map *map, const sl_ranges *ranges, sl_error *reterr)
{
    const sl_range *last = ranges->n > 0 ? &ranges->items[ranges->n - 1] : NULL;
    bool is_inside = !last || last->end <= sl_map_size(map);
    return is_inside ? 0 : fail_outside(map, last->begin, last->end, reterr);
}

static int fail_ask(const sl_map *map, int os_error, sl_error *reterr)
{
    char shown[256];
    shown_path(map, shown, sizeof shown);
    if (os_error == -ENOTSUP || os_error == -ENOSYS) {
        return sl__fail(reterr, SL_EUNSUPPORTED,
                "%s: this system does not say which pages are cached (the file is another user's)",
                shown);
    }
    return sl__fail_os(reterr, -os_error, "%s: cannot ask for cached pages", shown);
}

int sl_page_cache_cached(
        const sl_map *map, uint64_t begin, uint64_t end, uint64_t *ret_bytes, sl_error *reterr)
{
    uint64_t page = sl__page_bytes();
    uint64_t n_pages = 0;
    if (begin > end || end > sl_map_size(map)) {
        return fail_outside(map, begin, end, reterr);
    }
    int r = begin == end ? 0 : sl__os_cached(sl__map_os(map), begin & ~(page - 1), end, &n_pages);
    if (r < 0) {
        return fail_ask(map, r, reterr);
    }
    uint64_t n_bytes = n_pages * page;
    *ret_bytes = n_bytes < end - begin ? n_bytes : end - begin;
    return 0;
}

int sl_page_cache_cached_in(
        const sl_map *map, const sl_ranges *ranges, uint64_t *ret_bytes, sl_error *reterr)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < ranges->n; i++) {
        uint64_t n = 0;
        int r = sl_page_cache_cached(map, ranges->items[i].begin, ranges->items[i].end, &n, reterr);
        if (r < 0) {
            return r;
        }
        sum += n;
    }
    *ret_bytes = sum;
    return 0;
}

uint64_t sl_page_cache_page_bytes(void)
{
    return sl__page_bytes();
}

uint64_t sl_page_cache_n_pages(const sl_map *map)
{
    return (sl_map_size(map) - 1) / sl__page_bytes() + 1;
}

int sl_page_cache_marks(const sl_map *map, unsigned char *ret_marks, sl_error *reterr)
{
    int r = sl__os_cached_marks(sl__map_os(map), 0, sl_map_size(map), ret_marks);
    return r < 0 ? fail_ask(map, r, reterr) : 0;
}

/* Reads a window unless all of it is there already. */
static int warm_window(const sl_map *map, uint64_t begin, uint64_t end, void *buf, sl_error *reterr)
{
    uint64_t cached = 0;
    int r = sl_page_cache_cached(map, begin, end, &cached, NULL);
    if (r >= 0 && cached == end - begin) {
        return 0;
    }
    sl__os_read_ahead(sl__map_os(map), begin & ~((uint64_t)sl__page_bytes() - 1), end);
    return sl_map_pread(map, buf, begin, (size_t)(end - begin), reterr);
}

static bool is_cancelled(sl_progress progress, uint64_t done, uint64_t total)
{
    return progress.fn && progress.fn(progress.ud, done, total) != 0;
}

static int warm_ranges(const sl_map *map, const sl_ranges *ranges, void *buf, sl_progress progress,
        sl_error *reterr)
{
    char shown[256];
    uint64_t total = sl_ranges_bytes(ranges);
    uint64_t done = 0;
    for (size_t i = 0; i < ranges->n; i++) {
        uint64_t end = ranges->items[i].end;
        for (uint64_t at = ranges->items[i].begin; at < end; at += WARM_BYTES) {
            uint64_t n = end - at < WARM_BYTES ? end - at : WARM_BYTES;
            if (is_cancelled(progress, done, total)) {
                return sl__fail(reterr, SL_ECANCELLED, "%s: cancelled while reading",
                        shown_path(map, shown, sizeof shown));
            }
            int r = warm_window(map, at, at + n, buf, reterr);
            if (r < 0) {
                return r;
            }
            done += n;
        }
    }
    (void)is_cancelled(progress, done, total);
    return 0;
}

int sl_page_cache_warm(
        const sl_map *map, const sl_ranges *ranges, sl_progress progress, sl_error *reterr)
{
    int r = check_inside(map, ranges, reterr);
    if (r < 0) {
        return r;
    }
    void *buf = sl__alloc(1, WARM_BYTES);
    if (!buf) {
        return sl__fail_nomem(reterr, WARM_BYTES, "reading ahead");
    }
    r = warm_ranges(map, ranges, buf, progress, reterr);
    sl__free(buf);
    return r;
}

/* The whole pages of the ranges, gaps of less than a page closed. */
static int whole_pages(const sl_map *map, const sl_ranges *ranges, sl_ranges *ret)
{
    uint64_t page = sl__page_bytes();
    uint64_t size = sl_map_size(map);
    int r = 0;
    for (size_t i = 0; i < ranges->n && r >= 0; i++) {
        uint64_t begin = ranges->items[i].begin;
        while (i + 1 < ranges->n && ranges->items[i + 1].begin - ranges->items[i].end < page) {
            i++;
        }
        uint64_t end = ranges->items[i].end;
        /* The last page of the file has nothing behind the end. */
        end = end == size ? end : end & ~(page - 1);
        begin = (begin + page - 1) & ~(page - 1);
        r = sl_ranges_add(ret, begin, end);
    }
    return r;
}

static int drop_pages(const sl_map *map, const sl_ranges *pages, sl_error *reterr)
{
    char shown[256];
    for (size_t i = 0; i < pages->n; i++) {
        int r = sl__os_drop(sl__map_os(map), pages->items[i].begin, pages->items[i].end);
        if (r == -EINVAL) {
            return sl__fail_at(reterr, SL_EBUSY, pages->items[i].begin,
                    "%s: pages are locked in memory and cannot be dropped; unlock them first",
                    shown_path(map, shown, sizeof shown));
        }
        if (r < 0) {
            return sl__fail_os(reterr, -r, "%s: cannot drop cached pages",
                    shown_path(map, shown, sizeof shown));
        }
    }
    return 0;
}

/*
 * What stays at first may be dirty, or still on its way in: read-ahead that somebody began goes on by itself, that of
 * opening the file included. *ret_left is counted again after each try.
 */
static int drop_the_rest(
        const sl_map *map, const sl_ranges *pages, uint64_t *ret_left, sl_error *reterr)
{
    unsigned n_still = 0;
    if (*ret_left == 0 || sl__os_sync(sl__map_os(map)) < 0) {
        return 0;
    }
    while (*ret_left > 0 && n_still < STILL_STEPS) {
        uint64_t before = *ret_left;
        int r = drop_pages(map, pages, reterr);
        if (r < 0) {
            return r;
        }
        if (sl_page_cache_cached_in(map, pages, ret_left, NULL) < 0) {
            *ret_left = UINT64_MAX;
            return 0;
        }
        n_still = *ret_left < before ? 0 : n_still + 1;
        if (*ret_left > 0) {
            sl__sleep_ns(STEP_NS);
        }
    }
    return 0;
}

int sl_page_cache_drop(
        const sl_map *map, const sl_ranges *ranges, uint64_t *ret_left_bytes, sl_error *reterr)
{
    sl_ranges pages = {0};
    uint64_t left = UINT64_MAX;
    int r = check_inside(map, ranges, reterr);
    if (r >= 0 && whole_pages(map, ranges, &pages) < 0) {
        r = sl__fail_nomem(reterr, ranges->n * sizeof *ranges->items, "the pages to drop");
    }
    if (r >= 0) {
        r = drop_pages(map, &pages, reterr);
    }
    if (r >= 0 && sl_page_cache_cached_in(map, &pages, &left, NULL) >= 0) {
        r = drop_the_rest(map, &pages, &left, reterr);
    }
    sl_ranges_done(&pages);
    if (r >= 0) {
        *ret_left_bytes = left;
    }
    return r;
}
