/*
 * The codec's residual vector quantizer: latents of a frame <-> one code for each book.
 *
 * Runs on the host, in F32, in an order that does not depend on how many frames are given at once: a few
 * hundred thousand operations a frame. Tables are read in place from the mapping and widened as needed.
 *
 * Threads: one thread at a time for one quantizer.
 */
#ifndef S2_MODEL_QUANTIZER_H
#define S2_MODEL_QUANTIZER_H

#include <stdint.h>

#include "base/status.h"
#include "engine/model/hparams.h"
#include "engine/nn/weights.h"

typedef struct s2_quantizer s2_quantizer;

/* Errors: SL_EFORMAT (a table is missing or of a wrong shape or type: names it), SL_ENOMEM. */
int s2_quantizer_create(const s2_codec_hparams *hp, const s2_weights *weights,
        s2_quantizer **ret_quantizer, sl_error *reterr) SL_MUST_CHECK;
void s2_quantizer_free(s2_quantizer **quantizer);

/*
 * codes: frame major, codes[t * n_codebooks + j], clamped to the books. ret_latents: rows
 * [n_frames][latent_dim], the sum of the books' entries.
 */
void s2_quantizer_decode(
        s2_quantizer *quantizer, const int32_t *codes, uint32_t n_frames, float *ret_latents);

/*
 * latents: rows [n_frames][latent_dim]; overwritten with what the books leave over. ret_codes: book j of
 * frame t at ret_codes[j * book_stride + t]. ret_projected: NULL, or rows
 * [n_frames][n_codebooks * codebook_dim], the projections that were looked up.
 */
void s2_quantizer_encode(s2_quantizer *quantizer, float *latents, uint32_t n_frames,
        int32_t *ret_codes, size_t book_stride, float *ret_projected);

size_t s2_quantizer_bytes(const s2_quantizer *quantizer);

#endif
