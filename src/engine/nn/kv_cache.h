/*
 * Keys and values of past positions, one pair of tensors for each layer, growing on demand.
 *
 * k, v of a layer: ggml ne = {head_dim * n_head_kv, capacity}, row p = position p. Keys are stored after
 * normalisation and RoPE. Growing moves layer by layer, so that the peak is one layer above the new size.
 *
 * Threads: one thread at a time. Zeroed memory may be passed to done.
 */
#ifndef S2_NN_KV_CACHE_H
#define S2_NN_KV_CACHE_H

#include <stddef.h>
#include <stdint.h>

#include "engine/nn/graph.h"

typedef struct s2_kv_layer {
    s2_compute *compute;
    s2_state state;
    struct ggml_tensor *k;
    struct ggml_tensor *v;
} s2_kv_layer;

typedef struct s2_kv_cache {
    uint32_t n_layer;
    uint32_t row_elems; /* head_dim * n_head_kv */
    uint32_t capacity;  /* positions */
    s2_kv_layer *layers;
} s2_kv_cache;

/* Allocates no tensors yet; all layers are on `compute`. Errors: SL_ENOMEM. */
int s2_kv_cache_init(s2_kv_cache *kv, s2_compute *compute, uint32_t n_layer, uint32_t row_elems,
        sl_error *reterr) SL_MUST_CHECK;

/* Layers from i_first on are on another compute. Before anything is reserved. */
void s2_kv_cache_move(s2_kv_cache *kv, uint32_t i_first, s2_compute *compute);

/*
 * F32 on the CPU: with an F16 cache ggml's CPU attention also sums in F16, which costs 7e-3 on the logits of
 * the golden model and makes the size of prompt chunks visible. F16 elsewhere, where sums stay F32.
 */
enum ggml_type s2_kv_cache_type(const s2_compute *compute);

/*
 * Makes room for n_positions; what is stored stays. Tensors change, so graphs over them must be rebuilt.
 * On error every layer keeps its content, and capacity tells what all of them hold.
 */
int s2_kv_cache_reserve(s2_kv_cache *kv, uint32_t n_positions, sl_error *reterr) SL_MUST_CHECK;

/* Bytes of one position over all layers, of a cache that has room. */
size_t s2_kv_cache_row_bytes(const s2_kv_cache *kv);

/*
 * Copies positions 0 to n - 1, n <= capacity, to or from host memory of n * row_bytes: for each layer the keys, then
 * the values, in the cache's own type. The copy is complete on return.
 */
void s2_kv_cache_read(const s2_kv_cache *kv, uint32_t n, void *rows);
void s2_kv_cache_write(s2_kv_cache *kv, const void *rows, uint32_t n);

/* Gives the tensors back. */
void s2_kv_cache_release(s2_kv_cache *kv);

/* Bytes of all layers, or of those on one compute. */
size_t s2_kv_cache_bytes(const s2_kv_cache *kv, const s2_compute *compute_or_null);

void s2_kv_cache_done(s2_kv_cache *kv);

#endif
