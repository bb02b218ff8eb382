/*
 * What happened, read from a trace, in the terms of a plan: the same places, units and time axis.
 *
 * Times are seconds from the begin of the run, which is the begin of its first phase, or of the first move ahead of it.
 */
#ifndef CLI_PLAN_ACTUAL_H
#define CLI_PLAN_ACTUAL_H

#include "base/status.h"
#include "plan_view.h"

typedef enum plan_actual_kind {
    PLAN_ACTUAL_LOAD,
    PLAN_ACTUAL_EVICT,
    PLAN_ACTUAL_FAIL, /* a load that failed */
    PLAN_ACTUAL_STALL,
    PLAN_ACTUAL_PHASE,
    PLAN_ACTUAL_KIND_COUNT
} plan_actual_kind;

typedef struct plan_actual_bar {
    plan_actual_kind kind;
    char *name;     /* of the unit or phase */
    size_t i_unit;  /* of the plan, or SL_PLAN_NONE */
    size_t i_place; /* likewise */
    uint64_t n_bytes;
    double begin_s;
    double end_s;
} plan_actual_bar;

/* What a place holds from a time on. */
typedef struct plan_actual_level {
    double begin_s;
    sl_plan_bytes used;
} plan_actual_level;

typedef struct plan_actual_place {
    bool is_known; /* the trace has a place of this name */
    uint64_t budget_bytes;
    plan_actual_level *levels; /* in order of time; the first one at 0 */
    size_t n_levels;
    size_t cap_levels;
    sl_plan_bytes peak; /* at the time of the largest total */
    double peak_s;
} plan_actual_place;

typedef struct plan_actual {
    plan_actual_bar *bars; /* in order of the trace */
    size_t n_bars;
    size_t cap_bars;
    plan_actual_place *places; /* [n_places] of the plan */
    size_t n_places;
    double end_s;
    bool follows;       /* its phases are those of the plan, in that order */
    size_t n_runs;      /* runs of those phases in the trace; the latest is the one shown */
    uint64_t n_dropped; /* events that the trace no longer had */
    char policy[16];
} plan_actual;

#endif
