/*
 * The thread of a run takes filled slots in order, queues their uploads, and waits for the oldest one when half
 * of the ring is in flight: the other half is being filled meanwhile. Direct routes use the same slots without
 * their memory, so that there is one way through queueing, waiting, arrival, failure and cancel.
 *
 * Whatever ends a pass early, the fillers are waited for and then the device, before the caller hears of it.
 */
#include "device/transfer.h"

#include <inttypes.h>
#include <string.h>

#include "base/mem.h"
#include "device/slot_ring.h"
#include "os/os_clock.h"
#include "os/os_process.h"

enum {
    LEAST_SLOTS = 16,
    SPARE_SLOTS = 8, /* beside one for each thread: they are on their way */
    DEFAULT_RING_BYTES = 64 << 20,
    DEFAULT_WINDOW_BYTES = 32 << 20,
    DEFAULT_REGISTER_BYTES = 512 << 20,
    MAX_DEFAULT_THREADS = 8, /* more were slower on a link of 53 GB/s */
    PAGE_BYTES = 4096,
    TRIAL_SLOTS = 4
};

struct sl__transfer {
    sl_device *device;
    sl_device_info info;
    sl__transfer_opts opts;
    sl__slot_ring ring;
    sl__route_choice choice;
    sl__transfer_stats stats;
    size_t max_in_flight; /* uploads; the other slots are being filled */
};

/* Consecutive slices that take one route. */
typedef struct pass {
    sl__transfer *transfer;
    const sl__slice *slices;
    size_t n_slices;
    size_t i_first; /* of them, in the run */
    const sl__transfer_hooks *hooks;
    sl__route route;
} pass;

/*
 * Whoever computes on the host meanwhile has the other half, and so has a device in software. A single thread would but be
 * woken by the run's own and wake it: that one does the work then.
 */
static size_t default_threads(void)
{
    size_t n = (sl__n_cpus() + 1) / 2;
    if (n < 2) {
        return 0;
    }
    return n < MAX_DEFAULT_THREADS ? n : MAX_DEFAULT_THREADS;
}

static int read_map(
        void *ud, const sl_map *map, void *buf, uint64_t offset, size_t n_bytes, sl_error *reterr)
{
    (void)ud;
    return sl_map_pread(map, buf, offset, n_bytes, reterr);
}

static uint64_t real_time(void *ud)
{
    (void)ud;
    return sl__now_ns();
}

/* Half of the slots; fewer if each thread can then have one, but never so few that the link waits for us. */
static size_t in_flight(size_t n_slots, size_t n_threads)
{
    size_t least = n_slots / 4;
    size_t most = n_slots / 2;
    size_t n = n_slots > n_threads ? n_slots - n_threads : 0;
    n = n < least ? least : n;
    return n > most ? most : n;
}

/* In whole pages, if it is more than one. */
static size_t share_of_ring(size_t ring_bytes, size_t n_slots)
{
    size_t n = (ring_bytes ? ring_bytes : DEFAULT_RING_BYTES) / n_slots;
    n -= n > PAGE_BYTES ? n % PAGE_BYTES : 0;
    return n > 0 ? n : 1;
}

static void set_defaults(sl__transfer *t, const sl__transfer_opts *opts)
{
    t->opts = opts ? *opts : (sl__transfer_opts){0};
    if (t->opts.is_threadless) {
        t->opts.n_threads = 0;
    } else if (t->opts.n_threads == 0) {
        t->opts.n_threads = default_threads();
    }
    if (t->opts.n_slots == 0) {
        size_t n = t->opts.n_threads + SPARE_SLOTS;
        t->opts.n_slots = n > LEAST_SLOTS ? n : LEAST_SLOTS;
    }
    if (t->opts.slot_bytes == 0) {
        t->opts.slot_bytes = share_of_ring(t->opts.ring_bytes, t->opts.n_slots);
    }
    if (t->opts.window_bytes == 0) {
        t->opts.window_bytes = DEFAULT_WINDOW_BYTES;
    }
    if (t->opts.register_bytes == 0) {
        t->opts.register_bytes = DEFAULT_REGISTER_BYTES;
    }
    t->max_in_flight = in_flight(t->opts.n_slots, t->opts.n_threads);
    if (!t->opts.read) {
        t->opts.read = read_map;
    }
    if (!t->opts.now_ns) {
        t->opts.now_ns = real_time;
    }
}

