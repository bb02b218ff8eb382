/*
 * From a model and a placement to plans: the units of a residency, the sizes of everything, the phases of a request.
 *
 * Sizes of KV caches and compute buffers are not estimated: the graphs that a request will run are built on computes
 * that measure (nn/compute.h), over weights that point into the mapping and are never read.
 *
 * Threads: one at a time. Lifetime: model, hparams and placement outlive the planner.
 */
#ifndef S2_ENGINE_PLANNER_H
#define S2_ENGINE_PLANNER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "engine/model/hparams.h"
#include "engine/model/slow_ar.h"
#include "engine/nn/compute.h"
#include "engine/nn/weights.h"
#include "s2/placement.h"
#include "sluice/model.h"
#include "sluice/plan.h"
#include "sluice/residency.h"

/* The request that a budget must hold to be worth opening a model for, unless the caller knows better. */
#define S2_USUAL_PROMPT 256
#define S2_USUAL_FRAMES 1024

typedef enum s2_phase_kind {
    S2_PHASE_ENCODE,   /* a recording to codes */
    S2_PHASE_GENERATE, /* text to codes */
    S2_PHASE_DECODE,   /* codes to samples */
    S2_PHASE_SPEAK,    /* the last two together */
    S2_PHASE_COUNT
} s2_phase_kind;

const char *s2_phase_name(s2_phase_kind kind); /* "encode", "generate", "decode", "speak" */

/* Whether a phase of this kind needs a slot. */
bool s2_phase_needs(s2_phase_kind kind, s2_slot slot);

/* How large the sequence of a request gets. */
typedef struct s2_extent {
    uint32_t n_prompt;    /* columns of its longest prompt */
    uint32_t n_positions; /* prompt and frames */
    uint32_t n_frames;
} s2_extent;

/* That of a prompt of n_prompt columns with n_frames frames behind it, as far as the model's context holds them. */
s2_extent s2_extent_of(const s2_hparams *hp, uint64_t n_prompt, uint32_t n_frames);

/* What predictions of time are made of; zeroed: none. */
typedef struct s2_speeds {
    double link_bytes_per_s;
    double frame_seconds; /* of generating a frame; decoding takes DECODE_SHARE of it */
} s2_speeds;

/* Bytes beside weights, by place. */
typedef struct s2_needs {
    uint64_t kv[S2_MAX_PLACES];
    uint64_t compute[S2_MAX_PLACES];
} s2_needs;

typedef struct s2_planner {
    const sl_model *model;
    const s2_hparams *hp;
    s2_placement *placement;
    s2_rows head; /* the planner's memory stays where it is */
    s2_weights *weights;
    s2_compute measures[S2_MAX_PLACES];
    size_t n_places;
    uint32_t n_first; /* layers of slow that are where slow is wanted */
    sl_residency *residency;
    size_t units[S2_SLOT_COUNT]; /* of the residency, or SL_PLAN_NONE */
    size_t n_units;
    s2_needs codec[2]; /* encoder, decoder: the same for every request */
    s2_needs ar;       /* of the extent below */
    s2_extent extent;
    bool has_ar;
} s2_planner;

/*
 * Sizes the model on the placement. computes[i] is that of place i, or NULL for a stand-in. What a device cannot
 * compute goes to the host with a line in the log, unless it was placed by name.
 * Errors: SL_EUNSUPPORTED, SL_EFORMAT, SL_ENOMEM. Zeroed memory may be passed to done.
 */
int s2_planner_init(s2_planner *p, const sl_model *model, const s2_hparams *hp,
        s2_placement *placement, const s2_compute *const *computes, const sl_logger *log,
        sl_error *reterr) SL_MUST_CHECK;
void s2_planner_done(s2_planner *p);

/* Where a slot is wanted, and where it may go instead. */
size_t s2_planner_wanted(const s2_planner *p, s2_slot slot);
size_t s2_planner_second(const s2_planner *p, s2_slot slot);

/*
 * Opens a residency over the places of the placement, with the model's units; the caller closes it. To be called
 * again when the placement has given a unit up and the residency before is closed. `is_stepped`: nothing will be
 * loaded into it. Errors: those of sl_residency_open and sl_residency_add_unit.
 */
int s2_planner_open_residency(s2_planner *p, sl_policy policy, bool is_stepped,
        const sl_logger *log, sl_residency **ret_residency, sl_error *reterr) SL_MUST_CHECK;

/* A request for a plan with all that it points to, and the plan. Zeroed memory may be passed to done. */
typedef struct s2_planned {
    sl_plan_request request;
    sl_plan *plan;
    sl_plan_place *places;
    sl_plan_unit *units;
    sl_plan_phase *phases;
    size_t *lists;
    sl_plan_scratch *scratch;
} s2_planned;

/* The phases of a run. */
typedef struct s2_run {
    s2_phase_kind kinds[3];
    size_t n;
} s2_run;

/* What decides about the phases of speaking. */
typedef struct s2_run_wish {
    sl_policy policy;
    s2_decode_when decode;
    bool begins_with_voice;
    bool wants_sound_early;
} s2_run_wish;

/* Plans a run of phases. An infeasible plan is no error: see sl_plan_check. Errors: SL_ENOMEM, those of measuring. */
int s2_planner_plan(s2_planner *p, const s2_run *run, const s2_extent *extent, sl_policy policy,
        const s2_speeds *speeds, s2_planned *ret_planned, sl_error *reterr) SL_MUST_CHECK;

/* Chooses the phases of speaking by wish, placement and budget, and plans them. Errors: as above. */
int s2_planner_plan_speech(s2_planner *p, const s2_run_wish *wish, const s2_extent *extent,
        const s2_speeds *speeds, s2_run *ret_run, s2_planned *ret_planned,
        sl_error *reterr) SL_MUST_CHECK;
void s2_planned_done(s2_planned *planned);

#endif
