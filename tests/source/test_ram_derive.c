#include <string.h>

#include "fake_machine.h"
#include "test_support.h"

#include "base/mem.h"
#include "source/ram_derive.h"

static void test_memory_may_run_out_at_any_step(void **state)
{
    fake_machine *m = *state;
    int n_failed = 0;
    fake_groups(m, "0::/a\n4:memory:/a\n", CGROUP2_LINE CGROUP1_LINE);
    fake_put(m, V2 "/a/memory.max", "4294967296\n");
    fake_put(m, V2 "/a/memory.stat", "inactive_file 5\n");
    fake_put(m, V1 "/a/memory.limit_in_bytes", "4294967296\n");
    for (long i = 0;; i++) {
        sl_error err = {0};
        sl_ram_opts opts = {.root = m->root};
        sl_ram_budget b = {.budget_bytes = 7};
        sl__mem_fail_after(i);
        int r = sl_ram_budget_read(&opts, &b, &err);
        sl__mem_fail_after(-1);
        if (r == 0) {
            assert_int_equal(b.n_bounds, 3);
            sl_ram_budget_done(&b);
            break;
        }
        assert_int_equal(r, SL_ENOMEM);
        assert_int_equal(b.budget_bytes, 7);
        n_failed++;
    }
    assert_true(n_failed > 30);
}

static void test_names_are_escaped_and_long_ones_cut(void **state)
{
    fake_machine *m = *state;
    fake_groups(m, "0::/a\x1b[2J\n", CGROUP2_LINE);
    fake_put(m, V2 "/a\x1b[2J/memory.max", "1073741824\n");
    assert_string_equal(fake_expect(m, GIB, GIB), V2 "/a\\x1b[2J/memory.max");
    for (size_t i = 0; i < m->budget.n_lines; i++) {
        assert_null(strchr(m->budget.lines[i].source, '\x1b'));
    }
}

static void test_every_number_has_its_source(void **state)
{
    fake_machine *m = *state;
    fake_groups(m, "0::/a\n", CGROUP2_LINE);
    fake_put(m, V2 "/a/memory.max", "17179869184\n");
    fake_put(m, V2 "/a/memory.current", "3221225472\n");
    fake_put(m, V2 "/a/memory.stat", "inactive_file 1073741824\nactive_file 0\n");
    fake_expect(m, 16 * GIB, 14 * GIB);
    assert_string_equal(fake_line(m, "MemTotal")->source, "/proc/meminfo");
    assert_string_equal(fake_line(m, "MemAvailable")->source, "/proc/meminfo");
    assert_string_equal(fake_line(m, "limit")->source, V2 "/a/memory.max");
    assert_string_equal(fake_line(m, "current use")->source, V2 "/a/memory.current");
    assert_string_equal(fake_line(m, "clean file cache")->source, V2 "/a/memory.stat");
    assert_int_equal(fake_line(m, "clean file cache")->bytes, GIB);
    assert_string_equal(fake_line(m, "reserve")->source, "rule");
    assert_int_equal(m->budget.budget_bytes, 12 * GIB);
}

static void test_a_file_of_zeros_bounds_nothing(void **state)
{
    fake_machine *m = *state;
    static const char zeros[8192];
    fake_groups(m, "0::/a\n", CGROUP2_LINE);
    fake_put_bytes(m, V2 "/a/memory.max", zeros, sizeof zeros);
    fake_put_bytes(m, "/proc/spl/kstat/zfs/arcstats", zeros, sizeof zeros);
    fake_expect_unbounded(m);
    fake_put_bytes(m, "/proc/self/mountinfo", zeros, sizeof zeros);
    fake_put_bytes(m, "/proc/self/cgroup", zeros, sizeof zeros);
    fake_expect_unbounded(m);
    fake_put_bytes(m, "/proc/meminfo", zeros, sizeof zeros);
    assert_false(fake_derive(m)->is_known);
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, fake_set_up, fake_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
            CASE(test_memory_may_run_out_at_any_step),
            CASE(test_names_are_escaped_and_long_ones_cut),
            CASE(test_every_number_has_its_source),
            CASE(test_a_file_of_zeros_bounds_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
