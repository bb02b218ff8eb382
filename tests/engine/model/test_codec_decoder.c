#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "codec_files.h"
#include "engine/model/codec_decoder.h"
#include "golden.h"
#include "model_fixture.h"
#include "stage_check.h"
#include "test_support.h"

#define F32_MODEL "golden/tiny-s2-f32.gguf"
#define F16_MODEL "golden/tiny-s2-f16.gguf"

static const s2_build_options usual;

static void check_stages(const char *model, bool is_standard, size_t stride, float tolerance)
{
    model_fixture f;
    stage_check check = {.prefix = "dec", .tolerance = tolerance};
    s2_probe probe = stage_check_probe(&check);
    s2_build_options options = {.is_standard = is_standard, .probe = &probe};
    model_fixture_open(&f, model, 1);
    s2_codec_decoder *d = create_decoder(&f, &options);
    int32_t *books = golden_i32("dec.codes", NULL);
    int32_t *codes = to_frame_major(books, 10, 48);
    size_t n_samples;
    float *want = golden_f32("dec.audio", &n_samples);
    assert_int_equal(n_samples, (size_t)48 * f.hp.codec.frame_samples);
    float *pcm = decode(&f, d, codes, 48, stride);
    assert_int_equal(check.n_stages, 8); /* zq, post_module, upsample, model0 to model4 */
    float audio = largest_difference(pcm, want, n_samples);
    print_message("%s%s by %zu: stages within %g, audio within %g\n", model,
            is_standard ? " standard" : "", stride, (double)check.worst, (double)audio);
    assert_true(audio <= tolerance);
    free(pcm);
    free(want);
    free(codes);
    free(books);
    s2_codec_decoder_free(&d);
    model_fixture_close(&f);
}

static void test_stages(void **state)
{
    (void)state;
    check_stages(F32_MODEL, false, 48, 2e-5F);
    check_stages(F32_MODEL, false, 1, 2e-5F);
    /* Weights that F16 holds exactly, and sums in F32: the F16 file is as good. */
    check_stages(F16_MODEL, false, 48, 2e-5F);
}

static void test_stages_of_standard_operations(void **state)
{
    (void)state;
    check_stages(F32_MODEL, true, 48, 2e-5F);
    check_stages(F32_MODEL, true, 1, 2e-5F);
    check_stages(F16_MODEL, true, 48, 5e-3F); /* ggml rounds activations to F16 here */
}

static void check_generated(const char *model, const char *name, size_t n_columns, size_t n_frames)
{
    model_fixture f;
    char tensor[64];
    size_t n;
    model_fixture_open(&f, model, 1);
    s2_codec_decoder *d = create_decoder(&f, &usual);
    snprintf(tensor, sizeof tensor, "ar.%s.gen", name);
    int32_t *columns = golden_i32(tensor, &n);
    assert_int_equal(n, 11 * n_columns);
    int32_t *all = to_frame_major(columns + n_columns, 10, n_columns); /* rows 1 to 10 */
    snprintf(tensor, sizeof tensor, "ar.%s.gen_audio", name);
    float *want = golden_f32(tensor, &n);
    assert_int_equal(n, n_frames * f.hp.codec.frame_samples);
    float *pcm = decode(&f, d, all, n_frames, n_frames);
    assert_true(largest_difference(pcm, want, n) <= 2e-5F);
    free(pcm);
    free(want);
    free(all);
    free(columns);
    s2_codec_decoder_free(&d);
    model_fixture_close(&f);
}

static void test_generated_audio(void **state)
{
    (void)state;
    check_generated(F32_MODEL, "plain", 31, 30); /* the last column is the end token */
    check_generated(F16_MODEL, "plain", 31, 30);
    check_generated(F32_MODEL, "clone", 36, 36);
    check_generated(F16_MODEL, "clone", 36, 36);
}

/* The existing engine rounds activations to F16 and has no 1e-9 in the snake. */
static void check_existing_engine(const char *model, const char *golden)
{
    model_fixture f;
    model_fixture_open(&f, model, 1);
    s2_codec_decoder *d = create_decoder(&f, &usual);
    json_t *root = read_json(golden);
    const char *const names[][2] = {
            {"plain_codes", "plain_pcm_full_decode"}, {"clone_codes", "clone_pcm_full_decode"}};
    for (size_t i = 0; i < 2; i++) {
        const json_t *books = json_object_get(root, names[i][0]);
        const json_t *want = json_object_get(root, names[i][1]);
        size_t n_books = f.hp.codec.n_codebooks;
        size_t n_frames = json_array_size(books) / n_books;
        int32_t *codes = malloc(n_books * n_frames * sizeof *codes);
        assert_non_null(codes);
        for (size_t k = 0; k < n_books * n_frames; k++) {
            codes[k % n_frames * n_books + k / n_frames] = (int32_t)json_number_at(books, k);
        }
        float *pcm = decode(&f, d, codes, n_frames, 7);
        assert_int_equal(json_array_size(want), n_frames * f.hp.codec.frame_samples);
        for (size_t k = 0; k < json_array_size(want); k++) {
            assert_true(fabs((double)pcm[k] - json_number_at(want, k)) <= 1e-3);
        }
        free(pcm);
        free(codes);
    }
    json_decref(root);
    s2_codec_decoder_free(&d);
    model_fixture_close(&f);
}

