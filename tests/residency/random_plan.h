/* Small random plan requests, the same for the same seed on every machine. */
#ifndef TEST_RANDOM_PLAN_H
#define TEST_RANDOM_PLAN_H

#include "sluice/plan.h"

#define RP_MAX 6

typedef struct random_plan {
    sl_plan_request q;
    sl_plan_place places[RP_MAX];
    sl_plan_unit units[RP_MAX];
    sl_plan_phase phases[RP_MAX];
    size_t phase_units[RP_MAX][RP_MAX];
    sl_plan_scratch scratch[RP_MAX][RP_MAX];
    size_t run[2 * RP_MAX];
} random_plan;

/* Next number of the generator below n. */
uint64_t rp_below(uint64_t *state, uint64_t n);

/* Fills *r with up to 3 places, 5 units and 4 phases of few bytes each; the budgets are 0. Pointers in r->q
 * point into *r, which must not move. */
void rp_make(uint64_t seed, random_plan *r);

/* Sets every budget to the floor and a little more: rp_below(extra + 1). */
void rp_budget_at_floor(random_plan *r, uint64_t *state, uint64_t extra);

/* A made request with its plan: most fit or nearly do, each fourth has no memory at all on its first place. */
sl_plan *rp_make_solved(uint64_t seed, random_plan *r);

/* Solves a request that must be valid. */
sl_plan *rp_solve(const sl_plan_request *q);

#endif
