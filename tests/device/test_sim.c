/*
 * The simulated device: its account, its queue by hand, by thread and on both clocks, and its failures.
 * Tests that need to see a moment in the queue use a stepped device; nothing here depends on real time.
 */
#include "test_support.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "device/sim.h"
#include "os/os_thread.h"

static sl__sim_spec small_spec(void)
{
    return (sl__sim_spec){.n_bytes = 1000,
            .alignment = 1,
            .has_pinned = true,
            .can_register = true,
            .has_virtual_clock = true,
            .is_stepped = true,
            .poisons = true};
}

static sl_device *create(const sl__sim_spec *spec)
{
    sl_device *device = NULL;
    sl_error err = {0};
    assert_ok(sl__sim_create(spec, &device, &err), &err);
    return device;
}

static sl_device *create_small(void)
{
    const sl__sim_spec spec = small_spec();
    return create(&spec);
}

static sl__sim_stats stats_of(const sl_device *device)
{
    sl__sim_stats stats;
    sl__sim_get_stats(device, &stats);
    return stats;
}

static sl_buffer *alloc(sl_device *device, uint64_t n_bytes)
{
    sl_buffer *buffer = NULL;
    sl_error err = {0};
    assert_ok(sl_buffer_alloc(device, n_bytes, &buffer, &err), &err);
    return buffer;
}

static void free_buffer(sl_buffer *buffer)
{
    sl_error err = {0};
    assert_ok(sl_buffer_free(&buffer, &err), &err);
}

static sl_event *new_event(sl_device *device)
{
    sl_event *event = NULL;
    sl_error err = {0};
    assert_ok(sl_event_create(device, &event, &err), &err);
    return event;
}

static sl_pinned pin(sl_device *device, size_t n_bytes)
{
    sl_pinned pinned = {0};
    sl_error err = {0};
    assert_ok(sl_pinned_alloc(device, n_bytes, &pinned, &err), &err);
    return pinned;
}

static void fail_at(sl_device *device, sl__sim_fault_kind kind, sl__sim_call call, uint64_t n)
{
    const sl__sim_fault fault = {.kind = kind, .call = call, .n = n};
    sl__sim_set_faults(device, &fault, 1);
}

static void test_the_account_is_exact(void **state)
{
    (void)state;
    sl__sim_spec spec = small_spec();
    spec.alignment = 256;
    spec.n_bytes = 1024;
    sl_device *device = create(&spec);
    sl_device_info info;
    sl_error err = {0};
    assert_true(sl__sim_is(device));
    sl_buffer *a = alloc(device, 1);
    sl_buffer *b = alloc(device, 257);
    assert_int_equal(stats_of(device).live_bytes, 768);
    assert_ok(sl_device_describe(device, &info, &err), &err);
    assert_int_equal(info.total_bytes, 1024);
    assert_int_equal(info.free_bytes, 256);
    sl_buffer *c = NULL;
    assert_int_equal(sl_buffer_alloc(device, 257, &c, &err), SL_ENOMEM);
    assert_non_null(strstr(err.msg, "257"));
    assert_non_null(strstr(err.msg, "256 of 1024"));
    assert_int_equal(sl_buffer_alloc(device, UINT64_MAX, &c, &err), SL_ENOMEM);
    c = alloc(device, 256);
    free_buffer(a);
    free_buffer(b);
    free_buffer(c);
    assert_int_equal(stats_of(device).live_bytes, 0);
    assert_int_equal(stats_of(device).peak_bytes, 1024);
    assert_int_equal(stats_of(device).lost_bytes, 0);
    sl_device_free(&device);
}

static void test_G3_06_the_largest_allocation_is_a_limit_of_its_own(void **state)
{
    (void)state;
    static const uint64_t limits[] = {4294967292u, 4133625856u, 1073741824, 256 << 20};
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        sl__sim_spec spec = small_spec();
        spec.n_bytes = UINT64_C(8) << 30;
        spec.max_alloc_bytes = limits[i];
        sl_device *device = create(&spec);
        sl_device_info info;
        sl_buffer *buffer = NULL;
        sl_error err = {0};
        assert_ok(sl_device_describe(device, &info, &err), &err);
        assert_int_equal(info.max_alloc_bytes, limits[i]);
        assert_int_equal(sl_buffer_alloc(device, limits[i] + 1, &buffer, &err), SL_ELIMIT);
        assert_int_equal(stats_of(device).live_bytes, 0);
        sl_device_free(&device);
    }
}

