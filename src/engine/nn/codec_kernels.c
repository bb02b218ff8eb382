/*
 * A convolution with many columns a frame runs over time: a pad operation writes snake(x) behind the kept
 * inputs, and register tiles of outputs x time go through the taps. One with few columns gathers each
 * column's inputs and is a linear layer of dot products along them. A transposed one is a product to
 * kernel * n_out rows for each input and an overlap-add.
 *
 * Every operation splits its outputs, never a sum, between threads. State tensors are read and rewritten by
 * the operation that owns them, each channel by one thread.
 */
#include "engine/nn/codec_kernels.h"

#include <math.h>
#include <string.h>

#include "engine/nn/codec_simd.h"

#define SNAKE_EPS 1e-9F

/* Below this many columns a frame, time is too short for tiles of S2_TILE_COLS. */
#define MIN_TILED_COLUMNS 12

/* Columns that one work item goes through with each block of widened weights. */
#define CHUNK_COLS (8 * S2_TILE_COLS)
#define CHUNK_ROWS (8 * S2_TILE_ROWS)

/* Inputs in one block of a transposed convolution. */
#define UP_TERMS 64

typedef struct range {
    size_t begin;
    size_t end;
} range;

/* The share of thread `ith` in n items. */
static range share(size_t n, int ith, int nth)
{
    return (range){n * (size_t)ith / (size_t)nth, n * ((size_t)ith + 1) / (size_t)nth};
}

static size_t min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

static size_t round_up(size_t n, size_t multiple)
{
    return (n + multiple - 1) / multiple * multiple;
}

/* n elements of a weight from `first` on (a multiple of the type's block), as F32. */
static void widen(const struct ggml_tensor *t, size_t first, size_t n, float *dst)
{
    const char *src = (const char *)t->data + ggml_row_size(t->type, (int64_t)first);
    if (t->type == GGML_TYPE_F16) {
        s2_simd_best()->widen((const uint16_t *)(const void *)src, dst, n);
    } else if (t->type == GGML_TYPE_F32) {
        memcpy(dst, src, n * sizeof *dst);
    } else {
        ggml_get_type_traits(t->type)->to_float(src, dst, (int64_t)n);
    }
}

static float element(const struct ggml_tensor *t, size_t i)
{
    float v;
    widen(t, i, 1, &v);
    return v;
}

/* Address of channel c of a signal at time 0; nb[0] is the step of time. */
static const char *signal_channel(const struct ggml_tensor *x, size_t c)
{
    return (const char *)x->data + c * x->nb[1];
}

static void copy_channel(const struct ggml_tensor *x, size_t c, float *dst)
{
    const char *src = signal_channel(x, c);
    size_t n = (size_t)x->ne[0];
    if (x->nb[0] == sizeof(float)) {
        memcpy(dst, src, n * sizeof *dst);
        return;
    }
    for (size_t t = 0; t < n; t++) {
        memcpy(dst + t, src + t * x->nb[0], sizeof *dst);
    }
}

static struct ggml_tensor *custom(const s2_build *b, int64_t ne0, int64_t ne1,
        struct ggml_tensor **args, int n_args, ggml_custom_op_t run, const void *user)
{
    return ggml_custom_4d(b->ctx, GGML_TYPE_F32, ne0, ne1, 1, 1, args, n_args, run,
            GGML_N_TASKS_MAX, (void *)(uintptr_t)user);
}

/* --- history --- */

/*
 * Channel c of a convolution's input: the kept inputs, then snake(x), then zeros up to a multiple of
 * S2_TILE_COLS of new ones. The last n_pad inputs are kept for the next time.
 */
static void fill_history(const struct ggml_tensor *x, struct ggml_tensor *state,
        const struct ggml_tensor *alpha, size_t n_pad, size_t c, float *row)
{
    size_t n = (size_t)x->ne[0];
    size_t n_round = round_up(n, S2_TILE_COLS);
    float *kept = n_pad > 0 ? (float *)state->data + c * n_pad : NULL;
    if (kept) {
        memcpy(row, kept, n_pad * sizeof *row);
    }
    copy_channel(x, c, row + n_pad);
    memset(row + n_pad + n, 0, (n_round - n) * sizeof *row);
    if (alpha) {
        float a = element(alpha, c);
        s2_simd_best()->snake(row + n_pad, n_round, a, 1.0F / (a + SNAKE_EPS));
    }
    if (kept) {
        memcpy(kept, row + n, n_pad * sizeof *row);
    }
}

