/* Every byte is booked before it is there; a refusal changes nothing. */
#include <string.h>

#include "test_support.h"

#include "base/mem.h"
#include "residency/ledger.h"

static void make(sl__ledger *ledger, uint64_t budget)
{
    sl_error err = {0};
    assert_ok(sl__ledger_init(ledger, 2, &err), &err);
    assert_ok(sl__ledger_set_budget(ledger, 0, "gpu0", budget, &err), &err);
}

static void test_a_budget_is_reached_but_never_exceeded(void **state)
{
    (void)state;
    sl__ledger ledger;
    sl_error err = {0};
    make(&ledger, 100);
    assert_ok(sl__ledger_book(&ledger, 0, SL_MEM_WEIGHTS, 60, &err), &err);
    assert_ok(sl__ledger_book(&ledger, 0, SL_MEM_KV, 40, &err), &err);
    sl__account before = ledger.places[0];
    assert_int_equal(sl__ledger_book(&ledger, 0, SL_MEM_COMPUTE, 1, &err), SL_EBUDGET);
    assert_non_null(strstr(err.msg, "gpu0: 1 bytes for compute"));
    assert_non_null(strstr(err.msg, "100 of the budget of 100"));
    assert_int_equal(sl__ledger_book(&ledger, 0, SL_MEM_COMPUTE, UINT64_MAX, &err), SL_EBUDGET);
    assert_memory_equal(&before, &ledger.places[0], sizeof before);
    assert_int_equal(sl__ledger_free(&ledger, 0), 0);
    assert_int_equal(sl__ledger_book(&ledger, 1, SL_MEM_KV, 1, &err), SL_EBUDGET);
    sl__ledger_done(&ledger);
}

static void test_G3_25_bytes_count_on_the_place_that_holds_them(void **state)
{
    (void)state;
    sl__ledger ledger;
    sl_error err = {0};
    make(&ledger, 100);
    assert_ok(sl__ledger_set_budget(&ledger, 1, "ram", 50, &err), &err);
    assert_ok(sl__ledger_book(&ledger, 1, SL_MEM_KV, 50, &err), &err);
    assert_int_equal(sl__ledger_free(&ledger, 0), 100);
    assert_int_equal(ledger.places[0].used_total, 0);
    assert_int_equal(ledger.places[1].used[SL_MEM_KV], 50);
    sl__ledger_done(&ledger);
}

static void test_peaks_are_kept_by_kind_and_in_all(void **state)
{
    (void)state;
    sl__ledger ledger;
    sl_error err = {0};
    make(&ledger, 100);
    assert_ok(sl__ledger_book(&ledger, 0, SL_MEM_WEIGHTS, 70, &err), &err);
    assert_ok(sl__ledger_return(&ledger, 0, SL_MEM_WEIGHTS, 70, &err), &err);
    assert_ok(sl__ledger_book(&ledger, 0, SL_MEM_KV, 30, &err), &err);
    assert_ok(sl__ledger_book(&ledger, 0, SL_MEM_STAGING, 20, &err), &err);
    const sl__account *a = &ledger.places[0];
    assert_int_equal(a->peak[SL_MEM_WEIGHTS], 70);
    assert_int_equal(a->peak[SL_MEM_KV], 30);
    assert_int_equal(a->peak_total, 70);
    assert_int_equal(a->used_total, 50);
    sl__ledger_reset_peaks(&ledger);
    assert_int_equal(a->peak[SL_MEM_WEIGHTS], 0);
    assert_int_equal(a->peak_total, 50);
    sl__ledger_done(&ledger);
}

static void test_more_is_not_returned_than_was_booked(void **state)
{
    (void)state;
    sl__ledger ledger;
    sl_error err = {0};
    make(&ledger, 100);
    assert_ok(sl__ledger_book(&ledger, 0, SL_MEM_KV, 10, &err), &err);
    assert_int_equal(sl__ledger_return(&ledger, 0, SL_MEM_KV, 11, &err), SL_EINTERNAL);
    assert_int_equal(sl__ledger_return(&ledger, 0, SL_MEM_COMPUTE, 1, &err), SL_EINTERNAL);
    assert_int_equal(ledger.places[0].used_total, 10);
    sl__ledger_done(&ledger);
}

static void test_a_budget_below_what_is_booked_is_refused(void **state)
{
    (void)state;
    sl__ledger ledger;
    sl_error err = {0};
    make(&ledger, 100);
    assert_ok(sl__ledger_book(&ledger, 0, SL_MEM_KV, 10, &err), &err);
    assert_int_equal(sl__ledger_set_budget(&ledger, 0, "gpu0", 9, &err), SL_EBUDGET);
    assert_int_equal(ledger.places[0].budget_bytes, 100);
    assert_ok(sl__ledger_set_budget(&ledger, 0, "gpu0", 10, &err), &err);
    assert_int_equal(sl__ledger_free(&ledger, 0), 0);
    sl__ledger_done(&ledger);
}

static void test_a_difference_to_the_device_is_reported(void **state)
{
    (void)state;
    sl__ledger ledger;
    sl_error err = {0};
    make(&ledger, 100);
    assert_ok(sl__ledger_book(&ledger, 0, SL_MEM_KV, 10, &err), &err);
    assert_ok(sl__ledger_compare(&ledger, 0, 10, &err), &err);
    assert_int_equal(sl__ledger_compare(&ledger, 0, 12, &err), SL_EINTERNAL);
    assert_non_null(strstr(err.msg, "12"));
    assert_non_null(strstr(err.msg, "10"));
    sl__ledger_done(&ledger);
}

static void test_no_memory_for_a_ledger_leaves_nothing(void **state)
{
    (void)state;
    sl__ledger ledger;
    sl_error err = {0};
    sl__mem_fail_after(0);
    int r = sl__ledger_init(&ledger, 2, &err);
    sl__mem_fail_after(-1);
    assert_int_equal(r, SL_ENOMEM);
    assert_int_equal(ledger.n_places, 0);
    sl__ledger_done(&ledger);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_a_budget_is_reached_but_never_exceeded),
            cmocka_unit_test(test_G3_25_bytes_count_on_the_place_that_holds_them),
            cmocka_unit_test(test_peaks_are_kept_by_kind_and_in_all),
            cmocka_unit_test(test_more_is_not_returned_than_was_booked),
            cmocka_unit_test(test_a_budget_below_what_is_booked_is_refused),
            cmocka_unit_test(test_a_difference_to_the_device_is_reported),
            cmocka_unit_test(test_no_memory_for_a_ledger_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
