/* Traces are read as what they are; any other file is an error of one line. */
#include "plan_overlay.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "plan_json.h"
#include "plan_samples.h"
#include "plan_svg.h"
#include "plan_text.h"
#include "residency/trace.h"
#include "test_support.h"
#include "xml_check.h"

#define GIB         (UINT64_C(1) << 30)
#define N_MUTATIONS 3000

static char *dir;

static int make_dir(void **state)
{
    (void)state;
    dir = test_dir_create();
    return 0;
}

static int remove_dir(void **state)
{
    (void)state;
    test_dir_remove(dir);
    return 0;
}

/* What happens in the made trace; bytes are booked when they are above 0 and returned when below. */
typedef struct step {
    sl__trace_kind kind;
    const char *name; /* NULL: a booking */
    double at_s;
    double seconds;
    int64_t megabytes;
    sl_mem_kind mem;
} step;

/* A request before, then one like the plan; the last phase holds more than any before. */
static const step steps[] = {
        {SL__TRACE_PHASE, "generate", 0.5, 0.5, 0, 0},
        {SL__TRACE_MEMORY, NULL, 2.0, 0, 800, SL_MEM_WEIGHTS},
        {SL__TRACE_LOAD, "codec.encoder", 2.0, 0.2, 350, 0},
        {SL__TRACE_MEMORY, NULL, 2.2, 0, 260, SL_MEM_COMPUTE},
        {SL__TRACE_LEASE, "codec.encoder", 2.2, 1, 0, 0},
        {SL__TRACE_PHASE, "encode", 2.5, 1.0, 0, 0},
        {SL__TRACE_MEMORY, NULL, 3.5, 0, -260, SL_MEM_COMPUTE},
        {SL__TRACE_MEMORY, NULL, 3.5, 0, -800, SL_MEM_WEIGHTS},
        {SL__TRACE_EVICT, "codec.encoder", 3.5, 0.01, 350, 0},
        {SL__TRACE_MEMORY, NULL, 3.6, 0, 3900, SL_MEM_WEIGHTS},
        {SL__TRACE_LOAD, "slow", 3.6, 0.4, 3900, 0},
        {SL__TRACE_STALL, "slow", 3.5, 0.5, 0, 0},
        {SL__TRACE_MEMORY, NULL, 4.0, 0, 92, SL_MEM_KV},
        {SL__TRACE_PHASE, "generate", 3.5, 6.0, 0, 0},
        {SL__TRACE_FAIL, "codec.decoder", 9.5, 0, 150, 0},
        {SL__TRACE_MEMORY, NULL, 9.6, 0, 310, SL_MEM_COMPUTE},
        {SL__TRACE_LOAD, "a unit of another model", 9.6, 0.1, 1, 0},
        {SL__TRACE_PHASE, "decode", 9.5, 1.0, 0, 0},
        {SL__TRACE_MEMORY, NULL, 12.0, 0, 200, SL_MEM_KV},
};
#define N_STEPS (sizeof steps / sizeof steps[0])

/* JSON of the first n steps, as it was written before loads had a route if there is none; the caller frees. */
static char *make_trace_by(const char *route, size_t n, size_t cap)
{
    sl__ledger ledger;
    sl__trace trace;
    sl__json j = {0};
    sl_error err = {0};
    assert_ok(sl__ledger_init(&ledger, 2, &err), &err);
    assert_ok(sl__ledger_set_budget(&ledger, 0, "vulkan0", 5 * GIB, &err), &err);
    assert_ok(sl__ledger_set_budget(&ledger, 1, "another", PLAN_NO_LIMIT, &err), &err);
    assert_ok(sl__trace_init(&trace, cap, 2, &err), &err);
    for (size_t i = 0; i < n; i++) {
        const step *s = &steps[i];
        uint64_t begin_ns = (uint64_t)((s->at_s + 100) * 1e9);
        uint64_t end_ns = begin_ns + (uint64_t)(s->seconds * 1e9);
        uint64_t n_bytes = (uint64_t)llabs(s->megabytes) * 1000000;
        if (s->name) {
            sl__trace_add(&trace, (sl__trace_event){s->kind, s->name, 0, n_bytes, begin_ns, end_ns,
                                          s->kind == SL__TRACE_LOAD ? route : NULL, 1});
            continue;
        }
        if (s->megabytes > 0) {
            assert_ok(sl__ledger_book(&ledger, 0, s->mem, n_bytes, &err), &err);
        } else {
            assert_ok(sl__ledger_return(&ledger, 0, s->mem, n_bytes, &err), &err);
        }
        sl__trace_memory(&trace, &ledger, begin_ns);
    }
    sl__trace_json(&trace, &ledger, SL_POLICY_SWAP, &j);
    char *text = sl__strndup(sl__json_text(&j, NULL), strlen(sl__json_text(&j, NULL)));
    assert_non_null(text);
    sl__json_done(&j);
    sl__trace_done(&trace);
    sl__ledger_done(&ledger);
    return text;
}

