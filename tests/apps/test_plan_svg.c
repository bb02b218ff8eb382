/* The picture is a document, says the plan's numbers, and survives any name. */
#include "plan_svg.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "plan_samples.h"
#include "random_plan.h"
#include "test_support.h"
#include "xml_check.h"

#define GIB       (UINT64_C(1) << 30)
#define N_SEEDS   400
#define EVIL_NAME "</text><script>alert(1)</script>&\"'\xFF\x01"

/* The picture of a solved sample. The result is the caller's to free. */
static char *draw(const plan_view *view)
{
    svg_out out = {0};
    sl_error err = {0};
    size_t n = 0;
    assert_ok(plan_svg_draw(view, NULL, &out, &err), &err);
    const char *text = svg_result(&out, &n);
    assert_non_null(text);
    const char *fault = xml_find_fault(text);
    if (fault) {
        fail_msg("not well-formed at: %.80s", fault);
    }
    char *copy = sl__strndup(text, n);
    assert_non_null(copy);
    svg_done(&out);
    return copy;
}

static void expect(const char *svg, const char *needle)
{
    if (!strstr(svg, needle)) {
        fail_msg("'%s' is not in the picture", needle);
    }
}

static void test_a_plan_that_fits(void **state)
{
    (void)state;
    plan_sample s;
    sample_init(&s, GIB * 9 / 2, SL_POLICY_SWAP);
    sample_solve(&s);
    char *svg = draw(&s.view);
    expect(svg, "role=\"img\" aria-labelledby=\"sluice-title sluice-desc\"");
    expect(svg, "<title id=\"sluice-title\">Memory plan of s2-pro-q8_0.gguf</title>");
    expect(svg, "policy swap, vulkan0 4.5 GiB, cpu 12.0 GiB, 215 frames (10.0 s of speech)");
    expect(svg,
            "Fits. 5.3 GiB are moved; predicted time 7.23 s, of it 0.43 s waiting for weights.");
    expect(svg, "Memory of vulkan0");
    expect(svg, "peak 4.3 GiB of the budget of 4.5 GiB; smallest budget that does: 4.1 GiB");
    expect(svg, ">slow 3.6 GiB<");
    expect(svg, "seconds, predicted");
    expect(svg, "budget of vulkan0: given by --vram");
    expect(svg, "@media (prefers-color-scheme:dark)");
    expect(svg, ">codec.encoder, codec.quantizer</text>");
    assert_int_equal(count_of(svg, "class=\"bar stall\""), 3);
    assert_int_equal(count_of(svg, "class=\"bar phase\""), 3);
    assert_int_equal(count_of(svg, "class=\"over\""), 0);
    assert_int_equal(count_of(svg, "http"), 1); /* the name space */
    char *again = draw(&s.view);
    assert_string_equal(svg, again);
    sl__free(again);
    sl__free(svg);
    sample_done(&s);
}

static void test_a_refused_plan_shows_its_needs(void **state)
{
    (void)state;
    static const sl_policy policies[] = {SL_POLICY_SWAP, SL_POLICY_KEEP};
    for (size_t i = 0; i < 2; i++) {
        plan_sample s;
        sample_init(&s, 4 * GIB, policies[i]);
        sample_solve(&s);
        char *svg = draw(&s.view);
        expect(svg, "Does not fit. vulkan0: the budget of 4294967296 bytes (4.0 GiB) is too small");
        expect(svg, i == 0 ? "needs 4.1 GiB, the budget is 4.0 GiB"
                           : "needs 5.5 GiB, the budget is 4.0 GiB");
        expect(svg, "a plan that does not fit has no times");
        assert_int_equal(count_of(svg, "<rect class=\"over\""), 1 + i);
        assert_int_equal(count_of(svg, "class=\"bar"), 0);
        sl__free(svg);
        sample_done(&s);
    }
}

static void test_speeds_that_are_not_known_are_said(void **state)
{
    (void)state;
    plan_sample s;
    sample_init(&s, 5 * GIB, SL_POLICY_SWAP);
    s.phases[1].seconds = 0;
    sample_solve(&s);
    char *svg = draw(&s.view);
    expect(svg, "drawn equally long, since speeds are not known");
    sl__free(svg);
    sample_done(&s);
}

