/* One layer of each AR against plain loops in double: a prompt of five columns, then one more. */
#include "engine/model/ar_layer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model_fixture.h"
#include "small_synth.h"
#include "test_support.h"

#define D       32 /* widths of the small model: n_embd, */
#define HEADS   4
#define KV      2
#define HEAD    16
#define MAX_FF  64
#define QKV     ((HEADS + 2 * KV) * HEAD)
#define N_FIRST 5
#define N_ALL   6

static char *dir;

static int set_up(void **state)
{
    (void)state;
    dir = test_dir_create();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    test_dir_remove(dir);
    return 0;
}

static void open_model(model_fixture *m, uint32_t type)
{
    char path[512];
    s2_synth_opts opts = small_synth_opts(type);
    small_synth_write(&opts, dir, "layer");
    model_fixture_open_path(m, test_path(path, sizeof path, dir, "layer.gguf"), 1);
}

static double element(const struct ggml_tensor *t, size_t i)
{
    if (t->type == GGML_TYPE_F32) {
        return (double)((const float *)t->data)[i];
    }
    assert_int_equal(t->type, GGML_TYPE_F16);
    return (double)ggml_fp16_to_fp32(((const ggml_fp16_t *)t->data)[i]);
}

static void multiply(const struct ggml_tensor *w, const double *x, double *y)
{
    size_t n_in = (size_t)w->ne[0];
    for (size_t o = 0; o < (size_t)w->ne[1]; o++) {
        y[o] = 0;
        for (size_t i = 0; i < n_in; i++) {
            y[o] += element(w, o * n_in + i) * x[i];
        }
    }
}

static void normalize(const struct ggml_tensor *w, const double *x, size_t n, double eps, double *y)
{
    double squares = 0;
    for (size_t i = 0; i < n; i++) {
        squares += x[i] * x[i];
    }
    for (size_t i = 0; i < n; i++) {
        y[i] = x[i] / sqrt(squares / (double)n + eps) * element(w, i);
    }
}

/* Norm and rotation of one head of q or k. */
static void prepare_head(
        const s2_ar_hparams *hp, const struct ggml_tensor *norm, size_t position, double *head)
{
    if (norm) {
        double y[HEAD];
        normalize(norm, head, HEAD, (double)hp->rms_eps, y);
        memcpy(head, y, sizeof y);
    }
    for (size_t i = 0; i < HEAD; i += 2) {
        double angle = (double)position * pow((double)hp->rope_base, -(double)i / HEAD);
        double even = head[i];
        head[i] = even * cos(angle) - head[i + 1] * sin(angle);
        head[i + 1] = even * sin(angle) + head[i + 1] * cos(angle);
    }
}

/* q, k and v of every column so far. */
typedef struct plain {
    double qkv[N_ALL][QKV];
} plain;

static void attend(const plain *p, size_t t, double *out)
{
    for (size_t h = 0; h < HEADS; h++) {
        size_t k_at = (HEADS + h / (HEADS / KV)) * HEAD;
        double weights[N_ALL];
        double sum = 0;
        for (size_t s = 0; s <= t; s++) {
            double product = 0;
            for (size_t i = 0; i < HEAD; i++) {
                product += p->qkv[t][h * HEAD + i] * p->qkv[s][k_at + i];
            }
            weights[s] = exp(product / sqrt((double)HEAD));
            sum += weights[s];
        }
        for (size_t i = 0; i < HEAD; i++) {
            out[h * HEAD + i] = 0;
            for (size_t s = 0; s <= t; s++) {
                out[h * HEAD + i] += weights[s] / sum * p->qkv[s][k_at + KV * HEAD + i];
            }
        }
    }
}

/* Column t through the layer, in place. */
static void run_plain(
        plain *p, const s2_ar_hparams *hp, const s2_ar_layer *l, size_t t, double x[D])
{
    double a[D];
    double mixed[HEADS * HEAD];
    double gate[MAX_FF];
    double up[MAX_FF];
    normalize(l->attn_norm, x, D, (double)hp->rms_eps, a);
    multiply(l->wqkv, a, p->qkv[t]);
    for (size_t h = 0; h < HEADS + KV; h++) {
        prepare_head(hp, h < HEADS ? l->q_norm : l->k_norm, t, p->qkv[t] + h * HEAD);
    }
    attend(p, t, mixed);
    multiply(l->wo, mixed, a);
    for (size_t i = 0; i < D; i++) {
        x[i] += a[i];
    }
    normalize(l->ffn_norm, x, D, (double)hp->rms_eps, a);
    multiply(l->w1, a, gate);
    multiply(l->w3, a, up);
    for (size_t i = 0; i < hp->n_ff; i++) {
        gate[i] = gate[i] / (1 + exp(-gate[i])) * up[i];
    }
    multiply(l->w2, gate, a);
    for (size_t i = 0; i < D; i++) {
        x[i] += a[i];
    }
}

