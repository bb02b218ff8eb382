#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "audio_zoo.h"
#include "base/mem.h"
#include "test_support.h"

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

static int open_writer(const char *path, s2_audio_format format, uint32_t out_rate,
        s2_audio_writer **ret, sl_error *err)
{
    s2_audio_writer_opts opts = {path, format, 44100, out_rate};
    *ret = NULL;
    return s2_audio_writer_open(&opts, ret, err);
}

static void test_rates_that_a_format_lacks(void **state)
{
    static const struct {
        s2_audio_format format;
        uint32_t in_rate;
        uint32_t out_rate;
        const char *part;
    } rows[] = {
            {S2_AUDIO_MP3, 44100, 96000, "mp3 at 96000 Hz is not possible; choose 8000, 11025"},
            {S2_AUDIO_MP3, 44101, 0, "mp3 at 44101 Hz"},
            {S2_AUDIO_OPUS, 44100, 44100, "opus at 44100 Hz is not possible; choose 48000"},
            {S2_AUDIO_OPUS, 44100, 24000, "choose 48000"},
            {S2_AUDIO_FLAC, 44100, 768000,
                    "flac at 768000 Hz is not possible; choose 1000 to 655350"},
            {S2_AUDIO_WAV, 44100, 999, "wav at 999 Hz is not possible; choose 1000 to 768000"},
            {S2_AUDIO_PCM, 44100, UINT32_MAX, "pcm at 4294967295 Hz"},
            {S2_AUDIO_WAV, 0, 44100, "sound at 0 Hz"},
            {S2_AUDIO_FORMAT_COUNT, 44100, 0, "none of wav, flac"},
    };
    char path[4096];
    struct stat st;
    test_path(path, sizeof path, *state, "x");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        s2_audio_writer_opts opts = {path, rows[i].format, rows[i].in_rate, rows[i].out_rate};
        s2_audio_writer *writer = NULL;
        sl_error err;
        assert_int_equal(s2_audio_writer_open(&opts, &writer, &err), SL_EINVAL);
        if (!strstr(err.msg, rows[i].part)) {
            fail_msg("\"%s\" is not in \"%s\"", rows[i].part, err.msg);
        }
        assert_null(writer);
        assert_int_not_equal(stat(path, &st), 0);
    }
}

static void test_other_rates_are_made(void **state)
{
    static const struct {
        s2_audio_format format;
        uint32_t rate;
        double amplitude;
    } rows[] = {{S2_AUDIO_WAV, 8000, 0.5}, {S2_AUDIO_WAV, 48000, 0.5}, {S2_AUDIO_WAV, 192000, 0.5},
            {S2_AUDIO_FLAC, 24000, 0.5}, {S2_AUDIO_MP3, 16000, 0.475}, {S2_AUDIO_OPUS, 48000, 0.5}};
    char path[4096];
    test_path(path, sizeof path, *state, "x");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        s2_audio audio = {0};
        sl_error err;
        zoo_write(path, rows[i].format, 44100, rows[i].rate, 44101);
        assert_ok(s2_audio_read(path, rows[i].rate, 30.0, &audio, &err), &err);
        assert_int_equal(audio.n, (44101ull * rows[i].rate + 44099) / 44100);
        zoo_expect_tone(&audio, rows[i].amplitude, 20);
        s2_audio_done(&audio);
    }
}

static void test_nan_is_refused_and_the_rest_stays(void **state)
{
    char path[4096];
    size_t n = 0;
    static float samples[3000];
    s2_audio_writer *writer = NULL;
    sl_error err;
    test_path(path, sizeof path, *state, "x.wav");
    assert_ok(open_writer(path, S2_AUDIO_WAV, 0, &writer, &err), &err);
    assert_ok(s2_audio_writer_write(writer, samples, 10, &err), &err);
    samples[2999] = NAN;
    assert_int_equal(s2_audio_writer_write(writer, samples, 3000, &err), SL_EINVAL);
    assert_non_null(strstr(err.msg, "sample 2999 of 3000"));
    assert_ok(s2_audio_writer_finish(&writer, &err), &err);
    free(test_read_file(path, &n));
    assert_int_equal(n, 44 + 20);
}

