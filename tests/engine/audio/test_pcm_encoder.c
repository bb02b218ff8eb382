#include <stdlib.h>
#include <string.h>

#include "audio_zoo.h"
#include "test_support.h"

static uint32_t le(const unsigned char *p, unsigned n)
{
    uint32_t v = 0;
    for (unsigned i = n; i > 0; i--) {
        v = v << 8 | p[i - 1];
    }
    return v;
}

static void expect_samples(const unsigned char *p, size_t n)
{
    float *tone = zoo_tone(ZOO_HZ, 0.5, 44100, n);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal((int16_t)le(p + 2 * i, 2), s2_pcm_s16(tone[i]));
    }
    free(tone);
}

static void expect_head(const unsigned char *p, uint32_t n_riff, uint32_t n_data)
{
    assert_memory_equal(p, "RIFF", 4);
    assert_int_equal(le(p + 4, 4), n_riff);
    assert_memory_equal(p + 8, "WAVEfmt ", 8);
    assert_int_equal(le(p + 16, 4), 16);
    assert_int_equal(le(p + 20, 2), 1);
    assert_int_equal(le(p + 22, 2), 1);
    assert_int_equal(le(p + 24, 4), 44100);
    assert_int_equal(le(p + 28, 4), 88200);
    assert_int_equal(le(p + 32, 2), 2);
    assert_int_equal(le(p + 34, 2), 16);
    assert_memory_equal(p + 36, "data", 4);
    assert_int_equal(le(p + 40, 4), n_data);
}

static void check_file(size_t n)
{
    char *dir = test_dir_create();
    char path[4096];
    size_t n_bytes = 0;
    zoo_write(test_path(path, sizeof path, dir, "x.wav"), S2_AUDIO_WAV, 44100, 0, n);
    unsigned char *bytes = (unsigned char *)test_read_file(path, &n_bytes);
    assert_int_equal(n_bytes, 44 + 2 * n); /* and nothing behind the samples */
    expect_head(bytes, (uint32_t)n_bytes - 8, (uint32_t)(2 * n));
    expect_samples(bytes + 44, n);
    free(bytes);
    zoo_write(test_path(path, sizeof path, dir, "x.pcm"), S2_AUDIO_PCM, 44100, 0, n);
    bytes = (unsigned char *)test_read_file(path, &n_bytes);
    assert_int_equal(n_bytes, 2 * n);
    expect_samples(bytes, n);
    free(bytes);
    test_dir_remove(dir);
}

static void test_files(void **state)
{
    static const size_t lengths[] = {0, 1, 2047, 2048, 2049, 44100};
    (void)state;
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        check_file(lengths[i]);
    }
}

static void test_streams(void **state)
{
    char *dir = test_dir_create();
    s2_audio audio = {0};
    sl_error err;
    (void)state;
    zoo_bytes b = zoo_write_stream(dir, S2_AUDIO_WAV, 44100, 20000);
    assert_int_equal(b.n, 44 + 40000);
    expect_head(b.p, UINT32_MAX, UINT32_MAX);
    expect_samples(b.p + 44, 20000);
    assert_ok(zoo_decode(b.p, b.n, &audio, &err), &err); /* our own stream as a reference */
    assert_int_equal(audio.n, 20000);
    zoo_expect_tone(&audio, 0.5, 60);
    s2_audio_done(&audio);
    zoo_done(&b);
    b = zoo_write_stream(dir, S2_AUDIO_PCM, 44100, 20000);
    assert_int_equal(b.n, 40000);
    expect_samples(b.p, 20000);
    zoo_done(&b);
    test_dir_remove(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_files),
            cmocka_unit_test(test_streams),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
