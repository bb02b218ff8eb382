/*
 * The codec's transformer over a stream: windowed causal attention, interleaved RoPE, SwiGLU, layer scale.
 *
 * K and V of the last positions lie in rings, K without rotation: positions are counted within the window
 * each time, so no number grows with the length of the stream and the hour-long stream is as exact as the
 * first second.
 */
#ifndef S2_NN_CODEC_TRANSFORMER_H
#define S2_NN_CODEC_TRANSFORMER_H

#include <stdint.h>

#include "engine/nn/build.h"
#include "engine/nn/codec_kernels.h"
#include "engine/nn/weights.h"

#define S2_CODEC_TF_MAX_LAYERS 64

typedef struct s2_codec_tf_shape {
    uint32_t n_layer;
    uint32_t n_embd;
    uint32_t n_head;
    uint32_t head_dim;
    uint32_t n_ff;
    uint32_t window;
    float rope_base;
    float rms_eps;
} s2_codec_tf_shape;

typedef struct s2_codec_tf_layer s2_codec_tf_layer;

/* Zeroed memory may be passed to done. */
typedef struct s2_codec_tf {
    s2_codec_tf_shape shape;
    s2_attention attention;
    s2_codec_tf_layer *layers;
    struct ggml_tensor *norm;
    s2_state constants;
    struct ggml_tensor *rope; /* in constants: angles for the fused attention */
    uint32_t slot;            /* where the next position goes */
    uint32_t n_past;          /* earlier positions kept, at most window - 1 */
} s2_codec_tf;

/* Where the positions of a graph stand; of its inputs. */
typedef struct s2_codec_tf_inputs {
    uint32_t n_time;
    struct ggml_tensor *where; /* fused */
    struct ggml_tensor *index; /* standard: the other four */
    struct ggml_tensor *q_pos;
    struct ggml_tensor *k_pos;
    struct ggml_tensor *mask;
} s2_codec_tf_inputs;

#define S2_CODEC_TF_MAX_INPUTS 4

/* State tensors that an init makes for n_layer layers. */
#define S2_CODEC_TF_N_STATE(n_layer) (2 * (size_t)(n_layer))

/* Tensors below PREFIX; pieces have at most max_time positions. Errors: SL_EFORMAT, SL_EUNSUPPORTED, SL_ENOMEM. */
int s2_codec_tf_init(s2_codec_tf *tf, const s2_weights *weights, s2_state *state,
        s2_compute *compute, const char *prefix, const s2_codec_tf_shape *shape, uint32_t max_time,
        sl_error *reterr) SL_MUST_CHECK;
void s2_codec_tf_done(s2_codec_tf *tf);

/* Forgets all positions; the rings themselves are the owner's state to clear. */
void s2_codec_tf_reset(s2_codec_tf *tf);

/* Adds at most S2_CODEC_TF_MAX_INPUTS tensors to the inputs of a graph over n_time positions. */
s2_codec_tf_inputs s2_codec_tf_inputs_add(
        const s2_build *b, const s2_codec_tf *tf, uint32_t n_time, s2_inputs *inputs);

/* x: rows [n_embd, time]; gives the same shape, after the final norm. */
struct ggml_tensor *s2_codec_tf_build(const s2_build *b, const s2_codec_tf *tf,
        struct ggml_tensor *x, const s2_codec_tf_inputs *in);

/* Before a run of a graph: fills its inputs. After it: the positions have moved on. */
void s2_codec_tf_inputs_fill(
        const s2_codec_tf *tf, const s2_codec_tf_inputs *in, const s2_inputs *inputs);
void s2_codec_tf_advance(s2_codec_tf *tf, uint32_t n_time);

#endif
