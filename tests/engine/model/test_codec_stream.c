#include <stdlib.h>
#include <string.h>

#include "codec_files.h"
#include "engine/model/codec_decoder.h"
#include "model_fixture.h"
#include "test_support.h"

#define F32_MODEL  "golden/tiny-s2-f32.gguf"
#define F16_MODEL  "golden/tiny-s2-f16.gguf"
#define TINY_MODEL "tiny/tiny-f16.gguf" /* 32 samples a frame: for long streams */

static const s2_build_options usual;

/* Codes of every value that the fast AR can emit, so some beyond the residual books. */
static int32_t *make_codes(const model_fixture *f, size_t n_frames)
{
    size_t n = n_frames * f->hp.codec.n_codebooks;
    int32_t *codes = malloc(n * sizeof *codes);
    assert_non_null(codes);
    uint32_t x = 12345;
    for (size_t i = 0; i < n; i++) {
        x = x * 1664525 + 1013904223;
        codes[i] = (int32_t)((x >> 16) % f->hp.codebook_size);
    }
    return codes;
}

static void assert_same_bits(const float *a, const float *b, size_t n)
{
    assert_memory_equal(a, b, n * sizeof *a);
}

/* 500 frames at once and in pieces; bit for bit, where the kernels promise it. */
static void check_seams(const char *model, bool is_standard, size_t n_frames, float tolerance)
{
    static const size_t strides[] = {1, 3, 10, 21, 128};
    model_fixture f;
    s2_build_options options = {.is_standard = is_standard};
    model_fixture_open(&f, model, 1);
    s2_codec_decoder *d = create_decoder(&f, &options);
    int32_t *codes = make_codes(&f, n_frames);
    size_t n = n_frames * f.hp.codec.frame_samples;
    float *whole = decode(&f, d, codes, n_frames, n_frames);
    for (size_t i = 0; i < sizeof strides / sizeof strides[0]; i++) {
        float *pieces = decode(&f, d, codes, n_frames, strides[i]);
        float difference = largest_difference(pieces, whole, n);
        print_message("%s%s by %zu: within %g of the whole\n", model,
                is_standard ? " standard" : "", strides[i], (double)difference);
        assert_true(difference <= tolerance);
        free(pieces);
    }
    free(whole);
    free(codes);
    s2_codec_decoder_free(&d);
    model_fixture_close(&f);
}

static void test_G4_21_pieces_equal_the_whole(void **state)
{
    (void)state;
    check_seams(TINY_MODEL, false, 500, 0.0F);
    check_seams(F32_MODEL, false, 60, 0.0F);
    check_seams(F16_MODEL, false, 60, 0.0F);
    check_seams("demo/demo-voice-f16.gguf", false, 24, 0.0F);
    check_seams(F32_MODEL, true, 60, 2e-5F);
}

static void test_G4_27_any_number_of_frames(void **state)
{
    (void)state;
    static const size_t counts[] = {2047, 2048, 2049, 5000};
    model_fixture f;
    model_fixture_open(&f, TINY_MODEL, 1);
    s2_codec_decoder *d = create_decoder(&f, &usual);
    size_t n_samples = f.hp.codec.frame_samples;
    int32_t *codes = make_codes(&f, 5000);
    float *longest = decode(&f, d, codes, 5000, 21);
    size_t n_bytes = s2_codec_decoder_bytes(d);
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        float *pcm = decode(&f, d, codes, counts[i], counts[i]);
        assert_same_bits(pcm, longest, counts[i] * n_samples);
        assert_int_equal(s2_codec_decoder_bytes(d), n_bytes);
        free(pcm);
    }
    free(longest);
    free(codes);
    s2_codec_decoder_free(&d);
    model_fixture_close(&f);
}

/* Far beyond the decoder's memory of 28 frames, equal codes give equal frames, however late. */
static void test_late_frames_are_as_exact_as_early_ones(void **state)
{
    (void)state;
    model_fixture f;
    model_fixture_open(&f, TINY_MODEL, 1);
    s2_codec_decoder *d = create_decoder(&f, &usual);
    size_t n_samples = f.hp.codec.frame_samples;
    int32_t *codes = calloc((size_t)3000 * f.hp.codec.n_codebooks, sizeof *codes);
    assert_non_null(codes);
    float *pcm = decode(&f, d, codes, 3000, 3000);
    const float *early = pcm + 100 * n_samples;
    assert_same_bits(early, pcm + 1017 * n_samples, n_samples);
    assert_same_bits(early, pcm + 2999 * n_samples, n_samples);
    free(pcm);
    free(codes);
    s2_codec_decoder_free(&d);
    model_fixture_close(&f);
}

