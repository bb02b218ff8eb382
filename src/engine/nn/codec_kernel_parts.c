#include "engine/nn/codec_kernel_parts.h"

#include <string.h>

#define SNAKE_EPS 1e-9F

struct ggml_tensor *s2_kernel_custom(const s2_build *b, int64_t ne0, int64_t ne1,
        struct ggml_tensor **args, int n_args, ggml_custom_op_t run, const void *user)
{
    return ggml_custom_4d(b->ctx, GGML_TYPE_F32, ne0, ne1, 1, 1, args, n_args, run,
            GGML_N_TASKS_MAX, (void *)(uintptr_t)user);
}

struct ggml_tensor *s2_kernel_custom_scratch(const s2_build *b, int64_t ne0, int64_t ne1,
        size_t n_scratch, struct ggml_tensor **args, int n_args, ggml_custom_op_t run,
        const void *user)
{
    int64_t n_all = ne0 * ne1 + (int64_t)n_scratch * b->g->compute->n_threads;
    struct ggml_tensor *all = s2_kernel_custom(b, n_all, 1, args, n_args, run, user);
    return ggml_view_2d(b->ctx, all, ne0, ne1, (size_t)ne0 * sizeof(float), 0);
}

float *s2_kernel_scratch(const struct ggml_tensor *dst, size_t n_scratch, int ith, int nth)
{
    return (float *)dst->data + ggml_nelements(dst) - n_scratch * (size_t)(nth - ith);
}

void s2_kernel_tile(const s2_simd *simd, const s2_tile *tile)
{
    float part[S2_TILE_ROWS * S2_TILE_COLS];
    if (tile->n_rows == S2_TILE_ROWS && tile->n_cols == S2_TILE_COLS) {
        simd->tile(tile);
        return;
    }
    s2_tile whole = *tile;
    whole.sums = part;
    whole.sums_stride = S2_TILE_COLS;
    memset(part, 0, sizeof part);
    for (size_t r = 0; r < tile->n_rows; r++) {
        memcpy(part + r * S2_TILE_COLS, tile->sums + r * tile->sums_stride,
                tile->n_cols * sizeof *part);
    }
    simd->tile(&whole);
    for (size_t r = 0; r < tile->n_rows; r++) {
        memcpy(tile->sums + r * tile->sums_stride, part + r * S2_TILE_COLS,
                tile->n_cols * sizeof *part);
    }
}

void s2_kernel_widen(
        const s2_simd *simd, const struct ggml_tensor *t, size_t first, size_t n, float *dst)
{
    const char *src = (const char *)t->data + ggml_row_size(t->type, (int64_t)first);
    if (t->type == GGML_TYPE_F16) {
        simd->widen((const uint16_t *)(const void *)src, dst, n);
    } else if (t->type == GGML_TYPE_F32) {
        memcpy(dst, src, n * sizeof *dst);
    } else {
        ggml_get_type_traits(t->type)->to_float(src, dst, (int64_t)n);
    }
}

float s2_kernel_element(const struct ggml_tensor *t, size_t i)
{
    float v;
    const char *src = (const char *)t->data + i * ggml_type_size(t->type);
    if (t->type == GGML_TYPE_F32) {
        memcpy(&v, src, sizeof v);
    } else {
        ggml_get_type_traits(t->type)->to_float(src, &v, 1);
    }
    return v;
}

static void copy_channel(const struct ggml_tensor *x, size_t c, float *dst)
{
    const char *src = (const char *)x->data + c * x->nb[1];
    size_t n = (size_t)x->ne[0];
    if (x->nb[0] == sizeof(float)) {
        memcpy(dst, src, n * sizeof *dst);
        return;
    }
    for (size_t t = 0; t < n; t++) {
        memcpy(dst + t, src + t * x->nb[0], sizeof *dst);
    }
}

size_t s2_kernel_history_floats(const s2_conv *conv, size_t n_time)
{
    return conv->n_pad + s2_round_up(n_time, S2_TILE_COLS);
}

void s2_kernel_fill_history(const s2_conv *conv, const struct ggml_tensor *x,
        struct ggml_tensor *state, const struct ggml_tensor *alpha, size_t c, float *row)
{
    size_t n_pad = conv->n_pad;
    size_t n = (size_t)x->ne[0];
    size_t n_round = s2_round_up(n, S2_TILE_COLS);
    float *kept = n_pad > 0 ? (float *)state->data + c * n_pad : NULL;
    if (kept) {
        memcpy(row, kept, n_pad * sizeof *row);
    }
    copy_channel(x, c, row + n_pad);
    memset(row + n_pad + n, 0, (n_round - n) * sizeof *row);
    if (alpha) {
        float a = s2_kernel_element(alpha, c);
        s2_simd_best()->snake(row + n_pad, n_round, a, 1.0F / (a + SNAKE_EPS));
    }
    if (kept) {
        memcpy(kept, row + n, n_pad * sizeof *row);
    }
}
