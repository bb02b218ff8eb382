#include "random_plan.h"

#include <string.h>

#include "test_support.h"

uint64_t rp_below(uint64_t *state, uint64_t n)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return (*state >> 11) % n;
}

static void make_phase(random_plan *r, uint64_t *s, size_t i)
{
    static const char *const names[RP_MAX] = {"p0", "p1", "p2", "p3", "p4", "p5"};
    sl_plan_phase *p = &r->phases[i];
    *p = (sl_plan_phase){names[i], r->phase_units[i], 0, r->scratch[i], rp_below(s, 3), 0};
    p->seconds = (double)rp_below(s, 5);
    for (size_t u = 0; u < r->q.n_units; u++) {
        if (rp_below(s, 2)) {
            r->phase_units[i][p->n_units] = u;
            p->n_units++;
        }
    }
    for (size_t k = 0; k < p->n_scratch; k++) {
        sl_mem_kind kind = (sl_mem_kind)(1 + rp_below(s, SL_MEM_KIND_COUNT - 1));
        r->scratch[i][k] =
                (sl_plan_scratch){(size_t)rp_below(s, r->q.n_places), kind, rp_below(s, 4)};
    }
}

void rp_make(uint64_t seed, random_plan *r)
{
    static const char *const places[RP_MAX] = {"gpu0", "gpu1", "cpu"};
    static const char *const units[RP_MAX] = {"a", "b", "c", "d", "e", "f"};
    uint64_t s = seed * 0x9E3779B97F4A7C15u + 1;
    memset(r, 0, sizeof *r);
    r->q = (sl_plan_request){.places = r->places,
            .n_places = 1 + (size_t)rp_below(&s, 3),
            .units = r->units,
            .n_units = 1 + (size_t)rp_below(&s, 5),
            .phases = r->phases,
            .n_phases = 1 + (size_t)rp_below(&s, 4),
            .run = r->run,
            .n_run = 1 + (size_t)rp_below(&s, 2 * RP_MAX),
            .policy = (sl_policy)rp_below(&s, SL_POLICY_COUNT),
            .prefetch = (sl_prefetch)rp_below(&s, SL_PREFETCH_COUNT)};
    r->q.is_cyclic = r->q.policy != SL_POLICY_HOT && rp_below(&s, 3) == 0;
    for (size_t i = 0; i < r->q.n_places; i++) {
        r->places[i] = (sl_plan_place){places[i], 0, (double)rp_below(&s, 4)};
    }
    for (size_t u = 0; u < r->q.n_units; u++) {
        bool has_second = rp_below(&s, 2);
        r->units[u] = (sl_plan_unit){units[u], (size_t)rp_below(&s, r->q.n_places),
                1 + rp_below(&s, 9), SL_PLAN_NONE, rp_below(&s, 9)};
        if (has_second) {
            r->units[u].i_second = (size_t)rp_below(&s, r->q.n_places);
        }
    }
    for (size_t i = 0; i < r->q.n_phases; i++) {
        make_phase(r, &s, i);
    }
    for (size_t i = 0; i < r->q.n_run; i++) {
        r->run[i] = (size_t)rp_below(&s, r->q.n_phases);
    }
}

sl_plan *rp_solve(const sl_plan_request *q)
{
    sl_error err = {0};
    sl_plan *plan = NULL;
    assert_ok(sl_plan_solve(q, &plan, &err), &err);
    return plan;
}

void rp_budget_at_floor(random_plan *r, uint64_t *state, uint64_t extra)
{
    sl_plan *plan = rp_solve(&r->q);
    for (size_t i = 0; i < r->q.n_places; i++) {
        r->places[i].budget_bytes = sl_plan_floor(plan, i) + rp_below(state, extra + 1);
    }
    sl_plan_free(&plan);
}

sl_plan *rp_make_solved(uint64_t seed, random_plan *r)
{
    uint64_t s = seed;
    rp_make(seed, r);
    rp_budget_at_floor(r, &s, 20);
    r->places[0].budget_bytes = seed % 4 == 0 ? 0 : r->places[0].budget_bytes;
    return rp_solve(&r->q);
}
