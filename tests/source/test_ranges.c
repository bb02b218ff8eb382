/* Random operations against a bitmap, with fixed seeds; then the edges that a bitmap cannot reach. */
#include <stdbool.h>
#include <string.h>

#include "test_support.h"

#include "base/mem.h"

#include "sluice/ranges.h"

#define N_BITS 96
#define N_SETS 3

typedef struct bitmap {
    bool bit[N_BITS];
} bitmap;

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static uint64_t below(uint64_t *state, uint64_t n)
{
    return (next_random(state) >> 11) % n;
}

/* Sorted, merged, none empty, none touching, and the same bytes as the bitmap. */
static void expect_equal(const sl_ranges *set, const bitmap *model)
{
    bitmap seen = {0};
    uint64_t n_bytes = 0;
    for (size_t i = 0; i < set->n; i++) {
        assert_true(set->items[i].begin < set->items[i].end);
        assert_true(set->items[i].end <= N_BITS);
        assert_true(i == 0 || set->items[i].begin > set->items[i - 1].end);
        for (uint64_t b = set->items[i].begin; b < set->items[i].end; b++) {
            seen.bit[b] = true;
            n_bytes++;
        }
    }
    assert_memory_equal(&seen, model, sizeof seen);
    assert_int_equal(sl_ranges_bytes(set), n_bytes);
}

static void model_align(bitmap *m, uint64_t page, uint64_t limit)
{
    bitmap out = {0};
    for (uint64_t b = 0; b < N_BITS; b++) {
        for (uint64_t k = b & ~(page - 1); m->bit[b] && k < (b & ~(page - 1)) + page; k++) {
            if (k < limit && k < N_BITS) {
                out.bit[k] = true;
            }
        }
    }
    *m = out;
}

/* One operation on set `to` from `a` and `b` (which may be the same objects), done to both worlds. */
static void step(uint64_t *seed, sl_ranges sets[N_SETS], bitmap models[N_SETS])
{
    size_t to = (size_t)below(seed, N_SETS);
    size_t ia = (size_t)below(seed, N_SETS);
    size_t ib = (size_t)below(seed, N_SETS);
    uint64_t begin = below(seed, N_BITS + 1);
    uint64_t end = below(seed, N_BITS + 1);
    bitmap a = models[ia];
    bitmap b = models[ib];
    uint64_t op = below(seed, 9);
    uint64_t page = 1ull << below(seed, 4);
    int r = 0;
    for (uint64_t i = 0; i < N_BITS && op < 8; i++) {
        bool inside = i >= begin && i < end;
        bool *out = &models[to].bit[i];
        *out = op < 4    ? *out || inside
               : op == 4 ? a.bit[i] || b.bit[i]
               : op == 5 ? a.bit[i] && b.bit[i]
               : op == 6 ? inside && !a.bit[i]
                         : a.bit[i] && !b.bit[i];
    }
    switch (op) {
    case 4:
        r = sl_ranges_union(&sets[ia], &sets[ib], &sets[to]);
        break;
    case 5:
        r = sl_ranges_intersect(&sets[ia], &sets[ib], &sets[to]);
        break;
    case 6:
        r = sl_ranges_complement(&sets[ia], begin, end, &sets[to]);
        break;
    case 7:
        r = sl_ranges_subtract(&sets[ia], &sets[ib], &sets[to]);
        break;
    case 8:
        r = sl_ranges_align(&sets[to], page, N_BITS - page % 7);
        model_align(&models[to], page, N_BITS - page % 7);
        break;
    default:
        r = sl_ranges_add(&sets[to], begin, end);
        break;
    }
    assert_int_equal(r, 0);
    expect_equal(&sets[to], &models[to]);
}

static void test_random_operations_equal_a_bitmap(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        uint64_t s = seed * 0x9E3779B97F4A7C15u;
        sl_ranges sets[N_SETS] = {{0}};
        bitmap models[N_SETS] = {{{0}}};
        for (int i = 0; i < 200; i++) {
            step(&s, sets, models);
        }
        for (size_t i = 0; i < N_SETS; i++) {
            sl_ranges_done(&sets[i]);
        }
    }
}

