/*
 * Models whose keys and tensors are missing, of another type, absurd or at odds with each other: opening an
 * engine refuses each with a sentence that names what is wrong, and what it accepts can be spoken with.
 */
#include "engine/model/hparams.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ggml.h"

#include "broken_model.h"
#include "small_synth.h"
#include "test_support.h"

#define CODEC "fish_speech.codec."

static char *dir;
static char copy_path[512];
static broken_model *model;

static int set_up(void **state)
{
    (void)state;
    char path[512];
    s2_synth_opts opts = small_synth_opts(GGML_TYPE_F16);
    dir = test_dir_create();
    small_synth_write(&opts, dir, "sound");
    /* The copy finds the tokenizer by its second name. */
    s2_synth_opts same = opts;
    sl_error err;
    test_path(path, sizeof path, dir, "tokenizer.json");
    assert_ok(s2_synth_write_tokenizer(&same, path, &err), &err);
    test_path(copy_path, sizeof copy_path, dir, "copy.gguf");
    model = broken_model_open(test_path(path, sizeof path, dir, "sound.gguf"));
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    broken_model_close(model);
    test_dir_remove(dir);
    return 0;
}

/* Writes the copy and opens it; what opens must speak two frames or say why not. */
static int open_copy(sl_error *err)
{
    s2_engine *e = NULL;
    *err = (sl_error){0};
    broken_model_write(model, copy_path);
    int r = small_synth_try_open(copy_path, &e, err);
    if (r < 0) {
        assert_null(e);
        assert_int_equal(err->code, r);
        if (!strstr(err->msg, "copy.gguf")) {
            fail_msg("no file is named: %s", err->msg);
        }
        assert_null(strchr(err->msg, '\n'));
        return r;
    }
    sl_error speak_err = {0};
    s2_stats stats;
    s2_speak_opts opts = small_synth_speak("a", 2);
    int r_speak = s2_engine_speak(e, &opts, &stats, &speak_err);
    assert_true(r_speak == 0 || speak_err.msg[0] != '\0');
    float samples[40] = {0.5F, -0.5F};
    s2_voice voice = {0};
    assert_ok(s2_engine_make_voice(e, samples, 40, "a", &voice, &speak_err), &speak_err);
    s2_voice_done(&voice);
    s2_engine_close(&e);
    return r;
}

static void expect_refused(int code, const char *needle)
{
    sl_error err;
    int r = open_copy(&err);
    if (r != code || !strstr(err.msg, needle)) {
        fail_msg("want %s with \"%s\", got %s: %s", sl_err_name(code), needle, sl_err_name(r),
                err.msg);
    }
}

static void expect_accepted(void)
{
    sl_error err;
    assert_ok(open_copy(&err), &err);
}

static void test_an_unchanged_copy_is_accepted(void **state)
{
    (void)state;
    expect_accepted();
}

/* Keys that say something about the model that nothing else says, and that no default stands for. */
static const char *const required[] = {
        "fish-speech.context_length",
        "fish-speech.embedding_length",
        "fish-speech.block_count",
        "fish-speech.attention.head_count",
        "fish-speech.attention.head_count_kv",
        "fish-speech.vocab_size",
        "fish-speech.rope.freq_base",
        "fish-speech.attention.layer_norm_rms_epsilon",
        "fish_speech.codebook_size",
        "fish_speech.num_codebooks",
        "fish_speech.semantic_begin_id",
        "fish_speech.semantic_end_id",
        "fish_speech.fast_embedding_length",
        "fish_speech.fast_block_count",
        "fish_speech.fast_head_count",
        "fish_speech.fast_head_count_kv",
        "fish_speech.fast_head_dim",
        "fish_speech.fast_rope_freq_base",
        "fish_speech.fast_layer_norm_rms_eps",
        CODEC "sample_rate",
        CODEC "hop_length",
        CODEC "latent_dim",
        CODEC "encoder_rates",
        CODEC "decoder_rates",
        CODEC "encoder_transformer_layers",
        CODEC "quantizer_input_dim",
        CODEC "quantizer_codebook_dim",
        CODEC "quantizer_residual_codebooks",
        CODEC "quantizer_residual_codebook_size",
        CODEC "quantizer_semantic_codebook_size",
        CODEC "quantizer_downsample_factor",
        CODEC "transformer.head_dim",
        CODEC "transformer.rope_freq_base",
        CODEC "transformer.layer_norm_rms_eps",
        CODEC "rvq_transformer.window_size",
        CODEC "rvq_transformer.head_dim",
        CODEC "rvq_transformer.rope_freq_base",
        CODEC "rvq_transformer.layer_norm_rms_eps",
};
#define N_REQUIRED (sizeof required / sizeof required[0])

