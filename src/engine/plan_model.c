/*
 * A plan is made by the engine's own planner over a residency that nothing is ever loaded into; devices that are not
 * there are simulations of the budget.
 */
#include "s2/plan_model.h"

#include <string.h>

#include "base/mem.h"
#include "base/status.h"
#include "engine/planner.h"
#include "os/os_process.h"
#include "sluice/ggml_device.h"

struct s2_plan {
    sl_model *model;
    s2_hparams hp;
    s2_placement *placement;
    s2_compute computes[S2_MAX_PLACES];
    s2_planner planner;
    sl_residency *residency;
    s2_extent extent;
    s2_planned planned;
};

/* What each place computes like: a device that is there like itself, a stand-in like some GPU. */
static int find_likes(
        s2_plan *p, uint32_t n_threads, const s2_compute **ret_likes, sl_error *reterr)
{
    int r = SL_OK;
    for (size_t i = 0; i < s2_placement_n_places(p->placement) && r == 0; i++) {
        const s2_place *place = s2_placement_place(p->placement, i);
        s2_compute_init_measure(&p->computes[i], NULL, !place->is_stand_in);
        p->computes[i].n_threads = (int)n_threads;
        p->computes[i].is_borrowed = i > 0 && !place->is_stand_in;
        if (sl_ggml_is(place->device)) {
            r = s2_compute_init_device(&p->computes[i], &p->computes[0], place->device, reterr);
        }
        ret_likes[i] = &p->computes[i];
    }
    return r;
}

static int solve(s2_plan *p, const s2_plan_opts *opts, sl_error *reterr)
{
    const s2_run_wish wish = {
            .policy = opts->place.policy,
            .decode = opts->place.decode,
            .begins_with_voice = opts->begins_with_voice,
            .wants_sound_early = opts->wants_sound_early,
    };
    const s2_speeds speeds = {opts->link_bytes_per_s, opts->frame_seconds};
    s2_run run;
    p->extent = s2_extent_of(&p->hp, opts->n_prompt ? opts->n_prompt : S2_USUAL_PROMPT,
            opts->n_frames ? opts->n_frames : S2_USUAL_FRAMES);
    return s2_planner_plan_speech(
            &p->planner, &wish, &p->extent, &speeds, &run, &p->planned, reterr);
}

int s2_plan_make(const s2_plan_opts *opts, s2_plan **ret_plan, sl_error *reterr)
{
    const s2_compute *likes[S2_MAX_PLACES] = {0};
    uint32_t n_threads = opts->n_threads ? opts->n_threads : sl__n_cpus();
    s2_plan *p = sl__alloc(1, sizeof *p);
    if (!p) {
        return sl__fail_nomem(reterr, sizeof *p, "a plan");
    }
    int r = sl_model_open(opts->model_path, &p->model, reterr);
    if (r == 0) {
        r = s2_hparams_read(p->model, &p->hp, reterr);
    }
    if (r == 0) {
        r = s2_placement_open(&opts->place, true, &opts->log, &p->placement, reterr);
    }
    if (r == 0) {
        r = find_likes(p, n_threads, likes, reterr);
    }
    if (r == 0) {
        r = s2_planner_init(&p->planner, p->model, &p->hp, p->placement, likes, &opts->log, reterr);
    }
    if (r == 0) {
        r = s2_planner_open_residency(
                &p->planner, opts->place.policy, true, &opts->log, &p->residency, reterr);
    }
    if (r == 0) {
        r = solve(p, opts, reterr);
    }
    if (r < 0) {
        s2_plan_free(&p);
        return r;
    }
    *ret_plan = p;
    return SL_OK;
}

void s2_plan_free(s2_plan **plan)
{
    if (!plan || !*plan) {
        return;
    }
    s2_plan *p = *plan;
    s2_planned_done(&p->planned);
    s2_planner_done(&p->planner);
    sl_residency_close(&p->residency);
    for (size_t i = 0; i < S2_MAX_PLACES; i++) {
        s2_compute_done(&p->computes[i]);
    }
    s2_placement_close(&p->placement);
    sl_model_close(&p->model);
    sl__free(p);
    *plan = NULL;
}

const sl_plan_request *s2_plan_request(const s2_plan *plan)
{
    return &plan->planned.request;
}

const sl_plan *s2_plan_solved(const s2_plan *plan)
{
    return plan->planned.plan;
}

const s2_placement *s2_plan_placement(const s2_plan *plan)
{
    return plan->placement;
}

uint32_t s2_plan_n_prompt(const s2_plan *plan)
{
    return plan->extent.n_prompt;
}

uint32_t s2_plan_n_frames(const s2_plan *plan)
{
    return plan->extent.n_frames;
}

double s2_plan_frame_sound_s(const s2_plan *plan)
{
    return (double)plan->hp.codec.frame_samples / plan->hp.codec.sample_rate;
}
