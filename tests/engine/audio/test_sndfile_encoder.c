#include <stdlib.h>
#include <string.h>

#include "audio_zoo.h"
#include "engine/audio/mpeg_frames.h"
#include "test_support.h"

#define MP3_AMPLITUDE (0.5 * 0.95) /* LAME leaves room for its own overshoot */

static int make_dir(void **state)
{
    *state = test_dir_create();
    return 0;
}

static int drop_dir(void **state)
{
    test_dir_remove(*state);
    return 0;
}

static s2_audio read_back(const char *path, uint32_t rate)
{
    s2_audio audio = {0};
    sl_error err;
    assert_ok(s2_audio_read(path, rate, 30.0, &audio, &err), &err);
    return audio;
}

static void test_flac_holds_what_a_wav_holds(void **state)
{
    static const uint32_t rates[] = {8000, 44100, 96000, 192000, 655350};
    char path[4096];
    for (size_t i = 0; i < sizeof rates / sizeof rates[0]; i++) {
        zoo_write(
                test_path(path, sizeof path, *state, "x.flac"), S2_AUDIO_FLAC, rates[i], 0, 34567);
        s2_audio audio = read_back(path, rates[i]);
        float *tone = zoo_tone(ZOO_HZ, 0.5, rates[i], 34567);
        assert_int_equal(audio.n, 34567);
        for (size_t k = 0; k < audio.n; k++) {
            assert_true(audio.samples[k] == (float)s2_pcm_s16(tone[k]) / 32768.0f);
        }
        free(tone);
        s2_audio_done(&audio);
    }
}

static void test_flac_stream(void **state)
{
    s2_audio audio = {0};
    sl_error err;
    zoo_bytes b = zoo_write_stream(*state, S2_AUDIO_FLAC, 44100, 34567);
    assert_ok(zoo_decode(b.p, b.n, &audio, &err), &err);
    assert_int_equal(audio.n, 34567);
    zoo_expect_tone(&audio, 0.5, 60);
    s2_audio_done(&audio);
    zoo_done(&b);
}

static void test_mp3_at_every_rate(void **state)
{
    static const uint32_t rates[] = {8000, 11025, 12000, 16000, 22050, 24000, 32000, 44100, 48000};
    char path[4096];
    for (size_t i = 0; i < sizeof rates / sizeof rates[0]; i++) {
        zoo_write(
                test_path(path, sizeof path, *state, "x.mp3"), S2_AUDIO_MP3, rates[i], 0, rates[i]);
        s2_audio audio = read_back(path, rates[i]);
        assert_int_equal(audio.n, rates[i]); /* the Info frame says how much is padding */
        zoo_expect_tone(&audio, MP3_AMPLITUDE, 30);
        s2_audio_done(&audio);
    }
}

/* No frame of a stream is the empty one that a file gets completed; only whole frames, one rate. */
static void test_mp3_stream(void **state)
{
    s2_audio audio = {0};
    sl_error err;
    zoo_bytes b = zoo_write_stream(*state, S2_AUDIO_MP3, 44100, 44100);
    size_t n_frames = 0;
    size_t at = 0;
    while (at + 4 <= b.n) {
        size_t frame = s2_mpeg_frame_bytes(b.p + at);
        assert_true(frame > 0 && at + frame <= b.n);
        assert_int_equal(b.p[at + 2] >> 4, 9); /* 128 kbit/s */
        bool is_empty = true;
        for (size_t i = 4; i < frame; i++) {
            is_empty = is_empty && b.p[at + i] == 0;
        }
        assert_false(is_empty);
        at += frame;
        n_frames++;
    }
    assert_int_equal(at, b.n);
    assert_in_range(n_frames, 44100 / 1152, 44100 / 1152 + 3);
    assert_ok(zoo_decode(b.p, b.n, &audio, &err), &err);
    assert_in_range(audio.n, n_frames * 1152 - 529, n_frames * 1152); /* the decoder's own delay */
    s2_audio_done(&audio);
    zoo_done(&b);
}

static void test_shortest_files(void **state)
{
    static const s2_audio_format formats[] = {S2_AUDIO_FLAC, S2_AUDIO_MP3};
    char path[4096];
    for (size_t i = 0; i < 2; i++) {
        zoo_write(test_path(path, sizeof path, *state, "x"), formats[i], 44100, 0, 2100);
        s2_audio audio = read_back(path, 44100);
        assert_int_equal(audio.n, 2100);
        s2_audio_done(&audio);
    }
}

#define dir_test(f) cmocka_unit_test_setup_teardown(f, make_dir, drop_dir)

int main(void)
{
    const struct CMUnitTest tests[] = {
            dir_test(test_flac_holds_what_a_wav_holds),
            dir_test(test_flac_stream),
            dir_test(test_mp3_at_every_rate),
            dir_test(test_mp3_stream),
            dir_test(test_shortest_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
