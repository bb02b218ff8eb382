/*
 * A plan over time: what lies on each place from when to when, and what happens. Pure; the pictures are drawn of it.
 *
 * Time is predicted seconds. A plan that was refused has no times, and one whose speeds are not known has none
 * worth drawing: there, every step is one unit of time long, and moves are spread over its first part.
 *
 * Threads: one at a time for each timeline. Zeroed memory is a valid empty one.
 */
#ifndef CLI_PLAN_TIMELINE_H
#define CLI_PLAN_TIMELINE_H

#include "base/status.h"
#include "plan_view.h"

/* Bytes on a place from begin to end. */
typedef struct plan_span {
    size_t i_place;
    size_t i_layer; /* a unit by index, or n_units + sl_mem_kind */
    uint64_t n_bytes;
    double begin;
    double end;
} plan_span;

/* Something that happens. */
typedef struct plan_bar {
    sl_plan_event_kind kind;
    size_t i_step;
    size_t i_unit;  /* or SL_PLAN_NONE */
    size_t i_place; /* likewise */
    uint64_t n_bytes;
    double begin;
    double end;
} plan_bar;

typedef struct plan_timeline {
    bool is_in_steps; /* time is steps, not seconds */
    double end;
    size_t n_layers;
    plan_span *spans;
    size_t n_spans;
    size_t cap_spans;
    plan_bar *bars; /* in order of the steps */
    size_t n_bars;
    size_t cap_bars;
    double *begins; /* [n_steps + 1]: when each step begins; the last is the end */
} plan_timeline;

/* Errors: SL_ENOMEM. */
int plan_timeline_init(
        plan_timeline *timeline, const plan_view *view, sl_error *reterr) SL_MUST_CHECK;
void plan_timeline_done(plan_timeline *timeline);

/*
 * The memory of one place as a function of time: between times[i] and times[i + 1] the layers up to and with k take
 * tops[i * n_layers + k].
 */
typedef struct plan_levels {
    size_t n_layers;
    size_t n; /* intervals; there are n + 1 times */
    double *times;
    uint64_t *tops;
    uint64_t most; /* of all layers */
} plan_levels;

uint64_t plan_levels_bottom(const plan_levels *levels, size_t i, size_t i_layer);
uint64_t plan_levels_bytes(const plan_levels *levels, size_t i, size_t i_layer);
uint64_t plan_levels_total(const plan_levels *levels, size_t i);

/* Errors: SL_ENOMEM. */
int plan_levels_init(plan_levels *levels, const plan_timeline *timeline, size_t i_place,
        sl_error *reterr) SL_MUST_CHECK;
void plan_levels_done(plan_levels *levels);

#endif
