/* The line that says how a population went. */
#include <string.h>

#include "test_support.h"

#include "sluice/populate.h"

#define MIB (UINT64_C(1) << 20)

static char source[] = "/sys/fs/cgroup/memory.max";
static sl_ram_bound bound = {.kind = SL_RAM_CGROUP_MAX, .source = source};

static const char *text_of(const sl_populate_result *res, bool is_known)
{
    static char buf[512];
    sl_ram_budget ram = {.is_known = is_known, .bounds = &bound, .n_bounds = 1};
    ram.budget_bytes = is_known ? 64 * MIB : 0;
    return sl_populate_text(res, &ram, buf, sizeof buf);
}

static void test_the_line(void **state)
{
    (void)state;
    sl_populate_result res = {.end = SL_POPULATE_SKIPPED,
            .wanted_bytes = 15 * MIB,
            .cached_bytes = 3 * MIB,
            .charged_bytes = 4 * MIB,
            .populated_bytes = 7 * MIB,
            .skipped_bytes = 8 * MIB,
            .n_files_skipped = 1};
    assert_string_equal(text_of(&res, true),
            "7.0 MiB present (3.0 MiB of it were cached before), 8.0 MiB skipped; budget 64.0 MiB, "
            "decided by cgroup memory.max (/sys/fs/cgroup/memory.max)");
    assert_non_null(strstr(
            text_of(&res, false), "budget 0 B, decided by memory unknown (see 'sluice doctor')"));
}

static void test_what_went_wrong_is_said(void **state)
{
    (void)state;
    sl_populate_result res = {.end = SL_POPULATE_PRESSURE, .charged_bytes = 4 * MIB};
    res.populated_bytes = MIB;
    res.is_fallback = true;
    const char *text = text_of(&res, true);
    assert_non_null(strstr(text, "1.0 MiB present (0 B of it were cached before)"));
    assert_non_null(strstr(text, "; stopped: memory ran short"));
    assert_non_null(strstr(text, "lacks MADV_POPULATE_READ"));
}

static void test_a_small_buffer_is_ended(void **state)
{
    (void)state;
    char buf[8];
    sl_ram_budget ram = {0};
    sl_populate_result res = {0};
    assert_string_equal(sl_populate_text(&res, &ram, buf, sizeof buf), "0 B pre");
}

static void test_every_end_has_a_name(void **state)
{
    (void)state;
    for (int i = 0; i < SL_POPULATE_END_COUNT; i++) {
        assert_true(strlen(sl_populate_end_name((sl_populate_end)i)) > 0);
    }
    assert_string_equal(sl_populate_end_name(SL_POPULATE_END_COUNT), "unknown");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_the_line),
            cmocka_unit_test(test_what_went_wrong_is_said),
            cmocka_unit_test(test_a_small_buffer_is_ended),
            cmocka_unit_test(test_every_end_has_a_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
