/*
 * All jobs that exist are in one list, since an unmapping must find those it meets. Its lock is held while pages
 * of one window, which are in the cache by then, are entered into the page table: that takes milliseconds, and the
 * addresses cannot become something else in between. Nothing is allocated under it, because allocators unmap.
 */
#define _DEFAULT_SOURCE /* syscall, madvise */

#include "preload_job.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/status.h"
#include "notice.h"
#include "os/os_map.h"
#include "os/os_page_cache.h"
#include "os/os_thread.h"
#include "source/populate_run.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif

#define READ_BYTES 8192

/* The jobs of this process: whoever interposes calls has nowhere else to keep them. */
static struct {
    sl__mutex lock;
    shim_job *first; /* under lock */
    atomic_uint n;
} jobs = {.lock = SL_MUTEX_INITIALIZER};

shim_job *shim_job_create(sl_map **map, sl_ranges *want, const live_map *live)
{
    shim_job *job = sl__alloc(1, sizeof *job);
    if (!job) {
        return NULL;
    }
    job->map = *map;
    job->want = *want;
    job->live = *live;
    *map = NULL;
    *want = (sl_ranges){0};
    sl__mutex_lock(&jobs.lock);
    job->next_live = jobs.first;
    jobs.first = job;
    atomic_fetch_add(&jobs.n, 1);
    sl__mutex_unlock(&jobs.lock);
    return job;
}

void shim_job_free(shim_job *job)
{
    sl__mutex_lock(&jobs.lock);
    shim_job **at = &jobs.first;
    while (*at && *at != job) {
        at = &(*at)->next_live;
    }
    if (*at) {
        *at = job->next_live;
        atomic_fetch_sub(&jobs.n, 1);
    }
    sl__mutex_unlock(&jobs.lock);
    sl_map_close(&job->map);
    sl_ranges_done(&job->want);
    sl__free(job);
}

void shim_jobs_lose(live_part part)
{
    if (atomic_load(&jobs.n) == 0) {
        return;
    }
    sl__mutex_lock(&jobs.lock);
    for (shim_job *job = jobs.first; job; job = job->next_live) {
        live_map_lose(&job->live, part);
    }
    sl__mutex_unlock(&jobs.lock);
}

void shim_jobs_lock(void)
{
    sl__mutex_lock(&jobs.lock);
}

void shim_jobs_unlock(void)
{
    sl__mutex_unlock(&jobs.lock);
}

void shim_jobs_forget(void)
{
    jobs.lock = (sl__mutex)SL_MUTEX_INITIALIZER;
    jobs.first = NULL;
    atomic_store(&jobs.n, 0);
}

/* On kernels without MADV_POPULATE_READ: reading fills the cache, and no page is touched. */
static void read_through(const sl__os_map *map, uint64_t begin, uint64_t end)
{
    char buf[READ_BYTES];
    while (begin < end) {
        size_t n = end - begin < sizeof buf ? (size_t)(end - begin) : sizeof buf;
        int64_t got = sl__os_map_read(map, buf, begin, n);
        if (got <= 0) {
            return;
        }
        begin += (uint64_t)got;
    }
}

/* A window is in the cache: into the program's page table with it, and out of ours. */
static void enter(void *ud, const sl__os_map *map, uint64_t begin, uint64_t end)
{
    shim_job *job = ud;
    live_part part;
    uint64_t at = begin;
    sl__mutex_lock(&jobs.lock);
    while (live_map_next(&job->live, &at, end, &part)) {
        /* Past our own madvise, which would ask for whom. What cannot be entered (PROT_NONE, an old kernel) costs the
         * program a fault, as ever. */
        (void)syscall(SYS_madvise, part.begin, part.end - part.begin, MADV_POPULATE_READ);
    }
    sl__mutex_unlock(&jobs.lock);
    (void)madvise((char *)map->data + begin, (size_t)(end - begin), MADV_DONTNEED);
}

void shim_job_run(shim_job *job, sl__ram_purse *purse, const shim_settings *settings)
{
    char text[512];
    char shown[256];
    sl_error err = {0};
    sl_populate_result res;
    const char *path = sl_map_path(job->map);
    const sl_populate_file file = {.map = job->map, .ranges = &job->want};
    const sl_populate_opts opts = {
            .budget_bytes = sl__ram_purse_now(purse),
            .recheck = &purse->opts,
    };
    const sl__populate_calls calls = {.populate = sl__os_populate,
            .read_ahead = sl__os_read_ahead,
            .touch = read_through,
            .read_ahead_bytes = sl__os_read_ahead_bytes,
            .present = enter,
            .ud = job};
    int r = sl__populate_with(&calls, &file, 1, &opts, &res, &err);
    sl__ram_purse_take(purse, res.charged_bytes);
    if (r < 0) {
        shim_notice("%s", err.msg);
    } else if (!settings->is_quiet || res.end == SL_POPULATE_PRESSURE) {
        shim_notice("%s: %s", sl__quote(shown, sizeof shown, path, strlen(path)),
                sl_populate_text(&res, &purse->first, text, sizeof text));
    }
}
