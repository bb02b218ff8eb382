/* The memory over time is that of the plan: never above a step's peak, and that peak where there are no times. */
#include "plan_timeline.h"

#include <stdio.h>

#include "base/mem.h"
#include "plan_samples.h"
#include "random_plan.h"
#include "test_support.h"

#define N_SEEDS 1500

static void expect_levels(const plan_view *view, const plan_timeline *t, size_t i_place)
{
    plan_levels l;
    sl_error err = {0};
    assert_ok(plan_levels_init(&l, t, i_place, &err), &err);
    uint64_t most = 0;
    for (size_t i = 0; i < l.n; i++) {
        uint64_t sum = 0;
        assert_true(l.times[i] < l.times[i + 1]);
        assert_true(l.times[i] >= 0 && l.times[i + 1] <= t->end);
        for (size_t k = 0; k < l.n_layers; k++) {
            assert_int_equal(plan_levels_bottom(&l, i, k), sum);
            sum += plan_levels_bytes(&l, i, k);
        }
        assert_int_equal(plan_levels_total(&l, i), sum);
        most = sum > most ? sum : most;
        for (size_t s = 0; s < sl_plan_n_steps(view->plan); s++) {
            bool is_within = l.times[i] >= t->begins[s] && l.times[i + 1] <= t->begins[s + 1];
            bool is_planned = sl_plan_is_feasible(view->plan);
            assert_true(
                    !is_within || !is_planned || sum <= sl_plan_peak(view->plan, s, i_place).total);
        }
    }
    assert_int_equal(l.most, most);
    if (t->is_in_steps) {
        assert_int_equal(most, plan_peak_or_need(view, i_place).total);
    }
    assert_true(most <= plan_peak_or_need(view, i_place).total);
    plan_levels_done(&l);
}

static void test_random_plans_hold_what_they_plan(void **state)
{
    (void)state;
    size_t n_in_steps = 0;
    size_t n_refused = 0;
    for (uint64_t seed = 1; seed <= N_SEEDS; seed++) {
        random_plan r;
        uint64_t s = seed;
        sl_error err = {0};
        plan_timeline t;
        rp_make(seed, &r);
        rp_budget_at_floor(&r, &s, 20);
        if (seed % 5 == 0) {
            r.places[0].budget_bytes /= 2;
        }
        for (size_t i = 0; seed % 2 == 0 && i < r.q.n_phases; i++) {
            r.phases[i].seconds += 1;
        }
        sl_plan *plan = rp_solve(&r.q);
        plan_view view = {.request = &r.q, .plan = plan};
        assert_ok(plan_timeline_init(&t, &view, &err), &err);
        for (size_t i = 0; i < r.q.n_places; i++) {
            expect_levels(&view, &t, i);
        }
        n_in_steps += t.is_in_steps;
        n_refused += !sl_plan_is_feasible(plan);
        plan_timeline_done(&t);
        sl_plan_free(&plan);
    }
    assert_true(n_in_steps > 100 && n_in_steps < N_SEEDS - 100);
    assert_true(n_refused > 50);
}

static void test_times_are_those_of_the_events(void **state)
{
    (void)state;
    plan_sample s;
    plan_timeline t;
    sl_error err = {0};
    sample_init(&s, UINT64_C(9) << 29, SL_POLICY_SWAP);
    sample_solve(&s);
    assert_ok(plan_timeline_init(&t, &s.view, &err), &err);
    assert_false(t.is_in_steps);
    assert_true(t.end == sl_plan_seconds(s.plan));
    assert_int_equal(t.n_bars, sl_plan_n_events(s.plan));
    for (size_t i = 0; i < t.n_bars; i++) {
        const sl_plan_event *e = sl_plan_event_at(s.plan, i);
        assert_int_equal(t.bars[i].kind, e->kind);
        assert_true(t.bars[i].begin == e->begin_s);
        assert_true(t.bars[i].end == e->end_s);
    }
    plan_timeline_done(&t);
    sample_done(&s);
}

static void test_memory_that_runs_out_is_an_error(void **state)
{
    (void)state;
    plan_sample s;
    sample_init(&s, UINT64_C(9) << 29, SL_POLICY_SWAP);
    sample_solve(&s);
    int r = SL_ENOMEM;
    for (long n = 0; r < 0; n++) {
        plan_timeline t;
        plan_levels l = {0};
        sl_error err = {0};
        sl__mem_fail_after(n);
        r = plan_timeline_init(&t, &s.view, &err);
        if (r >= 0) {
            r = plan_levels_init(&l, &t, 0, &err);
        }
        sl__mem_fail_after(-1);
        assert_true(r == 0 || r == SL_ENOMEM);
        plan_levels_done(&l);
        plan_timeline_done(&t);
        assert_true(n < 1000);
    }
    sample_done(&s);
}

int main(void)
{
    printf("seeds 1 to %d\n", N_SEEDS);
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_random_plans_hold_what_they_plan),
            cmocka_unit_test(test_times_are_those_of_the_events),
            cmocka_unit_test(test_memory_that_runs_out_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
