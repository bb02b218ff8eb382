/* The host's bound, and how the bounds come together. */
#include <string.h>

#include "fake_machine.h"
#include "test_support.h"

#include "base/mem.h"

#define OLLAMA_STAT                                                                                \
    "anon 472446402\nfile 26875691827\ninactive_file 11499775959\nactive_file "                    \
    "15279342060\nfile_dirty 0\n"

static void lay_out_cached_weights(const fake_machine *m, const char *limit)
{
    fake_put(m, "/proc/meminfo",
            "MemTotal: 34361835 kB\nMemFree: 500000 kB\nMemAvailable: 32000000 kB\n");
    fake_groups(m, "0::/ollama\n", CGROUP2_LINE);
    fake_put(m, V2 "/ollama/memory.max", limit);
    fake_put(m, V2 "/ollama/memory.current", "27584417792\n");
    fake_put(m, V2 "/ollama/memory.stat", OLLAMA_STAT);
}

static void test_G2_19_cached_weights_are_not_use_without_a_limit(void **state)
{
    fake_machine *m = *state;
    lay_out_cached_weights(m, "max\n");
    fake_expect_unbounded(m);
    assert_int_equal(m->budget.available_bytes, 32768000000);
}

static void test_G2_19_cached_weights_are_not_use_below_a_limit(void **state)
{
    fake_machine *m = *state;
    lay_out_cached_weights(m, "34359738368\n");
    fake_expect(m, 34359738368, 32768000000);
    assert_int_equal(m->budget.n_bounds, 2);
    const sl_ram_bound *cgroup = &m->budget.bounds[0];
    assert_int_equal(cgroup->kind, SL_RAM_CGROUP_MAX);
    assert_int_equal(cgroup->available_bytes, 33554438595);
    /* Dirty pages have to be written first. */
    fake_put(m, V2 "/ollama/memory.stat",
            "inactive_file 11499775959\nactive_file 15279342060\nfile_dirty 1000000000\n");
    fake_derive(m);
    assert_int_equal(m->budget.bounds[0].available_bytes, 32554438595);
    assert_int_equal(m->budget.available_bytes, 32554438595);
}

static void test_G2_21_lxcfs_without_a_witness(void **state)
{
    fake_machine *m = *state;
    fake_put(m, "/proc/meminfo",
            "MemTotal: 4194304 kB\nMemFree: 4760 kB\nMemAvailable: 4760 kB\nCached: 3900000 kB\n");
    fake_expect_unbounded(m);
    assert_int_equal(m->budget.available_bytes, 4760 * KIB);
    assert_int_equal(m->budget.budget_bytes, 0);
    assert_non_null(fake_line(m, "--ram"));
    assert_true(fake_line(m, "--ram")->is_warning);
}

static void test_G2_21_lxcfs_with_the_word_of_the_cgroup(void **state)
{
    fake_machine *m = *state;
    fake_put(m, "/proc/meminfo",
            "MemTotal: 4194304 kB\nMemFree: 4760 kB\nMemAvailable: 4760 kB\nCached: 3900000 kB\n");
    fake_groups(m, "0::/\n", CGROUP2_LINE);
    fake_put(m, V2 "/memory.max", "max\n");
    fake_put(m, V2 "/memory.stat", "inactive_file 3072000000\nactive_file 900000000\n");
    fake_expect_unbounded(m);
    assert_int_equal(m->budget.available_bytes, 4760 * KIB + 3072000000);
    assert_true(m->budget.is_estimate);
    /* It vouches for no more than Cached. */
    fake_put(m, V2 "/memory.stat", "inactive_file 99999999999\n");
    fake_expect_unbounded(m);
    assert_int_equal(m->budget.available_bytes, 4760 * KIB + 3900000 * KIB);
    /* With a MemAvailable of its own nothing is corrected. */
    fake_put(m, "/proc/meminfo",
            "MemTotal: 4194304 kB\nMemFree: 4760 kB\nMemAvailable: 4761 kB\nCached: 3900000 kB\n");
    fake_expect_unbounded(m);
    assert_int_equal(m->budget.available_bytes, 4761 * KIB);
    assert_false(m->budget.is_estimate);
}

