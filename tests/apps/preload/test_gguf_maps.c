/* What advice is left out, for which addresses; parts against a map of bytes. */
#include <stdlib.h>
#include <string.h>

#include "gguf_maps.h"
#include "test_support.h"

#define MIB   ((uintptr_t)1 << 20)
#define BEGIN ((uintptr_t)1 << 32)

static live_part part_of(uintptr_t mib_begin, uintptr_t mib_end)
{
    return (live_part){BEGIN + mib_begin * MIB, BEGIN + mib_end * MIB};
}

static void test_most_of_a_mapping_or_more_than_a_step(void **state)
{
    (void)state;
    gguf_maps m = {.n = 0};
    assert_false(gguf_maps_is_bulk(&m, part_of(0, 40)));
    gguf_maps_add(&m, part_of(0, 40));
    gguf_maps_add(&m, part_of(1000, 2000));
    assert_true(gguf_maps_is_bulk(&m, part_of(0, 40)));
    assert_true(gguf_maps_is_bulk(&m, part_of(0, 21)));
    assert_false(gguf_maps_is_bulk(&m, part_of(0, 20)));
    assert_true(gguf_maps_is_bulk(&m, part_of(1000, 2000)));
    assert_true(gguf_maps_is_bulk(&m, part_of(1500, 1565)));
    assert_false(gguf_maps_is_bulk(&m, part_of(1500, 1564)));
    assert_false(gguf_maps_is_bulk(&m, part_of(1500, 1500)));
}

static void test_what_is_not_in_one_mapping_is_passed_on(void **state)
{
    (void)state;
    gguf_maps m = {.n = 0};
    gguf_maps_add(&m, part_of(100, 200));
    assert_false(gguf_maps_is_bulk(&m, part_of(0, 200)));
    assert_false(gguf_maps_is_bulk(&m, part_of(100, 201)));
    assert_false(gguf_maps_is_bulk(&m, part_of(400, 500)));
    /* An end below the beginning: more bytes than there are addresses. */
    assert_false(gguf_maps_is_bulk(&m, (live_part){BEGIN + 150 * MIB, 4096}));
}

static void test_what_is_lost_counts_no_more(void **state)
{
    (void)state;
    gguf_maps m = {.n = 0};
    gguf_maps_add(&m, part_of(0, 400));
    gguf_maps_lose(&m, part_of(100, 110));
    assert_false(gguf_maps_is_bulk(&m, part_of(0, 400)));
    assert_true(gguf_maps_is_bulk(&m, part_of(0, 100)));
    assert_true(gguf_maps_is_bulk(&m, part_of(110, 400)));
    gguf_maps_lose(&m, part_of(0, 1000));
    assert_int_equal(m.n, 0);
    assert_false(gguf_maps_is_bulk(&m, part_of(0, 100)));
}

/* Random mappings and losses, over addresses of a hundred units. */
static void test_parts_are_those_of_a_map_of_bytes(void **state)
{
    enum {
        N = 100,
        N_STEPS = 20000
    };
    (void)state;
    unsigned char is_mapped[N] = {0};
    gguf_maps m = {.n = 0};
    unsigned seed = 7;
    for (int step = 0; step < N_STEPS; step++) {
        seed = seed * 1103515245u + 12345u;
        uintptr_t a = (seed >> 8) % N;
        uintptr_t b = a + (seed >> 16) % (N - a + 1);
        gguf_maps_lose(&m, part_of(a, b));
        memset(is_mapped + a, 0, b - a);
        if (seed >> 30 == 0) {
            gguf_maps_add(&m, part_of(a, b));
            memset(is_mapped + a, 1, b - a);
        }
        unsigned char found[N] = {0};
        for (size_t i = 0; i < m.n; i++) {
            uintptr_t from = (m.items[i].part.begin - BEGIN) / MIB;
            uintptr_t to = (m.items[i].part.end - BEGIN) / MIB;
            assert_true(from < to && to <= N);
            for (uintptr_t k = from; k < to; k++) {
                assert_int_equal(found[k], 0); /* parts do not overlap */
                found[k] = 1;
            }
        }
        assert_memory_equal(found, is_mapped, N);
    }
}

static void test_too_many_are_not_known(void **state)
{
    (void)state;
    gguf_maps m = {.n = 0};
    for (uintptr_t i = 0; i < GGUF_MAPS_MAX + 5; i++) {
        gguf_maps_add(&m, part_of(2 * i, 2 * i + 1));
    }
    assert_int_equal(m.n, GGUF_MAPS_MAX);
    assert_true(gguf_maps_is_bulk(&m, part_of(0, 1)));
    assert_false(gguf_maps_is_bulk(&m, part_of(2 * GGUF_MAPS_MAX, 2 * GGUF_MAPS_MAX + 1)));
    /* One in the middle is cut in two, and there is room for one half. */
    gguf_maps_lose(&m, (live_part){BEGIN + MIB / 4, BEGIN + MIB / 2});
    assert_int_equal(m.n, GGUF_MAPS_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_most_of_a_mapping_or_more_than_a_step),
            cmocka_unit_test(test_what_is_not_in_one_mapping_is_passed_on),
            cmocka_unit_test(test_what_is_lost_counts_no_more),
            cmocka_unit_test(test_parts_are_those_of_a_map_of_bytes),
            cmocka_unit_test(test_too_many_are_not_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