static void test_reset_is_as_good_as_new(void **state)
{
    (void)state;
    model_fixture f;
    model_fixture_open(&f, F16_MODEL, 1);
    s2_codec_decoder *used = create_decoder(&f, &usual);
    s2_codec_decoder *fresh = create_decoder(&f, &usual);
    int32_t *codes = make_codes(&f, 40);
    size_t n = (size_t)20 * f.hp.codec.frame_samples;
    float *before = decode(&f, used, codes + (size_t)20 * 10, 20, 3);
    float *after = decode(&f, used, codes, 20, 20); /* resets first */
    float *want = decode(&f, fresh, codes, 20, 20);
    assert_same_bits(after, want, n);
    assert_true(largest_difference(before, want, n) > 1e-3F);
    free(before);
    free(after);
    free(want);
    free(codes);
    s2_codec_decoder_free(&used);
    s2_codec_decoder_free(&fresh);
    model_fixture_close(&f);
}

/* Two streams over the same weights do not disturb each other. */
static void test_streams_are_apart(void **state)
{
    (void)state;
    model_fixture f;
    sl_error err;
    model_fixture_open(&f, F16_MODEL, 1);
    s2_codec_decoder *a = create_decoder(&f, &usual);
    s2_codec_decoder *b = create_decoder(&f, &usual);
    int32_t *codes = make_codes(&f, 20);
    size_t n_samples = f.hp.codec.frame_samples;
    float *want = decode(&f, a, codes, 10, 10);
    float *pcm = malloc(10 * n_samples * sizeof *pcm);
    float *other = malloc(n_samples * sizeof *other);
    assert_non_null(pcm);
    assert_non_null(other);
    s2_codec_decoder_reset(a);
    for (size_t t = 0; t < 10; t++) {
        assert_ok(s2_codec_decoder_push(a, codes + t * 10, 1, pcm + t * n_samples, &err), &err);
        assert_ok(s2_codec_decoder_push(b, codes + (19 - t) * 10, 1, other, &err), &err);
    }
    assert_same_bits(pcm, want, 10 * n_samples);
    free(other);
    free(pcm);
    free(want);
    free(codes);
    s2_codec_decoder_free(&a);
    s2_codec_decoder_free(&b);
    model_fixture_close(&f);
}

static void test_threads_do_not_matter(void **state)
{
    (void)state;
    float *want = NULL;
    for (int n_threads = 1; n_threads <= 3; n_threads++) {
        model_fixture f;
        model_fixture_open(&f, F16_MODEL, n_threads);
        s2_codec_decoder *d = create_decoder(&f, &usual);
        int32_t *codes = make_codes(&f, 9);
        float *pcm = decode(&f, d, codes, 9, 9);
        if (want) {
            assert_same_bits(pcm, want, (size_t)9 * f.hp.codec.frame_samples);
            free(pcm);
        } else {
            want = pcm;
        }
        free(codes);
        s2_codec_decoder_free(&d);
        model_fixture_close(&f);
    }
    free(want);
}

static void test_codes_are_clamped(void **state)
{
    (void)state;
    model_fixture f;
    model_fixture_open(&f, F16_MODEL, 1);
    s2_codec_decoder *d = create_decoder(&f, &usual);
    int32_t wild[2 * 10];
    int32_t tame[2 * 10];
    for (size_t i = 0; i < sizeof wild / sizeof wild[0]; i++) {
        bool is_large = i < 10;
        int32_t last =
                (int32_t)(i % 10 == 0 ? f.hp.codec.semantic_size : f.hp.codec.residual_size) - 1;
        wild[i] = is_large ? (i % 2 ? INT32_MAX : last + 1) : (i % 2 ? INT32_MIN : -1);
        tame[i] = is_large ? last : 0;
    }
    float *a = decode(&f, d, wild, 2, 1);
    float *b = decode(&f, d, tame, 2, 1);
    assert_same_bits(a, b, (size_t)2 * f.hp.codec.frame_samples);
    free(a);
    free(b);
    s2_codec_decoder_free(&d);
    model_fixture_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_G4_21_pieces_equal_the_whole),
            cmocka_unit_test(test_G4_27_any_number_of_frames),
            cmocka_unit_test(test_late_frames_are_as_exact_as_early_ones),
            cmocka_unit_test(test_reset_is_as_good_as_new),
            cmocka_unit_test(test_streams_are_apart),
            cmocka_unit_test(test_threads_do_not_matter),
            cmocka_unit_test(test_codes_are_clamped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
