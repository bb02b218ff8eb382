/* Tensors of the model as ggml tensors in place: found by name, refused by name. */
#include "engine/nn/weights.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "broken_model.h"
#include "small_synth.h"
#include "test_support.h"

static char *dir;
static char path[512];
static char copy_path[512];

static int set_up(void **state)
{
    (void)state;
    s2_synth_opts opts = small_synth_opts(GGML_TYPE_F16);
    dir = test_dir_create();
    small_synth_write(&opts, dir, "sound");
    test_path(path, sizeof path, dir, "sound.gguf");
    test_path(copy_path, sizeof copy_path, dir, "copy.gguf");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    test_dir_remove(dir);
    return 0;
}

static void test_every_tensor_lies_in_the_mapping(void **state)
{
    (void)state;
    sl_error err;
    sl_model *model = NULL;
    s2_weights *w = NULL;
    assert_ok(sl_model_open(path, &model, &err), &err);
    assert_ok(s2_weights_open(model, NULL, &w, &err), &err);
    assert_ok(s2_weights_use_mapping(w, &err), &err);
    assert_string_equal(s2_weights_path(w), path);
    for (uint64_t i = 0; i < sl_model_n_tensors(model); i++) {
        const sl_tensor *t = sl_model_tensor_at(model, i);
        const struct ggml_tensor *g =
                s2_weights_find(w, "%.*s", (int)t->info->name.n, t->info->name.p);
        assert_non_null(g);
        assert_ptr_equal(g->data, sl_model_data(model, t));
        assert_int_equal(g->type, t->info->type);
        assert_int_equal(ggml_nbytes(g), t->info->n_bytes);
        for (int d = 0; d < 4; d++) {
            assert_int_equal(g->ne[d], t->info->ne[d]);
        }
    }
    assert_null(s2_weights_find(w, "layers.%d.nothing", 0));
    assert_null(s2_weights_find(w, "%s", ""));
    s2_weights_close(&w);
    assert_null(w);
    s2_weights_close(&w);
    s2_weights_close(NULL);
    sl_model_close(&model);
}

static void expect_need(const s2_weights *w, s2_weight_kind kind, int64_t ne0, int64_t ne1,
        const char *name, const char *needle)
{
    sl_error err = {0};
    struct ggml_tensor *t = NULL;
    const int64_t ne[3] = {ne0, ne1, 1};
    int r = s2_weights_need(w, kind, ne, &t, &err, "%s", name);
    if (!needle) {
        assert_ok(r, &err);
        assert_non_null(t);
        return;
    }
    assert_int_equal(r, SL_EFORMAT);
    assert_null(t);
    assert_non_null(strstr(err.msg, name));
    if (!strstr(err.msg, needle)) {
        fail_msg("%s", err.msg);
    }
}

static void test_needs(void **state)
{
    (void)state;
    sl_error err;
    sl_model *model = NULL;
    s2_weights *w = NULL;
    broken_model *m = broken_model_open(path);
    const uint64_t ne[2] = {32, 0};
    broken_set_tensor(m, "layers.0.ffn_norm.weight", GGML_TYPE_Q8_0, 1, ne, NULL);
    broken_set_tensor(m, "fast_norm.weight", GGML_TYPE_I32, 1, ne, NULL);
    broken_set_tensor(m, "norm.weight", GGML_TYPE_F32, 2, ne, NULL);
    broken_model_write(m, copy_path);
    broken_model_close(m);
    assert_ok(sl_model_open(copy_path, &model, &err), &err);
    assert_ok(s2_weights_open(model, NULL, &w, &err), &err);
    expect_need(w, S2_WEIGHT_MATRIX, 32, 64, "layers.0.feed_forward.w1.weight", NULL);
    expect_need(w, S2_WEIGHT_MATRIX, 64, 32, "layers.0.feed_forward.w1.weight",
            "[32, 64, 1, 1], need [64, 32, 1, 1]");
    expect_need(w, S2_WEIGHT_MATRIX, 32, 1, "layers.9.feed_forward.w1.weight", "missing");
    expect_need(w, S2_WEIGHT_MATRIX, 32, 1, "norm.weight", "missing or empty");
    expect_need(w, S2_WEIGHT_MATRIX, 32, 1, "layers.0.ffn_norm.weight", NULL);
    expect_need(w, S2_WEIGHT_VECTOR, 32, 1, "layers.0.ffn_norm.weight", "type q8_0");
    expect_need(w, S2_WEIGHT_MATRIX, 32, 1, "fast_norm.weight", "type i32");
    expect_need(w, S2_WEIGHT_VECTOR, 32, 1, "fast_norm.weight", "type i32");
    s2_weights_close(&w);
    sl_model_close(&model);
}

/* Three halves before it put a tensor at an address that no vector of floats may have. */
static void test_a_misplaced_tensor_is_named(void **state)
{
    (void)state;
    sl_error err = {0};
    sl_model *model = NULL;
    s2_weights *w = NULL;
    broken_model *m = broken_model_open(path);
    const uint64_t ne[1] = {3};
    broken_set_alignment(m, 2);
    broken_set_tensor(m, "norm.weight", GGML_TYPE_F16, 1, ne, NULL);
    broken_model_write(m, copy_path);
    broken_model_close(m);
    assert_ok(sl_model_open(copy_path, &model, &err), &err);
    assert_int_equal(s2_weights_open(model, NULL, &w, &err), SL_EFORMAT);
    assert_null(w);
    assert_non_null(strstr(err.msg, "layers.0.attention_norm.weight"));
    assert_non_null(strstr(err.msg, "multiple of 4"));
    sl_model_close(&model);
}

static void test_every_allocation_may_fail(void **state)
{
    (void)state;
    sl_error err;
    sl_model *model = NULL;
    s2_weights *w = NULL;
    assert_ok(sl_model_open(path, &model, &err), &err);
    long n = 0;
    for (int r = SL_ENOMEM; r < 0; n++) {
        assert_true(n < 100);
        sl__mem_fail_after(n);
        r = s2_weights_open(model, NULL, &w, &err);
        sl__mem_fail_after(-1);
        assert_true(r == SL_OK || r == SL_ENOMEM);
    }
    assert_true(n > 2);
    s2_weights_close(&w);
    sl_model_close(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_every_tensor_lies_in_the_mapping),
            cmocka_unit_test(test_needs),
            cmocka_unit_test(test_a_misplaced_tensor_is_named),
            cmocka_unit_test(test_every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