static void test_copies_happen_in_order_and_when_stepped(void **state)
{
    (void)state;
    sl_device *device = create_small();
    sl_buffer *buffer = alloc(device, 8);
    sl_pinned pinned = pin(device, 8);
    sl_event *first = new_event(device);
    sl_event *second = new_event(device);
    sl_error err = {0};
    unsigned char *seen = sl_buffer_host_data(buffer);
    memcpy(pinned.data, "abcdefg", 8);
    assert_int_equal(sl_event_query(first, &err), 1);
    assert_int_equal(sl_buffer_upload(buffer, 0, pinned.data, 4, &err), 0);
    assert_int_equal(sl_event_record(first, &err), 0);
    assert_int_equal(sl_buffer_upload(buffer, 2, pinned.data, 4, &err), 0);
    assert_int_equal(sl_event_record(second, &err), 0);
    assert_int_equal(seen[0], 0xA5);
    assert_int_equal(sl_event_query(first, &err), 0);
    assert_int_equal(sl__sim_step(device, 1), 1);
    assert_memory_equal(seen, "abcd\xA5", 5);
    assert_int_equal(sl_event_query(first, &err), 1);
    assert_int_equal(sl_event_query(second, &err), 0);
    assert_int_equal(sl_event_wait(second, &err), 0);
    assert_memory_equal(seen, "ababcd\xA5", 7);
    assert_int_equal(sl__sim_step(device, 1), 0);
    assert_int_equal(stats_of(device).copied_bytes, 8);
    assert_int_equal(stats_of(device).n_plain_uploads, 0);
    sl_event_free(&first);
    sl_event_free(&second);
    sl_pinned_free(&pinned);
    free_buffer(buffer);
    assert_int_equal(stats_of(device).n_misuses, 0);
    assert_int_equal(stats_of(device).n_events, 0);
    assert_int_equal(stats_of(device).pinned_bytes, 0);
    sl_device_free(&device);
}

static void test_plain_memory_is_copied_before_upload_returns(void **state)
{
    (void)state;
    sl_device *device = create_small();
    sl_buffer *buffer = alloc(device, 8);
    sl_error err = {0};
    char bytes[8] = "1234567";
    char back[8];
    assert_int_equal(sl_buffer_upload(buffer, 0, bytes, 8, &err), 0);
    memset(bytes, 0, 8);
    assert_int_equal(sl_buffer_download(buffer, 0, back, 8, &err), 0);
    assert_string_equal(back, "1234567");
    assert_int_equal(stats_of(device).n_plain_uploads, 1);
    free_buffer(buffer);
    sl_device_free(&device);
}

static void test_registered_memory_is_copied_asynchronously(void **state)
{
    (void)state;
    sl_device *device = create_small();
    sl_buffer *buffer = alloc(device, 8);
    sl_error err = {0};
    static const char bytes[16] = "123456789abcdef";
    sl_registration *registration = NULL;
    sl_registration *again = NULL;
    assert_ok(sl_register(device, bytes, 16, &registration, &err), &err);
    assert_int_equal(sl_register(device, bytes, 16, &again, &err), SL_EEXIST);
    assert_int_equal(sl_register(device, bytes + 15, 20, &again, &err), SL_EEXIST);
    assert_int_equal(stats_of(device).registered_bytes, 16);
    assert_int_equal(sl_buffer_upload(buffer, 0, bytes + 8, 8, &err), 0);
    assert_int_equal(stats_of(device).n_queued, 1);
    assert_int_equal(sl_device_synchronize(device, &err), 0);
    assert_int_equal(stats_of(device).n_queued, 0);
    sl_unregister(&registration);
    sl_unregister(&registration);
    assert_int_equal(stats_of(device).registered_bytes, 0);
    assert_int_equal(sl_buffer_upload(buffer, 0, bytes + 8, 8, &err), 0);
    assert_int_equal(stats_of(device).n_plain_uploads, 1);
    free_buffer(buffer);
    sl_device_free(&device);
}

