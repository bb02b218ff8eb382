/*
 * Every type that AR weights may have: a small model of the type against the same model whose matrices are
 * the F32 values that the type stands for. They differ by what the product does to its input alone (Q8
 * blocks for most types), so a wrong table, row length or scale would show at once.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ggml.h"

#include "broken_model.h"
#include "engine/model/fast_ar.h"
#include "engine/model/slow_ar.h"
#include "model_fixture.h"
#include "small_synth.h"
#include "test_support.h"

#define N_COLUMNS 6
#define N_BOOKS   3
#define N_CODES   16

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

/* Rows of 256, which every block divides. */
static s2_synth_opts wide_opts(uint32_t type)
{
    sl_error err;
    s2_synth_opts opts = small_synth_opts(type);
    opts.hp.slow = (s2_ar_hparams){2, 256, 4, 2, 64, 256, 1e6F, 1e-6F, true};
    opts.hp.fast = (s2_ar_hparams){2, 256, 4, 2, 64, 256, 1e6F, 1e-6F, false};
    assert_ok(s2_synth_complete(&opts, &err), &err);
    return opts;
}

/* Replaces the matrices of `from` that are of `type` by the floats they stand for. */
static void write_floats(const char *from, const char *to, uint32_t type)
{
    broken_model *m = broken_model_open(from);
    const sl_gguf *g = broken_model_gguf(m);
    size_t n_bytes = 0;
    size_t n_replaced = 0;
    char *file = test_read_file(from, &n_bytes);
    for (uint64_t i = 0; i < sl_gguf_n_tensors(g); i++) {
        const sl_gguf_tensor *t = sl_gguf_tensor_at(g, i);
        if (t->type != type || memcmp(t->name.p, "c.", 2) == 0) {
            continue;
        }
        char name[96] = "";
        size_t n = (size_t)(t->ne[0] * t->ne[1]);
        float *floats = malloc(n * sizeof *floats);
        assert_non_null(floats);
        memcpy(name, t->name.p, t->name.n);
        if (type == GGML_TYPE_F32) {
            memcpy(floats, file + t->offset, n * sizeof *floats);
        } else {
            ggml_get_type_traits((enum ggml_type)type)
                    ->to_float(file + t->offset, floats, (int64_t)n);
        }
        broken_set_tensor(m, name, GGML_TYPE_F32, t->n_dims, t->ne, floats);
        free(floats);
        n_replaced++;
    }
    assert_true(n_replaced >= 20);
    broken_model_write(m, to);
    broken_model_close(m);
    free(file);
}

typedef struct outputs {
    float prefill[N_CODES + 1];
    float step[N_CODES + 1];
    float hidden[256];
    float fast[2][N_CODES];
} outputs;

static void run(const char *path, outputs *out)
{
    sl_error err;
    model_fixture m;
    s2_slow_ar *slow = NULL;
    s2_fast_ar *fast = NULL;
    model_fixture_open_path(&m, path, 1);
    int32_t begin = m.hp.semantic_begin;
    const int32_t columns[N_COLUMNS + 1][1 + N_BOOKS] = {{1, 0, 0, 0}, {200, 0, 0, 0},
            {begin + 3, 3, 15, 0}, {begin + 15, 15, 7, 7}, {97, 0, 0, 0}, {31, 0, 0, 0},
            {begin + 8, 8, 1, 14}};
    const s2_slow_places places = s2_slow_places_on(&m.compute);
    assert_ok(s2_slow_ar_create(&m.hp, begin - 33, m.weights, &places, &slow, &err), &err);
    assert_ok(s2_fast_ar_create(&m.hp, m.weights, &m.compute, &fast, &err), &err);
    assert_ok(
            s2_slow_ar_eval(slow, columns[0], N_COLUMNS, 0, out->prefill, out->hidden, &err), &err);
    assert_ok(s2_slow_ar_eval(slow, columns[N_COLUMNS], 1, 0, out->step, out->hidden, &err), &err);
    assert_ok(s2_fast_ar_begin(fast, out->hidden, 5, out->fast[0], &err), &err);
    assert_ok(s2_fast_ar_next(fast, 15, out->fast[1], &err), &err);
    s2_fast_ar_free(&fast);
    s2_slow_ar_free(&slow);
    model_fixture_close(&m);
}

static float spread(const float *v, size_t n)
{
    double sum = 0;
    double squares = 0;
    for (size_t i = 0; i < n; i++) {
        sum += (double)v[i];
        squares += (double)v[i] * (double)v[i];
    }
    double mean = sum / (double)n;
    return (float)sqrt(squares / (double)n - mean * mean);
}

/* Largest difference of any output, in standard deviations of that output. */
static float worst_of(const outputs *a, const outputs *b)
{
    const float *pairs[][2] = {{a->prefill, b->prefill}, {a->step, b->step}, {a->hidden, b->hidden},
            {a->fast[0], b->fast[0]}, {a->fast[1], b->fast[1]}};
    const size_t sizes[] = {N_CODES + 1, N_CODES + 1, 256, N_CODES, N_CODES};
    float worst = 0;
    for (size_t i = 0; i < 5; i++) {
        float scale = spread(pairs[i][1], sizes[i]);
        assert_true(scale > 0.01F);
        worst = fmaxf(worst, largest_difference(pairs[i][0], pairs[i][1], sizes[i]) / scale);
    }
    return worst;
}

