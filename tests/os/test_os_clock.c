#include "test_support.h"

#include "os/os_clock.h"

static void test_time_never_goes_back(void **state)
{
    uint64_t before = sl__now_ns();
    (void)state;
    for (int i = 0; i < 1000; i++) {
        uint64_t now = sl__now_ns();
        assert_true(now >= before);
        before = now;
    }
}

static void test_time_goes_on(void **state)
{
    uint64_t start = sl__now_ns();
    (void)state;
    assert_true(start > 0);
    while (sl__now_ns() == start) {
    }
    assert_true(sl__now_ns() > start);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_time_never_goes_back),
            cmocka_unit_test(test_time_goes_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
