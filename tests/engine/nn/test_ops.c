/* The small operations against plain loops in double. */
#include "engine/nn/ops.h"

#include <math.h>
#include <stdlib.h>

#include "test_support.h"

#define MAX_ELEMS 8192

static s2_compute compute;
static unsigned lcg;

static int set_up(void **state)
{
    (void)state;
    sl_error err;
    return s2_compute_init(&compute, 1, &err);
}

static int tear_down(void **state)
{
    (void)state;
    s2_compute_done(&compute);
    return 0;
}

/* Uniform in -1..1, the same in each run. */
static float noise(void)
{
    lcg = lcg * 1664525U + 1013904223U;
    return (float)(lcg >> 8) / 8388608.0F - 1.0F;
}

/* A graph with inputs that hold noise. */
typedef struct bench {
    s2_graph g;
    size_t n_inputs;
    struct ggml_tensor *inputs[4];
    float *values[4]; /* what the inputs stand for, as F32 */
    s2_state weight;  /* the one that has its memory before the graph, if there is one */
} bench;

static bench begin(void)
{
    bench b = {0};
    sl_error err;
    assert_ok(s2_graph_init(&b.g, &compute, 64, &err), &err);
    lcg = 1;
    return b;
}

static struct ggml_tensor *add_input(bench *b, enum ggml_type type, int64_t ne0, int64_t ne1)
{
    struct ggml_tensor *t = ggml_new_tensor_2d(b->g.ctx, type, ne0, ne1);
    ggml_set_input(t);
    b->inputs[b->n_inputs++] = t;
    return t;
}

static void fill_one(bench *b, size_t i)
{
    struct ggml_tensor *t = b->inputs[i];
    size_t n = (size_t)ggml_nelements(t);
    assert_true(n <= MAX_ELEMS);
    float *v = calloc(n, sizeof *v);
    char *raw = calloc(1, ggml_nbytes(t));
    b->values[i] = v;
    for (size_t k = 0; k < n; k++) {
        v[k] = noise();
    }
    if (t->type == GGML_TYPE_F32) {
        ggml_backend_tensor_set(t, v, 0, n * sizeof *v);
    } else {
        ggml_quantize_chunk(t->type, v, raw, 0, t->ne[1], t->ne[0], NULL);
        ggml_backend_tensor_set(t, raw, 0, ggml_nbytes(t));
        ggml_get_type_traits(t->type)->to_float(raw, v, (int64_t)n);
    }
    free(raw);
}

static void fill(bench *b)
{
    for (size_t i = 0; i < b->n_inputs; i++) {
        if (!b->values[i]) {
            fill_one(b, i);
        }
    }
}

/* A weight vector: it has its numbers before the graph is allocated. */
static struct ggml_tensor *add_weight(bench *b, enum ggml_type type, int64_t ne0)
{
    sl_error err;
    assert_ok(s2_state_init(&b->weight, 1, &err), &err);
    struct ggml_tensor *t = ggml_new_tensor_1d(b->weight.ctx, type, ne0);
    assert_ok(s2_state_alloc(&b->weight, &compute, SL_MEM_COMPUTE, &err), &err);
    b->inputs[b->n_inputs++] = t;
    fill_one(b, b->n_inputs - 1);
    return t;
}

/* Computes `out` with the inputs full of noise; free() the result. */
static float *compute_noise(bench *b, struct ggml_tensor *out)
{
    sl_error err;
    float *v = malloc(ggml_nbytes(out));
    ggml_set_output(out);
    ggml_build_forward_expand(b->g.cgraph, out);
    assert_ok(s2_graph_alloc(&b->g, &err), &err);
    fill(b);
    assert_ok(s2_graph_run(&b->g, NULL, NULL, 0, &err), &err);
    ggml_backend_tensor_get(out, v, 0, ggml_nbytes(out));
    return v;
}

static void end(bench *b, float *out)
{
    free(out);
    for (size_t i = 0; i < b->n_inputs; i++) {
        free(b->values[i]);
    }
    s2_graph_done(&b->g);
    s2_state_done(&b->weight);
}

static void assert_near(float got, double want, double tolerance)
{
    if (!(fabs((double)got - want) <= tolerance)) {
        fail_msg("%.9g, want %.9g", (double)got, want);
    }
}

static void test_rms_norm(void **state)
{
    (void)state;
    static const enum ggml_type types[] = {GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_BF16};
    for (int k = 0; k < 3; k++) {
        bench b = begin();
        struct ggml_tensor *x = add_input(&b, GGML_TYPE_F32, 48, 5);
        struct ggml_tensor *w = add_weight(&b, types[k], 48);
        float *y = compute_noise(&b, s2_nn_rms_norm(&b.g, x, w, 1e-2F));
        for (size_t t = 0; t < 5; t++) {
            double squares = 0;
            for (size_t i = 0; i < 48; i++) {
                squares += pow((double)b.values[0][t * 48 + i], 2);
            }
            double scale = 1.0 / sqrt(squares / 48 + 1e-2);
            for (size_t i = 0; i < 48; i++) {
                double want = (double)b.values[0][t * 48 + i] * scale * (double)b.values[1][i];
                assert_near(y[t * 48 + i], want, 1e-6);
            }
        }
        end(&b, y);
    }
}

