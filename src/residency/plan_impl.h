/*
 * What the parts of the planner share: floors and placements (plan_floor.c) and the run itself
 * (plan_schedule.c).
 */
#ifndef SL_RESIDENCY_PLAN_IMPL_H
#define SL_RESIDENCY_PLAN_IMPL_H

#include "base/status.h"
#include "sluice/plan.h"

struct sl_plan {
    size_t n_places;
    size_t n_units;
    size_t n_steps;
    bool is_feasible;
    bool has_placement;
    size_t *placement;    /* [n_units] */
    uint64_t *floors;     /* [n_places] */
    sl_plan_bytes *peaks; /* [n_steps][n_places] */
    unsigned char *roles; /* [n_steps][n_units], sl_plan_role */
    sl_plan_event *events;
    size_t n_events;
    size_t cap_events;
    uint64_t bytes_moved;
    double seconds;
    sl_error refusal; /* if not feasible */
};

/* A checked request in the form that the computation reads. */
typedef struct sl__plan_input {
    const sl_plan_request *request;
    size_t n_run;
    unsigned char *needs; /* [n_phases][n_units]: 1 if the phase needs the unit */
    unsigned char *runs;  /* [n_phases]: 1 if the phase is in the run */
} sl__plan_input;

/* Phase of a step. */
size_t sl__plan_phase_of(const sl__plan_input *in, size_t i_step);

bool sl__plan_needs(const sl__plan_input *in, size_t i_phase, size_t i_unit);

/* Bytes of a unit on a place, 0 if the placement (place of each unit; NULL = the wanted one) is another. */
uint64_t sl__plan_unit_bytes(
        const sl__plan_input *in, const size_t *placement, size_t i_unit, size_t i_place);

/* Adds a phase's own needs on a place: its scratch, and its units under the placement. */
void sl__plan_add_scratch(
        const sl__plan_input *in, size_t i_phase, size_t i_place, sl_plan_bytes *to);
void sl__plan_add_weights(uint64_t n_bytes, sl_plan_bytes *to);
sl_plan_bytes sl__plan_need(
        const sl__plan_input *in, const size_t *placement, size_t i_phase, size_t i_place);

/* Smallest budget of a place that does. */
uint64_t sl__plan_floor_of(
        const sl__plan_input *in, const size_t *placement, sl_policy policy, size_t i_place);

/* Looks for the placement nearest to the wanted one that fits; false if none does. */
bool sl__plan_find_placement(const sl__plan_input *in, size_t *ret_placement);

/* Runs the phases under the wanted placement, which must be feasible, and records them. Errors: SL_ENOMEM. */
int sl__plan_schedule(const sl__plan_input *in, sl_plan *plan) SL_MUST_CHECK;

#endif
