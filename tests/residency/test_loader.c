/* What a load does to its buffers, the files and the device when it works, fails or is cancelled. */
#include <dirent.h>
#include <string.h>
#include <unistd.h>

#include "test_support.h"

#include "base/mem.h"
#include "device/sim.h"
#include "rig.h"

typedef struct seen {
    size_t n_arrived;
    size_t cancel_after; /* questions */
} seen;

static void on_arrived(void *ud, size_t i_slice)
{
    seen *s = ud;
    assert_int_equal(i_slice, s->n_arrived);
    s->n_arrived++;
}

static bool is_cancelled(void *ud)
{
    seen *s = ud;
    if (s->cancel_after > 0) {
        s->cancel_after--;
    }
    return s->cancel_after == 0;
}

typedef struct bench {
    rig_model m;
    sl_device *device;
    sl__unit_layout layout;
    sl_buffer *buffers[4];
    sl__loader loader;
    sl__load_job job;
    sl__load_figures figures;
    seen seen;
} bench;

static void open_bench(bench *b, const char *spec)
{
    sl_error err = {0};
    memset(b, 0, sizeof *b);
    rig_model_open(&b->m);
    assert_ok(sl_device_create_sim(spec, &b->device, &err), &err);
    sl__unit_limits limits = {
            .device_name = "sim", .alignment = 32, .max_alloc_bytes = 64, .slice_bytes = 16};
    assert_ok(sl__unit_lay_out("a", b->m.tensors[0], 3, &limits, &b->layout, &err), &err);
    b->loader = (sl__loader){.device = b->device,
            .opts = {.route = SL__ROUTE_PREAD,
                    .n_slots = 4,
                    .slot_bytes = 16,
                    .is_threadless = true,
                    .read = sl__sim_read,
                    .read_ud = b->device}};
    b->seen.cancel_after = 1000;
    b->job = (sl__load_job){.unit_name = "a",
            .model = b->m.model,
            .layout = &b->layout,
            .buffers = b->buffers,
            .hooks = {is_cancelled, on_arrived, &b->seen}};
}

static void free_buffers(bench *b)
{
    sl_error err = {0};
    for (size_t i = 0; i < 4; i++) {
        assert_ok(sl_buffer_free(&b->buffers[i], &err), &err);
    }
}

static void close_bench(bench *b)
{
    free_buffers(b);
    sl__loader_done(&b->loader);
    sl_device_free(&b->device);
    sl__unit_layout_done(&b->layout);
    rig_model_close(&b->m);
}

static void test_all_slices_arrive_in_order_with_the_bytes_of_the_file(void **state)
{
    (void)state;
    bench b;
    sl_error err = {0};
    open_bench(&b, "sim:1M,align=32");
    assert_ok(sl__loader_load(&b.loader, &b.job, &b.figures, &err), &err);
    assert_int_equal(b.seen.n_arrived, b.layout.n_slices);
    for (size_t i = 0; i < 3; i++) {
        const sl_tensor *t = b.m.tensors[0][i];
        const sl__placed_tensor *p = sl__unit_find(&b.layout, t);
        const char *there = sl_buffer_host_data(b.buffers[p->i_buffer]);
        assert_memory_equal(
                there + p->offset, sl_model_data(b.m.model, t), (size_t)t->info->n_bytes);
    }
    assert_string_equal(b.figures.route, "pread");
    assert_int_equal(b.figures.n_bytes, b.layout.n_file_bytes);
    close_bench(&b);
}

/* A clock by which the first thing that is measured is slow. */
static uint64_t tick(void *ud)
{
    uint64_t *n = ud;
    uint64_t now_ns = *n > 0 ? 1000 + *n : 0;
    ++*n;
    return now_ns;
}