static void test_the_virtual_clock_counts_the_link_and_slow_calls(void **state)
{
    (void)state;
    sl__sim_spec spec = small_spec();
    spec.link_bytes_s = 100;
    sl_device *device = create(&spec);
    sl_buffer *buffer = alloc(device, 1000);
    sl_pinned pinned = pin(device, 1000);
    sl_error err = {0};
    memset(pinned.data, 1, 1000);
    assert_int_equal(sl_buffer_upload(buffer, 0, pinned.data, 1000, &err), 0);
    assert_int_equal(stats_of(device).now_ns, 0);
    assert_int_equal(sl_device_synchronize(device, &err), 0);
    assert_int_equal(stats_of(device).now_ns, UINT64_C(10000000000));
    fail_at(device, SL__SIM_SLOW, SL__SIM_COPY, 1);
    assert_int_equal(sl_buffer_upload(buffer, 0, pinned.data, 100, &err), 0);
    assert_int_equal(sl_device_synchronize(device, &err), 0);
    assert_int_equal(stats_of(device).now_ns, UINT64_C(12000000000));
    fail_at(device, SL__SIM_SLOW, SL__SIM_WAIT, 1);
    assert_int_equal(sl_device_synchronize(device, &err), 0);
    assert_int_equal(stats_of(device).now_ns, UINT64_C(13000000000));
    sl_pinned_free(&pinned);
    free_buffer(buffer);
    sl_device_free(&device);
}

static void test_G3_05_a_failed_alloc_changes_nothing(void **state)
{
    (void)state;
    sl_device *device = create_small();
    sl_buffer *buffer = NULL;
    sl_error err = {0};
    fail_at(device, SL__SIM_FAIL, SL__SIM_ALLOC, 2);
    sl_buffer *a = alloc(device, 10);
    assert_int_equal(sl_buffer_alloc(device, 10, &buffer, &err), SL_ENOMEM);
    assert_non_null(strstr(err.msg, "call 2 of alloc"));
    assert_null(buffer);
    assert_int_equal(stats_of(device).live_bytes, 10);
    sl_buffer *b = alloc(device, 10);
    for (long n = 0; n < 2; n++) {
        sl__mem_fail_after(n);
        assert_int_equal(sl_buffer_alloc(device, 10, &buffer, &err), SL_ENOMEM);
        sl__mem_fail_after(-1);
        assert_int_equal(stats_of(device).live_bytes, 20);
    }
    free_buffer(a);
    free_buffer(b);
    sl_device_free(&device);
}

static void test_a_failed_free_keeps_the_memory_booked(void **state)
{
    (void)state;
    sl_device *device = create_small();
    sl_buffer *a = alloc(device, 600);
    sl_error err = {0};
    fail_at(device, SL__SIM_FAIL, SL__SIM_FREE, 1);
    assert_int_equal(sl_buffer_free(&a, &err), SL_EDEVICE);
    assert_null(a);
    assert_int_equal(stats_of(device).live_bytes, 600);
    assert_int_equal(stats_of(device).lost_bytes, 600);
    assert_int_equal(sl_buffer_alloc(device, 600, &a, &err), SL_ENOMEM);
    free_buffer(alloc(device, 400));
    sl_device_free(&device);
}

static void test_a_copy_that_fails_is_seen_behind_it_until_synchronize(void **state)
{
    (void)state;
    sl_device *device = create_small();
    sl_buffer *buffer = alloc(device, 8);
    sl_pinned pinned = pin(device, 8);
    sl_event *before = new_event(device);
    sl_event *behind = new_event(device);
    sl_error err = {0};
    memset(pinned.data, 1, 8);
    fail_at(device, SL__SIM_FAIL, SL__SIM_COPY, 2);
    assert_int_equal(sl_buffer_upload(buffer, 0, pinned.data, 4, &err), 0);
    assert_int_equal(sl_event_record(before, &err), 0);
    assert_int_equal(sl_buffer_upload(buffer, 4, pinned.data, 4, &err), 0);
    assert_int_equal(sl_event_record(behind, &err), 0);
    assert_int_equal(sl_event_wait(behind, &err), SL_EDEVICE);
    assert_int_equal(sl_event_query(behind, &err), SL_EDEVICE);
    assert_int_equal(sl_event_wait(before, &err), 0);
    assert_memory_equal(sl_buffer_host_data(buffer), "\1\1\1\1\xA5\xA5\xA5\xA5", 8);
    assert_int_equal(sl_device_synchronize(device, &err), SL_EDEVICE);
    assert_int_equal(sl_device_synchronize(device, &err), 0);
    assert_int_equal(sl_buffer_upload(buffer, 4, pinned.data, 4, &err), 0);
    assert_int_equal(sl_event_record(behind, &err), 0);
    assert_int_equal(sl_event_wait(behind, &err), 0);
    sl_event_free(&before);
    sl_event_free(&behind);
    sl_pinned_free(&pinned);
    free_buffer(buffer);
    sl_device_free(&device);
}

