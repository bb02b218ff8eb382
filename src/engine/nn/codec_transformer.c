#include "engine/nn/codec_transformer.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "engine/nn/bind.h"
#include "engine/nn/ops.h"

struct s2_codec_tf_layer {
    struct ggml_tensor *attention_norm;
    struct ggml_tensor *wqkv;
    struct ggml_tensor *wo;
    struct ggml_tensor *attention_scale;
    struct ggml_tensor *ffn_norm;
    struct ggml_tensor *w1;
    struct ggml_tensor *w2;
    struct ggml_tensor *w3;
    struct ggml_tensor *ffn_scale;
    struct ggml_tensor *k; /* [n_embd, n_ring] */
    struct ggml_tensor *v;
};

static int bind_layer(s2_codec_tf_layer *layer, const s2_weights *weights, const char *prefix,
        const s2_codec_tf_shape *shape, sl_error *reterr)
{
    int64_t n = shape->n_embd;
    int64_t ff = shape->n_ff;
    const s2_wanted wanted[] = {
            {"attention_norm.weight", S2_WEIGHT_VECTOR, {n, 1, 1}, &layer->attention_norm},
            {"attention.wqkv.weight", S2_WEIGHT_MATRIX, {n, 3 * n, 1}, &layer->wqkv},
            {"attention.wo.weight", S2_WEIGHT_MATRIX, {n, n, 1}, &layer->wo},
            {"attention_layer_scale.gamma", S2_WEIGHT_VECTOR, {n, 1, 1}, &layer->attention_scale},
            {"ffn_norm.weight", S2_WEIGHT_VECTOR, {n, 1, 1}, &layer->ffn_norm},
            {"feed_forward.w1.weight", S2_WEIGHT_MATRIX, {n, ff, 1}, &layer->w1},
            {"feed_forward.w3.weight", S2_WEIGHT_MATRIX, {n, ff, 1}, &layer->w3},
            {"feed_forward.w2.weight", S2_WEIGHT_MATRIX, {ff, n, 1}, &layer->w2},
            {"ffn_layer_scale.gamma", S2_WEIGHT_VECTOR, {n, 1, 1}, &layer->ffn_scale},
    };
    return s2_bind(weights, prefix, wanted, sizeof wanted / sizeof wanted[0], reterr);
}

static int check_shape(const s2_codec_tf_shape *shape, const char *prefix, sl_error *reterr)
{
    if (shape->head_dim == 0 || shape->head_dim % 2 != 0 ||
            (uint64_t)shape->n_head * shape->head_dim != shape->n_embd) {
        return sl__fail(reterr, SL_EFORMAT,
                "%s: %u heads of %u, need heads of even size that make %u", prefix, shape->n_head,
                shape->head_dim, shape->n_embd);
    }
    if (shape->head_dim > S2_ATTENTION_MAX_HEAD) {
        return sl__fail(reterr, SL_EUNSUPPORTED, "%s: heads of %u, at most %d are computed", prefix,
                shape->head_dim, S2_ATTENTION_MAX_HEAD);
    }
    if (shape->n_layer > S2_CODEC_TF_MAX_LAYERS) {
        return sl__fail(reterr, SL_EUNSUPPORTED, "%s: %u layers, at most %d are computed", prefix,
                shape->n_layer, S2_CODEC_TF_MAX_LAYERS);
    }
    if (shape->window < 1 || shape->window > S2_ATTENTION_MAX_WINDOW) {
        return sl__fail(reterr, SL_EUNSUPPORTED, "%s: attention window %u, 1 to %d are computed",
                prefix, shape->window, S2_ATTENTION_MAX_WINDOW);
    }
    return SL_OK;
}

