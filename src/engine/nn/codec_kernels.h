/*
 * Fused CPU forms of the codec's operations, as ggml custom operations.
 *
 * Weights are read in place in their stored layout and widened to F32 in small blocks; everything is summed
 * in F32. Each result is summed in an order that depends on neither the number of threads nor the number of
 * columns: a stream gives the same bits whatever pieces it is pushed in.
 *
 * Called by nn/build.c, nn/conv.c and nn/codec_transformer.c only.
 */
#ifndef S2_NN_CODEC_KERNELS_H
#define S2_NN_CODEC_KERNELS_H

#include "engine/nn/build.h"
#include "engine/nn/conv.h"

/* The contracts of s2_build_linear, s2_conv_build, s2_conv_build_depthwise and s2_conv_build_up. */
struct ggml_tensor *s2_kernel_linear(const s2_build *b, struct ggml_tensor *weight,
        struct ggml_tensor *bias, struct ggml_tensor *x);
struct ggml_tensor *s2_kernel_conv(const s2_build *b, const s2_conv *conv, struct ggml_tensor *x,
        struct ggml_tensor *alpha, struct ggml_tensor *residual);
struct ggml_tensor *s2_kernel_conv_depthwise(
        const s2_build *b, const s2_conv *conv, struct ggml_tensor *x);
struct ggml_tensor *s2_kernel_conv_up(
        const s2_build *b, const s2_conv *conv, struct ggml_tensor *x, struct ggml_tensor *alpha);

/* One attention; its graphs point to it. */
typedef struct s2_attention {
    uint32_t n_head;
    uint32_t head_dim; /* even */
    uint32_t window;   /* a query sees itself and window - 1 earlier positions */
    uint32_t n_ring;   /* slots of K and V: window - 1 and the longest piece */
} s2_attention;

/* Largest sizes of the fused attention. */
#define S2_ATTENTION_MAX_WINDOW 2048
#define S2_ATTENTION_MAX_HEAD   512

/*
 * qkv: rows [3 * n_head * head_dim, time], not rotated; k, v: rings [n_head * head_dim, n_ring] that take
 * the new positions; where: I32 {slot of the first new position, number of earlier positions kept}; rope:
 * [head_dim / 2, 2, window] cosines and sines of the angle for each distance. Gives rows [n_head * head_dim, time].
 */
struct ggml_tensor *s2_kernel_attention(const s2_build *b, const s2_attention *attention,
        struct ggml_tensor *qkv, struct ggml_tensor *k, struct ggml_tensor *v,
        struct ggml_tensor *where, struct ggml_tensor *rope);

#endif
