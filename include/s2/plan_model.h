/*
 * The plan of a request, made from a model's file alone: no device is needed, nothing is loaded, no weight is read.
 *
 * Threads: one at a time for one plan; see s2/placement.h for what opening a device that is there costs.
 */
#ifndef S2_PLAN_MODEL_H
#define S2_PLAN_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "s2/placement.h"
#include "sluice/error.h"
#include "sluice/log.h"
#include "sluice/plan.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct s2_plan_opts {
    const char *model_path;
    s2_place_opts
            place; /* a device that is not there is stood in for by a budget of place.vram_bytes */
    uint32_t n_threads; /* of the cpu: compute buffers depend on it; 0 = the processors there are */
    uint32_t n_prompt;  /* columns of the prompt, text and voice; 0 = 256 */
    uint32_t n_frames;  /* of speech; 0 = 1024, what say allows by default */
    bool begins_with_voice; /* a recording is encoded first */
    bool wants_sound_early; /* as in s2_speak_opts */
    /* For predicted times; 0 = moves and computing count as instant. */
    double link_bytes_per_s;
    double frame_seconds; /* of generating and decoding a frame */
    sl_logger log;
} s2_plan_opts;

typedef struct s2_plan s2_plan;

/*
 * Solves the plan. Returns 0 also if it does not fit: see sl_plan_check.
 * Errors: those of sl_model_open and s2_placement_open; SL_EFORMAT, SL_EUNSUPPORTED, SL_ELIMIT (a tensor above the
 * largest allocation), SL_ENOMEM.
 */
int s2_plan_make(const s2_plan_opts *opts, s2_plan **ret_plan, sl_error *reterr);

/* Frees the plan and sets *plan to NULL. Accepts NULL. */
void s2_plan_free(s2_plan **plan);

/* What was asked for, with all names and sizes; the solved plan; the places. All owned by the plan. */
const sl_plan_request *s2_plan_request(const s2_plan *plan);
const sl_plan *s2_plan_solved(const s2_plan *plan);
const s2_placement *s2_plan_placement(const s2_plan *plan);

/* Of the model: columns and frames that the plan is for, and seconds of speech that a frame is. */
uint32_t s2_plan_n_prompt(const s2_plan *plan);
uint32_t s2_plan_n_frames(const s2_plan *plan);
double s2_plan_frame_sound_s(const s2_plan *plan);

#ifdef __cplusplus
}
#endif

#endif