/* --- wide convolutions --- */

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
    size_t n_out = round_up(n_time / w.stride, S2_TILE_COLS);
    if (w.stride == 1) {
        w.phase = conv->n_pad + n_out;
    } else {
        w.phase = n_out + (conv->shape.kernel - 1) / w.stride;
        w.history = conv->n_pad + round_up(n_time, S2_TILE_COLS);
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
    range channels = share((size_t)x->ne[1], ith, nth);
    for (size_t c = channels.begin; c < channels.end; c++) {
        float *phases = (float *)dst->data + c * w.channel;
        float *row = w.history > 0 ? phases + w.stride * w.phase : phases;
        fill_history(x, dst->src[1], dst->src[2], conv->n_pad, c, row);
        if (w.history == 0) {
            continue;
        }
        memset(phases, 0, w.stride * w.phase * sizeof *phases);
        for (size_t i = 0; i < n_history; i++) {
            phases[i % w.stride * w.phase + i / w.stride] = row[i];
        }
    }
}

/* Rows of the result that one tile covers, and where. */
typedef struct wide_job {
    const s2_conv *conv;
    struct ggml_tensor *dst;
    const struct ggml_tensor *padded;
    const struct ggml_tensor *weight;
    const struct ggml_tensor *bias;
    const struct ggml_tensor *residual;
    size_t channel;                    /* floats between padded channels */
    size_t offset[S2_CONV_MAX_KERNEL]; /* of each tap within a channel */
    size_t row;                        /* first output channel */
    size_t n_rows;
} wide_job;

static void load_wide_weights(const wide_job *job, size_t i_in, size_t n_in, float *left)
{
    size_t n_tap = job->conv->shape.kernel;
    for (size_t r = 0; r < S2_TILE_ROWS; r++) {
        if (r < job->n_rows) {
            size_t first = ((job->row + r) * job->conv->shape.n_in + i_in) * n_tap;
            widen(job->weight, first, n_in * n_tap, left + r * S2_TILE_TERMS);
        } else {
            memset(left + r * S2_TILE_TERMS, 0, S2_TILE_TERMS * sizeof *left);
        }
    }
}

/* Loads the sums so far (at first the bias) of columns from t on into acc. */
static void load_sums(const wide_job *job, size_t t, size_t n_cols, bool is_first, float *acc)
{
    size_t n_time = (size_t)job->dst->ne[0];
    for (size_t r = 0; r < job->n_rows; r++) {
        float *sums = acc + r * S2_TILE_COLS;
        const float *row = (const float *)job->dst->data + (job->row + r) * n_time + t;
        float bias = is_first ? element(job->bias, job->row + r) : 0.0F;
        for (size_t c = 0; c < S2_TILE_COLS; c++) {
            sums[c] = is_first || c >= n_cols ? bias : row[c];
        }
    }
}

static void store_sums(const wide_job *job, size_t t, size_t n_cols, bool is_last, const float *acc)
{
    size_t n_time = (size_t)job->dst->ne[0];
    for (size_t r = 0; r < job->n_rows; r++) {
        const float *sums = acc + r * S2_TILE_COLS;
        float *row = (float *)job->dst->data + (job->row + r) * n_time + t;
        memcpy(row, sums, n_cols * sizeof *row);
        if (!is_last || !job->residual) {
            continue;
        }
        const char *add = signal_channel(job->residual, job->row + r);
        for (size_t c = 0; c < n_cols; c++) {
            float v;
            memcpy(&v, add + (t + c) * job->residual->nb[0], sizeof v);
            row[c] += v;
        }
    }
}