static char *make_trace(size_t n, size_t cap)
{
    return make_trace_by("memcpy", n, cap);
}

static void open_sample(plan_sample *s)
{
    sample_init(s, 5 * GIB, SL_POLICY_SWAP);
    sample_solve(s);
}

static int read_text(
        const plan_view *view, const char *text, size_t n, plan_actual *ret, sl_error *err)
{
    char path[4200];
    test_path(path, sizeof path, dir, "trace.json");
    test_write_file(path, text, n);
    return plan_actual_read(path, view, ret, err);
}

static bool is_near(double a, double b)
{
    return a - b < 1e-5 && b - a < 1e-5;
}

static plan_actual_bar find_bar(const plan_actual *a, plan_actual_kind kind, const char *name)
{
    size_t i = 0;
    while (i < a->n_bars && (a->bars[i].kind != kind || strcmp(a->bars[i].name, name) != 0)) {
        i++;
    }
    if (i == a->n_bars) {
        fail_msg("no event of kind %d named %s", (int)kind, name);
    }
    return a->bars[i];
}

static void test_the_latest_run_is_read_in_the_plan_s_terms(void **state)
{
    (void)state;
    plan_sample s;
    plan_actual a;
    sl_error err = {0};
    open_sample(&s);
    char *text = make_trace(N_STEPS, 100);
    assert_ok(read_text(&s.view, text, strlen(text), &a, &err), &err);
    assert_true(a.follows);
    assert_int_equal(a.n_runs, 1);
    assert_int_equal(a.n_dropped, 0);
    assert_string_equal(a.policy, "swap");
    /* From the load ahead of the first phase to the end of the last one. */
    assert_true(is_near(a.end_s, 8.5));
    plan_actual_bar encode = find_bar(&a, PLAN_ACTUAL_PHASE, "encode");
    assert_true(is_near(encode.begin_s, 0.5) && is_near(encode.end_s, 1.5));
    plan_actual_bar slow = find_bar(&a, PLAN_ACTUAL_LOAD, "slow");
    assert_int_equal(slow.i_unit, 1);
    assert_int_equal(slow.i_place, 0);
    assert_int_equal(slow.n_bytes, 3900000000);
    assert_true(is_near(find_bar(&a, PLAN_ACTUAL_STALL, "slow").begin_s, 1.5));
    assert_int_equal(find_bar(&a, PLAN_ACTUAL_FAIL, "codec.decoder").i_place, 0);
    assert_int_equal(
            find_bar(&a, PLAN_ACTUAL_LOAD, "a unit of another model").i_unit, SL_PLAN_NONE);
    /* The request before is not part of it, nor is what came after. */
    assert_int_equal(a.bars[0].kind, PLAN_ACTUAL_LOAD);
    assert_int_equal(a.places[0].peak.total, 4302000000);
    assert_int_equal(a.places[0].peak.kind[SL_MEM_KV], 92000000);
    assert_true(is_near(a.places[0].peak_s, 7.6));
    assert_true(a.places[0].levels[0].begin_s == 0);
    assert_false(a.places[1].is_known);
    plan_actual_done(&a);
    sl__free(text);
    sample_done(&s);
}

