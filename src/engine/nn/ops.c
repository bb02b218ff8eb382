#include "engine/nn/ops.h"

#include "engine/nn/build.h"

struct ggml_tensor *s2_nn_f32(s2_graph *g, struct ggml_tensor *t)
{
    if (t->type == GGML_TYPE_F32) {
        return t;
    }
    return s2_graph_constant(g, t);
}

struct ggml_tensor *s2_nn_rms_norm(
        s2_graph *g, struct ggml_tensor *x, struct ggml_tensor *weight, float eps)
{
    struct ggml_tensor *w = s2_nn_f32(g, weight);
    return ggml_mul(g->ctx, ggml_rms_norm(g->ctx, x, eps), w);
}

struct ggml_tensor *s2_nn_rope(
        s2_graph *g, struct ggml_tensor *x, struct ggml_tensor *pos, float base)
{
    return ggml_rope_ext(g->ctx, x, pos, NULL, (int)x->ne[0], GGML_ROPE_TYPE_NORMAL, 0, base, 1.0f,
            0.0f, 1.0f, 0.0f, 0.0f);
}

struct ggml_tensor *s2_nn_linear(s2_graph *g, struct ggml_tensor *weight, struct ggml_tensor *x)
{
    const s2_build_options options = {0};
    s2_build b = s2_build_begin(g, &options);
    bool is_in_place = weight->type == GGML_TYPE_F32 || weight->type == GGML_TYPE_F16 ||
                       weight->type == GGML_TYPE_Q8_0;
    return is_in_place ? s2_build_linear(&b, weight, NULL, x) : ggml_mul_mat(g->ctx, weight, x);
}

struct ggml_tensor *s2_nn_swiglu_ffn(s2_graph *g, struct ggml_tensor *x, struct ggml_tensor *w1,
        struct ggml_tensor *w3, struct ggml_tensor *w2)
{
    struct ggml_tensor *gate = s2_nn_linear(g, w1, x);
    struct ggml_tensor *up = s2_nn_linear(g, w3, x);
    return s2_nn_linear(g, w2, ggml_swiglu_split(g->ctx, gate, up));
}
