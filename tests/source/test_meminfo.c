#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "test_support.h"

#include "source/meminfo.h"

static sl_span span(const char *text)
{
    return (sl_span){text, strlen(text)};
}

static void test_G2_03_limit_files(void **state)
{
    static const struct {
        const char *text;
        bool is_v1;
        sl__limit_kind kind;
        uint64_t bytes;
    } rows[] = {
            {"max\n", false, SL_LIMIT_NONE, 0},
            {"max", false, SL_LIMIT_NONE, 0},
            {" max \r\n", false, SL_LIMIT_NONE, 0},
            {"\xEF\xBB\xBFmax\n", false, SL_LIMIT_NONE, 0},
            {"1073741824\n", false, SL_LIMIT_VALUE, 1073741824},
            {"1073741824", false, SL_LIMIT_VALUE, 1073741824},
            {"1073741824\r\n", false, SL_LIMIT_VALUE, 1073741824},
            {"\xEF\xBB\xBF"
             "1073741824\n",
                    false, SL_LIMIT_VALUE, 1073741824},
            {" 4096 \n", false, SL_LIMIT_VALUE, 4096},
            {"0\n", false, SL_LIMIT_VALUE, 0},
            {"000000000000000000000000004096", false, SL_LIMIT_VALUE, 4096},
            {"18446744073709551615\n", false, SL_LIMIT_NONE, 0},
            {"99999999999999999999\n", false, SL_LIMIT_NONE, 0},
            {"", false, SL_LIMIT_ABSURD, 0},
            {"\n", false, SL_LIMIT_ABSURD, 0},
            {"-1\n", false, SL_LIMIT_ABSURD, 0},
            {"-1\n", true, SL_LIMIT_NONE, 0},
            {"-2\n", true, SL_LIMIT_ABSURD, 0},
            {"12x\n", false, SL_LIMIT_ABSURD, 0},
            {"12 34\n", false, SL_LIMIT_ABSURD, 0},
            {"1\n2\n", false, SL_LIMIT_ABSURD, 0},
            {"+5", false, SL_LIMIT_ABSURD, 0},
            {"0x1000", false, SL_LIMIT_ABSURD, 0},
            {"1e9", false, SL_LIMIT_ABSURD, 0},
            {"4096.0", false, SL_LIMIT_ABSURD, 0},
            {"1G", false, SL_LIMIT_ABSURD, 0},
            {"MAX", false, SL_LIMIT_ABSURD, 0},
            {"maximum", false, SL_LIMIT_ABSURD, 0},
            {"max max", false, SL_LIMIT_ABSURD, 0},
            /* G2-04: what version 1 writes for "no limit". */
            {"9223372036854771712\n", true, SL_LIMIT_NONE, 0},
            {"9223372036854710272\n", true, SL_LIMIT_NONE, 0},
            {"9223372036854775807\n", true, SL_LIMIT_NONE, 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint64_t bytes = 0;
        sl__limit_kind kind = sl__limit_parse(span(rows[i].text), rows[i].is_v1, &bytes);
        if (kind != rows[i].kind || bytes != rows[i].bytes) {
            fail_msg("row %zu gives kind %d and %" PRIu64, i, (int)kind, bytes);
        }
    }
}

static void test_G2_03_four_kib_of_digits(void **state)
{
    char digits[4096];
    uint64_t v = 7;
    (void)state;
    memset(digits, '9', sizeof digits);
    assert_int_equal(sl__limit_parse((sl_span){digits, sizeof digits}, false, &v), SL_LIMIT_NONE);
    digits[4000] = 'x';
    assert_int_equal(sl__limit_parse((sl_span){digits, sizeof digits}, false, &v), SL_LIMIT_ABSURD);
    digits[4000] = '\0';
    assert_int_equal(sl__limit_parse((sl_span){digits, sizeof digits}, false, &v), SL_LIMIT_ABSURD);
    assert_int_equal(v, 7);
}

static void test_G2_22_fields_of_meminfo(void **state)
{
    sl__meminfo info;
    (void)state;
    sl__meminfo_parse(
            span("\xEF\xBB\xBFSReclaimable: 5 kB\r\nMemTotalX: 1 kB\r\nMemFree:\r\nno colon\r\n"
                 "MemAvailable:18446744073709551615 kB\r\n  MemTotal :  7 kB \r\nMemTotal: 8 kB\r\n"
                 "Cached: 12 MB\nBuffers: -4 kB\nShmem: 3 4 kB"),
            &info);
    assert_true(info.has[SL_MEM_SRECLAIMABLE]);
    assert_int_equal(info.bytes[SL_MEM_SRECLAIMABLE], 5 * 1024);
    assert_true(info.has[SL_MEM_TOTAL]);
    assert_int_equal(info.bytes[SL_MEM_TOTAL], 7 * 1024);
    assert_false(info.has[SL_MEM_FREE]);
    assert_false(info.has[SL_MEM_AVAILABLE]);
    assert_false(info.has[SL_MEM_CACHED]);
    assert_false(info.has[SL_MEM_BUFFERS]);
    assert_false(info.has[SL_MEM_SHMEM]);
    sl__meminfo_parse(span("MemAvailable: 99999999999999999999 kB\nShmem: 18014398509481984 kB\n"
                           "Cached: 18014398509481983 kB\nMemFree: 12"),
            &info);
    assert_false(info.has[SL_MEM_AVAILABLE]);
    assert_false(info.has[SL_MEM_SHMEM]);
    assert_true(info.has[SL_MEM_CACHED]);
    assert_int_equal(info.bytes[SL_MEM_FREE], 12 * 1024);
    sl__meminfo_parse((sl_span){NULL, 0}, &info);
    for (int i = 0; i < SL_MEM_FIELD_COUNT; i++) {
        assert_false(info.has[i]);
    }
}

static void test_estimate(void **state)
{
    sl__meminfo info;
    uint64_t bytes = 0;
    (void)state;
    sl__meminfo_parse(span("MemFree: 10 kB\nShmem: 4 kB\n"), &info);
    assert_true(sl__meminfo_estimate(&info, &bytes));
    assert_int_equal(bytes, 6 * 1024);
    sl__meminfo_parse(span("MemFree: 3 kB\nShmem: 4 kB\n"), &info);
    assert_true(sl__meminfo_estimate(&info, &bytes));
    assert_int_equal(bytes, 0);
    sl__meminfo_parse(span("Cached: 10 kB\n"), &info);
    assert_false(sl__meminfo_estimate(&info, &bytes));
    sl__meminfo_parse(span("MemFree: 18014398509481983 kB\nCached: 18014398509481983 kB\n"), &info);
    assert_false(sl__meminfo_estimate(&info, &bytes));
}

static void test_lines_of_statistics(void **state)
{
    const char *text =
            "anon 5\ninactive_file 12\r\ntotal_inactive_file 13\nactive_file x\nfile\nlast 9";
    uint64_t v = 0;
    (void)state;
    assert_true(sl__stat_find(span(text), "inactive_file", 0, &v));
    assert_int_equal(v, 12);
    assert_true(sl__stat_find(span(text), "last", 0, &v));
    assert_int_equal(v, 9);
    assert_false(sl__stat_find(span(text), "active_file", 0, &v));
    assert_false(sl__stat_find(span(text), "file", 0, &v));
    assert_false(sl__stat_find(span(text), "none", 0, &v));
    assert_false(sl__stat_find((sl_span){NULL, 0}, "none", 0, &v));
    assert_true(
            sl__stat_find(span("size                            4    77 extra\n"), "size", 1, &v));
    assert_int_equal(v, 77);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_G2_03_limit_files),
            cmocka_unit_test(test_G2_03_four_kib_of_digits),
            cmocka_unit_test(test_G2_22_fields_of_meminfo),
            cmocka_unit_test(test_estimate),
            cmocka_unit_test(test_lines_of_statistics),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
