/*
 * Fused convolutions. One with many columns a frame runs over time: a pad operation writes snake(x) behind
 * the kept inputs, and register tiles of outputs x time go through the taps. One with few columns gathers
 * each column's inputs and is a linear layer of dot products along them.
 *
 * Every operation splits its outputs, never a sum, between threads. State tensors are read and rewritten by
 * the operation that owns them, each channel by one thread.
 */
#include <string.h>

#include "engine/nn/codec_kernel_parts.h"

/* Below this many columns a frame, time is too short for tiles of S2_TILE_COLS. */
#define MIN_TILED_COLUMNS 12

/* Columns that one work item goes through with each block of widened weights. */
#define CHUNK_COLS (16 * S2_TILE_COLS)

#define CACHE_LINE 64

/* How a padded channel is laid out: `stride` phases of `phase` floats, then room for the history. */
typedef struct wide_layout {
    size_t stride;
    size_t phase;
    size_t history; /* 0 with stride 1: the only phase is the history */
    size_t channel; /* floats of a channel in all */
} wide_layout;

static wide_layout layout_of(const s2_conv *conv, size_t n_time)
{
    wide_layout w = {.stride = conv->shape.stride};
    size_t n_out = s2_round_up(n_time / w.stride, S2_TILE_COLS);
    if (w.stride == 1) {
        w.phase = conv->n_pad + n_out;
    } else {
        w.phase = n_out + (conv->shape.kernel - 1) / w.stride;
        w.history = s2_kernel_history_floats(conv, n_time);
    }
    w.channel = w.stride * w.phase + w.history;
    return w;
}

/* Sources: x, state, alpha. */
static void run_pad(struct ggml_tensor *dst, int ith, int nth, void *user)
{
    const s2_conv *conv = user;
    const struct ggml_tensor *x = dst->src[0];
    wide_layout w = layout_of(conv, (size_t)x->ne[0]);
    size_t n_history = conv->n_pad + (size_t)x->ne[0];
    s2_range channels = s2_share((size_t)x->ne[1], ith, nth);
    for (size_t c = channels.begin; c < channels.end; c++) {
        float *phases = (float *)dst->data + c * w.channel;
        float *row = w.history > 0 ? phases + w.stride * w.phase : phases;
        s2_kernel_fill_history(conv, x, dst->src[1], dst->src[2], c, row);
        if (w.history == 0) {
            continue;
        }
        memset(phases, 0, w.stride * w.phase * sizeof *phases);
        for (size_t i = 0; i < n_history; i++) {
            phases[i % w.stride * w.phase + i / w.stride] = row[i];
        }
    }
}

/* One block of output channels. */
typedef struct wide_job {
    const s2_simd *simd;
    const s2_conv *conv;
    struct ggml_tensor *dst;
    const struct ggml_tensor *padded;
    const struct ggml_tensor *weight;
    const struct ggml_tensor *residual;
    size_t channel;                    /* floats between padded channels */
    size_t offset[S2_CONV_MAX_KERNEL]; /* of each tap within a channel */
    size_t row;                        /* first output channel */
    size_t n_rows;
    float bias[S2_TILE_ROWS];
} wide_job;

/* Weights of inputs i_in to i_in + n_in; those behind them come next and are fetched ahead. */
static void load_wide_weights(const wide_job *job, size_t i_in, size_t n_in, float *left)
{
    size_t n_tap = job->conv->shape.kernel;
    for (size_t r = 0; r < job->n_rows; r++) {
        size_t first = ((job->row + r) * job->conv->shape.n_in + i_in) * n_tap;
        const char *src =
                (const char *)job->weight->data + first * ggml_type_size(job->weight->type);
        size_t n_bytes = n_in * n_tap * ggml_type_size(job->weight->type);
        for (size_t i = 0; i < n_bytes && i_in + n_in < job->conv->shape.n_in; i += CACHE_LINE) {
            __builtin_prefetch(src + n_bytes + i);
        }
        s2_kernel_widen(job->simd, job->weight, first, n_in * n_tap, left + r * S2_TILE_TERMS);
    }
}

