/*
 * The standard form of each convolution, in operations that every ggml back end has: the kept inputs are put
 * before the new ones (concat), gathered (im2col) and multiplied (mul_mat); a transposed convolution is one
 * product to kernel * n_out rows for each input and an overlap-add. The fused CPU kernels are chosen here and
 * nowhere else.
 */
#include "engine/nn/conv.h"

#include "engine/nn/codec_kernels.h"
#include "engine/nn/ops.h"

#define SNAKE_EPS 1e-9F

/* Finds weight and bias; weight_ne: shape of the weight behind its first dimension, the kernel. */
static int bind_conv(s2_conv *conv, const s2_weights *weights, const char *prefix,
        int64_t weight_ne1, int64_t weight_ne2, sl_error *reterr)
{
    s2_conv_shape *shape = &conv->shape;
    if (shape->kernel == 0) {
        const struct ggml_tensor *t = s2_weights_find(weights, "%s.weight", prefix);
        shape->kernel = t && t->ne[0] <= S2_CONV_MAX_KERNEL ? (uint32_t)t->ne[0] : 1;
    }
    const int64_t weight_ne[3] = {shape->kernel, weight_ne1, weight_ne2};
    int r = s2_weights_need(
            weights, S2_WEIGHT_VECTOR, weight_ne, &conv->weight, reterr, "%s.weight", prefix);
    if (r < 0) {
        return r;
    }
    if (shape->kernel < shape->stride || shape->kernel > S2_CONV_MAX_KERNEL) {
        return sl__fail(reterr, SL_EFORMAT, "%s: tensor %s.weight has %u taps, need %u to %d",
                s2_weights_path(weights), prefix, shape->kernel, shape->stride, S2_CONV_MAX_KERNEL);
    }
    const int64_t bias_ne[3] = {shape->n_out, 1, 1};
    return s2_weights_need(
            weights, S2_WEIGHT_VECTOR, bias_ne, &conv->bias, reterr, "%s.bias", prefix);
}

static void add_state(s2_conv *conv, s2_state *state, uint32_t n_time, uint32_t n_channels)
{
    conv->state = NULL;
    if (n_time > 0) {
        conv->state = ggml_new_tensor_2d(state->ctx, GGML_TYPE_F32, n_time, n_channels);
    }
}

int s2_conv_init(s2_conv *conv, const s2_weights *weights, s2_state *state, const char *prefix,
        s2_conv_shape shape, sl_error *reterr)
{
    conv->shape = shape;
    int r = bind_conv(conv, weights, prefix, shape.n_in, shape.n_out, reterr);
    if (r < 0) {
        return r;
    }
    conv->n_pad = (conv->shape.kernel - 1) * shape.dilation + 1 - shape.stride;
    add_state(conv, state, conv->n_pad, shape.n_in);
    return SL_OK;
}

int s2_conv_init_depthwise(s2_conv *conv, const s2_weights *weights, s2_state *state,
        const char *prefix, s2_conv_shape shape, sl_error *reterr)
{
    conv->shape = shape;
    int r = bind_conv(conv, weights, prefix, 1, shape.n_out, reterr);
    if (r < 0) {
        return r;
    }
    conv->n_pad = conv->shape.kernel - 1;
    add_state(conv, state, conv->n_pad, shape.n_in);
    return SL_OK;
}

int s2_conv_init_up(s2_conv *conv, const s2_weights *weights, s2_state *state, const char *prefix,
        s2_conv_shape shape, sl_error *reterr)
{
    conv->shape = shape;
    int r = bind_conv(conv, weights, prefix, shape.n_out, shape.n_in, reterr);
    if (r < 0) {
        return r;
    }
    uint32_t kernel = conv->shape.kernel;
    if (kernel != shape.stride && kernel != 2 * shape.stride) {
        return sl__fail(reterr, SL_EFORMAT, "%s: tensor %s.weight has %u taps, need %u or %u",
                s2_weights_path(weights), prefix, kernel, shape.stride, 2 * shape.stride);
    }
    conv->n_pad = 0;
    add_state(conv, state, kernel - shape.stride, shape.n_out);
    return SL_OK;
}

/* x + sin(alpha x)^2 / (alpha + eps) */
static struct ggml_tensor *build_snake(
        const s2_build *b, struct ggml_tensor *x, struct ggml_tensor *alpha)
{
    if (!alpha) {
        return x;
    }
    struct ggml_context *once = b->g->constants.ctx;
    struct ggml_tensor *a = ggml_reshape_2d(once, s2_nn_f32(b->g, alpha), 1, x->ne[1]);
    struct ggml_tensor *ones = ggml_scale_bias(once, a, 0.0F, 1.0F);
    struct ggml_tensor *inverse = s2_graph_constant(
            b->g, ggml_div(once, ones, ggml_scale_bias(once, a, 1.0F, SNAKE_EPS)));
    /* These five in a row are one operation to back ends that know them. */
    struct ggml_tensor *s = ggml_sqr(b->ctx, ggml_sin(b->ctx, ggml_mul(b->ctx, x, a)));
    return ggml_add(b->ctx, x, ggml_mul(b->ctx, s, inverse));
}

static struct ggml_tensor *add_bias(
        const s2_build *b, struct ggml_tensor *y, struct ggml_tensor *bias)
{
    struct ggml_tensor *row = ggml_reshape_2d(b->ctx, s2_nn_f32(b->g, bias), 1, y->ne[1]);
    return ggml_add(b->ctx, y, row);
}