static void test_traces_with_and_without_routes_are_the_same(void **state)
{
    (void)state;
    plan_sample s;
    char *svgs[2] = {NULL, NULL};
    open_sample(&s);
    for (int i = 0; i < 2; i++) {
        plan_actual a;
        svg_out out = {0};
        sl_error err = {0};
        char *text = make_trace_by(i == 0 ? "memcpy" : NULL, N_STEPS, 100);
        assert_int_equal(count_of(text, "\"route\":\"memcpy\",\"stalls\":1"), i == 0 ? 3 : 0);
        assert_ok(read_text(&s.view, text, strlen(text), &a, &err), &err);
        assert_ok(plan_svg_draw(&s.view, &a, &out, &err), &err);
        const char *svg = svg_result(&out, NULL);
        svgs[i] = sl__strndup(svg, strlen(svg));
        assert_non_null(svgs[i]);
        svg_done(&out);
        plan_actual_done(&a);
        sl__free(text);
    }
    assert_string_equal(svgs[0], svgs[1]);
    sl__free(svgs[0]);
    sl__free(svgs[1]);
    sample_done(&s);
}

static void test_it_is_drawn_over_the_plan(void **state)
{
    (void)state;
    plan_sample s;
    plan_actual a;
    svg_out out = {0};
    sl_error err = {0};
    open_sample(&s);
    char *text = make_trace(N_STEPS, 100);
    assert_ok(read_text(&s.view, text, strlen(text), &a, &err), &err);
    assert_ok(plan_svg_draw(&s.view, &a, &out, &err), &err);
    const char *svg = svg_result(&out, NULL);
    assert_null(xml_find_fault(svg));
    assert_non_null(strstr(svg, ": planned and actual memory</text>"));
    assert_non_null(strstr(svg, "The trace: 8.50 s instead of 6.87 s."));
    assert_non_null(strstr(svg, "vulkan0 held 4.0 GiB at most, "));
    assert_non_null(strstr(svg, "phases, actual"));
    assert_int_equal(count_of(svg, "<path class=\"actual\" d=\"M118"), 1);
    assert_int_equal(count_of(svg, "<circle class=\"peak\""), 1);
    assert_int_equal(count_of(svg, "class=\"bar failed\""), 1);
    svg_done(&out);
    plan_actual_done(&a);
    sl__free(text);
    sample_done(&s);
}

static void test_tables_and_json_have_both_peaks(void **state)
{
    (void)state;
    plan_sample s;
    plan_actual a;
    sl__json j = {0};
    sl_error err = {0};
    char *table = NULL;
    size_t n = 0;
    open_sample(&s);
    char *text = make_trace(N_STEPS, 100);
    assert_ok(read_text(&s.view, text, strlen(text), &a, &err), &err);
    FILE *f = open_memstream(&table, &n);
    assert_non_null(f);
    plan_print_text(&s.view, &a, f);
    assert_int_equal(fclose(f), 0);
    assert_non_null(strstr(table, "The trace (policy swap)\n"
                                  "                         planned      actual\n"
                                  "  time                    6.87 s      8.50 s\n"
                                  "  vulkan0                5.0 GiB     4.0 GiB  80."));
    assert_null(strstr(table, "another"));
    free(table);
    plan_put_json(&s.view, &a, &j);
    assert_non_null(strstr(sl__json_text(&j, NULL),
            "\"trace\":{\"policy\":\"swap\",\"follows_plan\":true,\"dropped_events\":0,"));
    assert_non_null(strstr(sl__json_text(&j, NULL), "\"total\":4302000000"));
    sl__json_done(&j);
    plan_actual_done(&a);
    sl__free(text);
    sample_done(&s);
}

/* More than planned is said in the colour of a refusal. */
static void test_more_than_planned_stands_out(void **state)
{
    (void)state;
    plan_sample s;
    plan_actual a;
    svg_out out = {0};
    sl_error err = {0};
    sample_init(&s, 5 * GIB, SL_POLICY_SWAP);
    s.units[1].n_bytes = 1000000000;
    sample_solve(&s);
    char *text = make_trace(N_STEPS, 100);
    assert_ok(read_text(&s.view, text, strlen(text), &a, &err), &err);
    assert_true(a.places[0].peak.total > sl_plan_peak_of_run(s.plan, 0).total);
    assert_ok(plan_svg_draw(&s.view, &a, &out, &err), &err);
    assert_int_equal(count_of(svg_result(&out, NULL), "<text class=\"red\""), 1);
    svg_done(&out);
    plan_actual_done(&a);
    sl__free(text);
    sample_done(&s);
}

