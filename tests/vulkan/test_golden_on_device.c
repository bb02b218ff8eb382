/*
 * The original's numbers (tests/data/golden) on a real back end of ggml's: other orders of sums, halves in the KV cache, and
 * activations that some kernels round. Each bound is a part of the largest number that is compared; what was reached is printed.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/stage.h"
#include "golden.h"
#include "real_device.h"
#include "s2/audio.h"
#include "speak_rig.h"
#include "test_support.h"

#define N_FRAMES     36
#define LOGITS_BOUND 0.01F
#define AUDIO_BOUND  0.06F
#define CODES_EQUAL  0.9F /* of the encoder's: a latent between two entries may go to the other */
#define N_SAMPLES    3000 /* of the recording: a device in software takes minutes for all of it */

static const char *device;
static bool
        is_named; /* somebody chose a device, which is none in software: all of it, not only a part */
static const char *const models[] = {
        "tests/data/golden/tiny-s2-f32.gguf", "tests/data/golden/tiny-s2-f16.gguf"};
#define N_MODELS (sizeof models / sizeof models[0])

static s2_engine *open_model(const char *path)
{
    const s2_place_opts place = rig_place(device, SL_POLICY_SWAP, S2_DECODE_AFTER, 0);
    return rig_open(path, &place, N_FRAMES);
}

/* Largest difference as a part of the largest number wanted. */
static float difference(const float *got, const float *want, size_t n)
{
    float d = 0;
    float most = 0;
    for (size_t i = 0; i < n; i++) {
        assert_true(isfinite(got[i]));
        d = fmaxf(d, fabsf(got[i] - want[i]));
        most = fmaxf(most, fabsf(want[i]));
    }
    assert_true(most > 0);
    return d / most;
}

/* Evaluates columns and compares with rows of the original's whole vocabulary. */
static float eval(s2_engine *e, const int32_t *columns, uint32_t n, const float *want_row)
{
    sl_error err = {0};
    size_t n_codes = e->hp.codebook_size;
    float *logits = calloc(n_codes + 1, sizeof *logits);
    float *hidden = calloc(e->hp.slow.n_embd, sizeof *hidden);
    assert_non_null(logits);
    assert_non_null(hidden);
    assert_ok(s2_slow_ar_eval(e->slow, columns, n, 0, logits, hidden, &err), &err);
    float d = difference(logits, want_row + e->hp.semantic_begin, n_codes);
    free(hidden);
    free(logits);
    return d;
}

static float check_prompt(s2_engine *e, const char *prompt)
{
    char name[64];
    uint32_t n = 0;
    uint32_t n_steps = 0;
    size_t height = 1 + e->hp.n_codebooks;
    snprintf(name, sizeof name, "ar.%s.prompt", prompt);
    int32_t *columns = golden_columns(name, &n);
    snprintf(name, sizeof name, "ar.%s.step_input", prompt);
    int32_t *steps = golden_columns(name, &n_steps);
    snprintf(name, sizeof name, "ar.%s.prefill_logits", prompt);
    float *want = golden_f32(name, NULL);
    snprintf(name, sizeof name, "ar.%s.step_logits", prompt);
    float *want_steps = golden_f32(name, NULL);
    s2_slow_ar_rewind(e->slow, 0);
    float d = eval(e, columns, n, want);
    for (uint32_t i = 0; i < n_steps; i++) {
        d = fmaxf(d, eval(e, steps + i * height, 1, want_steps + (size_t)i * e->hp.n_vocab));
    }
    free(want_steps);
    free(want);
    free(steps);
    free(columns);
    return d;
}

static void test_logits_are_those_of_the_original(void **state)
{
    (void)state;
    static const char *const prompts[] = {"plain", "clone", "long"};
    const s2_extent extent = {640, 640 + N_FRAMES, N_FRAMES};
    for (size_t m = 0; m < N_MODELS; m++) {
        sl_error err = {0};
        s2_engine *e = open_model(models[m]);
        assert_ok(s2_stage_plan_speech(e, &extent, false, &err), &err);
        assert_ok(s2_stage_begin(e, 0, false, &err), &err);
        assert_true(s2_stage_is_moved(e, S2_SLOT_SLOW));
        for (size_t p = 0; p < (is_named ? 3 : 2); p++) {
            float d = check_prompt(e, prompts[p]);
            print_message("%s, %s: logits within %.1e\n", models[m], prompts[p], (double)d);
            assert_true(d <= LOGITS_BOUND);
        }
        s2_stage_end(e);
        s2_engine_close(&e);
    }
}

typedef struct take {
    float *samples;
    size_t n;
    size_t n_room;
} take;

static int on_samples(void *ud, const float *samples, size_t n)
{
    take *t = ud;
    assert_true(t->n + n <= t->n_room);
    memcpy(t->samples + t->n, samples, n * sizeof *samples);
    t->n += n;
    return 0;
}

static void test_sound_of_codes_is_that_of_the_original(void **state)
{
    (void)state;
    for (size_t m = 0; m < N_MODELS; m++) {
        sl_error err = {0};
        s2_stats stats;
        uint32_t n_frames = 0;
        take t = {0};
        s2_engine *e = open_model(models[m]);
        int32_t *codes = golden_columns("dec.codes", &n_frames);
        float *want = golden_f32("dec.audio", NULL);
        n_frames = is_named ? n_frames : 6;
        t.n_room = (size_t)n_frames * e->hp.codec.frame_samples;
        t.samples = calloc(t.n_room, sizeof *t.samples);
        assert_non_null(t.samples);
        assert_ok(s2_engine_decode(e, codes, n_frames, on_samples, &t, &stats, &err), &err);
        assert_int_equal(t.n, t.n_room);
        float d = difference(t.samples, want, t.n);
        print_message("%s: samples within %.1e\n", models[m], (double)d);
        assert_true(d <= AUDIO_BOUND);
        free(t.samples);
        free(want);
        free(codes);
        s2_engine_close(&e);
    }
}

static void test_codes_of_a_recording_are_those_of_the_original(void **state)
{
    (void)state;
    for (size_t m = 0; m < N_MODELS; m++) {
        sl_error err = {0};
        s2_voice voice = {0};
        s2_audio sound = {0};
        size_t n_want = 0;
        size_t n_equal = 0;
        s2_engine *e = open_model(models[m]);
        int32_t *want = golden_i32("enc.ref_first_3000.codes", &n_want);
        assert_ok(s2_audio_read(
                          "tests/data/golden/ref.wav", e->hp.codec.sample_rate, 60.0, &sound, &err),
                &err);
        assert_true(sound.n >= N_SAMPLES);
        assert_ok(s2_engine_make_voice(e, sound.samples, N_SAMPLES, "ref", &voice, &err), &err);
        assert_int_equal((size_t)voice.n_codebooks * voice.n_frames, n_want);
        for (size_t i = 0; i < n_want; i++) {
            n_equal += voice.codes[i] == want[i];
        }
        print_message("%s: %zu of %zu codes equal\n", models[m], n_equal, n_want);
        assert_true((float)n_equal >= CODES_EQUAL * (float)n_want);
        s2_audio_done(&sound);
        s2_voice_done(&voice);
        free(want);
        s2_engine_close(&e);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_logits_are_those_of_the_original),
            cmocka_unit_test(test_sound_of_codes_is_that_of_the_original),
            cmocka_unit_test(test_codes_of_a_recording_are_those_of_the_original),
    };
    int status = 0;
    device = real_device_find(&status);
    is_named = getenv("SLUICE_TEST_DEVICE") != NULL;
    return device ? cmocka_run_group_tests(tests, NULL, NULL) : status;
}