static void test_values_beyond_one_are_clipped(void **state)
{
    static const float samples[] = {2.0f, -2.0f, INFINITY, -INFINITY, 1.0f, -1.0f, 0.25f};
    static const int16_t want[] = {32767, -32768, 32767, -32768, 32767, -32768, 8192};
    static const s2_audio_format formats[] = {S2_AUDIO_FLAC, S2_AUDIO_MP3, S2_AUDIO_OPUS};
    char path[4096];
    size_t n = 0;
    s2_audio_writer *writer = NULL;
    sl_error err;
    test_path(path, sizeof path, *state, "x.pcm");
    assert_ok(open_writer(path, S2_AUDIO_PCM, 0, &writer, &err), &err);
    assert_ok(s2_audio_writer_write(writer, samples, 7, &err), &err);
    assert_ok(s2_audio_writer_finish(&writer, &err), &err);
    char *bytes = test_read_file(path, &n);
    assert_int_equal(n, sizeof want);
    for (size_t i = 0; i < 7; i++) {
        int low = (unsigned char)bytes[2 * i];
        assert_int_equal((int16_t)(low | (unsigned char)bytes[2 * i + 1] << 8), want[i]);
    }
    free(bytes);
    for (size_t i = 0; i < 3; i++) { /* infinities do not reach filters and encoders */
        assert_ok(open_writer(path, formats[i], i == 0 ? 8000 : 0, &writer, &err), &err);
        for (int k = 0; k < 3000; k++) {
            assert_ok(s2_audio_writer_write(writer, samples, 7, &err), &err);
        }
        assert_ok(s2_audio_writer_finish(&writer, &err), &err);
        s2_audio audio = {0};
        assert_ok(s2_audio_read(path, 44100, 30.0, &audio, &err), &err);
        s2_audio_done(&audio);
    }
}

/* Swinging of the resampler beyond 1 must not wrap. */
static void test_clipping_behind_the_resampler(void **state)
{
    char path[4096];
    s2_audio_writer *writer = NULL;
    sl_error err;
    static float square[44100];
    for (size_t i = 0; i < 44100; i++) {
        square[i] = (i / 50) % 2 ? 1.0f : -1.0f;
    }
    test_path(path, sizeof path, *state, "x.wav");
    assert_ok(open_writer(path, S2_AUDIO_WAV, 48000, &writer, &err), &err);
    assert_ok(s2_audio_writer_write(writer, square, 20000, &err), &err);
    assert_ok(s2_audio_writer_finish(&writer, &err), &err);
    s2_audio audio = {0};
    assert_ok(s2_audio_read(path, 48000, 30.0, &audio, &err), &err);
    for (size_t i = 1; i < audio.n; i++) { /* no jump of the whole range, which wrapping would be */
        assert_true(fabs((double)audio.samples[i] - (double)audio.samples[i - 1]) < 1.9);
    }
    s2_audio_done(&audio);
}

static void test_abort_leaves_what_was_there(void **state)
{
    char path[4096];
    size_t n = 0;
    static const float samples[5000] = {0};
    sl_error err;
    test_path(path, sizeof path, *state, "x");
    test_write_file(path, "old", 3);
    for (unsigned format = 0; format < S2_AUDIO_FORMAT_COUNT; format++) {
        s2_audio_writer *writer = NULL;
        assert_ok(open_writer(path, (s2_audio_format)format, 0, &writer, &err), &err);
        assert_ok(s2_audio_writer_write(writer, samples, 5000, &err), &err);
        s2_audio_writer_abort(&writer);
        assert_null(writer);
        s2_audio_writer_abort(&writer);
        char *bytes = test_read_file(path, &n);
        assert_string_equal(bytes, "old");
        free(bytes);
    }
    s2_audio_writer_abort(NULL);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(*state), 0); /* nothing else remained */
    assert_int_equal(mkdir(*state, 0700), 0);
}

