/*
 * Small pieces of graphs that every module needs.
 *
 * All functions add nodes to g->ctx and return the result; shapes are ggml's, fastest dimension first.
 */
#ifndef S2_NN_OPS_H
#define S2_NN_OPS_H

#include "engine/nn/graph.h"

/*
 * A weight as F32: itself, or a cast that is computed once. Norm weights are F16 in most files, and element-wise
 * operations want F32.
 */
struct ggml_tensor *s2_nn_f32(s2_graph *g, struct ggml_tensor *t);

/* x * rsqrt(mean(x^2) + eps) * weight over dimension 0. weight: [n], any float type. */
struct ggml_tensor *s2_nn_rms_norm(
        s2_graph *g, struct ggml_tensor *x, struct ggml_tensor *weight, float eps);

/* RoPE over interleaved pairs (2i, 2i+1) of dimension 0: x [head_dim, n_head, n], pos [n] I32. */
struct ggml_tensor *s2_nn_rope(
        s2_graph *g, struct ggml_tensor *x, struct ggml_tensor *pos, float base);

/*
 * W x: W [n_in, n_out], x [n_in, n]. With floats, halves and Q8_0 the activations stay F32 on the CPU, where
 * ggml's product would round them to the type of the weights: near ties are then decided as by the original.
 */
struct ggml_tensor *s2_nn_linear(s2_graph *g, struct ggml_tensor *weight, struct ggml_tensor *x);

/* w2(silu(w1 x) * (w3 x)). x: [n_embd, n]. */
struct ggml_tensor *s2_nn_swiglu_ffn(s2_graph *g, struct ggml_tensor *x, struct ggml_tensor *w1,
        struct ggml_tensor *w3, struct ggml_tensor *w2);

#endif
