/*
 * Causal convolutions over a stream: what arrives in pieces gives the same as what arrives at once.
 *
 * Each convolution keeps the last inputs that later outputs need (or, transposed, the sums that later inputs
 * complete). Signals are logically [time, channels], see nn/build.h.
 */
#ifndef S2_NN_CONV_H
#define S2_NN_CONV_H

#include <stdint.h>

#include "engine/nn/build.h"
#include "engine/nn/weights.h"

/* Most taps of one kernel. */
#define S2_CONV_MAX_KERNEL 128

typedef struct s2_conv_shape {
    uint32_t n_in;
    uint32_t n_out;
    uint32_t kernel; /* 0 = as the tensor says, at least the stride */
    uint32_t stride;
    uint32_t dilation;
    uint32_t frame_columns; /* outputs of one frame: chooses the kernel, not the result */
} s2_conv_shape;

/* One convolution; filled by an init below. Its graphs point to it: it must not move. */
typedef struct s2_conv {
    s2_conv_shape shape;
    uint32_t n_pad; /* inputs kept: (kernel - 1) * dilation + 1 - stride */
    struct ggml_tensor
            *weight; /* [kernel, n_in, n_out]; depthwise [kernel, 1, n]; up [kernel, n_out, n_in] */
    struct ggml_tensor *bias;  /* [n_out] */
    struct ggml_tensor *state; /* [n_pad, n_in]; up [stride, n_out]; NULL if nothing is kept */
} s2_conv;

/* Tensors PREFIX.weight and PREFIX.bias; makes the state's record. Errors: SL_EFORMAT, SL_ENOMEM. */
int s2_conv_init(s2_conv *conv, const s2_weights *weights, s2_state *state, const char *prefix,
        s2_conv_shape shape, sl_error *reterr) SL_MUST_CHECK;
int s2_conv_init_depthwise(s2_conv *conv, const s2_weights *weights, s2_state *state,
        const char *prefix, s2_conv_shape shape, sl_error *reterr) SL_MUST_CHECK;
/* Transposed; kernel = stride or 2 * stride. */
int s2_conv_init_up(s2_conv *conv, const s2_weights *weights, s2_state *state, const char *prefix,
        s2_conv_shape shape, sl_error *reterr) SL_MUST_CHECK;

/*
 * y = conv(snake(x; alpha)) (+ residual). x: signal [time, n_in], time a multiple of the stride; alpha:
 * [1, n_in] or NULL for no snake; residual: signal of the result's shape or NULL.
 * Gives a signal [time / stride, n_out] and moves the state on.
 */
struct ggml_tensor *s2_conv_build(const s2_build *b, const s2_conv *conv, struct ggml_tensor *x,
        struct ggml_tensor *alpha, struct ggml_tensor *residual);

/* One kernel for each channel; gives a signal [time, n_in]. */
struct ggml_tensor *s2_conv_build_depthwise(
        const s2_build *b, const s2_conv *conv, struct ggml_tensor *x);

/* Transposed: gives a signal [time * stride, n_out]. */
struct ggml_tensor *s2_conv_build_up(
        const s2_build *b, const s2_conv *conv, struct ggml_tensor *x, struct ggml_tensor *alpha);

#endif
