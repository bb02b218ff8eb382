/* ConvNeXt block over a stream: depthwise causal convolution, LayerNorm, 4x MLP with GELU, layer scale. */
#ifndef S2_NN_CONVNEXT_H
#define S2_NN_CONVNEXT_H

#include "engine/nn/conv.h"

typedef struct s2_convnext {
    s2_conv depthwise;
    struct ggml_tensor *norm_weight;
    struct ggml_tensor *norm_bias;
    struct ggml_tensor *up_weight; /* [n, hidden] */
    struct ggml_tensor *up_bias;
    struct ggml_tensor *down_weight; /* [hidden, n] */
    struct ggml_tensor *down_bias;
    struct ggml_tensor *gamma;
} s2_convnext;

/* Tensors below PREFIX of width n. Errors: SL_EFORMAT. */
int s2_convnext_init(s2_convnext *block, const s2_weights *weights, s2_state *state,
        const char *prefix, uint32_t n, sl_error *reterr) SL_MUST_CHECK;

/* x: signal [time, n]; gives a signal of the same shape. */
struct ggml_tensor *s2_convnext_build(
        const s2_build *b, const s2_convnext *block, struct ggml_tensor *x);

#endif
