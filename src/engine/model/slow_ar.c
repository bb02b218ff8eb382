/*
 * Two graphs are kept: one for a single column, which generation computes once a frame, and one for the
 * last chunk size of a prompt. A graph looks at the cache's first n_kv rows, n_kv rounded up to KV_STEP, so
 * that it stays valid for KV_STEP frames; hidden rows are masked.
 */
#include "engine/model/slow_ar.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/mem.h"
#include "engine/model/ar_layer.h"
#include "engine/nn/kv_cache.h"
#include "engine/nn/ops.h"

#define KV_STEP       256
#define DEFAULT_CHUNK 128
#define EXTRA_NODES   256

/*
 * F32: with an F16 cache ggml's CPU attention also sums in F16, which costs 7e-3 on the logits of the golden
 * model and makes the size of prompt chunks visible. It doubles a cache that is sized to the request.
 */
#define KV_TYPE GGML_TYPE_F32

/* A graph over a fixed number of columns and cache rows. */
typedef struct slow_graph {
    s2_graph g;
    uint32_t n;
    s2_ar_inputs in;
    struct ggml_tensor *ids;   /* I32 [n] */
    struct ggml_tensor *codes; /* I32 [n * n_codebooks], book major: rows of the codebook table */
    struct ggml_tensor *is_audio; /* F32 [1, n]: 1 in audio columns, else 0 */
    struct ggml_tensor *scale;  /* F32 [1, n]: 1 / sqrt(n_codebooks + 1) in audio columns, else 1 */
    struct ggml_tensor *hidden; /* F32 [n_embd] */
    struct ggml_tensor *semantic; /* F32 [codebook_size] logits */
    struct ggml_tensor *end;      /* F32 [1] logit */
    int32_t *host_i32;            /* ids, then codes, as they are sent */
    float *host_f32;              /* is_audio, then scale */
} slow_graph;

struct s2_slow_ar {
    s2_hparams hp;
    s2_compute *compute;
    struct ggml_tensor *embeddings;          /* [n_embd, n_vocab], also the head */
    struct ggml_tensor *codebook_embeddings; /* [n_embd, n_codebooks * codebook_size] */
    struct ggml_tensor *norm;                /* [n_embd] */
    s2_ar_layer *layers;
    int32_t end_token;
    s2_kv_cache kv;
    uint32_t n_past;
    slow_graph step;
    slow_graph chunk;
};

static int bind_weights(s2_slow_ar *ar, const s2_weights *weights, sl_error *reterr)
{
    const s2_ar_hparams *hp = &ar->hp.slow;
    int64_t n_codes = (int64_t)ar->hp.n_codebooks * ar->hp.codebook_size;
    const int64_t ne_embd[3] = {hp->n_embd, ar->hp.n_vocab, 1};
    const int64_t ne_codes[3] = {hp->n_embd, n_codes, 1};
    const int64_t ne_norm[3] = {hp->n_embd, 1, 1};

    int r = s2_weights_need(
            weights, S2_WEIGHT_MATRIX, ne_embd, &ar->embeddings, reterr, "embeddings.weight");
    if (r == 0) {
        r = s2_weights_need(weights, S2_WEIGHT_MATRIX, ne_codes, &ar->codebook_embeddings, reterr,
                "codebook_embeddings.weight");
    }
    if (r == 0) {
        r = s2_weights_need(weights, S2_WEIGHT_VECTOR, ne_norm, &ar->norm, reterr, "norm.weight");
    }
    for (uint32_t i = 0; i < hp->n_layer && r == 0; i++) {
        r = s2_ar_layer_bind(weights, hp, "layers.", i, &ar->layers[i], reterr);
    }
    return r;
}

int s2_slow_ar_create(const s2_hparams *hp, int32_t end_token, const s2_weights *weights,
        s2_compute *compute, s2_slow_ar **ret_ar, sl_error *reterr)
{
    bool is_semantic = end_token >= hp->semantic_begin && end_token <= hp->semantic_end;
    if (end_token < 0 || (uint32_t)end_token >= hp->n_vocab || is_semantic) {
        return sl__fail(reterr, SL_EFORMAT,
                "tokenizer: id %d of <|im_end|> does not fit the model's vocabulary of %u with "
                "semantic ids %d to %d: is it this model's tokenizer?",
                end_token, hp->n_vocab, hp->semantic_begin, hp->semantic_end);
    }
    s2_slow_ar *ar = sl__alloc(1, sizeof *ar);
    if (!ar) {
        return sl__fail_nomem(reterr, sizeof *ar, "the slow AR");
    }
    ar->hp = *hp;
    ar->compute = compute;
    ar->end_token = end_token;
    ar->layers = sl__alloc(hp->slow.n_layer, sizeof *ar->layers);
    int r = ar->layers ? SL_OK : sl__fail_nomem(reterr, 0, "the slow AR's layers");
    if (r == 0) {
        r = s2_kv_cache_init(&ar->kv, compute, hp->slow.n_layer,
                hp->slow.head_dim * hp->slow.n_head_kv, KV_TYPE, reterr);
    }
    if (r == 0) {
        r = bind_weights(ar, weights, reterr);
    }
    if (r < 0) {
        s2_slow_ar_free(&ar);
        return r;
    }
    *ret_ar = ar;
    return SL_OK;
}

