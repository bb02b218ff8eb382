#include "bench_transfer.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/mem.h"
#include "bench_disk.h"
#include "device/transfer.h"
#include "os/os_clock.h"

enum {
    MAX_RUNS = 64,
    SPOTS = 16,          /* places that are compared after a run */
    SPOT_BYTES = 4096,   /* at each of them */
    LINK_UPLOADS = 8,    /* in flight to measure the link's limit */
    LINK_BYTES = 4 << 20 /* of one upload of the link's limit, as of a slot */
};

#define PIECE_BYTES  (UINT64_C(64) << 20) /* as a unit is cut, see residency/unit.h */
#define PINNED_BYTES (UINT64_C(64) << 20) /* that the link's limit is measured from */

/* What is moved and where to. */
typedef struct rig {
    const bench_transfer_opts *opts;
    sl__transfer_hooks hooks;
    sl_device_info info;
    sl_buffer **buffers;
    size_t n_buffers;
    size_t cap_buffers;
    sl__piece *pieces; /* at most PIECE_BYTES each */
    size_t n_pieces;
    size_t cap_pieces;
    sl__slice *slices; /* one a piece */
    sl_pinned pinned;
    sl_event *events[LINK_UPLOADS];
    sl__transfer *transfer; /* of the row */
    bench_disk *disk;       /* of the row */
} rig;

typedef enum keep_kind {
    KEEP_NOTHING, /* what is registered in a run is unregistered in it */
    KEEP_IN_RUN,  /* all of it is registered in each run, and unregistered between them */
    KEEP_ALL,     /* all of it is registered before the runs */
} keep_kind;

typedef struct row_plan {
    const char *name;
    const char *about;
    sl__route route;
    keep_kind keep;
    int (*run)(rig *b, sl_error *reterr);
} row_plan;

static bool is_cancelled(void *ud)
{
    const bench_transfer_opts *opts = ud;
    return opts->is_cancelled(opts->ud);
}

static int fail_cancelled(sl_error *reterr)
{
    return sl__fail(reterr, SL_ECANCELLED, "interrupted");
}

static uint64_t total_bytes(const bench_transfer_opts *opts)
{
    uint64_t n = 0;
    for (size_t i = 0; i < opts->n_ranges; i++) {
        n += opts->ranges[i].n_bytes;
    }
    return n;
}

static int add_piece(rig *b, const bench_range *range, uint64_t at, uint64_t n_bytes,
        uint64_t buffer_offset, sl_error *reterr)
{
    if (!sl__grow((void **)&b->pieces, &b->cap_pieces, b->n_pieces + 1, sizeof *b->pieces)) {
        return sl__fail_nomem(reterr, sizeof *b->pieces, "the pieces");
    }
    b->pieces[b->n_pieces] = (sl__piece){
            .map = range->map,
            .offset = range->offset + at,
            .n_bytes = n_bytes,
            /* Its buffer has this index until there are buffers. */
            .buffer_offset = buffer_offset,
    };
    b->n_pieces++;
    return 0;
}

/* Allocates the buffer of the pieces from `first` on. */
static int add_buffer(rig *b, size_t first, uint64_t n_bytes, sl_error *reterr)
{
    if (!sl__grow((void **)&b->buffers, &b->cap_buffers, b->n_buffers + 1, sizeof(sl_buffer *))) {
        return sl__fail_nomem(reterr, sizeof(sl_buffer *), "the buffers");
    }
    b->buffers[b->n_buffers] = NULL;
    int r = sl_buffer_alloc(b->opts->device, n_bytes, &b->buffers[b->n_buffers], reterr);
    if (r < 0) {
        return r;
    }
    for (size_t i = first; i < b->n_pieces; i++) {
        b->pieces[i].buffer = b->buffers[b->n_buffers];
    }
    b->n_buffers++;
    return 0;
}

/* Lays the ranges out as a unit's tensors: aligned, in as few buffers as the device allows. */
static int lay_out(rig *b, sl_error *reterr)
{
    uint64_t most = b->info.max_alloc_bytes ? b->info.max_alloc_bytes : UINT64_MAX;
    most -= most % b->info.alignment;
    uint64_t end = 0;
    size_t first = 0;
    int r = 0;
    for (size_t i = 0; i < b->opts->n_ranges; i++) {
        const bench_range *range = &b->opts->ranges[i];
        for (uint64_t at = 0; at < range->n_bytes && r == 0;) {
            uint64_t n = range->n_bytes - at < PIECE_BYTES ? range->n_bytes - at : PIECE_BYTES;
            n = n < most ? n : most;
            uint64_t room = n + (b->info.alignment - 1);
            room -= room % b->info.alignment;
            if (room > most - end) {
                r = add_buffer(b, first, end, reterr);
                first = b->n_pieces;
                end = 0;
            }
            r = r < 0 ? r : add_piece(b, range, at, n, end, reterr);
            end += room;
            at += n;
        }
    }
    return r < 0 ? r : add_buffer(b, first, end, reterr);
}

