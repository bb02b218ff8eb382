/* Phases follow their plan: peaks, prefetch, scratch, what leaves and what stays. */
#include <stdio.h>
#include <string.h>

#include "test_support.h"

#include "random_plan.h"
#include "rig.h"

/* encode = c, generate = a with a KV cache, decode = b with a compute buffer. */
static const size_t only_a[] = {0};
static const size_t only_b[] = {1};
static const size_t only_c[] = {2};

typedef struct toy {
    sl_plan_place places[2];
    sl_plan_unit units[RIG_N_UNITS];
    sl_plan_scratch kv;
    sl_plan_scratch compute;
    sl_plan_phase phases[3];
    sl_plan_request q;
} toy;

static const size_t one_request[] = {0, 1, 2};

static sl_plan *make_plan(
        toy *t, uint64_t budget, sl_policy policy, const size_t *run, size_t n_run)
{
    *t = (toy){.places = {{"gpu", budget, 0}, {"cpu", 1024, 0}},
            .units = {{"a", 0, RIG_A_BYTES, SL_PLAN_NONE, 0},
                    {"b", 0, RIG_B_BYTES, SL_PLAN_NONE, 0}, {"c", 0, RIG_C_BYTES, SL_PLAN_NONE, 0}},
            .kv = {RIG_GPU, SL_MEM_KV, 64},
            .compute = {RIG_GPU, SL_MEM_COMPUTE, 32}};
    t->phases[0] = (sl_plan_phase){"encode", only_c, 1, NULL, 0, 0};
    t->phases[1] = (sl_plan_phase){"generate", only_a, 1, &t->kv, 1, 0};
    t->phases[2] = (sl_plan_phase){"decode", only_b, 1, &t->compute, 1, 0};
    t->q = (sl_plan_request){.places = t->places,
            .n_places = 2,
            .units = t->units,
            .n_units = RIG_N_UNITS,
            .phases = t->phases,
            .n_phases = 3,
            .run = run,
            .n_run = n_run,
            .policy = policy};
    return rp_solve(&t->q);
}

/* Runs a step with its scratch; memory is as planned to the byte. */
static int run_step(rig *g, const sl_plan *plan, size_t i_step, size_t i_phase, sl_error *err)
{
    static const size_t unit_of_phase[] = {2, 0, 1};
    static const sl_mem_kind kinds[] = {SL_MEM_KV, SL_MEM_KV, SL_MEM_COMPUTE};
    static const uint64_t bytes[] = {0, 64, 32};
    sl_phase *phase = NULL;
    sl_scratch *scratch = NULL;
    sl_place_status place;
    sl_residency_reset_peaks(g->r);
    int r = sl_phase_begin(g->r, plan, i_step, "phase", false, NULL, &phase, err);
    if (r >= 0 && bytes[i_phase] > 0) {
        r = sl_scratch_acquire(
                g->r, RIG_GPU, kinds[i_phase], bytes[i_phase], true, NULL, &scratch, err);
    }
    if (r >= 0) {
        size_t u = unit_of_phase[i_phase];
        g->leases[u] = sl_phase_lease(phase);
        rig_expect_bytes(g, u);
        g->leases[u] = NULL;
        assert_int_equal(rig_settle(g), 0);
        assert_ok(sl_residency_place_status(g->r, RIG_GPU, &place, err), err);
        sl_plan_bytes planned = sl_plan_peak(plan, i_step, RIG_GPU);
        assert_int_equal(place.used_total, planned.total);
        assert_memory_equal(place.used, planned.kind, sizeof place.used);
        assert_int_equal(rig_live(g), planned.kind[SL_MEM_WEIGHTS] + bytes[i_phase]);
    }
    rig_expect_rules(g, false);
    sl_scratch_release(&scratch);
    sl_phase_end(&phase);
    assert_int_equal(rig_settle(g), 0);
    return r;
}

static void run_plan(rig *g, const sl_plan *plan, const size_t *run, size_t n)
{
    sl_error err = {0};
    for (size_t i = 0; i < n; i++) {
        assert_ok(run_step(g, plan, i, run[i], &err), &err);
    }
}

