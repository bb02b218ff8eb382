/*
 * Two graphs are kept: one for a single column, which generation computes once a frame, and one for the
 * last chunk size of a prompt. A graph looks at the cache's first n_kv rows, n_kv rounded up to KV_STEP, so
 * that it stays valid for KV_STEP frames; hidden rows are masked.
 */
#include "engine/model/slow_ar.h"

#include <stdbool.h>
#include <string.h>

#include "base/mem.h"
#include "engine/model/slow_graph.h"

#define KV_STEP       256
#define DEFAULT_CHUNK 128

struct s2_slow_ar {
    s2_slow_model model;
    uint32_t n_past;
    s2_slow_graph step;
    s2_slow_graph chunk;
};

static int bind_weights(s2_slow_model *m, sl_error *reterr)
{
    const s2_ar_hparams *hp = &m->hp.slow;
    const s2_weights *weights = m->weights;
    int64_t n_codes = (int64_t)m->hp.n_codebooks * m->hp.codebook_size;
    const int64_t ne_embd[3] = {hp->n_embd, m->hp.n_vocab, 1};
    const int64_t ne_codes[3] = {hp->n_embd, n_codes, 1};
    const int64_t ne_norm[3] = {hp->n_embd, 1, 1};

    int r = s2_weights_need(
            weights, S2_WEIGHT_MATRIX, ne_embd, &m->tables.embeddings, reterr, "embeddings.weight");
    if (r == 0) {
        r = s2_weights_need(weights, S2_WEIGHT_MATRIX, ne_codes, &m->tables.codebook_embeddings,
                reterr, "codebook_embeddings.weight");
    }
    if (r == 0) {
        r = s2_weights_need(weights, S2_WEIGHT_VECTOR, ne_norm, &m->norm, reterr, "norm.weight");
    }
    for (uint32_t i = 0; i < hp->n_layer && r == 0; i++) {
        r = s2_ar_layer_bind(weights, hp, "layers.", i, &m->layers[i], reterr);
    }
    m->head = s2_weights_rows(weights);
    return r == 0 && !m->head ? sl__fail(reterr, SL_EINTERNAL, "%s: the head was not cut",
                                        s2_weights_path(weights))
                              : r;
}

int s2_head_rows_init(s2_rows *rows, const sl_model *model, const s2_hparams *hp, sl_error *reterr)
{
    return s2_rows_init(rows, model, "embeddings.weight", (uint64_t)hp->semantic_begin,
            hp->codebook_size, "output.codes", reterr);
}

s2_slow_places s2_slow_places_on(s2_compute *compute)
{
    return (s2_slow_places){compute, compute, UINT32_MAX};
}

int s2_slow_ar_create(const s2_hparams *hp, int32_t end_token, s2_weights *weights,
        const s2_slow_places *places, s2_slow_ar **ret_ar, sl_error *reterr)
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
    s2_slow_model *m = &ar->model;
    m->hp = *hp;
    m->places = *places;
    m->weights = weights;
    m->end_token = end_token;
    m->layers = sl__alloc(hp->slow.n_layer, sizeof *m->layers);
    int r = m->layers ? SL_OK : sl__fail_nomem(reterr, 0, "the slow AR's layers");
    if (r == 0) {
        r = s2_kv_cache_init(&m->kv, places->first, hp->slow.n_layer,
                hp->slow.head_dim * hp->slow.n_head_kv, reterr);
    }
    if (r == 0) {
        s2_kv_cache_move(&m->kv, places->n_first, places->rest);
        r = bind_weights(m, reterr);
    }
    if (r < 0) {
        s2_slow_ar_free(&ar);
        return r;
    }
    *ret_ar = ar;
    return SL_OK;
}

void s2_slow_ar_release(s2_slow_ar *ar)
{
    s2_slow_graph_done(&ar->step);
    s2_slow_graph_done(&ar->chunk);
    s2_kv_cache_release(&ar->model.kv);
    ar->n_past = 0;
}

