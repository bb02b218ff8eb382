/* What the codec's encoder and decoder have in common. */
#ifndef S2_MODEL_CODEC_PARTS_H
#define S2_MODEL_CODEC_PARTS_H

#include "engine/model/hparams.h"
#include "engine/nn/codec_transformer.h"

/* Residual units of a stage, and their dilations 1, 3, 9. */
#define S2_CODEC_N_UNITS 3
uint32_t s2_codec_unit_dilation(uint32_t i_unit);

/* Most samples of one frame that pieces of a few frames are made for; S2 Pro has 2048. */
#define S2_CODEC_MAX_FRAME_SAMPLES (1u << 18)

/* The sizes that no tensor's shape shows to be wrong. Errors: SL_EFORMAT, SL_EUNSUPPORTED. */
int s2_codec_check_sizes(const s2_codec_hparams *hp, sl_error *reterr) SL_MUST_CHECK;

s2_codec_tf_shape s2_codec_tf_shape_of(const s2_codec_tf_hparams *hp);

#endif