static void slow_graph_done(slow_graph *sg)
{
    s2_ar_inputs_done(&sg->in);
    s2_graph_done(&sg->g);
    sl__free(sg->host_i32);
    sl__free(sg->host_f32);
    memset(sg, 0, sizeof *sg);
}

void s2_slow_ar_release(s2_slow_ar *ar)
{
    slow_graph_done(&ar->step);
    slow_graph_done(&ar->chunk);
    s2_kv_cache_release(&ar->kv);
    ar->n_past = 0;
}

void s2_slow_ar_free(s2_slow_ar **ar)
{
    if (!ar || !*ar) {
        return;
    }
    slow_graph_done(&(*ar)->step);
    slow_graph_done(&(*ar)->chunk);
    s2_kv_cache_done(&(*ar)->kv);
    sl__free((*ar)->layers);
    sl__free(*ar);
    *ar = NULL;
}

uint32_t s2_slow_ar_n_past(const s2_slow_ar *ar)
{
    return ar->n_past;
}

void s2_slow_ar_rewind(s2_slow_ar *ar, uint32_t n_past)
{
    if (n_past < ar->n_past) {
        ar->n_past = n_past;
    }
}

/*
 * x = (E[id] + is_audio * sum_j C[j * codebook_size + code_j]) * scale. Text columns gather rows too, which
 * the factor 0 removes, so that one graph serves every mix of columns.
 */
static struct ggml_tensor *build_embedding(const s2_slow_ar *ar, slow_graph *sg)
{
    struct ggml_context *ctx = sg->g.ctx;
    int64_t n_embd = ar->hp.slow.n_embd;
    struct ggml_tensor *text = ggml_get_rows(ctx, ar->embeddings, sg->ids);
    struct ggml_tensor *rows = ggml_get_rows(ctx, ar->codebook_embeddings, sg->codes);
    struct ggml_tensor *sum = NULL;
    for (uint32_t j = 0; j < ar->hp.n_codebooks; j++) {
        size_t offset = (size_t)j * sg->n * rows->nb[1];
        struct ggml_tensor *book = ggml_view_2d(ctx, rows, n_embd, sg->n, rows->nb[1], offset);
        sum = sum ? ggml_add(ctx, sum, book) : book;
    }
    struct ggml_tensor *x = ggml_add(ctx, text, ggml_mul(ctx, sum, sg->is_audio));
    return ggml_mul(ctx, x, sg->scale);
}

static struct ggml_tensor *new_input(s2_graph *g, enum ggml_type type, int64_t ne0, int64_t ne1)
{
    struct ggml_tensor *t = ggml_new_tensor_2d(g->ctx, type, ne0, ne1);
    ggml_set_input(t);
    return t;
}

static struct ggml_tensor *add_output(s2_graph *g, struct ggml_tensor *t)
{
    ggml_set_output(t);
    ggml_build_forward_expand(g->cgraph, t);
    return t;
}

/* Inputs of the graph and the host memory that they are sent from. */
static int create_inputs(
        const s2_slow_ar *ar, slow_graph *sg, uint32_t n, uint32_t n_kv, sl_error *reterr)
{
    s2_graph *g = &sg->g;
    size_t n_codes = (size_t)n * ar->hp.n_codebooks;
    sg->n = n;
    sg->host_i32 = sl__alloc(n + n_codes, sizeof *sg->host_i32);
    sg->host_f32 = sl__alloc(2 * (size_t)n, sizeof *sg->host_f32);
    if (!sg->host_i32 || !sg->host_f32) {
        return sl__fail_nomem(reterr, (n + n_codes) * sizeof *sg->host_i32, "graph inputs");
    }
    sg->ids = new_input(g, GGML_TYPE_I32, n, 1);
    sg->codes = new_input(g, GGML_TYPE_I32, (int64_t)n_codes, 1);
    sg->is_audio = new_input(g, GGML_TYPE_F32, 1, n);
    sg->scale = new_input(g, GGML_TYPE_F32, 1, n);
    return s2_ar_inputs_init(&sg->in, g, &ar->hp.slow, n, n_kv, reterr);
}

