/* Tables for people: the plan's numbers, in the width of a terminal, whatever names hold. */
#include "plan_text.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "plan_samples.h"
#include "test_support.h"

#define GIB (UINT64_C(1) << 30)

/* The caller frees. */
static char *print(const plan_view *view)
{
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    assert_non_null(f);
    plan_print_text(view, NULL, f);
    assert_int_equal(fclose(f), 0);
    return text;
}

static void expect(const char *text, const char *needle)
{
    if (!strstr(text, needle)) {
        fail_msg("'%s' is not in:\n%s", needle, text);
    }
}

static void expect_width(const char *text, size_t most)
{
    while (*text) {
        size_t n = strcspn(text, "\n");
        if (n > most) {
            fail_msg("%zu columns: %.*s", n, (int)n, text);
        }
        assert_true(n == 0 || text[n - 1] != ' ');
        text += n + (text[n] == '\n');
    }
}

static void test_a_plan_that_fits(void **state)
{
    (void)state;
    plan_sample s;
    sample_init(&s, GIB * 9 / 2, SL_POLICY_SWAP);
    sample_solve(&s);
    char *text = print(&s.view);
    expect(text, "Plan for s2-pro-q8_0.gguf: policy swap, 215 frames (10.0 s of speech)\n");
    expect(text, "  device                  budget        peak       floor  link\n"
                 "  vulkan0                4.5 GiB     4.3 GiB     4.1 GiB  11.2 GiB/s\n"
                 "  cpu                   12.0 GiB    64.0 MiB    64.0 MiB  -\n");
    expect(text, "  embed                       in place  cpu                -\n"
                 "  slow                         3.6 GiB  vulkan0            -\n"
                 "  fast                       381.5 MiB  vulkan0            cpu\n");
    expect(text, "  generate       vulkan0           4.1 GiB   88.0 MiB   38.1 MiB          -    "
                 "4.3 GiB    3.8 GiB\n");
    expect(text, "  encode              67 ms     0.90 s  in codec.encoder codec.quantizer; ahead "
                 "fast\n");
    expect(text, "  decode              37 ms     0.70 s  out slow fast; in codec.quantizer\n");
    expect(text, "  The run moves 5.3 GiB and takes 7.23 s, of it 0.43 s waiting for weights.\n");
    expect(text, "  budget of vulkan0    given by --vram\n");
    expect_width(text, 100);
    free(text);
    sample_done(&s);
}

static void test_a_refused_plan_says_what_is_needed(void **state)
{
    (void)state;
    plan_sample s;
    sample_init(&s, 4 * GIB, SL_POLICY_SWAP);
    sample_solve(&s);
    char *text = print(&s.view);
    expect(text,
            "  device                  budget       needs       floor  link\n"
            "  vulkan0                4.0 GiB     4.1 GiB     4.1 GiB  11.2 GiB/s; does not fit\n");
    expect(text,
            "  fast                       381.5 MiB  vulkan0            cpu; would fit on cpu\n");
    expect(text, "  phase needs    device");
    assert_null(strstr(text, "The run moves"));
    expect_width(text, 100);
    free(text);
    sample_done(&s);
}

static void test_many_steps_are_cut_and_that_is_said(void **state)
{
    (void)state;
    plan_sample s;
    size_t run[100];
    sample_init(&s, 5 * GIB, SL_POLICY_SWAP);
    for (size_t i = 0; i < 100; i++) {
        run[i] = i % 3;
    }
    s.request.run = run;
    s.request.n_run = 100;
    sample_solve(&s);
    char *text = print(&s.view);
    expect(text, "  ... and 76 phases more (--json lists all)\n");
    expect_width(text, 100);
    free(text);
    sample_done(&s);
}

static void test_names_are_escaped_and_cut(void **state)
{
    (void)state;
    plan_sample s;
    sample_init(&s, 5 * GIB, SL_POLICY_SWAP);
    s.places[0].name = "\x1B[31mred\xFF and a name that is far longer than its column is wide";
    s.units[1].name = s.places[0].name;
    s.phases[0].name = s.places[0].name;
    s.view.model = s.places[0].name;
    s.sources[0] = (plan_source){s.places[0].name, s.places[0].name};
    sample_solve(&s);
    char *text = print(&s.view);
    assert_null(strchr(text, 0x1B));
    assert_null(strchr(text, '\xFF'));
    expect(text, "\\x1b[31m");
    expect_width(text, 140);
    free(text);
    sample_done(&s);
}

static void test_times_for_people(void **state)
{
    (void)state;
    static const struct {
        double seconds;
        const char *text;
    } cases[] = {
            {0, "0.00 s"},
            {0.0004, "0.4 ms"},
            {0.037, "37 ms"},
            {0.35, "0.35 s"},
            {9.5, "9.50 s"},
            {12.34, "12.3 s"},
            {99.96, "1 min 40 s"},
            {125, "2 min 05 s"},
            {10800, "3.0 h"},
    };
    char buf[32];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_string_equal(plan_seconds_text(cases[i].seconds, buf, sizeof buf), cases[i].text);
    }
    assert_string_equal(plan_budget_text(PLAN_NO_LIMIT, buf, sizeof buf), "no limit");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_a_plan_that_fits),
            cmocka_unit_test(test_a_refused_plan_says_what_is_needed),
            cmocka_unit_test(test_many_steps_are_cut_and_that_is_said),
            cmocka_unit_test(test_names_are_escaped_and_cut),
            cmocka_unit_test(test_times_for_people),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
