/*
 * Codes in, samples out, exactly and at once.
 *
 * The decoder is strictly causal, so a stream keeps only what later frames need: K/V of the last window - 1
 * frames of each transformer layer and the last inputs of each convolution. Pushing frames one by one, in
 * pieces of any size, or all at once gives the same samples: bit for bit on the CPU with any number of
 * threads, up to the rounding of the device's matrix products elsewhere (1e-5 of full scale with F32 weights).
 * No number grows with the length of the stream.
 *
 * Threads: one thread at a time for a stream; the decoder's weights are shared.
 */
#ifndef S2_MODEL_CODEC_DECODER_H
#define S2_MODEL_CODEC_DECODER_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "engine/model/hparams.h"
#include "engine/nn/build.h"
#include "engine/nn/compute.h"
#include "engine/nn/weights.h"

typedef struct s2_codec_decoder s2_codec_decoder;

/*
 * Waits for the weights of decoder and quantizer; allocates the stream's state.
 * Errors: SL_EFORMAT (a tensor is missing, or of a type or shape that is not computed: names it), SL_ENOMEM.
 */
int s2_codec_decoder_create(const s2_hparams *hp, s2_weights *weights, s2_compute *compute,
        s2_codec_decoder **ret_decoder, sl_error *reterr) SL_MUST_CHECK;
/* The same for tests: with probes ("zq" to "model4"), or without fused kernels. */
int s2__codec_decoder_create(const s2_hparams *hp, s2_weights *weights, s2_compute *compute,
        const s2_build_options *options, s2_codec_decoder **ret_decoder,
        sl_error *reterr) SL_MUST_CHECK;

void s2_codec_decoder_free(s2_codec_decoder **decoder);

/* Forgets the stream: the next frame is the first. */
void s2_codec_decoder_reset(s2_codec_decoder *decoder);

/*
 * Decodes n_frames >= 1 further frames. codes: frame major, codes[t * n_codebooks + j]; values are clamped
 * to their codebooks. samples: room for n_frames * hp->codec.frame_samples floats.
 * Large n_frames are worked off in bounded pieces. Errors: SL_EINVAL (no frames), SL_ENOMEM, SL_EDEVICE,
 * SL_ECANCELLED; after one of the last three the stream has to be reset.
 */
int s2_codec_decoder_push(s2_codec_decoder *decoder, const int32_t *codes, uint32_t n_frames,
        float *ret_samples, sl_error *reterr) SL_MUST_CHECK;

/* Builds the graph of a single frame now, so that memory that is short shows. Errors: SL_ENOMEM, SL_EBUDGET. */
int s2_codec_decoder_prepare(s2_codec_decoder *decoder, sl_error *reterr) SL_MUST_CHECK;

/* Bytes of state and compute buffers on its device now. */
size_t s2_codec_decoder_bytes(const s2_codec_decoder *decoder);

#endif
