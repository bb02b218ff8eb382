#include <stdio.h>
#include <string.h>

#include "test_support.h"

#include "base/mem.h"
#include "source/name_table.h"

#define N_NAMES 5000

/* Adds a name that may be there; returns the index that it had. */
static uint32_t add(sl__name_table *table, const char *p, size_t n, uint32_t index)
{
    uint32_t other = 77;
    sl_error err = {0};
    assert_ok(sl__name_table_add(table, (sl_span){p, n}, index, &other, &err), &err);
    return other;
}

static void test_names_find_their_indexes(void **state)
{
    static char names[N_NAMES][16];
    sl__name_table table = {0};
    (void)state;
    for (uint32_t i = 0; i < N_NAMES; i++) {
        int n = snprintf(names[i], sizeof names[i], "%u", i * 7919);
        assert_int_equal(add(&table, names[i], (size_t)n, i), SL_NAME_NONE);
        assert_int_equal(add(&table, names[i], (size_t)n, i + 1), i);
    }
    for (uint32_t i = 0; i < N_NAMES; i++) {
        char copy[16];
        memcpy(copy, names[i], sizeof copy);
        assert_int_equal(sl__name_table_find(&table, (sl_span){copy, strlen(copy)}), i);
    }
    assert_int_equal(sl__name_table_find(&table, (sl_span){"x", 1}), SL_NAME_NONE);
    assert_true(sl__name_table_bytes(&table) >= N_NAMES * sizeof(sl__name_slot));
    sl__name_table_done(&table);
}

/* Lengths around the words of the hash; names that are prefixes of each other, or end in NUL. */
static void test_lengths_and_prefixes(void **state)
{
    static const char text[40] = {0};
    sl__name_table table = {0};
    (void)state;
    for (uint32_t n = 0; n < 40; n++) {
        assert_int_equal(add(&table, text, n, n), SL_NAME_NONE);
    }
    for (uint32_t n = 0; n < 40; n++) {
        assert_int_equal(sl__name_table_find(&table, (sl_span){text, n}), n);
    }
    assert_int_equal(add(&table, NULL, 0, 99), 0);
    sl__name_table_done(&table);
}

static void test_an_empty_table(void **state)
{
    sl__name_table table = {0};
    (void)state;
    assert_int_equal(sl__name_table_find(&table, (sl_span){"a", 1}), SL_NAME_NONE);
    assert_int_equal(sl__name_table_bytes(&table), 0);
    sl__name_table_done(&table);
    assert_int_equal(sl__name_table_bytes(&table), 0);
}

static void test_out_of_memory_changes_nothing(void **state)
{
    static const char text[64] = {0};
    sl__name_table table = {0};
    size_t n_failed = 0;
    (void)state;
    for (uint32_t n = 0; n < 64; n++) {
        uint32_t other = 77;
        sl_error err = {0};
        sl__mem_fail_after(0);
        int r = sl__name_table_add(&table, (sl_span){text, n}, n, &other, &err);
        sl__mem_fail_after(-1);
        if (r < 0) {
            assert_int_equal(r, SL_ENOMEM);
            assert_int_equal(other, 77);
            assert_int_equal(sl__name_table_find(&table, (sl_span){text, n}), SL_NAME_NONE);
            assert_int_equal(add(&table, text, n, n), SL_NAME_NONE);
            n_failed++;
        }
        for (uint32_t k = 0; k <= n; k++) {
            assert_int_equal(sl__name_table_find(&table, (sl_span){text, k}), k);
        }
    }
    assert_int_equal(n_failed, 4); /* 16, 32, 64, 128 slots */
    sl__name_table_done(&table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_names_find_their_indexes),
            cmocka_unit_test(test_lengths_and_prefixes),
            cmocka_unit_test(test_an_empty_table),
            cmocka_unit_test(test_out_of_memory_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
