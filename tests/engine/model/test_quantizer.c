#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "codec_files.h"
#include "engine/model/quantizer.h"
#include "golden.h"
#include "model_fixture.h"
#include "test_support.h"

#define F32_MODEL "golden/tiny-s2-f32.gguf"
#define F16_MODEL "golden/tiny-s2-f16.gguf"

static s2_quantizer *create(model_fixture *f, const char *model)
{
    s2_quantizer *q = NULL;
    sl_error err;
    model_fixture_open(f, model, 1);
    assert_ok(s2_quantizer_create(&f->hp.codec, f->weights, &q, &err), &err);
    assert_true(s2_quantizer_bytes(q) > 0);
    return q;
}

/* [channels][time] to [time][channels] */
static float *to_rows(const float *signal, size_t n_channels, size_t n_time)
{
    float *rows = calloc(n_channels * n_time + 1, sizeof *rows);
    assert_non_null(rows);
    for (size_t c = 0; c < n_channels; c++) {
        for (size_t t = 0; t < n_time; t++) {
            rows[t * n_channels + c] = signal[c * n_time + t];
        }
    }
    return rows;
}

static void check_decode(const char *model)
{
    model_fixture f;
    s2_quantizer *q = create(&f, model);
    int32_t *books = golden_i32("dec.codes", NULL);
    int32_t *codes = to_frame_major(books, 10, 48);
    float *signal = golden_f32("dec.zq", NULL);
    float *want = to_rows(signal, 64, 48);
    float *got = malloc((size_t)48 * 64 * sizeof *got);
    float *one = malloc(64 * sizeof *one);
    assert_non_null(got);
    assert_non_null(one);
    s2_quantizer_decode(q, codes, 48, got);
    assert_true(largest_difference(got, want, (size_t)48 * 64) <= 1e-5F);
    s2_quantizer_decode(q, codes + (size_t)17 * 10, 1, one);
    assert_memory_equal(one, got + (size_t)17 * 64, 64 * sizeof *one);
    free(one);
    free(got);
    free(want);
    free(signal);
    free(codes);
    free(books);
    s2_quantizer_free(&q);
    model_fixture_close(&f);
}

static void test_decode(void **state)
{
    (void)state;
    check_decode(F32_MODEL);
    check_decode(F16_MODEL);
}

static void check_encode(const char *model, const char *name)
{
    model_fixture f;
    char tensor[64];
    size_t n;
    s2_quantizer *q = create(&f, model);
    snprintf(tensor, sizeof tensor, "enc.%s.pre_module", name);
    float *signal = golden_f32(tensor, &n);
    size_t n_frames = n / 64;
    float *latents = to_rows(signal, 64, n_frames);
    snprintf(tensor, sizeof tensor, "enc.%s.vq_latents", name);
    float *want_signal = golden_f32(tensor, &n);
    assert_int_equal(n, 80 * n_frames);
    float *want_projected = to_rows(want_signal, 80, n_frames);
    snprintf(tensor, sizeof tensor, "enc.%s.codes", name);
    int32_t *want = golden_i32(tensor, NULL);
    int32_t *codes = malloc(10 * n_frames * sizeof *codes);
    float *projected = malloc(n * sizeof *projected);
    assert_non_null(codes);
    assert_non_null(projected);
    s2_quantizer_encode(q, latents, (uint32_t)n_frames, codes, n_frames, projected);
    assert_memory_equal(codes, want, 10 * n_frames * sizeof *codes);
    assert_true(largest_difference(projected, want_projected, n) <= 1e-5F);
    free(projected);
    free(codes);
    free(want);
    free(want_projected);
    free(want_signal);
    free(latents);
    free(signal);
    s2_quantizer_free(&q);
    model_fixture_close(&f);
}

static void test_encode(void **state)
{
    (void)state;
    check_encode(F32_MODEL, "ref");
    check_encode(F32_MODEL, "odd");
    check_encode(F16_MODEL, "ref");
    check_encode(F16_MODEL, "odd");
}

/* What is encoded and what the books leave over add up to the input. */
static void test_encode_leaves_the_rest(void **state)
{
    (void)state;
    model_fixture f;
    s2_quantizer *q = create(&f, F32_MODEL);
    float input[3 * 64];
    float rest[3 * 64];
    float sum[3 * 64];
    int32_t codes[3 * 10];
    for (size_t i = 0; i < sizeof input / sizeof input[0]; i++) {
        input[i] = sinf((float)i * 0.7F);
    }
    memcpy(rest, input, sizeof rest);
    s2_quantizer_encode(q, rest, 3, codes, 3, NULL);
    int32_t *frames = to_frame_major(codes, 10, 3);
    s2_quantizer_decode(q, frames, 3, sum);
    for (size_t i = 0; i < sizeof input / sizeof input[0]; i++) {
        sum[i] += rest[i];
    }
    assert_true(largest_difference(sum, input, sizeof input / sizeof input[0]) <= 1e-5F);
    free(frames);
    s2_quantizer_free(&q);
    model_fixture_close(&f);
}

static void test_codes_beyond_a_book_are_its_last(void **state)
{
    (void)state;
    model_fixture f;
    s2_quantizer *q = create(&f, F16_MODEL);
    int32_t wild[10];
    int32_t tame[10];
    float a[64];
    float b[64];
    for (int i = 0; i < 10; i++) {
        wild[i] = i % 3 == 0 ? -7 : 32 + 32 * i;
        tame[i] = i % 3 == 0 ? 0 : 31;
    }
    s2_quantizer_decode(q, wild, 1, a);
    s2_quantizer_decode(q, tame, 1, b);
    assert_memory_equal(a, b, sizeof a);
    s2_quantizer_free(&q);
    model_fixture_close(&f);
}

static void test_refuses_tables(void **state)
{
    (void)state;
    static const char *const names[] = {
            "c.quantizer.semantic_quantizer.quantizers.0.codebook.weight",
            "c.quantizer.quantizer.quantizers.8.in_proj.weight",
            "c.quantizer.quantizer.quantizers.8.in_proj.bias",
            "c.quantizer.quantizer.quantizers.0.out_proj.bias",
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        model_fixture f;
        sl_error err;
        s2_quantizer *q = NULL;
        char *dir = test_dir_create();
        open_damaged(&f, dir, names[i], NULL, 26); /* GGML_TYPE_I32 */
        assert_int_equal(s2_quantizer_create(&f.hp.codec, f.weights, &q, &err), SL_EFORMAT);
        assert_null(q);
        assert_non_null(strstr(err.msg, names[i]));
        model_fixture_close(&f);
        test_dir_remove(dir);
    }
}

static void test_memory_runs_out(void **state)
{
    (void)state;
    model_fixture f;
    sl_error err;
    model_fixture_open(&f, F32_MODEL, 1);
    for (long i = 0; i < 5; i++) {
        s2_quantizer *q = NULL;
        sl__mem_fail_after(i);
        int r = s2_quantizer_create(&f.hp.codec, f.weights, &q, &err);
        sl__mem_fail_after(-1);
        assert_int_equal(r, SL_ENOMEM);
        assert_null(q);
    }
    s2_quantizer *none = NULL;
    s2_quantizer_free(&none);
    s2_quantizer_free(NULL);
    model_fixture_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_decode),
            cmocka_unit_test(test_encode),
            cmocka_unit_test(test_encode_leaves_the_rest),
            cmocka_unit_test(test_codes_beyond_a_book_are_its_last),
            cmocka_unit_test(test_refuses_tables),
            cmocka_unit_test(test_memory_runs_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
