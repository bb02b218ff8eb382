/* Speeds of a simulation's text, and speeds measured in what happened. */
#include "plan_speeds.h"

#include <string.h>

#include "test_support.h"

static void test_the_link_of_a_simulation(void **state)
{
    (void)state;
    static const struct {
        const char *device;
        double wanted;
    } cases[] = {
            {NULL, 0},
            {"auto", 0},
            {"vulkan0", 0},
            {"sim:4G", 0},
            {"sim:4G,link=12G", 12.0 * 1024 * 1024 * 1024},
            {"sim:4G,max-alloc=1M,link=5K,align=64", 5 * 1024},
            {"sim:4G,link=fast", 0},
            {"sim:", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_true(plan_speeds_of_sim(cases[i].device) == cases[i].wanted);
    }
}

static bool is_near(double a, double b)
{
    return a - b < 1e-9 && b - a < 1e-9;
}

static char generate[] = "generate";
static char decode[] = "decode";
static char encode[] = "encode";
static char slow[] = "slow";

/* 300 bytes in 2 s and 100 in 3 s; 8 and 4 s of making frames, 3 s of which are waits. */
static plan_actual_bar bars[] = {
        {PLAN_ACTUAL_PHASE, encode, SL_PLAN_NONE, SL_PLAN_NONE, 0, 0, 5},
        {PLAN_ACTUAL_LOAD, slow, 0, 0, 300, 1, 3},
        {PLAN_ACTUAL_PHASE, generate, SL_PLAN_NONE, SL_PLAN_NONE, 0, 5, 13},
        {PLAN_ACTUAL_STALL, slow, SL_PLAN_NONE, SL_PLAN_NONE, 0, 4, 7},
        {PLAN_ACTUAL_LOAD, slow, 0, 0, 100, 10, 13},
        {PLAN_ACTUAL_EVICT, slow, 0, 0, 300, 13, 14},
        {PLAN_ACTUAL_PHASE, decode, SL_PLAN_NONE, SL_PLAN_NONE, 0, 13, 17},
        {PLAN_ACTUAL_STALL, slow, SL_PLAN_NONE, SL_PLAN_NONE, 0, 13, 14},
};
static const plan_actual actual = {.bars = bars, .n_bars = sizeof bars / sizeof bars[0]};

static void test_what_is_not_known_is_measured(void **state)
{
    (void)state;
    plan_speeds s = {0};
    plan_speeds_measure(&s, &actual, 9);
    assert_true(is_near(s.link_bytes_per_s, 80));
    assert_true(is_near(s.frame_seconds, 1));
    assert_non_null(strstr(s.link_from, "trace"));
    assert_non_null(strstr(s.frame_from, "trace"));
}

static void test_what_was_given_stays(void **state)
{
    (void)state;
    plan_speeds s = {7, "given", 3, "said"};
    plan_speeds_measure(&s, &actual, 9);
    assert_true(s.link_bytes_per_s == 7 && s.frame_seconds == 3);
    assert_string_equal(s.link_from, "given");
    assert_string_equal(s.frame_from, "said");
}

static void test_a_trace_that_says_nothing_of_it(void **state)
{
    (void)state;
    plan_speeds s = {0};
    plan_actual none = {0};
    plan_speeds_measure(&s, &none, 9);
    plan_speeds_measure(&s, &actual, 0);
    assert_true(s.frame_seconds == 0);
    assert_null(s.frame_from);
    /* Loads that took no time to measure. */
    plan_actual_bar instant = {PLAN_ACTUAL_LOAD, slow, 0, 0, 300, 1, 1};
    s = (plan_speeds){0};
    plan_speeds_measure(&s, &(plan_actual){.bars = &instant, .n_bars = 1}, 9);
    assert_true(s.link_bytes_per_s == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_the_link_of_a_simulation),
            cmocka_unit_test(test_what_is_not_known_is_measured),
            cmocka_unit_test(test_what_was_given_stays),
            cmocka_unit_test(test_a_trace_that_says_nothing_of_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
