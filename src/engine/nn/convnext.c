#include "engine/nn/convnext.h"

#include <stdio.h>

#include "engine/nn/bind.h"
#include "engine/nn/ops.h"

#define LAYER_NORM_EPS 1e-6F

int s2_convnext_init(s2_convnext *block, const s2_weights *weights, s2_state *state,
        const char *prefix, uint32_t n, sl_error *reterr)
{
    char name[128];
    snprintf(name, sizeof name, "%s.dwconv.conv", prefix);
    s2_conv_shape shape = {.n_in = n, .n_out = n, .stride = 1, .dilation = 1};
    int r = s2_conv_init_depthwise(&block->depthwise, weights, state, name, shape, reterr);
    if (r < 0) {
        return r;
    }
    const struct ggml_tensor *up = s2_weights_find(weights, "%s.pwconv1.weight", prefix);
    int64_t hidden = up ? up->ne[1] : 4 * (int64_t)n;
    const s2_wanted wanted[] = {
            {"norm.weight", S2_WEIGHT_VECTOR, {n, 1, 1}, &block->norm_weight},
            {"norm.bias", S2_WEIGHT_VECTOR, {n, 1, 1}, &block->norm_bias},
            {"pwconv1.weight", S2_WEIGHT_MATRIX, {n, hidden, 1}, &block->up_weight},
            {"pwconv1.bias", S2_WEIGHT_VECTOR, {hidden, 1, 1}, &block->up_bias},
            {"pwconv2.weight", S2_WEIGHT_MATRIX, {hidden, n, 1}, &block->down_weight},
            {"pwconv2.bias", S2_WEIGHT_VECTOR, {n, 1, 1}, &block->down_bias},
            {"gamma", S2_WEIGHT_VECTOR, {n, 1, 1}, &block->gamma},
    };
    return s2_bind(weights, prefix, wanted, sizeof wanted / sizeof wanted[0], reterr);
}

struct ggml_tensor *s2_convnext_build(
        const s2_build *b, const s2_convnext *block, struct ggml_tensor *x)
{
    struct ggml_tensor *input = s2_build_rows(b, x);
    struct ggml_tensor *y = s2_build_rows(b, s2_conv_build_depthwise(b, &block->depthwise, x));
    y = ggml_norm(b->ctx, y, LAYER_NORM_EPS);
    y = ggml_mul(b->ctx, y, s2_nn_f32(b->g, block->norm_weight));
    y = ggml_add(b->ctx, y, s2_nn_f32(b->g, block->norm_bias));
    y = ggml_gelu_erf(b->ctx, s2_build_linear(b, block->up_weight, block->up_bias, y));
    y = s2_build_linear(b, block->down_weight, block->down_bias, y);
    y = ggml_mul(b->ctx, y, s2_nn_f32(b->g, block->gamma));
    return ggml_transpose(b->ctx, ggml_add(b->ctx, input, y));
}
