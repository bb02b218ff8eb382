/*
 * Two static graphs over the same cache of n_codebooks positions: "first" runs positions 0 and 1, "next"
 * one further position. Stale rows of the previous frame are hidden by the mask.
 */
#include "engine/model/fast_ar.h"

#include <assert.h>
#include <string.h>

#include "base/mem.h"
#include "engine/model/ar_layer.h"
#include "engine/nn/kv_cache.h"
#include "engine/nn/ops.h"

#define EXTRA_NODES 64

/* Rows of the cache on a GPU, of which n_codebooks are seen: for fewer at once, or another number, attention is slower. */
#define GPU_KV_ROWS 256

/* Hidden state, code, and where the columns stand. */
#define MAX_INPUTS 5

typedef struct fast_graph {
    s2_graph g;
    s2_inputs inputs;
    s2_ar_inputs in;
    struct ggml_tensor *hidden; /* F32 [slow.n_embd], of the first graph only */
    struct ggml_tensor *code;   /* I32 [1] */
    struct ggml_tensor *logits; /* F32 [codebook_size] */
} fast_graph;

struct s2_fast_ar {
    s2_hparams hp;
    s2_weights *weights;
    s2_compute *compute;
    struct ggml_tensor *embeddings;   /* [n_embd, codebook_size] */
    struct ggml_tensor *norm;         /* [n_embd] */
    struct ggml_tensor *output;       /* [n_embd, codebook_size] */
    struct ggml_tensor *project_in;   /* [slow.n_embd, n_embd] or NULL */
    struct ggml_tensor *project_bias; /* [n_embd] or NULL */
    s2_ar_layer *layers;
    s2_kv_cache kv;
    uint32_t n_past;
    bool is_built;
    uint64_t epoch; /* of the weights that the graphs are over */
    fast_graph first;
    fast_graph next;
};

static int bind_project_in(s2_fast_ar *ar, const s2_weights *weights, sl_error *reterr)
{
    const int64_t ne[3] = {ar->hp.slow.n_embd, ar->hp.fast.n_embd, 1};
    const int64_t ne_bias[3] = {ar->hp.fast.n_embd, 1, 1};
    if (!ar->hp.has_fast_project_in) {
        return SL_OK;
    }
    int r = s2_weights_need(
            weights, S2_WEIGHT_MATRIX, ne, &ar->project_in, reterr, "fast_project_in.weight");
    if (r == 0 && s2_weights_find(weights, "fast_project_in.bias")) {
        r = s2_weights_need(weights, S2_WEIGHT_VECTOR, ne_bias, &ar->project_bias, reterr,
                "fast_project_in.bias");
    }
    return r;
}

static int bind_weights(s2_fast_ar *ar, const s2_weights *weights, sl_error *reterr)
{
    const s2_ar_hparams *hp = &ar->hp.fast;
    const int64_t ne_table[3] = {hp->n_embd, ar->hp.codebook_size, 1};
    const int64_t ne_norm[3] = {hp->n_embd, 1, 1};
    int r = s2_weights_need(
            weights, S2_WEIGHT_MATRIX, ne_table, &ar->embeddings, reterr, "fast_embeddings.weight");
    if (r == 0) {
        r = s2_weights_need(
                weights, S2_WEIGHT_MATRIX, ne_table, &ar->output, reterr, "fast_output.weight");
    }
    if (r == 0) {
        r = s2_weights_need(
                weights, S2_WEIGHT_VECTOR, ne_norm, &ar->norm, reterr, "fast_norm.weight");
    }
    if (r == 0) {
        r = bind_project_in(ar, weights, reterr);
    }
    for (uint32_t i = 0; i < hp->n_layer && r == 0; i++) {
        r = s2_ar_layer_bind(weights, hp, "fast_layers.", i, &ar->layers[i], reterr);
    }
    return r;
}

