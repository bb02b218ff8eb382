/*
 * One layer of the slow or the fast AR: pre-norm, grouped-query attention, SwiGLU.
 *
 *   h = x + wo attn(norm x)      attn: RoPE on interleaved pairs, q and k normalised per head first if the
 *   y = h + ffn(norm h)                model says so; softmax(q k / sqrt(head_dim)) v
 *
 * (Spec of the model, sections 4.2 and 5.)
 */
#ifndef S2_MODEL_AR_LAYER_H
#define S2_MODEL_AR_LAYER_H

#include <stdbool.h>

#include "engine/model/hparams.h"
#include "engine/nn/graph.h"
#include "engine/nn/kv_cache.h"
#include "engine/nn/weights.h"

typedef struct s2_ar_layer {
    struct ggml_tensor *attn_norm; /* [n_embd] */
    struct ggml_tensor *wqkv;      /* [n_embd, (n_head + 2 n_head_kv) * head_dim], rows q, k, v */
    struct ggml_tensor *q_norm;    /* [head_dim], NULL without qk norm */
    struct ggml_tensor *k_norm;
    struct ggml_tensor *wo;       /* [n_head * head_dim, n_embd] */
    struct ggml_tensor *ffn_norm; /* [n_embd] */
    struct ggml_tensor *w1;       /* [n_embd, n_ff] gate */
    struct ggml_tensor *w3;       /* [n_embd, n_ff] up */
    struct ggml_tensor *w2;       /* [n_ff, n_embd] down */
} s2_ar_layer;

/* Where the columns of a graph stand in the sequence; of its inputs. */
typedef struct s2_ar_inputs {
    struct ggml_tensor *pos; /* I32 [n]: positions */
    struct ggml_tensor
            *rows; /* I64 [n]: the same as rows of the KV cache, as back ends want them */
    struct ggml_tensor *mask; /* F16 [n_kv, n_mask]: 0 = visible, -inf = hidden */
    uint32_t n_kv;            /* positions of the cache that are looked at */
    bool is_grouped;          /* one column, laid out as the query heads of a group side by side */
} s2_ar_inputs;

/* Binds the layer `prefix`N ("layers." or "fast_layers."). Errors: SL_EFORMAT naming the tensor. */
int s2_ar_layer_bind(const s2_weights *weights, const s2_ar_hparams *hp, const char *prefix,
        uint32_t i_layer, s2_ar_layer *ret_layer, sl_error *reterr) SL_MUST_CHECK;

/* The tensors of a layer, some of them NULL: S2_AR_LAYER_TENSORS pointers, for s2_weights_arrive. */
#define S2_AR_LAYER_TENSORS (sizeof(s2_ar_layer) / sizeof(struct ggml_tensor *))

/* Adds three tensors to the inputs of graphs over n columns. */
s2_ar_inputs s2_ar_inputs_add(s2_inputs *inputs, const s2_compute *compute, const s2_ar_hparams *hp,
        uint32_t n, uint32_t n_kv);

/* Fills them for columns at n_past, n_past + 1, ...; each sees every earlier position and itself. */
void s2_ar_inputs_fill(const s2_ar_inputs *in, const s2_inputs *inputs, uint32_t n_past);

/* Adds the layer to the graph: x [n_embd, n] to y of the same shape; writes the cache. */
struct ggml_tensor *s2_ar_layer_build(s2_graph *g, const s2_ar_hparams *hp,
        const s2_ar_layer *layer, const s2_kv_layer *kv, const s2_ar_inputs *in,
        struct ggml_tensor *x);

/* Nodes and leaves that one layer adds at most, for s2_graph_init. */
#define S2_AR_LAYER_NODES 48

#endif
