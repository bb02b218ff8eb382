/*
 * The plan: which units are on which device in which phase, solved before anything is allocated.
 *
 * Pure: no device, no file, no clock, no lock. Everything it needs is in the request; the same request gives
 * the same plan.
 *
 * A place is a device, or RAM. A unit takes `n_bytes` of its place; a unit that its place uses in place
 * (CPU, unified memory) takes 0. Each phase needs its units and its scratch on their places at the same time.
 * What else stays or arrives early in a phase follows from the policy:
 *
 *   keep   nothing leaves: the units and the scratch of all phases so far stay (scratch of a phase that runs
 *          again is used again)
 *   swap   beside its own units, a phase holds those units of the next phase that fit: they stay if they are
 *          there, and are fetched ahead if they are not; all others leave when the phase ends
 *   hot    as swap; what is left after the last phase leaves too
 *   auto   as swap, and other units stay while they fit, those whose next use is nearest first
 *
 * Does not promise: that a device has the bytes that the request says, or its speed. Nor is the order of
 * loads optimal for auto: nearest next use is exact for units of one size only.
 *
 * Threads: any; a plan is immutable once solved.
 */
#ifndef SLUICE_PLAN_H
#define SLUICE_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sluice/api.h"
#include "sluice/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What bytes of a place are used for. */
typedef enum sl_mem_kind {
    SL_MEM_WEIGHTS,
    SL_MEM_KV,
    SL_MEM_COMPUTE,
    SL_MEM_STAGING,
    SL_MEM_KIND_COUNT
} sl_mem_kind;

typedef enum sl_policy {
    SL_POLICY_SWAP, /* the default */
    SL_POLICY_KEEP,
    SL_POLICY_HOT,
    SL_POLICY_AUTO,
    SL_POLICY_COUNT
} sl_policy;

/* How much memory may be taken by units that a phase does not need itself. No effect on keep but for NONE. */
typedef enum sl_prefetch {
    SL_PREFETCH_BUDGET, /* what the budget leaves */
    SL_PREFETCH_PEAK, /* what the largest phase takes anyway: the peak stays that of the largest phase */
    SL_PREFETCH_NONE, /* nothing is fetched ahead; what is there may still stay */
    SL_PREFETCH_COUNT
} sl_prefetch;

#define SL_PLAN_NONE   SIZE_MAX /* no second place */
#define SL_PLAN_N_MAX  256      /* units, phases and places at most, each */
#define SL_PLAN_N_RUNS 4096     /* phases in a run at most */

typedef struct sl_plan_place {
    const char *name;
    uint64_t budget_bytes;
    double link_bytes_per_s; /* speed of loads; 0 = not known, loads then count as instant */
} sl_plan_place;

typedef struct sl_plan_unit {
    const char *name;
    size_t i_place; /* wanted */
    uint64_t n_bytes;
    size_t i_second; /* where it may go instead, or SL_PLAN_NONE */
    uint64_t second_bytes;
} sl_plan_unit;

/* Memory that is not weights: held from the begin of the phase to its end. */
typedef struct sl_plan_scratch {
    size_t i_place;
    sl_mem_kind kind; /* not weights */
    uint64_t n_bytes;
} sl_plan_scratch;

typedef struct sl_plan_phase {
    const char *name;
    const size_t *units;
    size_t n_units;
    const sl_plan_scratch *scratch;
    size_t n_scratch;
    double seconds; /* of computing, without waiting for weights */
} sl_plan_phase;

typedef struct sl_plan_request {
    const sl_plan_place *places;
    size_t n_places;
    const sl_plan_unit *units;
    size_t n_units;
    const sl_plan_phase *phases;
    size_t n_phases;
    const size_t *run; /* phases by index, in the order they run; NULL = each once, in order */
    size_t n_run;
    sl_policy policy;
    sl_prefetch prefetch;
    /* The run repeats: the plan is that of its second round, and the last phase is followed by the first.
     * Refused for hot, which ends with nothing. */
    bool is_cyclic;
} sl_plan_request;

typedef struct sl_plan_bytes {
    uint64_t kind[SL_MEM_KIND_COUNT];
    uint64_t total; /* the sum of the kinds */
} sl_plan_bytes;