/* The bias, and what is added to the convolution. */
static void start_sums(const wide_job *job, size_t t_begin, size_t t_end)
{
    size_t n_time = (size_t)job->dst->ne[0];
    for (size_t r = 0; r < job->n_rows; r++) {
        float *sums = (float *)job->dst->data + (job->row + r) * n_time;
        float bias = job->bias[r];
        const float *add = NULL;
        if (job->residual) {
            add = (const float *)job->residual->data + (job->row + r) * n_time;
        }
        for (size_t t = t_begin; t < t_end; t++) {
            sums[t] = add ? bias + add[t] : bias;
        }
    }
}

static void run_wide_chunk(const wide_job *job, size_t t_begin, size_t t_end)
{
    float left[S2_TILE_ROWS * S2_TILE_TERMS];
    size_t n_time = (size_t)job->dst->ne[0];
    size_t n_in = job->conv->shape.n_in;
    size_t block = S2_TILE_TERMS / job->conv->shape.kernel;
    s2_tile tile = {.sums_stride = n_time,
            .n_rows = job->n_rows,
            .left = left,
            .right_stride = job->channel,
            .offset = job->offset,
            .n_tap = job->conv->shape.kernel};
    memset(left, 0, sizeof left);
    start_sums(job, t_begin, t_end);
    for (size_t i = 0; i < n_in; i += block) {
        tile.n_in = s2_min(block, n_in - i);
        load_wide_weights(job, i, tile.n_in, left);
        for (size_t t = t_begin; t < t_end; t += S2_TILE_COLS) {
            tile.n_cols = s2_min(S2_TILE_COLS, t_end - t);
            tile.sums = (float *)job->dst->data + job->row * n_time + t;
            tile.right = (const float *)job->padded->data + i * job->channel + t;
            s2_kernel_tile(job->simd, &tile);
        }
    }
}

/* Sources: padded input, weight, bias, residual. */
static void run_wide(struct ggml_tensor *dst, int ith, int nth, void *user)
{
    const s2_conv *conv = user;
    size_t n_time = (size_t)dst->ne[0];
    size_t n_out = (size_t)dst->ne[1];
    wide_layout w = layout_of(conv, n_time * conv->shape.stride);
    wide_job job = {.simd = s2_simd_best(),
            .conv = conv,
            .dst = dst,
            .padded = dst->src[0],
            .weight = dst->src[1],
            .residual = dst->src[3],
            .channel = w.channel};
    for (size_t j = 0; j < conv->shape.kernel; j++) {
        job.offset[j] =
                w.stride == 1 ? j * conv->shape.dilation : j % w.stride * w.phase + j / w.stride;
    }
    size_t n_chunks = (n_time + CHUNK_COLS - 1) / CHUNK_COLS;
    size_t n_blocks = (n_out + S2_TILE_ROWS - 1) / S2_TILE_ROWS;
    s2_range items = s2_share(n_chunks * n_blocks, ith, nth);
    for (size_t i = items.begin; i < items.end; i++) {
        job.row = i / n_chunks * S2_TILE_ROWS;
        job.n_rows = s2_min(S2_TILE_ROWS, n_out - job.row);
        s2_kernel_widen(job.simd, dst->src[2], job.row, job.n_rows, job.bias);
        size_t t = i % n_chunks * CHUNK_COLS;
        run_wide_chunk(&job, t, s2_min(n_time, t + CHUNK_COLS));
    }
}

static struct ggml_tensor *build_wide(const s2_build *b, const s2_conv *conv, struct ggml_tensor *x,
        struct ggml_tensor *alpha, struct ggml_tensor *residual)
{
    wide_layout w = layout_of(conv, (size_t)x->ne[0]);
    struct ggml_tensor *pad_args[] = {x, conv->state, alpha};
    struct ggml_tensor *padded =
            s2_kernel_custom(b, (int64_t)w.channel, x->ne[1], pad_args, 3, run_pad, conv);
    residual = residual ? s2_build_contiguous(b, residual) : NULL;
    struct ggml_tensor *args[] = {padded, conv->weight, conv->bias, residual};
    return s2_kernel_custom(
            b, x->ne[0] / conv->shape.stride, conv->shape.n_out, args, 4, run_wide, conv);
}

