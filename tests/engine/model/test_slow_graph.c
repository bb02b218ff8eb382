/*
 * The slow AR's graph in one piece and in segments: wherever its parts are and wherever it is cut, the same bits come out,
 * and what is measured beforehand is what it takes.
 */
#include "engine/model/slow_graph.h"

#include <stdlib.h>
#include <string.h>

#include "model_fixture.h"
#include "test_support.h"

#define N_PLACES 3
#define N_KV     32
#define END      514
#define MAX_N    9

typedef struct fixture {
    model_fixture m;
    s2_compute computes[N_PLACES]; /* 0 is the CPU's, the others memory that it computes on */
    s2_compute measures[N_PLACES];
    int32_t columns[MAX_N * 16];
    float logits[1024]; /* of one piece */
    float hidden[1024];
} fixture;

/* The model on computes; layers from n_first on are on the second. */
static void open_model(
        fixture *f, s2_compute *computes, const size_t at[2], uint32_t n_first, s2_slow_model *ret)
{
    const s2_hparams *hp = &f->m.hp;
    const int64_t n_embd = hp->slow.n_embd;
    const int64_t ne_embd[3] = {n_embd, hp->n_vocab, 1};
    const int64_t ne_codes[3] = {n_embd, (int64_t)hp->n_codebooks * hp->codebook_size, 1};
    const int64_t ne_norm[3] = {n_embd, 1, 1};
    const s2_weights *w = f->m.weights;
    sl_error err = {0};
    *ret = (s2_slow_model){.hp = *hp, .weights = f->m.weights, .end_token = END};
    ret->places = (s2_slow_places){&computes[at[0]], &computes[at[1]], n_first};
    ret->layers = calloc(hp->slow.n_layer, sizeof *ret->layers);
    assert_non_null(ret->layers);
    assert_ok(s2_weights_need(w, S2_WEIGHT_MATRIX, ne_embd, &ret->tables.embeddings, &err,
                      "embeddings.weight"),
            &err);
    assert_ok(s2_weights_need(w, S2_WEIGHT_MATRIX, ne_codes, &ret->tables.codebook_embeddings, &err,
                      "codebook_embeddings.weight"),
            &err);
    assert_ok(s2_weights_need(w, S2_WEIGHT_VECTOR, ne_norm, &ret->norm, &err, "norm.weight"), &err);
    ret->head = s2_weights_rows(w);
    for (uint32_t i = 0; i < hp->slow.n_layer; i++) {
        assert_ok(s2_ar_layer_bind(w, &hp->slow, "layers.", i, &ret->layers[i], &err), &err);
    }
    assert_ok(s2_kv_cache_init(&ret->kv, ret->places.first, hp->slow.n_layer,
                      hp->slow.head_dim * hp->slow.n_head_kv, &err),
            &err);
    s2_kv_cache_move(&ret->kv, n_first, ret->places.rest);
    assert_ok(s2_kv_cache_reserve(&ret->kv, N_KV, &err), &err);
}

static void close_model(s2_slow_model *m)
{
    s2_kv_cache_done(&m->kv);
    free(m->layers);
}

static int set_up(void **state)
{
    static fixture f;
    model_fixture_open(&f.m, "golden/tiny-s2-f16.gguf", 1);
    assert_true(f.m.hp.codebook_size < 1024 && f.m.hp.slow.n_embd <= 1024);
    assert_true(f.m.hp.n_codebooks < 16);
    for (size_t i = 0; i < N_PLACES; i++) {
        f.computes[i] = f.m.compute;
        f.computes[i].is_borrowed = i > 0;
        s2_compute_init_measure(&f.measures[i], &f.computes[i], true);
        f.measures[i].is_borrowed = i > 0;
    }
    uint32_t height = 1 + f.m.hp.n_codebooks;
    for (uint32_t t = 0; t < MAX_N; t++) {
        bool is_audio = t % 3 == 2;
        f.columns[t * height] = is_audio ? f.m.hp.semantic_begin + (int32_t)t : (int32_t)(20 + t);
        for (uint32_t j = 1; j < height; j++) {
            f.columns[t * height + j] = is_audio ? (int32_t)((t + j) % 8) : 0;
        }
    }
    *state = &f;
    return 0;
}

static int tear_down(void **state)
{
    fixture *f = *state;
    model_fixture_close(&f->m);
    return 0;
}

/* Columns 0 .. n-1 in one run, then one more. */
static void run_columns(fixture *f, const s2_slow_model *m, uint32_t n, size_t ret_bytes[N_PLACES],
        float *ret_logits, float *ret_hidden)
{
    sl_error err = {0};
    s2_slow_graph chunk = {0};
    s2_slow_graph step = {0};
    assert_ok(s2_slow_graph_init(&chunk, m, n, N_KV, &err), &err);
    assert_ok(s2_slow_graph_init(&step, m, 1, N_KV, &err), &err);
    assert_ok(s2_slow_graph_run(&chunk, f->columns, 0, NULL, NULL, &err), &err);
    const int32_t *last = f->columns + (size_t)n * (1 + f->m.hp.n_codebooks);
    assert_ok(s2_slow_graph_run(&step, last, n, ret_logits, ret_hidden, &err), &err);
    for (size_t i = 0; i < N_PLACES; i++) {
        ret_bytes[i] = s2_slow_graph_bytes(&chunk, &f->computes[i]);
        ret_bytes[i] += s2_slow_graph_bytes(&step, &f->computes[i]);
    }
    s2_slow_graph_done(&chunk);
    s2_slow_graph_done(&step);
}