static void test_rope_turns_neighbours(void **state)
{
    (void)state;
    enum {
        DIM = 6,
        HEADS = 2,
        N = 4
    };
    static const int32_t positions[N] = {0, 1, 17, 4000};
    bench b = begin();
    sl_error err;
    struct ggml_tensor *x = add_input(&b, GGML_TYPE_F32, DIM * HEADS, N);
    struct ggml_tensor *pos = ggml_new_tensor_1d(b.g.ctx, GGML_TYPE_I32, N);
    ggml_set_input(pos);
    struct ggml_tensor *out =
            s2_nn_rope(&b.g, ggml_reshape_3d(b.g.ctx, x, DIM, HEADS, N), pos, 1e4F);
    float y[DIM * HEADS * N];
    ggml_set_output(out);
    ggml_build_forward_expand(b.g.cgraph, out);
    assert_ok(s2_graph_alloc(&b.g, &err), &err);
    fill(&b);
    ggml_backend_tensor_set(pos, positions, 0, sizeof positions);
    assert_ok(s2_graph_run(&b.g, NULL, NULL, 0, &err), &err);
    ggml_backend_tensor_get(out, y, 0, sizeof y);
    for (size_t i = 0; i < DIM * HEADS * N; i += 2) {
        double pair = (double)(i % DIM) / 2;
        size_t column = (size_t)i / (DIM * HEADS);
        double angle = (double)positions[column] * pow(1e4, -2.0 * pair / DIM);
        double even = (double)b.values[0][i];
        double odd = (double)b.values[0][i + 1];
        /* ggml computes the angle in F32: 4000 radians are known to 2e-4. */
        assert_near(y[i], even * cos(angle) - odd * sin(angle), 1e-3);
        assert_near(y[i + 1], even * sin(angle) + odd * cos(angle), 1e-3);
    }
    end(&b, NULL);
}

/* W [n_in, n_out] times x [n_in, n] in double. */
static double product(const float *w, const float *x, size_t n_in, size_t row, size_t col)
{
    double sum = 0;
    for (size_t i = 0; i < n_in; i++) {
        sum += (double)w[row * n_in + i] * (double)x[col * n_in + i];
    }
    return sum;
}

static void check_linear(enum ggml_type type, int64_t n_in, int64_t n_out, int64_t n, double tol)
{
    bench b = begin();
    struct ggml_tensor *w = add_input(&b, type, n_in, n_out);
    struct ggml_tensor *x = add_input(&b, GGML_TYPE_F32, n_in, n);
    float *y = compute_noise(&b, s2_nn_linear(&b.g, w, x));
    for (size_t t = 0; t < (size_t)n; t++) {
        for (size_t o = 0; o < (size_t)n_out; o++) {
            double want = product(b.values[0], b.values[1], (size_t)n_in, o, t);
            assert_near(y[t * (size_t)n_out + o], want, tol);
        }
    }
    end(&b, y);
}

static void test_linear_in_floats_and_halves(void **state)
{
    (void)state;
    static const int64_t ins[] = {1, 2, 7, 8, 31, 64, 100};
    static const int64_t outs[] = {1, 2, 3, 5, 8, 17};
    static const int64_t columns[] = {1, 2, 3, 4, 9};
    for (size_t i = 0; i < 7; i++) {
        for (size_t o = 0; o < 6; o++) {
            for (size_t c = 0; c < 5; c++) {
                check_linear(GGML_TYPE_F32, ins[i], outs[o], columns[c], 1e-5);
                check_linear(GGML_TYPE_F16, ins[i], outs[o], columns[c], 1e-5);
            }
        }
    }
}

static void test_linear_in_other_types(void **state)
{
    (void)state;
    check_linear(GGML_TYPE_BF16, 96, 9, 3, 0.1);
    check_linear(GGML_TYPE_Q8_0, 96, 9, 3, 0.1);
    check_linear(GGML_TYPE_Q4_K, 256, 5, 2, 0.3);
    check_linear(GGML_TYPE_Q6_K, 256, 5, 1, 0.3);
}

static void test_swiglu_ffn(void **state)
{
    (void)state;
    enum {
        D = 12,
        FF = 20,
        N = 3
    };
    bench b = begin();
    struct ggml_tensor *x = add_input(&b, GGML_TYPE_F32, D, N);
    struct ggml_tensor *w1 = add_input(&b, GGML_TYPE_F32, D, FF);
    struct ggml_tensor *w3 = add_input(&b, GGML_TYPE_F16, D, FF);
    struct ggml_tensor *w2 = add_input(&b, GGML_TYPE_F32, FF, D);
    float *y = compute_noise(&b, s2_nn_swiglu_ffn(&b.g, x, w1, w3, w2));
    for (size_t t = 0; t < N; t++) {
        float h[FF];
        for (size_t f = 0; f < FF; f++) {
            double gate = product(b.values[1], b.values[0], D, f, t);
            double up = product(b.values[2], b.values[0], D, f, t);
            h[f] = (float)(gate / (1.0 + exp(-gate)) * up);
        }
        for (size_t o = 0; o < D; o++) {
            assert_near(y[t * D + o], product(b.values[3], h, FF, o, 0), 1e-5);
        }
    }
    end(&b, y);
}

static void test_f32_tensors_are_not_cast(void **state)
{
    (void)state;
    bench b = begin();
    struct ggml_tensor *x = add_input(&b, GGML_TYPE_F32, 4, 1);
    assert_ptr_equal(s2_nn_f32(&b.g, x), x);
    struct ggml_tensor *h = add_weight(&b, GGML_TYPE_F16, 4);
    float *y = compute_noise(&b, ggml_add(b.g.ctx, s2_nn_f32(&b.g, h), x));
    for (size_t i = 0; i < 4; i++) {
        assert_true(y[i] == b.values[0][i] + b.values[1][i]);
    }
    end(&b, y);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_rms_norm),
            cmocka_unit_test(test_rope_turns_neighbours),
            cmocka_unit_test(test_linear_in_floats_and_halves),
            cmocka_unit_test(test_linear_in_other_types),
            cmocka_unit_test(test_swiglu_ffn),
            cmocka_unit_test(test_f32_tensors_are_not_cast),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
