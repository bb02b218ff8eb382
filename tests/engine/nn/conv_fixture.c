#include "conv_fixture.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "test_support.h"

float *made_up(size_t n, uint32_t seed)
{
    float *v = malloc((n + 1) * sizeof *v);
    assert_non_null(v);
    uint32_t x = seed * 2654435761U + 1;
    for (size_t i = 0; i < n; i++) {
        x = x * 1664525 + 1013904223;
        v[i] = (float)(x >> 8) / 8388608.0F - 1.0F;
    }
    return v;
}

/* Fills a tensor with made-up numbers, as its type can hold them. */
static void fill(struct ggml_tensor *t, uint32_t seed)
{
    size_t n = (size_t)ggml_nelements(t);
    float *v = made_up(n, seed);
    if (t->type == GGML_TYPE_F16) {
        ggml_fp32_to_fp16_row(v, t->data, (int64_t)n);
    } else if (t->type == GGML_TYPE_BF16) {
        ggml_fp32_to_bf16_row(v, t->data, (int64_t)n);
    } else {
        memcpy(t->data, v, n * sizeof *v);
    }
    free(v);
}

static double value(const struct ggml_tensor *t, size_t i)
{
    if (t->type == GGML_TYPE_F16) {
        return (double)ggml_fp16_to_fp32(((const ggml_fp16_t *)t->data)[i]);
    }
    if (t->type == GGML_TYPE_BF16) {
        return (double)ggml_bf16_to_fp32(((const ggml_bf16_t *)t->data)[i]);
    }
    return (double)((const float *)t->data)[i];
}

static struct ggml_tensor *new_weight(const conv_fixture *f)
{
    const s2_conv_shape *s = &f->conv.shape;
    int64_t ne1 = s->n_in;
    int64_t ne2 = s->n_out;
    if (f->c.kind == CONV_DEPTHWISE) {
        ne1 = 1;
    } else if (f->c.kind == CONV_UP) {
        ne1 = s->n_out;
        ne2 = s->n_in;
    }
    return ggml_new_tensor_3d(f->tensors.ctx, f->c.type, s->kernel, ne1, ne2);
}

void conv_fixture_open(conv_fixture *f, const conv_case *c, int n_threads)
{
    sl_error err;
    *f = (conv_fixture){.c = *c, .conv.shape = c->shape};
    s2_conv *conv = &f->conv;
    assert_ok(s2_compute_init(&f->compute, n_threads, &err), &err);
    assert_ok(s2_state_init(&f->tensors, 4, &err), &err);
    struct ggml_context *ctx = f->tensors.ctx;
    conv->weight = new_weight(f);
    conv->bias = ggml_new_tensor_1d(ctx, c->type, c->shape.n_out);
    f->alpha = ggml_new_tensor_3d(ctx, c->type, 1, c->shape.n_in, 1);
    uint32_t n_kept = (c->shape.kernel - 1) * c->shape.dilation + 1 - c->shape.stride;
    int64_t n_channels = c->shape.n_in;
    conv->n_pad = n_kept;
    if (c->kind == CONV_UP) {
        n_kept = c->shape.kernel - c->shape.stride;
        n_channels = c->shape.n_out;
        conv->n_pad = 0;
    }
    if (n_kept > 0) {
        conv->state = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, n_kept, n_channels);
    }
    assert_ok(s2_state_alloc(&f->tensors, &f->compute, SL_MEM_COMPUTE, &err), &err);
    fill(conv->weight, 1);
    fill(conv->bias, 2);
    fill(f->alpha, 3);
}

void conv_fixture_close(conv_fixture *f)
{
    s2_state_done(&f->tensors);
    s2_compute_done(&f->compute);
}

size_t conv_fixture_n_out(const conv_fixture *f, size_t n_time)
{
    size_t stride = f->conv.shape.stride;
    return f->c.kind == CONV_UP ? n_time * stride : n_time / stride;
}

static struct ggml_tensor *build(const conv_fixture *f, const s2_build *b, struct ggml_tensor *x,
        struct ggml_tensor *residual)
{
    struct ggml_tensor *alpha = f->c.has_alpha ? f->alpha : NULL;
    if (f->c.kind == CONV_DEPTHWISE) {
        return s2_conv_build_depthwise(b, &f->conv, x);
    }
    if (f->c.kind == CONV_UP) {
        return s2_conv_build_up(b, &f->conv, x, alpha);
    }
    return s2_conv_build(b, &f->conv, x, alpha, residual);
}

/* Copies columns between [channels][n_all] at column `at` and a piece [channels][n]. */
static void copy_piece(
        float *all, size_t n_all, size_t at, float *piece, size_t n, size_t n_channels, bool is_in)
{
    for (size_t c = 0; c < n_channels; c++) {
        float *row = all + c * n_all + at;
        memcpy(is_in ? piece + c * n : row, is_in ? row : piece + c * n, n * sizeof *row);
    }
}

typedef struct piece_data {
    float *x;
    float *residual; /* or NULL */
    float *y;
} piece_data;

