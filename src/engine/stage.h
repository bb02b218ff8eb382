/*
 * The engine's side of residency: the places, the plan of a request, and which weights may be used now.
 *
 * A request is planned, then its phases are begun and ended one after the other. While a phase lasts, its slots are
 * leased and the ARs and the codec may compute; when it ends, what moves is let go unless the policy keeps it.
 * What is used where it is mapped (the host) stays leased: it costs nothing.
 *
 * Threads: as the engine.
 */
#ifndef S2_ENGINE_STAGE_H
#define S2_ENGINE_STAGE_H

#include "engine/engine_impl.h"
#include "engine/planner.h"

/*
 * Opens devices, plans an ordinary request so that a budget that is too small shows at once, and opens the residency.
 * Errors: those of s2_placement_open, s2_planner_init, sl_residency_open; SL_EBUDGET names the smallest budget.
 */
int s2_stage_open(s2_engine *e, const s2_engine_opts *opts, sl_error *reterr) SL_MUST_CHECK;

/* Gives everything back. Accepts an engine whose stage was never opened. */
void s2_stage_close(s2_engine *e);

/* Makes the ARs for where their weights are, unless they are. Errors: SL_EFORMAT naming a tensor, SL_ENOMEM. */
int s2_stage_need_ars(s2_engine *e, sl_error *reterr) SL_MUST_CHECK;

/* Begins to fetch what speaking needs. */
void s2_stage_fetch_ahead(s2_engine *e);

/* The phases of speaking, as options, policy and budget allow; at most 2. Errors: SL_EBUDGET, SL_ENOMEM. */
int s2_stage_plan_speech(s2_engine *e, const s2_extent *extent, bool wants_sound_early,
        sl_error *reterr) SL_MUST_CHECK;

/* A run of one phase. Errors: SL_EBUDGET, SL_ENOMEM. */
int s2_stage_plan(
        s2_engine *e, s2_phase_kind kind, const s2_extent *extent, sl_error *reterr) SL_MUST_CHECK;

/* Encoding a recording, and what speaking needs after it if that is expected. Errors: SL_EBUDGET, SL_ENOMEM. */
int s2_stage_plan_voice(s2_engine *e, sl_error *reterr) SL_MUST_CHECK;

/* Whether the planned run decodes each frame as it is made. */
bool s2_stage_decodes_together(const s2_engine *e);

/*
 * Begins step i_step of the plan; the one before has ended. With `is_streaming` weights may still be arriving:
 * whoever computes waits for them (s2_weights_arrive). Otherwise all are there.
 * Errors: those of sl_phase_begin.
 */
int s2_stage_begin(s2_engine *e, size_t i_step, bool is_streaming, sl_error *reterr) SL_MUST_CHECK;

/* Ends the active phase; what leaves takes graphs, KV cache and decoder with it. Without one nothing happens. */
void s2_stage_end(s2_engine *e);

/* The request is over: under hot everything is given back, the page cache too. */
void s2_stage_finish(s2_engine *e);

/* Whether the weights of a slot are moved to a device. */
bool s2_stage_is_moved(const s2_engine *e, s2_slot slot);

/*
 * What the decoder computes on: an instance of its own if the AR is on a GPU, so that both run at once.
 * Errors: SL_EDEVICE, SL_ENOMEM.
 */
int s2_stage_need_codec_compute(
        s2_engine *e, s2_compute **ret_compute, sl_error *reterr) SL_MUST_CHECK;

/* Whether frames are decoded beside the generation. */
bool s2_stage_decodes_beside(const s2_engine *e);

/* Where the graphs of a slot are computed now. */
s2_compute *s2_stage_compute(s2_engine *e, s2_slot slot);

#endif