static void test_calls_fail_once_each(void **state)
{
    (void)state;
    sl_device *device = create_small();
    sl_buffer *buffer = alloc(device, 8);
    sl_event *event = new_event(device);
    sl_event *none = NULL;
    sl_registration *registration = NULL;
    sl_error err = {0};
    fail_at(device, SL__SIM_FAIL, SL__SIM_EVENT, 1);
    assert_int_equal(sl_event_create(device, &none, &err), SL_EDEVICE);
    fail_at(device, SL__SIM_FAIL, SL__SIM_RECORD, 1);
    assert_int_equal(sl_event_record(event, &err), SL_EDEVICE);
    assert_int_equal(sl_event_record(event, &err), 0);
    fail_at(device, SL__SIM_FAIL, SL__SIM_WAIT, 1);
    assert_int_equal(sl_event_wait(event, &err), SL_EDEVICE);
    assert_int_equal(sl_event_wait(event, &err), 0);
    fail_at(device, SL__SIM_FAIL, SL__SIM_UPLOAD, 1);
    assert_int_equal(sl_buffer_upload(buffer, 0, "x", 1, &err), SL_EDEVICE);
    assert_int_equal(sl_buffer_upload(buffer, 0, "x", 1, &err), 0);
    fail_at(device, SL__SIM_FAIL, SL__SIM_REGISTER, 1);
    assert_int_equal(sl_register(device, "xyz", 3, &registration, &err), SL_EDEVICE);
    assert_null(registration);
    fail_at(device, SL__SIM_FAIL, SL__SIM_PIN, 1);
    sl_pinned pinned = pin(device, 8);
    assert_false(pinned.is_pinned);
    sl_pinned_free(&pinned);
    assert_int_equal(stats_of(device).n_events, 1);
    sl_event_free(&event);
    free_buffer(buffer);
    sl_device_free(&device);
}

/* Whatever call loses it: later ones fail, nothing hangs, and everything can be freed. */
static void test_a_lost_device_fails_everything_and_frees_everything(void **state)
{
    (void)state;
    static const sl__sim_call calls[] = {
            SL__SIM_UPLOAD, SL__SIM_COPY, SL__SIM_RECORD, SL__SIM_WAIT, SL__SIM_FREE};
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        sl_device *device = create_small();
        sl_buffer *a = alloc(device, 8);
        sl_buffer *b = alloc(device, 8);
        sl_pinned pinned = pin(device, 8);
        sl_event *event = new_event(device);
        sl_device_info info;
        sl_error err = {0};
        char back[8];
        memset(pinned.data, 1, 8);
        fail_at(device, SL__SIM_LOST, calls[i], 1);
        int r = sl_buffer_upload(a, 0, pinned.data, 8, &err);
        r = sl_event_record(event, &err) < 0 ? -1 : r;
        r = sl_event_wait(event, &err) < 0 ? -1 : r;
        r = sl_buffer_free(&b, &err) < 0 ? -1 : r;
        assert_true(r < 0);
        assert_true(stats_of(device).is_lost);
        assert_int_equal(sl_device_describe(device, &info, &err), SL_EDEVICE);
        assert_int_equal(sl_buffer_alloc(device, 8, &b, &err), SL_EDEVICE);
        assert_int_equal(sl_buffer_upload(a, 0, pinned.data, 8, &err), SL_EDEVICE);
        assert_int_equal(sl_buffer_download(a, 0, back, 8, &err), SL_EDEVICE);
        assert_int_equal(sl_event_wait(event, &err), SL_EDEVICE);
        assert_int_equal(sl_device_synchronize(device, &err), SL_EDEVICE);
        assert_int_equal(stats_of(device).n_queued, 0);
        assert_int_equal(sl_buffer_free(&a, &err), SL_EDEVICE);
        assert_null(a);
        sl_event_free(&event);
        sl_pinned_free(&pinned);
        assert_int_equal(stats_of(device).n_misuses, 0);
        sl_device_free(&device);
    }
}