/* The input of position 0: the hidden state, projected if the widths differ. [n_embd, 1] */
static struct ggml_tensor *build_hidden(const s2_fast_ar *ar, fast_graph *fg)
{
    struct ggml_tensor *x = fg->hidden;
    if (ar->project_in) {
        x = s2_nn_linear(&fg->g, ar->project_in, x);
    }
    if (ar->project_bias) {
        x = ggml_add(fg->g.ctx, x, s2_nn_f32(&fg->g, ar->project_bias));
    }
    return x;
}

static int make_inputs(const s2_fast_ar *ar, fast_graph *fg, bool is_first, sl_error *reterr)
{
    int r = s2_inputs_init(&fg->inputs, MAX_INPUTS, reterr);
    if (r < 0) {
        return r;
    }
    fg->in = s2_ar_inputs_add(
            &fg->inputs, ar->compute, &ar->hp.fast, is_first ? 2 : 1, ar->kv.capacity);
    fg->code = s2_inputs_add(&fg->inputs, GGML_TYPE_I32, 1, 1);
    fg->hidden = is_first ? s2_inputs_add(&fg->inputs, GGML_TYPE_F32, ar->hp.slow.n_embd, 1) : NULL;
    return s2_inputs_alloc(&fg->inputs, ar->compute, reterr);
}

static int build_graph(const s2_fast_ar *ar, fast_graph *fg, bool is_first, sl_error *reterr)
{
    const s2_ar_hparams *hp = &ar->hp.fast;
    size_t max_nodes = (size_t)hp->n_layer * S2_AR_LAYER_NODES + EXTRA_NODES;
    s2_graph *g = &fg->g;
    int64_t n = is_first ? 2 : 1;
    int r = s2_graph_init(g, ar->compute, max_nodes, reterr);
    if (r == 0) {
        r = make_inputs(ar, fg, is_first, reterr);
    }
    if (r < 0) {
        return r;
    }
    struct ggml_tensor *x = ggml_get_rows(g->ctx, ar->embeddings, fg->code);
    if (is_first) {
        x = ggml_concat(g->ctx, build_hidden(ar, fg), x, 1);
    }
    for (uint32_t i = 0; i < hp->n_layer; i++) {
        x = s2_ar_layer_build(g, hp, &ar->layers[i], &ar->kv.layers[i], &fg->in, x);
    }
    struct ggml_tensor *last =
            ggml_view_2d(g->ctx, x, hp->n_embd, 1, x->nb[1], (size_t)(n - 1) * x->nb[1]);
    last = s2_nn_rms_norm(g, last, ar->norm, hp->rms_eps);
    fg->logits = s2_nn_linear(g, ar->output, last);
    ggml_set_output(fg->logits);
    ggml_build_forward_expand(g->cgraph, fg->logits);
    return s2_graph_alloc(g, reterr);
}

int s2_fast_ar_create(const s2_hparams *hp, s2_weights *weights, s2_compute *compute,
        s2_fast_ar **ret_ar, sl_error *reterr)
{
    s2_fast_ar *ar = sl__alloc(1, sizeof *ar);
    if (!ar) {
        return sl__fail_nomem(reterr, sizeof *ar, "the fast AR");
    }
    ar->hp = *hp;
    ar->weights = weights;
    ar->compute = compute;
    ar->layers = sl__alloc(hp->fast.n_layer, sizeof *ar->layers);
    int r = ar->layers ? SL_OK : sl__fail_nomem(reterr, 0, "the fast AR's layers");
    if (r == 0) {
        r = bind_weights(ar, weights, reterr);
    }
    if (r == 0) {
        r = s2_kv_cache_init(
                &ar->kv, compute, hp->fast.n_layer, hp->fast.head_dim * hp->fast.n_head_kv, reterr);
    }
    if (r < 0) {
        s2_fast_ar_free(&ar);
        return r;
    }
    *ret_ar = ar;
    return SL_OK;
}

static void fast_graph_done(fast_graph *fg)
{
    s2_graph_done(&fg->g);
    s2_inputs_done(&fg->inputs);
}