/* The table of angles, computed in double. */
static int make_rope(s2_codec_tf *tf, s2_compute *compute, sl_error *reterr)
{
    uint32_t half = tf->shape.head_dim / 2;
    uint32_t window = tf->shape.window;
    int r = s2_state_init(&tf->constants, 1, reterr);
    if (r < 0) {
        return r;
    }
    tf->rope = ggml_new_tensor_3d(tf->constants.ctx, GGML_TYPE_F32, half, 2, window);
    r = s2_state_alloc(&tf->constants, compute, SL_MEM_COMPUTE, reterr);
    if (r < 0 || s2_compute_is_measuring(compute)) {
        return r;
    }
    float *table = sl__alloc(1, ggml_nbytes(tf->rope));
    if (!table) {
        return sl__fail_nomem(reterr, ggml_nbytes(tf->rope), "rotation angles");
    }
    for (size_t d = 0; d < window; d++) {
        for (size_t i = 0; i < half; i++) {
            double exponent = -2.0 * (double)i / (double)tf->shape.head_dim;
            double angle = (double)d * pow((double)tf->shape.rope_base, exponent);
            table[2 * d * half + i] = (float)cos(angle);
            table[(2 * d + 1) * half + i] = (float)sin(angle);
        }
    }
    ggml_backend_tensor_set(tf->rope, table, 0, ggml_nbytes(tf->rope));
    sl__free(table);
    return SL_OK;
}

static void add_ring(s2_codec_tf *tf, s2_codec_tf_layer *layer, s2_state *state)
{
    int64_t n_ring = tf->attention.n_ring;
    layer->k = ggml_new_tensor_2d(state->ctx, GGML_TYPE_F32, tf->shape.n_embd, n_ring);
    layer->v = ggml_new_tensor_2d(state->ctx, GGML_TYPE_F32, tf->shape.n_embd, n_ring);
}

int s2_codec_tf_init(s2_codec_tf *tf, const s2_weights *weights, s2_state *state,
        s2_compute *compute, const char *prefix, const s2_codec_tf_shape *shape, uint32_t max_time,
        sl_error *reterr)
{
    memset(tf, 0, sizeof *tf);
    int r = check_shape(shape, prefix, reterr);
    if (r < 0) {
        return r;
    }
    tf->shape = *shape;
    tf->attention = (s2_attention){.n_head = shape->n_head,
            .head_dim = shape->head_dim,
            .window = shape->window,
            .n_ring = shape->window - 1 + max_time};
    tf->layers = sl__alloc(shape->n_layer, sizeof *tf->layers);
    if (!tf->layers) {
        return sl__fail_nomem(reterr, shape->n_layer * sizeof *tf->layers, "codec layers");
    }
    for (uint32_t i = 0; i < shape->n_layer; i++) {
        s2_codec_tf_layer *layer = &tf->layers[i];
        char name[128];
        snprintf(name, sizeof name, "%s.layers.%u", prefix, i);
        r = bind_layer(layer, weights, name, shape, reterr);
        if (r < 0) {
            s2_codec_tf_done(tf);
            return r;
        }
        add_ring(tf, layer, state);
    }
    const int64_t norm_ne[3] = {shape->n_embd, 1, 1};
    r = s2_weights_need(
            weights, S2_WEIGHT_VECTOR, norm_ne, &tf->norm, reterr, "%s.norm.weight", prefix);
    if (r == 0) {
        r = make_rope(tf, compute, reterr);
    }
    if (r < 0) {
        s2_codec_tf_done(tf);
    }
    return r;
}

void s2_codec_tf_done(s2_codec_tf *tf)
{
    s2_state_done(&tf->constants);
    sl__free(tf->layers);
    memset(tf, 0, sizeof *tf);
}

void s2_codec_tf_reset(s2_codec_tf *tf)
{
    tf->slot = 0;
    tf->n_past = 0;
}

