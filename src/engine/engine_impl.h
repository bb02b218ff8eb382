/* What an engine consists of; for the files of this folder alone. */
#ifndef S2_ENGINE_IMPL_H
#define S2_ENGINE_IMPL_H

#include "engine/host_pages.h"
#include "engine/model/codec_decoder.h"
#include "engine/model/codec_encoder.h"
#include "engine/model/fast_ar.h"
#include "engine/model/hparams.h"
#include "engine/model/slow_ar.h"
#include "engine/nn/compute.h"
#include "engine/nn/weights.h"
#include "engine/planner.h"
#include "engine/prefix.h"
#include "engine/text/prompt.h"
#include "engine/text/tokenizer.h"
#include "s2/engine.h"
#include "sluice/model.h"

struct s2_engine {
    sl_logger log;
    uint32_t n_threads;
    sl_model *model;
    s2_host_pages pages;
    s2_hparams hp;
    s2_compute computes[S2_MAX_PLACES]; /* of each place; 0 is the host's */
    s2_compute codec_compute;           /* the decoder's own, beside an AR on a GPU; else zeroed */
    s2_weights *weights;
    s2_tokenizer *tokenizer;
    s2_prompt_layout layout;
    s2_slow_ar *slow;
    s2_fast_ar *fast;
    s2_codec_decoder *decoder; /* made when first needed */

    /* Of stage.c. */
    s2_placement *placement;
    s2_planner planner;
    sl_residency *residency;
    sl_policy policy;
    s2_decode_when decode_when;
    s2_planned planned; /* of the request */
    s2_run run;
    sl_phase *phase; /* the active one, or NULL */
    size_t i_step;
    s2_slow_places slow_places; /* what the ARs were made for */
    s2_compute *fast_compute;
    sl_lease *held[S2_SLOT_COUNT];
    size_t actual[S2_SLOT_COUNT]; /* place of a slot when it was last held */
    uint32_t expected_frames;
    bool expects_speech;

    s2_prefix prefix;
};

/* Makes the decoder if there is none and resets it to the start of a stream. */
int s2__engine_need_decoder(s2_engine *e, sl_error *reterr) SL_MUST_CHECK;

#endif