int sl__transfer_create(sl_device *device, const sl__transfer_opts *opts,
        sl__transfer **ret_transfer, sl_error *reterr)
{
    sl__transfer *t = sl__alloc(1, sizeof *t);
    if (!t) {
        return sl__fail_nomem(reterr, sizeof *t, "a transfer");
    }
    t->device = device;
    set_defaults(t, opts);
    int r = sl_device_describe(device, &t->info, reterr);
    if (r < 0) {
        goto out;
    }
    t->ring.device = device;
    t->ring.n_slots = t->opts.n_slots;
    t->ring.slot_bytes = t->opts.slot_bytes;
    t->ring.n_threads = t->opts.n_threads;
    t->ring.read = t->opts.read;
    t->ring.read_ud = t->opts.read_ud;
    t->ring.window_bytes = t->opts.window_bytes;
    if (t->info.can_register) {
        t->ring.n_windows = (size_t)(t->opts.register_bytes / t->opts.window_bytes);
    }
    r = sl__slot_ring_init(&t->ring, reterr);
    if (r < 0) {
        goto out;
    }
    t->stats.route = t->opts.route;
    t->stats.ring_bytes = t->ring.memory.n_bytes;
    t->stats.is_pinned = t->ring.memory.is_pinned;
    *ret_transfer = t;
    t = NULL;
out:
    sl__transfer_free(&t);
    return r;
}

void sl__transfer_free(sl__transfer **transfer)
{
    if (!transfer || !*transfer) {
        return;
    }
    sl__transfer *t = *transfer;
    *transfer = NULL;
    sl__slot_ring_done(&t->ring);
    sl__free(t);
}

void sl__transfer_unregister(sl__transfer *transfer, const sl_map *map)
{
    sl__map_windows_forget(&transfer->ring.windows, map);
}

void sl__transfer_get_stats(const sl__transfer *transfer, sl__transfer_stats *ret)
{
    *ret = transfer->stats;
    memcpy(ret->bytes_per_s, transfer->choice.bytes_per_s, sizeof ret->bytes_per_s);
    ret->n_fills = transfer->ring.n_fills;
    ret->n_windows = transfer->ring.windows.n_registered;
}

static int check_piece(const sl__piece *piece, sl_error *reterr)
{
    uint64_t n_file = sl_map_size(piece->map);
    uint64_t n_buffer = sl_buffer_size(piece->buffer);
    if (piece->offset > n_file || piece->n_bytes > n_file - piece->offset) {
        return sl__fail_at(reterr, SL_EINVAL, piece->offset,
                "%s: %" PRIu64 " bytes at %" PRIu64 " were asked for, file has %" PRIu64,
                sl_map_path(piece->map), piece->n_bytes, piece->offset, n_file);
    }
    if (piece->buffer_offset > n_buffer || piece->n_bytes > n_buffer - piece->buffer_offset) {
        return sl__fail(reterr, SL_EINVAL,
                "%s: %" PRIu64 " bytes were to go to %" PRIu64 " of a buffer of %" PRIu64,
                sl_device_name(sl_buffer_device(piece->buffer)), piece->n_bytes,
                piece->buffer_offset, n_buffer);
    }
    return 0;
}

static int check_slices(const sl__slice *slices, size_t n_slices, sl_error *reterr)
{
    int r = 0;
    for (size_t i = 0; i < n_slices; i++) {
        for (size_t k = 0; k < slices[i].n_pieces && r == 0; k++) {
            r = check_piece(&slices[i].pieces[k], reterr);
        }
    }
    return r;
}