static int check_room(const rig *b, uint64_t n_bytes, sl_error *reterr)
{
    if (b->info.total_bytes > 0 && n_bytes > b->info.free_bytes) {
        return sl__fail(reterr, SL_EINVAL,
                "%s has %" PRIu64 " of %" PRIu64 " bytes free and %" PRIu64
                " are to be moved; give a smaller --size",
                b->info.name, b->info.free_bytes, b->info.total_bytes, n_bytes);
    }
    return 0;
}

static int rig_init(rig *b, const bench_transfer_opts *opts, uint64_t n_bytes, sl_error *reterr)
{
    size_t n_pinned = n_bytes < PINNED_BYTES ? (size_t)n_bytes : PINNED_BYTES;
    *b = (rig){.opts = opts};
    b->hooks = (sl__transfer_hooks){.is_cancelled = is_cancelled, .ud = (void *)(uintptr_t)opts};
    int r = sl_device_describe(opts->device, &b->info, reterr);
    if (r == 0) {
        r = check_room(b, n_bytes, reterr);
    }
    if (r == 0) {
        r = lay_out(b, reterr);
    }
    if (r < 0) {
        return r;
    }
    b->slices = sl__alloc(b->n_pieces, sizeof *b->slices);
    if (!b->slices) {
        return sl__fail_nomem(reterr, b->n_pieces * sizeof *b->slices, "the slices");
    }
    for (size_t i = 0; i < b->n_pieces; i++) {
        b->slices[i] = (sl__slice){.pieces = &b->pieces[i], .n_pieces = 1};
    }
    r = sl_pinned_alloc(opts->device, n_pinned, &b->pinned, reterr);
    if (r == 0) {
        memset(b->pinned.data, 0, n_pinned); /* pages that exist, and bytes for erase() */
    }
    for (size_t i = 0; i < LINK_UPLOADS && r == 0; i++) {
        r = sl_event_create(opts->device, &b->events[i], reterr);
    }
    return r;
}

static void rig_done(rig *b)
{
    for (size_t i = 0; i < LINK_UPLOADS; i++) {
        sl_event_free(&b->events[i]);
    }
    sl_pinned_free(&b->pinned);
    for (size_t i = 0; i < b->n_buffers; i++) {
        (void)sl_buffer_free(&b->buffers[i], NULL); /* the device goes next */
    }
    sl__free(b->buffers);
    sl__free(b->pieces);
    sl__free(b->slices);
}

/* The i-th place to compare: at the begin and at the end of pieces that are spread evenly. */
static const sl__piece *spot(const rig *b, size_t i, uint64_t *ret_at, size_t *ret_bytes)
{
    const sl__piece *piece = &b->pieces[i / 2 * (b->n_pieces - 1) / (SPOTS / 2 - 1)];
    *ret_bytes = piece->n_bytes < SPOT_BYTES ? (size_t)piece->n_bytes : SPOT_BYTES;
    *ret_at = i % 2 == 0 ? 0 : piece->n_bytes - *ret_bytes;
    return piece;
}

/* So that bytes of the run before cannot pass for those of the next one. */
static int erase(rig *b, sl_error *reterr)
{
    int r = 0;
    for (size_t i = 0; i < SPOTS && r == 0; i++) {
        uint64_t at;
        size_t n;
        const sl__piece *p = spot(b, i, &at, &n);
        r = sl_buffer_upload(p->buffer, p->buffer_offset + at, b->pinned.data, n, reterr);
    }
    return r < 0 ? r : sl_device_synchronize(b->opts->device, reterr);
}

