/*
 * A recording in, codes out, in bounded memory whatever its length.
 *
 * The samples are padded with zeros to whole frames (REF's rule). Convolutions, transformers and quantizers
 * run over pieces of the signal with the same kind of state that the decoder keeps.
 *
 * Threads: one thread at a time.
 */
#ifndef S2_MODEL_CODEC_ENCODER_H
#define S2_MODEL_CODEC_ENCODER_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "engine/model/hparams.h"
#include "engine/nn/build.h"
#include "engine/nn/compute.h"
#include "engine/nn/weights.h"

typedef struct s2_codec_encoder s2_codec_encoder;

/*
 * Waits for the weights of encoder and quantizer; allocates the state.
 * Errors: SL_EFORMAT (as check), SL_ENOMEM, SL_EBUDGET.
 */
int s2_codec_encoder_create(const s2_hparams *hp, s2_weights *weights, s2_compute *compute,
        s2_codec_encoder **ret_encoder, sl_error *reterr) SL_MUST_CHECK;
/* The same for tests: with probes ("block0" to "pre_module"), or without fused kernels. */
int s2__codec_encoder_create(const s2_hparams *hp, s2_weights *weights, s2_compute *compute,
        const s2_build_options *options, s2_codec_encoder **ret_encoder,
        sl_error *reterr) SL_MUST_CHECK;

void s2_codec_encoder_free(s2_codec_encoder **encoder);

/* ceil(n_samples / frame_samples). */
uint32_t s2_codec_encoder_n_frames(const s2_codec_encoder *encoder, size_t n_samples);

/*
 * Encodes n_samples >= 1 at the codec's rate. ret_codes: room for n_codebooks * n_frames values, book
 * major: codes[j * n_frames + t]. Every call begins anew, whatever became of the one before.
 * Errors: SL_EINVAL (no samples, or one that is not a finite number), SL_ENOMEM, SL_EDEVICE, SL_ECANCELLED.
 */
int s2_codec_encoder_run(s2_codec_encoder *encoder, const float *samples, size_t n_samples,
        int32_t *ret_codes, sl_error *reterr) SL_MUST_CHECK;

/* Builds all graphs now. Errors: SL_ENOMEM, SL_EBUDGET. */
int s2_codec_encoder_prepare(s2_codec_encoder *encoder, sl_error *reterr) SL_MUST_CHECK;

/* Bytes of state and compute buffers on its device now. */
size_t s2_codec_encoder_bytes(const s2_codec_encoder *encoder);

#endif
