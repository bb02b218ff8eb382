#include "test_support.h"

#include <string.h>

#include "base/mem.h"
#include "sluice/device.h"

static int set_up(void **state)
{
    sl_error err = {0};
    return sl_device_create_host((sl_device **)state, &err);
}

static int tear_down(void **state)
{
    sl_device_free((sl_device **)state);
    return 0;
}

static void test_describes_itself(void **state)
{
    sl_device_info info;
    sl_error err = {0};
    assert_ok(sl_device_describe(*state, &info, &err), &err);
    assert_string_equal(info.name, "host");
    assert_int_equal(info.kind, SL_DEVICE_HOST);
    assert_true(info.can_wrap && info.is_unified);
    assert_false(info.is_async || info.has_pinned || info.can_register);
    assert_int_equal(info.total_bytes, 0);
}

static void test_wraps_memory_in_place(void **state)
{
    static const char bytes[] = "weights";
    char back[sizeof bytes];
    sl_buffer *buffer = NULL;
    sl_error err = {0};
    assert_ok(sl_buffer_wrap(*state, bytes, sizeof bytes, &buffer, &err), &err);
    assert_ptr_equal(sl_buffer_host_data(buffer), bytes);
    assert_int_equal(sl_buffer_download(buffer, 0, back, sizeof back, &err), 0);
    assert_string_equal(back, bytes);
    assert_int_equal(sl_buffer_upload(buffer, 0, back, 1, &err), SL_EINVAL);
    assert_int_equal(sl_buffer_free(&buffer, &err), 0);
}

static void test_copies_are_done_at_once(void **state)
{
    char bytes[] = "abcdef";
    char back[4] = {0};
    sl_buffer *buffer = NULL;
    sl_event *event = NULL;
    sl_error err = {0};
    assert_ok(sl_buffer_alloc(*state, 5000, &buffer, &err), &err);
    assert_int_equal((uintptr_t)sl_buffer_host_data(buffer) % 64, 0);
    assert_ok(sl_event_create(*state, &event, &err), &err);
    assert_int_equal(sl_event_wait(event, &err), 0);
    assert_int_equal(sl_buffer_upload(buffer, 4990, bytes, 6, &err), 0);
    memset(bytes, 'x', 6);
    assert_int_equal(sl_event_record(event, &err), 0);
    assert_int_equal(sl_event_query(event, &err), 1);
    assert_int_equal(sl_event_wait(event, &err), 0);
    assert_int_equal(sl_buffer_download(buffer, 4992, back, 3, &err), 0);
    assert_string_equal(back, "cde");
    assert_int_equal(sl_device_synchronize(*state, &err), 0);
    sl_event_free(&event);
    assert_int_equal(sl_buffer_free(&buffer, &err), 0);
}

static void test_G3_05_absurd_sizes_and_no_heap_fail_cleanly(void **state)
{
    sl_buffer *buffer = NULL;
    sl_error err = {0};
    assert_int_equal(sl_buffer_alloc(*state, UINT64_MAX, &buffer, &err), SL_ENOMEM);
    assert_int_equal(sl_buffer_alloc(*state, UINT64_MAX / 2, &buffer, &err), SL_ENOMEM);
    for (long n = 0; n < 2; n++) {
        sl__mem_fail_after(n);
        assert_int_equal(sl_buffer_alloc(*state, 100, &buffer, &err), SL_ENOMEM);
        sl__mem_fail_after(n);
        assert_int_equal(sl_buffer_wrap(*state, &err, 8, &buffer, &err), SL_ENOMEM);
    }
    sl__mem_fail_after(-1);
    assert_null(buffer);
    assert_ok(sl_buffer_alloc(*state, 100, &buffer, &err), &err);
    assert_int_equal(sl_buffer_free(&buffer, &err), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test_setup_teardown(test_describes_itself, set_up, tear_down),
            cmocka_unit_test_setup_teardown(test_wraps_memory_in_place, set_up, tear_down),
            cmocka_unit_test_setup_teardown(test_copies_are_done_at_once, set_up, tear_down),
            cmocka_unit_test_setup_teardown(
                    test_G3_05_absurd_sizes_and_no_heap_fail_cleanly, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