static void run_piece(conv_fixture *f, const piece_data *data, size_t n_time, bool is_standard)
{
    sl_error err;
    s2_graph g;
    s2_build_options options = {.is_standard = is_standard};
    struct ggml_tensor *residual = NULL;
    assert_ok(s2_graph_init(&g, &f->compute, 64, &err), &err);
    s2_build b = s2_build_begin(&g, &options);
    struct ggml_tensor *x =
            ggml_new_tensor_2d(b.ctx, GGML_TYPE_F32, (int64_t)n_time, f->conv.shape.n_in);
    ggml_set_input(x);
    if (data->residual) {
        residual = ggml_new_tensor_2d(
                b.ctx, GGML_TYPE_F32, (int64_t)conv_fixture_n_out(f, n_time), f->conv.shape.n_out);
        ggml_set_input(residual);
    }
    struct ggml_tensor *y = ggml_cont(b.ctx, build(f, &b, x, residual));
    ggml_set_output(y);
    ggml_build_forward_expand(g.cgraph, y);
    assert_ok(s2_graph_alloc(&g, &err), &err);
    ggml_backend_tensor_set(x, data->x, 0, ggml_nbytes(x));
    if (residual) {
        ggml_backend_tensor_set(residual, data->residual, 0, ggml_nbytes(residual));
    }
    assert_ok(s2_graph_run(&g, NULL, NULL, 0, &err), &err);
    ggml_backend_tensor_get(y, data->y, 0, ggml_nbytes(y));
    s2_graph_done(&g);
}

float *conv_fixture_run(conv_fixture *f, const float *x, size_t n_time, size_t step,
        const float *residual, bool is_standard)
{
    size_t n_in = f->conv.shape.n_in;
    size_t n_out = f->conv.shape.n_out;
    size_t n_all = conv_fixture_n_out(f, n_time);
    float *all_x = made_up(n_in * n_time, 0);
    float *y = made_up(n_out * n_all, 0);
    float *all_residual = made_up(n_out * n_all, 0);
    piece_data piece = {.x = made_up(n_in * n_time, 0),
            .residual = residual ? made_up(n_out * n_all, 0) : NULL,
            .y = made_up(n_out * n_all, 0)};
    memcpy(all_x, x, n_in * n_time * sizeof *x);
    if (f->conv.state) {
        memset(f->conv.state->data, 0, ggml_nbytes(f->conv.state));
    }
    if (residual) {
        memcpy(all_residual, residual, n_out * n_all * sizeof *residual);
    }
    for (size_t t = 0; t < n_time; t += step) {
        size_t n = n_time - t < step ? n_time - t : step;
        size_t at = conv_fixture_n_out(f, t);
        size_t n_piece = conv_fixture_n_out(f, n);
        copy_piece(all_x, n_time, t, piece.x, n, n_in, true);
        if (residual) {
            copy_piece(all_residual, n_all, at, piece.residual, n_piece, n_out, true);
        }
        run_piece(f, &piece, n, is_standard);
        copy_piece(y, n_all, at, piece.y, n_piece, n_out, false);
    }
    free(all_x);
    free(all_residual);
    free(piece.x);
    free(piece.residual);
    free(piece.y);
    return y;
}

/* Input t of channel c after the snake; zero before the beginning. */
static double input(const conv_fixture *f, const float *x, size_t n_time, size_t c, ptrdiff_t t)
{
    if (t < 0) {
        return 0.0;
    }
    double v = (double)x[c * n_time + (size_t)t];
    if (f->c.has_alpha) {
        double a = value(f->alpha, c);
        double s = sin(a * v);
        v += s * s / (a + 1e-9);
    }
    return v;
}

static double expect_one(const conv_fixture *f, const float *x, size_t n_time, size_t o, size_t t)
{
    const s2_conv_shape *s = &f->conv.shape;
    double sum = value(f->conv.bias, o);
    for (size_t c = 0; c < s->n_in; c++) {
        for (size_t j = 0; j < s->kernel; j++) {
            if (f->c.kind == CONV_UP) {
                if (t >= j && (t - j) % s->stride == 0 && (t - j) / s->stride < n_time) {
                    double w = value(f->conv.weight, (c * s->n_out + o) * s->kernel + j);
                    sum += w * input(f, x, n_time, c, (ptrdiff_t)((t - j) / s->stride));
                }
                continue;
            }
            if (f->c.kind == CONV_DEPTHWISE && c != o) {
                continue;
            }
            size_t at = f->c.kind == CONV_DEPTHWISE ? o : o * s->n_in + c;
            ptrdiff_t from =
                    (ptrdiff_t)(t * s->stride + j * s->dilation) - (ptrdiff_t)f->conv.n_pad;
            sum += value(f->conv.weight, at * s->kernel + j) * input(f, x, n_time, c, from);
        }
    }
    return sum;
}

float *conv_fixture_expect(
        const conv_fixture *f, const float *x, size_t n_time, const float *residual)
{
    size_t n_all = conv_fixture_n_out(f, n_time);
    float *y = made_up(f->conv.shape.n_out * n_all, 0);
    for (size_t o = 0; o < f->conv.shape.n_out; o++) {
        for (size_t t = 0; t < n_all; t++) {
            double add = residual ? (double)residual[o * n_all + t] : 0.0;
            y[o * n_all + t] = (float)(expect_one(f, x, n_time, o, t) + add);
        }
    }
    return y;
}