/* Gathers one channel's taps for all columns. */
static void gather_taps(
        const s2_conv *conv, const float *row, size_t n_cols, size_t n_terms, float *taps)
{
    for (size_t t = 0; t < n_cols; t++) {
        for (size_t j = 0; j < conv->shape.kernel; j++) {
            taps[t * n_terms + j] = row[t * conv->shape.stride + j * conv->shape.dilation];
        }
    }
}

/* Sources: x, state, alpha. */
static void run_columns(struct ggml_tensor *dst, int ith, int nth, void *user)
{
    const s2_conv *conv = user;
    const struct ggml_tensor *x = dst->src[0];
    size_t n_tap = conv->shape.kernel;
    size_t n_terms = (size_t)x->ne[1] * n_tap;
    size_t n_cols = (size_t)x->ne[0] / conv->shape.stride;
    size_t n_scratch = s2_kernel_history_floats(conv, (size_t)x->ne[0]);
    float *row = s2_kernel_scratch(dst, n_scratch, ith, nth);
    s2_range channels = s2_share((size_t)x->ne[1], ith, nth);
    for (size_t c = channels.begin; c < channels.end; c++) {
        s2_kernel_fill_history(conv, x, dst->src[1], dst->src[2], c, row);
        gather_taps(conv, row, n_cols, n_terms, (float *)dst->data + c * n_tap);
    }
}

struct ggml_tensor *s2_kernel_columns(
        const s2_build *b, const s2_conv *conv, struct ggml_tensor *x, struct ggml_tensor *alpha)
{
    size_t n_scratch = s2_kernel_history_floats(conv, (size_t)x->ne[0]);
    struct ggml_tensor *args[] = {x, conv->state, alpha};
    return s2_kernel_custom_scratch(b, x->ne[1] * conv->shape.kernel, x->ne[0] / conv->shape.stride,
            n_scratch, args, 3, run_columns, conv);
}

struct ggml_tensor *s2_kernel_conv(const s2_build *b, const s2_conv *conv, struct ggml_tensor *x,
        struct ggml_tensor *alpha, struct ggml_tensor *residual)
{
    if (conv->shape.frame_columns >= MIN_TILED_COLUMNS) {
        return build_wide(b, conv, x, alpha, residual);
    }
    struct ggml_tensor *columns = s2_kernel_columns(b, conv, x, alpha);
    struct ggml_tensor *y =
            ggml_transpose(b->ctx, s2_kernel_linear(b, conv->weight, conv->bias, columns));
    return residual ? ggml_add(b->ctx, s2_build_contiguous(b, y), residual) : y;
}

/* Sources: x, state, weight, bias. */
static void run_depthwise(struct ggml_tensor *dst, int ith, int nth, void *user)
{
    const s2_conv *conv = user;
    const struct ggml_tensor *x = dst->src[0];
    size_t n_time = (size_t)x->ne[0];
    size_t n_channels = (size_t)x->ne[1];
    size_t n_tap = conv->shape.kernel;
    float taps[S2_CONV_MAX_KERNEL];
    float *rows = dst->data;
    float *row = s2_kernel_scratch(dst, s2_kernel_history_floats(conv, n_time), ith, nth);
    s2_range channels = s2_share(n_channels, ith, nth);
    for (size_t c = channels.begin; c < channels.end; c++) {
        s2_kernel_fill_history(conv, x, dst->src[1], NULL, c, row);
        s2_kernel_widen(s2_simd_best(), dst->src[2], c * n_tap, n_tap, taps);
        float bias = s2_kernel_element(dst->src[3], c);
        for (size_t t = 0; t < n_time; t++) {
            float sum = bias;
            for (size_t j = 0; j < n_tap; j++) {
                sum += taps[j] * row[t + j];
            }
            rows[t * n_channels + c] = sum;
        }
    }
}

struct ggml_tensor *s2_kernel_conv_depthwise(
        const s2_build *b, const s2_conv *conv, struct ggml_tensor *x)
{
    size_t n_scratch = s2_kernel_history_floats(conv, (size_t)x->ne[0]);
    struct ggml_tensor *args[] = {x, conv->state, conv->weight, conv->bias};
    return ggml_transpose(b->ctx, s2_kernel_custom_scratch(b, x->ne[1], x->ne[0], n_scratch, args,
                                          4, run_depthwise, conv));
}
