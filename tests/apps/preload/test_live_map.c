/* Which addresses are still the program's mapping, against a map of bytes. */
#include <stdlib.h>
#include <string.h>

#include "live_map.h"
#include "test_support.h"

#define BEGIN  0x10000u
#define N      64u
#define OFFSET 100u

static void test_parts_in_order(void **state)
{
    (void)state;
    live_map m = {.all = {BEGIN, BEGIN + N}, .offset = OFFSET};
    live_part part;
    uint64_t at = 0;
    live_map_lose(&m, (live_part){BEGIN + 10, BEGIN + 20});
    assert_true(live_map_next(&m, &at, 1000, &part));
    assert_int_equal(part.begin, BEGIN);
    assert_int_equal(part.end, BEGIN + 10);
    assert_int_equal(at, OFFSET + 10);
    assert_true(live_map_next(&m, &at, 1000, &part));
    assert_int_equal(part.begin, BEGIN + 20);
    assert_int_equal(part.end, BEGIN + N);
    assert_false(live_map_next(&m, &at, 1000, &part));
}

static void test_what_does_not_meet_it(void **state)
{
    (void)state;
    live_map m = {.all = {BEGIN, BEGIN + N}, .offset = OFFSET};
    live_part part;
    uint64_t at = 0;
    assert_false(live_map_next(&m, &at, OFFSET, &part));
    at = OFFSET + N;
    assert_false(live_map_next(&m, &at, OFFSET + 2 * N, &part));
    live_map_lose(&m, (live_part){BEGIN - 10, BEGIN});
    live_map_lose(&m, (live_part){BEGIN + N, BEGIN + N + 10});
    assert_int_equal(m.n_lost, 0);
    live_map_lose(&m, (live_part){0, UINTPTR_MAX});
    at = 0;
    assert_false(live_map_next(&m, &at, 1000, &part));
}

static void test_too_many_losses_give_it_up(void **state)
{
    (void)state;
    live_map m = {.all = {BEGIN, BEGIN + N}, .offset = OFFSET};
    live_part part;
    uint64_t at = 0;
    for (unsigned i = 0; i < LIVE_MAP_MAX_LOST; i++) {
        live_map_lose(&m, (live_part){BEGIN + 2 * i, BEGIN + 2 * i + 1});
    }
    assert_true(live_map_next(&m, &at, 1000, &part));
    live_map_lose(&m, (live_part){BEGIN + N - 1, BEGIN + N});
    at = 0;
    assert_false(live_map_next(&m, &at, 1000, &part));
}

static void test_against_a_map_of_bytes(void **state)
{
    (void)state;
    unsigned seed = 7;
    for (int round = 0; round < 2000; round++) {
        bool is_there[N];
        bool is_seen[N] = {false};
        live_map m = {.all = {BEGIN, BEGIN + N}, .offset = OFFSET};
        memset(is_there, true, sizeof is_there);
        for (int i = 0; i < round % 8; i++) {
            seed = seed * 1103515245u + 12345u;
            unsigned begin = seed >> 16 & 63;
            unsigned end = begin + (seed >> 24 & 15);
            live_map_lose(&m, (live_part){BEGIN + begin, BEGIN + end});
            for (unsigned k = begin; k < end && k < N; k++) {
                is_there[k] = false;
            }
        }
        live_part part;
        uint64_t at = OFFSET + 5;
        while (live_map_next(&m, &at, OFFSET + 60, &part)) {
            assert_true(part.begin < part.end);
            for (uintptr_t a = part.begin; a < part.end; a++) {
                assert_false(is_seen[a - BEGIN]);
                is_seen[a - BEGIN] = true;
            }
        }
        for (unsigned k = 0; k < N; k++) {
            assert_int_equal(is_seen[k], is_there[k] && k >= 5 && k < 60);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_parts_in_order),
            cmocka_unit_test(test_what_does_not_meet_it),
            cmocka_unit_test(test_too_many_losses_give_it_up),
            cmocka_unit_test(test_against_a_map_of_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