static void test_swap_at_the_floor_and_what_is_left_behind(void **state)
{
    (void)state;
    toy t;
    rig g;
    uint64_t floor = RIG_A_BYTES + 64;
    sl_plan *plan = make_plan(&t, floor, SL_POLICY_SWAP, one_request, 3);
    assert_true(sl_plan_is_feasible(plan));
    rig_open(&g, &rig_toy, &(rig_opts){.budget_bytes = floor});
    for (int k = 0; k < 50; k++) {
        run_plan(&g, plan, one_request, 3);
        assert_int_equal(rig_live(&g), 0);
        assert_int_equal(rig_used(&g), 0);
    }
    sl__sim_stats stats;
    sl__sim_get_stats(g.devices[RIG_GPU], &stats);
    assert_true(stats.peak_bytes <= floor);
    rig_close(&g);
    sl_plan_free(&plan);
}

static void test_every_policy_and_budget_runs_as_planned(void **state)
{
    (void)state;
    static const sl_policy policies[] = {
            SL_POLICY_SWAP, SL_POLICY_HOT, SL_POLICY_AUTO, SL_POLICY_KEEP};
    size_t n_runs = 0;
    for (size_t p = 0; p < 4; p++) {
        for (uint64_t budget = 32; budget <= 448; budget += 32) {
            toy t;
            rig g;
            sl_plan *plan = make_plan(&t, budget, policies[p], one_request, 3);
            if (sl_plan_is_feasible(plan)) {
                rig_open(&g, &rig_toy, &(rig_opts){.budget_bytes = budget, .policy = policies[p]});
                run_plan(&g, plan, one_request, 3);
                bool leaves = policies[p] == SL_POLICY_SWAP || policies[p] == SL_POLICY_HOT;
                assert_int_equal(rig_live(&g) == 0, leaves);
                rig_expect_usable(&g);
                rig_close(&g);
                n_runs++;
            }
            sl_plan_free(&plan);
        }
    }
    assert_true(n_runs > 20);
}

static uint64_t loads(rig *g, size_t i_unit)
{
    sl_unit_status status;
    sl_residency_unit_status(g->r, i_unit, &status);
    return status.n_loads;
}

/* Ten sentences: a and b are loaded once if both fit, else b as often as the plan says. */
static void test_G3_27_segments_of_one_request_keep_what_they_share(void **state)
{
    (void)state;
    static const size_t run[20] = {1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2};
    static const uint64_t budgets[] = {1024, RIG_A_BYTES + RIG_B_BYTES + 64, RIG_A_BYTES + 64};
    for (size_t i = 0; i < 3; i++) {
        toy t;
        rig g;
        sl_plan *plan = make_plan(&t, budgets[i], SL_POLICY_SWAP, run, 20);
        rig_open(&g, &rig_toy, &(rig_opts){.budget_bytes = budgets[i]});
        run_plan(&g, plan, run, 20);
        assert_int_equal(loads(&g, 0), i < 2 ? 1 : 10);
        assert_int_equal(loads(&g, 1), i < 2 ? 1 : 10);
        sl__sim_stats stats;
        sl__sim_get_stats(g.devices[RIG_GPU], &stats);
        uint64_t most = loads(&g, 0) * RIG_A_BYTES + loads(&g, 1) * RIG_B_BYTES;
        assert_true(stats.copied_bytes <= most && stats.copied_bytes > most / 2);
        rig_close(&g);
        sl_plan_free(&plan);
    }
}

/* The same path for every entry point: each call of the device fails once in a run of phases. */
static void test_G3_21_a_phase_that_fails_says_so_and_leaves_nothing(void **state)
{
    (void)state;
    toy t;
    size_t n_failed = 0;
    sl_plan *plan = make_plan(&t, 352, SL_POLICY_SWAP, one_request, 3);
    for (int call = 0; call < SL__SIM_CALL_COUNT; call++) {
        for (uint64_t k = 1; k <= 16; k++) {
            rig g;
            sl__sim_fault fault = {SL__SIM_FAIL, (sl__sim_call)call, k};
            rig_open(&g, &rig_toy,
                    &(rig_opts){.budget_bytes = 352, .faults = &fault, .n_faults = 1});
            for (size_t i = 0; i < 3; i++) {
                sl_error err = {0};
                sl_phase *phase = NULL;
                int r = sl_phase_begin(g.r, plan, i, "p", false, NULL, &phase, &err);
                assert_int_equal(phase == NULL, r < 0);
                assert_int_equal(err.code, r);
                n_failed += r < 0;
                sl_phase_end(&phase);
                assert_int_equal(rig_settle(&g), 0);
                rig_expect_rules(&g, true);
                assert_true(r >= 0 || !g.r->has_phase);
            }
            rig_expect_usable(&g);
            rig_close(&g);
        }
    }
    assert_true(n_failed > 5);
    sl_plan_free(&plan);
}