/* [n_embd, n] -> rotated [head_dim, n, n_head] */
static struct ggml_tensor *build_rotated(const s2_build *b, const s2_codec_tf *tf,
        struct ggml_tensor *x, struct ggml_tensor *positions)
{
    struct ggml_tensor *heads = ggml_reshape_3d(
            b->ctx, ggml_cont(b->ctx, x), tf->shape.head_dim, tf->shape.n_head, positions->ne[0]);
    heads = s2_nn_rope(b->g, heads, positions, tf->shape.rope_base);
    return ggml_permute(b->ctx, heads, 0, 2, 1, 3);
}

static struct ggml_tensor *build_standard_attention(const s2_build *b, const s2_codec_tf *tf,
        const s2_codec_tf_layer *layer, struct ggml_tensor *qkv, const s2_codec_tf_inputs *in)
{
    int64_t n_embd = tf->shape.n_embd;
    int64_t n_time = qkv->ne[1];
    size_t width = (size_t)n_embd * sizeof(float);
    float scale = 1.0F / sqrtf((float)tf->shape.head_dim);
    struct ggml_tensor *part[3];
    for (size_t i = 0; i < 3; i++) {
        part[i] = ggml_view_2d(b->ctx, qkv, n_embd, n_time, qkv->nb[1], i * width);
    }
    struct ggml_tensor *k = ggml_set_rows(b->ctx, layer->k, part[1], in->index);
    struct ggml_tensor *v = ggml_set_rows(b->ctx, layer->v, part[2], in->index);
    struct ggml_tensor *q = build_rotated(b, tf, part[0], in->q_pos);
    k = build_rotated(b, tf, k, in->k_pos);
    struct ggml_tensor *kq = ggml_mul_mat(b->ctx, k, q); /* [n_ring, time, n_head] */
    kq = ggml_soft_max_ext(b->ctx, kq, in->mask, scale, 0.0F);
    v = ggml_reshape_3d(b->ctx, v, tf->shape.head_dim, tf->shape.n_head, tf->attention.n_ring);
    v = ggml_cont(b->ctx, ggml_permute(b->ctx, v, 1, 2, 0, 3)); /* [n_ring, head_dim, n_head] */
    struct ggml_tensor *out = ggml_mul_mat(b->ctx, v, kq);      /* [head_dim, time, n_head] */
    out = ggml_cont(b->ctx, ggml_permute(b->ctx, out, 0, 2, 1, 3));
    return ggml_reshape_2d(b->ctx, out, n_embd, n_time);
}

static struct ggml_tensor *build_layer(const s2_build *b, const s2_codec_tf *tf,
        const s2_codec_tf_layer *layer, struct ggml_tensor *x, const s2_codec_tf_inputs *in)
{
    struct ggml_tensor *qkv = s2_build_linear(b, layer->wqkv, NULL,
            s2_nn_rms_norm(b->g, x, layer->attention_norm, tf->shape.rms_eps));
    struct ggml_tensor *a = b->is_fused ? s2_kernel_attention(b, &tf->attention, qkv, layer->k,
                                                  layer->v, in->where, tf->rope)
                                        : build_standard_attention(b, tf, layer, qkv, in);
    a = s2_build_linear(b, layer->wo, NULL, a);
    x = ggml_add(b->ctx, x, ggml_mul(b->ctx, a, s2_nn_f32(b->g, layer->attention_scale)));
    struct ggml_tensor *n = s2_nn_rms_norm(b->g, x, layer->ffn_norm, tf->shape.rms_eps);
    struct ggml_tensor *gate = s2_build_linear(b, layer->w1, NULL, n);
    struct ggml_tensor *up = s2_build_linear(b, layer->w3, NULL, n);
    struct ggml_tensor *f =
            s2_build_linear(b, layer->w2, NULL, ggml_swiglu_split(b->ctx, gate, up));
    return ggml_add(b->ctx, x, ggml_mul(b->ctx, f, s2_nn_f32(b->g, layer->ffn_scale)));
}

