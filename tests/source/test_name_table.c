#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test_support.h"

#include "base/mem.h"
#include "source/name_table.h"

#define N_NAMES 5000

static void test_names_find_their_indexes(void **state)
{
    static char names[N_NAMES][16];
    sl__name_table table;
    sl_error err = {0};
    (void)state;
    assert_ok(sl__name_table_init(&table, N_NAMES, &err), &err);
    for (uint32_t i = 0; i < N_NAMES; i++) {
        int n = snprintf(names[i], sizeof names[i], "%u", i * 7919);
        sl_span name = {names[i], (size_t)n};
        assert_int_equal(sl__name_table_add(&table, name, i), SL_NAME_NONE);
        assert_int_equal(sl__name_table_add(&table, name, i + 1), i);
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
    sl__name_table table;
    sl_error err = {0};
    (void)state;
    assert_ok(sl__name_table_init(&table, 40, &err), &err);
    for (uint32_t n = 0; n < 40; n++) {
        assert_int_equal(sl__name_table_add(&table, (sl_span){text, n}, n), SL_NAME_NONE);
    }
    for (uint32_t n = 0; n < 40; n++) {
        assert_int_equal(sl__name_table_find(&table, (sl_span){text, n}), n);
    }
    assert_int_equal(sl__name_table_add(&table, (sl_span){NULL, 0}, 99), 0);
    sl__name_table_done(&table);
}

static void test_an_empty_table(void **state)
{
    sl__name_table zeroed = {0};
    sl__name_table table;
    sl_error err = {0};
    (void)state;
    assert_int_equal(sl__name_table_find(&zeroed, (sl_span){"a", 1}), SL_NAME_NONE);
    sl__name_table_done(&zeroed);
    assert_ok(sl__name_table_init(&table, 0, &err), &err);
    assert_int_equal(sl__name_table_find(&table, (sl_span){"a", 1}), SL_NAME_NONE);
    sl__name_table_done(&table);
    assert_int_equal(sl__name_table_bytes(&table), 0);
}

static void test_limits(void **state)
{
    sl__name_table table;
    sl_error err = {0};
    (void)state;
    assert_int_equal(sl__name_table_init(&table, SIZE_MAX, &err), SL_ELIMIT);
    assert_int_equal(sl__name_table_init(&table, INT32_MAX, &err), SL_ELIMIT);
    sl__mem_fail_after(0);
    assert_int_equal(sl__name_table_init(&table, 10, &err), SL_ENOMEM);
    sl__mem_fail_after(-1);
    sl__name_table_done(&table);
    assert_null(table.slots);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_names_find_their_indexes),
            cmocka_unit_test(test_lengths_and_prefixes),
            cmocka_unit_test(test_an_empty_table),
            cmocka_unit_test(test_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