/* Keys with a default. */
static const char *const optional[] = {
        "fish-speech.feed_forward_length",
        "fish_speech.fast_feed_forward_length",
        "fish_speech.scale_codebook_embeddings",
        "fish_speech.norm_fastlayer_input",
        "fish_speech.tie_word_embeddings",
        "fish_speech.attention_qk_norm",
        "fish_speech.fast_tie_word_embeddings",
        "fish_speech.fast_attention_qk_norm",
        "fish_speech.fast_attention_qkv_bias",
        "fish_speech.fast_attention_o_bias",
        "fish_speech.fast_project_in",
        CODEC "transformer.n_local_heads",
        CODEC "rvq_transformer.n_local_heads",
};
#define N_OPTIONAL (sizeof optional / sizeof optional[0])

static void test_every_required_key_is_missed(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_REQUIRED; i++) {
        broken_drop_key(model, required[i]);
        expect_refused(SL_EFORMAT, required[i]);
    }
}

static void test_optional_keys_may_be_missing(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_OPTIONAL; i++) {
        broken_drop_key(model, optional[i]);
        expect_accepted();
    }
    for (size_t i = 0; i < N_OPTIONAL; i++) {
        broken_drop_key(model, optional[i]);
    }
    expect_accepted();
}

static void expect_wrong_types(const char *key)
{
    const sl_gguf_kv *kv = sl_gguf_find(broken_model_gguf(model), key);
    assert_non_null(kv);
    broken_set_str(model, key, "7");
    expect_refused(SL_EFORMAT, key);
    if (kv->type == SL_GGUF_F32) {
        broken_set_u32(model, key, 1);
    } else {
        broken_set_f32(model, key, 1);
    }
    expect_refused(SL_EFORMAT, key);
    /* An array of strings, which reads as no number. */
    const unsigned char strings[] = {
            SL_GGUF_STR, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
    broken_set_key(model, key, SL_GGUF_ARRAY, strings, sizeof strings);
    expect_refused(SL_EFORMAT, key);
}

static void test_every_key_that_is_read_must_have_its_type(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_REQUIRED; i++) {
        expect_wrong_types(required[i]);
    }
    for (size_t i = 0; i < N_OPTIONAL; i++) {
        expect_wrong_types(optional[i]);
    }
}

static void test_zero_and_huge_numbers_are_refused_by_name(void **state)
{
    (void)state;
    static const uint32_t values[] = {0, 0x80000000U, UINT32_MAX};
    for (size_t i = 0; i < N_REQUIRED; i++) {
        const sl_gguf_kv *kv = sl_gguf_find(broken_model_gguf(model), required[i]);
        if (kv->type != SL_GGUF_U32) {
            continue;
        }
        for (size_t k = 0; k < 3; k++) {
            bool is_default = strcmp(required[i], "fish_speech.fast_head_dim") == 0 && k == 0;
            broken_set_u32(model, required[i], values[k]);
            if (is_default) {
                /* 0 means width / heads, which is 8 here where the tensors say 16. */
                expect_refused(SL_EFORMAT, "fast_layers.0.attention.wqkv.weight");
            } else {
                expect_refused(SL_EFORMAT, required[i]);
            }
        }
        const uint64_t wide = UINT64_C(1) << 32;
        broken_set_key(model, required[i], SL_GGUF_U64, &wide, sizeof wide);
        expect_refused(SL_EFORMAT, required[i]);
        const int32_t negative = -1;
        broken_set_key(model, required[i], SL_GGUF_I32, &negative, sizeof negative);
        expect_refused(SL_EFORMAT, required[i]);
    }
}