typedef struct sl_plan sl_plan;

/*
 * Solves the request. Returns 0 also when it does not fit: sl_plan_is_feasible then says no, and the plan
 * still holds the floor, what each phase needs, and a placement that fits if there is one.
 * Errors: SL_EINVAL (an index, a count or a number out of range, a sum above 2^64), SL_ENOMEM.
 * Cost: 2^n placements for the n units with a second place that are used, for n up to 12; above that the
 * largest 12 of them are tried.
 */
SL_API int sl_plan_solve(const sl_plan_request *request, sl_plan **ret_plan, sl_error *reterr);

/* Frees the plan and sets *plan to NULL. Accepts NULL. */
SL_API void sl_plan_free(sl_plan **plan);

SL_API bool sl_plan_is_feasible(const sl_plan *plan);

/* 0 if feasible; otherwise SL_EBUDGET with the place, its budget, the floor, and the placement that fits. */
SL_API int sl_plan_check(const sl_plan *plan, sl_error *reterr);

/* Smallest budget of a place that would do for this policy and the wanted placement. */
SL_API uint64_t sl_plan_floor(const sl_plan *plan, size_t i_place);

/*
 * The placement nearest to the wanted one that fits: place of each unit, array of n_units; NULL if none does.
 * Nearest: the fewest bytes taken off the wanted places. Equals the wanted one if the plan is feasible.
 */
SL_API const size_t *sl_plan_placement(const sl_plan *plan);

/* Phases of the run; i_step below is less than that. */
SL_API size_t sl_plan_n_steps(const sl_plan *plan);

/* The most that a place holds during a step. Of an infeasible plan: what the phase needs at least. */
SL_API sl_plan_bytes sl_plan_peak(const sl_plan *plan, size_t i_step, size_t i_place);

/* The largest of all steps of a place by total. */
SL_API sl_plan_bytes sl_plan_peak_of_run(const sl_plan *plan, size_t i_place);

/* What a unit is to a step. */
typedef enum sl_plan_role {
    SL_PLAN_ABSENT,
    SL_PLAN_NEEDED,
    SL_PLAN_AHEAD, /* of the next phase: there already, or to be fetched */
    SL_PLAN_STAYS, /* there already, and need not leave */
    SL_PLAN_ROLE_COUNT
} sl_plan_role;
SL_API sl_plan_role sl_plan_unit_role(const sl_plan *plan, size_t i_step, size_t i_unit);

/* A load, computing, or a unit that leaves, with its predicted time from the begin of the run. */
typedef enum sl_plan_event_kind {
    SL_PLAN_LOAD,
    SL_PLAN_EVICT,
    SL_PLAN_STALL, /* the phase waits for its last unit */
    SL_PLAN_COMPUTE,
    SL_PLAN_EVENT_KIND_COUNT
} sl_plan_event_kind;

typedef struct sl_plan_event {
    sl_plan_event_kind kind;
    size_t i_step;  /* during which it happens */
    size_t i_unit;  /* loads and evictions; SL_PLAN_NONE otherwise */
    size_t i_place; /* loads and evictions; SL_PLAN_NONE otherwise */
    uint64_t n_bytes;
    double begin_s;
    double end_s;
} sl_plan_event;

/*
 * Step by step. Loads of a place follow each other at the speed of its link; a phase computes when its last
 * unit is there, although it may start earlier on units that arrive slice by slice: times are an upper bound.
 * An infeasible plan has none.
 */
SL_API size_t sl_plan_n_events(const sl_plan *plan);
SL_API const sl_plan_event *sl_plan_event_at(const sl_plan *plan, size_t i_event);

SL_API uint64_t sl_plan_bytes_moved(const sl_plan *plan); /* sum of the loads */
SL_API double sl_plan_seconds(const sl_plan *plan);       /* of the whole run */

SL_API const char *sl_mem_kind_name(sl_mem_kind kind);   /* "weights", "kv", ...; static */
SL_API const char *sl_policy_name(sl_policy policy);     /* "keep", ...; static */
SL_API const char *sl_plan_role_name(sl_plan_role role); /* "absent", ...; static */
SL_API const char *sl_plan_event_kind_name(sl_plan_event_kind kind);

#ifdef __cplusplus
}
#endif

#endif