/* Whether the files of a slice are still what was opened: before it is called arrived. */
static int check_files(const sl__slice *slice, sl_error *reterr)
{
    const sl_map *checked = NULL;
    int r = 0;
    for (size_t k = 0; k < slice->n_pieces && r == 0; k++) {
        if (slice->pieces[k].map != checked) {
            checked = slice->pieces[k].map;
            r = sl_map_check(checked, reterr);
        }
    }
    return r;
}

static int upload(pass *p, const sl__slot *slot, sl_error *reterr)
{
    const sl__chunk *chunk = &slot->chunk;
    int r = 0;
    if (chunk->n_bytes > 0) {
        r = sl_buffer_upload(
                chunk->buffer, chunk->buffer_offset, slot->src, chunk->n_bytes, reterr);
        p->transfer->stats.n_uploads++;
    }
    if (r == 0) {
        r = sl_event_record(slot->event, reterr);
    }
    sl_event *arrived = p->slices[chunk->i_slice].arrived;
    if (r == 0 && chunk->ends_slice && arrived) {
        r = sl_event_record(arrived, reterr);
    }
    return r;
}

/* Waits for the oldest upload, gives its slot back and says what arrived. Does nothing if there is none. */
static int retire_oldest(pass *p, sl_error *reterr)
{
    sl__transfer *t = p->transfer;
    const sl__slot *slot = sl__slot_ring_oldest(&t->ring);
    if (!slot) {
        return 0;
    }
    t->stats.n_waits++;
    int r = sl_event_wait(slot->event, reterr);
    if (r < 0) {
        return r;
    }
    size_t i_slice = slot->chunk.i_slice;
    bool ends_slice = slot->chunk.ends_slice;
    t->stats.n_bytes += slot->chunk.n_bytes;
    t->stats.route_bytes[p->route] += slot->chunk.n_bytes;
    sl__slot_ring_release(&t->ring);
    if (!ends_slice) {
        return 0;
    }
    r = check_files(&p->slices[i_slice], reterr);
    if (r == 0 && p->hooks->arrived) {
        p->hooks->arrived(p->hooks->ud, p->i_first + i_slice);
    }
    return r;
}

/* Gives back the slots of uploads that are done already, where the device can tell. */
static int retire_done(pass *p, sl_error *reterr)
{
    sl__transfer *t = p->transfer;
    int r = t->info.can_query ? 1 : 0;
    while (r == 1) {
        const sl__slot *slot = sl__slot_ring_oldest(&t->ring);
        r = slot ? sl_event_query(slot->event, reterr) : 0;
        if (r == 1) {
            r = retire_oldest(p, reterr);
            r = r == 0 ? 1 : r;
        }
    }
    return r;
}

/* One step of a pass: 1 = all is queued, 0 = go on. */
static int step(pass *p, sl_error *reterr)
{
    sl__transfer *t = p->transfer;
    sl__slot *slot = NULL;
    int r = retire_done(p, reterr);
    if (r < 0) {
        return r;
    }
    switch (sl__slot_ring_next(&t->ring, &slot)) {
    case SL__RING_READY:
        r = upload(p, slot, reterr);
        if (r == 0 && sl__slot_ring_n_in_flight(&t->ring) > t->max_in_flight) {
            r = retire_oldest(p, reterr);
        }
        return r;
    case SL__RING_MAY_FILL:
        sl__slot_ring_fill_one(&t->ring);
        return 0;
    case SL__RING_BUSY:
        if (sl__slot_ring_n_in_flight(&t->ring) > 0) {
            return retire_oldest(p, reterr);
        }
        t->stats.n_stalls++;
        sl__slot_ring_wait(&t->ring);
        return 0;
    case SL__RING_FULL:
        return retire_oldest(p, reterr);
    case SL__RING_END:
        return 1;
    case SL__RING_FAILED:
    default:
        return sl__slot_ring_error(&t->ring, reterr);
    }
}

static bool is_cancelled(const pass *p)
{
    return p->hooks->is_cancelled && p->hooks->is_cancelled(p->hooks->ud);
}

