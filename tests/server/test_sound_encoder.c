/* Sound to bytes as they are made, and uploads back to sound. */
#include "sound_encoder.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "test_support.h"

#define RATE 44100u
#define N    (RATE / 2)

typedef struct bytes {
    unsigned char *data;
    size_t n;
    size_t n_calls;
    int fail_at; /* the call that fails; -1 = none */
} bytes;

static int take(void *ud, const void *data, size_t n, sl_error *reterr)
{
    bytes *b = ud;
    if ((int)b->n_calls++ == b->fail_at) {
        return sl__fail(reterr, SL_ECANCELLED, "no more");
    }
    b->data = realloc(b->data, b->n + n);
    memcpy(b->data + b->n, data, n);
    b->n += n;
    return 0;
}

static float *make_tone(void)
{
    float *samples = malloc(N * sizeof *samples);
    for (size_t i = 0; i < N; i++) {
        samples[i] = (float)(0.4 * sin(2.0 * 3.14159265358979 * 440.0 * (double)i / RATE));
    }
    return samples;
}

static void encode(s2_audio_format format, size_t piece, bytes *ret)
{
    sound_encoder *e = NULL;
    sl_error err;
    float *tone = make_tone();
    uint32_t rate = sound_encoder_rate(format, RATE, 0);
    assert_ok(sound_encoder_open(format, RATE, rate, take, ret, &e, &err), &err);
    for (size_t i = 0; i < N; i += piece) {
        size_t n = N - i < piece ? N - i : piece;
        assert_ok(sound_encoder_write(e, tone + i, n, &err), &err);
    }
    assert_ok(sound_encoder_finish(e, &err), &err);
    sound_encoder_free(&e);
    free(tone);
}

static void test_every_format_comes_out_in_time_and_reads_back(void **state)
{
    (void)state;
    for (s2_audio_format format = S2_AUDIO_WAV; format < S2_AUDIO_PCM; format++) {
        bytes whole = {.fail_at = -1};
        bytes parts = {.fail_at = -1};
        s2_audio audio = {0};
        sl_error err;
        encode(format, N, &whole);
        encode(format, 2048, &parts);
        /* How it is cut makes no difference, and it does not come all at the end. */
        assert_int_equal(whole.n, parts.n);
        assert_memory_equal(whole.data, parts.data, whole.n);
        assert_true(parts.n_calls > 3);
        assert_ok(sound_decode(parts.data, parts.n, RATE, 10.0, &audio, &err), &err);
        assert_true(audio.n > N * 95 / 100 && audio.n < N * 120 / 100);
        s2_audio_done(&audio);
        free(whole.data);
        free(parts.data);
    }
}

static void test_pcm_is_the_samples(void **state)
{
    bytes b = {.fail_at = -1};
    float *tone = make_tone();
    (void)state;
    encode(S2_AUDIO_PCM, 100, &b);
    assert_int_equal(b.n, 2 * N);
    for (size_t i = 0; i < N; i++) {
        int16_t v = (int16_t)(b.data[2 * i] | b.data[2 * i + 1] << 8);
        assert_int_equal(v, s2_pcm_s16(tone[i]));
    }
    free(tone);
    free(b.data);
}

static void test_sinks_error_comes_back(void **state)
{
    float *tone = make_tone();
    (void)state;
    for (s2_audio_format format = S2_AUDIO_WAV; format < S2_AUDIO_FORMAT_COUNT; format++) {
        bytes b = {.fail_at = 0};
        sound_encoder *e = NULL;
        sl_error err;
        uint32_t rate = sound_encoder_rate(format, RATE, 0);
        assert_ok(sound_encoder_open(format, RATE, rate, take, &b, &e, &err), &err);
        assert_int_equal(sound_encoder_write(e, tone, N, &err), SL_ECANCELLED);
        assert_string_equal(err.msg, "no more");
        sound_encoder_free(&e);
        assert_null(e);
        free(b.data);
    }
    free(tone);
}

static void test_rates(void **state)
{
    (void)state;
    assert_int_equal(sound_encoder_rate(S2_AUDIO_MP3, 44100, 0), 44100);
    assert_int_equal(sound_encoder_rate(S2_AUDIO_MP3, 16000, 0), 16000);
    assert_int_equal(sound_encoder_rate(S2_AUDIO_MP3, 44000, 0), 44100);
    assert_int_equal(sound_encoder_rate(S2_AUDIO_OPUS, 44100, 0), 48000);
    assert_int_equal(sound_encoder_rate(S2_AUDIO_PCM, 44100, 24000), 24000);
    assert_int_equal(sound_encoder_rate(S2_AUDIO_WAV, 16000, 0), 16000);
}

/* The reader's own tests have the zoo of files; here it counts that uploads come to it and errors name no path. */
static void test_G4_18_uploads_are_read_by_content(void **state)
{
    char path[512];
    size_t n = 0;
    s2_audio audio = {0};
    sl_error err;
    (void)state;
    char *wav = test_read_file(test_data(path, sizeof path, "tiny/ref.wav"), &n);
    assert_ok(sound_decode(wav, n, RATE, 10.0, &audio, &err), &err);
    assert_int_equal(audio.n, 2205);
    s2_audio_done(&audio);
    static const struct {
        const char *data;
        size_t n;
        int code;
    } bad[] = {{"", 0, SL_EFORMAT}, {"RIFF", 4, SL_EFORMAT}, {"<html>", 6, SL_EUNSUPPORTED}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        int r = sound_decode(bad[i].data, bad[i].n, RATE, 10.0, &audio, &err);
        assert_true(r == bad[i].code || r == SL_EFORMAT || r == SL_EUNSUPPORTED || r == SL_EINVAL);
        assert_null(strstr(err.msg, "/proc"));
    }
    assert_int_equal(sound_decode(wav, n, RATE, 0.01, &audio, &err), SL_ELIMIT);
    assert_null(strstr(err.msg, "/proc"));
    free(wav);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_every_format_comes_out_in_time_and_reads_back),
            cmocka_unit_test(test_pcm_is_the_samples),
            cmocka_unit_test(test_sinks_error_comes_back),
            cmocka_unit_test(test_rates),
            cmocka_unit_test(test_G4_18_uploads_are_read_by_content),
    };
    return cmocka_run_group_tests_name("sound_encoder", tests, NULL, NULL);
}