void s2_slow_ar_free(s2_slow_ar **ar)
{
    if (!ar || !*ar) {
        return;
    }
    s2_slow_graph_done(&(*ar)->step);
    s2_slow_graph_done(&(*ar)->chunk);
    s2_kv_cache_done(&(*ar)->model.kv);
    sl__free((*ar)->model.layers);
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

static uint32_t round_to_step(uint64_t n)
{
    return (uint32_t)((n + KV_STEP - 1) / KV_STEP * KV_STEP);
}

/* Graphs look at the cache: they go before it moves. */
static int grow_cache(s2_slow_ar *ar, uint32_t n_kv, sl_error *reterr)
{
    if (n_kv <= ar->model.kv.capacity) {
        return SL_OK;
    }
    s2_slow_graph_done(&ar->step);
    s2_slow_graph_done(&ar->chunk);
    return s2_kv_cache_reserve(&ar->model.kv, n_kv, reterr);
}

int s2_slow_ar_reserve(s2_slow_ar *ar, uint32_t n_positions, sl_error *reterr)
{
    uint32_t n = n_positions < ar->model.hp.n_ctx ? n_positions : ar->model.hp.n_ctx;
    return grow_cache(ar, round_to_step(n), reterr);
}

size_t s2_slow_ar_row_bytes(const s2_slow_ar *ar)
{
    return s2_kv_cache_row_bytes(&ar->model.kv);
}

void s2_slow_ar_read_rows(const s2_slow_ar *ar, uint32_t n, void *rows)
{
    s2_kv_cache_read(&ar->model.kv, n, rows);
}

int s2_slow_ar_write_rows(s2_slow_ar *ar, const void *rows, uint32_t n, sl_error *reterr)
{
    ar->n_past = 0;
    int r = s2_slow_ar_reserve(ar, n, reterr);
    if (r == 0) {
        s2_kv_cache_write(&ar->model.kv, rows, n);
        ar->n_past = n;
    }
    return r;
}

/* The graph for n columns behind n_past, built anew if its shape, the cache or the weights have changed. */
static int need_graph(s2_slow_ar *ar, uint32_t n, s2_slow_graph **ret_graph, sl_error *reterr)
{
    uint32_t n_kv = round_to_step((uint64_t)ar->n_past + n);
    uint32_t capacity = ar->model.kv.capacity;
    int r = SL_OK;
    if (n_kv > capacity) {
        /* Grow by half again, so that copying stays linear in the length. */
        uint32_t want = capacity + capacity / 2 / KV_STEP * KV_STEP;
        r = grow_cache(ar, want > n_kv ? want : n_kv, reterr);
    }
    s2_slow_graph *sg = n == 1 ? &ar->step : &ar->chunk;
    if (r == 0 && (sg->n == 0 || !s2_slow_graph_fits(sg, n, n_kv))) {
        s2_slow_graph_done(sg);
        r = s2_slow_graph_init(sg, &ar->model, n, n_kv, reterr);
    }
    *ret_graph = sg;
    return r;
}

int s2_slow_ar_measure(s2_slow_ar *ar, uint32_t n_prompt, uint32_t n_positions, sl_error *reterr)
{
    uint32_t n_chunk = n_prompt < DEFAULT_CHUNK ? n_prompt : DEFAULT_CHUNK;
    uint32_t n_ctx = ar->model.hp.n_ctx;
    uint32_t n = n_positions < n_ctx ? n_positions : n_ctx;
    s2_slow_graph *sg = NULL;
    int r = s2_slow_ar_reserve(ar, n, reterr);
    if (r == 0 && n_chunk > 1) {
        ar->n_past = (n_prompt < n ? n_prompt : n) - n_chunk;
        r = need_graph(ar, n_chunk, &sg, reterr);
        r = r < 0 ? r : s2_slow_graph_build_all(sg, reterr);
    }
    if (r == 0) {
        ar->n_past = n - 1;
        r = need_graph(ar, 1, &sg, reterr);
        r = r < 0 ? r : s2_slow_graph_build_all(sg, reterr);
    }
    return r;
}

static int check_columns(const s2_slow_ar *ar, const int32_t *columns, uint32_t n, sl_error *reterr)
{
    uint32_t height = 1 + ar->model.hp.n_codebooks;
    for (uint32_t t = 0; t < n; t++) {
        const int32_t *col = columns + (size_t)t * height;
        if (col[0] < 0 || (uint32_t)col[0] >= ar->model.hp.n_vocab) {
            return sl__fail(reterr, SL_EINVAL,
                    "prompt column %u: token id %d, need 0 to %u: is it this model's tokenizer?", t,
                    col[0], ar->model.hp.n_vocab - 1);
        }
        for (uint32_t j = 1; j < height; j++) {
            if (col[j] < 0 || (uint32_t)col[j] >= ar->model.hp.codebook_size) {
                return sl__fail(reterr, SL_EINVAL, "prompt column %u: code %d, need 0 to %u", t,
                        col[j], ar->model.hp.codebook_size - 1);
            }
        }
    }
    return SL_OK;
}

static int eval_chunk(s2_slow_ar *ar, const int32_t *columns, uint32_t n, float *ret_logits,
        float *ret_hidden, sl_error *reterr)
{
    s2_slow_graph *sg;
    int r = need_graph(ar, n, &sg, reterr);
    if (r == 0) {
        r = s2_slow_graph_run(sg, columns, ar->n_past, ret_logits, ret_hidden, reterr);
    }
    ar->n_past += r == 0 ? n : 0;
    return r;
}

int s2_slow_ar_eval(s2_slow_ar *ar, const int32_t *columns, uint32_t n, uint32_t max_chunk,
        float *ret_logits, float *ret_hidden, sl_error *reterr)
{
    uint32_t begin = ar->n_past;
    uint32_t chunk = max_chunk ? max_chunk : DEFAULT_CHUNK;
    if (n == 0) {
        return sl__fail(reterr, SL_EINVAL, "prompt: no columns, need at least one");
    }
    if (n > ar->model.hp.n_ctx - begin) {
        return sl__fail(reterr, SL_ELIMIT,
                "sequence of %u + %u columns, the model's context holds %u: shorten the text or "
                "the reference",
                begin, n, ar->model.hp.n_ctx);
    }
    int r = check_columns(ar, columns, n, reterr);
    for (uint32_t done = 0; r == 0 && done < n;) {
        uint32_t m = n - done < chunk ? n - done : chunk;
        bool is_last = done + m == n;
        r = eval_chunk(ar, columns + (size_t)done * (1 + ar->model.hp.n_codebooks), m,
                is_last ? ret_logits : NULL, is_last ? ret_hidden : NULL, reterr);
        done += m;
    }
    if (r < 0) {
        ar->n_past = begin;
    }
    return r;
}

size_t s2_slow_ar_kv_bytes(const s2_slow_ar *ar, const s2_compute *compute_or_null)
{
    return s2_kv_cache_bytes(&ar->model.kv, compute_or_null);
}

size_t s2_slow_ar_compute_bytes(const s2_slow_ar *ar, const s2_compute *compute)
{
    return s2_slow_graph_bytes(&ar->step, compute) + s2_slow_graph_bytes(&ar->chunk, compute);
}
