/*
 * Transfers on the simulated device: every route, every failure at every place, cancel at every place, files
 * that change, and that a run makes nothing new. The slot ring is tested here as part of it.
 */
#include "test_support.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "device/sim.h"
#include "device/transfer_walk.h"
#include "os/os_thread.h"

enum {
    N_SLICES = 6,
    N_PIECES = 4, /* of a slice */
    SLOT_BYTES = 700,
    N_SLOTS = 4,
    FILE_BYTES = 40000,
    BUFFER_BYTES = 20000,
    N_BUFFERS = 2,
    ALIGNMENT = 32,
    WINDOW_BYTES = 4096,
    N_WINDOWS = 3, /* registered at once */
};

typedef struct fixture {
    char *dir;
    char path[4200];
    unsigned char file[FILE_BYTES];
    sl_map *map;
    sl_device *device;
    sl_buffer *buffers[N_BUFFERS];
    unsigned char expected[N_BUFFERS][BUFFER_BYTES]; /* 0 where nothing is checked */
    sl__piece pieces[N_SLICES][N_PIECES];
    sl__slice slices[N_SLICES];
    sl_event *events[N_SLICES];
    /* Of a run: */
    size_t n_arrived;
    size_t n_asked;
    size_t cancel_at; /* the ask that is answered with yes; SIZE_MAX = never */
    size_t cut_at;    /* the file is cut when this slice arrives; SIZE_MAX = never */
} fixture;

/* Our handler of SIGBUS. cmocka puts its own over it at the start of each test. */
static struct sigaction guard_action;

