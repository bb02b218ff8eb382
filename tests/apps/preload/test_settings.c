/* What the environment tells the shim. */
#define _DEFAULT_SOURCE /* setenv */

#include <stdlib.h>

#include "settings.h"
#include "sluice/populate.h"
#include "test_support.h"

static int clear(void **state)
{
    static const char *const names[] = {SHIM_ENV_POPULATE, SHIM_ENV_RAM, SHIM_ENV_LAZY_OVER,
            SHIM_ENV_WAIT, SHIM_ENV_QUIET, "LLAMA_MMAP_POPULATE"};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        unsetenv(names[i]);
    }
    return 0;
}

static void test_defaults(void **state)
{
    (void)state;
    shim_settings s = shim_settings_read();
    assert_false(s.ram.has_given);
    assert_int_equal(s.lazy_over_bytes, SL_LAZY_OVER_BYTES);
    assert_false(s.is_off || s.is_waiting || s.is_quiet);
    assert_null(s.bad);
}

static void test_what_is_set(void **state)
{
    (void)state;
    setenv(SHIM_ENV_RAM, "0", 1);
    setenv(SHIM_ENV_LAZY_OVER, "18446744073709551615", 1);
    setenv(SHIM_ENV_WAIT, "1", 1);
    setenv(SHIM_ENV_QUIET, "0", 1);
    shim_settings s = shim_settings_read();
    assert_true(s.ram.has_given);
    assert_int_equal(s.ram.given_bytes, 0);
    assert_true(s.lazy_over_bytes == UINT64_MAX);
    assert_true(s.is_waiting);
    assert_false(s.is_quiet);
    setenv(SHIM_ENV_POPULATE, "off", 1);
    assert_true(shim_settings_read().is_off);
    setenv(SHIM_ENV_LAZY_OVER, "5", 1);
    setenv(SHIM_ENV_POPULATE, "all", 1);
    assert_false(shim_settings_read().is_off);
    assert_true(shim_settings_read().lazy_over_bytes == UINT64_MAX);
    setenv("LLAMA_MMAP_POPULATE", "0", 1);
    setenv(SHIM_ENV_POPULATE, "auto", 1);
    assert_false(shim_settings_read().is_off);
    assert_int_equal(shim_settings_read().lazy_over_bytes, 5);
}

static void test_what_is_no_number_is_named_and_left_out(void **state)
{
    static const char *const bad[] = {
            "1G", "-1", "18446744073709551616", "99999999999999999999999", " 1"};
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        setenv(SHIM_ENV_RAM, bad[i], 1);
        shim_settings s = shim_settings_read();
        assert_false(s.ram.has_given);
        assert_string_equal(s.bad, SHIM_ENV_RAM);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test_setup(test_defaults, clear),
            cmocka_unit_test_setup(test_what_is_set, clear),
            cmocka_unit_test_setup(test_what_is_no_number_is_named_and_left_out, clear),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
