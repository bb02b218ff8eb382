/* The codec's residual unit over a stream: x + conv1(snake(conv(snake(x)))). */
#ifndef S2_NN_RESIDUAL_UNIT_H
#define S2_NN_RESIDUAL_UNIT_H

#include "engine/nn/conv.h"

typedef struct s2_residual_unit {
    struct ggml_tensor *alpha_in;
    s2_conv wide; /* 7 taps, dilated */
    struct ggml_tensor *alpha_mid;
    s2_conv point; /* 1 tap */
} s2_residual_unit;

/* State tensors that an init makes at most. */
#define S2_RESIDUAL_UNIT_N_STATE 2

/* Tensors PREFIX.block.0 to PREFIX.block.3 of width n; frame_columns as in s2_conv_shape. */
int s2_residual_unit_init(s2_residual_unit *unit, const s2_weights *weights, s2_state *state,
        const char *prefix, uint32_t n, uint32_t dilation, uint32_t frame_columns,
        sl_error *reterr) SL_MUST_CHECK;

/* x: signal [time, n]; gives a signal of the same shape. */
struct ggml_tensor *s2_residual_unit_build(
        const s2_build *b, const s2_residual_unit *unit, struct ggml_tensor *x);

#endif
