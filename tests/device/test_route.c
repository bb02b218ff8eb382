#include "test_support.h"

#include "device/route.h"

static const bool all[SL__ROUTE_COUNT] = {false, true, true, true, true};

static void test_every_possible_route_is_tried_twice_in_turns(void **state)
{
    (void)state;
    sl__route_choice choice = {{0}, {0}};
    for (int turn = 0; turn < 2; turn++) {
        bool tried[SL__ROUTE_COUNT] = {false};
        for (int i = 0; i < SL__ROUTE_COUNT - 1; i++) {
            sl__route route = sl__route_to_try(&choice, all);
            assert_int_not_equal(route, SL__ROUTE_AUTO);
            assert_false(tried[route]);
            tried[route] = true;
            sl__route_measured(&choice, route, 100, turn == 0 ? 10 : 20);
        }
    }
    assert_int_equal(sl__route_to_try(&choice, all), SL__ROUTE_AUTO);
    assert_true(choice.bytes_per_s[SL__ROUTE_PLAIN] > 9e9); /* the better of both */
}

/* A second look at what is far behind would cost more than it can bring. */
static void test_what_is_far_behind_is_tried_once(void **state)
{
    (void)state;
    sl__route_choice choice = {{0}, {0}};
    for (int route = SL__ROUTE_PLAIN; route < SL__ROUTE_COUNT; route++) {
        assert_true(sl__route_to_try(&choice, all) != SL__ROUTE_AUTO);
        sl__route_measured(&choice, (sl__route)route, 1000, route == SL__ROUTE_PLAIN ? 401 : 100);
    }
    for (int i = 0; i < 3; i++) {
        sl__route route = sl__route_to_try(&choice, all);
        assert_true(route != SL__ROUTE_AUTO && route != SL__ROUTE_PLAIN);
        sl__route_measured(&choice, route, 1000, 100);
    }
    assert_int_equal(sl__route_to_try(&choice, all), SL__ROUTE_AUTO);
}

static void test_the_fastest_is_chosen(void **state)
{
    (void)state;
    for (int fastest = SL__ROUTE_PLAIN; fastest < SL__ROUTE_COUNT; fastest++) {
        sl__route_choice choice = {{0}, {0}};
        for (int route = SL__ROUTE_PLAIN; route < SL__ROUTE_COUNT; route++) {
            sl__route_measured(&choice, (sl__route)route, 1000, route == fastest ? 100 : 200);
        }
        assert_int_equal(sl__route_best(&choice, all), fastest);
    }
}

static void test_a_little_faster_does_not_beat_safer(void **state)
{
    (void)state;
    sl__route_choice choice = {{0}, {0}};
    sl__route_measured(&choice, SL__ROUTE_PREAD, 1000, 1000);
    sl__route_measured(&choice, SL__ROUTE_MEMCPY, 1000, 980);
    sl__route_measured(&choice, SL__ROUTE_PLAIN, 1000, 960);
    assert_int_equal(sl__route_best(&choice, all), SL__ROUTE_PREAD);
    sl__route_measured(&choice, SL__ROUTE_PLAIN, 1000, 940);
    assert_int_equal(sl__route_best(&choice, all), SL__ROUTE_PLAIN);
}

static void test_only_possible_routes_are_chosen(void **state)
{
    (void)state;
    const bool none[SL__ROUTE_COUNT] = {false};
    const bool plain[SL__ROUTE_COUNT] = {[SL__ROUTE_PLAIN] = true};
    sl__route_choice choice = {{0}, {0}};
    assert_int_equal(sl__route_best(&choice, all), SL__ROUTE_PREAD);
    assert_int_equal(sl__route_to_try(&choice, none), SL__ROUTE_AUTO);
    assert_int_equal(sl__route_to_try(&choice, plain), SL__ROUTE_PLAIN);
    sl__route_measured(&choice, SL__ROUTE_REGISTERED, 1000, 1);
    sl__route_measured(&choice, SL__ROUTE_PLAIN, 1000, 1000);
    assert_int_equal(sl__route_best(&choice, plain), SL__ROUTE_PLAIN);
}

/* Nothing that the clock says leaves a route unmeasured. */
static void test_no_time_and_no_bytes_count_as_measured(void **state)
{
    (void)state;
    const bool pread[SL__ROUTE_COUNT] = {[SL__ROUTE_PREAD] = true};
    sl__route_choice choice = {{0}, {0}};
    sl__route_measured(&choice, SL__ROUTE_PREAD, 0, 0);
    sl__route_measured(&choice, SL__ROUTE_PREAD, 0, 0);
    assert_int_equal(sl__route_to_try(&choice, pread), SL__ROUTE_AUTO);
}

static void test_routes_have_names(void **state)
{
    (void)state;
    assert_string_equal(sl__route_name(SL__ROUTE_AUTO), "auto");
    assert_string_equal(sl__route_name(SL__ROUTE_REGISTERED), "registered");
    assert_string_equal(sl__route_name(SL__ROUTE_COUNT), "unknown");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_every_possible_route_is_tried_twice_in_turns),
            cmocka_unit_test(test_what_is_far_behind_is_tried_once),
            cmocka_unit_test(test_the_fastest_is_chosen),
            cmocka_unit_test(test_a_little_faster_does_not_beat_safer),
            cmocka_unit_test(test_only_possible_routes_are_chosen),
            cmocka_unit_test(test_no_time_and_no_bytes_count_as_measured),
            cmocka_unit_test(test_routes_have_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
