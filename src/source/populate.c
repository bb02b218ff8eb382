/* Which files fit, and in which order they go; the pages themselves are populate_run.c's. */
#include "sluice/populate.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "base/status.h"
#include "os/os_clock.h"
#include "os/os_process.h"
#include "source/populate_run.h"

#define MAX_WINDOW_BYTES (UINT64_C(64) << 20)

/* A file of the call: its pages, and what they would cost. */
typedef struct entry {
    sl_ranges pages;
    uint64_t n_bytes;
    uint64_t n_uncached;
    bool fits;
} entry;

static bool is_no(const char *value)
{
    static const char *const words[] = {"0", "off", "no", "false"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strcasecmp(value, words[i]) == 0) {
            return true;
        }
    }
    return false;
}

const char *sl_populate_switched_off(void)
{
    static const char *const names[] = {"SLUICE_POPULATE", "LLAMA_MMAP_POPULATE"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *value =
                getenv(names[i]); /* NOLINT(concurrency-mt-unsafe): nothing here sets variables */
        if (value && *value) {
            return is_no(value) ? names[i] : NULL;
        }
    }
    return NULL;
}

int sl_populate_ranges(const sl_model *model, uint32_t i_file, uint64_t lazy_over_bytes,
        bool (*wants)(void *ud, const sl_tensor *tensor), void *ud, sl_ranges *ret_ranges,
        sl_error *reterr)
{
    sl_ranges made = {0};
    for (uint64_t i = 0; i < sl_model_n_tensors(model); i++) {
        const sl_tensor *tensor = sl_model_tensor_at(model, i);
        uint64_t n_bytes = tensor->info->n_bytes;
        if (tensor->i_file != i_file || n_bytes > lazy_over_bytes ||
                (wants && !wants(ud, tensor))) {
            continue;
        }
        if (sl_ranges_add(&made, tensor->info->offset, tensor->info->offset + n_bytes) < 0) {
            sl_ranges_done(&made);
            return sl__fail_nomem(reterr, made.n * sizeof(sl_range), "the ranges to populate");
        }
    }
    sl_ranges_done(ret_ranges);
    *ret_ranges = made;
    return 0;
}

/* Whole pages of a file's ranges, and how many of them are not cached yet. */
static int measure(const sl_populate_file *file, entry *e, sl_error *reterr)
{
    const sl_ranges *ranges = file->ranges;
    uint64_t size = sl_map_size(file->map);
    uint64_t cached = 0;
    if (ranges->n > 0 && ranges->items[ranges->n - 1].end > size) {
        char shown[256];
        const char *path = sl_map_path(file->map);
        return sl__fail_at(reterr, SL_EINVAL, size, "%s: ranges to populate end behind the file",
                sl__quote(shown, sizeof shown, path, strlen(path)));
    }
    if (sl_ranges_clamp(ranges, 0, size, &e->pages) < 0) {
        return sl__fail_nomem(reterr, ranges->n * sizeof(sl_range), "the pages to populate");
    }
    (void)sl_ranges_align(&e->pages, sl__page_bytes(), size);
    e->n_bytes = sl_ranges_bytes(&e->pages);
    /* A system that does not say what is cached has it charged in full. */
    if (sl_page_cache_cached_in(file->map, &e->pages, &cached, NULL) < 0) {
        cached = 0;
    }
    e->n_uncached = e->n_bytes - cached;
    return 0;
}

/* Decides for each file, in order. */
static void charge(const sl_populate_file *files, size_t n, entry *entries, sl__populate_run *run,
        sl_populate_result *res)
{
    uint64_t left = run->opts->budget_bytes;
    for (size_t i = 0; i < n; i++) {
        entry *e = &entries[i];
        uint64_t cost = e->n_uncached;
        res->wanted_bytes += e->n_bytes;
        res->cached_bytes += e->n_bytes - cost;
        if (files[i].is_charged_only) {
            /* It is filled whatever we think of it. */
            uint64_t taken = cost < left ? cost : left;
            left -= taken;
            res->charged_bytes += taken;
        } else if (cost <= left) {
            left -= cost;
            res->charged_bytes += cost;
            run->total_bytes += e->n_bytes;
            e->fits = true;
        } else {
            res->skipped_bytes += e->n_bytes;
            res->n_files_skipped++;
        }
    }
}