static void test_G3_12_freeing_under_a_copy_is_found(void **state)
{
    (void)state;
    sl_device *device = create_small();
    sl_buffer *buffer = alloc(device, 8);
    sl_pinned pinned = pin(device, 8);
    sl_error err = {0};
    memset(pinned.data, 1, 8);
    assert_int_equal(sl_buffer_upload(buffer, 0, pinned.data, 4, &err), 0);
    assert_int_equal(sl_buffer_upload(buffer, 4, pinned.data, 4, &err), 0);
    assert_int_equal(sl_buffer_free(&buffer, &err), SL_EDEVICE);
    assert_int_equal(stats_of(device).n_misuses, 2);
    assert_int_equal(stats_of(device).live_bytes, 0);
    assert_int_equal(sl_device_synchronize(device, &err), SL_EDEVICE);

    buffer = alloc(device, 8);
    assert_int_equal(sl_buffer_upload(buffer, 0, pinned.data, 4, &err), 0);
    sl_pinned_free(&pinned);
    assert_int_equal(stats_of(device).n_misuses, 3);
    free_buffer(buffer);
    sl_device_free(&device);
}

typedef struct user {
    sl_event *event;
    int r;
} user;

static void wait_for_event(void *ud)
{
    user *u = ud;
    u->r = sl_event_wait(u->event, NULL);
}

/* Freed memory is there again for a buffer of its size, is not counted as used, and goes with the device. */
static void test_kept_pages_are_used_again(void **state)
{
    (void)state;
    sl_device *device = NULL;
    sl_error err = {0};
    assert_ok(sl_device_create_sim("sim:64K,keep-pages=yes", &device, &err), &err);
    sl_buffer *large = alloc(device, 32768);
    sl_buffer *small = alloc(device, 8192);
    const void *large_data = sl_buffer_host_data(large);
    const void *small_data = sl_buffer_host_data(small);
    assert_int_equal(sl_buffer_free(&small, &err), 0);
    assert_int_equal(sl_buffer_free(&large, &err), 0);
    sl__sim_stats stats;
    sl__sim_get_stats(device, &stats);
    assert_int_equal(stats.live_bytes, 0);
    small = alloc(device, 8192);
    large = alloc(device, 32768);
    sl_buffer *third = alloc(device, 8192);
    assert_ptr_equal(sl_buffer_host_data(small), small_data);
    assert_ptr_equal(sl_buffer_host_data(large), large_data);
    assert_ptr_not_equal(sl_buffer_host_data(third), small_data);
    assert_int_equal(sl_buffer_free(&small, &err), 0);
    assert_int_equal(sl_buffer_free(&third, &err), 0);
    assert_int_equal(sl_buffer_free(&large, &err), 0);
    sl_device_free(&device);
}

/* The device's own thread copies; another one waits; a ring of one slot is used again and again. */
static void test_threads_copy_in_the_background(void **state)
{
    (void)state;
    sl_device *device = NULL;
    sl_error err = {0};
    assert_ok(sl_device_create_sim("sim:1M,link=1G,register=yes", &device, &err), &err);
    sl_buffer *buffer = alloc(device, 4096);
    sl_pinned pinned = pin(device, 16);
    sl_event *event = new_event(device);
    for (unsigned i = 0; i < 256; i++) {
        memset(pinned.data, (int)i, 16);
        assert_int_equal(sl_buffer_upload(buffer, (uint64_t)i * 16, pinned.data, 16, &err), 0);
        assert_int_equal(sl_event_record(event, &err), 0);
        user u = {.event = event, .r = 1};
        sl__thread thread = {0};
        assert_ok(sl__thread_start(&thread, "waiter", wait_for_event, &u, &err), &err);
        assert_int_equal(sl_event_wait(event, &err), 0);
        sl__thread_join(&thread);
        assert_int_equal(u.r, 0);
    }
    unsigned char back[4096];
    assert_int_equal(sl_buffer_download(buffer, 0, back, 4096, &err), 0);
    for (size_t i = 0; i < sizeof back; i++) {
        assert_int_equal(back[i], i / 16);
    }
    sl_event_free(&event);
    sl_pinned_free(&pinned);
    free_buffer(buffer);
    sl_device_free(&device);
}