static void test_absurd_real_numbers_are_refused_by_name(void **state)
{
    (void)state;
    static const float values[] = {0, -1, 1e-30F, 1e30F, NAN, INFINITY, -INFINITY};
    for (size_t i = 0; i < N_REQUIRED; i++) {
        const sl_gguf_kv *kv = sl_gguf_find(broken_model_gguf(model), required[i]);
        if (kv->type != SL_GGUF_F32) {
            continue;
        }
        for (size_t k = 0; k < sizeof values / sizeof values[0]; k++) {
            broken_set_f32(model, required[i], values[k]);
            expect_refused(SL_EFORMAT, required[i]);
        }
        /* F64 is as good a real number as F32. */
        const double wide = strstr(required[i], "eps") ? 1e-5 : 1e4;
        broken_set_key(model, required[i], SL_GGUF_F64, &wide, sizeof wide);
        expect_accepted();
    }
}

/* Off by one, doubled, halved: whatever a number is changed to, the file is refused or can be spoken with. */
static void test_changed_numbers_do_no_harm(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_REQUIRED; i++) {
        const sl_gguf *g = broken_model_gguf(model);
        uint32_t v = 0;
        sl_error err;
        if (sl_gguf_get_u32(g, required[i], &v, &err) < 0) {
            continue;
        }
        const uint32_t values[] = {v - 1, v + 1, 2 * v, v / 2, 1, 3, 4096};
        for (size_t k = 0; k < sizeof values / sizeof values[0]; k++) {
            broken_set_u32(model, required[i], values[k]);
            int r = open_copy(&err);
            assert_true(r == 0 || r == SL_EFORMAT || r == SL_EUNSUPPORTED);
        }
    }
}

static void test_lists_are_checked(void **state)
{
    (void)state;
    static const char *const lists[] = {
            CODEC "encoder_rates", CODEC "decoder_rates", CODEC "quantizer_downsample_factor"};
    static const int32_t many[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
    for (size_t i = 0; i < 3; i++) {
        const int32_t bad[][2] = {{0, 2}, {-2, 2}, {65, 2}, {2, INT32_MAX}};
        for (size_t k = 0; k < 4; k++) {
            broken_set_i32s(model, lists[i], bad[k], 2);
            expect_refused(SL_EFORMAT, lists[i]);
        }
        broken_set_i32s(model, lists[i], many, 0);
        expect_refused(SL_EFORMAT, lists[i]);
        broken_set_i32s(model, lists[i], many, 9);
        expect_refused(SL_EFORMAT, lists[i]);
    }
    const int32_t layers[3] = {0, 1, 0};
    broken_set_i32s(model, CODEC "encoder_transformer_layers", layers, 3);
    expect_refused(SL_EFORMAT, "encoder_transformer_layers");
    broken_set_i32s(model, CODEC "encoder_transformer_layers", (const int32_t[2]){0, -1}, 2);
    expect_refused(SL_EFORMAT, "encoder_transformer_layers");
}

static void test_other_architectures_are_named(void **state)
{
    (void)state;
    static const char *const names[] = {
            "llama", "fish-speech-codec", "fish-speec", "Fish-Speech", "", "a\nb"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        broken_set_str(model, "general.architecture", names[i]);
        expect_refused(SL_EUNSUPPORTED, "general.architecture");
    }
    broken_set_str(model, "general.architecture", "llama");
    expect_refused(SL_EUNSUPPORTED, "\"llama\", need \"fish-speech\"");
    broken_drop_key(model, "general.architecture");
    expect_refused(SL_EUNSUPPORTED, "general.architecture");
    broken_set_u32(model, "general.architecture", 1);
    expect_refused(SL_EUNSUPPORTED, "general.architecture");
}

static void test_options_that_are_not_computed_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *key;
        bool v;
    } flags[] = {
            {"fish_speech.tie_word_embeddings", false},
            {"fish_speech.norm_fastlayer_input", false},
            {"fish_speech.fast_tie_word_embeddings", true},
            {"fish_speech.fast_attention_qkv_bias", true},
            {"fish_speech.fast_attention_o_bias", true},
    };
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++) {
        broken_set_bool(model, flags[i].key, flags[i].v);
        expect_refused(SL_EUNSUPPORTED, flags[i].key);
    }
    static const char *const tensors[] = {"output.weight", "layers.0.attention.wqkv.bias",
            "layers.0.attention.wo.bias", "fast_layers.0.attention.wqkv.bias",
            "fast_layers.0.attention.wo.bias"};
    for (size_t i = 0; i < sizeof tensors / sizeof tensors[0]; i++) {
        broken_set_tensor(model, tensors[i], GGML_TYPE_F32, 1, (const uint64_t[]){32}, NULL);
        expect_refused(SL_EUNSUPPORTED, tensors[i]);
    }
    const int32_t two[2] = {1, 1};
    broken_set_i32s(model, CODEC "encoder_transformer_layers", two, 2);
    expect_refused(SL_EUNSUPPORTED, "two encoder stages");
    broken_set_u32(model, CODEC "transformer.n_local_heads", 1);
    expect_refused(SL_EUNSUPPORTED, CODEC "transformer.n_local_heads");
    broken_set_u32(model, CODEC "rvq_transformer.n_local_heads", 1);
    expect_refused(SL_EUNSUPPORTED, CODEC "rvq_transformer.n_local_heads");
    broken_set_u32(model, CODEC "rvq_transformer.n_local_heads", 2);
    expect_accepted();
}