/* n columns behind n_past through the layer's graph, with a cache of n_kv rows looked at. */
static void run_graph(model_fixture *m, const s2_ar_hparams *hp, const s2_ar_layer *l,
        s2_kv_cache *kv, uint32_t n_past, uint32_t n, float *x)
{
    s2_graph g;
    s2_inputs inputs;
    sl_error err;
    assert_ok(s2_graph_init(&g, &m->compute, S2_AR_LAYER_NODES, &err), &err);
    assert_ok(s2_inputs_init(&inputs, 4, &err), &err);
    s2_ar_inputs in = s2_ar_inputs_add(&inputs, &m->compute, hp, n, kv->capacity);
    struct ggml_tensor *input = s2_inputs_add(&inputs, GGML_TYPE_F32, D, n);
    assert_ok(s2_inputs_alloc(&inputs, &m->compute, &err), &err);
    struct ggml_tensor *out = s2_ar_layer_build(&g, hp, l, &kv->layers[0], &in, input);
    ggml_set_output(out);
    ggml_build_forward_expand(g.cgraph, out);
    assert_true(ggml_graph_n_nodes(g.cgraph) <= S2_AR_LAYER_NODES);
    assert_ok(s2_graph_alloc(&g, &err), &err);
    memcpy(s2_inputs_host(&inputs, input), x, ggml_nbytes(input));
    s2_ar_inputs_fill(&in, &inputs, n_past);
    const s2_graph_read read = {out, x};
    assert_ok(s2_graph_run(&g, &inputs, &read, 1, &err), &err);
    s2_graph_done(&g);
    s2_inputs_done(&inputs);
}

static void check_layer(
        model_fixture *m, const s2_ar_hparams *hp, const char *prefix, double tolerance)
{
    s2_ar_layer layer;
    s2_kv_cache kv;
    sl_error err;
    plain *p = calloc(1, sizeof *p);
    float x[N_ALL * D];
    double want[N_ALL][D];
    double worst = 0;
    assert_ok(s2_ar_layer_bind(m->weights, hp, prefix, 1, &layer, &err), &err);
    assert_int_equal(layer.q_norm != NULL, hp->has_qk_norm);
    assert_ok(s2_kv_cache_init(&kv, &m->compute, 1, HEAD * KV, &err), &err);
    assert_ok(s2_kv_cache_reserve(&kv, 9, &err), &err);
    for (size_t i = 0; i < N_ALL * D; i++) {
        x[i] = (float)sin(0.7 * (double)i * (double)(i % 11));
        want[i / D][i % D] = (double)x[i];
    }
    for (size_t t = 0; t < N_ALL; t++) {
        run_plain(p, hp, &layer, t, want[t]);
    }
    run_graph(m, hp, &layer, &kv, 0, N_FIRST, x);
    run_graph(m, hp, &layer, &kv, N_FIRST, 1, x + N_FIRST * D);
    for (size_t i = 0; i < N_ALL * D; i++) {
        double d = fabs((double)x[i] - want[i / D][i % D]);
        assert_true(isfinite(x[i]));
        worst = d > worst ? d : worst;
    }
    print_message("%s: %.2e\n", prefix, worst);
    assert_true(worst <= tolerance);
    s2_kv_cache_done(&kv);
    free(p);
}

static void test_layers_equal_plain_loops(void **state)
{
    (void)state;
    static const uint32_t types[] = {GGML_TYPE_F32, GGML_TYPE_F16};
    for (int i = 0; i < 2; i++) {
        model_fixture m;
        open_model(&m, types[i]);
        assert_int_equal(m.hp.slow.n_embd, D);
        assert_int_equal(m.hp.slow.head_dim, HEAD);
        assert_true(m.hp.slow.n_ff <= MAX_FF);
        check_layer(&m, &m.hp.slow, "layers.", 2e-5);
        check_layer(&m, &m.hp.fast, "fast_layers.", 2e-5);
        model_fixture_close(&m);
    }
}

static void test_a_layer_that_is_not_there_is_named(void **state)
{
    (void)state;
    model_fixture m;
    s2_ar_layer layer;
    sl_error err = {0};
    open_model(&m, GGML_TYPE_F32);
    assert_int_equal(
            s2_ar_layer_bind(m.weights, &m.hp.slow, "layers.", 2, &layer, &err), SL_EFORMAT);
    assert_non_null(strstr(err.msg, "layers.2.attention_norm.weight"));
    model_fixture_close(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_layers_equal_plain_loops),
            cmocka_unit_test(test_a_layer_that_is_not_there_is_named),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