static void test_the_next_phase_arrives_while_this_one_runs(void **state)
{
    (void)state;
    toy t;
    rig g;
    sl_error err = {0};
    sl_phase *phase = NULL;
    sl_plan *plan = make_plan(&t, 1024, SL_POLICY_SWAP, one_request, 3);
    rig_open(&g, &rig_toy, &(rig_opts){0});
    assert_ok(sl_phase_begin(g.r, plan, 0, "encode", false, NULL, &phase, &err), &err);
    assert_int_equal(rig_settle(&g), 0);
    assert_int_equal(rig_state(&g, 0), SL_UNIT_RESIDENT);
    assert_int_equal(rig_state(&g, 1), SL_UNIT_ABSENT);
    sl_phase_end(&phase);
    assert_int_equal(rig_settle(&g), 0);
    assert_int_equal(rig_state(&g, 2), SL_UNIT_ABSENT);
    assert_int_equal(rig_state(&g, 0), SL_UNIT_RESIDENT);
    rig_close(&g);
    sl_plan_free(&plan);
}

/* Scratch that the plan does not know of takes what may stay before what was fetched ahead. */
static void test_what_the_next_phase_needs_leaves_last(void **state)
{
    (void)state;
    static const size_t run[] = {1, 0, 2, 1};
    toy t;
    rig g;
    sl_error err = {0};
    sl_phase *phase = NULL;
    sl_plan *plan = make_plan(&t, 1024, SL_POLICY_AUTO, run, 4);
    rig_open(&g, &rig_toy, &(rig_opts){.budget_bytes = 384, .policy = SL_POLICY_AUTO});
    assert_ok(sl_phase_begin(g.r, plan, 0, "generate", false, NULL, &phase, &err), &err);
    sl_phase_end(&phase);
    assert_ok(sl_phase_begin(g.r, plan, 1, "encode", false, NULL, &phase, &err), &err);
    assert_int_equal(rig_settle(&g), 0);
    /* c is leased, b is there for the next phase, a stays for the one behind it. */
    assert_int_equal(sl_plan_unit_role(plan, 1, 1), SL_PLAN_AHEAD);
    assert_int_equal(sl_plan_unit_role(plan, 1, 0), SL_PLAN_STAYS);
    assert_int_equal(rig_state(&g, 0), SL_UNIT_RESIDENT);
    assert_int_equal(rig_state(&g, 1), SL_UNIT_RESIDENT);
    assert_ok(sl_scratch_acquire(g.r, 0, SL_MEM_COMPUTE, 96, true, NULL, &g.scratch, &err), &err);
    assert_int_equal(rig_state(&g, 0), SL_UNIT_ABSENT);
    assert_int_equal(rig_state(&g, 1), SL_UNIT_RESIDENT);
    assert_int_equal(rig_state(&g, 2), SL_UNIT_RESIDENT);
    sl_phase_end(&phase);
    rig_close(&g);
    sl_plan_free(&plan);
}

static void test_one_phase_at_a_time_and_only_of_a_plan_that_fits(void **state)
{
    (void)state;
    toy t;
    rig g;
    sl_error err = {0};
    sl_phase *phase = NULL;
    sl_phase *other = NULL;
    sl_plan *plan = make_plan(&t, 1024, SL_POLICY_SWAP, one_request, 3);
    toy small;
    sl_plan *bad = make_plan(&small, 32, SL_POLICY_SWAP, one_request, 3);
    rig_open(&g, &rig_toy, &(rig_opts){0});
    assert_int_equal(sl_phase_begin(g.r, bad, 0, "p", false, NULL, &phase, &err), SL_EBUDGET);
    assert_int_equal(sl_phase_begin(g.r, plan, 3, "p", false, NULL, &phase, &err), SL_EINVAL);
    assert_ok(sl_phase_begin(g.r, plan, 0, "p", true, NULL, &phase, &err), &err);
    assert_int_equal(sl_phase_begin(g.r, plan, 1, "p", false, NULL, &other, &err), SL_EBUSY);
    assert_int_equal(sl_residency_sleep(g.r, 1, NULL, &err), SL_EBUSY);
    sl_phase_end(&phase);
    assert_null(phase);
    sl_phase_end(&phase);
    rig_close(&g);
    sl_plan_free(&plan);
    sl_plan_free(&bad);
}