static void test_contradictions_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *key;
        uint32_t v;
        const char *needle;
    } cases[] = {
            {"fish-speech.feed_forward_length", 65, "layers.0.feed_forward.w1.weight is 64"},
            {"fish_speech.fast_feed_forward_length", 64,
                    "fast_layers.0.feed_forward.w1.weight is 32"},
            {"fish-speech.embedding_length", 64, "fast_project_in is not set"},
            {"fish-speech.attention.head_count", 3, "3 query heads cannot share 2 KV heads"},
            {"fish_speech.fast_head_count_kv", 3, "4 query heads cannot share 3 KV heads"},
            {"fish_speech.fast_head_dim", 15, "head dimension 15"},
            {"fish-speech.attention.head_count", 8, "layers.0.attention.wqkv.weight"},
            {"fish-speech.block_count", 1, "layers.1"},
            {"fish-speech.block_count", 3, "layers.2.attention_norm.weight"},
            {"fish_speech.fast_block_count", 1, "fast_layers.1"},
            {"fish-speech.vocab_size", 300, "semantic ids"},
            {"fish-speech.vocab_size", 400, "embeddings.weight"},
            {"fish_speech.semantic_end_id", 308, "semantic ids"},
            {"fish_speech.semantic_end_id", 1, "semantic ids"},
            {"fish_speech.semantic_end_id", 304, "fish_speech.codebook_size"},
            {"fish_speech.codebook_size", 17, "fish_speech.codebook_size"},
            {"fish_speech.num_codebooks", 4, "codebooks of the codec"},
            {CODEC "quantizer_residual_codebooks", 3, "codebooks of the codec"},
            {CODEC "quantizer_semantic_codebook_size", 15, "15 entries for 16"},
            {CODEC "quantizer_residual_codebook_size", 9, "quantizers.0.codebook.weight"},
            {CODEC "quantizer_codebook_dim", 7, "in_proj.weight"},
            {CODEC "hop_length", 8, "product of encoder_rates"},
            {CODEC "latent_dim", 64, "quantizer_input_dim"},
            {CODEC "quantizer_input_dim", 64, "quantizer_input_dim"},
            {CODEC "rvq_transformer.head_dim", 5, "heads do not divide"},
            {CODEC "rvq_transformer.head_dim", 64, "heads do not divide"},
            {CODEC "transformer.head_dim", 6, "heads do not divide"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        broken_set_u32(model, cases[i].key, cases[i].v);
        expect_refused(SL_EFORMAT, cases[i].needle);
    }
    const int32_t rates[2] = {4, 1};
    broken_set_i32s(model, CODEC "decoder_rates", rates, 2);
    expect_refused(SL_EFORMAT, "c.decoder.model.1.block.1.conv.weight");
    broken_set_i32s(model, CODEC "decoder_rates", (const int32_t[2]){4, 2}, 2);
    expect_refused(SL_EFORMAT, "product of decoder_rates");
    broken_set_i32s(model, CODEC "encoder_rates", (const int32_t[3]){1, 2, 2}, 3);
    expect_refused(SL_EFORMAT, "decoder_rates");
    broken_set_i32s(model, CODEC "quantizer_downsample_factor", (const int32_t[2]){2, 2}, 2);
    expect_refused(SL_EFORMAT, "c.quantizer.");
    broken_set_i32s(model, CODEC "encoder_transformer_layers", (const int32_t[2]){0, 2}, 2);
    expect_refused(SL_EFORMAT, "encoder_transformer_layers");
    broken_set_bool(model, "fish_speech.attention_qk_norm", false);
    expect_refused(SL_EFORMAT, "fish_speech.attention_qk_norm");
    broken_set_bool(model, "fish_speech.fast_attention_qk_norm", true);
    expect_refused(SL_EFORMAT, "fast_layers.0.attention.q_norm.weight");
    broken_set_bool(model, "fish_speech.fast_project_in", true);
    expect_refused(SL_EFORMAT, "fast_project_in.weight");
}

