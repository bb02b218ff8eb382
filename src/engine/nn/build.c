#include "engine/nn/build.h"

#include <string.h>

#include "base/mem.h"
#include "engine/nn/codec_kernels.h"
#include "engine/nn/ops.h"

#define STAGE_PREFIX "stage:"

s2_build s2_build_begin(s2_graph *g, const s2_build_options *options)
{
    return (s2_build){.g = g,
            .ctx = g->ctx,
            .is_fused = !options->is_standard && g->compute->is_cpu,
            .is_probed = options->probe != NULL};
}

struct ggml_tensor *s2_build_rows(const s2_build *b, struct ggml_tensor *signal)
{
    struct ggml_tensor *rows = ggml_transpose(b->ctx, signal);
    return ggml_is_contiguous(rows) ? rows : ggml_cont(b->ctx, rows);
}

struct ggml_tensor *s2_build_contiguous(const s2_build *b, struct ggml_tensor *signal)
{
    /* A single column counts as contiguous whatever its stride, which element-wise operations refuse. */
    bool is_plain = ggml_is_contiguous(signal) && signal->nb[0] == ggml_type_size(signal->type);
    return is_plain ? signal : ggml_cont(b->ctx, signal);
}

void s2_build_stage(const s2_build *b, struct ggml_tensor *t, const char *stage)
{
    if (b->is_probed) {
        struct ggml_tensor *kept = ggml_cont(b->ctx, t);
        ggml_format_name(kept, STAGE_PREFIX "%s", stage);
        ggml_set_output(kept);
        ggml_build_forward_expand(b->g->cgraph, kept);
    }
}

void s2_build_show(const s2_graph *g, const s2_probe *probe)
{
    for (int i = 0; i < ggml_graph_n_nodes(g->cgraph); i++) {
        struct ggml_tensor *t = ggml_graph_node(g->cgraph, i);
        const char *name = ggml_get_name(t);
        if (strncmp(name, STAGE_PREFIX, strlen(STAGE_PREFIX)) != 0) {
            continue;
        }
        float *copy = sl__alloc(1, ggml_nbytes(t));
        if (copy) {
            ggml_backend_tensor_get(t, copy, 0, ggml_nbytes(t));
            probe->see(probe->user, name + strlen(STAGE_PREFIX), copy, t->ne[0], t->ne[1]);
            sl__free(copy);
        }
    }
}

struct ggml_tensor *s2_build_linear(const s2_build *b, struct ggml_tensor *weight,
        struct ggml_tensor *bias, struct ggml_tensor *x)
{
    if (b->is_fused) {
        return s2_kernel_linear(b, weight, bias, x);
    }
    struct ggml_tensor *y = ggml_mul_mat(b->ctx, weight, x);
    return bias ? ggml_add(b->ctx, y, s2_nn_f32(b->g, bias)) : y;
}