/* The kept inputs and then x; keeps the last ones of the whole. */
static struct ggml_tensor *with_history(
        const s2_build *b, const s2_conv *conv, struct ggml_tensor *x)
{
    if (!conv->state) {
        return x;
    }
    struct ggml_tensor *all = ggml_concat(b->ctx, conv->state, x, 0);
    size_t skipped = (size_t)x->ne[0] * sizeof(float);
    struct ggml_tensor *last =
            ggml_view_2d(b->ctx, all, conv->n_pad, all->ne[1], all->nb[1], skipped);
    ggml_build_forward_expand(b->g->cgraph, ggml_cpy(b->ctx, last, conv->state));
    return all;
}

static struct ggml_tensor *build_standard(const s2_build *b, const s2_conv *conv,
        struct ggml_tensor *x, struct ggml_tensor *alpha, struct ggml_tensor *residual)
{
    const s2_conv_shape *s = &conv->shape;
    struct ggml_tensor *all =
            with_history(b, conv, build_snake(b, s2_build_contiguous(b, x), alpha));
    struct ggml_tensor *w = conv->weight;
    if (w->type != GGML_TYPE_F16) {
        w = s2_nn_f32(b->g, w); /* im2col knows these two types */
    }
    struct ggml_tensor *columns = ggml_im2col(
            b->ctx, w, all, (int)s->stride, 0, 0, 0, (int)s->dilation, 0, false, w->type);
    w = ggml_reshape_2d(b->ctx, w, columns->ne[0], s->n_out);
    struct ggml_tensor *y = ggml_mul_mat(
            b->ctx, ggml_reshape_2d(b->ctx, columns, columns->ne[0], columns->ne[1]), w);
    y = add_bias(b, y, conv->bias);
    return residual ? ggml_add(b->ctx, y, residual) : y;
}

struct ggml_tensor *s2_conv_build(const s2_build *b, const s2_conv *conv, struct ggml_tensor *x,
        struct ggml_tensor *alpha, struct ggml_tensor *residual)
{
    if (b->is_fused) {
        return s2_kernel_conv(b, conv, x, alpha, residual);
    }
    return build_standard(b, conv, x, alpha, residual);
}

struct ggml_tensor *s2_conv_build_depthwise(
        const s2_build *b, const s2_conv *conv, struct ggml_tensor *x)
{
    if (b->is_fused) {
        return s2_kernel_conv_depthwise(b, conv, x);
    }
    /* Channels as a batch of one-channel convolutions. */
    struct ggml_tensor *all = with_history(b, conv, s2_build_contiguous(b, x));
    struct ggml_tensor *w = s2_nn_f32(b->g, conv->weight);
    struct ggml_tensor *batch = ggml_reshape_3d(b->ctx, all, all->ne[0], 1, all->ne[1]);
    struct ggml_tensor *columns =
            ggml_im2col(b->ctx, w, batch, 1, 0, 0, 0, 1, 0, false, GGML_TYPE_F32);
    struct ggml_tensor *y = ggml_mul_mat(b->ctx, columns, w); /* [time, 1, channels] */
    return add_bias(b, ggml_reshape_2d(b->ctx, y, y->ne[0], y->ne[2]), conv->bias);
}

struct ggml_tensor *s2_conv_build_up(
        const s2_build *b, const s2_conv *conv, struct ggml_tensor *x, struct ggml_tensor *alpha)
{
    if (b->is_fused) {
        return s2_kernel_conv_up(b, conv, x, alpha);
    }
    int64_t kernel = conv->shape.kernel;
    int64_t stride = conv->shape.stride;
    int64_t n_out = conv->shape.n_out;
    int64_t n_time = x->ne[0];
    struct ggml_tensor *snaked = alpha ? build_snake(b, s2_build_contiguous(b, x), alpha) : x;
    struct ggml_tensor *w = ggml_reshape_2d(b->ctx, conv->weight, kernel * n_out, x->ne[1]);
    struct ggml_tensor *y = ggml_mul_mat(
            b->ctx, ggml_cont(b->ctx, ggml_transpose(b->ctx, w)), s2_build_rows(b, snaked));
    y = ggml_reshape_3d(b->ctx, y, kernel, n_out, n_time);
    struct ggml_tensor *sum = ggml_view_3d(b->ctx, y, stride, n_out, n_time, y->nb[1], y->nb[2], 0);
    if (conv->state) {
        size_t half = (size_t)stride * sizeof(float);
        struct ggml_tensor *tails =
                ggml_view_3d(b->ctx, y, stride, n_out, n_time, y->nb[1], y->nb[2], half);
        struct ggml_tensor *all = ggml_concat(b->ctx, conv->state, ggml_cont(b->ctx, tails), 2);
        struct ggml_tensor *last =
                ggml_view_2d(b->ctx, all, stride, n_out, all->nb[1], (size_t)n_time * all->nb[2]);
        ggml_build_forward_expand(b->g->cgraph, ggml_cpy(b->ctx, last, conv->state));
        sum = ggml_add(b->ctx, sum,
                ggml_view_3d(b->ctx, all, stride, n_out, n_time, all->nb[1], all->nb[2], 0));
    }
    sum = ggml_cont(b->ctx, ggml_permute(b->ctx, sum, 0, 2, 1, 3)); /* [stride, time, n_out] */
    return add_bias(b, ggml_reshape_2d(b->ctx, sum, stride * n_time, n_out), conv->bias);
}