s2_codec_tf_inputs s2_codec_tf_inputs_add(
        const s2_build *b, const s2_codec_tf *tf, uint32_t n_time, s2_inputs *inputs)
{
    uint32_t n_ring = tf->attention.n_ring;
    if (b->is_fused) {
        return (s2_codec_tf_inputs){
                .n_time = n_time, .where = s2_inputs_add(inputs, GGML_TYPE_I32, 2, 1)};
    }
    return (s2_codec_tf_inputs){.n_time = n_time,
            .index = s2_inputs_add(inputs, GGML_TYPE_I64, n_time, 1),
            .q_pos = s2_inputs_add(inputs, GGML_TYPE_I32, n_time, 1),
            .k_pos = s2_inputs_add(inputs, GGML_TYPE_I32, n_ring, 1),
            .mask = s2_inputs_add(inputs, GGML_TYPE_F32, n_ring, n_time)};
}

struct ggml_tensor *s2_codec_tf_build(const s2_build *b, const s2_codec_tf *tf,
        struct ggml_tensor *x, const s2_codec_tf_inputs *in)
{
    for (uint32_t i = 0; i < tf->shape.n_layer; i++) {
        x = build_layer(b, tf, &tf->layers[i], x, in);
    }
    return s2_nn_rms_norm(b->g, x, tf->norm, tf->shape.rms_eps);
}

/* Which ring slots a query may see, as the standard attention wants to know it. */
static void set_mask(const s2_codec_tf *tf, uint32_t n_time, const int32_t *k_pos, float *mask)
{
    uint32_t n_ring = tf->attention.n_ring;
    for (uint32_t t = 0; t < n_time; t++) {
        int32_t q_pos = (int32_t)(n_ring - n_time + t);
        for (uint32_t i = 0; i < n_ring; i++) {
            int32_t distance = q_pos - k_pos[i];
            bool is_seen = distance >= 0 && distance < (int32_t)tf->shape.window &&
                           distance <= (int32_t)(tf->n_past + t);
            mask[(size_t)t * n_ring + i] = is_seen ? 0.0F : -INFINITY;
        }
    }
}

static void fill_standard(
        const s2_codec_tf *tf, const s2_codec_tf_inputs *in, const s2_inputs *inputs)
{
    uint32_t n_ring = tf->attention.n_ring;
    uint32_t n_time = in->n_time;
    int64_t *index = s2_inputs_host(inputs, in->index);
    int32_t *q_pos = s2_inputs_host(inputs, in->q_pos);
    int32_t *k_pos = s2_inputs_host(inputs, in->k_pos);
    /* Positions count from the oldest slot of the ring, so that they never grow. */
    uint32_t newest = tf->slot + n_time - 1;
    for (uint32_t i = 0; i < n_ring; i++) {
        uint32_t age = (newest + n_ring - i) % n_ring;
        k_pos[i] = (int32_t)(n_ring - 1 - age);
    }
    for (uint32_t t = 0; t < n_time; t++) {
        index[t] = tf->slot + t;
        index[t] -= index[t] < n_ring ? 0 : n_ring;
        q_pos[t] = (int32_t)(n_ring - n_time + t);
    }
    set_mask(tf, n_time, k_pos, s2_inputs_host(inputs, in->mask));
}

void s2_codec_tf_inputs_fill(
        const s2_codec_tf *tf, const s2_codec_tf_inputs *in, const s2_inputs *inputs)
{
    if (!in->where) {
        fill_standard(tf, in, inputs);
        return;
    }
    int32_t *where = s2_inputs_host(inputs, in->where);
    where[0] = (int32_t)tf->slot;
    where[1] = (int32_t)tf->n_past;
}

void s2_codec_tf_advance(s2_codec_tf *tf, uint32_t n_time)
{
    tf->slot = (tf->slot + n_time) % tf->attention.n_ring;
    tf->n_past += n_time;
    if (tf->n_past > tf->shape.window - 1) {
        tf->n_past = tf->shape.window - 1;
    }
}