/* The head: final norm of the last column, then the rows of the table that may be sampled. */
static void build_head(const s2_slow_ar *ar, slow_graph *sg, struct ggml_tensor *x)
{
    s2_graph *g = &sg->g;
    const s2_ar_hparams *hp = &ar->hp.slow;
    struct ggml_tensor *e = ar->embeddings;
    struct ggml_tensor *last =
            ggml_view_2d(g->ctx, x, hp->n_embd, 1, x->nb[1], (size_t)(sg->n - 1) * x->nb[1]);
    struct ggml_tensor *semantic_rows = ggml_view_2d(g->ctx, e, e->ne[0], ar->hp.codebook_size,
            e->nb[1], (size_t)ar->hp.semantic_begin * e->nb[1]);
    struct ggml_tensor *end_row =
            ggml_view_2d(g->ctx, e, e->ne[0], 1, e->nb[1], (size_t)ar->end_token * e->nb[1]);
    sg->hidden = add_output(g, s2_nn_rms_norm(g, last, ar->norm, hp->rms_eps));
    sg->semantic = add_output(g, s2_nn_linear(g, semantic_rows, sg->hidden));
    sg->end = add_output(g, s2_nn_linear(g, end_row, sg->hidden));
}

static int build_graph(
        const s2_slow_ar *ar, slow_graph *sg, uint32_t n, uint32_t n_kv, sl_error *reterr)
{
    const s2_ar_hparams *hp = &ar->hp.slow;
    size_t max_nodes = (size_t)hp->n_layer * S2_AR_LAYER_NODES + EXTRA_NODES;
    slow_graph_done(sg);
    int r = s2_graph_init(&sg->g, ar->compute, max_nodes, reterr);
    if (r == 0) {
        r = create_inputs(ar, sg, n, n_kv, reterr);
    }
    if (r == 0) {
        struct ggml_tensor *x = build_embedding(ar, sg);
        for (uint32_t i = 0; i < hp->n_layer; i++) {
            x = s2_ar_layer_build(&sg->g, hp, &ar->layers[i], &ar->kv.layers[i], &sg->in, x);
        }
        build_head(ar, sg, x);
        r = s2_graph_alloc(&sg->g, reterr);
    }
    if (r < 0) {
        slow_graph_done(sg);
    }
    return r;
}

/* The graph for n columns behind n_past, built anew if its shape or the cache has changed. */
static int need_graph(s2_slow_ar *ar, uint32_t n, slow_graph **ret_graph, sl_error *reterr)
{
    uint32_t n_kv = (ar->n_past + n + KV_STEP - 1) / KV_STEP * KV_STEP;
    if (n_kv > ar->kv.capacity) {
        /* Grow by half again, so that copying stays linear in the length. */
        uint32_t want = ar->kv.capacity + ar->kv.capacity / 2 / KV_STEP * KV_STEP;
        slow_graph_done(&ar->step);
        slow_graph_done(&ar->chunk);
        int r = s2_kv_cache_reserve(&ar->kv, want > n_kv ? want : n_kv, reterr);
        if (r < 0) {
            return r;
        }
    }
    slow_graph *sg = n == 1 ? &ar->step : &ar->chunk;
    if (sg->n != n || sg->in.n_kv != n_kv) {
        int r = build_graph(ar, sg, n, n_kv, reterr);
        if (r < 0) {
            return r;
        }
    }
    *ret_graph = sg;
    return SL_OK;
}

static int check_columns(const s2_slow_ar *ar, const int32_t *columns, uint32_t n, sl_error *reterr)
{
    uint32_t height = 1 + ar->hp.n_codebooks;
    for (uint32_t t = 0; t < n; t++) {
        const int32_t *col = columns + (size_t)t * height;
        if (col[0] < 0 || (uint32_t)col[0] >= ar->hp.n_vocab) {
            return sl__fail(reterr, SL_EINVAL,
                    "prompt column %u: token id %d, need 0 to %u: is it this model's tokenizer?", t,
                    col[0], ar->hp.n_vocab - 1);
        }
        for (uint32_t j = 1; j < height; j++) {
            if (col[j] < 0 || (uint32_t)col[j] >= ar->hp.codebook_size) {
                return sl__fail(reterr, SL_EINVAL, "prompt column %u: code %d, need 0 to %u", t,
                        col[j], ar->hp.codebook_size - 1);
            }
        }
    }
    return SL_OK;
}