static void test_other_phases_are_shown_and_said(void **state)
{
    (void)state;
    plan_sample s;
    plan_actual a;
    sl_error err = {0};
    open_sample(&s);
    s.phases[0].name = "something else";
    char *text = make_trace(N_STEPS, 100);
    assert_ok(read_text(&s.view, text, strlen(text), &a, &err), &err);
    assert_false(a.follows);
    assert_true(is_near(a.end_s, 10.0));
    plan_actual_done(&a);
    sl__free(text);
    /* A ring that was too small for all of it. */
    text = make_trace(N_STEPS, 8);
    assert_ok(read_text(&s.view, text, strlen(text), &a, &err), &err);
    assert_int_equal(a.n_dropped, N_STEPS - 8);
    assert_false(a.follows);
    plan_actual_done(&a);
    sl__free(text);
    sample_done(&s);
}

#define HEAD   "{\"otherData\":{\"format\":\"sluice-trace\",\"version\":1,\"policy\":\"swap\","
#define PLACES "\"places\":[{\"name\":\"vulkan0\",\"tid\":3,\"budget_bytes\":1}]},\"traceEvents\":["

static void test_any_other_file_is_an_error(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *wanted;
    } cases[] = {
            {"", "no JSON"},
            {"<svg/>", "no JSON"},
            {"{", "no JSON"},
            {"{\"a\":1,\"a\":2}", "no JSON"},
            {"[]", "without the otherData"},
            {"3", "no JSON"},
            {"{}", "without the otherData"},
            {"{\"traceEvents\":[]}", "without the otherData"},
            {"{\"otherData\":[],\"traceEvents\":[]}", "without the otherData"},
            {"{\"otherData\":{\"format\":\"other\",\"places\":[]}}", "without the otherData"},
            {"{\"otherData\":{\"format\":\"sluice-trace\"}}", "without the otherData"},
            {"{\"otherData\":{\"format\":\"sluice-trace\",\"places\":[]}}", "another version"},
            {HEAD "\"places\":[]}}", "without traceEvents"},
            {HEAD "\"places\":[]},\"traceEvents\":{}}", "without traceEvents"},
            {HEAD "\"places\":[3]},\"traceEvents\":[]}", "places without name"},
            {HEAD PLACES "]}", "without a phase"},
            {HEAD PLACES "1,null,\"x\",[]]}", "without a phase"},
            {HEAD PLACES "{\"cat\":\"phase\"}]}", "no time"},
            {HEAD PLACES "{\"cat\":\"phase\",\"ts\":-1,\"dur\":1,\"name\":\"p\"}]}", "no time"},
            {HEAD PLACES "{\"cat\":\"phase\",\"ts\":1e300,\"dur\":1,\"name\":\"p\"}]}", "no time"},
            {HEAD PLACES "{\"cat\":\"phase\",\"ts\":\"1\",\"dur\":1,\"name\":\"p\"}]}", "no time"},
            {HEAD PLACES "{\"cat\":\"phase\",\"ts\":1,\"dur\":-5,\"name\":\"p\"}]}", "duration"},
            {HEAD PLACES "{\"cat\":\"phase\",\"ts\":1,\"dur\":5}]}", "duration"},
            {HEAD PLACES "{\"cat\":\"load\",\"ts\":1,\"name\":\"p\"}]}", "duration"},
            {HEAD PLACES "{\"cat\":\"memory\",\"ts\":1,\"tid\":3}]}", "without its bytes"},
            {HEAD PLACES "{\"cat\":\"memory\",\"ts\":1,\"tid\":3,\"args\":{\"weights\":-1,\"kv\":0,"
                         "\"compute\":0,\"staging\":0}}]}",
                    "without its bytes"},
    };
    plan_sample s;
    open_sample(&s);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        plan_actual a = {0};
        sl_error err = {0};
        int r = read_text(&s.view, cases[i].text, strlen(cases[i].text), &a, &err);
        if (r != SL_EFORMAT || !strstr(err.msg, cases[i].wanted) || strchr(err.msg, '\n')) {
            fail_msg("case %zu: %d, %s", i, r, err.msg);
        }
        assert_non_null(strstr(err.msg, "trace.json"));
    }
    sample_done(&s);
}

