/* Ranges cut into what is asked for exactly and what is left to the kernel, against a map of pages. */
#include <string.h>

#include "base/mem.h"
#include "source/stretches.h"
#include "test_support.h"

#define N 200u

static void test_a_long_range(void **state)
{
    (void)state;
    sl_ranges pages = {0};
    sl__stretches s = {0};
    sl_error err = {0};
    assert_int_equal(sl_ranges_add(&pages, 10, 110), 0);
    assert_ok(sl__stretches_make(&pages, N, 8, 32, &s, &err), &err);
    assert_int_equal(s.n, 2);
    assert_int_equal(s.items[0].bytes.begin, 18);
    assert_int_equal(s.items[0].bytes.end, 110);
    assert_int_equal(s.items[0].ask[0].begin, 10);
    assert_int_equal(s.items[0].ask[0].end, 18);
    assert_int_equal(s.items[0].ask[1].begin, 78);
    assert_int_equal(s.items[0].ask[1].end, 110);
    assert_int_equal(s.items[1].bytes.begin, 10);
    assert_int_equal(s.items[1].bytes.end, 18);
    sl__stretches_done(&s);
    sl_ranges_done(&pages);
}

/* There is nothing before the file and nothing behind it. */
static void test_where_the_file_begins_and_ends(void **state)
{
    (void)state;
    sl_ranges pages = {0};
    sl__stretches s = {0};
    sl_error err = {0};
    assert_int_equal(sl_ranges_add(&pages, 0, N), 0);
    assert_ok(sl__stretches_make(&pages, N, 8, 32, &s, &err), &err);
    assert_int_equal(s.n, 1);
    assert_int_equal(s.items[0].bytes.begin, 0);
    assert_int_equal(s.items[0].bytes.end, N);
    for (size_t k = 0; k < 2; k++) {
        assert_int_equal(s.items[0].ask[k].begin, s.items[0].ask[k].end);
    }
    sl__stretches_done(&s);
    /* The same pages of a longer file: its tail is asked for. */
    assert_ok(sl__stretches_make(&pages, N + 1, 8, 32, &s, &err), &err);
    assert_int_equal(s.n, 1);
    assert_int_equal(s.items[0].ask[0].begin, s.items[0].ask[0].end);
    assert_int_equal(s.items[0].ask[1].begin, N - 32);
    assert_int_equal(s.items[0].ask[1].end, N);
    sl__stretches_done(&s);
    sl_ranges_done(&pages);
}

/* Every page is touched once, and what is near an end was asked for before. */
static void check(const sl_ranges *pages, uint64_t head, uint64_t tail)
{
    int n_touched[N] = {0};
    bool is_asked[N] = {false};
    sl__stretches s = {0};
    sl_error err = {0};
    assert_ok(sl__stretches_make(pages, N, head, tail, &s, &err), &err);
    for (size_t i = 0; i < s.n; i++) {
        for (size_t k = 0; k < 2; k++) {
            for (uint64_t at = s.items[i].ask[k].begin; at < s.items[i].ask[k].end; at++) {
                is_asked[at] = true;
            }
        }
        assert_true(s.items[i].bytes.begin < s.items[i].bytes.end);
        for (uint64_t at = s.items[i].bytes.begin; at < s.items[i].bytes.end; at++) {
            n_touched[at]++;
        }
    }
    for (size_t i = 0; i < pages->n; i++) {
        sl_range r = pages->items[i];
        for (uint64_t at = r.begin; at < r.end; at++) {
            assert_int_equal(n_touched[at]--, 1);
            bool is_head = r.begin > 0 && at < r.begin + head;
            bool is_tail = r.end < N && at + tail >= r.end;
            if (is_head || is_tail) {
                assert_true(is_asked[at]);
            }
            is_asked[at] = false;
        }
    }
    for (size_t i = 0; i < N; i++) {
        assert_int_equal(n_touched[i], 0);
        assert_false(is_asked[i]);
    }
    sl__stretches_done(&s);
}

static void test_against_a_map_of_pages(void **state)
{
    (void)state;
    static const uint64_t lengths[] = {0, 1, 3, 8, 20, 300};
    unsigned seed = 3;
    for (int round = 0; round < 300; round++) {
        sl_ranges pages = {0};
        for (int i = 0; i < round % 6; i++) {
            seed = seed * 1103515245u + 12345u;
            uint64_t begin = (seed >> 16) % N;
            uint64_t end = begin + (seed >> 24) % 64;
            assert_int_equal(sl_ranges_add(&pages, begin, end < N ? end : N), 0);
        }
        check(&pages, lengths[seed >> 8 & 3], lengths[(seed >> 12) % 6]);
        sl_ranges_done(&pages);
    }
}

static void test_no_memory(void **state)
{
    (void)state;
    sl_ranges pages = {0};
    sl__stretches s = {0};
    sl_error err = {0};
    sl__mem_fail_after(0);
    assert_int_equal(sl__stretches_make(&pages, N, 1, 1, &s, &err), SL_ENOMEM);
    sl__mem_fail_after(-1);
    assert_null(s.items);
    sl__stretches_done(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_a_long_range),
            cmocka_unit_test(test_where_the_file_begins_and_ends),
            cmocka_unit_test(test_against_a_map_of_pages),
            cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
