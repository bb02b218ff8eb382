#include "engine/nn/kv_cache.h"

#include <stdbool.h>
#include <string.h>

#include "base/mem.h"

int s2_kv_cache_init(s2_kv_cache *kv, s2_compute *compute, uint32_t n_layer, uint32_t row_elems,
        sl_error *reterr)
{
    memset(kv, 0, sizeof *kv);
    kv->row_elems = row_elems;
    kv->layers = sl__alloc(n_layer, sizeof *kv->layers);
    if (!kv->layers) {
        return sl__fail_nomem(reterr, n_layer * sizeof *kv->layers, "a KV cache");
    }
    kv->n_layer = n_layer;
    s2_kv_cache_move(kv, 0, compute);
    return SL_OK;
}

void s2_kv_cache_move(s2_kv_cache *kv, uint32_t i_first, s2_compute *compute)
{
    for (uint32_t i = i_first; i < kv->n_layer; i++) {
        kv->layers[i].compute = compute;
    }
}

enum ggml_type s2_kv_cache_type(const s2_compute *compute)
{
    return compute->is_cpu ? GGML_TYPE_F32 : GGML_TYPE_F16;
}

static int copy_rows(
        s2_state *to, struct ggml_tensor *dst, struct ggml_tensor *src, sl_error *reterr)
{
    struct ggml_tensor *head = ggml_view_2d(to->ctx, dst, src->ne[0], src->ne[1], dst->nb[1], 0);
    if (ggml_backend_view_init(head) != GGML_STATUS_SUCCESS) {
        return sl__fail(reterr, SL_EINTERNAL, "cannot view a KV cache");
    }
    ggml_backend_tensor_copy(src, head);
    return SL_OK;
}

static int grow_layer(
        const s2_kv_cache *kv, s2_kv_layer *layer, uint32_t capacity, sl_error *reterr)
{
    enum ggml_type type = s2_kv_cache_type(layer->compute);
    s2_kv_layer grown = {.compute = layer->compute};
    /* K, V and two views of them for the copy. */
    int r = s2_state_init(&grown.state, 4, reterr);
    if (r < 0) {
        return r;
    }
    grown.k = ggml_new_tensor_2d(grown.state.ctx, type, kv->row_elems, capacity);
    grown.v = ggml_new_tensor_2d(grown.state.ctx, type, kv->row_elems, capacity);
    r = s2_state_alloc(&grown.state, layer->compute, SL_MEM_KV, reterr);
    bool is_copied = layer->k && !s2_compute_is_measuring(layer->compute);
    if (r == 0 && is_copied) {
        r = copy_rows(&grown.state, grown.k, layer->k, reterr);
    }
    if (r == 0 && is_copied) {
        r = copy_rows(&grown.state, grown.v, layer->v, reterr);
    }
    if (r < 0) {
        s2_state_done(&grown.state);
        return r;
    }
    s2_state_done(&layer->state);
    *layer = grown;
    return SL_OK;
}

int s2_kv_cache_reserve(s2_kv_cache *kv, uint32_t n_positions, sl_error *reterr)
{
    if (n_positions <= kv->capacity) {
        return SL_OK;
    }
    for (uint32_t i = 0; i < kv->n_layer; i++) {
        s2_kv_layer *layer = &kv->layers[i];
        if (layer->k && layer->k->ne[1] >= (int64_t)n_positions) {
            continue;
        }
        int r = grow_layer(kv, layer, n_positions, reterr);
        if (r < 0) {
            return r;
        }
    }
    kv->capacity = n_positions;
    return SL_OK;
}

size_t s2_kv_cache_row_bytes(const s2_kv_cache *kv)
{
    size_t n = 0;
    for (uint32_t i = 0; i < kv->n_layer; i++) {
        n += kv->layers[i].k->nb[1] + kv->layers[i].v->nb[1];
    }
    return n;
}

void s2_kv_cache_read(const s2_kv_cache *kv, uint32_t n, void *rows)
{
    unsigned char *to = rows;
    for (uint32_t i = 0; i < kv->n_layer; i++) {
        const struct ggml_tensor *pair[] = {kv->layers[i].k, kv->layers[i].v};
        for (int k = 0; k < 2; k++) {
            size_t n_bytes = pair[k]->nb[1] * n;
            ggml_backend_tensor_get(pair[k], to, 0, n_bytes);
            to += n_bytes;
        }
    }
}

void s2_kv_cache_write(s2_kv_cache *kv, const void *rows, uint32_t n)
{
    const unsigned char *from = rows;
    for (uint32_t i = 0; i < kv->n_layer; i++) {
        struct ggml_tensor *pair[] = {kv->layers[i].k, kv->layers[i].v};
        for (int k = 0; k < 2; k++) {
            size_t n_bytes = pair[k]->nb[1] * n;
            ggml_backend_tensor_set(pair[k], from, 0, n_bytes);
            from += n_bytes;
        }
    }
}

void s2_kv_cache_release(s2_kv_cache *kv)
{
    for (uint32_t i = 0; i < kv->n_layer; i++) {
        s2_state_done(&kv->layers[i].state);
        kv->layers[i] = (s2_kv_layer){.compute = kv->layers[i].compute};
    }
    kv->capacity = 0;
}

size_t s2_kv_cache_bytes(const s2_kv_cache *kv, const s2_compute *compute_or_null)
{
    size_t n = 0;
    for (uint32_t i = 0; i < kv->n_layer; i++) {
        const s2_kv_layer *layer = &kv->layers[i];
        bool counts = !compute_or_null || layer->compute == compute_or_null;
        n += counts ? s2_state_bytes(&layer->state) : 0;
    }
    return n;
}

void s2_kv_cache_done(s2_kv_cache *kv)
{
    if (!kv) {
        return;
    }
    if (kv->layers) {
        s2_kv_cache_release(kv);
    }
    sl__free(kv->layers);
    memset(kv, 0, sizeof *kv);
}