static void test_files_that_are_missing_or_too_large(void **state)
{
    (void)state;
    plan_sample s;
    plan_actual a = {0};
    sl_error err = {0};
    char path[4200];
    open_sample(&s);
    test_path(path, sizeof path, dir, "none.json");
    assert_int_equal(plan_actual_read(path, &s.view, &a, &err), SL_ENOENT);
    assert_true(plan_actual_read(dir, &s.view, &a, &err) < 0);
    size_t n = (size_t)PLAN_TRACE_MAX_BYTES + 1;
    char *big = calloc(n, 1);
    assert_non_null(big);
    memset(big, ' ', n);
    assert_int_equal(read_text(&s.view, big, n, &a, &err), SL_ELIMIT);
    /* As deep as it gets: an error, no overflow of the stack. */
    memset(big, '[', 1 << 20);
    assert_int_equal(read_text(&s.view, big, 1 << 20, &a, &err), SL_EFORMAT);
    free(big);
    sample_done(&s);
}

/* Changed at random: read or refused, and what is read can be drawn. */
static void test_changed_traces_are_read_or_refused(void **state)
{
    (void)state;
    static const char bytes[] = "0123456789{}[]\",:-.eE+ \x01\x80x";
    plan_sample s;
    uint64_t seed = 88172645463325252u;
    size_t n_read = 0;
    open_sample(&s);
    char *good = make_trace(N_STEPS, 100);
    size_t n = strlen(good);
    char *text = sl__strndup(good, n);
    assert_non_null(text);
    for (int i = 0; i < N_MUTATIONS; i++) {
        plan_actual a = {0};
        svg_out out = {0};
        sl_error err = {0};
        memcpy(text, good, n + 1);
        for (int k = 0; k < 1 + i % 3; k++) {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            text[seed % n] = bytes[(seed >> 40) % (sizeof bytes - 1)];
        }
        int r = read_text(&s.view, text, n, &a, &err);
        assert_true(r == 0 || r == SL_EFORMAT);
        if (r == 0 && i % 8 == 0) {
            assert_ok(plan_svg_draw(&s.view, &a, &out, &err), &err);
            assert_null(xml_find_fault(svg_result(&out, NULL)));
            svg_done(&out);
        }
        n_read += r == 0;
        plan_actual_done(&a);
    }
    assert_true(n_read > 100 && n_read < N_MUTATIONS - 100);
    sl__free(text);
    sl__free(good);
    sample_done(&s);
}

static void test_memory_that_runs_out_is_an_error(void **state)
{
    (void)state;
    plan_sample s;
    char path[4200];
    open_sample(&s);
    char *text = make_trace(N_STEPS, 100);
    test_path(path, sizeof path, dir, "trace.json");
    test_write_file(path, text, strlen(text));
    int r = SL_ENOMEM;
    for (long n = 0; r < 0; n++) {
        plan_actual a = {0};
        sl_error err = {0};
        sl__mem_fail_after(n);
        r = plan_actual_read(path, &s.view, &a, &err);
        sl__mem_fail_after(-1);
        assert_true(r == 0 || r == SL_ENOMEM);
        plan_actual_done(&a);
        assert_true(n < 1000);
    }
    sl__free(text);
    sample_done(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_the_latest_run_is_read_in_the_plan_s_terms),
            cmocka_unit_test(test_traces_with_and_without_routes_are_the_same),
            cmocka_unit_test(test_it_is_drawn_over_the_plan),
            cmocka_unit_test(test_tables_and_json_have_both_peaks),
            cmocka_unit_test(test_more_than_planned_stands_out),
            cmocka_unit_test(test_other_phases_are_shown_and_said),
            cmocka_unit_test(test_any_other_file_is_an_error),
            cmocka_unit_test(test_files_that_are_missing_or_too_large),
            cmocka_unit_test(test_changed_traces_are_read_or_refused),
            cmocka_unit_test(test_memory_that_runs_out_is_an_error),
    };
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
