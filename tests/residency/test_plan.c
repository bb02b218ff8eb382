/* What a request may hold, and what a refusal says. */
#include <math.h>
#include <string.h>

#include "test_support.h"

#include "base/mem.h"
#include "random_plan.h"

static const size_t encoder[] = {0};
static const size_t both_ars[] = {1, 2};
static const size_t decoder[] = {3};

/* Three phases on a GPU; the decoder may also be on the CPU. */
typedef struct speech {
    sl_plan_place places[2];
    sl_plan_unit units[4];
    sl_plan_scratch kv;
    sl_plan_phase phases[3];
    sl_plan_request q;
} speech;

static void make(speech *s, uint64_t budget)
{
    *s = (speech){.places = {{"gpu0", budget, 0}, {"cpu", 1000, 0}},
            .units = {{"codec.encoder", 0, 30, SL_PLAN_NONE, 0}, {"slow", 0, 80, SL_PLAN_NONE, 0},
                    {"fast", 0, 10, SL_PLAN_NONE, 0}, {"codec.decoder", 0, 40, 1, 0}},
            .kv = {0, SL_MEM_KV, 15}};
    s->phases[0] = (sl_plan_phase){"encode", encoder, 1, NULL, 0, 1};
    s->phases[1] = (sl_plan_phase){"generate", both_ars, 2, &s->kv, 1, 1};
    s->phases[2] = (sl_plan_phase){"decode", decoder, 1, NULL, 0, 1};
    s->q = (sl_plan_request){.places = s->places,
            .n_places = 2,
            .units = s->units,
            .n_units = 4,
            .phases = s->phases,
            .n_phases = 3};
}

static void expect_refused(speech *s, const char *needle)
{
    sl_error err = {0};
    sl_plan *plan = NULL;
    assert_int_equal(sl_plan_solve(&s->q, &plan, &err), SL_EINVAL);
    assert_null(plan);
    if (!strstr(err.msg, needle)) {
        fail_msg("'%s' is not in: %s", needle, err.msg);
    }
}

static void test_a_refusal_names_the_floor_and_the_way_out(void **state)
{
    (void)state;
    speech s;
    sl_error err = {0};
    make(&s, 100);
    sl_plan *plan = rp_solve(&s.q);
    assert_int_equal(sl_plan_check(plan, &err), SL_EBUDGET);
    assert_non_null(strstr(err.msg, "gpu0: the budget of 100 bytes"));
    assert_non_null(strstr(err.msg, "policy swap needs 105 bytes"));
    assert_null(sl_plan_placement(plan));
    assert_int_equal(sl_plan_n_events(plan), 0);
    assert_int_equal(sl_plan_peak(plan, 1, 0).kind[SL_MEM_KV], 15);
    assert_int_equal(sl_plan_peak(plan, 1, 0).total, 105);
    sl_plan_free(&plan);

    s.q.policy = SL_POLICY_KEEP;
    s.places[0].budget_bytes = 135;
    plan = rp_solve(&s.q);
    assert_int_equal(sl_plan_check(plan, &err), SL_EBUDGET);
    assert_non_null(strstr(err.msg, "needs 175 bytes"));
    assert_non_null(strstr(err.msg, "swap, which needs 105"));
    assert_non_null(strstr(err.msg, "place codec.decoder on cpu"));
    assert_int_equal(sl_plan_placement(plan)[3], 1);
    sl_plan_free(&plan);
    assert_null(plan);
    sl_plan_free(&plan);
}

static void test_a_voice_from_a_profile_never_has_the_encoder(void **state)
{
    (void)state;
    static const size_t run[] = {1, 2};
    speech s;
    make(&s, 105);
    s.q.run = run;
    s.q.n_run = 2;
    sl_plan *plan = rp_solve(&s.q);
    assert_true(sl_plan_is_feasible(plan));
    assert_int_equal(sl_plan_bytes_moved(plan), 130);
    for (size_t i = 0; i < sl_plan_n_steps(plan); i++) {
        assert_int_equal(sl_plan_unit_role(plan, i, 0), SL_PLAN_ABSENT);
    }
    sl_plan_free(&plan);
}

static void test_indexes_out_of_range_are_refused(void **state)
{
    (void)state;
    static const size_t bad_unit[] = {4};
    static const size_t bad_run[] = {0, 3};
    speech s;
    make(&s, 200);
    s.units[1].i_place = 2;
    expect_refused(&s, "place of unit 'slow' is 2");
    make(&s, 200);
    s.units[1].i_second = 9;
    expect_refused(&s, "second place of unit 'slow' is 9");
    make(&s, 200);
    s.phases[2].units = bad_unit;
    expect_refused(&s, "unit of phase 'decode' is 4");
    make(&s, 200);
    s.kv.i_place = 2;
    expect_refused(&s, "scratch of phase 'generate' is 2");
    make(&s, 200);
    s.kv.kind = SL_MEM_WEIGHTS;
    expect_refused(&s, "needed is kv, compute or staging");
    make(&s, 200);
    s.q.run = bad_run;
    s.q.n_run = 2;
    expect_refused(&s, "phase of the run '' is 3");
}

static void test_numbers_out_of_range_are_refused(void **state)
{
    (void)state;
    speech s;
    make(&s, 200);
    s.q.n_units = SL_PLAN_N_MAX + 1;
    expect_refused(&s, "257 units");
    make(&s, 200);
    s.q.n_phases = 0;
    expect_refused(&s, "a run of 0 phases");
    make(&s, 200);
    s.q.policy = SL_POLICY_COUNT;
    expect_refused(&s, "policy 4");
    make(&s, 200);
    s.q.policy = SL_POLICY_HOT;
    s.q.is_cyclic = true;
    expect_refused(&s, "cannot be cyclic");
    make(&s, 200);
    s.phases[0].seconds = (double)NAN;
    expect_refused(&s, "phase 'encode' takes");
    make(&s, 200);
    s.places[1].link_bytes_per_s = -1;
    expect_refused(&s, "link of place 'cpu'");
    make(&s, 200);
    s.units[0].n_bytes = UINT64_MAX;
    expect_refused(&s, "more than 2^52");
    make(&s, 200);
    s.units[0].n_bytes = UINT64_C(1) << 53;
    expect_refused(&s, "more than 2^52");
}

static void test_every_failing_allocation_is_clean(void **state)
{
    (void)state;
    speech s;
    make(&s, 200);
    s.q.policy = SL_POLICY_AUTO;
    s.q.is_cyclic = true;
    int r = SL_ENOMEM;
    long n = 0;
    for (; r == SL_ENOMEM; n++) {
        sl_error err = {0};
        sl_plan *plan = NULL;
        sl__mem_fail_after(n);
        r = sl_plan_solve(&s.q, &plan, &err);
        sl__mem_fail_after(-1);
        assert_int_equal(plan == NULL, r < 0);
        assert_int_equal(err.code, r);
        sl_plan_free(&plan);
    }
    assert_int_equal(r, 0);
    assert_true(n > 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_a_refusal_names_the_floor_and_the_way_out),
            cmocka_unit_test(test_a_voice_from_a_profile_never_has_the_encoder),
            cmocka_unit_test(test_indexes_out_of_range_are_refused),
            cmocka_unit_test(test_numbers_out_of_range_are_refused),
            cmocka_unit_test(test_every_failing_allocation_is_clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
