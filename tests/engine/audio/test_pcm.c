#include <limits.h>
#include <math.h>
#include <string.h>

#include "s2/audio.h"
#include "test_support.h"

static void test_s16(void **state)
{
    static const struct {
        float sample;
        int want;
    } rows[] = {{0.0f, 0}, {-0.0f, 0}, {1.0f, 32767}, {2.0f, 32767}, {INFINITY, 32767},
            {-1.0f, -32768}, {-1.5f, -32768}, {-INFINITY, -32768}, {0.5f, 16384}, {-0.5f, -16384},
            {0.99999f, 32767}, {-0.99999f, -32767}, {0x1p-15f, 1}, {-0x1p-15f, -1}, {0x1.ep-15f, 1},
            {-0x1.ep-15f, -1}, {0x1.ep-16f, 0}, {-0x1.ep-16f, 0}, {NAN, 0}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(s2_pcm_s16(rows[i].sample), rows[i].want);
    }
}

static void test_s16_gives_every_sample_back(void **state)
{
    (void)state;
    for (int v = SHRT_MIN; v <= SHRT_MAX; v++) {
        assert_int_equal(s2_pcm_s16((float)v / 32768.0f), v);
    }
}

static void test_format_names(void **state)
{
    static const char *const bad[] = {"", "wave", "mp33", "m4a", "wav "};
    (void)state;
    for (unsigned i = 0; i < S2_AUDIO_FORMAT_COUNT; i++) {
        s2_audio_format format = S2_AUDIO_FORMAT_COUNT;
        assert_true(s2_audio_format_parse(s2_audio_format_name((s2_audio_format)i), &format));
        assert_int_equal(format, i);
    }
    s2_audio_format upper = S2_AUDIO_PCM;
    assert_true(s2_audio_format_parse("FLAC", &upper));
    assert_int_equal(upper, S2_AUDIO_FLAC);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        s2_audio_format format = S2_AUDIO_PCM;
        assert_false(s2_audio_format_parse(bad[i], &format));
        assert_int_equal(format, S2_AUDIO_PCM);
    }
    assert_string_equal(s2_audio_format_name(S2_AUDIO_FORMAT_COUNT), "unknown");
}

static void test_done_accepts_nothing(void **state)
{
    s2_audio audio = {0};
    (void)state;
    s2_audio_done(&audio);
    s2_audio_done(NULL);
    assert_null(audio.samples);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_s16),
            cmocka_unit_test(test_s16_gives_every_sample_back),
            cmocka_unit_test(test_format_names),
            cmocka_unit_test(test_done_accepts_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
