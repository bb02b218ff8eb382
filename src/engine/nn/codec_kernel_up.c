/*
 * Fused transposed convolutions: a product to kernel * n_out sums for each input, along which the weights
 * lie contiguous, and an overlap-add of the sums' two halves.
 */
#include <string.h>

#include "engine/nn/codec_kernel_parts.h"

/* Inputs and sums of one block of widened weights. */
#define BLOCK_TERMS  128
#define BLOCK_COLS   256
#define BLOCK_FLOATS ((size_t)BLOCK_TERMS * BLOCK_COLS)
/* Rows of the weight that are fetched ahead: they lie far apart. */
#define ROWS_AHEAD 4
#define CACHE_LINE 64

/* Inputs (in time) that one work item goes through. */
#define CHUNK_ROWS (8 * S2_TILE_ROWS)

typedef struct product_job {
    const s2_simd *simd;
    struct ggml_tensor *dst;
    const struct ggml_tensor *x;
    const struct ggml_tensor *weight;
    size_t n_in;
    size_t n_all; /* kernel * n_out */
    float *block; /* [BLOCK_TERMS][BLOCK_COLS] widened weights */
} product_job;

static void load_block(
        const product_job *job, size_t i_in, size_t n_in, size_t column, size_t n_cols)
{
    size_t size = ggml_type_size(job->weight->type);
    for (size_t k = 0; k < n_in; k++) {
        size_t first = (i_in + k) * job->n_all + column;
        const char *ahead =
                (const char *)job->weight->data + (first + ROWS_AHEAD * job->n_all) * size;
        for (size_t i = 0; i < n_cols * size && i_in + k + ROWS_AHEAD < job->n_in;
                i += CACHE_LINE) {
            __builtin_prefetch(ahead + i);
        }
        float *row = job->block + k * BLOCK_COLS;
        s2_kernel_widen(job->simd, job->weight, first, n_cols, row);
        memset(row + n_cols, 0, (s2_round_up(n_cols, S2_TILE_COLS) - n_cols) * sizeof *row);
    }
}

/* Terms i_in to i_in + n_in of the sums of inputs t to t + n_rows. */
static void run_product_rows(const product_job *job, size_t i_in, size_t n_in, size_t column,
        size_t n_cols, size_t t, size_t n_rows)
{
    static const size_t no_offset[1] = {0};
    float left[S2_TILE_ROWS * S2_TILE_TERMS];
    const float *x = (const float *)job->x->data + t * job->n_in + i_in;
    s2_tile tile = {.sums_stride = job->n_all,
            .n_rows = n_rows,
            .left = left,
            .right_stride = BLOCK_COLS,
            .offset = no_offset,
            .n_in = n_in,
            .n_tap = 1};
    memset(left, 0, sizeof left);
    for (size_t r = 0; r < n_rows; r++) {
        memcpy(left + r * S2_TILE_TERMS, x + r * job->n_in, n_in * sizeof *left);
    }
    for (size_t c = 0; c < n_cols; c += S2_TILE_COLS) {
        tile.sums = (float *)job->dst->data + t * job->n_all + column + c;
        tile.n_cols = s2_min(S2_TILE_COLS, n_cols - c);
        tile.right = job->block + c;
        s2_kernel_tile(job->simd, &tile);
    }
}

static void run_product_chunk(
        const product_job *job, size_t column, size_t n_cols, size_t t_begin, size_t t_end)
{
    for (size_t t = t_begin; t < t_end; t++) {
        memset((float *)job->dst->data + t * job->n_all + column, 0, n_cols * sizeof(float));
    }
    for (size_t i = 0; i < job->n_in; i += BLOCK_TERMS) {
        size_t n_in = s2_min(BLOCK_TERMS, job->n_in - i);
        load_block(job, i, n_in, column, n_cols);
        for (size_t t = t_begin; t < t_end; t += S2_TILE_ROWS) {
            size_t n_rows = s2_min(S2_TILE_ROWS, t_end - t);
            run_product_rows(job, i, n_in, column, n_cols, t, n_rows);
        }
    }
}

/* Columns of a work item: long runs of weights, but a few items for each thread. */
static size_t columns_of_item(size_t n_all, int nth)
{
    size_t n = s2_round_up(n_all / (4 * (size_t)nth), S2_TILE_COLS);
    return n < S2_TILE_COLS ? S2_TILE_COLS : s2_min(n, BLOCK_COLS);
}

/* Sources: rows x, weight [kernel, n_out, n_in]. Gives rows [kernel * n_out, time]. */
static void run_product(struct ggml_tensor *dst, int ith, int nth, void *user)
{
    (void)user;
    const struct ggml_tensor *x = dst->src[0];
    product_job job = {.simd = s2_simd_best(),
            .dst = dst,
            .x = x,
            .weight = dst->src[1],
            .n_in = (size_t)x->ne[0],
            .n_all = (size_t)(dst->src[1]->ne[0] * dst->src[1]->ne[1]),
            .block = s2_kernel_scratch(dst, BLOCK_FLOATS, ith, nth)};
    size_t n_time = (size_t)x->ne[1];
    size_t n_cols = columns_of_item(job.n_all, nth);
    size_t n_chunks = (n_time + CHUNK_ROWS - 1) / CHUNK_ROWS;
    size_t n_blocks = (job.n_all + n_cols - 1) / n_cols;
    s2_range items = s2_share(n_chunks * n_blocks, ith, nth);
    for (size_t i = items.begin; i < items.end; i++) {
        size_t t = i % n_chunks * CHUNK_ROWS;
        size_t column = i / n_chunks * n_cols;
        run_product_chunk(&job, column, s2_min(n_cols, job.n_all - column), t,
                s2_min(n_time, t + CHUNK_ROWS));
    }
}

/* Outputs of channel o for inputs t_begin to t_end; tail: the second half of the input before. */
static void overlap_channel(const s2_conv *conv, struct ggml_tensor *dst, size_t o, size_t t_begin,
        size_t t_end, float *tail)
{
    const struct ggml_tensor *product = dst->src[0];
    size_t stride = conv->shape.stride;
    size_t kernel = conv->shape.kernel;
    float bias = s2_kernel_element(dst->src[2], o);
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
    s2_range channels = s2_share((size_t)dst->ne[1], ith, nth);
    for (size_t t = 0; t < n_time; t += S2_TILE_COLS) {
        for (size_t o = channels.begin; o < channels.end; o++) {
            float *tail = conv->state ? (float *)conv->state->data + o * conv->shape.stride : NULL;
            overlap_channel(conv, dst, o, t, s2_min(n_time, t + S2_TILE_COLS), tail);
        }
    }
}

struct ggml_tensor *s2_kernel_conv_up(
        const s2_build *b, const s2_conv *conv, struct ggml_tensor *x, struct ggml_tensor *alpha)
{
    static const s2_conv point = {.shape = {.kernel = 1, .stride = 1, .dilation = 1}};
    struct ggml_tensor *rows = alpha ? s2_kernel_columns(b, &point, x, alpha) : s2_build_rows(b, x);
    struct ggml_tensor *product_args[] = {rows, conv->weight};
    int64_t n_all = (int64_t)conv->shape.kernel * conv->shape.n_out;
    struct ggml_tensor *product = s2_kernel_custom_scratch(
            b, n_all, rows->ne[1], BLOCK_FLOATS, product_args, 2, run_product, NULL);
    struct ggml_tensor *args[] = {product, conv->state, conv->bias};
    return s2_kernel_custom(
            b, rows->ne[1] * conv->shape.stride, conv->shape.n_out, args, 3, run_overlap, conv);
}
