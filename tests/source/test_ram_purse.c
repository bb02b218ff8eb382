/* A budget that is spent in steps, on a folder that stands for the machine. */
#include <stdio.h>

#include "fake_machine.h"
#include "source/ram_purse.h"
#include "test_support.h"

static void put_available(const fake_machine *m, uint64_t gib)
{
    char text[128];
    snprintf(text, sizeof text, "MemTotal: %llu kB\nMemAvailable: %llu kB\n",
            (unsigned long long)(64 * GIB / KIB), (unsigned long long)(gib * GIB / KIB));
    fake_put(m, "/proc/meminfo", text);
}

static sl__ram_purse fill(const sl_ram_opts *opts)
{
    sl_error err = {0};
    sl__ram_purse purse;
    assert_ok(sl__ram_purse_fill(opts, &purse, &err), &err);
    return purse;
}

static void test_what_was_spent_does_not_come_back(void **state)
{
    fake_machine *m = *state;
    put_available(m, 24); /* less the reserve of 4 */
    sl__ram_purse purse = fill(&(sl_ram_opts){.root = m->root});
    assert_int_equal(sl__ram_purse_now(&purse), 20 * GIB);
    sl__ram_purse_take(&purse, 15 * GIB);
    /* The machine counts the pages as available, since they are clean. */
    assert_int_equal(sl__ram_purse_now(&purse), 5 * GIB);
    sl__ram_purse_take(&purse, 6 * GIB);
    assert_int_equal(sl__ram_purse_now(&purse), 0);
    sl__ram_purse_done(&purse);
}

static void test_no_more_than_there_is_now(void **state)
{
    fake_machine *m = *state;
    put_available(m, 24);
    sl__ram_purse purse = fill(&(sl_ram_opts){.root = m->root});
    put_available(m, 10);
    /* The first answer is the sample from before the mapping. */
    assert_int_equal(sl__ram_purse_now(&purse), 20 * GIB);
    assert_int_equal(sl__ram_purse_now(&purse), 6 * GIB);
    sl__ram_purse_done(&purse);
}

static void test_a_given_budget(void **state)
{
    fake_machine *m = *state;
    put_available(m, 4);
    sl__ram_purse purse =
            fill(&(sl_ram_opts){.root = m->root, .has_given = true, .given_bytes = 7 * GIB});
    sl__ram_purse_take(&purse, 3 * GIB);
    assert_int_equal(sl__ram_purse_now(&purse), 4 * GIB);
    assert_int_equal(sl__ram_purse_now(&purse), 4 * GIB);
    sl__ram_purse_done(&purse);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test_setup_teardown(
                    test_what_was_spent_does_not_come_back, fake_set_up, fake_tear_down),
            cmocka_unit_test_setup_teardown(
                    test_no_more_than_there_is_now, fake_set_up, fake_tear_down),
            cmocka_unit_test_setup_teardown(test_a_given_budget, fake_set_up, fake_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