void s2_fast_ar_release(s2_fast_ar *ar)
{
    fast_graph_done(&ar->first);
    fast_graph_done(&ar->next);
    s2_kv_cache_release(&ar->kv);
    ar->is_built = false;
}

void s2_fast_ar_free(s2_fast_ar **ar)
{
    if (!ar || !*ar) {
        return;
    }
    fast_graph_done(&(*ar)->first);
    fast_graph_done(&(*ar)->next);
    s2_kv_cache_done(&(*ar)->kv);
    sl__free((*ar)->layers);
    sl__free(*ar);
    *ar = NULL;
}

static uint32_t n_kv_rows(const s2_fast_ar *ar)
{
    uint32_t n = ar->hp.n_codebooks;
    return ar->compute->is_cpu || n > GPU_KV_ROWS ? n : GPU_KV_ROWS;
}

int s2_fast_ar_prepare(s2_fast_ar *ar, sl_error *reterr)
{
    uint64_t epoch = s2_weights_epoch(ar->weights, S2_SLOT_FAST);
    const sl_wait wait = {ar->compute->should_stop, ar->compute->stop_ud};
    if (ar->is_built && ar->epoch == epoch) {
        return SL_OK;
    }
    s2_fast_ar_release(ar);
    int r = s2_weights_arrive_all(ar->weights, S2_SLOT_FAST, &wait, reterr);
    if (r == 0) {
        r = s2_kv_cache_reserve(&ar->kv, n_kv_rows(ar), reterr);
    }
    if (r == 0) {
        r = build_graph(ar, &ar->first, true, reterr);
    }
    if (r == 0) {
        r = build_graph(ar, &ar->next, false, reterr);
    }
    if (r < 0) {
        s2_fast_ar_release(ar);
        return r;
    }
    ar->is_built = true;
    ar->epoch = epoch;
    return SL_OK;
}

static int run(s2_fast_ar *ar, fast_graph *fg, uint32_t n_past, int32_t code, float *ret_logits,
        sl_error *reterr)
{
    if (code < 0 || (uint32_t)code >= ar->hp.codebook_size) {
        return sl__fail(reterr, SL_EINVAL, "fast AR: code %d, need 0 to %u", code,
                ar->hp.codebook_size - 1);
    }
    const s2_graph_read read = s2_graph_read_to(fg->logits, ret_logits);
    memcpy(s2_inputs_host(&fg->inputs, fg->code), &code, sizeof code);
    s2_ar_inputs_fill(&fg->in, &fg->inputs, n_past);
    int r = s2_graph_run(&fg->g, &fg->inputs, &read, 1, reterr);
    if (r == 0) {
        ar->n_past = n_past + (uint32_t)fg->in.pos->ne[0];
    }
    return r;
}

int s2_fast_ar_begin(
        s2_fast_ar *ar, const float *hidden, int32_t code0, float *ret_logits, sl_error *reterr)
{
    int r = s2_fast_ar_prepare(ar, reterr);
    if (r < 0) {
        return r;
    }
    const fast_graph *first = &ar->first;
    memcpy(s2_inputs_host(&first->inputs, first->hidden), hidden, ggml_nbytes(first->hidden));
    return run(ar, &ar->first, 0, code0, ret_logits, reterr);
}

int s2_fast_ar_next(s2_fast_ar *ar, int32_t code, float *ret_logits, sl_error *reterr)
{
    assert(ar->n_past >= 2 && ar->n_past < ar->hp.n_codebooks);
    return run(ar, &ar->next, ar->n_past, code, ret_logits, reterr);
}

size_t s2_fast_ar_kv_bytes(const s2_fast_ar *ar)
{
    return s2_kv_cache_bytes(&ar->kv, NULL);
}

size_t s2_fast_ar_compute_bytes(const s2_fast_ar *ar)
{
    return s2_graph_bytes(&ar->first.g) + s2_inputs_bytes(&ar->first.inputs) +
           s2_graph_bytes(&ar->next.g) + s2_inputs_bytes(&ar->next.inputs);
}
