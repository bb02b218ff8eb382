#include "engine/nn/residual_unit.h"

#include <stdio.h>

int s2_residual_unit_init(s2_residual_unit *unit, const s2_weights *weights, s2_state *state,
        const char *prefix, uint32_t n, uint32_t dilation, uint32_t frame_columns, sl_error *reterr)
{
    char name[128];
    s2_conv_shape shape = {.n_in = n,
            .n_out = n,
            .kernel = 7,
            .stride = 1,
            .dilation = dilation,
            .frame_columns = frame_columns};
    const int64_t alpha_ne[3] = {1, n, 1};
    int r = s2_weights_need(weights, S2_WEIGHT_VECTOR, alpha_ne, &unit->alpha_in, reterr,
            "%s.block.0.alpha", prefix);
    if (r < 0) {
        return r;
    }
    snprintf(name, sizeof name, "%s.block.1.conv", prefix);
    r = s2_conv_init(&unit->wide, weights, state, name, shape, reterr);
    if (r < 0) {
        return r;
    }
    r = s2_weights_need(weights, S2_WEIGHT_VECTOR, alpha_ne, &unit->alpha_mid, reterr,
            "%s.block.2.alpha", prefix);
    if (r < 0) {
        return r;
    }
    shape.kernel = 1;
    shape.dilation = 1;
    snprintf(name, sizeof name, "%s.block.3.conv", prefix);
    return s2_conv_init(&unit->point, weights, state, name, shape, reterr);
}

struct ggml_tensor *s2_residual_unit_build(
        const s2_build *b, const s2_residual_unit *unit, struct ggml_tensor *x)
{
    struct ggml_tensor *y = s2_conv_build(b, &unit->wide, x, unit->alpha_in, NULL);
    return s2_conv_build(b, &unit->point, y, unit->alpha_mid, x);
}
