/* Floors and placements of small random requests against all that is possible. Seeds 1.. are the cases. */
#include <stdio.h>
#include <string.h>

#include "test_support.h"

#include "random_plan.h"

#define N_SEEDS 4000

/* What a step must hold on a place, said again in the plainest way. */
static uint64_t step_need(const random_plan *r, const size_t *at, size_t i_phase, size_t i_place)
{
    uint64_t n = 0;
    const sl_plan_phase *p = &r->phases[i_phase];
    for (size_t i = 0; i < p->n_scratch; i++) {
        n += p->scratch[i].i_place == i_place ? p->scratch[i].n_bytes : 0;
    }
    for (size_t i = 0; i < p->n_units; i++) {
        const sl_plan_unit *u = &r->units[p->units[i]];
        if (at[p->units[i]] == i_place) {
            n += u->i_place == i_place ? u->n_bytes : u->second_bytes;
        }
    }
    return n;
}

/* keep: one phase that has everything of all phases in the run. */
static uint64_t keep_need(const random_plan *r, const size_t *at, size_t i_place)
{
    uint64_t n = 0;
    bool seen_phase[RP_MAX] = {false};
    bool seen_unit[RP_MAX] = {false};
    for (size_t s = 0; s < r->q.n_run; s++) {
        const sl_plan_phase *p = &r->phases[r->run[s]];
        for (size_t i = 0; i < p->n_scratch && !seen_phase[r->run[s]]; i++) {
            n += p->scratch[i].i_place == i_place ? p->scratch[i].n_bytes : 0;
        }
        seen_phase[r->run[s]] = true;
        for (size_t i = 0; i < p->n_units; i++) {
            const sl_plan_unit *u = &r->units[p->units[i]];
            if (!seen_unit[p->units[i]] && at[p->units[i]] == i_place) {
                n += u->i_place == i_place ? u->n_bytes : u->second_bytes;
            }
            seen_unit[p->units[i]] = true;
        }
    }
    return n;
}

static uint64_t model_floor(const random_plan *r, const size_t *at, size_t i_place)
{
    if (r->q.policy == SL_POLICY_KEEP) {
        return keep_need(r, at, i_place);
    }
    uint64_t most = 0;
    for (size_t s = 0; s < r->q.n_run; s++) {
        uint64_t n = step_need(r, at, r->run[s], i_place);
        most = n > most ? n : most;
    }
    return most;
}

static void wanted(const random_plan *r, size_t *at)
{
    for (size_t u = 0; u < r->q.n_units; u++) {
        at[u] = r->units[u].i_place;
    }
}

static void test_the_floor_is_exact(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= N_SEEDS; seed++) {
        random_plan r;
        size_t at[RP_MAX];
        sl_error err = {0};
        rp_make(seed, &r);
        wanted(&r, at);
        uint64_t none = 1;
        rp_budget_at_floor(&r, &none, 0);
        sl_plan *plan = rp_solve(&r.q);
        assert_true(sl_plan_is_feasible(plan));
        assert_ok(sl_plan_check(plan, &err), &err);
        for (size_t i = 0; i < r.q.n_places; i++) {
            assert_int_equal(sl_plan_floor(plan, i), model_floor(&r, at, i));
        }
        sl_plan_free(&plan);
        for (size_t i = 0; i < r.q.n_places; i++) {
            if (r.places[i].budget_bytes == 0) {
                continue;
            }
            r.places[i].budget_bytes--;
            plan = rp_solve(&r.q);
            assert_false(sl_plan_is_feasible(plan));
            assert_int_equal(sl_plan_check(plan, &err), SL_EBUDGET);
            assert_non_null(strstr(err.msg, r.places[i].name));
            assert_int_equal(sl_plan_floor(plan, i), r.places[i].budget_bytes + 1);
            sl_plan_free(&plan);
            r.places[i].budget_bytes++;
        }
    }
}

/* The bytes that a placement takes off the wanted places; UINT64_MAX if it does not fit. */
static uint64_t model_cost(const random_plan *r, const size_t *at)
{
    uint64_t cost = 0;
    for (size_t i = 0; i < r->q.n_places; i++) {
        if (model_floor(r, at, i) > r->places[i].budget_bytes) {
            return UINT64_MAX;
        }
    }
    for (size_t u = 0; u < r->q.n_units; u++) {
        cost += at[u] != r->units[u].i_place ? r->units[u].n_bytes : 0;
    }
    return cost;
}

static uint64_t best_cost(const random_plan *r)
{
    uint64_t best = UINT64_MAX;
    for (size_t mask = 0; mask < (size_t)1 << r->q.n_units; mask++) {
        size_t at[RP_MAX];
        wanted(r, at);
        for (size_t u = 0; u < r->q.n_units; u++) {
            if ((mask >> u & 1) && r->units[u].i_second != SL_PLAN_NONE) {
                at[u] = r->units[u].i_second;
            }
        }
        uint64_t cost = model_cost(r, at);
        best = cost < best ? cost : best;
    }
    return best;
}

static void test_the_placement_is_the_nearest_that_fits(void **state)
{
    (void)state;
    size_t n_found = 0;
    size_t n_none = 0;
    for (uint64_t seed = 1; seed <= N_SEEDS; seed++) {
        random_plan r;
        uint64_t s = seed;
        rp_make(seed, &r);
        rp_budget_at_floor(&r, &s, 20);
        size_t i_short = (size_t)rp_below(&s, r.q.n_places);
        r.places[i_short].budget_bytes -= rp_below(&s, r.places[i_short].budget_bytes + 1);
        sl_plan *plan = rp_solve(&r.q);
        const size_t *placement = sl_plan_placement(plan);
        uint64_t best = best_cost(&r);
        assert_int_equal(placement == NULL, best == UINT64_MAX);
        assert_int_equal(sl_plan_is_feasible(plan), best == 0);
        if (placement) {
            assert_int_equal(model_cost(&r, placement), best);
            n_found += best > 0;
        }
        n_none += best == UINT64_MAX;
        sl_plan_free(&plan);
    }
    assert_true(n_found > 100);
    assert_true(n_none > 100);
}

static void test_many_units_with_second_places_are_still_solved(void **state)
{
    (void)state;
    enum {
        N = 40
    };
    sl_plan_place places[2] = {{"gpu", 100, 0}, {"cpu", 1000, 0}};
    sl_plan_unit units[N];
    size_t list[N];
    for (size_t i = 0; i < N; i++) {
        units[i] = (sl_plan_unit){"u", 0, 1 + i % 20, 1, 0};
        list[i] = i;
    }
    units[N - 1].n_bytes = 400;
    sl_plan_phase phase = {"p", list, N, NULL, 0, 0};
    sl_plan_request q = {.places = places,
            .n_places = 2,
            .units = units,
            .n_units = N,
            .phases = &phase,
            .n_phases = 1};
    places[0].budget_bytes = 400;
    sl_plan *plan = rp_solve(&q);
    assert_false(sl_plan_is_feasible(plan));
    assert_non_null(sl_plan_placement(plan));
    assert_int_equal(sl_plan_placement(plan)[N - 1], 1);
    sl_plan_free(&plan);
}

int main(void)
{
    printf("seeds 1 to %d\n", N_SEEDS);
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_the_floor_is_exact),
            cmocka_unit_test(test_the_placement_is_the_nearest_that_fits),
            cmocka_unit_test(test_many_units_with_second_places_are_still_solved),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