static void test_existing_engine_audio(void **state)
{
    (void)state;
    check_existing_engine("tiny/tiny-f16.gguf", "tiny/golden-f16.json");
    check_existing_engine("tiny/tiny-arf32.gguf", "tiny/golden-arf32.json");
    check_existing_engine("tiny/tiny-q8_0.gguf", "tiny/golden-q8_0.json");
}

/* One case of the demo voice: samples 384, 1152, ... of the original in F32, five decimals. */
static void check_demo_case(const model_fixture *f, s2_codec_decoder *d, const json_t *one)
{
    const json_t *books = json_object_get(one, "codes");
    const json_t *want = json_object_get(one, "pcm_every_768");
    size_t n_frames = json_array_size(want);
    size_t n_books = json_array_size(books);
    double squares = 0;
    double worst = 0;
    assert_int_equal(n_books, f->hp.codec.n_codebooks);
    int32_t *codes = malloc(n_books * n_frames * sizeof *codes);
    assert_non_null(codes);
    for (size_t k = 0; k < n_books * n_frames; k++) {
        const json_t *book = json_array_get(books, k % n_books);
        codes[k] = (int32_t)json_number_at(book, k / n_books);
    }
    float *pcm = decode(f, d, codes, n_frames, 1);
    for (size_t t = 0; t < n_frames; t++) {
        worst = fmax(worst, fabs((double)pcm[t * 768 + 384] - json_number_at(want, t)));
    }
    for (size_t k = 0; k < n_frames * 768; k++) {
        squares += (double)pcm[k] * (double)pcm[k];
    }
    double rms = sqrt(squares / (double)(n_frames * 768));
    print_message("demo voice, %zu frames: within %g\n", n_frames, worst);
    assert_true(worst <= 2e-5); /* 1e-5 of it is their rounding */
    assert_true(fabs(rms - json_number_value(json_object_get(one, "pcm_rms"))) <= 1e-5);
    free(pcm);
    free(codes);
}

static void test_demo_voice(void **state)
{
    (void)state;
    model_fixture f;
    model_fixture_open(&f, "demo/demo-voice-f16.gguf", 1);
    s2_codec_decoder *d = create_decoder(&f, &usual);
    json_t *root = read_json("demo/golden-greedy.json");
    const json_t *cases = json_object_get(root, "cases");
    assert_int_equal(json_array_size(cases), 3);
    for (size_t i = 0; i < 3; i++) {
        check_demo_case(&f, d, json_array_get(cases, i));
    }
    json_decref(root);
    s2_codec_decoder_free(&d);
    model_fixture_close(&f);
}

/* Linear layers in Q8_0: near the F16 file's audio, and the two ways to compute agree. */
static void test_quantized_linear_layers(void **state)
{
    (void)state;
    model_fixture f;
    model_fixture_open(&f, "../../models/demo/demo-voice-q8_0.gguf", 1);
    assert_int_equal(s2_weights_find(f.weights, "c.quantizer.upsample.0.1.pwconv1.weight")->type,
            GGML_TYPE_Q8_0);
    s2_build_options standard = {.is_standard = true};
    s2_codec_decoder *a = create_decoder(&f, &usual);
    s2_codec_decoder *b = create_decoder(&f, &standard);
    json_t *root = read_json("demo/golden-greedy.json");
    const json_t *one = json_array_get(json_object_get(root, "cases"), 0);
    const json_t *books = json_object_get(one, "codes");
    const json_t *want = json_object_get(one, "pcm_every_768");
    int32_t codes[20 * 10];
    for (size_t k = 0; k < sizeof codes / sizeof codes[0]; k++) {
        codes[k] = (int32_t)json_number_at(json_array_get(books, k % 10), k / 10);
    }
    float *pcm = decode(&f, a, codes, 20, 3);
    float *other = decode(&f, b, codes, 20, 3);
    for (size_t t = 0; t < 20; t++) {
        assert_true(fabs((double)pcm[t * 768 + 384] - json_number_at(want, t)) <= 0.02);
    }
    assert_true(largest_difference(pcm, other, (size_t)20 * 768) <= 0.05F);
    free(pcm);
    free(other);
    json_decref(root);
    s2_codec_decoder_free(&a);
    s2_codec_decoder_free(&b);
    model_fixture_close(&f);
}