/* A frame of 2^32 samples would be one of none. */
static void test_frames_beyond_any_size_are_refused(void **state)
{
    (void)state;
    const int32_t rates[4] = {16, 16, 16, 16};
    broken_set_u32(model, CODEC "hop_length", 65536);
    broken_set_i32s(model, CODEC "encoder_rates", rates, 4);
    broken_set_i32s(model, CODEC "decoder_rates", rates, 4);
    broken_set_i32s(model, CODEC "quantizer_downsample_factor", rates, 4);
    expect_refused(SL_EUNSUPPORTED, "65536 x 65536 samples");
}

/* is_exact: the message names this tensor; else it may name one that is at odds with it. */
static void expect_tensor_named(const char *name, bool is_exact)
{
    sl_error err;
    int r = open_copy(&err);
    bool is_named =
            strstr(err.msg, name) ||
            (!is_exact && (strstr(err.msg, "tensor ") || strstr(err.msg, "head dimension") ||
                                  strstr(err.msg, "contradicts itself")));
    if ((r != SL_EFORMAT && r != SL_EUNSUPPORTED) || !is_named) {
        fail_msg("%s: %s: %s", name, sl_err_name(r), err.msg);
    }
}

static void copy_name(const sl_gguf_tensor *t, char name[96])
{
    assert_true(t->name.n < 96);
    memcpy(name, t->name.p, t->name.n);
    name[t->name.n] = '\0';
}

/* Names of layers that a codec transformer loses: the next ones then are too many. */
static void test_every_tensor_is_missed(void **state)
{
    (void)state;
    const sl_gguf *g = broken_model_gguf(model);
    for (uint64_t i = 0; i < sl_gguf_n_tensors(g); i++) {
        char name[96];
        copy_name(sl_gguf_tensor_at(g, i), name);
        broken_drop_tensor(model, name);
        bool is_counted = strstr(name, ".layers.1.attention.wqkv") != NULL;
        sl_error err;
        int r = open_copy(&err);
        if (r != SL_EFORMAT || !strstr(err.msg, is_counted ? "layers.1 are there" : name)) {
            fail_msg("%s: %s: %s", name, sl_err_name(r), err.msg);
        }
    }
}