/* More copies than the queue holds: upload waits for room, by thread and by hand. */
static void test_a_full_queue_makes_room(void **state)
{
    (void)state;
    for (int is_stepped = 0; is_stepped < 2; is_stepped++) {
        sl__sim_spec spec = small_spec();
        spec.is_stepped = is_stepped == 1;
        sl_device *device = create(&spec);
        sl_buffer *buffer = alloc(device, 500);
        sl_pinned pinned = pin(device, 1);
        sl_error err = {0};
        memset(pinned.data, 9, 1);
        for (uint64_t i = 0; i < 500; i++) {
            assert_int_equal(sl_buffer_upload(buffer, i, pinned.data, 1, &err), 0);
        }
        assert_int_equal(sl_device_synchronize(device, &err), 0);
        const unsigned char *seen = sl_buffer_host_data(buffer);
        for (size_t i = 0; i < 500; i++) {
            assert_int_equal(seen[i], 9);
        }
        sl_pinned_free(&pinned);
        free_buffer(buffer);
        sl_device_free(&device);
    }
}

static void test_G3_13_reads_of_the_file_fail_as_asked(void **state)
{
    (void)state;
    char *dir = test_dir_create();
    char path[4200];
    char back[4];
    sl_map *map = NULL;
    sl_error err = {0};
    sl_device *device = create_small();
    test_write_file(test_path(path, sizeof path, dir, "file"), "abcdef", 6);
    assert_ok(sl_map_open(path, &map, &err), &err);
    assert_int_equal(sl__sim_read(device, map, back, 2, 4, &err), 0);
    assert_memory_equal(back, "cdef", 4);
    fail_at(device, SL__SIM_FAIL, SL__SIM_READ, 1);
    assert_int_equal(sl__sim_read(device, map, back, 2, 4, &err), SL_EIO);
    fail_at(device, SL__SIM_SHORT, SL__SIM_READ, 1);
    assert_int_equal(sl__sim_read(device, map, back, 2, 4, &err), SL_ECHANGED);
    assert_non_null(strstr(err.msg, path));
    fail_at(device, SL__SIM_LOST, SL__SIM_READ, 1);
    assert_int_equal(sl__sim_read(device, map, back, 2, 4, &err), 0);
    assert_true(stats_of(device).is_lost);
    sl_map_close(&map);
    sl_device_free(&device);
    test_dir_remove(dir);
}

static void test_creation_fails_cleanly(void **state)
{
    (void)state;
    const sl__sim_spec spec = small_spec();
    sl__sim_spec threaded = spec;
    threaded.is_stepped = false;
    sl_device *device = NULL;
    sl_error err = {0};
    for (long n = 0; n < 3; n++) {
        sl__mem_fail_after(n);
        assert_int_equal(sl__sim_create(n < 2 ? &spec : &threaded, &device, &err), SL_ENOMEM);
        sl__mem_fail_after(-1);
        assert_null(device);
    }
    assert_int_equal(sl_device_create_sim("sim:x", &device, &err), SL_EINVAL);
    assert_null(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_the_account_is_exact),
            cmocka_unit_test(test_G3_06_the_largest_allocation_is_a_limit_of_its_own),
            cmocka_unit_test(test_copies_happen_in_order_and_when_stepped),
            cmocka_unit_test(test_plain_memory_is_copied_before_upload_returns),
            cmocka_unit_test(test_registered_memory_is_copied_asynchronously),
            cmocka_unit_test(test_the_virtual_clock_counts_the_link_and_slow_calls),
            cmocka_unit_test(test_G3_05_a_failed_alloc_changes_nothing),
            cmocka_unit_test(test_a_failed_free_keeps_the_memory_booked),
            cmocka_unit_test(test_a_copy_that_fails_is_seen_behind_it_until_synchronize),
            cmocka_unit_test(test_calls_fail_once_each),
            cmocka_unit_test(test_a_lost_device_fails_everything_and_frees_everything),
            cmocka_unit_test(test_G3_12_freeing_under_a_copy_is_found),
            cmocka_unit_test(test_threads_copy_in_the_background),
            cmocka_unit_test(test_kept_pages_are_used_again),
            cmocka_unit_test(test_a_full_queue_makes_room),
            cmocka_unit_test(test_G3_13_reads_of_the_file_fail_as_asked),
            cmocka_unit_test(test_creation_fails_cleanly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