static int compare(rig *b, const char *row, sl_error *reterr)
{
    char got[SPOT_BYTES];
    for (size_t i = 0; i < SPOTS; i++) {
        uint64_t at;
        size_t n;
        const sl__piece *p = spot(b, i, &at, &n);
        int r = sl_buffer_download(p->buffer, p->buffer_offset + at, got, n, reterr);
        if (r < 0) {
            return r;
        }
        if (memcmp(got, (const char *)sl_map_data(p->map) + p->offset + at, n) != 0) {
            return sl__fail(reterr, SL_EIO,
                    "%s: after '%s', %zu bytes at %" PRIu64 " of %s are not those of the file",
                    b->info.name, row, n, p->offset + at, sl_map_path(p->map));
        }
    }
    return 0;
}

/* Queues an upload from pinned memory behind at most LINK_UPLOADS others, so that an interrupt does not wait long. */
static int upload_pinned(
        rig *b, const sl__piece *p, uint64_t at, uint64_t n_before, sl_error *reterr)
{
    sl_event *event = b->events[n_before % LINK_UPLOADS];
    uint64_t n = p->n_bytes - at < LINK_BYTES ? p->n_bytes - at : LINK_BYTES;
    int r = sl_event_wait(event, reterr);
    if (r == 0) {
        r = sl_buffer_upload(p->buffer, p->buffer_offset + at,
                (const char *)b->pinned.data + at % PINNED_BYTES, (size_t)n, reterr);
    }
    return r < 0 ? r : sl_event_record(event, reterr);
}

static int run_link(rig *b, sl_error *reterr)
{
    uint64_t n = 0;
    int r = 0;
    for (size_t i = 0; i < b->n_pieces && r == 0; i++) {
        for (uint64_t at = 0; at < b->pieces[i].n_bytes && r == 0; at += LINK_BYTES) {
            r = b->opts->is_cancelled(b->opts->ud) ? fail_cancelled(reterr)
                                                   : upload_pinned(b, &b->pieces[i], at, n, reterr);
            n++;
        }
    }
    int done = sl_device_synchronize(b->opts->device, r < 0 ? NULL : reterr);
    return r < 0 ? r : done;
}

/* The way of programs that use ggml: a set for each tensor, straight from the mapping, which waits. */
static int run_set(rig *b, sl_error *reterr)
{
    int r = 0;
    for (size_t i = 0; i < b->n_pieces && r == 0; i++) {
        const sl__piece *p = &b->pieces[i];
        r = sl_buffer_upload(p->buffer, p->buffer_offset,
                (const char *)sl_map_data(p->map) + p->offset, (size_t)p->n_bytes, reterr);
        int done = sl_device_synchronize(b->opts->device, r < 0 ? NULL : reterr);
        r = r < 0 ? r : done;
        r = r == 0 && b->opts->is_cancelled(b->opts->ud) ? fail_cancelled(reterr) : r;
    }
    return r;
}

static int run_route(rig *b, sl_error *reterr)
{
    return sl__transfer_run(b->transfer, b->slices, b->n_pieces, &b->hooks, reterr);
}

static int run_disk(rig *b, sl_error *reterr)
{
    return bench_disk_run(b->disk, b->slices, b->n_pieces, &b->hooks, reterr);
}

static void unregister_files(rig *b)
{
    for (size_t i = 0; i < b->n_pieces; i++) {
        sl__transfer_unregister(b->transfer, b->pieces[i].map);
    }
}

