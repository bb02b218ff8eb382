/*
 * Requests of the size of S2 Pro made by hand, solved, for the tests of tables and pictures: a GPU with a budget of the
 * caller's beside the computer's memory.
 */
#ifndef TEST_PLAN_SAMPLES_H
#define TEST_PLAN_SAMPLES_H

#include "plan_view.h"

#define SAMPLE_N_UNITS  6
#define SAMPLE_N_PLACES 3

typedef struct plan_sample {
    sl_plan_place places[SAMPLE_N_PLACES];
    sl_plan_unit units[SAMPLE_N_UNITS];
    sl_plan_scratch scratch[3][4];
    sl_plan_phase phases[3];
    sl_plan_request request;
    plan_source sources[4];
    sl_plan *plan;
    plan_view view;
} plan_sample;

/* Fills a sample with two places, "vulkan0" and "cpu", and phases encode, generate, decode. Not solved yet. */
void sample_init(plan_sample *s, uint64_t budget_bytes, sl_policy policy);

/* Solves the request as it is now; fails the test if it is wrong. */
void sample_solve(plan_sample *s);
void sample_done(plan_sample *s);

#endif