static void speak_two_frames(const char *path)
{
    sl_error err;
    s2_engine *e = NULL;
    s2_stats stats;
    assert_ok(small_synth_try_open(path, &e, &err), &err);
    s2_speak_opts opts = small_synth_speak("a", 2);
    assert_ok(s2_engine_speak(e, &opts, &stats, &err), &err);
    assert_int_equal(stats.n_frames, 2);
    s2_engine_close(&e);
}

static void check_type(const char *name, float tolerance)
{
    char typed[512];
    char floats[512];
    uint32_t type = 0;
    outputs a;
    outputs b;
    assert_true(s2_synth_type(name, &type));
    s2_synth_opts opts = wide_opts(type);
    small_synth_write(&opts, dir, "typed");
    test_path(typed, sizeof typed, dir, "typed.gguf");
    test_path(floats, sizeof floats, dir, "floats.gguf");
    write_floats(typed, floats, type);
    speak_two_frames(typed);
    run(typed, &a);
    run(floats, &b);
    float worst = worst_of(&a, &b);
    print_message("%s: %.2e\n", name, (double)worst);
    assert_true(worst <= tolerance);
}

/* These types are multiplied with inputs that stay F32: nothing but the order of sums is left. */
static void test_types_that_are_multiplied_in_place_are_exact(void **state)
{
    (void)state;
    check_type("f32", 0);
    check_type("f16", 1e-4F);
    check_type("q8_0", 1e-4F);
}

static void test_bf16_rounds_its_inputs(void **state)
{
    (void)state;
    check_type("bf16", 0.03F);
}

static void test_small_blocks(void **state)
{
    (void)state;
    static const char *const names[] = {"q4_0", "q4_1", "q5_0", "q5_1"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        check_type(names[i], 0.1F);
    }
}

static void test_k_quants(void **state)
{
    (void)state;
    static const char *const names[] = {"q2_K", "q3_K", "q4_K", "q5_K", "q6_K"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        check_type(names[i], 0.15F);
    }
}

/* Opens a copy in which one tensor is zeros of that type and speaks; false if it is refused by name. */
static bool works_with(broken_model *m, const char *copy, const char *name, uint32_t type)
{
    sl_error err;
    s2_engine *e = NULL;
    s2_stats stats;
    const sl_gguf_tensor *t =
            sl_gguf_find_tensor(broken_model_gguf(m), (sl_span){name, strlen(name)});
    broken_set_tensor(m, name, type, t->n_dims, t->ne, NULL);
    broken_model_write(m, copy);
    int r = small_synth_try_open(copy, &e, &err);
    if (r < 0) {
        assert_int_equal(r, SL_EFORMAT);
        assert_non_null(strstr(err.msg, name));
        return false;
    }
    s2_speak_opts speak = small_synth_speak("a", 1);
    assert_ok(s2_engine_speak(e, &speak, &stats, &err), &err);
    s2_engine_close(&e);
    return true;
}

/* Types that no tool makes of S2: each works or is refused with the tensor's name. */
static void check_all_types(
        const s2_synth_opts *opts, const char *const *names, size_t n_names, size_t n_least)
{
    char path[512];
    size_t n_working = 0;
    small_synth_write(opts, dir, "typed");
    test_path(path, sizeof path, dir, "typed.gguf");
    broken_model *m = broken_model_open(path);
    for (uint32_t type = 0; type < GGML_TYPE_COUNT; type++) {
        sl_tensor_type_info info;
        for (size_t i = 0; sl_tensor_type(type, &info) && i < n_names; i++) {
            n_working += works_with(m, path, names[i], type);
        }
    }
    broken_model_close(m);
    print_message("%zu pairs of a type and a tensor work\n", n_working);
    assert_true(n_working >= n_least);
}

static void test_every_other_type_works_or_is_refused(void **state)
{
    (void)state;
    /* One that is both gathered and multiplied, and a vector. */
    static const char *const names[] = {"embeddings.weight", "layers.0.ffn_norm.weight"};
    sl_error err;
    s2_synth_opts opts = wide_opts(GGML_TYPE_F16);
    opts.hp.slow.n_layer = 1;
    opts.hp.fast.n_layer = 1;
    assert_ok(s2_synth_complete(&opts, &err), &err);
    check_all_types(&opts, names, 2, 13 + 3);
}

static void test_every_other_type_in_the_codec(void **state)
{
    (void)state;
    static const char *const names[] = {"c.quantizer.post_module.layers.0.attention.wqkv.weight"};
    sl_error err;
    s2_synth_opts opts = small_synth_opts(GGML_TYPE_F16);
    opts.hp.codec.latent_dim = 256;
    opts.hp.codec.pre_tf.n_layer = 1;
    opts.hp.codec.post_tf.n_layer = 1;
    assert_ok(s2_synth_complete(&opts, &err), &err);
    check_all_types(&opts, names, 1, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_types_that_are_multiplied_in_place_are_exact),
            cmocka_unit_test(test_bf16_rounds_its_inputs),
            cmocka_unit_test(test_small_blocks),
            cmocka_unit_test(test_k_quants),
            cmocka_unit_test(test_every_other_type_works_or_is_refused),
            cmocka_unit_test(test_every_other_type_in_the_codec),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
