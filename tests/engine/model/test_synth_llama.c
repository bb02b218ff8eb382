/* Models for llama.cpp: what the file says, name by name; sizes that do not fit. tests/apps/preload runs them. */
#include "engine/model/synth_llama.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "ggml.h"

#include "base/mem.h"
#include "sluice/gguf.h"
#include "sluice/model.h"
#include "test_support.h"

static char *dir;
static char path[512];

static int set_up(void **state)
{
    (void)state;
    dir = test_dir_create();
    test_path(path, sizeof path, dir, "llama.gguf");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    test_dir_remove(dir);
    return 0;
}

/* Two layers of a width that Q8_0 and the K types can have. */
static s2_synth_llama small(uint32_t n_expert)
{
    s2_synth_llama m = n_expert > 0 ? s2_synth_llama_moe() : s2_synth_llama_dense();
    m.n_layer = 2;
    m.n_embd = 256;
    m.n_head = 4;
    m.n_head_kv = 2;
    m.head_dim = 64;
    m.n_ff = 512;
    m.n_vocab = 300;
    m.n_expert = n_expert;
    m.n_expert_used = n_expert > 2 ? 2 : n_expert;
    return m;
}

static sl_model *write_and_open(const s2_synth_llama *m)
{
    sl_model *model = NULL;
    sl_error err;
    assert_ok(s2_synth_llama_write(m, path, &err), &err);
    assert_ok(sl_model_open(path, &model, &err), &err);
    return model;
}

static void assert_shape(const sl_model *model, const char *name, uint32_t type, uint64_t ne0,
        uint64_t ne1, uint64_t ne2)
{
    const sl_tensor *t = sl_model_find(model, name);
    assert_non_null(t);
    assert_int_equal(t->info->type, type);
    assert_int_equal(t->info->ne[0], ne0);
    assert_int_equal(t->info->ne[1], ne1);
    assert_int_equal(t->info->ne[2], ne2);
}

static void test_a_dense_model(void **state)
{
    (void)state;
    s2_synth_llama m = small(0);
    sl_model *model = write_and_open(&m);
    assert_int_equal(sl_model_n_tensors(model), 3 + 2 * 9);
    assert_shape(model, "token_embd.weight", GGML_TYPE_Q8_0, 256, 300, 1);
    assert_shape(model, "output.weight", GGML_TYPE_Q8_0, 256, 300, 1);
    assert_shape(model, "output_norm.weight", GGML_TYPE_F32, 256, 1, 1);
    assert_shape(model, "blk.0.attn_norm.weight", GGML_TYPE_F32, 256, 1, 1);
    assert_shape(model, "blk.1.attn_q.weight", GGML_TYPE_Q8_0, 256, 256, 1);
    assert_shape(model, "blk.1.attn_k.weight", GGML_TYPE_Q8_0, 256, 128, 1);
    assert_shape(model, "blk.1.attn_v.weight", GGML_TYPE_Q8_0, 256, 128, 1);
    assert_shape(model, "blk.1.attn_output.weight", GGML_TYPE_Q8_0, 256, 256, 1);
    assert_shape(model, "blk.1.ffn_gate.weight", GGML_TYPE_Q8_0, 256, 512, 1);
    assert_shape(model, "blk.1.ffn_down.weight", GGML_TYPE_Q8_0, 512, 256, 1);
    assert_null(sl_gguf_find(sl_model_gguf(model, 0), "llama.expert_count"));
    sl_model_close(&model);
}

static void test_a_model_with_experts(void **state)
{
    (void)state;
    uint32_t n = 0;
    sl_error err;
    s2_synth_llama m = small(6);
    m.type = GGML_TYPE_Q4_K;
    m.embedding_type = GGML_TYPE_F16;
    sl_model *model = write_and_open(&m);
    const sl_gguf *gguf = sl_model_gguf(model, 0);
    assert_int_equal(sl_model_n_tensors(model), 3 + 2 * 10);
    assert_shape(model, "token_embd.weight", GGML_TYPE_F16, 256, 300, 1);
    assert_shape(model, "output.weight", GGML_TYPE_Q4_K, 256, 300, 1);
    assert_shape(model, "blk.1.ffn_gate_inp.weight", GGML_TYPE_F32, 256, 6, 1);
    assert_shape(model, "blk.1.ffn_gate_exps.weight", GGML_TYPE_Q4_K, 256, 512, 6);
    assert_shape(model, "blk.1.ffn_up_exps.weight", GGML_TYPE_Q4_K, 256, 512, 6);
    assert_shape(model, "blk.1.ffn_down_exps.weight", GGML_TYPE_Q4_K, 512, 256, 6);
    assert_null(sl_model_find(model, "blk.1.ffn_gate.weight"));
    assert_ok(sl_gguf_get_u32(gguf, "llama.expert_count", &n, &err), &err);
    assert_int_equal(n, 6);
    assert_ok(sl_gguf_get_u32(gguf, "llama.expert_used_count", &n, &err), &err);
    assert_int_equal(n, 2);
    assert_ok(sl_gguf_get_u32(gguf, "llama.rope.dimension_count", &n, &err), &err);
    assert_int_equal(n, 64);
    sl_model_close(&model);
}