static void test_files_without_sound(void **state)
{
    char path[4096];
    struct stat st;
    sl_error err;
    test_path(path, sizeof path, *state, "x");
    for (unsigned format = 0; format < S2_AUDIO_FORMAT_COUNT; format++) {
        bool is_plain = format == S2_AUDIO_WAV || format == S2_AUDIO_PCM;
        s2_audio_writer *writer = NULL;
        assert_ok(open_writer(path, (s2_audio_format)format, 0, &writer, &err), &err);
        int r = s2_audio_writer_finish(&writer, &err);
        assert_int_equal(r, is_plain ? 0 : SL_EINVAL);
        assert_null(writer);
        assert_int_equal(stat(path, &st) == 0, is_plain);
        unlink(path);
    }
}

/* The error comes from wherever the bytes leave first: head, samples, or the end. */
static int write_all(s2_audio_format format, const char *path, size_t n, sl_error *err)
{
    s2_audio_writer *writer = NULL;
    int r = open_writer(path, format, 0, &writer, err);
    float *tone = zoo_tone(ZOO_HZ, 0.5, 44100, n);
    if (r == 0) {
        r = s2_audio_writer_write(writer, tone, n, err);
    }
    if (r == 0) {
        r = s2_audio_writer_flush(writer, err);
    }
    if (r == 0) {
        r = s2_audio_writer_finish(&writer, err);
    }
    s2_audio_writer_abort(&writer);
    free(tone);
    return r;
}

static void test_full_disk(void **state)
{
    struct stat st;
    (void)state;
    if (stat("/dev/full", &st) != 0) {
        skip();
    }
    for (unsigned format = 0; format < S2_AUDIO_FORMAT_COUNT; format++) {
        sl_error err;
        assert_int_equal(write_all((s2_audio_format)format, "/dev/full", 200000, &err), SL_ENOSPC);
        assert_non_null(strstr(err.msg, "/dev/full"));
        assert_int_equal(write_all((s2_audio_format)format, "/dev/full", 3000, &err), SL_ENOSPC);
    }
}

static void test_places_that_do_not_exist(void **state)
{
    char path[4096];
    sl_error err;
    test_path(path, sizeof path, *state, "none/x.wav");
    for (unsigned format = 0; format < S2_AUDIO_FORMAT_COUNT; format++) {
        assert_int_equal(write_all((s2_audio_format)format, path, 3000, &err), SL_ENOENT);
        assert_non_null(strstr(err.msg, "none/x.wav"));
    }
}

static void test_failed_allocations(void **state)
{
    char path[4096];
    test_path(path, sizeof path, *state, "x");
    for (unsigned format = 0; format < S2_AUDIO_FORMAT_COUNT; format++) {
        int r = SL_ENOMEM;
        long n_failed = -1;
        for (long i = 0; r == SL_ENOMEM && i < 100; i++) {
            struct stat st;
            sl_error err;
            sl__mem_fail_after(i);
            r = write_all((s2_audio_format)format, path, 3000, &err);
            sl__mem_fail_after(-1);
            assert_int_equal(stat(path, &st) == 0, r == 0);
            n_failed++;
        }
        assert_int_equal(r, 0);
        assert_true(n_failed >= 3);
        assert_int_equal(unlink(path), 0);
    }
}

#define dir_test(f) cmocka_unit_test_setup_teardown(f, make_dir, drop_dir)

int main(void)
{
    const struct CMUnitTest tests[] = {
            dir_test(test_rates_that_a_format_lacks),
            dir_test(test_other_rates_are_made),
            dir_test(test_nan_is_refused_and_the_rest_stays),
            dir_test(test_values_beyond_one_are_clipped),
            dir_test(test_clipping_behind_the_resampler),
            dir_test(test_abort_leaves_what_was_there),
            dir_test(test_files_without_sound),
            cmocka_unit_test(test_full_disk),
            dir_test(test_places_that_do_not_exist),
            dir_test(test_failed_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
