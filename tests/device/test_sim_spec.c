#include "test_support.h"

#include <stdio.h>
#include <string.h>

#include "device/sim.h"

static sl__sim_spec parse(const char *text)
{
    sl__sim_spec spec = {0};
    sl_error err = {0};
    assert_ok(sl__sim_parse(text, &spec, &err), &err);
    return spec;
}

static void test_size_alone(void **state)
{
    (void)state;
    sl__sim_spec spec = parse("sim:4G");
    assert_int_equal(spec.n_bytes, UINT64_C(4) << 30);
    assert_int_equal(spec.link_bytes_s, 0);
    assert_int_equal(spec.max_alloc_bytes, 0);
    assert_int_equal(spec.alignment, 256);
    assert_true(spec.has_pinned);
    assert_false(spec.can_register);
    assert_false(spec.keeps_pages);
    assert_false(spec.has_virtual_clock || spec.is_stepped || spec.poisons);
    assert_int_equal(spec.n_faults, 0);
}

static void test_every_part(void **state)
{
    (void)state;
    sl__sim_spec spec =
            parse("sim:100,link=12G,max-alloc=256M,align=4K,pinned=no,register=yes,keep-pages=yes,"
                  "fail=alloc:3,slow=copy:1,lost=wait:18446744073709551615,short=read:2");
    assert_int_equal(spec.n_bytes, 100);
    assert_int_equal(spec.link_bytes_s, UINT64_C(12) << 30);
    assert_int_equal(spec.max_alloc_bytes, 256 << 20);
    assert_int_equal(spec.alignment, 4096);
    assert_false(spec.has_pinned);
    assert_true(spec.can_register);
    assert_true(spec.keeps_pages);
    assert_int_equal(spec.n_faults, 4);
    assert_int_equal(spec.faults[0].kind, SL__SIM_FAIL);
    assert_int_equal(spec.faults[0].call, SL__SIM_ALLOC);
    assert_int_equal(spec.faults[0].n, 3);
    assert_int_equal(spec.faults[1].kind, SL__SIM_SLOW);
    assert_int_equal(spec.faults[1].call, SL__SIM_COPY);
    assert_int_equal(spec.faults[2].kind, SL__SIM_LOST);
    assert_true(spec.faults[2].n == UINT64_MAX);
    assert_int_equal(spec.faults[3].kind, SL__SIM_SHORT);
    assert_int_equal(parse("sim:1T,link=1").n_bytes, UINT64_C(1) << 40);
}

static void test_every_kind_of_call_has_its_name(void **state)
{
    (void)state;
    for (int c = 0; c < SL__SIM_CALL_COUNT; c++) {
        char text[64];
        snprintf(text, sizeof text, "sim:1K,fail=%s:7", sl__sim_call_name((sl__sim_call)c));
        assert_int_equal(parse(text).faults[0].call, c);
    }
    assert_string_equal(sl__sim_call_name(SL__SIM_CALL_COUNT), "unknown");
}

typedef struct bad_case {
    const char *text;
    const char *quoted; /* the part at fault, as the message shows it */
    const char *needed;
} bad_case;

static const bad_case bad_cases[] = {
        {"", "", "sim:SIZE"},
        {"sim", "sim", "sim:SIZE"},
        {"SIM:4G", "SIM:4G", "sim:SIZE"},
        {"sim:", "''", "whole number"},
        {"sim:,link=1", "''", "whole number"},
        {"sim:4g", "'4g'", "whole number"},
        {"sim:4.5G", "'4.5G'", "whole number"},
        {"sim:-1", "'-1'", "whole number"},
        {"sim:G", "'G'", "whole number"},
        {"sim: 4G", "' 4G'", "whole number"},
        {"sim:0", "'0'", "from 1 to"},
        {"sim:2048T", "'2048T'", "from 1 to 1125899906842624"},
        {"sim:99999999999999999999", "'99999999999999999999'", "whole number"},
        {"sim:18446744073709551615T", "'18446744073709551615T'", "whole number"},
        {"sim:4G,", "''", "parts are link="},
        {"sim:4G,,link=1", "''", "parts are link="},
        {"sim:4G,link", "'link'", "whole number"},
        {"sim:4G,link=", "'link='", "whole number"},
        {"sim:4G,link=0", "'link=0'", "from 1 to"},
        {"sim:4G,speed=1", "'speed=1'", "parts are link="},
        {"sim:4G,link=1,link=2", "'link=2'", "given twice"},
        {"sim:4G,align=3", "'align=3'", "power of two"},
        {"sim:4G,align=2M", "'align=2M'", "from 1 to 1048576"},
        {"sim:4G,max-alloc=0", "'max-alloc=0'", "from 1 to"},
        {"sim:4G,pinned=maybe", "'pinned=maybe'", "yes or no"},
        {"sim:4G,fail=alloc", "'fail=alloc'", "alloc:3"},
        {"sim:4G,fail=alloc:", "'fail=alloc:'", "alloc:3"},
        {"sim:4G,fail=alloc:0", "'fail=alloc:0'", "from 1"},
        {"sim:4G,fail=alloc:x", "'fail=alloc:x'", "from 1"},
        {"sim:4G,fail=all:1", "'fail=all:1'", "a kind of alloc, free"},
        {"sim:4G,fail=", "'fail='", "a kind of alloc, free"},
        {"sim:4G,short=alloc:1", "'short=alloc:1'", "only read"},
        {"sim:4G,link=\033[31m", "\\x1b[31m", "whole number"},
        {"sim:1,fail=free:1,fail=free:2,fail=free:3,fail=free:4,fail=free:5,fail=free:6,fail=free:"
         "7,"
         "fail=free:8,fail=free:9",
                "'fail=free:9'", "at most 8"},
};

static void test_every_mistake_is_named(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof bad_cases / sizeof bad_cases[0]; i++) {
        sl__sim_spec spec = {.n_bytes = 77};
        sl_error err = {0};
        int r = sl__sim_parse(bad_cases[i].text, &spec, &err);
        if (r != SL_EINVAL || !strstr(err.msg, bad_cases[i].quoted) ||
                !strstr(err.msg, bad_cases[i].needed)) {
            fail_msg("'%s' gave %d: %s", bad_cases[i].text, r, err.msg);
        }
        assert_int_equal(spec.n_bytes, 77);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_size_alone),
            cmocka_unit_test(test_every_part),
            cmocka_unit_test(test_every_kind_of_call_has_its_name),
            cmocka_unit_test(test_every_mistake_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