static void expect_unknown(fake_machine *m)
{
    const sl_ram_budget *b = fake_derive(m);
    assert_false(b->is_known);
    assert_int_equal(b->budget_bytes, 0);
    assert_int_equal(b->available_bytes, 0);
    assert_null(sl_ram_decided(b));
    assert_non_null(fake_line(m, "--ram"));
    sl_error err = {0};
    sl_ram_opts opts = {.root = m->root, .has_given = true, .given_bytes = 5 * GIB};
    sl_ram_budget given = {0};
    assert_ok(sl_ram_budget_read(&opts, &given, &err), &err);
    assert_true(given.is_known);
    assert_int_equal(given.budget_bytes, 5 * GIB);
    sl_ram_budget_done(&given);
}

static void test_G2_21_meminfo_that_says_nothing(void **state)
{
    static const char *const texts[] = {"", "\n", "MemTotal: 0 kB\n",
            "MemTotal: 0 kB\nMemFree: 0 kB\n", "MemTotal: 16 kB\n", "MemTotal\nMemAvailable\n",
            "\xEF\xBB\xBF", "MemAvailable: -1 kB\n",
            "MemTotal: 1000 kB\nMemAvailable: 9999999999999999999999 kB\n",
            "MemTotal: 1000 kB\nMemAvailable: 1000001 kB\n"};
    fake_machine *m = *state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        fake_put(m, "/proc/meminfo", texts[i]);
        expect_unknown(m);
    }
    fake_remove(m, "/proc/meminfo");
    expect_unknown(m);
    fake_put(m, "/proc/meminfo/x", "a folder");
    expect_unknown(m);
    /* A limit alone does not say what the host has; it is shown all the same. */
    fake_groups(m, "0::/\n", CGROUP2_LINE);
    fake_put(m, V2 "/memory.max", "17179869184\n");
    expect_unknown(m);
    assert_int_equal(m->budget.limit_bytes, 16 * GIB);
}

static void test_G2_22_estimate_without_memavailable(void **state)
{
    static const char *const texts[] = {
            "MemTotal: 16000000 kB\nMemFree: 2000000 kB\nBuffers: 100000 kB\nCached: 6000000 kB\n"
            "Shmem: 500000 kB\nSReclaimable: 400000 kB\n",
            "SReclaimable:   400000 kB\r\nShmem: 500000 kB\r\nMemAvailable:\r\nCached: 6000000 "
            "kB\r\n"
            "Buffers: 100000 kB\r\nMemFree: 2000000 kB\r\nMemTotal: 16000000 kB\r\n",
            "MemTotal: 16000000 kB\nMemFree: 2000000 kB\nMemAvailable: 12345678901234567890 kB\n"
            "Buffers: 100000 kB\nCached: 6000000 kB\nShmem: 500000 kB\nSReclaimable: 400000 kB",
            "MemTotal: 16000000 kB\nMemFree: 2000000 kB\nMemAvailable: 16000001 kB\n"
            "Buffers: 100000 kB\nCached: 6000000 kB\nShmem: 500000 kB\nSReclaimable: 400000 kB",
    };
    fake_machine *m = *state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        fake_put(m, "/proc/meminfo", texts[i]);
        fake_expect_unbounded(m);
        assert_int_equal(m->budget.available_bytes, 8000000 * KIB);
        assert_true(m->budget.is_estimate);
        assert_non_null(fake_line(m, "estimate"));
    }
}

static void test_G2_25_the_arc_of_zfs_is_named_and_not_counted(void **state)
{
    fake_machine *m = *state;
    fake_put(
            m, "/proc/meminfo", "MemTotal: 33554432 kB\nMemFree: 1 kB\nMemAvailable: 3000000 kB\n");
    fake_put(m, "/proc/spl/kstat/zfs/arcstats",
            "13 1 0x01 96 26112 3600 4000\nname type data\nsize 4 12884901888 extra\nc_min 4 "
            "1073741824\n");
    fake_expect_unbounded(m);
    assert_int_equal(m->budget.available_bytes, 3000000 * KIB);
    const sl_ram_line *line = fake_line(m, "could be given back");
    assert_non_null(line);
    assert_int_equal(line->bytes, 11 * GIB);
    assert_string_equal(line->source, "/proc/spl/kstat/zfs/arcstats");
    static const char *const broken[] = {"", "size\n", "size 4\nc_min 4\n", "size 4 x\nc_min 4 y\n",
            "size 4 1\nc_min 4 1073741824\n", "size 4 12884901888\n"};
    for (size_t i = 0; i < sizeof broken / sizeof broken[0]; i++) {
        fake_put(m, "/proc/spl/kstat/zfs/arcstats", broken[i]);
        fake_expect_unbounded(m);
        assert_null(fake_line(m, "could be given back"));
    }
}

