#include <stdlib.h>

#include "engine/model/codec_decoder.h"
#include "golden.h"
#include "model_fixture.h"
#include "stage_check.h"
#include "test_support.h"

#define F32_MODEL "golden/tiny-s2-f32.gguf"
#define F16_MODEL "golden/tiny-s2-f16.gguf"

/* Frames of codes, [book][frame] in the files, frame by frame for the decoder. */
static int32_t *frame_major(const int32_t *codes, size_t n_books, size_t n_frames)
{
    int32_t *out = malloc(n_books * n_frames * sizeof *out);
    assert_non_null(out);
    for (size_t j = 0; j < n_books; j++) {
        for (size_t t = 0; t < n_frames; t++) {
            out[t * n_books + j] = codes[j * n_frames + t];
        }
    }
    return out;
}

static s2_codec_decoder *create(model_fixture *f, const s2_build_options *options)
{
    s2_codec_decoder *d = NULL;
    sl_error err;
    assert_ok(s2__codec_decoder_create(&f->hp, f->weights, &f->compute, options, &d, &err), &err);
    return d;
}

/* Pushes all frames in pieces of `stride`. */
static float *decode(const model_fixture *f, s2_codec_decoder *d, const int32_t *codes,
        size_t n_frames, size_t stride)
{
    sl_error err;
    size_t n_books = f->hp.codec.n_codebooks;
    size_t n_samples = f->hp.codec.frame_samples;
    float *pcm = malloc(n_frames * n_samples * sizeof *pcm);
    assert_non_null(pcm);
    for (size_t t = 0; t < n_frames; t += stride) {
        size_t n = n_frames - t < stride ? n_frames - t : stride;
        assert_ok(s2_codec_decoder_push(
                          d, codes + t * n_books, (uint32_t)n, pcm + t * n_samples, &err),
                &err);
    }
    return pcm;
}

static void check_stages(const char *model, bool is_standard, float tolerance)
{
    model_fixture f;
    stage_check check = {.prefix = "dec", .tolerance = tolerance};
    s2_probe probe = stage_check_probe(&check);
    s2_build_options options = {.is_standard = is_standard, .probe = &probe};
    model_fixture_open(&f, model, 1);
    s2_codec_decoder *d = create(&f, &options);
    int32_t *books = golden_i32("dec.codes", NULL);
    int32_t *codes = frame_major(books, 10, 48);
    size_t n_samples;
    float *want = golden_f32("dec.audio", &n_samples);
    assert_int_equal(n_samples, 48 * f.hp.codec.frame_samples);
    float *pcm = decode(&f, d, codes, 48, 9);
    assert_int_equal(check.n_stages, 8); /* zq, post_module, upsample, model0 to model4 */
    float audio = largest_difference(pcm, want, n_samples);
    print_message("%s%s: stages within %g, audio within %g\n", model,
            is_standard ? " standard" : "", (double)check.worst, (double)audio);
    assert_true(audio <= tolerance);
    free(pcm);
    free(want);
    free(codes);
    free(books);
    s2_codec_decoder_free(&d);
    model_fixture_close(&f);
}

static void test_stages_f32(void **state)
{
    (void)state;
    check_stages(F32_MODEL, false, 2e-5F);
}

static void test_stages_f16(void **state)
{
    (void)state;
    check_stages(F16_MODEL, false, 2e-5F);
}

static void test_stages_standard_f32(void **state)
{
    (void)state;
    check_stages(F32_MODEL, true, 2e-5F);
}

static void test_stages_standard_f16(void **state)
{
    (void)state;
    check_stages(F16_MODEL, true, 5e-3F);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_stages_standard_f32),
            cmocka_unit_test(test_stages_standard_f16),
            cmocka_unit_test(test_stages_f32),
            cmocka_unit_test(test_stages_f16),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
