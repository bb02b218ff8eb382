/*
 * Attention runs through ggml's flash attention over the cache's first n_kv rows. On the CPU a single column is
 * laid out as the query heads of a group side by side: the KV head is then read once for all of them, and
 * the back end does not split the sequence among its threads, which would make sums depend on their number.
 * Other devices know groups of heads themselves.
 */
#include "engine/model/ar_layer.h"

#include <math.h>

#include "engine/nn/ops.h"

int s2_ar_layer_bind(const s2_weights *weights, const s2_ar_hparams *hp, const char *prefix,
        uint32_t i_layer, s2_ar_layer *ret_layer, sl_error *reterr)
{
    int64_t q_rows = (int64_t)hp->n_head * hp->head_dim;
    int64_t qkv_rows = q_rows + 2 * (int64_t)hp->n_head_kv * hp->head_dim;
    s2_ar_layer layer = {0};
    const struct {
        const char *suffix;
        struct ggml_tensor **dst;
        s2_weight_kind kind;
        int64_t ne0;
        int64_t ne1;
        bool is_wanted;
    } rows[] = {
            {"attention_norm", &layer.attn_norm, S2_WEIGHT_VECTOR, hp->n_embd, 1, true},
            {"attention.wqkv", &layer.wqkv, S2_WEIGHT_MATRIX, hp->n_embd, qkv_rows, true},
            {"attention.q_norm", &layer.q_norm, S2_WEIGHT_VECTOR, hp->head_dim, 1, hp->has_qk_norm},
            {"attention.k_norm", &layer.k_norm, S2_WEIGHT_VECTOR, hp->head_dim, 1, hp->has_qk_norm},
            {"attention.wo", &layer.wo, S2_WEIGHT_MATRIX, q_rows, hp->n_embd, true},
            {"ffn_norm", &layer.ffn_norm, S2_WEIGHT_VECTOR, hp->n_embd, 1, true},
            {"feed_forward.w1", &layer.w1, S2_WEIGHT_MATRIX, hp->n_embd, hp->n_ff, true},
            {"feed_forward.w3", &layer.w3, S2_WEIGHT_MATRIX, hp->n_embd, hp->n_ff, true},
            {"feed_forward.w2", &layer.w2, S2_WEIGHT_MATRIX, hp->n_ff, hp->n_embd, true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (!rows[i].is_wanted) {
            continue;
        }
        int64_t ne[3] = {rows[i].ne0, rows[i].ne1, 1};
        int r = s2_weights_need(weights, rows[i].kind, ne, rows[i].dst, reterr, "%s%u.%s.weight",
                prefix, i_layer, rows[i].suffix);
        if (r < 0) {
            return r;
        }
    }
    *ret_layer = layer;
    return SL_OK;
}

static uint32_t group_size(const s2_ar_hparams *hp)
{
    return hp->n_head / hp->n_head_kv;
}

s2_ar_inputs s2_ar_inputs_add(s2_inputs *inputs, const s2_compute *compute, const s2_ar_hparams *hp,
        uint32_t n, uint32_t n_kv)
{
    /* One row of the mask for each query row: the heads of a group, or the columns. */
    bool is_grouped = n == 1 && compute->is_cpu;
    uint32_t n_mask = is_grouped ? group_size(hp) : n;
    return (s2_ar_inputs){
            .pos = s2_inputs_add(inputs, GGML_TYPE_I32, n, 1),
            .rows = s2_inputs_add(inputs, GGML_TYPE_I64, n, 1),
            .mask = s2_inputs_add(inputs, GGML_TYPE_F16, n_kv, n_mask),
            .n_kv = n_kv,
            .is_grouped = is_grouped,
    };
}

void s2_ar_inputs_fill(const s2_ar_inputs *in, const s2_inputs *inputs, uint32_t n_past)
{
    const ggml_fp16_t visible = ggml_fp32_to_fp16(0.0f);
    const ggml_fp16_t hidden = ggml_fp32_to_fp16(-INFINITY);
    uint32_t n = (uint32_t)in->pos->ne[0];
    uint32_t n_mask = (uint32_t)in->mask->ne[1];
    int32_t *pos = s2_inputs_host(inputs, in->pos);
    int64_t *rows = s2_inputs_host(inputs, in->rows);
    ggml_fp16_t *mask = s2_inputs_host(inputs, in->mask);

    for (uint32_t row = 0; row < n_mask; row++) {
        uint32_t n_visible = n_past + 1 + (in->is_grouped ? 0 : row);
        for (uint32_t j = 0; j < in->n_kv; j++) {
            mask[(size_t)row * in->n_kv + j] = j < n_visible ? visible : hidden;
        }
    }
    for (uint32_t i = 0; i < n; i++) {
        pos[i] = (int32_t)(n_past + i);
        rows[i] = (int64_t)n_past + i;
    }
}

/* The cache's first n_kv rows as [head_dim, n_kv, n_head_kv]. */
static struct ggml_tensor *cache_view(
        s2_graph *g, const s2_ar_hparams *hp, struct ggml_tensor *cache, uint32_t n_kv)
{
    size_t head_bytes = ggml_row_size(cache->type, hp->head_dim);
    return ggml_view_3d(
            g->ctx, cache, hp->head_dim, n_kv, hp->n_head_kv, cache->nb[1], head_bytes, 0);
}

/* For sizes of heads that a device's flash attention does not know. q: [head_dim, n, n_head]. */
static struct ggml_tensor *attend_plainly(s2_graph *g, const s2_ar_hparams *hp,
        const s2_ar_inputs *in, struct ggml_tensor *q, struct ggml_tensor *k, struct ggml_tensor *v)
{
    struct ggml_context *ctx = g->ctx;
    float scale = 1.0f / sqrtf((float)hp->head_dim);
    struct ggml_tensor *kq = ggml_mul_mat(ctx, k, ggml_cont(ctx, q)); /* [n_kv, n, n_head] */
    ggml_mul_mat_set_prec(kq, GGML_PREC_F32);
    kq = ggml_soft_max_ext(ctx, kq, in->mask, scale, 0.0f);
    v = ggml_cont(ctx, ggml_permute(ctx, v, 1, 0, 2, 3)); /* [n_kv, head_dim, n_head_kv] */
    struct ggml_tensor *out = ggml_mul_mat(ctx, v, kq);   /* [head_dim, n, n_head] */
    out = ggml_cont(ctx, ggml_permute(ctx, out, 0, 2, 1, 3));
    return ggml_reshape_2d(ctx, out, (int64_t)hp->n_head * hp->head_dim, q->ne[1]);
}

/* q: [head_dim, n_head, n] to the attention's result [n_head * head_dim, n]. */
static struct ggml_tensor *attend(s2_graph *g, const s2_ar_hparams *hp, const s2_kv_layer *kv,
        const s2_ar_inputs *in, struct ggml_tensor *q)
{
    struct ggml_context *ctx = g->ctx;
    int64_t n = q->ne[2];
    int64_t n_rows = (int64_t)hp->n_head * hp->head_dim;
    float scale = 1.0f / sqrtf((float)hp->head_dim);
    struct ggml_tensor *k = cache_view(g, hp, kv->k, in->n_kv);
    struct ggml_tensor *v = cache_view(g, hp, kv->v, in->n_kv);
    struct ggml_tensor *q_rows =
            in->is_grouped ? ggml_reshape_3d(ctx, q, hp->head_dim, group_size(hp), hp->n_head_kv)
                           : ggml_permute(ctx, q, 0, 2, 1, 3);
    struct ggml_tensor *out = ggml_flash_attn_ext(ctx, q_rows, k, v, in->mask, scale, 0.0f, 0.0f);
    ggml_flash_attn_ext_set_prec(out, GGML_PREC_F32);
    if (!s2_compute_supports(g->compute, out)) {
        return attend_plainly(g, hp, in, q_rows, k, v);
    }
    if (in->is_grouped) {
        /* The result comes with heads and query rows swapped. */
        out = ggml_cont(ctx, ggml_permute(ctx, out, 0, 2, 1, 3));
    }
    return ggml_reshape_2d(ctx, out, n_rows, n);
}

/*
 * Queries or keys, normalised per head. ggml 0.23's CUDA kernel that also rotates them does not wait for all that it reads
 * where kernels begin early (Hopper): the same seed gave other codes each time. A reshape in between keeps the two apart.
 */
static struct ggml_tensor *norm_heads(
        s2_graph *g, struct ggml_tensor *x, struct ggml_tensor *weight, float eps)
{
    x = s2_nn_rms_norm(g, x, weight, eps);
    return g->compute->is_eager ? ggml_reshape_3d(g->ctx, x, x->ne[0], x->ne[1], x->ne[2]) : x;
}

struct ggml_tensor *s2_ar_layer_build(s2_graph *g, const s2_ar_hparams *hp,
        const s2_ar_layer *layer, const s2_kv_layer *kv, const s2_ar_inputs *in,
        struct ggml_tensor *x)
{
    struct ggml_context *ctx = g->ctx;
    int64_t n = x->ne[1];
    size_t head_bytes = hp->head_dim * sizeof(float);
    int64_t kv_row = (int64_t)hp->n_head_kv * hp->head_dim;

    struct ggml_tensor *a = s2_nn_rms_norm(g, x, layer->attn_norm, hp->rms_eps);
    struct ggml_tensor *qkv = s2_nn_linear(g, layer->wqkv, a);
    struct ggml_tensor *q =
            ggml_view_3d(ctx, qkv, hp->head_dim, hp->n_head, n, head_bytes, qkv->nb[1], 0);
    struct ggml_tensor *k = ggml_view_3d(ctx, qkv, hp->head_dim, hp->n_head_kv, n, head_bytes,
            qkv->nb[1], hp->n_head * head_bytes);
    struct ggml_tensor *v = ggml_view_2d(
            ctx, qkv, kv_row, n, qkv->nb[1], (hp->n_head + hp->n_head_kv) * head_bytes);
    if (layer->q_norm) {
        q = norm_heads(g, q, layer->q_norm, hp->rms_eps);
        k = norm_heads(g, k, layer->k_norm, hp->rms_eps);
    }
    q = s2_nn_rope(g, q, in->pos, hp->rope_base);
    k = s2_nn_rope(g, k, in->pos, hp->rope_base);
    /* Norm, rotation, view and write in a row are one operation to back ends that know them. */
    k = ggml_view_2d(ctx, k, kv_row, n, k->nb[2], 0);

    /* The attention reads the cache through views, so the writes must stand before it in the graph. */
    ggml_build_forward_expand(g->cgraph, ggml_set_rows(ctx, kv->k, k, in->rows));
    ggml_build_forward_expand(g->cgraph, ggml_set_rows(ctx, kv->v, v, in->rows));

    struct ggml_tensor *h = s2_nn_linear(g, layer->wo, attend(g, hp, kv, in, q));
    h = ggml_add(ctx, h, x);
    struct ggml_tensor *f = s2_nn_rms_norm(g, h, layer->ffn_norm, hp->rms_eps);
    return ggml_add(ctx, s2_nn_swiglu_ffn(g, f, layer->w1, layer->w3, layer->w2), h);
}