/* A token for every byte, no two alike, and lists of one length. */
static void test_the_vocabulary(void **state)
{
    (void)state;
    sl_error err;
    sl_span texts[300];
    s2_synth_llama m = small(0);
    sl_model *model = write_and_open(&m);
    const sl_gguf *gguf = sl_model_gguf(model, 0);
    const sl_gguf_kv *tokens = sl_gguf_find(gguf, "tokenizer.ggml.tokens");
    const sl_gguf_kv *types = sl_gguf_find(gguf, "tokenizer.ggml.token_type");
    const sl_gguf_kv *scores = sl_gguf_find(gguf, "tokenizer.ggml.scores");
    assert_true(tokens && types && scores);
    assert_int_equal(tokens->n, 300);
    assert_int_equal(types->n, 300);
    assert_int_equal(scores->n, 300);
    const char *cursor = tokens->data;
    for (size_t i = 0; i < 300; i++) {
        assert_ok(sl_gguf_next_str(tokens, &cursor, &texts[i], &err), &err);
        for (size_t k = 0; k < i; k++) {
            assert_false(texts[k].n == texts[i].n && !memcmp(texts[k].p, texts[i].p, texts[i].n));
        }
    }
    for (size_t i = 0; i < 256; i++) {
        int64_t type = 0;
        char name[8];
        snprintf(name, sizeof name, "<0x%02X>", (unsigned)i);
        assert_int_equal(texts[3 + i].n, 6);
        assert_memory_equal(texts[3 + i].p, name, 6);
        assert_ok(sl_gguf_elem_i64(types, 3 + i, &type, &err), &err);
        assert_int_equal(type, 6);
    }
    sl_model_close(&model);
}

static void test_sizes_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    sl_error err = {0};
    struct {
        const char *what;
        s2_synth_llama m;
    } rows[] = {
            {"vocabulary of 259", small(0)},
            {"4 heads of 64 share 3", small(0)},
            {"4 heads of 33 share 2", small(0)},
            {"7 of 6 experts", small(6)},
            {"0 of 6 experts", small(6)},
            {"row length 288 of blk.0.attn_q.weight", small(0)},
    };
    rows[0].m.n_vocab = 259;
    rows[1].m.n_head_kv = 3;
    rows[2].m.head_dim = 33;
    rows[3].m.n_expert_used = 7;
    rows[4].m.n_expert_used = 0;
    rows[5].m.n_embd = 288;
    rows[5].m.type = GGML_TYPE_Q4_K;
    unlink(path);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(s2_synth_llama_write(&rows[i].m, path, &err), SL_EINVAL);
        assert_non_null(strstr(err.msg, rows[i].what));
        assert_int_not_equal(access(path, F_OK), 0);
    }
}

/* Whatever allocation fails, there is an error and no file. */
static void test_every_allocation_may_fail(void **state)
{
    (void)state;
    sl_error err;
    s2_synth_llama m = small(4);
    m.n_vocab = 260;
    long n = 0;
    unlink(path);
    for (int r = SL_ENOMEM; r < 0; n++) {
        assert_true(n < 2000);
        sl__mem_fail_after(n);
        r = s2_synth_llama_write(&m, path, &err);
        sl__mem_fail_after(-1);
        assert_true(r == SL_OK || r == SL_ENOMEM);
        assert_int_equal(access(path, F_OK) == 0, r == SL_OK);
    }
    assert_true(n > 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_a_dense_model),
            cmocka_unit_test(test_a_model_with_experts),
            cmocka_unit_test(test_the_vocabulary),
            cmocka_unit_test(test_sizes_that_do_not_fit_are_refused),
            cmocka_unit_test(test_every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