static void test_one_phase_three_places_and_no_limit(void **state)
{
    (void)state;
    plan_sample s;
    sample_init(&s, 80 * GIB, SL_POLICY_AUTO);
    s.request.n_places = 3;
    s.units[5].i_place = 2;
    s.places[1].budget_bytes = PLAN_NO_LIMIT;
    sample_solve(&s);
    char *svg = draw(&s.view);
    expect(svg, "Memory of vulkan1");
    expect(svg, "budget 80.0 GiB, above this scale");
    expect(svg, "peak 64.0 MiB; no limit");
    sl__free(svg);
    s.request.phases = &s.phases[1];
    s.request.n_phases = 1;
    sample_solve(&s);
    svg = draw(&s.view);
    assert_int_equal(count_of(svg, "class=\"bar phase\""), 1);
    sl__free(svg);
    sample_done(&s);
}

static void test_names_of_any_bytes_and_length(void **state)
{
    (void)state;
    char name[3000];
    plan_sample s;
    sample_init(&s, 5 * GIB, SL_POLICY_SWAP);
    for (size_t i = 0; i + 1 < sizeof name; i++) {
        name[i] = "x<\xFF&"[i % 4];
    }
    name[sizeof name - 1] = '\0';
    for (int is_long = 0; is_long < 2; is_long++) {
        const char *evil = is_long ? name : EVIL_NAME;
        s.places[0].name = evil;
        s.units[1].name = evil;
        s.phases[1].name = evil;
        s.view.model = evil;
        s.sources[0] = (plan_source){evil, evil};
        sample_solve(&s);
        char *svg = draw(&s.view);
        assert_int_equal(count_of(svg, "<script"), 0);
        sl__free(svg);
    }
    s.places[0].name = NULL;
    s.units[1].name = NULL;
    s.phases[1].name = NULL;
    s.view.model = NULL;
    s.view.n_sources = 0;
    sample_solve(&s);
    char *svg = draw(&s.view);
    expect(svg, "Memory of ?");
    sl__free(svg);
    sample_done(&s);
}

static void test_random_plans_are_documents(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= N_SEEDS; seed++) {
        random_plan r;
        sl_plan *plan = rp_make_solved(seed, &r);
        plan_view view = {.request = &r.q, .plan = plan, .model = "m"};
        char *svg = draw(&view);
        assert_int_equal(count_of(svg, "nan"), 0);
        assert_int_equal(count_of(svg, "inf"), 0);
        sl__free(svg);
        sl_plan_free(&plan);
    }
}

static void test_the_file_is_complete_or_absent(void **state)
{
    (void)state;
    plan_sample s;
    char path[4200];
    sl_error err = {0};
    char *dir = test_dir_create();
    sample_init(&s, 5 * GIB, SL_POLICY_SWAP);
    sample_solve(&s);
    test_path(path, sizeof path, dir, "plan.svg");
    assert_ok(plan_svg_write(&s.view, NULL, path, &err), &err);
    size_t n = 0;
    char *file = test_read_file(path, &n);
    char *svg = draw(&s.view);
    assert_string_equal(file, svg);
    free(file);
    sl__free(svg);
    test_path(path, sizeof path, dir, "none/plan.svg");
    assert_int_equal(plan_svg_write(&s.view, NULL, path, &err), SL_ENOENT);
    assert_non_null(strstr(err.msg, "plan.svg"));
    sample_done(&s);
    test_dir_remove(dir);
}

static void test_memory_that_runs_out_is_an_error(void **state)
{
    (void)state;
    plan_sample s;
    sample_init(&s, 5 * GIB, SL_POLICY_SWAP);
    sample_solve(&s);
    int r = SL_ENOMEM;
    for (long n = 0; r < 0; n++) {
        svg_out out = {0};
        sl_error err = {0};
        sl__mem_fail_after(n);
        r = plan_svg_draw(&s.view, NULL, &out, &err);
        sl__mem_fail_after(-1);
        assert_true(r == 0 || r == SL_ENOMEM);
        assert_int_equal(err.code, r);
        svg_done(&out);
        assert_true(n < 1000);
    }
    sample_done(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_a_plan_that_fits),
            cmocka_unit_test(test_a_refused_plan_shows_its_needs),
            cmocka_unit_test(test_speeds_that_are_not_known_are_said),
            cmocka_unit_test(test_one_phase_three_places_and_no_limit),
            cmocka_unit_test(test_names_of_any_bytes_and_length),
            cmocka_unit_test(test_random_plans_are_documents),
            cmocka_unit_test(test_the_file_is_complete_or_absent),
            cmocka_unit_test(test_memory_that_runs_out_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