static void make_pieces(fixture *f)
{
    uint64_t end[N_BUFFERS] = {0};
    uint64_t offset = 3;
    for (size_t i = 0; i < N_SLICES; i++) {
        for (size_t k = 0; k < N_PIECES; k++) {
            size_t b = i == 3 && k >= 2; /* one slice in two buffers */
            uint64_t n = 1 + (i * 7919 + k * 104729) % 1900;
            f->pieces[i][k] = (sl__piece){.map = f->map,
                    .offset = offset,
                    .n_bytes = n,
                    .buffer = f->buffers[b],
                    .buffer_offset = end[b]};
            memcpy(f->expected[b] + end[b], f->file + offset, n);
            end[b] = (end[b] + n + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
            offset += n + k;
        }
        f->slices[i] = (sl__slice){.pieces = f->pieces[i], .n_pieces = N_PIECES};
    }
    assert_true(end[0] <= BUFFER_BYTES && end[1] <= BUFFER_BYTES && offset <= FILE_BYTES);
}

static void open_device(fixture *f, bool is_stepped)
{
    const sl__sim_spec spec = {.n_bytes = 1 << 20,
            .alignment = ALIGNMENT,
            .has_pinned = true,
            .can_register = true,
            .has_virtual_clock = true,
            .is_stepped = is_stepped,
            .link_bytes_s = 1000000,
            .poisons = true};
    sl_error err = {0};
    assert_ok(sl__sim_create(&spec, &f->device, &err), &err);
    for (size_t b = 0; b < N_BUFFERS; b++) {
        assert_ok(sl_buffer_alloc(f->device, BUFFER_BYTES, &f->buffers[b], &err), &err);
    }
    make_pieces(f);
}

static void open_file(fixture *f)
{
    sl_error err = {0};
    test_write_file(f->path, f->file, FILE_BYTES);
    assert_int_equal(sigaction(SIGBUS, &guard_action, NULL), 0);
    assert_ok(sl_map_open(f->path, &f->map, &err), &err);
}

static void close_device(fixture *f)
{
    for (size_t i = 0; i < N_SLICES; i++) {
        sl_event_free(&f->events[i]);
    }
    for (size_t b = 0; b < N_BUFFERS; b++) {
        sl_buffer_free(&f->buffers[b], NULL);
    }
    sl_device_free(&f->device);
}

static int set_up(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    uint32_t seed = 7;
    for (size_t i = 0; i < FILE_BYTES; i++) {
        seed = seed * 1664525u + 1013904223u;
        f->file[i] = (unsigned char)(seed >> 24 | 1);
    }
    f->cancel_at = SIZE_MAX;
    f->cut_at = SIZE_MAX;
    f->dir = test_dir_create();
    test_path(f->path, sizeof f->path, f->dir, "file");
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    fixture *f = *state;
    close_device(f);
    sl_map_close(&f->map);
    test_dir_remove(f->dir);
    free(f);
    return 0;
}

static void open_all(fixture *f, bool is_stepped)
{
    open_file(f);
    open_device(f, is_stepped);
}

static sl__sim_stats sim_stats(const fixture *f)
{
    sl__sim_stats stats;
    sl__sim_get_stats(f->device, &stats);
    return stats;
}

static sl__transfer_opts small_opts(fixture *f, sl__route route, size_t n_threads)
{
    return (sl__transfer_opts){.route = route,
            .n_slots = N_SLOTS,
            .slot_bytes = SLOT_BYTES,
            .window_bytes = WINDOW_BYTES,
            .register_bytes = N_WINDOWS * WINDOW_BYTES,
            .n_threads = n_threads,
            .is_threadless = n_threads == 0,
            .read = sl__sim_read,
            .read_ud = f->device};
}

static sl__transfer *create(fixture *f, sl__route route, size_t n_threads)
{
    const sl__transfer_opts opts = small_opts(f, route, n_threads);
    sl__transfer *transfer = NULL;
    sl_error err = {0};
    assert_ok(sl__transfer_create(f->device, &opts, &transfer, &err), &err);
    return transfer;
}

static void check_slice(const fixture *f, size_t i)
{
    for (size_t k = 0; k < f->slices[i].n_pieces; k++) {
        const sl__piece *piece = &f->slices[i].pieces[k];
        const unsigned char *found = sl_buffer_host_data(piece->buffer);
        assert_memory_equal(found + piece->buffer_offset, f->file + piece->offset, piece->n_bytes);
    }
}

static bool ask(void *ud)
{
    fixture *f = ud;
    return f->n_asked++ == f->cancel_at;
}

static void note_arrival(void *ud, size_t i_slice)
{
    fixture *f = ud;
    assert_int_equal(i_slice, f->n_arrived);
    check_slice(f, i_slice);
    f->n_arrived++;
    if (i_slice == f->cut_at) {
        assert_int_equal(truncate(f->path, 10), 0);
    }
}

static void clear_buffers(fixture *f)
{
    for (size_t b = 0; b < N_BUFFERS; b++) {
        memset(sl_buffer_host_data(f->buffers[b]), 0xEE, BUFFER_BYTES);
    }
}

static int run(fixture *f, sl__transfer *transfer, sl_error *err)
{
    const sl__transfer_hooks hooks = {.is_cancelled = ask, .arrived = note_arrival, .ud = f};
    f->n_arrived = 0;
    f->n_asked = 0;
    clear_buffers(f);
    memset(err, 0, sizeof *err);
    return sl__transfer_run(transfer, f->slices, N_SLICES, &hooks, err);
}

/* After any run: nothing queued, nothing misused. */
static void check_quiet(const fixture *f)
{
    sl__sim_stats stats = sim_stats(f);
    assert_int_equal(stats.n_queued, 0);
    assert_int_equal(stats.n_misuses, 0);
    assert_int_equal(stats.lost_bytes, 0);
}

static void check_all(const fixture *f)
{
    assert_int_equal(f->n_arrived, N_SLICES);
    for (size_t i = 0; i < N_SLICES; i++) {
        check_slice(f, i);
    }
    check_quiet(f);
}

static void check_works(fixture *f, sl__transfer *transfer)
{
    sl_error err;
    assert_ok(run(f, transfer, &err), &err);
    check_all(f);
}

static void free_transfer(fixture *f, sl__transfer **transfer)
{
    sl__transfer_free(transfer);
    assert_null(*transfer);
    assert_int_equal(sim_stats(f).pinned_bytes, 0);
    assert_int_equal(sim_stats(f).registered_bytes, 0);
    assert_int_equal(sim_stats(f).n_events, 0);
    assert_int_equal(sim_stats(f).n_misuses, 0);
}

static const sl__route fixed_routes[] = {
        SL__ROUTE_PLAIN, SL__ROUTE_PREAD, SL__ROUTE_MEMCPY, SL__ROUTE_REGISTERED};
enum {
    N_FIXED = 4
};

static void test_every_route_moves_every_byte(void **state)
{
    fixture *f = *state;
    open_all(f, false);
    for (size_t i = 0; i < N_FIXED; i++) {
        for (size_t n_threads = 0; n_threads <= 3; n_threads++) {
            sl__transfer *transfer = create(f, fixed_routes[i], n_threads);
            sl__transfer_stats stats;
            check_works(f, transfer);
            check_works(f, transfer);
            sl__transfer_get_stats(transfer, &stats);
            assert_int_equal(stats.route, fixed_routes[i]);
            assert_int_equal(stats.n_runs, 2);
            assert_true(stats.n_bytes > 0);
            assert_int_equal(stats.route_bytes[fixed_routes[i]], stats.n_bytes);
            assert_int_equal(stats.ring_bytes, N_SLOTS * SLOT_BYTES);
            assert_true(stats.is_pinned);
            free_transfer(f, &transfer);
        }
    }
}

static void test_G3_12_events_say_when_a_slice_is_there(void **state)
{
    fixture *f = *state;
    sl_error err = {0};
    open_all(f, false);
    for (size_t i = 0; i < N_SLICES; i++) {
        assert_ok(sl_event_create(f->device, &f->events[i], &err), &err);
        f->slices[i].arrived = f->events[i];
    }
    sl__transfer *transfer = create(f, SL__ROUTE_PREAD, 2);
    check_works(f, transfer);
    for (size_t i = 0; i < N_SLICES; i++) {
        assert_int_equal(sl_event_query(f->events[i], &err), 1);
    }
    sl__transfer_free(&transfer);
}

/* Never one copy and one wait for each tensor, and nothing new on the way of a request. */
static void test_tensors_share_copies_and_a_run_makes_nothing(void **state)
{
    fixture *f = *state;
    open_all(f, false);
    const sl__piece many[] = {
            {.map = f->map, .offset = 0, .n_bytes = 31, .buffer = f->buffers[0]},
            {.map = f->map,
                    .offset = 99,
                    .n_bytes = 32,
                    .buffer = f->buffers[0],
                    .buffer_offset = 32},
            {.map = f->map,
                    .offset = 7,
                    .n_bytes = 600,
                    .buffer = f->buffers[0],
                    .buffer_offset = 64},
    };
    const sl__slice slice = {.pieces = many, .n_pieces = 3};
    sl__transfer *transfer = create(f, SL__ROUTE_PREAD, 2);
    sl__sim_stats before = sim_stats(f);
    sl__transfer_stats stats;
    sl_error err = {0};
    sl__mem_fail_after(0);
    int r = sl__transfer_run(transfer, &slice, 1, NULL, &err);
    sl__mem_fail_after(-1);
    assert_ok(r, &err);
    sl__transfer_get_stats(transfer, &stats);
    assert_int_equal(stats.n_uploads, 1);
    assert_int_equal(stats.n_waits, 1);
    assert_int_equal(stats.n_fills, 1);
    sl__sim_stats after = sim_stats(f);
    assert_int_equal(after.n_calls[SL__SIM_EVENT], before.n_calls[SL__SIM_EVENT]);
    assert_int_equal(after.n_calls[SL__SIM_PIN], before.n_calls[SL__SIM_PIN]);
    assert_int_equal(after.n_calls[SL__SIM_ALLOC], before.n_calls[SL__SIM_ALLOC]);
    assert_int_equal(after.n_plain_uploads, 0);
    free_transfer(f, &transfer);
}

/* One tensor of N bytes: as many copies, waits and fills as its slots or windows, on every route. */
static void test_copies_and_waits_are_as_many_as_slots(void **state)
{
    fixture *f = *state;
    open_all(f, false);
    for (size_t i = 0; i < N_FIXED; i++) {
        for (uint64_t n = 1; n <= BUFFER_BYTES; n = n * 7 + SLOT_BYTES) {
            const sl__piece piece = {.map = f->map,
                    .offset = WINDOW_BYTES - 1,
                    .n_bytes = n,
                    .buffer = f->buffers[0]};
            const sl__slice slice = {.pieces = &piece, .n_pieces = 1};
            bool is_registered = fixed_routes[i] == SL__ROUTE_REGISTERED;
            bool is_direct = is_registered || fixed_routes[i] == SL__ROUTE_PLAIN;
            uint64_t n_wanted = is_registered ? 1 + (n - 1 + WINDOW_BYTES - 1) / WINDOW_BYTES
                                              : (n + SLOT_BYTES - 1) / SLOT_BYTES;
            sl__transfer *transfer = create(f, fixed_routes[i], 2);
            sl__transfer_stats stats;
            sl__sim_stats before = sim_stats(f);
            sl_error err = {0};
            assert_ok(sl__transfer_run(transfer, &slice, 1, NULL, &err), &err);
            sl__sim_stats after = sim_stats(f);
            sl__transfer_get_stats(transfer, &stats);
            assert_int_equal(stats.n_uploads, n_wanted);
            assert_int_equal(stats.n_waits, n_wanted);
            assert_int_equal(stats.n_fills, is_direct ? 0 : n_wanted);
            assert_int_equal(stats.n_windows, is_registered ? n_wanted : 0);
            assert_int_equal(
                    after.n_calls[SL__SIM_UPLOAD] - before.n_calls[SL__SIM_UPLOAD], n_wanted);
            assert_int_equal(
                    after.n_calls[SL__SIM_RECORD] - before.n_calls[SL__SIM_RECORD], n_wanted);
            free_transfer(f, &transfer);
        }
    }
}

static void test_lists_without_bytes_arrive_too(void **state)
{
    fixture *f = *state;
    sl_error err = {0};
    open_all(f, false);
    for (size_t i = 0; i < N_SLICES; i++) {
        f->slices[i].n_pieces = 0;
    }
    sl__transfer *transfer = create(f, SL__ROUTE_AUTO, 1);
    check_works(f, transfer);
    assert_int_equal(sl__transfer_run(transfer, NULL, 0, NULL, &err), 0);
    free_transfer(f, &transfer);
}

static uint64_t scripted_time(void *ud)
{
    uint64_t *now = ud;
    *now += 1000;
    return *now;
}

static void test_the_route_is_chosen_by_the_first_slices_and_kept(void **state)
{
    fixture *f = *state;
    uint64_t now = 0;
    sl__transfer_stats stats;
    sl_error err = {0};
    open_all(f, false);
    sl__transfer_opts opts = small_opts(f, SL__ROUTE_AUTO, 1);
    opts.slot_bytes = 200;
    opts.now_ns = scripted_time;
    opts.now_ud = &now;
    sl__transfer *transfer = NULL;
    assert_ok(sl__transfer_create(f->device, &opts, &transfer, &err), &err);
    sl__transfer_get_stats(transfer, &stats);
    assert_int_equal(stats.route, SL__ROUTE_AUTO);
    for (size_t i = 0; i < N_SLICES; i++) {
        assert_true(sl__slice_bytes(&f->slices[i]) >= N_SLOTS * opts.slot_bytes);
    }
    check_works(f, transfer);
    sl__transfer_get_stats(transfer, &stats);
    assert_int_equal(stats.route, SL__ROUTE_AUTO); /* 6 slices, and 8 trials to do */
    check_works(f, transfer);
    sl__transfer_get_stats(transfer, &stats);
    /* Every slice took one tick: the one with the most bytes looked fastest. */
    assert_int_not_equal(stats.route, SL__ROUTE_AUTO);
    for (size_t i = 0; i < N_FIXED; i++) {
        assert_true(stats.bytes_per_s[fixed_routes[i]] > 0);
        assert_true(stats.bytes_per_s[stats.route] * 1.1 >= stats.bytes_per_s[fixed_routes[i]]);
    }
    sl__transfer_stats before = stats;
    check_works(f, transfer);
    sl__transfer_get_stats(transfer, &stats);
    assert_int_equal(stats.route, before.route);
    for (size_t i = 0; i < N_FIXED; i++) {
        bool grew = stats.route_bytes[fixed_routes[i]] > before.route_bytes[fixed_routes[i]];
        assert_int_equal(grew, fixed_routes[i] == stats.route);
    }
    free_transfer(f, &transfer);
}

static void test_G3_05_creation_fails_cleanly_at_every_allocation(void **state)
{
    fixture *f = *state;
    open_all(f, true);
    const sl__transfer_opts opts = small_opts(f, SL__ROUTE_AUTO, 2);
    sl__transfer *transfer = NULL;
    int n_failed = 0;
    for (long n = 0; n < 30; n++) {
        sl_error err = {0};
        sl__mem_fail_after(n);
        int r = sl__transfer_create(f->device, &opts, &transfer, &err);
        sl__mem_fail_after(-1);
        assert_true(r == 0 || (r == SL_ENOMEM && !transfer));
        n_failed += r < 0 ? 1 : 0;
        free_transfer(f, &transfer); /* none, or one with a ring that is not pinned */
    }
    assert_true(n_failed > 10);
    for (uint64_t i = 1; i <= N_SLOTS; i++) {
        const sl__sim_fault fault = {SL__SIM_FAIL, SL__SIM_EVENT, i};
        sl_error err = {0};
        sl__sim_set_faults(f->device, &fault, 1);
        assert_int_equal(sl__transfer_create(f->device, &opts, &transfer, &err), SL_EDEVICE);
        assert_null(transfer);
        assert_int_equal(sim_stats(f).n_events, 0);
    }
}

static void test_G3_13_without_pinned_memory_the_ring_is_plain(void **state)
{
    fixture *f = *state;
    open_all(f, false);
    const sl__sim_fault fault = {SL__SIM_FAIL, SL__SIM_PIN, 1};
    sl__transfer_stats stats;
    sl__sim_set_faults(f->device, &fault, 1);
    sl__transfer *transfer = create(f, SL__ROUTE_PREAD, 1);
    check_works(f, transfer);
    sl__transfer_get_stats(transfer, &stats);
    assert_false(stats.is_pinned);
    assert_true(sim_stats(f).n_plain_uploads > 0);
    free_transfer(f, &transfer);
}

/* A window that is refused is copied as it is; from then on another route is taken. */
static void test_G3_13_a_mapping_that_cannot_be_registered_takes_another_route(void **state)
{
    fixture *f = *state;
    open_all(f, false);
    for (size_t n_threads = 0; n_threads <= 2; n_threads++) {
        const sl__sim_fault fault = {SL__SIM_FAIL, SL__SIM_REGISTER, 2};
        sl__transfer_stats stats;
        sl__transfer *transfer = create(f, SL__ROUTE_REGISTERED, n_threads);
        sl__sim_set_faults(f->device, &fault, 1);
        check_works(f, transfer);
        sl__transfer_get_stats(transfer, &stats);
        assert_true(stats.route_bytes[SL__ROUTE_REGISTERED] > 0);
        uint64_t before = stats.route_bytes[SL__ROUTE_REGISTERED];
        check_works(f, transfer);
        sl__transfer_get_stats(transfer, &stats);
        assert_int_equal(stats.route_bytes[SL__ROUTE_REGISTERED], before);
        assert_int_equal(stats.route_bytes[SL__ROUTE_MEMCPY], 0);
        assert_true(stats.route_bytes[SL__ROUTE_PREAD] >= before);
        free_transfer(f, &transfer);
    }
}

/* Never more than the limit; a run without room for all of them leaves none, and one that keeps them makes none again. */
static void test_G3_13_windows_stay_within_their_limit(void **state)
{
    fixture *f = *state;
    sl_error err = {0};
    open_all(f, false);
    for (size_t n_windows = 1; n_windows <= 16; n_windows += 5) {
        sl__transfer_opts opts = small_opts(f, SL__ROUTE_REGISTERED, 2);
        sl__transfer *transfer = NULL;
        sl__transfer_stats stats;
        opts.register_bytes = n_windows * WINDOW_BYTES + 1;
        opts.keeps_windows = true;
        assert_ok(sl__transfer_create(f->device, &opts, &transfer, &err), &err);
        check_works(f, transfer);
        assert_true(sim_stats(f).registered_bytes > 0);
        assert_true(sim_stats(f).registered_bytes <= opts.register_bytes);
        sl__transfer_get_stats(transfer, &stats);
        uint64_t n_first = stats.n_windows;
        check_works(f, transfer);
        sl__transfer_get_stats(transfer, &stats);
        assert_int_equal(stats.n_windows == n_first, n_windows >= n_first);
        sl__transfer_unregister(transfer, f->map);
        assert_int_equal(sim_stats(f).registered_bytes, 0);
        check_works(f, transfer);
        free_transfer(f, &transfer);
    }
}

/* The n-th call fails, for all n up to the last that a run makes; returns how many that were. */
static uint64_t fail_every_call(
        fixture *f, sl__route route, size_t n_threads, sl__sim_fault_kind kind, sl__sim_call call)
{
    sl__transfer *transfer = create(f, route, n_threads);
    uint64_t n = 0;
    bool was_hit = true;
    while (was_hit) {
        n++;
        const sl__sim_fault fault = {.kind = kind, .call = call, .n = n};
        sl_error err;
        sl__sim_set_faults(f->device, &fault, 1);
        int r = run(f, transfer, &err);
        was_hit = sim_stats(f).n_calls[call] >= n;
        sl__sim_set_faults(f->device, NULL, 0);
        check_quiet(f);
        for (size_t i = 0; i < f->n_arrived; i++) {
            check_slice(f, i);
        }
        if (was_hit && kind != SL__SIM_SLOW && !(r == 0 && kind == SL__SIM_LOST)) {
            assert_true(r < 0);
            assert_int_equal(r, err.code);
            assert_true(err.msg[0] != '\0');
        } else {
            assert_ok(r, &err);
            check_all(f);
        }
        check_works(f, transfer);
    }
    free_transfer(f, &transfer);
    return n - 1;
}

static void test_G3_05_the_nth_call_of_every_kind_fails_for_all_n(void **state)
{
    fixture *f = *state;
    static const sl__sim_call calls[] = {
            SL__SIM_UPLOAD, SL__SIM_COPY, SL__SIM_RECORD, SL__SIM_WAIT};
    open_all(f, false);
    for (size_t i = 0; i < N_FIXED; i++) {
        for (size_t c = 0; c < sizeof calls / sizeof calls[0]; c++) {
            size_t n_threads = (i + c) % 3;
            assert_true(
                    fail_every_call(f, fixed_routes[i], n_threads, SL__SIM_FAIL, calls[c]) > 10);
            assert_true(
                    fail_every_call(f, fixed_routes[i], n_threads, SL__SIM_SLOW, calls[c]) > 10);
        }
    }
}

static void test_reads_that_fail_or_are_short_for_all_n(void **state)
{
    fixture *f = *state;
    open_all(f, false);
    for (size_t n_threads = 0; n_threads <= 2; n_threads++) {
        assert_true(
                fail_every_call(f, SL__ROUTE_PREAD, n_threads, SL__SIM_FAIL, SL__SIM_READ) > 20);
        assert_true(
                fail_every_call(f, SL__ROUTE_PREAD, n_threads, SL__SIM_SHORT, SL__SIM_READ) > 20);
        assert_true(
                fail_every_call(f, SL__ROUTE_PREAD, n_threads, SL__SIM_SLOW, SL__SIM_READ) > 20);
    }
}

static void test_a_device_that_is_lost_at_any_call_ends_the_run(void **state)
{
    fixture *f = *state;
    static const sl__sim_call calls[] = {
            SL__SIM_UPLOAD, SL__SIM_COPY, SL__SIM_RECORD, SL__SIM_WAIT, SL__SIM_READ};
    open_all(f, false);
    for (size_t c = 0; c < sizeof calls / sizeof calls[0]; c++) {
        assert_true(fail_every_call(f, SL__ROUTE_PREAD, c % 3, SL__SIM_LOST, calls[c]) > 10);
    }
}

/* The earliest failure is the one that is told. */
static void test_of_several_failures_the_first_is_told(void **state)
{
    fixture *f = *state;
    sl_error err;
    open_all(f, false);
    sl__transfer *transfer = create(f, SL__ROUTE_PREAD, 0);
    const sl__sim_fault faults[] = {
            {SL__SIM_SHORT, SL__SIM_READ, 2}, {SL__SIM_FAIL, SL__SIM_READ, 3}};
    sl__sim_set_faults(f->device, faults, 2);
    assert_int_equal(run(f, transfer, &err), SL_ECHANGED);
    assert_int_equal(f->n_arrived, 0);
    sl__sim_set_faults(f->device, NULL, 0);
    free_transfer(f, &transfer);
}

static void test_cancel_at_every_place(void **state)
{
    fixture *f = *state;
    open_all(f, false);
    for (size_t i = 0; i < N_FIXED; i++) {
        sl__transfer *transfer = create(f, fixed_routes[i], i % 3);
        int r = SL_ECANCELLED;
        size_t n_before = 0;
        for (size_t at = 0; r != 0; at++) {
            sl_error err;
            f->cancel_at = at;
            r = run(f, transfer, &err);
            check_quiet(f);
            if (r != 0) {
                assert_int_equal(r, SL_ECANCELLED);
                assert_int_equal(f->n_asked, at + 1);
            } else {
                assert_true(f->n_asked <= at);
                n_before = at;
            }
        }
        assert_true(n_before > 10);
        f->cancel_at = SIZE_MAX;
        check_works(f, transfer);
        free_transfer(f, &transfer);
    }
}

typedef struct canceller {
    atomic_bool is_cancelled;
    uint64_t after_ns;
} canceller;

static void cancel_later(void *ud)
{
    canceller *c = ud;
    sl__sleep_ns(c->after_ns);
    atomic_store(&c->is_cancelled, true);
}

static bool ask_flag(void *ud)
{
    return atomic_load(&((canceller *)ud)->is_cancelled);
}

/* Another thread cancels at some moment; whichever it is, the run ends and leaves nothing behind. */
static void test_cancel_by_another_thread_at_any_moment(void **state)
{
    fixture *f = *state;
    uint32_t seed = 11;
    size_t n_ended[2] = {0, 0};
    open_all(f, false);
    sl__transfer *transfer = create(f, SL__ROUTE_PREAD, 2);
    for (int i = 0; i < 150; i++) {
        canceller c = {.after_ns = 0};
        sl__thread thread = {0};
        sl_error err = {0};
        seed = seed * 1664525u + 1013904223u;
        c.after_ns = (seed >> 16) % 800 * 1000;
        const sl__transfer_hooks hooks = {.is_cancelled = ask_flag, .ud = &c};
        clear_buffers(f);
        assert_ok(sl__thread_start(&thread, "canceller", cancel_later, &c, &err), &err);
        int r = sl__transfer_run(transfer, f->slices, N_SLICES, &hooks, &err);
        sl__thread_join(&thread);
        assert_true(r == 0 || r == SL_ECANCELLED);
        check_quiet(f);
        n_ended[r == 0]++;
    }
    print_message("150 runs, %zu of them cancelled\n", n_ended[0]);
    check_works(f, transfer);
    free_transfer(f, &transfer);
}

static void test_a_file_that_shrinks_is_an_error_on_every_route(void **state)
{
    fixture *f = *state;
    for (size_t i = 0; i < N_FIXED; i++) {
        for (size_t cut_at = 0; cut_at < N_SLICES - 1; cut_at++) {
            sl_error err;
            open_all(f, false);
            sl__transfer *transfer = create(f, fixed_routes[i], cut_at % 3);
            f->cut_at = cut_at;
            assert_int_equal(run(f, transfer, &err), SL_ECHANGED);
            assert_non_null(strstr(err.msg, f->path));
            assert_int_equal(f->n_arrived, cut_at + 1);
            check_quiet(f);
            f->cut_at = SIZE_MAX;
            free_transfer(f, &transfer);
            close_device(f);
            sl_map_close(&f->map);
        }
    }
}

static void test_pieces_outside_their_file_or_buffer_are_refused(void **state)
{
    fixture *f = *state;
    open_all(f, false);
    sl__transfer *transfer = create(f, SL__ROUTE_PREAD, 1);
    const sl__piece good = f->pieces[5][3];
    for (int i = 0; i < 4; i++) {
        sl_error err;
        sl__piece *bad = &f->pieces[5][3];
        *bad = good;
        if (i == 0) {
            bad->offset = FILE_BYTES - good.n_bytes + 1;
        } else if (i == 1) {
            bad->offset = UINT64_MAX;
        } else if (i == 2) {
            bad->buffer_offset = BUFFER_BYTES - good.n_bytes + 1;
        } else {
            bad->n_bytes = UINT64_MAX;
        }
        assert_int_equal(run(f, transfer, &err), SL_EINVAL);
        assert_int_equal(f->n_arrived, 0);
    }
    f->pieces[5][3] = good;
    check_works(f, transfer);
    free_transfer(f, &transfer);
    sl__transfer_free(&transfer);
    sl__transfer_free(NULL);
}

/* Every step by the thread of the run: a device and a ring without threads. */
static void test_nothing_needs_a_thread(void **state)
{
    fixture *f = *state;
    open_all(f, true);
    for (size_t i = 0; i < N_FIXED; i++) {
        sl__transfer *transfer = create(f, fixed_routes[i], 0);
        check_works(f, transfer);
        free_transfer(f, &transfer);
        assert_true(fail_every_call(f, fixed_routes[i], 0, SL__SIM_FAIL, SL__SIM_COPY) > 10);
    }
}

static void test_rings_of_every_small_size(void **state)
{
    fixture *f = *state;
    sl_error err = {0};
    open_all(f, false);
    for (size_t n_slots = 1; n_slots <= 5; n_slots++) {
        for (size_t n_threads = 0; n_threads <= 2; n_threads++) {
            sl__transfer_opts opts = small_opts(f, SL__ROUTE_PREAD, n_threads);
            sl__transfer *transfer = NULL;
            opts.n_slots = n_slots;
            opts.slot_bytes = n_slots == 1 ? 33 : 4096;
            assert_ok(sl__transfer_create(f->device, &opts, &transfer, &err), &err);
            check_works(f, transfer);
            free_transfer(f, &transfer);
        }
    }
    const sl__transfer_opts absurd[] = {{.n_slots = SIZE_MAX / 4}, {.n_slots = 4097},
            {.slot_bytes = SIZE_MAX}, {.n_threads = 257}};
    for (size_t i = 0; i < 4; i++) {
        sl__transfer *transfer = NULL;
        assert_int_equal(sl__transfer_create(f->device, &absurd[i], &transfer, &err), SL_EINVAL);
        assert_null(transfer);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
            TEST(test_every_route_moves_every_byte),
            TEST(test_G3_12_events_say_when_a_slice_is_there),
            TEST(test_tensors_share_copies_and_a_run_makes_nothing),
            TEST(test_copies_and_waits_are_as_many_as_slots),
            TEST(test_lists_without_bytes_arrive_too),
            TEST(test_the_route_is_chosen_by_the_first_slices_and_kept),
            TEST(test_G3_05_creation_fails_cleanly_at_every_allocation),
            TEST(test_G3_13_without_pinned_memory_the_ring_is_plain),
            TEST(test_G3_13_a_mapping_that_cannot_be_registered_takes_another_route),
            TEST(test_G3_13_windows_stay_within_their_limit),
            TEST(test_G3_05_the_nth_call_of_every_kind_fails_for_all_n),
            TEST(test_reads_that_fail_or_are_short_for_all_n),
            TEST(test_a_device_that_is_lost_at_any_call_ends_the_run),
            TEST(test_of_several_failures_the_first_is_told),
            TEST(test_cancel_at_every_place),
            TEST(test_cancel_by_another_thread_at_any_moment),
            TEST(test_a_file_that_shrinks_is_an_error_on_every_route),
            TEST(test_pieces_outside_their_file_or_buffer_are_refused),
            TEST(test_nothing_needs_a_thread),
            TEST(test_rings_of_every_small_size),
    };
    sl_map *first = NULL;
    if (sl_map_open("/proc/self/exe", &first, NULL) < 0 ||
            sigaction(SIGBUS, NULL, &guard_action) != 0) {
        return 1;
    }
    sl_map_close(&first);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