static void fill_column(const s2_slow_ar *ar, const slow_graph *sg, uint32_t t, const int32_t *col)
{
    uint32_t n_books = ar->hp.n_codebooks;
    bool is_audio = col[0] >= ar->hp.semantic_begin && col[0] <= ar->hp.semantic_end;
    bool is_scaled = is_audio && ar->hp.scale_codebook_embeddings;
    int32_t *codes = sg->host_i32 + sg->n;

    sg->host_i32[t] = col[0];
    sg->host_f32[t] = is_audio ? 1.0f : 0.0f;
    sg->host_f32[sg->n + t] = is_scaled ? 1.0f / sqrtf((float)n_books + 1.0f) : 1.0f;
    for (uint32_t j = 0; j < n_books; j++) {
        codes[(size_t)j * sg->n + t] =
                (int32_t)(j * ar->hp.codebook_size) + (is_audio ? col[1 + j] : 0);
    }
}

static void set_columns(const s2_slow_ar *ar, const slow_graph *sg, const int32_t *columns)
{
    for (uint32_t t = 0; t < sg->n; t++) {
        fill_column(ar, sg, t, columns + (size_t)t * (1 + ar->hp.n_codebooks));
    }
    ggml_backend_tensor_set(sg->ids, sg->host_i32, 0, ggml_nbytes(sg->ids));
    ggml_backend_tensor_set(sg->codes, sg->host_i32 + sg->n, 0, ggml_nbytes(sg->codes));
    ggml_backend_tensor_set(sg->is_audio, sg->host_f32, 0, ggml_nbytes(sg->is_audio));
    ggml_backend_tensor_set(sg->scale, sg->host_f32 + sg->n, 0, ggml_nbytes(sg->scale));
}

static int eval_chunk(s2_slow_ar *ar, const int32_t *columns, uint32_t n, float *ret_logits,
        float *ret_hidden, sl_error *reterr)
{
    slow_graph *sg;
    int r = need_graph(ar, n, &sg, reterr);
    if (r < 0) {
        return r;
    }
    set_columns(ar, sg, columns);
    s2_ar_inputs_set(&sg->in, ar->n_past);
    r = s2_graph_run(&sg->g, reterr);
    if (r < 0) {
        return r;
    }
    ar->n_past += n;
    if (ret_logits) {
        ggml_backend_tensor_get(sg->semantic, ret_logits, 0, ggml_nbytes(sg->semantic));
        ggml_backend_tensor_get(
                sg->end, ret_logits + ar->hp.codebook_size, 0, ggml_nbytes(sg->end));
        ggml_backend_tensor_get(sg->hidden, ret_hidden, 0, ggml_nbytes(sg->hidden));
    }
    return SL_OK;
}

int s2_slow_ar_eval(s2_slow_ar *ar, const int32_t *columns, uint32_t n, uint32_t max_chunk,
        float *ret_logits, float *ret_hidden, sl_error *reterr)
{
    uint32_t begin = ar->n_past;
    uint32_t chunk = max_chunk ? max_chunk : DEFAULT_CHUNK;
    if (n == 0) {
        return sl__fail(reterr, SL_EINVAL, "prompt: no columns, need at least one");
    }
    if (n > ar->hp.n_ctx - begin) {
        return sl__fail(reterr, SL_ELIMIT,
                "sequence of %u + %u columns, the model's context holds %u: shorten the text or "
                "the reference",
                begin, n, ar->hp.n_ctx);
    }
    int r = check_columns(ar, columns, n, reterr);
    for (uint32_t done = 0; r == 0 && done < n;) {
        uint32_t m = n - done < chunk ? n - done : chunk;
        bool is_last = done + m == n;
        r = eval_chunk(ar, columns + (size_t)done * (1 + ar->hp.n_codebooks), m,
                is_last ? ret_logits : NULL, ret_hidden, reterr);
        done += m;
    }
    if (r < 0) {
        ar->n_past = begin;
    }
    return r;
}

size_t s2_slow_ar_kv_bytes(const s2_slow_ar *ar)
{
    return s2_kv_cache_bytes(&ar->kv);
}

size_t s2_slow_ar_compute_bytes(const s2_slow_ar *ar)
{
    return s2_graph_bytes(&ar->step.g) + s2_graph_bytes(&ar->chunk.g);
}
