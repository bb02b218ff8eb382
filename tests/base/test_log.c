#include <stdio.h>
#include <string.h>

#include "test_support.h"

#include "base/log.h"

typedef struct seen {
    sl_log_level level;
    int n;
    char msg[2048];
} seen;

static void keep(void *ud, sl_log_level level, const char *msg)
{
    seen *s = ud;
    s->level = level;
    s->n++;
    snprintf(s->msg, sizeof s->msg, "%s", msg);
}

static void test_lines_reach_the_function(void **state)
{
    seen s = {0};
    sl_logger log = {keep, &s};
    (void)state;
    sl__log(&log, SL_LOG_WARN, "%s %d", "value", 5);
    assert_int_equal(s.n, 1);
    assert_int_equal(s.level, SL_LOG_WARN);
    assert_string_equal(s.msg, "value 5");
}

static void test_no_logger_is_silent(void **state)
{
    seen s = {0};
    sl_logger log = {NULL, &s};
    (void)state;
    sl__log(NULL, SL_LOG_ERROR, "x");
    sl__log(&log, SL_LOG_ERROR, "x");
    assert_int_equal(s.n, 0);
}

static void test_a_long_line_is_cut(void **state)
{
    char text[1900];
    seen s = {0};
    sl_logger log = {keep, &s};
    (void)state;
    memset(text, 'a', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    sl__log(&log, SL_LOG_INFO, "%s", text);
    assert_int_equal(s.n, 1);
    assert_true(strlen(s.msg) < sizeof text);
    assert_int_equal(strncmp(s.msg, text, strlen(s.msg)), 0);
}

static void test_names_of_levels(void **state)
{
    (void)state;
    assert_string_equal(sl_log_level_name(SL_LOG_ERROR), "error");
    assert_string_equal(sl_log_level_name(SL_LOG_DEBUG), "debug");
    assert_string_equal(sl_log_level_name(SL_LOG_LEVEL_COUNT), "unknown");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_lines_reach_the_function),
            cmocka_unit_test(test_no_logger_is_silent),
            cmocka_unit_test(test_a_long_line_is_cut),
            cmocka_unit_test(test_names_of_levels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
