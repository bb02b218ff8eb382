/*
 * The ranges are handed out window by window under one lock; the calling thread is one of the workers, and the
 * one that reports progress. A worker's windows begin at a few MiB and double while they take less than a
 * twentieth of a second, so that a slow disk does not hold up a cancel.
 */
#include "source/populate_run.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "os/os_clock.h"
#include "os/os_page_cache.h"
#include "os/os_process.h"
#include "os/os_thread.h"
#include "source/map_os.h"
#include "source/stretches.h"

#define FIRST_WINDOW_BYTES (UINT64_C(8) << 20)
#define QUICK_NS           50000000u
#define MAX_RETRIES        8

const sl__populate_calls sl__populate_system = {.populate = sl__os_populate,
        .read_ahead = sl__os_read_ahead,
        .touch = sl__os_touch,
        .read_ahead_bytes = sl__os_read_ahead_bytes};

/*
 * Read-aheads that a range's head and tail are longer than. What the kernel reads at once may be twice what the disk
 * is set to, where the program has told it that the file is read in order; it reads around a page by half of that,
 * and two of it beyond.
 */
#define HEAD_READ_AHEADS   1
#define TAIL_READ_AHEADS   4
#define USUAL_READ_AHEAD   (UINT64_C(8) << 20) /* where the system does not say */
#define LARGEST_READ_AHEAD (UINT64_C(16) << 20)

/* One file while its windows are handed out. */
typedef struct job {
    sl__populate_run *run;
    const sl_map *map;
    sl__stretches stretches;
    sl__mutex lock;
    size_t i_stretch; /* under lock, as all below */
    uint64_t offset;  /* in it */
    bool is_stopped;
    int result;
    sl_error err;
} job;

static void ask_for(const job *j, sl_range bytes)
{
    uint64_t cached = 0;
    if (bytes.begin >= bytes.end) {
        return;
    }
    int r = sl_page_cache_cached(j->map, bytes.begin, bytes.end, &cached, NULL);
    if (r < 0 || cached < bytes.end - bytes.begin) {
        j->run->calls->read_ahead(sl__map_os(j->map), bytes.begin, bytes.end);
    }
}

/* The next window of at most n_bytes; false if there is none or somebody stopped. */
static bool take_window(job *j, uint64_t n_bytes, sl_range *ret)
{
    bool is_there = false;
    sl__mutex_lock(&j->lock);
    if (!j->is_stopped && j->i_stretch < j->stretches.n) {
        const sl__stretch *s = &j->stretches.items[j->i_stretch];
        uint64_t begin = s->bytes.begin + j->offset;
        uint64_t n = s->bytes.end - begin < n_bytes ? s->bytes.end - begin : n_bytes;
        if (j->offset == 0) {
            /* Under the lock: nobody may touch a part of the stretch before. */
            ask_for(j, s->ask[0]);
            ask_for(j, s->ask[1]);
        }
        *ret = (sl_range){begin, begin + n};
        j->offset += n;
        if (begin + n == s->bytes.end) {
            j->i_stretch++;
            j->offset = 0;
        }
        is_there = true;
    }
    sl__mutex_unlock(&j->lock);
    return is_there;
}

/* Keeps the first failure; r = 0 only stops. */
static void stop(job *j, int r, const sl_error *err)
{
    sl__mutex_lock(&j->lock);
    j->is_stopped = true;
    if (r < 0 && j->result >= 0) {
        j->result = r;
        j->err = *err;
    }
    sl__mutex_unlock(&j->lock);
}

static int call_populate(const sl__populate_run *run, const sl__os_map *map, sl_range window)
{
    int r = -EINTR;
    for (int i = 0; i < MAX_RETRIES && (r == -EINTR || r == -EAGAIN); i++) {
        r = run->calls->populate(map, window.begin, window.end);
    }
    return r;
}

/* Halves a window that failed until a page is left: the first one that cannot be had. */
static uint64_t find_bad_page(const sl__populate_run *run, const sl__os_map *map, sl_range window)
{
    uint64_t page = sl__page_bytes();
    while (window.end - window.begin > page) {
        uint64_t half = (window.end - window.begin) / 2;
        uint64_t middle = window.begin + (half < page ? page : half & ~(page - 1));
        if (call_populate(run, map, (sl_range){window.begin, middle}) < 0) {
            window.end = middle;
        } else {
            window.begin = middle;
        }
    }
    return window.begin;
}

/* What a failed call means: the file was cut if it is shorter now, else its disk or the memory failed. */
static int explain(const job *j, int os_error, sl_range window, sl_error *reterr)
{
    char shown[256];
    const char *path = sl_map_path(j->map);
    sl__quote(shown, sizeof shown, path, strlen(path));
    if (os_error != -EFAULT && os_error != -EIO && os_error != -EHWPOISON) {
        return sl__fail_os(
                reterr, -os_error, "%s: cannot populate at %" PRIu64, shown, window.begin);
    }
    int r = sl_map_check(j->map, reterr);
    if (r < 0) {
        return r;
    }
    uint64_t at = find_bad_page(j->run, sl__map_os(j->map), window);
    return os_error == -EFAULT
                   ? sl__fail_at(reterr, SL_ECHANGED, at,
                             "%s: the page at %" PRIu64 " could not be read (the file was cut, or "
                             "its disk failed); open it again",
                             shown, at)
                   : sl__fail_at(reterr, SL_EIO, at,
                             "%s: the page at %" PRIu64 " could not be read: %s", shown, at,
                             os_error == -EIO ? "disk error" : "memory error");
}