static void test_keep_holds_scratch_until_it_sleeps(void **state)
{
    (void)state;
    toy t;
    rig g;
    sl_error err = {0};
    sl_plan *plan = make_plan(&t, 1024, SL_POLICY_KEEP, one_request, 3);
    rig_open(&g, &rig_toy, &(rig_opts){.policy = SL_POLICY_KEEP});
    run_plan(&g, plan, one_request, 3);
    uint64_t weights = RIG_A_BYTES + RIG_B_BYTES + RIG_C_BYTES;
    assert_int_equal(rig_used(&g), weights + 64 + 32);
    assert_ok(sl_residency_sleep(g.r, 1, NULL, &err), &err);
    assert_int_equal(rig_used(&g), weights);
    assert_ok(sl_residency_sleep(g.r, 2, NULL, &err), &err);
    assert_int_equal(rig_used(&g), 0);
    rig_close(&g);
    sl_plan_free(&plan);
}

static void test_scratch_evicts_but_never_what_is_leased(void **state)
{
    (void)state;
    rig g;
    sl_error err = {0};
    rig_open(&g, &rig_toy, &(rig_opts){.budget_bytes = RIG_A_BYTES + RIG_C_BYTES});
    assert_ok(rig_acquire(&g, 0, false, &err), &err);
    assert_ok(rig_acquire(&g, 2, false, &err), &err);
    rig_release(&g, 2);
    assert_int_equal(
            sl_scratch_acquire(g.r, 0, SL_MEM_KV, 65, true, NULL, &g.scratch, &err), SL_EBUDGET);
    assert_int_equal(rig_state(&g, 2), SL_UNIT_RESIDENT);
    assert_ok(sl_scratch_acquire(g.r, 0, SL_MEM_KV, 64, true, NULL, &g.scratch, &err), &err);
    assert_int_equal(rig_state(&g, 2), SL_UNIT_ABSENT);
    assert_int_equal(sl_buffer_size(sl_scratch_buffer(g.scratch)), 64);
    rig_expect_bytes(&g, 0);
    sl_scratch *bad = NULL;
    assert_int_equal(
            sl_scratch_acquire(g.r, 0, SL_MEM_WEIGHTS, 1, true, NULL, &bad, &err), SL_EINVAL);
    assert_int_equal(sl_scratch_acquire(g.r, 2, SL_MEM_KV, 1, true, NULL, &bad, &err), SL_EINVAL);
    rig_close(&g);
}

static void test_G3_25_scratch_counts_where_it_is(void **state)
{
    (void)state;
    rig g;
    sl_error err = {0};
    sl_place_status cpu;
    rig_open(&g, &rig_toy, &(rig_opts){0});
    assert_ok(sl_scratch_acquire(g.r, RIG_CPU, SL_MEM_KV, 512, true, NULL, &g.scratch, &err), &err);
    assert_ok(sl_residency_place_status(g.r, RIG_CPU, &cpu, &err), &err);
    assert_int_equal(cpu.used[SL_MEM_KV], 512);
    assert_int_equal(rig_used(&g), 0);
    assert_int_equal(rig_live(&g), 0);
    rig_close(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_swap_at_the_floor_and_what_is_left_behind),
            cmocka_unit_test(test_every_policy_and_budget_runs_as_planned),
            cmocka_unit_test(test_G3_27_segments_of_one_request_keep_what_they_share),
            cmocka_unit_test(test_G3_21_a_phase_that_fails_says_so_and_leaves_nothing),
            cmocka_unit_test(test_the_next_phase_arrives_while_this_one_runs),
            cmocka_unit_test(test_what_the_next_phase_needs_leaves_last),
            cmocka_unit_test(test_one_phase_at_a_time_and_only_of_a_plan_that_fits),
            cmocka_unit_test(test_keep_holds_scratch_until_it_sleeps),
            cmocka_unit_test(test_scratch_evicts_but_never_what_is_leased),
            cmocka_unit_test(test_G3_25_scratch_counts_where_it_is),
    };
    return cmocka_run_group_tests(tests, rig_set_up, rig_tear_down);
}