static void measure_columns(
        fixture *f, const size_t at[2], uint32_t n_first, uint32_t n, size_t ret_bytes[N_PLACES])
{
    sl_error err = {0};
    s2_slow_model m;
    s2_slow_graph graphs[2] = {0};
    open_model(f, f->measures, at, n_first, &m);
    memset(ret_bytes, 0, N_PLACES * sizeof *ret_bytes);
    for (size_t k = 0; k < 2; k++) {
        assert_ok(s2_slow_graph_init(&graphs[k], &m, k == 0 ? n : 1, N_KV, &err), &err);
        assert_ok(s2_slow_graph_build_all(&graphs[k], &err), &err);
        for (size_t i = 0; i < N_PLACES; i++) {
            ret_bytes[i] += s2_slow_graph_bytes(&graphs[k], &f->measures[i]);
        }
        s2_slow_graph_done(&graphs[k]);
    }
    close_model(&m);
}

static void check_places(fixture *f, const size_t at[2], uint32_t n_first, uint32_t n)
{
    static float logits[1024];
    static float hidden[1024];
    size_t taken[N_PLACES];
    size_t measured[N_PLACES];
    s2_slow_model m;
    memset(logits, 0, sizeof logits);
    open_model(f, f->computes, at, n_first, &m);
    run_columns(f, &m, n, taken, logits, hidden);
    close_model(&m);
    size_t n_logits = f->m.hp.codebook_size + 1;
    assert_memory_equal(logits, f->logits, n_logits * sizeof *logits);
    assert_memory_equal(hidden, f->hidden, f->m.hp.slow.n_embd * sizeof *hidden);
    measure_columns(f, at, n_first, n, measured);
    for (size_t i = 0; i < N_PLACES; i++) {
        assert_int_equal(taken[i], measured[i]);
    }
    assert_true(taken[at[0]] > 0);
}

static void test_the_same_bits_wherever_the_parts_are(void **state)
{
    fixture *f = *state;
    static const size_t all[][2] = {{0, 0}, {1, 1}, {1, 0}, {0, 1}, {1, 2}, {2, 1}};
    uint32_t n_layer = f->m.hp.slow.n_layer;
    static const uint32_t counts[] = {2, 5, MAX_N - 1};
    for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
        size_t bytes[N_PLACES];
        s2_slow_model m;
        open_model(f, f->computes, all[0], UINT32_MAX, &m);
        run_columns(f, &m, counts[c], bytes, f->logits, f->hidden);
        close_model(&m);
        assert_true(bytes[0] > 0 && bytes[1] == 0 && bytes[2] == 0);
        for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
            for (uint32_t n_first = 1; n_first <= n_layer; n_first++) {
                check_places(f, all[i], n_first, counts[c]);
            }
            check_places(f, all[i], UINT32_MAX, counts[c]);
        }
    }
}

/* A graph is for a shape and for weights that are where they were. */
static void test_a_graph_fits_its_shape_and_its_weights(void **state)
{
    fixture *f = *state;
    static const size_t at[2] = {1, 1};
    static const s2_slow_graph zero;
    s2_slow_model m;
    s2_slow_graph sg = {0};
    sl_error err = {0};
    open_model(f, f->computes, at, UINT32_MAX, &m);
    assert_int_equal(s2_slow_graph_bytes(&sg, &f->computes[1]), 0);
    assert_ok(s2_slow_graph_init(&sg, &m, 3, N_KV, &err), &err);
    assert_true(s2_slow_graph_fits(&sg, 3, N_KV));
    assert_false(s2_slow_graph_fits(&sg, 2, N_KV));
    assert_false(s2_slow_graph_fits(&sg, 3, N_KV + 1));
    assert_int_equal(s2_slow_graph_bytes(&sg, &f->computes[0]), 0);
    static const s2_slot slots[] = {S2_SLOT_SLOW, S2_SLOT_SLOW_REST};
    for (size_t i = 0; i < 2; i++) {
        sg.epoch = 0;
        for (size_t k = 0; k < 2; k++) {
            sg.epoch += s2_weights_epoch(f->m.weights, slots[k]);
        }
        assert_true(s2_slow_graph_fits(&sg, 3, N_KV));
        /* Nothing arrives by this lease, so that it is never looked into. */
        s2_weights_attach(f->m.weights, slots[i], (sl_lease *)&sg, 0);
        s2_weights_detach(f->m.weights, slots[i]);
        assert_false(s2_slow_graph_fits(&sg, 3, N_KV));
    }
    s2_slow_graph_done(&sg);
    assert_memory_equal(&sg, &zero, sizeof sg);
    s2_slow_graph_done(&sg);
    /* Weights that nobody has a right to are not computed with: G3-02. */
    assert_ok(s2_slow_graph_init(&sg, &m, 3, N_KV, &err), &err);
    assert_int_equal(s2_slow_graph_run(&sg, f->columns, 0, NULL, NULL, &err), SL_EINTERNAL);
    s2_slow_graph_done(&sg);
    close_model(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_the_same_bits_wherever_the_parts_are),
            cmocka_unit_test(test_a_graph_fits_its_shape_and_its_weights),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