/* Slices that are long enough for trials: pread is the first one, and loses. */
static void test_the_route_of_a_load_is_that_of_most_bytes(void **state)
{
    (void)state;
    bench b;
    sl_error err = {0};
    sl__transfer_stats stats;
    uint64_t n_ticks = 0;
    open_bench(&b, "sim:1M,align=32");
    b.loader.opts.route = SL__ROUTE_AUTO;
    b.loader.opts.slot_bytes = 4;
    b.loader.opts.now_ns = tick;
    b.loader.opts.now_ud = &n_ticks;
    assert_ok(sl__loader_load(&b.loader, &b.job, &b.figures, &err), &err);
    sl__transfer_get_stats(b.loader.transfer, &stats);
    assert_true(stats.route_bytes[SL__ROUTE_PREAD] > 0 && stats.route_bytes[SL__ROUTE_PLAIN] > 0);
    assert_true(stats.route_bytes[SL__ROUTE_MEMCPY] > stats.route_bytes[SL__ROUTE_PREAD]);
    assert_true(stats.route_bytes[SL__ROUTE_MEMCPY] > stats.route_bytes[SL__ROUTE_PLAIN]);
    assert_string_equal(b.figures.route, "memcpy");
    assert_int_equal(b.figures.n_bytes, b.layout.n_file_bytes);
    close_bench(&b);
}

/* Numbers of this process's threads, summed: a thread that came or went shows. */
static uint64_t sum_of_threads(void)
{
    uint64_t sum = 0;
    DIR *dir = opendir("/proc/self/task");
    assert_non_null(dir);
    for (const struct dirent *entry = readdir(dir); entry; entry = readdir(dir)) {
        uint64_t number = 0;
        for (const char *c = entry->d_name; *c >= '0' && *c <= '9'; c++) {
            number = number * 10 + (uint64_t)(*c - '0');
        }
        sum += number;
    }
    assert_int_equal(closedir(dir), 0);
    return sum;
}

/* Allocations that a load makes: it works if that many succeed, and not with one less. */
static long count_allocations(bench *b)
{
    long n = -1;
    int r = SL_ENOMEM;
    while (r < 0) {
        sl_error err = {0};
        n++;
        free_buffers(b);
        b->seen.n_arrived = 0;
        sl__mem_fail_after(n);
        r = sl__loader_load(&b->loader, &b->job, &b->figures, &err);
        sl__mem_fail_after(-1);
        assert_true(r == 0 || r == SL_ENOMEM);
    }
    return n;
}

/* The first load makes the ring and its threads. Later ones start, pin and mark nothing new. */
static void test_a_second_load_makes_its_buffers_and_nothing_else(void **state)
{
    (void)state;
    bench b;
    sl_error err = {0};
    sl__sim_stats first;
    sl__sim_stats second;
    sl__transfer_stats one;
    sl__transfer_stats two;
    open_bench(&b, "sim:1M,align=32");
    b.loader.opts.is_threadless = false;
    b.loader.opts.n_threads = 3;
    uint64_t before = sum_of_threads();
    assert_ok(sl__loader_load(&b.loader, &b.job, &b.figures, &err), &err);
    uint64_t threads = sum_of_threads();
    assert_int_not_equal(threads, before);
    sl__sim_get_stats(b.device, &first);
    sl__transfer_get_stats(b.loader.transfer, &one);
    assert_int_equal(first.n_calls[SL__SIM_PIN], 1);

    free_buffers(&b);
    b.seen.n_arrived = 0;
    assert_ok(sl__loader_load(&b.loader, &b.job, &b.figures, &err), &err);
    assert_int_equal(sum_of_threads(), threads);
    sl__sim_get_stats(b.device, &second);
    sl__transfer_get_stats(b.loader.transfer, &two);
    assert_int_equal(second.n_calls[SL__SIM_PIN], 1);
    assert_int_equal(second.n_calls[SL__SIM_REGISTER], first.n_calls[SL__SIM_REGISTER]);
    assert_int_equal(second.n_calls[SL__SIM_EVENT], first.n_calls[SL__SIM_EVENT]);
    assert_int_equal(second.pinned_bytes, first.pinned_bytes);
    assert_int_equal(second.n_calls[SL__SIM_ALLOC], 2 * b.layout.n_buffers);
    assert_int_equal(two.n_uploads, 2 * one.n_uploads);
    assert_int_equal(two.n_waits, 2 * one.n_waits);
    assert_int_equal(two.n_fills, 2 * one.n_fills);
    assert_int_equal(b.figures.n_bytes, b.layout.n_file_bytes);
    assert_int_equal(b.figures.n_stalls, two.n_stalls - one.n_stalls);

    /* Two for each buffer (ours and the device's), and the lists of pieces and slices: none for what is moved. */
    assert_int_equal(count_allocations(&b), 2 * b.layout.n_buffers + 2);
    assert_int_equal(sum_of_threads(), threads);
    close_bench(&b);
}