/* One thread keeps the kernel's read-ahead in step and its pages in large pieces, which was fastest. */
static unsigned pick_threads(unsigned asked)
{
    unsigned n = asked > 0 ? asked : 1;
    return n < SL_POPULATE_MAX_THREADS ? n : SL_POPULATE_MAX_THREADS;
}

static sl_populate_end end_of(int r, const sl__populate_run *run, const sl_populate_result *res)
{
    if (r < 0) {
        return r == SL_ECANCELLED ? SL_POPULATE_CANCELLED : SL_POPULATE_FAILED;
    }
    if (run->is_pressed) {
        return SL_POPULATE_PRESSURE;
    }
    return res->n_files_skipped > 0 ? SL_POPULATE_SKIPPED : SL_POPULATE_DONE;
}

/* Watches memory while files are populated; without memory for it, nobody does. */
static void begin_watch(sl__populate_run *run, sl__pressure *pressure)
{
    sl_ram_budget ram = {0};
    const sl_ram_opts *recheck = run->opts->recheck;
    if (!recheck || sl_ram_budget_read(recheck, &ram, NULL) < 0) {
        return;
    }
    if (sl__pressure_begin(recheck->root, &ram, sl__now_ns(), pressure, NULL) >= 0) {
        run->pressure = pressure;
    }
    sl_ram_budget_done(&ram);
}

int sl__populate_with(const sl__populate_calls *calls, const sl_populate_file *files,
        size_t n_files, const sl_populate_opts *opts, sl_populate_result *ret_result,
        sl_error *reterr)
{
    sl_populate_result res = {0};
    sl__pressure pressure = {0};
    uint64_t window = opts->window_bytes & ~((uint64_t)sl__page_bytes() - 1);
    sl__populate_run run = {
            .calls = calls, .opts = opts, .n_threads = pick_threads(opts->n_threads)};
    run.window_bytes = window > 0 && window < MAX_WINDOW_BYTES ? window : MAX_WINDOW_BYTES;
    int r = 0;
    entry *entries = sl__alloc(n_files, sizeof *entries);
    if (!entries) {
        r = sl__fail_nomem(reterr, n_files * sizeof *entries, "the files to populate");
        goto out;
    }
    for (size_t i = 0; i < n_files && r >= 0; i++) {
        r = measure(&files[i], &entries[i], reterr);
    }
    if (r < 0) {
        goto out;
    }
    charge(files, n_files, entries, &run, &res);
    begin_watch(&run, &pressure);
    for (size_t i = 0; i < n_files && r >= 0 && !run.is_pressed; i++) {
        if (entries[i].fits) {
            r = sl__populate_one(&run, files[i].map, &entries[i].pages, reterr);
        }
    }
out:
    for (size_t i = 0; entries && i < n_files; i++) {
        sl_ranges_done(&entries[i].pages);
    }
    sl__free(entries);
    sl__pressure_done(&pressure);
    memcpy(res.why, run.why, sizeof res.why);
    res.populated_bytes = atomic_load(&run.done_bytes);
    res.is_fallback = atomic_load(&run.is_unknown_call);
    res.end = end_of(r, &run, &res);
    *ret_result = res;
    return r;
}

int sl_populate(const sl_populate_file *files, size_t n_files, const sl_populate_opts *opts,
        sl_populate_result *ret_result, sl_error *reterr)
{
    return sl__populate_with(&sl__populate_system, files, n_files, opts, ret_result, reterr);
}
