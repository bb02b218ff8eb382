#include <stdlib.h>
#include <string.h>

#include "audio_zoo.h"
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

static void test_files(void **state)
{
    static const uint32_t rates[] = {8000, 24000, 44100, 48000, 96000};
    char path[4096];
    for (size_t i = 0; i < sizeof rates / sizeof rates[0]; i++) {
        s2_audio audio = {0};
        sl_error err;
        zoo_write(test_path(path, sizeof path, *state, "x.opus"), S2_AUDIO_OPUS, rates[i], 0,
                rates[i]);
        assert_ok(s2_audio_read(path, 48000, 30.0, &audio, &err), &err);
        assert_int_equal(audio.n, 48000);
        zoo_expect_tone(&audio, 0.5, 20);
        s2_audio_done(&audio);
    }
}

static void test_same_sound_same_bytes(void **state)
{
    char path[4096];
    char *bytes[2];
    size_t n[2];
    for (int i = 0; i < 2; i++) {
        zoo_write(test_path(path, sizeof path, *state, "x.opus"), S2_AUDIO_OPUS, 44100, 0, 20000);
        bytes[i] = test_read_file(path, &n[i]);
    }
    assert_int_equal(n[0], n[1]);
    assert_memory_equal(bytes[0], bytes[1], n[0]);
    free(bytes[0]);
    free(bytes[1]);
}

/* Pages of a stream leave while the sound is made, not at its end. */
static void test_stream(void **state)
{
    s2_audio audio = {0};
    sl_error err;
    zoo_bytes b = zoo_write_stream(*state, S2_AUDIO_OPUS, 44100, 44100);
    size_t n_pages = 0;
    for (size_t i = 0; i + 4 <= b.n; i++) {
        n_pages += memcmp(b.p + i, "OggS", 4) == 0;
    }
    assert_true(n_pages >= 8);
    assert_ok(zoo_decode(b.p, b.n, &audio, &err), &err);
    assert_int_equal(audio.n, 48000);
    zoo_expect_tone(&audio, 0.5, 20);
    s2_audio_done(&audio);
    zoo_done(&b);
}

#define dir_test(f) cmocka_unit_test_setup_teardown(f, make_dir, drop_dir)

int main(void)
{
    const struct CMUnitTest tests[] = {
            dir_test(test_files),
            dir_test(test_same_sound_same_bytes),
            dir_test(test_stream),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
