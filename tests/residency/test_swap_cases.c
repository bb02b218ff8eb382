/* Public failures of programs that swap weights, each as a test that names it; others stand with what they test. */
#include <stdio.h>
#include <string.h>

#include "test_support.h"

#include "random_plan.h"
#include "rig.h"

/* The units of the rig in two phases, a and b taking turns, and c that both need. */
static const size_t a_and_c[] = {0, 2};
static const size_t b_and_c[] = {1, 2};

typedef struct turns {
    sl_plan_place places[2];
    sl_plan_unit units[RIG_N_UNITS];
    sl_plan_phase phases[2];
    sl_plan_scratch kv;
    sl_plan_request q;
} turns;

static sl_plan *make_plan(turns *t, uint64_t budget, sl_policy policy, const size_t *run, size_t n)
{
    *t = (turns){.places = {{"gpu", budget, 0}, {"cpu", UINT64_MAX, 0}},
            .units = {{"a", RIG_GPU, RIG_A_BYTES, SL_PLAN_NONE, 0},
                    {"b", RIG_GPU, RIG_B_BYTES, SL_PLAN_NONE, 0},
                    {"c", RIG_GPU, RIG_C_BYTES, SL_PLAN_NONE, 0}},
            .kv = {RIG_GPU, SL_MEM_KV, 64}};
    t->phases[0] = (sl_plan_phase){"generate", a_and_c, 2, &t->kv, 1, 1};
    t->phases[1] = (sl_plan_phase){"decode", b_and_c, 2, NULL, 0, 1};
    t->q = (sl_plan_request){.places = t->places,
            .n_places = 2,
            .units = t->units,
            .n_units = RIG_N_UNITS,
            .phases = t->phases,
            .n_phases = 2,
            .run = run,
            .n_run = n,
            .policy = policy};
    return rp_solve(&t->q);
}

/* One step: the phase's units hold the bytes of the file. */
static void run_step(rig *g, const sl_plan *plan, size_t i_step, size_t i_phase)
{
    sl_error err = {0};
    sl_phase *phase = NULL;
    const size_t *units = i_phase == 0 ? a_and_c : b_and_c;
    assert_ok(sl_phase_begin(g->r, plan, i_step, "p", false, NULL, &phase, &err), &err);
    for (size_t i = 0; i < 2; i++) {
        g->leases[units[i]] = sl_phase_lease(phase);
        rig_expect_bytes(g, units[i]);
        g->leases[units[i]] = NULL;
    }
    sl_phase_end(&phase);
}

static void test_G3_08_memory_that_is_shared_is_not_counted_twice(void **state)
{
    (void)state;
    turns t;
    rig g;
    static const size_t run[] = {0, 1};
    sl_plan *plan = make_plan(&t, 1024, SL_POLICY_SWAP, run, 2);
    sl_plan_free(&plan);
    rig_open(&g, &rig_toy, &(rig_opts){0});
    for (size_t u = 0; u < RIG_N_UNITS; u++) {
        size_t index = 0;
        sl_error err = {0};
        sl_unit_spec spec = {.name = "shared",
                .model = rig_toy.model,
                .tensors = rig_toy.tensors[u],
                .n_tensors = rig_toy.n_tensors[u],
                .i_place = RIG_CPU,
                .i_second = SL_PLAN_NONE};
        assert_ok(sl_residency_add_unit(g.r, &spec, &index, &err), &err);
        t.units[u].i_place = RIG_CPU;
        t.units[u].n_bytes = sl_residency_unit_bytes(g.r, index, RIG_CPU);
        assert_int_equal(t.units[u].n_bytes, 0);
    }
    /* Nothing to move under any policy, and nothing in the account of either place but the scratch. */
    for (int policy = 0; policy < SL_POLICY_COUNT; policy++) {
        t.q.policy = (sl_policy)policy;
        plan = rp_solve(&t.q);
        assert_int_equal(sl_plan_bytes_moved(plan), 0);
        assert_int_equal(sl_plan_peak_of_run(plan, RIG_CPU).total, 0);
        assert_int_equal(sl_plan_peak_of_run(plan, RIG_GPU).total, 64);
        sl_plan_free(&plan);
    }
    rig_close(&g);
}

static void test_G3_10_nothing_stays_behind_after_a_cycle_or_a_close(void **state)
{
    (void)state;
    static const size_t run[] = {0, 1};
    turns t;
    sl__sim_stats first = {0};
    sl_plan *plan = make_plan(&t, RIG_A_BYTES + RIG_C_BYTES + 64, SL_POLICY_SWAP, run, 2);
    for (int life = 0; life < 5; life++) {
        rig g;
        rig_open(&g, &rig_toy, &(rig_opts){.budget_bytes = t.places[0].budget_bytes});
        /* The first life ends without a run. */
        for (int k = 0; life > 0 && k < 50; k++) {
            sl__sim_stats stats;
            run_step(&g, plan, 0, 0);
            run_step(&g, plan, 1, 1);
            assert_int_equal(rig_settle(&g), 0);
            assert_int_equal(rig_live(&g), 0);
            assert_int_equal(rig_used(&g), 0);
            sl__sim_get_stats(g.devices[RIG_GPU], &stats);
            first = life == 1 && k == 0 ? stats : first;
            assert_int_equal(stats.pinned_bytes, first.pinned_bytes);
            assert_int_equal(stats.n_events, first.n_events);
            assert_int_equal(stats.peak_bytes, first.peak_bytes);
        }
        rig_close(&g);
    }
    sl_plan_free(&plan);
}

