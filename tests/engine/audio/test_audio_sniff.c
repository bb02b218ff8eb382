#include "engine/audio/audio_sniff.h"

#include <stdlib.h>
#include <string.h>

#include "audio_zoo.h"
#include "test_support.h"

/* Sniffs exactly these bytes from the heap. */
static s2_sound sniff(const void *bytes, size_t n)
{
    unsigned char *copy = malloc(n + (n == 0));
    assert_non_null(copy);
    if (n > 0) {
        memcpy(copy, bytes, n);
    }
    s2_sound sound = s2_sound_sniff(copy, n);
    free(copy);
    assert_true(sound.start <= n);
    assert_non_null(sound.what);
    return sound;
}

/* n_frames frames of MP3 behind what is there already. */
static void put_frames(zoo_bytes *b, size_t n_frames)
{
    for (size_t i = 0; i < n_frames; i++) {
        zoo_put(b, "\xFF\xFB\x90\xC4", 4);
        zoo_put_zeros(b, 413);
    }
}

static void put_id3(zoo_bytes *b, unsigned version, size_t n)
{
    zoo_put(b, "ID3", 3);
    zoo_put_le(b, version, 3);
    for (int shift = 21; shift >= 0; shift -= 7) {
        zoo_put_le(b, (n >> shift) & 0x7F, 1);
    }
    zoo_put_zeros(b, n);
}

static void expect(zoo_bytes *b, s2_sound_kind kind, size_t start)
{
    s2_sound sound = sniff(b->p, b->n);
    assert_int_equal(sound.kind, kind);
    assert_int_equal(sound.start, start);
    zoo_done(b);
}

static void test_mp3_behind_tags_and_padding(void **state)
{
    zoo_bytes b = {0};
    (void)state;
    put_frames(&b, 5);
    expect(&b, S2_SOUND_MPEG, 0);
    put_id3(&b, 3, 2097152);
    put_id3(&b, 4, 300);
    size_t start = b.n;
    put_frames(&b, 5);
    expect(&b, S2_SOUND_MPEG, start);
    put_id3(&b, 4, 100);
    zoo_put_zeros(&b, 3000);
    start = b.n;
    put_frames(&b, 5);
    expect(&b, S2_SOUND_MPEG, start);
    put_frames(&b, 1); /* a short file, and a cut one */
    expect(&b, S2_SOUND_MPEG, 0);
    put_frames(&b, 2);
    b.n -= 100;
    expect(&b, S2_SOUND_MPEG, 0);
}

static void test_tags_with_nothing_behind(void **state)
{
    zoo_bytes b = {0};
    (void)state;
    put_id3(&b, 3, 500);
    expect(&b, S2_SOUND_UNKNOWN, 510);
    put_id3(&b, 3, 500);
    b.n -= 200;
    expect(&b, S2_SOUND_UNKNOWN, 310);
    for (int i = 0; i < 200; i++) {
        put_id3(&b, 3, 0); /* an end to patience */
    }
    s2_sound sound = sniff(b.p, b.n);
    assert_int_equal(sound.kind, S2_SOUND_UNKNOWN);
    zoo_done(&b);
}

static void test_G4_18_other_formats_are_named(void **state)
{
    static const struct {
        size_t offset;
        const char *magic;
        size_t n;
        const char *part;
    } rows[] = {{4, "ftypM4A ", 8, "M4A"}, {4, "ftypisom", 8, "MP4"},
            {0, "FORM\0\0\0\0AIFF", 12, "AIFF"}, {0, "RIFX\0\0\0\0WAVE", 12, "big-endian WAV"},
            {0, "RIFF\0\0\0\0AVI ", 12, "without WAVE"}, {0, ".snd", 4, "AU"},
            {0, "caff", 4, "CAF"}, {0, "\x1A\x45\xDF\xA3", 4, "WebM"},
            {0, "\x30\x26\xB2\x75", 4, "WMA"}, {0, "#!AMR\n", 6, "AMR"},
            {0, "\xFF\xF1\x50\x80", 4, "AAC"}, {0, "\xFF\xF9\x50\x80", 4, "AAC"},
            {0, "MThd", 4, "MIDI"}, {0, "GGUF", 4, "GGUF"}, {0, "S2VOICE", 8, ".s2voice"},
            {0, "<!DOCTYPE html>", 15, "HTML"}, {0, "%PDF-1.7", 8, "PDF"}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        zoo_bytes b = {0};
        zoo_put_zeros(&b, rows[i].offset);
        zoo_put(&b, rows[i].magic, rows[i].n);
        zoo_put_zeros(&b, 100);
        s2_sound sound = sniff(b.p, b.n);
        assert_int_equal(sound.kind, S2_SOUND_OTHER);
        assert_non_null(strstr(sound.what, rows[i].part));
        for (size_t n = 0; n < b.n; n++) {
            (void)sniff(b.p, n); /* cut anywhere: no read beyond the end */
        }
        zoo_done(&b);
    }
}

static void test_noise_is_no_mp3(void **state)
{
    uint32_t x = 12345;
    int n_found = 0;
    (void)state;
    for (int i = 0; i < 20; i++) {
        unsigned char noise[8192];
        for (size_t k = 0; k < sizeof noise; k++) {
            x = x * 1664525u + 1013904223u;
            noise[k] = (x >> 28) == 0 ? 0xFF : (unsigned char)(x >> 20); /* many sync bytes */
        }
        n_found += sniff(noise, sizeof noise).kind != S2_SOUND_UNKNOWN;
    }
    assert_int_equal(n_found, 0);
    assert_int_equal(sniff("", 0).kind, S2_SOUND_UNKNOWN);
    assert_int_equal(sniff("Hello, this is text.", 20).kind, S2_SOUND_UNKNOWN);
    assert_int_equal(sniff("\xFF\xFEH\0e\0l\0l\0o\0", 12).kind, S2_SOUND_UNKNOWN); /* UTF-16 */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_mp3_behind_tags_and_padding),
            cmocka_unit_test(test_tags_with_nothing_behind),
            cmocka_unit_test(test_G4_18_other_formats_are_named),
            cmocka_unit_test(test_noise_is_no_mp3),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
