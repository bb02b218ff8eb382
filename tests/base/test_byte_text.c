/* Sizes for people: the unit, the rounding and the largest number. */
#include "base/byte_text.h"

#include "test_support.h"

static void test_units(void **state)
{
    (void)state;
    static const struct {
        uint64_t n;
        const char *text;
    } cases[] = {
            {0, "0 B"},
            {1023, "1023 B"},
            {1024, "1.0 KiB"},
            {1536, "1.5 KiB"},
            {UINT64_C(64) << 20, "64.0 MiB"},
            {(UINT64_C(4) << 30) + (UINT64_C(1) << 29), "4.5 GiB"},
            {UINT64_C(3) << 40, "3.0 TiB"},
            {UINT64_MAX, "16777216.0 TiB"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char buf[32];
        assert_string_equal(sl__byte_text(cases[i].n, buf, sizeof buf), cases[i].text);
    }
}

static void test_small_buffer(void **state)
{
    (void)state;
    char buf[4];
    assert_string_equal(sl__byte_text(1023, buf, sizeof buf), "102");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_units),
            cmocka_unit_test(test_small_buffer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