/* Freed memory is poisoned: a copy that comes late or a use that comes early shows in the bytes. */
static void test_G3_12_a_slow_link_and_little_work(void **state)
{
    (void)state;
    static const size_t run[] = {0, 1};
    turns t;
    rig g;
    sl_plan *plan = make_plan(&t, RIG_A_BYTES + RIG_C_BYTES + 64, SL_POLICY_HOT, run, 2);
    rig_open(&g, &rig_toy,
            &(rig_opts){.budget_bytes = t.places[0].budget_bytes,
                    .policy = SL_POLICY_HOT,
                    .link_bytes_s = 500000,
                    .has_threads = true});
    for (int k = 0; k < 100; k++) {
        run_step(&g, plan, 0, 0);
        run_step(&g, plan, 1, 1);
    }
    assert_int_equal(rig_settle(&g), 0);
    assert_int_equal(rig_live(&g), 0);
    rig_close(&g);
    sl_plan_free(&plan);
}

/* Every budget, policy and size of slices gives the same bytes, also to a tensor that two units have. */
static void test_G3_15_pieces_and_budgets_do_not_change_the_bytes(void **state)
{
    (void)state;
    static const size_t run[] = {0, 1, 0, 0, 1};
    static const uint64_t slices[] = {16, 32, 64, 128, 4096};
    static const uint64_t allocations[] = {0, 96, 128};
    rig_model shared = rig_toy;
    size_t n_runs = 0;
    shared.tensors[2][0] = rig_toy.tensors[0][0];
    for (uint64_t budget = 224; budget <= 448; budget += 32) {
        for (int policy = 0; policy < SL_POLICY_COUNT; policy++) {
            turns t;
            sl_plan *plan = make_plan(&t, budget, (sl_policy)policy, run, 5);
            t.units[2].n_bytes = 96; /* c with a tensor of a */
            sl_plan_free(&plan);
            plan = rp_solve(&t.q);
            for (size_t i = 0; sl_plan_is_feasible(plan) && i < 15; i++) {
                rig g;
                rig_open(&g, &shared,
                        &(rig_opts){.budget_bytes = budget,
                                .policy = (sl_policy)policy,
                                .slice_bytes = slices[i % 5],
                                .max_alloc_bytes = allocations[i / 5]});
                assert_int_equal(sl_residency_unit_bytes(g.r, 2, RIG_GPU), 96);
                for (size_t s = 0; s < 5; s++) {
                    run_step(&g, plan, s, run[s]);
                }
                rig_close(&g);
                n_runs++;
            }
            sl_plan_free(&plan);
        }
    }
    assert_true(n_runs > 100);
}

static void test_G3_26_need_is_refused_before_anything_is_allocated(void **state)
{
    (void)state;
    static const size_t run[] = {0, 1};
    turns t;
    rig g;
    sl_error err = {0};
    sl__sim_stats stats;
    sl_phase *phase = NULL;
    sl_scratch *scratch = NULL;
    uint64_t floor = RIG_A_BYTES + RIG_C_BYTES + 64;
    sl_plan *plan = make_plan(&t, floor - 1, SL_POLICY_SWAP, run, 2);
    rig_open(&g, &rig_toy, &(rig_opts){.budget_bytes = floor - 1});
    assert_int_equal(sl_phase_begin(g.r, plan, 0, "p", false, NULL, &phase, &err), SL_EBUDGET);
    char wanted[64];
    snprintf(wanted, sizeof wanted, "needs %d bytes", (int)floor);
    assert_non_null(strstr(err.msg, wanted));
    /* So is scratch that no plan knows of. */
    assert_int_equal(sl_scratch_acquire(g.r, RIG_GPU, SL_MEM_KV, 4096, true, NULL, &scratch, &err),
            SL_EBUDGET);
    assert_non_null(strstr(err.msg, "4096 bytes for kv do not fit"));
    sl__sim_get_stats(g.devices[RIG_GPU], &stats);
    assert_int_equal(stats.n_calls[SL__SIM_ALLOC], 0);
    assert_int_equal(rig_used(&g), 0);
    rig_close(&g);
    sl_plan_free(&plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_G3_08_memory_that_is_shared_is_not_counted_twice),
            cmocka_unit_test(test_G3_10_nothing_stays_behind_after_a_cycle_or_a_close),
            cmocka_unit_test(test_G3_12_a_slow_link_and_little_work),
            cmocka_unit_test(test_G3_15_pieces_and_budgets_do_not_change_the_bytes),
            cmocka_unit_test(test_G3_26_need_is_refused_before_anything_is_allocated),
    };
    return cmocka_run_group_tests(tests, rig_set_up, rig_tear_down);
}