static void test_refuses_no_frames(void **state)
{
    (void)state;
    model_fixture f;
    sl_error err;
    int32_t code = 0;
    float sample = 0.0F;
    model_fixture_open(&f, F16_MODEL, 1);
    s2_codec_decoder *d = create_decoder(&f, &usual);
    assert_int_equal(s2_codec_decoder_push(d, &code, 0, &sample, &err), SL_EINVAL);
    assert_true(s2_codec_decoder_bytes(d) > 0);
    s2_codec_decoder_free(&d);
    assert_null(d);
    s2_codec_decoder_free(&d);
    s2_codec_decoder_free(NULL);
    model_fixture_close(&f);
}

/* A model whose tensor cannot be computed is refused by name. */
static void check_damage(const char *from, const char *to, int32_t type, const char *found)
{
    model_fixture f;
    sl_error err;
    s2_codec_decoder *d = NULL;
    char *dir = test_dir_create();
    open_damaged(&f, dir, from, to, type);
    assert_int_equal(s2_codec_decoder_create(&f.hp, f.weights, &f.compute, &d, &err), SL_EFORMAT);
    assert_null(d);
    if (!strstr(err.msg, from) || !strstr(err.msg, found)) {
        fail_msg("\"%s\" names neither %s nor %s", err.msg, from, found);
    }
    model_fixture_close(&f);
    test_dir_remove(dir);
}

static void test_G4_24_types_that_are_not_computed(void **state)
{
    (void)state;
    const int32_t i32 = 26; /* GGML_TYPE_I32, four bytes as F32 */
    check_damage("c.decoder.model.2.block.3.block.1.conv.weight", NULL, i32, "i32");
    check_damage("c.decoder.model.1.block.1.conv.weight", NULL, i32, "i32");
    check_damage("c.decoder.model.5.alpha", NULL, i32, "i32");
    check_damage("c.quantizer.upsample.1.1.gamma", NULL, i32, "i32");
    check_damage("c.quantizer.post_module.layers.1.feed_forward.w2.weight", NULL, i32, "i32");
    check_damage("c.quantizer.quantizer.quantizers.3.codebook.weight", NULL, i32, "i32");
    check_damage("c.quantizer.quantizer.quantizers.3.out_proj.weight", NULL, i32, "i32");
    check_damage("c.decoder.model.3.block.2.block.3.conv.bias",
            "c.decoder.model.3.block.2.block.3.conv.xxxx", -1, "missing");
    check_damage("c.quantizer.semantic_quantizer.quantizers.0.out_proj.bias",
            "c.quantizer.semantic_quantizer.quantizers.0.out_proj.xxxx", -1, "missing");
}

static void test_refuses_contradicting_sizes(void **state)
{
    (void)state;
    model_fixture f;
    sl_error err;
    s2_codec_decoder *d = NULL;
    model_fixture_open(&f, F16_MODEL, 1);
    for (int i = 0; i < 4; i++) {
        s2_hparams hp = f.hp;
        if (i == 0) {
            hp.codec.frame_samples = 0; /* 2^32 samples, wrapped */
            hp.codec.hop = 1U << 16;
            hp.codec.down_factors[0] = hp.codec.down_factors[1] = 256;
        } else if (i == 1) {
            hp.codec.post_tf.n_embd *= 2;
        } else if (i == 2) {
            hp.codec.latent_dim /= 2;
        } else {
            hp.codec.decoder_rates[1] = 5;
        }
        int r = s2_codec_decoder_create(&hp, f.weights, &f.compute, &d, &err);
        assert_int_equal(r, i == 0 ? SL_EUNSUPPORTED : SL_EFORMAT);
        assert_null(d);
    }
    model_fixture_close(&f);
}

static void test_memory_runs_out(void **state)
{
    (void)state;
    model_fixture f;
    sl_error err;
    s2_codec_decoder *d = NULL;
    int n_failed = 0;
    model_fixture_open(&f, F16_MODEL, 1);
    for (long i = 0; !d; i++) {
        sl__mem_fail_after(i);
        int r = s2_codec_decoder_create(&f.hp, f.weights, &f.compute, &d, &err);
        sl__mem_fail_after(-1);
        assert_true(d ? r == 0 : r == SL_ENOMEM);
        n_failed += r < 0;
    }
    assert_true(n_failed > 3);
    s2_codec_decoder_free(&d);
    model_fixture_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_stages),
            cmocka_unit_test(test_stages_of_standard_operations),
            cmocka_unit_test(test_generated_audio),
            cmocka_unit_test(test_existing_engine_audio),
            cmocka_unit_test(test_demo_voice),
            cmocka_unit_test(test_quantized_linear_layers),
            cmocka_unit_test(test_refuses_no_frames),
            cmocka_unit_test(test_G4_24_types_that_are_not_computed),
            cmocka_unit_test(test_refuses_contradicting_sizes),
            cmocka_unit_test(test_memory_runs_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
