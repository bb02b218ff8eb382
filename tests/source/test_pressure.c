/* What the kernel says of memory that gets short, on a folder that stands for the machine. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "fake_machine.h"
#include "source/pressure.h"
#include "test_support.h"

#define PSI    "/proc/pressure/memory"
#define GROUP  "/sys/fs/cgroup/a"
#define SECOND UINT64_C(1000000000)

static char why[192];

static void put_psi(const fake_machine *m, const char *path, unsigned some_us, unsigned full_us)
{
    char text[256];
    snprintf(text, sizeof text,
            "some avg10=0.00 avg60=0.00 avg300=0.00 total=%u\n"
            "full avg10=0.00 avg60=0.00 avg300=0.00 total=%u\n",
            some_us, full_us);
    fake_put(m, path, text);
}

/* A group of version 2 with a limit, which bounds the budget. */
static void put_group(const fake_machine *m)
{
    fake_groups(m, "0::/a\n", CGROUP2_LINE);
    fake_put(m, GROUP "/memory.max", "8589934592\n");
    fake_put(m, GROUP "/memory.high", "4294967296\n");
    fake_put(m, GROUP "/memory.current", "1048576\n");
    fake_put(m, GROUP "/memory.events", "low 0\nhigh 7\nmax 9\noom 0\noom_kill 0\n");
}

static sl__pressure begin(fake_machine *m)
{
    sl_error err = {0};
    sl__pressure p;
    const sl_ram_budget *ram = fake_derive(m);
    assert_ok(sl__pressure_begin(m->root, ram, SECOND, &p, &err), &err);
    return p;
}

static void test_G2_29_tasks_that_stand_still(void **state)
{
    fake_machine *m = *state;
    put_psi(m, PSI, 5000000, 4000000);
    sl__pressure p = begin(m);
    put_psi(m, PSI, 5290000, 4090000);
    assert_false(sl__pressure_rose(&p, 2 * SECOND, why, sizeof why));
    put_psi(m, PSI, 5600000, 4090000);
    assert_true(sl__pressure_rose(&p, 3 * SECOND, why, sizeof why));
    assert_string_equal(why, PSI ": some tasks stood still 30% of the time");
    put_psi(m, PSI, 5600000, 4210000);
    assert_true(sl__pressure_rose(&p, 4 * SECOND, why, sizeof why));
    assert_non_null(strstr(why, "all tasks stood still"));
    assert_false(sl__pressure_rose(&p, 5 * SECOND, why, sizeof why));
    sl__pressure_done(&p);
}

static void test_a_moment_is_no_measure(void **state)
{
    fake_machine *m = *state;
    put_psi(m, PSI, 0, 0);
    sl__pressure p = begin(m);
    put_psi(m, PSI, 100000, 100000);
    assert_false(sl__pressure_rose(&p, SECOND + SL_PRESSURE_MIN_NS - 1, why, sizeof why));
    assert_true(sl__pressure_rose(&p, SECOND + SL_PRESSURE_MIN_NS, why, sizeof why));
    sl__pressure_done(&p);
}

static void test_G2_24_a_group_that_is_throttled(void **state)
{
    fake_machine *m = *state;
    put_group(m);
    sl__pressure p = begin(m);
    fake_put(m, GROUP "/memory.events", "low 1\nhigh 7\nmax 12\noom 0\noom_kill 0\n");
    assert_false(sl__pressure_rose(&p, SECOND, why, sizeof why));
    fake_put(m, GROUP "/memory.events", "low 1\nhigh 9\nmax 12\noom 0\noom_kill 0\n");
    assert_true(sl__pressure_rose(&p, SECOND, why, sizeof why));
    assert_string_equal(why, GROUP "/memory.events: high rose by 2");
    fake_put(m, GROUP "/memory.events", "low 1\nhigh 9\nmax 12\noom 0\noom_kill 1\n");
    assert_true(sl__pressure_rose(&p, SECOND, why, sizeof why));
    assert_non_null(strstr(why, "oom_kill rose by 1"));
    assert_false(sl__pressure_rose(&p, SECOND, why, sizeof why));
    sl__pressure_done(&p);
}

static void test_G2_29_a_group_that_stalls(void **state)
{
    fake_machine *m = *state;
    put_group(m);
    put_psi(m, GROUP "/memory.pressure", 0, 0);
    sl__pressure p = begin(m);
    put_psi(m, GROUP "/memory.pressure", 900000, 0);
    assert_true(sl__pressure_rose(&p, 2 * SECOND, why, sizeof why));
    assert_non_null(strstr(why, GROUP "/memory.pressure: some"));
    sl__pressure_done(&p);
}

static void test_G2_29_a_group_of_version_1(void **state)
{
    fake_machine *m = *state;
    fake_groups(m, "4:memory:/b\n", CGROUP1_LINE);
    fake_put(m, V1 "/b/memory.limit_in_bytes", "8589934592\n");
    fake_put(m, V1 "/b/memory.usage_in_bytes", "1048576\n");
    fake_put(m, V1 "/b/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n");
    sl__pressure p = begin(m);
    assert_false(sl__pressure_rose(&p, SECOND, why, sizeof why));
    fake_put(m, V1 "/b/memory.oom_control", "oom_kill_disable 0\nunder_oom 1\noom_kill 3\n");
    assert_true(sl__pressure_rose(&p, SECOND, why, sizeof why));
    assert_string_equal(why, V1 "/b/memory.oom_control: under_oom rose by 1");
    sl__pressure_done(&p);
}

static void test_files_that_say_nothing(void **state)
{
    static const char *const texts[] = {"", "\n\n", "some\n", "some avg10=0.00 total=\n",
            "some total=99999999999999999999999\n", "full total=x", "somewhere total=9\n"};
    fake_machine *m = *state;
    sl__pressure p = begin(m);
    assert_false(sl__pressure_rose(&p, 9 * SECOND, why, sizeof why));
    sl__pressure_done(&p);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        put_psi(m, PSI, 0, 0);
        p = begin(m);
        fake_put(m, PSI, texts[i]);
        assert_false(sl__pressure_rose(&p, 9 * SECOND, why, sizeof why));
        fake_remove(m, PSI);
        assert_false(sl__pressure_rose(&p, 9 * SECOND, why, sizeof why));
        sl__pressure_done(&p);
    }
}

static void test_memory_may_run_out(void **state)
{
    fake_machine *m = *state;
    int n_failed = 0;
    put_group(m);
    put_psi(m, PSI, 0, 0);
    put_psi(m, GROUP "/memory.pressure", 0, 0);
    const sl_ram_budget *ram = fake_derive(m);
    for (long n = 0; n < 60; n++) {
        sl_error err = {0};
        sl__pressure p = {0};
        sl__mem_fail_after(n);
        int r = sl__pressure_begin(m->root, ram, SECOND, &p, &err);
        sl__mem_fail_after(-1);
        assert_true(r == 0 || r == SL_ENOMEM);
        n_failed += r != 0;
        sl__pressure_done(&p);
    }
    assert_true(n_failed > 2);
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, fake_set_up, fake_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
            CASE(test_G2_29_tasks_that_stand_still),
            CASE(test_a_moment_is_no_measure),
            CASE(test_G2_24_a_group_that_is_throttled),
            CASE(test_G2_29_a_group_that_stalls),
            CASE(test_G2_29_a_group_of_version_1),
            CASE(test_files_that_say_nothing),
            CASE(test_memory_may_run_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