static void test_every_tensor_must_have_its_shape(void **state)
{
    (void)state;
    const sl_gguf *g = broken_model_gguf(model);
    for (uint64_t i = 0; i < sl_gguf_n_tensors(g); i++) {
        const sl_gguf_tensor *t = sl_gguf_tensor_at(g, i);
        char name[96];
        copy_name(t, name);
        uint64_t ne[4] = {t->ne[0], t->ne[1], t->ne[2], 2};
        broken_set_tensor(model, name, t->type, 4, ne, NULL);
        expect_tensor_named(name, false);
        ne[t->n_dims - 1]++;
        broken_set_tensor(model, name, t->type, t->n_dims, ne, NULL);
        expect_tensor_named(name, false);
        ne[t->n_dims - 1] = 0;
        broken_set_tensor(model, name, t->type, t->n_dims, ne, NULL);
        expect_tensor_named(name, true);
        if (t->ne[0] != t->ne[1]) {
            const uint64_t turned[3] = {t->ne[1], t->ne[0], t->ne[2]};
            broken_set_tensor(model, name, t->type, 3, turned, NULL);
            expect_tensor_named(name, false);
        }
    }
}

static void expect_type_refused(const sl_gguf_tensor *t, uint32_t type)
{
    char name[96];
    sl_tensor_type_info info;
    copy_name(t, name);
    if (sl_tensor_type(type, &info) && t->ne[0] % info.block_elems == 0) {
        broken_set_tensor(model, name, type, t->n_dims, t->ne, NULL);
        expect_tensor_named(name, true);
    }
}

static void test_every_tensor_must_have_a_type_of_weights(void **state)
{
    (void)state;
    static const uint32_t others[] = {
            GGML_TYPE_I8, GGML_TYPE_I16, GGML_TYPE_I64, GGML_TYPE_Q8_1, GGML_TYPE_Q8_K};
    const sl_gguf *g = broken_model_gguf(model);
    for (uint64_t i = 0; i < sl_gguf_n_tensors(g); i++) {
        const sl_gguf_tensor *t = sl_gguf_tensor_at(g, i);
        expect_type_refused(t, GGML_TYPE_I32);
        expect_type_refused(t, GGML_TYPE_F64);
        expect_type_refused(t, others[i % 5]);
    }
}

/* Tensors of an odd place in the file are refused or read correctly, never read as if they were aligned. */
static void test_alignments(void **state)
{
    (void)state;
    for (uint32_t alignment = 1; alignment <= 64; alignment *= 2) {
        broken_set_alignment(model, alignment);
        sl_error err;
        int r = open_copy(&err);
        assert_true(r == 0 || r == SL_EFORMAT);
        assert_true(r == 0 || strstr(err.msg, "tensor ") || strstr(err.msg, "alignment"));
        assert_true(r == 0 || alignment < 8);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_an_unchanged_copy_is_accepted),
            cmocka_unit_test(test_every_required_key_is_missed),
            cmocka_unit_test(test_optional_keys_may_be_missing),
            cmocka_unit_test(test_every_key_that_is_read_must_have_its_type),
            cmocka_unit_test(test_zero_and_huge_numbers_are_refused_by_name),
            cmocka_unit_test(test_absurd_real_numbers_are_refused_by_name),
            cmocka_unit_test(test_changed_numbers_do_no_harm),
            cmocka_unit_test(test_lists_are_checked),
            cmocka_unit_test(test_other_architectures_are_named),
            cmocka_unit_test(test_options_that_are_not_computed_are_refused),
            cmocka_unit_test(test_contradictions_are_refused),
            cmocka_unit_test(test_frames_beyond_any_size_are_refused),
            cmocka_unit_test(test_every_tensor_is_missed),
            cmocka_unit_test(test_every_tensor_must_have_its_shape),
            cmocka_unit_test(test_every_tensor_must_have_a_type_of_weights),
            cmocka_unit_test(test_alignments),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
