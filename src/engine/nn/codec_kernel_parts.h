/*
 * What the fused kernels have in common: shares of threads, widened weights, the history of a channel.
 * Included by the codec_kernel_*.c files only.
 */
#ifndef S2_NN_CODEC_KERNEL_PARTS_H
#define S2_NN_CODEC_KERNEL_PARTS_H

#include <stddef.h>

#include "engine/nn/codec_kernels.h"
#include "engine/nn/codec_simd.h"

typedef struct s2_range {
    size_t begin;
    size_t end;
} s2_range;

/* The share of thread `ith` of nth in n items. */
static inline s2_range s2_share(size_t n, int ith, int nth)
{
    return (s2_range){n * (size_t)ith / (size_t)nth, n * ((size_t)ith + 1) / (size_t)nth};
}

static inline size_t s2_min(size_t a, size_t b)
{
    return a < b ? a : b;
}

static inline size_t s2_round_up(size_t n, size_t multiple)
{
    return (n + multiple - 1) / multiple * multiple;
}

/* s2_simd.tile that touches nothing but n_rows and n_cols of the sums. */
void s2_kernel_tile(const s2_simd *simd, const s2_tile *tile);

/* A custom operation on all threads with a result of [ne0, ne1]; absent sources are NULL. */
struct ggml_tensor *s2_kernel_custom(const s2_build *b, int64_t ne0, int64_t ne1,
        struct ggml_tensor **args, int n_args, ggml_custom_op_t run, const void *user);

/*
 * The same with n_scratch further floats for each thread behind the result; gives the result alone. In the
 * operation, s2_kernel_scratch finds the floats of a thread.
 */
struct ggml_tensor *s2_kernel_custom_scratch(const s2_build *b, int64_t ne0, int64_t ne1,
        size_t n_scratch, struct ggml_tensor **args, int n_args, ggml_custom_op_t run,
        const void *user);
float *s2_kernel_scratch(const struct ggml_tensor *dst, size_t n_scratch, int ith, int nth);

/* n elements of a weight from `first` on (a multiple of the type's block), as F32. */
void s2_kernel_widen(
        const s2_simd *simd, const struct ggml_tensor *t, size_t first, size_t n, float *dst);

/* Element i of a weight vector. */
float s2_kernel_element(const struct ggml_tensor *t, size_t i);

/* Floats that s2_kernel_fill_history writes. */
size_t s2_kernel_history_floats(const s2_conv *conv, size_t n_time);

/*
 * Channel c of a convolution's input: the kept inputs, then snake(x), then zeros up to a multiple of
 * S2_TILE_COLS of new ones. The last n_pad inputs are kept for the next time. x: signal; state, alpha: may
 * be NULL.
 */
void s2_kernel_fill_history(const s2_conv *conv, const struct ggml_tensor *x,
        struct ggml_tensor *state, const struct ggml_tensor *alpha, size_t c, float *row);

/* Rows [kernel * n_in, time / stride] of snake(x) behind the kept inputs. */
struct ggml_tensor *s2_kernel_columns(
        const s2_build *b, const s2_conv *conv, struct ggml_tensor *x, struct ggml_tensor *alpha);

#endif