static double cpu_seconds(void)
{
    struct rusage use;
    if (getrusage(RUSAGE_SELF, &use) != 0) {
        return 0;
    }
    return (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
           (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec) / 1e6;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

/* One run, measured; the row keeps the counts of its best. */
static int measure(
        rig *b, const row_plan *plan, bench_row *row, double *ret_speed, sl_error *reterr)
{
    sl__transfer_stats before = {0};
    sl__transfer_stats after = {0};
    if (plan->keep == KEEP_IN_RUN) {
        unregister_files(b);
    }
    int r = b->opts->before_run ? b->opts->before_run(b->opts->ud, reterr) : 0;
    r = r < 0 ? r : erase(b, reterr);
    if (r < 0) {
        return r;
    }
    if (b->transfer) {
        sl__transfer_get_stats(b->transfer, &before);
    }
    double cpu_s = cpu_seconds();
    uint64_t start = sl__now_ns();
    r = plan->run(b, reterr);
    uint64_t ns = sl__now_ns() - start;
    cpu_s = cpu_seconds() - cpu_s;
    if (r < 0) {
        return r;
    }
    *ret_speed = (double)total_bytes(b->opts) / ((double)(ns ? ns : 1) / 1e9);
    if (b->transfer) {
        sl__transfer_get_stats(b->transfer, &after);
    }
    if (plan->route == SL__ROUTE_REGISTERED && after.n_windows == 0) {
        return sl__fail(reterr, SL_EUNSUPPORTED, "%s does not register memory", b->info.name);
    }
    if (*ret_speed > row->best_bytes_per_s) {
        row->best_bytes_per_s = *ret_speed;
        row->cpu_s = cpu_s;
        row->route = after.route;
        row->n_uploads = after.n_uploads - before.n_uploads;
        row->n_waits = after.n_waits - before.n_waits;
        row->n_stalls = after.n_stalls - before.n_stalls;
    }
    bool is_moved = plan->run != run_link && plan->run != run_disk;
    return is_moved ? compare(b, plan->name, reterr) : 0;
}

static int make_transfer(rig *b, const row_plan *plan, bench_row *row, sl_error *reterr)
{
    bool keeps = plan->keep != KEEP_NOTHING;
    const sl__transfer_opts opts = {
            /* Room for parts of windows at both ends of a tensor. */
            .register_bytes = keeps ? 2 * total_bytes(b->opts) + (UINT64_C(1) << 31) : 0,
            .keeps_windows = keeps,
            .route = plan->route,
            .n_threads = row->n_threads,
            .n_slots = row->n_slots,
            .slot_bytes = row->slot_bytes,
    };
    int r = sl__transfer_create(b->opts->device, &opts, &b->transfer, reterr);
    if (r == 0 && plan->keep == KEEP_ALL) {
        r = run_route(b, reterr);
    }
    return r;
}

/* What the runs of a row share. */
static int set_up(rig *b, const row_plan *plan, bench_row *row, sl_error *reterr)
{
    uint64_t start = sl__now_ns();
    int r = 0;
    if (plan->run == run_route) {
        r = make_transfer(b, plan, row, reterr);
    } else if (plan->run == run_disk) {
        r = bench_disk_create(row->n_threads, &b->disk, reterr);
    }
    row->setup_s = (double)(sl__now_ns() - start) / 1e9;
    return r;
}

static void tear_down(rig *b)
{
    sl__transfer_free(&b->transfer);
    bench_disk_free(&b->disk);
}

typedef struct ring_size {
    size_t n_threads;
    size_t n_slots;
    size_t slot_bytes;
} ring_size;

static int measure_row(
        rig *b, const row_plan *plan, ring_size ring, bench_transfer_result *ret, sl_error *reterr)
{
    double speeds[MAX_RUNS];
    sl_error err = {0};
    bench_row *row = &ret->rows[ret->n_rows];
    *row = (bench_row){.name = plan->name,
            .about = plan->about,
            .n_threads = ring.n_threads,
            .n_slots = ring.n_slots,
            .slot_bytes = ring.slot_bytes};
    ret->n_rows++;
    if (b->opts->on_row) {
        b->opts->on_row(b->opts->ud, plan->name);
    }
    unsigned n_runs = b->opts->n_runs < MAX_RUNS ? b->opts->n_runs : MAX_RUNS;
    int r = set_up(b, plan, row, &err);
    for (unsigned i = 0; i < n_runs && r == 0; i++) {
        r = measure(b, plan, row, &speeds[i], &err);
    }
    tear_down(b);
    if (r < 0 && plan->route == SL__ROUTE_REGISTERED && r != SL_ECANCELLED && r != SL_EIO) {
        row->failure = err;
        row->failure.code = r;
        return 0;
    }
    if (r < 0) {
        if (reterr) {
            *reterr = err;
        }
        return r;
    }
    qsort(speeds, n_runs, sizeof speeds[0], by_value);
    row->median_bytes_per_s = speeds[(n_runs - 1) / 2];
    return 0;
}

static const row_plan link_plan = {"link", "from pinned memory that nobody fills: the limit",
        SL__ROUTE_AUTO, KEEP_NOTHING, run_link};
static const row_plan set_plan = {"set", "a set and a wait for each tensor: the usual way",
        SL__ROUTE_AUTO, KEEP_NOTHING, run_set};
static const row_plan disk_plan = {"disk",
        "reads that nothing waits for, thrown away: the disk's limit", SL__ROUTE_AUTO, KEEP_NOTHING,
        run_disk};
static const row_plan plain_plan = {
        "plain", "queued, straight from the mapping", SL__ROUTE_PLAIN, KEEP_NOTHING, run_route};
static const row_plan threads_plans[] = {
        {"pread", "pinned ring, filled by read", SL__ROUTE_PREAD, KEEP_NOTHING, run_route},
        {"memcpy", "pinned ring, filled from the mapping", SL__ROUTE_MEMCPY, KEEP_NOTHING,
                run_route},
        {"windows", "windows of the mapping, registered ahead of their copies",
                SL__ROUTE_REGISTERED, KEEP_NOTHING, run_route},
        {"register", "the same, and all of them stay registered", SL__ROUTE_REGISTERED, KEEP_IN_RUN,
                run_route},
};
#define N_THREADS_PLANS (sizeof threads_plans / sizeof threads_plans[0])
static const row_plan memcpy_plan = {"memcpy", "pinned ring, filled from the mapping",
        SL__ROUTE_MEMCPY, KEEP_NOTHING, run_route};
static const row_plan registered_plan = {"registered", "once more, when all are registered",
        SL__ROUTE_REGISTERED, KEEP_ALL, run_route};
static const row_plan auto_plan = {
        "auto", "what a load takes", SL__ROUTE_AUTO, KEEP_NOTHING, run_route};

/* Rings of other sizes than the one that was asked for, filled from the mapping. */
static int measure_rings(rig *b, ring_size usual, bench_transfer_result *ret, sl_error *reterr)
{
    static const ring_size rings[] = {{0, 16, 4 << 20}, {0, 32, 4 << 20}, {0, 48, 4 << 20},
            {0, 48, 2 << 20}, {0, 64, 1 << 20}, {0, 32, 8 << 20}};
    int r = 0;
    for (size_t i = 0; i < sizeof rings / sizeof rings[0] && r == 0; i++) {
        ring_size ring = rings[i];
        ring.n_threads = usual.n_threads;
        r = measure_row(b, &memcpy_plan, ring, ret, reterr);
    }
    return r;
}

/* The limit of the disk; warm files have none. */
static int measure_disk(rig *b, bench_transfer_result *ret, sl_error *reterr)
{
    const bench_transfer_opts *opts = b->opts;
    int r = 0;
    for (size_t i = 0; opts->before_run && i < opts->n_thread_counts && r == 0; i++) {
        const bench_row *row = &ret->rows[ret->n_rows];
        r = measure_row(b, &disk_plan, (ring_size){.n_threads = opts->n_threads[i]}, ret, reterr);
        if (row->best_bytes_per_s > ret->disk_bytes_per_s) {
            ret->disk_bytes_per_s = row->best_bytes_per_s;
        }
    }
    return r;
}

static int measure_rows(rig *b, bench_transfer_result *ret, sl_error *reterr)
{
    const bench_transfer_opts *opts = b->opts;
    const ring_size none = {0};
    ring_size ring = {.n_slots = opts->n_slots, .slot_bytes = opts->slot_bytes};
    int r = run_link(b, reterr); /* wakes the device, and its memory is there from now on */
    r = r < 0 ? r : measure_row(b, &link_plan, none, ret, reterr);
    r = r < 0 ? r : measure_row(b, &set_plan, none, ret, reterr);
    r = r < 0 ? r : measure_disk(b, ret, reterr);
    r = r < 0 ? r : measure_row(b, &plain_plan, none, ret, reterr);
    for (size_t i = 0; i < N_THREADS_PLANS; i++) {
        for (size_t k = 0; k < opts->n_thread_counts && r == 0; k++) {
            ring.n_threads = opts->n_threads[k];
            r = measure_row(b, &threads_plans[i], ring, ret, reterr);
        }
    }
    if (r == 0 && opts->tries_rings) {
        r = measure_rings(b, ring, ret, reterr);
    }
    r = r < 0 ? r : measure_row(b, &registered_plan, ring, ret, reterr);
    ring.n_threads = 0; /* as a load takes */
    return r < 0 ? r : measure_row(b, &auto_plan, ring, ret, reterr);
}

int bench_transfer(const bench_transfer_opts *opts, bench_transfer_result *ret, sl_error *reterr)
{
    rig b;
    memset(ret, 0, sizeof *ret);
    ret->n_bytes = total_bytes(opts);
    int r = rig_init(&b, opts, ret->n_bytes, reterr);
    if (r == 0) {
        ret->has_pinned = b.pinned.is_pinned;
        r = measure_rows(&b, ret, reterr);
    }
    rig_done(&b);
    return r;
}