static void test_clamp_equals_a_bitmap(void **state)
{
    uint64_t seed = 77;
    (void)state;
    for (int round = 0; round < 500; round++) {
        sl_ranges set = {0};
        bitmap model = {{0}};
        for (int i = 0; i < 8; i++) {
            uint64_t begin = below(&seed, N_BITS);
            uint64_t end = begin + below(&seed, 10);
            end = end < N_BITS ? end : N_BITS;
            assert_int_equal(sl_ranges_add(&set, begin, end), 0);
            for (uint64_t b = begin; b < end; b++) {
                model.bit[b] = true;
            }
        }
        uint64_t begin = below(&seed, N_BITS);
        uint64_t end = below(&seed, N_BITS);
        assert_int_equal(sl_ranges_clamp(&set, begin, end, &set), 0);
        for (uint64_t b = 0; b < N_BITS; b++) {
            model.bit[b] = model.bit[b] && b >= begin && b < end;
        }
        expect_equal(&set, &model);
        sl_ranges_done(&set);
    }
}

static void test_neighbours_merge(void **state)
{
    sl_ranges set = {0};
    (void)state;
    assert_int_equal(sl_ranges_add(&set, 10, 20), 0);
    assert_int_equal(sl_ranges_add(&set, 30, 40), 0);
    assert_int_equal(sl_ranges_add(&set, 5, 5), 0);
    assert_int_equal(sl_ranges_add(&set, 9, 3), 0);
    assert_int_equal(set.n, 2);
    assert_int_equal(sl_ranges_add(&set, 20, 30), 0);
    assert_int_equal(set.n, 1);
    assert_int_equal(set.items[0].begin, 10);
    assert_int_equal(set.items[0].end, 40);
    sl_ranges_done(&set);
    sl_ranges_done(NULL);
}

static void test_the_end_of_the_number_line(void **state)
{
    sl_ranges set = {0};
    sl_ranges rest = {0};
    (void)state;
    assert_int_equal(sl_ranges_add(&set, UINT64_MAX - 10, UINT64_MAX), 0);
    assert_int_equal(sl_ranges_add(&set, 0, 1), 0);
    assert_int_equal(sl_ranges_align(&set, 4096, UINT64_MAX), 0);
    assert_int_equal(set.n, 2);
    assert_int_equal(set.items[0].end, 4096);
    assert_true(set.items[1].end == UINT64_MAX);
    assert_int_equal(sl_ranges_complement(&set, 0, UINT64_MAX, &rest), 0);
    assert_int_equal(rest.n, 1);
    assert_true(sl_ranges_bytes(&rest) + sl_ranges_bytes(&set) == UINT64_MAX);
    assert_int_equal(sl_ranges_align(&rest, 4096, 100), 0);
    assert_int_equal(rest.n, 0);
    sl_ranges_done(&set);
    sl_ranges_done(&rest);
}

static void make_comb(sl_ranges *set, uint64_t first, size_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        assert_int_equal(sl_ranges_add(set, first + 10 * i, first + 10 * i + 3), 0);
    }
}

static void test_out_of_memory_changes_nothing(void **state)
{
    sl_ranges a = {0};
    sl_ranges b = {0};
    sl_ranges target = {0};
    (void)state;
    make_comb(&a, 0, 40);
    make_comb(&b, 5, 40);
    make_comb(&target, 1000, 1);
    for (int n = 0; n < 2; n++) {
        sl__mem_fail_after(n);
        assert_int_equal(sl_ranges_union(&a, &b, &target), SL_ENOMEM);
        sl__mem_fail_after(n);
        assert_int_equal(sl_ranges_complement(&a, 0, 1000, &target), SL_ENOMEM);
        sl__mem_fail_after(n);
        assert_int_equal(sl_ranges_subtract(&a, &b, &target), SL_ENOMEM);
        sl__mem_fail_after(-1);
        assert_int_equal(target.n, 1);
        assert_int_equal(target.items[0].begin, 1000);
    }
    sl__mem_fail_after(0);
    assert_int_equal(sl_ranges_clamp(&a, 0, 5, &target), SL_ENOMEM);
    sl__mem_fail_after(-1);
    sl_ranges full = {0};
    make_comb(&full, 0, 16);
    sl__mem_fail_after(0);
    assert_int_equal(sl_ranges_add(&full, 4, 6), SL_ENOMEM);
    sl__mem_fail_after(-1);
    assert_int_equal(full.n, 16);
    sl_ranges_done(&full);
    sl_ranges_done(&a);
    sl_ranges_done(&b);
    sl_ranges_done(&target);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_random_operations_equal_a_bitmap),
            cmocka_unit_test(test_clamp_equals_a_bitmap),
            cmocka_unit_test(test_neighbours_merge),
            cmocka_unit_test(test_the_end_of_the_number_line),
            cmocka_unit_test(test_out_of_memory_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