static void test_reserves(void **state)
{
    fake_machine *m = *state;
    fake_put(m, "/proc/meminfo", "MemTotal: 16777216 kB\nMemAvailable: 8388608 kB\n");
    fake_expect_unbounded(m);
    assert_int_equal(sl_ram_decided(&m->budget)->reserve_bytes, 2 * GIB);
    assert_int_equal(m->budget.budget_bytes, 6 * GIB);
    fake_put(m, "/proc/meminfo", "MemTotal: 134217728 kB\nMemAvailable: 67108864 kB\n");
    fake_expect_unbounded(m);
    assert_int_equal(sl_ram_decided(&m->budget)->reserve_bytes, 8 * GIB);
    assert_int_equal(m->budget.budget_bytes, 56 * GIB);
    fake_put(m, "/proc/meminfo", "MemTotal: 16777216 kB\nMemAvailable: 2097152 kB\n");
    fake_expect_unbounded(m);
    assert_int_equal(m->budget.budget_bytes, 0);
    fake_put(m, "/proc/meminfo", "MemAvailable: 8388608 kB\n");
    fake_expect_unbounded(m);
    assert_int_equal(m->budget.budget_bytes, 6 * GIB);
}

/* The smallest budget decides, which need not be the smallest availability. */
static void test_the_smallest_budget_decides(void **state)
{
    fake_machine *m = *state;
    fake_put(
            m, "/proc/meminfo", "MemTotal: 134217728 kB\nMemAvailable: 20971520 kB\n"); /* 20 - 8 */
    fake_groups(m, "0::/\n", CGROUP2_LINE);
    fake_put(m, V2 "/memory.max", "19327352832\n"); /* 18 - 2 */
    fake_put(m, V2 "/memory.current", "0\n");
    fake_derive(m);
    assert_int_equal(m->budget.budget_bytes, 12 * GIB);
    assert_int_equal(m->budget.available_bytes, 18 * GIB);
    assert_int_equal(sl_ram_decided(&m->budget)->kind, SL_RAM_HOST);
    fake_put(m, V2 "/memory.max", "12884901888\n");
    fake_derive(m);
    assert_int_equal(m->budget.budget_bytes, 10 * GIB);
    assert_string_equal(sl_ram_decided(&m->budget)->source, V2 "/memory.max");
}

static void test_a_given_budget(void **state)
{
    fake_machine *m = *state;
    sl_error err = {0};
    sl_ram_opts opts = {.root = m->root, .has_given = true, .given_bytes = 0};
    assert_ok(sl_ram_budget_read(&opts, &m->budget, &err), &err);
    assert_int_equal(m->budget.budget_bytes, 0);
    assert_int_equal(sl_ram_decided(&m->budget)->kind, SL_RAM_GIVEN);
    assert_int_equal(m->budget.available_bytes, 32 * GIB);
}

static void test_every_kind_has_a_name(void **state)
{
    (void)state;
    for (int i = 0; i < SL_RAM_BOUND_KIND_COUNT; i++) {
        assert_true(strlen(sl_ram_bound_name((sl_ram_bound_kind)i)) > 0);
    }
    assert_string_equal(sl_ram_bound_name(SL_RAM_BOUND_KIND_COUNT), "unknown");
}

static void test_this_machine_gives_an_answer(void **state)
{
    sl_error err = {0};
    sl_ram_budget b = {0};
    (void)state;
    assert_ok(sl_ram_budget_read(NULL, &b, &err), &err);
    assert_true(b.is_known);
    assert_true(b.budget_bytes <= b.available_bytes);
    assert_true(b.available_bytes <= b.total_bytes);
    sl_ram_budget_done(&b);
    sl_ram_budget_done(&b);
    sl_ram_budget_done(NULL);
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, fake_set_up, fake_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
            CASE(test_G2_19_cached_weights_are_not_use_without_a_limit),
            CASE(test_G2_19_cached_weights_are_not_use_below_a_limit),
            CASE(test_G2_21_lxcfs_without_a_witness),
            CASE(test_G2_21_lxcfs_with_the_word_of_the_cgroup),
            CASE(test_G2_21_meminfo_that_says_nothing),
            CASE(test_G2_22_estimate_without_memavailable),
            CASE(test_G2_25_the_arc_of_zfs_is_named_and_not_counted),
            CASE(test_reserves),
            CASE(test_the_smallest_budget_decides),
            CASE(test_a_given_budget),
            CASE(test_every_kind_has_a_name),
            CASE(test_this_machine_gives_an_answer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