static int run_pass(pass *p, sl_error *reterr)
{
    sl__transfer *t = p->transfer;
    const sl__walk walk = {
            .slices = p->slices, .n_slices = p->n_slices, .max_gap = t->info.alignment - 1};
    int r = 0;
    sl__slot_ring_begin(&t->ring, &walk, p->route);
    while (r == 0) {
        r = is_cancelled(p) ? sl__fail(reterr, SL_ECANCELLED, "%s: the transfer was cancelled",
                                      t->info.name)
                            : step(p, reterr);
    }
    while (r == 1 && sl__slot_ring_n_in_flight(&t->ring) > 0) {
        int waited = retire_oldest(p, reterr);
        r = waited < 0 ? waited : r;
    }
    sl__slot_ring_end(&t->ring);
    if (r < 0) {
        sl_device_synchronize(t->device, NULL);
        return r;
    }
    return 0;
}

/* A trial has to be long enough that slots are filled and uploaded at the same time. */
static uint64_t trial_bytes(const sl__transfer *t)
{
    size_t n_slots = t->opts.n_slots < TRIAL_SLOTS ? t->opts.n_slots : TRIAL_SLOTS;
    return (uint64_t)n_slots * t->opts.slot_bytes;
}

/* The route of a slice; *ret_is_trial: it is taken to measure it. */
static sl__route route_of(sl__transfer *t, const sl__slice *slice, bool *ret_is_trial)
{
    const bool possible[SL__ROUTE_COUNT] = {
            [SL__ROUTE_PLAIN] = true,
            [SL__ROUTE_PREAD] = true,
            [SL__ROUTE_MEMCPY] = true,
            /* A device that refused once will refuse again. */
            [SL__ROUTE_REGISTERED] = t->ring.n_windows > 0 && t->ring.windows.n_refused == 0,
    };
    *ret_is_trial = false;
    if (t->opts.route != SL__ROUTE_AUTO) {
        return possible[t->opts.route] ? t->opts.route : SL__ROUTE_PREAD;
    }
    sl__route untried = sl__route_to_try(&t->choice, possible);
    *ret_is_trial = untried != SL__ROUTE_AUTO && sl__slice_bytes(slice) >= trial_bytes(t);
    if (*ret_is_trial) {
        return untried;
    }
    sl__route best = sl__route_best(&t->choice, possible);
    t->stats.route = untried == SL__ROUTE_AUTO ? best : t->stats.route;
    return best;
}

/* Slices from the first on that take its route; a trial takes one. */
static size_t n_alike(
        sl__transfer *t, const sl__slice *slices, size_t n_slices, sl__route route, bool is_trial)
{
    size_t n = 1;
    bool next_is_trial = false;
    while (!is_trial && n < n_slices && route_of(t, &slices[n], &next_is_trial) == route &&
            !next_is_trial) {
        n++;
    }
    return n;
}

int sl__transfer_run(sl__transfer *transfer, const sl__slice *slices, size_t n_slices,
        const sl__transfer_hooks *hooks, sl_error *reterr)
{
    sl__transfer *t = transfer;
    static const sl__transfer_hooks no_hooks = {0};
    int r = check_slices(slices, n_slices, reterr);
    t->stats.n_runs++;
    size_t i = 0;
    while (i < n_slices && r == 0) {
        bool is_trial;
        sl__route route = route_of(t, &slices[i], &is_trial);
        pass p = {
                .transfer = t,
                .slices = &slices[i],
                .n_slices = n_alike(t, &slices[i], n_slices - i, route, is_trial),
                .i_first = i,
                .hooks = hooks ? hooks : &no_hooks,
                .route = route,
        };
        uint64_t start = t->opts.now_ns(t->opts.now_ud);
        r = run_pass(&p, reterr);
        if (r == 0 && is_trial) {
            uint64_t ns = t->opts.now_ns(t->opts.now_ud) - start;
            sl__route_measured(&t->choice, route, sl__slice_bytes(&slices[i]), ns);
        }
        i += p.n_slices;
    }
    if (!t->opts.keeps_windows) {
        sl__map_windows_forget(&t->ring.windows, NULL);
    }
    return r;
}