static void run_wide_chunk(const wide_job *job, size_t t_begin, size_t t_end)
{
    float left[S2_TILE_ROWS * S2_TILE_TERMS];
    float acc[S2_TILE_ROWS * S2_TILE_COLS];
    const s2_simd *simd = s2_simd_best();
    size_t n_tap = job->conv->shape.kernel;
    size_t n_in = job->conv->shape.n_in;
    size_t block = S2_TILE_TERMS / n_tap;
    memset(acc, 0, sizeof acc);
    for (size_t i = 0; i < n_in; i += block) {
        size_t n = min_size(block, n_in - i);
        load_wide_weights(job, i, n, left);
        for (size_t t = t_begin; t < t_end; t += S2_TILE_COLS) {
            size_t n_cols = min_size(S2_TILE_COLS, t_end - t);
            const float *right = (const float *)job->padded->data + i * job->channel + t;
            load_sums(job, t, n_cols, i == 0, acc);
            simd->tile(acc, left, right, job->channel, job->offset, n, n_tap, job->n_rows);
            store_sums(job, t, n_cols, i + n == n_in, acc);
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
    wide_job job = {.conv = conv,
            .dst = dst,
            .padded = dst->src[0],
            .weight = dst->src[1],
            .bias = dst->src[2],
            .residual = dst->src[3],
            .channel = w.channel};
    for (size_t j = 0; j < conv->shape.kernel; j++) {
        job.offset[j] =
                w.stride == 1 ? j * conv->shape.dilation : j % w.stride * w.phase + j / w.stride;
    }
    size_t n_chunks = (n_time + CHUNK_COLS - 1) / CHUNK_COLS;
    size_t n_blocks = (n_out + S2_TILE_ROWS - 1) / S2_TILE_ROWS;
    range items = share(n_chunks * n_blocks, ith, nth);
    for (size_t i = items.begin; i < items.end; i++) {
        job.row = i / n_chunks * S2_TILE_ROWS;
        job.n_rows = min_size(S2_TILE_ROWS, n_out - job.row);
        size_t t = i % n_chunks * CHUNK_COLS;
        run_wide_chunk(&job, t, min_size(n_time, t + CHUNK_COLS));
    }
}

static struct ggml_tensor *build_wide(const s2_build *b, const s2_conv *conv, struct ggml_tensor *x,
        struct ggml_tensor *alpha, struct ggml_tensor *residual)
{
    wide_layout w = layout_of(conv, (size_t)x->ne[0]);
    struct ggml_tensor *pad_args[] = {x, conv->state, alpha};
    struct ggml_tensor *padded =
            custom(b, (int64_t)w.channel, x->ne[1], pad_args, 3, run_pad, conv);
    struct ggml_tensor *args[] = {padded, conv->weight, conv->bias, residual};
    return custom(b, x->ne[0] / conv->shape.stride, conv->shape.n_out, args, 4, run_wide, conv);
}

/* --- narrow convolutions and linear layers --- */

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

static size_t history_floats(const s2_conv *conv, const struct ggml_tensor *x)
{
    return conv->n_pad + round_up((size_t)x->ne[0], S2_TILE_COLS);
}

/* Sources: x, state, alpha. Behind the columns the result has room for one history for each thread. */
static void run_columns(struct ggml_tensor *dst, int ith, int nth, void *user)
{
    const s2_conv *conv = user;
    const struct ggml_tensor *x = dst->src[0];
    size_t n_tap = conv->shape.kernel;
    size_t n_terms = (size_t)x->ne[1] * n_tap;
    size_t n_cols = (size_t)x->ne[0] / conv->shape.stride;
    float *columns = dst->data;
    float *row = columns + n_terms * n_cols + (size_t)ith * history_floats(conv, x);
    range channels = share((size_t)x->ne[1], ith, nth);
    for (size_t c = channels.begin; c < channels.end; c++) {
        fill_history(x, dst->src[1], dst->src[2], conv->n_pad, c, row);
        gather_taps(conv, row, n_cols, n_terms, columns + c * n_tap);
    }
}

/* Rows [kernel * n_in, time / stride] of snake(x) behind the kept inputs. */
static struct ggml_tensor *build_columns(
        const s2_build *b, const s2_conv *conv, struct ggml_tensor *x, struct ggml_tensor *alpha)
{
    int64_t n_terms = x->ne[1] * conv->shape.kernel;
    int64_t n_cols = x->ne[0] / conv->shape.stride;
    int64_t n_scratch = (int64_t)history_floats(conv, x) * b->g->compute->n_threads;
    struct ggml_tensor *args[] = {x, conv->state, alpha};
    struct ggml_tensor *all =
            custom(b, n_terms * n_cols + n_scratch, 1, args, 3, run_columns, conv);
    return ggml_view_2d(b->ctx, all, n_terms, n_cols, (size_t)n_terms * sizeof(float), 0);
}

/* Dot products of S2_DOT_ROWS rows from `row` on with n_cols columns of x from t on. */
static void run_dots(struct ggml_tensor *dst, size_t row, size_t n_rows, size_t t, size_t n_cols)
{
    float left[S2_DOT_ROWS * S2_DOT_TERMS];
    float acc[S2_DOT_ROWS * S2_DOT_COLS * S2_MAX_LANES];
    float sums[S2_DOT_ROWS * S2_DOT_COLS];
    const s2_simd *simd = s2_simd_best();
    const struct ggml_tensor *x = dst->src[0];
    const struct ggml_tensor *weight = dst->src[1];
    size_t n_terms = (size_t)x->ne[0];
    size_t n_out = (size_t)dst->ne[0];
    memset(acc, 0, sizeof acc);
    memset(left, 0, sizeof left);
    for (size_t i = 0; i < n_terms; i += S2_DOT_TERMS) {
        size_t n = min_size(S2_DOT_TERMS, n_terms - i);
        for (size_t r = 0; r < n_rows; r++) {
            float *terms = left + r * S2_DOT_TERMS;
            widen(weight, (row + r) * n_terms + i, n, terms);
            memset(terms + n, 0, (S2_DOT_TERMS - n) * sizeof *terms);
        }
        const float *right = (const float *)x->data + t * n_terms + i;
        simd->dots_add(acc, left, right, n_terms, n, n_cols);
    }
    simd->dots_sum(acc, n_cols, sums);
    for (size_t r = 0; r < n_rows; r++) {
        float bias = dst->src[2] ? element(dst->src[2], row + r) : 0.0F;
        for (size_t c = 0; c < n_cols; c++) {
            ((float *)dst->data)[(t + c) * n_out + row + r] = sums[r * S2_DOT_COLS + c] + bias;
        }
    }
}

/* Sources: x, weight, bias. */
static void run_linear(struct ggml_tensor *dst, int ith, int nth, void *user)
{
    (void)user;
    size_t n_out = (size_t)dst->ne[0];
    size_t n_time = (size_t)dst->ne[1];
    range groups = share((n_out + S2_DOT_ROWS - 1) / S2_DOT_ROWS, ith, nth);
    for (size_t i = groups.begin; i < groups.end; i++) {
        size_t n_rows = min_size(S2_DOT_ROWS, n_out - i * S2_DOT_ROWS);
        for (size_t t = 0; t < n_time; t += S2_DOT_COLS) {
            run_dots(dst, i * S2_DOT_ROWS, n_rows, t, min_size(S2_DOT_COLS, n_time - t));
        }
    }
}

struct ggml_tensor *s2_kernel_linear(const s2_build *b, struct ggml_tensor *weight,
        struct ggml_tensor *bias, struct ggml_tensor *x)
{
    struct ggml_tensor *args[] = {x, weight, bias};
    int64_t n_out = ggml_nelements(weight) / x->ne[0];
    return custom(b, n_out, x->ne[1], args, 3, run_linear, NULL);
}

struct ggml_tensor *s2_kernel_conv(const s2_build *b, const s2_conv *conv, struct ggml_tensor *x,
        struct ggml_tensor *alpha, struct ggml_tensor *residual)
{
    if (conv->shape.frame_columns >= MIN_TILED_COLUMNS) {
        return build_wide(b, conv, x, alpha, residual);
    }
    struct ggml_tensor *columns = build_columns(b, conv, x, alpha);
    struct ggml_tensor *y =
            ggml_transpose(b->ctx, s2_kernel_linear(b, conv->weight, conv->bias, columns));
    return residual ? ggml_add(b->ctx, s2_build_contiguous(b, y), residual) : y;
}

/* Sources: x, state, weight, bias, as in s2_conv. Behind the result: one history for each thread. */
static void run_depthwise(struct ggml_tensor *dst, int ith, int nth, void *user)
{
    const s2_conv *conv = user;
    const struct ggml_tensor *x = dst->src[0];
    size_t n_time = (size_t)x->ne[0];
    size_t n_channels = (size_t)x->ne[1];
    size_t n_tap = conv->shape.kernel;
    float taps[S2_CONV_MAX_KERNEL];
    float *rows = dst->data;
    float *row = rows + n_time * n_channels + (size_t)ith * history_floats(conv, x);
    range channels = share(n_channels, ith, nth);
    for (size_t c = channels.begin; c < channels.end; c++) {
        fill_history(x, dst->src[1], NULL, conv->n_pad, c, row);
        widen(dst->src[2], c * n_tap, n_tap, taps);
        float bias = element(dst->src[3], c);
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
    int64_t n = x->ne[0] * x->ne[1];
    int64_t n_scratch = (int64_t)history_floats(conv, x) * b->g->compute->n_threads;
    struct ggml_tensor *args[] = {x, conv->state, conv->weight, conv->bias};
    struct ggml_tensor *all = custom(b, n + n_scratch, 1, args, 4, run_depthwise, conv);
    size_t row_bytes = (size_t)x->ne[1] * sizeof(float);
    return ggml_transpose(b->ctx, ggml_view_2d(b->ctx, all, x->ne[1], x->ne[0], row_bytes, 0));
}

/* --- transposed convolutions --- */

/* Rows t to t + n_rows of the product, columns from `column` on. */
static void run_product_tile(struct ggml_tensor *dst, const float *right, size_t i_in, size_t n_in,
        size_t column, size_t t, size_t n_rows)
{
    static const size_t no_offset[1] = {0};
    float left[S2_TILE_ROWS * S2_TILE_TERMS];
    float acc[S2_TILE_ROWS * S2_TILE_COLS];
    const struct ggml_tensor *x = dst->src[0];
    size_t n_all = (size_t)dst->ne[0];
    size_t n_cols = min_size(S2_TILE_COLS, n_all - column);
    memset(left, 0, sizeof left);
    memset(acc, 0, sizeof acc);
    for (size_t r = 0; r < n_rows; r++) {
        const float *row = (const float *)x->data + (t + r) * (size_t)x->ne[0] + i_in;
        memcpy(left + r * S2_TILE_TERMS, row, n_in * sizeof *left);
        if (i_in > 0) {
            memcpy(acc + r * S2_TILE_COLS, (float *)dst->data + (t + r) * n_all + column,
                    n_cols * sizeof *acc);
        }
    }
    s2_simd_best()->tile(acc, left, right, S2_TILE_COLS, no_offset, n_in, 1, n_rows);
    for (size_t r = 0; r < n_rows; r++) {
        memcpy((float *)dst->data + (t + r) * n_all + column, acc + r * S2_TILE_COLS,
                n_cols * sizeof *acc);
    }
}

static void run_product_chunk(struct ggml_tensor *dst, size_t column, size_t t_begin, size_t t_end)
{
    float right[UP_TERMS * S2_TILE_COLS];
    const struct ggml_tensor *weight = dst->src[1];
    size_t n_in = (size_t)dst->src[0]->ne[0];
    size_t n_all = (size_t)dst->ne[0];
    size_t n_cols = min_size(S2_TILE_COLS, n_all - column);
    memset(right, 0, sizeof right);
    for (size_t i = 0; i < n_in; i += UP_TERMS) {
        size_t n = min_size(UP_TERMS, n_in - i);
        for (size_t k = 0; k < n; k++) {
            widen(weight, (i + k) * n_all + column, n_cols, right + k * S2_TILE_COLS);
        }
        for (size_t t = t_begin; t < t_end; t += S2_TILE_ROWS) {
            run_product_tile(dst, right, i, n, column, t, min_size(S2_TILE_ROWS, t_end - t));
        }
    }
}

/* Sources: rows x, weight [kernel, n_out, n_in]. Gives rows [kernel * n_out, time]. */
static void run_product(struct ggml_tensor *dst, int ith, int nth, void *user)
{
    (void)user;
    size_t n_all = (size_t)dst->ne[0];
    size_t n_time = (size_t)dst->ne[1];
    size_t n_chunks = (n_time + CHUNK_ROWS - 1) / CHUNK_ROWS;
    size_t n_blocks = (n_all + S2_TILE_COLS - 1) / S2_TILE_COLS;
    range items = share(n_chunks * n_blocks, ith, nth);
    for (size_t i = items.begin; i < items.end; i++) {
        size_t t = i % n_chunks * CHUNK_ROWS;
        run_product_chunk(dst, i / n_chunks * S2_TILE_COLS, t, min_size(n_time, t + CHUNK_ROWS));
    }
}

/* Outputs of channel o for inputs t_begin to t_end; tail: the second half of the input before. */
static void overlap_channel(const s2_conv *conv, struct ggml_tensor *dst, size_t o, size_t t_begin,
        size_t t_end, float *tail)
{
    const struct ggml_tensor *product = dst->src[0];
    size_t stride = conv->shape.stride;
    size_t kernel = conv->shape.kernel;
    float bias = element(dst->src[2], o);
    float *out = (float *)dst->data + o * (size_t)dst->ne[0];
    for (size_t t = t_begin; t < t_end; t++) {
        const float *y = (const float *)product->data + t * (size_t)product->ne[0] + o * kernel;
        for (size_t j = 0; j < stride; j++) {
            out[t * stride + j] = y[j] + bias + (tail ? tail[j] : 0.0F);
        }
        if (tail) {
            memcpy(tail, y + stride, stride * sizeof *tail);
        }
    }
}

/* Sources: product, state, bias. Inputs go in blocks, so that neighbouring channels share cache lines. */
static void run_overlap(struct ggml_tensor *dst, int ith, int nth, void *user)
{
    const s2_conv *conv = user;
    size_t n_time = (size_t)dst->src[0]->ne[1];
    range channels = share((size_t)dst->ne[1], ith, nth);
    for (size_t t = 0; t < n_time; t += S2_TILE_COLS) {
        for (size_t o = channels.begin; o < channels.end; o++) {
            float *tail = conv->state ? (float *)conv->state->data + o * conv->shape.stride : NULL;
            overlap_channel(conv, dst, o, t, min_size(n_time, t + S2_TILE_COLS), tail);
        }
    }
}

struct ggml_tensor *s2_kernel_conv_up(
        const s2_build *b, const s2_conv *conv, struct ggml_tensor *x, struct ggml_tensor *alpha)
{
    static const s2_conv point = {.shape = {.kernel = 1, .stride = 1, .dilation = 1}};
    struct ggml_tensor *rows = alpha ? build_columns(b, &point, x, alpha) : s2_build_rows(b, x);
    struct ggml_tensor *product_args[] = {rows, conv->weight};
    struct ggml_tensor *product = custom(b, (int64_t)conv->shape.kernel * conv->shape.n_out,
            rows->ne[1], product_args, 2, run_product, NULL);
    struct ggml_tensor *args[] = {product, conv->state, conv->bias};
    return custom(
            b, rows->ne[1] * conv->shape.stride, conv->shape.n_out, args, 3, run_overlap, conv);
}

/* --- attention --- */

typedef struct head_job {
    const s2_attention *a;
    const struct ggml_tensor *qkv;
    struct ggml_tensor *k;
    struct ggml_tensor *v;
    const float *rope;
    size_t slot;
    size_t n_past;
    size_t head;
} head_job;

/* dst[0..half) = the even elements of src, dst[half..) = the odd ones. */
static void split_pairs(const float *src, size_t half, float *dst)
{
    for (size_t i = 0; i < half; i++) {
        dst[i] = src[2 * i];
        dst[half + i] = src[2 * i + 1];
    }
}

/* One head's part of row t of the queries (0), keys (1) or values (2). */
static const float *head_row(const head_job *job, size_t which, size_t t)
{
    size_t width = (size_t)job->a->n_head * job->a->head_dim;
    return (const float *)job->qkv->data + (3 * t + which) * width + job->head * job->a->head_dim;
}

static float *ring_row(const head_job *job, struct ggml_tensor *ring, size_t slot)
{
    return (float *)ring->data + slot * (size_t)ring->ne[0] + job->head * job->a->head_dim;
}

static void keep_new_rows(const head_job *job, size_t n_time)
{
    size_t dim = job->a->head_dim;
    for (size_t t = 0; t < n_time; t++) {
        size_t slot = (job->slot + t) % job->a->n_ring;
        split_pairs(head_row(job, 1, t), dim / 2, ring_row(job, job->k, slot));
        memcpy(ring_row(job, job->v, slot), head_row(job, 2, t), dim * sizeof(float));
    }
}

/* Softmax over the window of query t, oldest first, and the weighted sum of the values. */
static void attend(const head_job *job, size_t t, float *scores, float *q, float *out)
{
    const s2_simd *simd = s2_simd_best();
    size_t dim = job->a->head_dim;
    size_t half = dim / 2;
    size_t n_ring = job->a->n_ring;
    size_t n_seen = min_size(job->a->window, job->n_past + t + 1);
    float scale = 1.0F / sqrtf((float)dim);
    float max = -INFINITY;
    float sum = 0.0F;
    split_pairs(head_row(job, 0, t), half, q);
    for (size_t i = 0; i < n_seen; i++) {
        size_t distance = n_seen - 1 - i;
        size_t slot = (job->slot + t + n_ring - distance) % n_ring;
        const float *angles = job->rope + distance * dim;
        scores[i] = scale *
                    simd->rotated_dot(q, ring_row(job, job->k, slot), angles, angles + half, half);
        max = scores[i] > max ? scores[i] : max;
    }
    memset(out, 0, dim * sizeof *out);
    for (size_t i = 0; i < n_seen; i++) {
        size_t slot = (job->slot + t + n_ring - (n_seen - 1 - i)) % n_ring;
        float weight = expf(scores[i] - max);
        sum += weight;
        simd->add_scaled(out, ring_row(job, job->v, slot), weight, dim);
    }
    for (size_t i = 0; i < dim; i++) {
        out[i] /= sum;
    }
}

/* Sources: qkv, k, v, where, rope. */
static void run_attention(struct ggml_tensor *dst, int ith, int nth, void *user)
{
    const s2_attention *a = user;
    const int32_t *where = dst->src[3]->data;
    float scores[S2_ATTENTION_MAX_WINDOW];
    float q[S2_ATTENTION_MAX_HEAD];
    head_job job = {.a = a,
            .qkv = dst->src[0],
            .k = dst->src[1],
            .v = dst->src[2],
            .rope = dst->src[4]->data,
            .slot = (size_t)where[0],
            .n_past = (size_t)where[1]};
    range heads = share(a->n_head, ith, nth);
    for (size_t h = heads.begin; h < heads.end; h++) {
        job.head = h;
        keep_new_rows(&job, (size_t)dst->ne[1]);
        for (size_t t = 0; t < (size_t)dst->ne[1]; t++) {
            float *out = (float *)dst->data + t * (size_t)dst->ne[0] + h * a->head_dim;
            attend(&job, t, scores, q, out);
        }
    }
}

struct ggml_tensor *s2_kernel_attention(const s2_build *b, const s2_attention *attention,
        struct ggml_tensor *qkv, struct ggml_tensor *k, struct ggml_tensor *v,
        struct ggml_tensor *where, struct ggml_tensor *rope)
{
    struct ggml_tensor *args[] = {qkv, k, v, where, rope};
    int64_t width = (int64_t)attention->n_head * attention->head_dim;
    return custom(b, width, qkv->ne[1], args, 5, run_attention, attention);
}
