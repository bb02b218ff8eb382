/*
 * The fast AR: the hidden state of a frame and its semantic code in, the residual codes out, one by one.
 *
 * A frame is a sequence of n_codebooks positions: position 0 is the hidden state, position j the embedding
 * of code j - 1; the output at position j >= 1 predicts code j. Positions 0 and 1 are known up front and
 * run in one pass, so a frame takes n_codebooks - 1 passes.
 *
 * Threads: one thread at a time.
 */
#ifndef S2_MODEL_FAST_AR_H
#define S2_MODEL_FAST_AR_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "engine/model/hparams.h"
#include "engine/nn/compute.h"
#include "engine/nn/weights.h"

typedef struct s2_fast_ar s2_fast_ar;

/* Finds the tensors; allocates nothing on the device. Errors: SL_EFORMAT naming the tensor, SL_ENOMEM. */
int s2_fast_ar_create(const s2_hparams *hp, s2_weights *weights, s2_compute *compute,
        s2_fast_ar **ret_ar, sl_error *reterr) SL_MUST_CHECK;
void s2_fast_ar_free(s2_fast_ar **ar);

/*
 * Begins a frame and gives the logits of code 1.
 * hidden: [slow.n_embd]; code0: 0..codebook_size-1; ret_logits: [codebook_size].
 */
int s2_fast_ar_begin(s2_fast_ar *ar, const float *hidden, int32_t code0, float *ret_logits,
        sl_error *reterr) SL_MUST_CHECK;

/* Takes the code just chosen and gives the logits of the next: at most n_codebooks - 2 times a frame. */
int s2_fast_ar_next(
        s2_fast_ar *ar, int32_t code, float *ret_logits, sl_error *reterr) SL_MUST_CHECK;

/* Waits for the weights and builds the graphs, unless that is done; begin does it too. Errors: those of both. */
int s2_fast_ar_prepare(s2_fast_ar *ar, sl_error *reterr) SL_MUST_CHECK;

/* Gives KV cache and compute buffers back. */
void s2_fast_ar_release(s2_fast_ar *ar);

/* Bytes of KV cache and of compute buffers now. */
size_t s2_fast_ar_kv_bytes(const s2_fast_ar *ar);
size_t s2_fast_ar_compute_bytes(const s2_fast_ar *ar);

#endif