static void test_a_load_is_cancelled_between_any_two_copies(void **state)
{
    (void)state;
    int r = SL_ECANCELLED;
    size_t n = 1;
    for (; r == SL_ECANCELLED; n++) {
        bench b;
        sl_error err = {0};
        open_bench(&b, "sim:1M,align=32");
        b.seen.cancel_after = n;
        r = sl__loader_load(&b.loader, &b.job, &b.figures, &err);
        assert_int_equal(err.code, r);
        assert_true(r < 0 || b.seen.n_arrived == b.layout.n_slices);
        close_bench(&b);
    }
    assert_int_equal(r, 0);
    assert_true(n > 4);
}

static void test_a_read_that_is_short_names_the_file(void **state)
{
    (void)state;
    bench b;
    sl_error err = {0};
    open_bench(&b, "sim:1M,align=32,short=read:2");
    assert_true(sl__loader_load(&b.loader, &b.job, &b.figures, &err) < 0);
    assert_non_null(strstr(err.msg, "toy.gguf"));
    assert_null(b.figures.route);
    close_bench(&b);
}

static void test_G3_17_a_file_that_shrank_is_an_error_of_the_load(void **state)
{
    (void)state;
    bench b;
    sl_error err = {0};
    open_bench(&b, "sim:1M,align=32");
    assert_int_equal(truncate(b.m.path, 200), 0);
    assert_int_equal(sl__loader_load(&b.loader, &b.job, &b.figures, &err), SL_ECHANGED);
    assert_non_null(strstr(err.msg, "toy.gguf"));
    close_bench(&b);
}

static void test_a_mapping_is_wrapped_not_copied(void **state)
{
    (void)state;
    bench b;
    sl_error err = {0};
    sl_device *host = NULL;
    sl__unit_layout layout;
    sl__unit_limits limits = {.device_name = "host", .alignment = 1};
    open_bench(&b, "sim:1M,align=32");
    assert_ok(sl_device_create_host(&host, &err), &err);
    assert_ok(sl__unit_lay_in_place("a", b.m.tensors[0], 3, &limits, &layout, &err), &err);
    assert_int_equal(layout.n_bytes, 0);
    sl__loader loader = {.device = host};
    b.job.layout = &layout;
    b.job.is_in_place = true;
    assert_ok(sl__loader_load(&loader, &b.job, &b.figures, &err), &err);
    assert_string_equal(b.figures.route, "in place");
    assert_int_equal(b.figures.n_bytes, 0);
    for (size_t i = 0; i < 3; i++) {
        const sl_tensor *t = b.m.tensors[0][i];
        const sl__placed_tensor *p = sl__unit_find(&layout, t);
        const char *there = sl_buffer_host_data(b.buffers[p->i_buffer]);
        assert_ptr_equal(there + p->offset, sl_model_data(b.m.model, t));
    }
    assert_null(loader.transfer);
    for (size_t i = 0; i < layout.n_buffers; i++) {
        assert_ok(sl_buffer_free(&b.buffers[i], &err), &err);
    }
    sl__unit_layout_done(&layout);
    sl_device_free(&host);
    close_bench(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_all_slices_arrive_in_order_with_the_bytes_of_the_file),
            cmocka_unit_test(test_the_route_of_a_load_is_that_of_most_bytes),
            cmocka_unit_test(test_a_second_load_makes_its_buffers_and_nothing_else),
            cmocka_unit_test(test_a_load_is_cancelled_between_any_two_copies),
            cmocka_unit_test(test_a_read_that_is_short_names_the_file),
            cmocka_unit_test(test_G3_17_a_file_that_shrank_is_an_error_of_the_load),
            cmocka_unit_test(test_a_mapping_is_wrapped_not_copied),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
