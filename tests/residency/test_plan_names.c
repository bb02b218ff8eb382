/* Every value has a name of its own, and no other value has one. */
#include <string.h>

#include "test_support.h"

#include "sluice/plan.h"

static void test_names_are_those_of_the_command_line(void **state)
{
    (void)state;
    assert_string_equal(sl_policy_name(SL_POLICY_SWAP), "swap");
    assert_string_equal(sl_policy_name(SL_POLICY_KEEP), "keep");
    assert_string_equal(sl_policy_name(SL_POLICY_HOT), "hot");
    assert_string_equal(sl_policy_name(SL_POLICY_AUTO), "auto");
    assert_string_equal(sl_mem_kind_name(SL_MEM_KV), "kv");
}

static void test_every_value_has_a_name_and_no_other(void **state)
{
    (void)state;
    for (int i = 0; i <= SL_MEM_KIND_COUNT; i++) {
        bool is_unknown = strcmp(sl_mem_kind_name((sl_mem_kind)i), "unknown") == 0;
        assert_int_equal(is_unknown, i == SL_MEM_KIND_COUNT);
    }
    for (int i = 0; i <= SL_POLICY_COUNT; i++) {
        bool is_unknown = strcmp(sl_policy_name((sl_policy)i), "unknown") == 0;
        assert_int_equal(is_unknown, i == SL_POLICY_COUNT);
    }
    for (int i = 0; i <= SL_PLAN_ROLE_COUNT; i++) {
        bool is_unknown = strcmp(sl_plan_role_name((sl_plan_role)i), "unknown") == 0;
        assert_int_equal(is_unknown, i == SL_PLAN_ROLE_COUNT);
    }
    for (int i = 0; i <= SL_PLAN_EVENT_KIND_COUNT; i++) {
        const char *name = sl_plan_event_kind_name((sl_plan_event_kind)i);
        assert_int_equal(strcmp(name, "unknown") == 0, i == SL_PLAN_EVENT_KIND_COUNT);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_names_are_those_of_the_command_line),
            cmocka_unit_test(test_every_value_has_a_name_and_no_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