static int populate_window(const job *j, sl_range window, sl_error *reterr)
{
    const sl__os_map *map = sl__map_os(j->map);
    if (!atomic_load(&j->run->is_unknown_call)) {
        int r = call_populate(j->run, map, window);
        if (r != -EINVAL && r != -ENOSYS) {
            return r < 0 ? explain(j, r, window, reterr) : 0;
        }
        atomic_store(&j->run->is_unknown_call, true);
    }
    j->run->calls->read_ahead(map, window.begin, window.end);
    j->run->calls->touch(map, window.begin, window.end);
    return sl_map_check(j->map, reterr);
}

/* Takes windows until there are none; before each one, stops(j) may stop all. */
static void work(job *j, bool (*stops)(job *j))
{
    sl_range w;
    uint64_t n_bytes = FIRST_WINDOW_BYTES;
    uint64_t most = j->run->window_bytes;
    for (;;) {
        n_bytes = n_bytes < most ? n_bytes : most;
        if ((stops && stops(j)) || !take_window(j, n_bytes, &w)) {
            return;
        }
        sl_error err = {0};
        uint64_t start_ns = sl__now_ns();
        int r = populate_window(j, w, &err);
        if (r < 0) {
            stop(j, r, &err);
            return;
        }
        if (j->run->calls->present) {
            j->run->calls->present(j->run->calls->ud, sl__map_os(j->map), w.begin, w.end);
        }
        atomic_fetch_add(&j->run->done_bytes, w.end - w.begin);
        if (sl__now_ns() - start_ns < QUICK_NS) {
            n_bytes *= 2;
        }
    }
}

static void work_aside(void *ud)
{
    work(ud, NULL);
}

/* Memory has become short: the kernel says so, or nothing is left of the budget when it is derived again. */
static bool is_short(sl__populate_run *run)
{
    sl_ram_budget now = {0};
    const sl_ram_opts *recheck = run->opts->recheck;
    if (run->pressure &&
            sl__pressure_rose(run->pressure, sl__now_ns(), run->why, sizeof run->why)) {
        return true;
    }
    /* A budget that was given does not change. */
    if (!recheck || recheck->has_given || sl_ram_budget_read(recheck, &now, NULL) < 0) {
        return false;
    }
    bool is_spent = now.is_known && now.budget_bytes == 0;
    if (is_spent) {
        const sl_ram_bound *decided = sl_ram_decided(&now);
        snprintf(run->why, sizeof run->why, "%s: nothing is left but the reserve", decided->source);
    }
    sl_ram_budget_done(&now);
    return is_spent;
}

/* On the calling thread alone: somebody cancels, or the machine has run short. */
static bool must_stop(job *j)
{
    const sl_populate_opts *opts = j->run->opts;
    sl_error err = {0};
    const sl_progress *progress = &opts->progress;
    if (progress->fn && progress->fn(progress->ud, atomic_load(&j->run->done_bytes),
                                j->run->total_bytes) != 0) {
        stop(j, sl__fail(&err, SL_ECANCELLED, "cancelled while pages were populated"), &err);
        return true;
    }
    if (is_short(j->run)) {
        j->run->is_pressed = true;
        stop(j, 0, NULL);
        return true;
    }
    return false;
}

/* Cuts the pages by what the kernel would read beside them. */
static int cut(job *j, const sl_ranges *pages, sl_error *reterr)
{
    uint64_t n_bytes = j->run->calls->read_ahead_bytes(sl__map_os(j->map));
    n_bytes = n_bytes > 0 ? n_bytes : USUAL_READ_AHEAD;
    n_bytes = n_bytes < LARGEST_READ_AHEAD ? n_bytes : LARGEST_READ_AHEAD;
    return sl__stretches_make(pages, sl_map_size(j->map), HEAD_READ_AHEADS * n_bytes,
            TAIL_READ_AHEADS * n_bytes, &j->stretches, reterr);
}

int sl__populate_one(
        sl__populate_run *run, const sl_map *map, const sl_ranges *pages, sl_error *reterr)
{
    job j = {.run = run, .map = map};
    sl__thread helpers[SL_POPULATE_MAX_THREADS] = {{.is_running = false}};
    int r = cut(&j, pages, reterr);
    if (r < 0) {
        return r;
    }
    r = sl__mutex_init(&j.lock, reterr);
    if (r < 0) {
        sl__stretches_done(&j.stretches);
        return r;
    }
    /* Fewer threads than asked for are only slower. */
    for (unsigned i = 1; i < run->n_threads; i++) {
        if (sl__thread_start(&helpers[i], "sl-populate", work_aside, &j, NULL) < 0) {
            break;
        }
    }
    work(&j, must_stop);
    for (unsigned i = 1; i < run->n_threads; i++) {
        sl__thread_join(&helpers[i]);
    }
    sl__mutex_done(&j.lock);
    sl__stretches_done(&j.stretches);
    if (j.result < 0 && reterr) {
        *reterr = j.err;
    }
    return j.result;
}
