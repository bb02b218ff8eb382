#include "engine/audio/reader.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sndfile.h>

#include "audio_zoo.h"
#include "base/mem.h"
#include "engine/audio/mpeg_frames.h"
#include "test_support.h"

#define RATE 44100u

/* libsndfile 1.2.0 does not free this after a damaged Ogg file; nothing of ours is passed over. */
/* NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming): the sanitizer's name */
__attribute__((visibility("default"))) const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:vorbis_info_init\nleak:vorbis_synthesis_headerin\n";
}
/* NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming) */

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

static s2_audio read_ok(const char *path, uint32_t rate)
{
    s2_audio audio = {0};
    sl_error err;
    assert_ok(s2_audio_read(path, rate, 30.0, &audio, &err), &err);
    assert_int_equal(audio.rate, rate);
    return audio;
}

/* Writes the bytes under a name that says nothing, and reads them. */
static s2_audio read_bytes(const char *dir, const zoo_bytes *b)
{
    char path[4096];
    test_write_file(test_path(path, sizeof path, dir, "sound.txt"), b->p, b->n);
    return read_ok(path, RATE);
}

static void expect_wav(const char *dir, const zoo_wav *spec, double min_snr_db)
{
    zoo_bytes b = zoo_make_wav(spec);
    s2_audio audio = read_bytes(dir, &b);
    assert_int_equal(audio.n, (spec->n_frames * RATE + spec->rate - 1) / spec->rate);
    zoo_expect_tone(&audio, zoo_wav_amplitude(spec), min_snr_db);
    s2_audio_done(&audio);
    zoo_done(&b);
}

static void test_G4_18_wav_encodings(void **state)
{
    static const struct {
        uint32_t tag;
        uint32_t bits;
        double snr_db;
    } kinds[] = {{1, 8, 20}, {1, 16, 60}, {1, 24, 85}, {1, 32, 85}, {3, 32, 85}, {3, 64, 85}};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        for (uint32_t n_channels = 1; n_channels <= 6; n_channels += n_channels == 1 ? 1 : 4) {
            zoo_wav spec = {.tag = kinds[i].tag,
                    .bits = kinds[i].bits,
                    .n_channels = n_channels,
                    .rate = 44100,
                    .n_frames = 22050};
            expect_wav(*state, &spec, kinds[i].snr_db);
            spec.is_extensible = true;
            spec.n_list_before = 101;
            expect_wav(*state, &spec, kinds[i].snr_db);
        }
    }
}

static void test_G4_18_wav_rates(void **state)
{
    static const uint32_t rates[] = {8000, 11025, 16000, 22050, 24000, 32000, 48000, 96000, 192000};
    for (size_t i = 0; i < sizeof rates / sizeof rates[0]; i++) {
        zoo_wav spec = {.tag = 1, .bits = 16, .n_channels = 1, .rate = rates[i]};
        spec.n_frames = rates[i];
        expect_wav(*state, &spec, 60);
    }
}

static void test_G4_18_wav_sizes_lie(void **state)
{
    static const uint32_t sizes[] = {UINT32_MAX, 0x7FFFFFF0, 0x7FFFFFFF, 0, 88201, 4000000};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        zoo_wav spec = {.tag = 1,
                .bits = 16,
                .n_channels = 1,
                .rate = 44100,
                .n_frames = 44100,
                .has_size = true,
                .data_size = sizes[i]};
        expect_wav(*state, &spec, 60);
    }
    zoo_wav odd = {.tag = 1, .bits = 8, .n_channels = 1, .rate = 44100, .n_frames = 44099};
    odd.n_list_after = 300;
    expect_wav(*state, &odd, 20);
    zoo_wav rf64 = {.tag = 1, .bits = 16, .n_channels = 2, .rate = 48000, .n_frames = 48000};
    rf64.is_rf64 = true;
    rf64.n_list_after = 300;
    expect_wav(*state, &rf64, 60);
}

static void test_cut_wav_gives_what_is_left(void **state)
{
    zoo_wav spec = {.tag = 1, .bits = 16, .n_channels = 1, .rate = 44100, .n_frames = 44100};
    spec.n_cut = 44101;
    zoo_bytes b = zoo_make_wav(&spec);
    s2_audio audio = read_bytes(*state, &b);
    assert_int_equal(audio.n, 44100 - 22051);
    zoo_expect_tone(&audio, 0.1, 60);
    s2_audio_done(&audio);
    zoo_done(&b);
}

static void expect_refused(const zoo_bytes *b, int code, const char *part)
{
    s2_audio audio = {0};
    sl_error err;
    assert_int_equal(zoo_decode(b->p, b->n, &audio, &err), code);
    if (!strstr(err.msg, part) || strncmp(err.msg, "the sound: ", 11) != 0) {
        fail_msg("\"%s\" is not in \"%s\"", part, err.msg);
    }
    assert_null(audio.samples);
}

static void refuse_wav(const zoo_wav *spec, int code, const char *part)
{
    zoo_bytes b = zoo_make_wav(spec);
    expect_refused(&b, code, part);
    zoo_done(&b);
}

static void test_G4_18_too_short_or_too_long(void **state)
{
    zoo_wav spec = {.tag = 1, .bits = 16, .n_channels = 1, .rate = 8000};
    (void)state;
    refuse_wav(&spec, SL_EFORMAT, "no samples");
    spec.n_list_after = 300;
    refuse_wav(&spec, SL_EFORMAT, "no samples");
    spec.n_list_after = 0;
    spec.n_frames = 1;
    refuse_wav(&spec, SL_EFORMAT, "(1 samples), at least 46 ms");
    spec.n_frames = 367;
    refuse_wav(&spec, SL_EFORMAT, "45.9 ms of sound");
    spec.n_frames = 240001;
    refuse_wav(&spec, SL_ELIMIT, "longer than 30 s");
    spec.n_frames = 240000;
    zoo_bytes b = zoo_make_wav(&spec);
    s2_audio audio = {0};
    sl_error err;
    assert_ok(zoo_decode(b.p, b.n, &audio, &err), &err);
    assert_int_equal(audio.n, 240000);
    s2_audio_done(&audio);
    assert_int_equal(s2_audio_decode(b.p, b.n, "x", 0.0, &audio, &err), SL_EINVAL);
    assert_int_equal(s2_audio_decode(b.p, b.n, "x", (double)NAN, &audio, &err), SL_EINVAL);
    assert_ok(s2_audio_decode(b.p, b.n, "x", (double)INFINITY, &audio, &err), &err);
    s2_audio_done(&audio);
    zoo_done(&b);
}

static void test_samples_that_are_no_numbers(void **state)
{
    static const uint32_t bad[] = {0x7FC00000, 0x7F800000, 0xFF800000, 0x7F800001};
    zoo_wav spec = {.tag = 3, .bits = 32, .n_channels = 1, .rate = 8000, .n_frames = 8000};
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        zoo_bytes b = zoo_make_wav(&spec);
        memcpy(b.p + 20044, &bad[i], 4);
        expect_refused(&b, SL_EFORMAT, "sample 5000 is not a finite number");
        zoo_done(&b);
    }
}

static void test_samples_too_large_to_resample(void **state)
{
    char path[4096];
    zoo_wav spec = {.tag = 3, .bits = 32, .n_channels = 1, .rate = 8000, .n_frames = 8000};
    zoo_bytes b = zoo_make_wav(&spec);
    s2_audio audio = {0};
    sl_error err;
    for (size_t i = 0; i < 8000; i++) {
        float huge = i % 3 == 0 ? -3e38f : 3e38f;
        memcpy(b.p + 44 + 4 * i, &huge, 4);
    }
    test_write_file(test_path(path, sizeof path, *state, "huge.wav"), b.p, b.n);
    assert_int_equal(s2_audio_read(path, RATE, 30.0, &audio, &err), SL_EFORMAT);
    assert_non_null(strstr(err.msg, "too large"));
    assert_null(audio.samples);
    zoo_done(&b);
}

static void put_id3(zoo_bytes *b, unsigned version, size_t n)
{
    zoo_put(b, "ID3", 3);
    zoo_put_le(b, version, 3);
    for (int shift = 21; shift >= 0; shift -= 7) {
        zoo_put_le(b, (n >> shift) & 0x7F, 1);
    }
    for (size_t i = 0; i < n; i++) {
        zoo_put(b, i % 2 ? "\xFB" : "\xFF", 1); /* full of what looks like MP3 */
    }
}

static zoo_bytes file_bytes(const char *path)
{
    size_t n = 0;
    char *bytes = test_read_file(path, &n);
    zoo_bytes b = {(unsigned char *)bytes, n, n};
    return b;
}

/* A tone of n samples as an MP3 of our writer. */
static zoo_bytes make_mp3(const char *dir, uint32_t rate, size_t n)
{
    char path[4096];
    zoo_write(test_path(path, sizeof path, dir, "made.mp3"), S2_AUDIO_MP3, rate, 0, n);
    return file_bytes(path);
}

#define MP3_AMPLITUDE (0.5 * 0.95) /* LAME leaves room for its own overshoot */

static void expect_tone_of(
        const char *dir, const zoo_bytes *b, double amplitude, size_t n_min, size_t n_max)
{
    s2_audio audio = read_bytes(dir, b);
    assert_in_range(audio.n, n_min, n_max);
    zoo_expect_tone(&audio, amplitude, 30);
    s2_audio_done(&audio);
}

static void test_G4_18_mp3(void **state)
{
    char path[4096];
    zoo_bytes mp3 = make_mp3(*state, 22050, 22050);
    zoo_bytes tagged = {0};
    expect_tone_of(*state, &mp3, MP3_AMPLITUDE, 44100, 44100);
    put_id3(&tagged, 3, 2097152);
    zoo_put(&tagged, mp3.p, mp3.n);
    expect_tone_of(*state, &tagged, MP3_AMPLITUDE, 44100, 44100);
    zoo_done(&tagged);
    put_id3(&tagged, 3, 1000);
    put_id3(&tagged, 4, 5000);
    zoo_put_zeros(&tagged, 700);
    zoo_put(&tagged, mp3.p, mp3.n);
    zoo_put(&tagged, "TAG", 3);
    zoo_put_zeros(&tagged, 125);
    expect_tone_of(*state, &tagged, MP3_AMPLITUDE, 44100, 44100);
    zoo_done(&tagged);
    test_write_file(test_path(path, sizeof path, *state, "an-mp3.wav"), mp3.p, mp3.n);
    s2_audio audio = read_ok(path, RATE);
    assert_int_equal(audio.n, 44100);
    s2_audio_done(&audio);
    mp3.n -= 150; /* the last frame is cut */
    expect_tone_of(*state, &mp3, MP3_AMPLITUDE, 40000, 44100);
    zoo_done(&mp3);
}

/* A variable bitrate and no frame that tells the length. */
static void test_G4_18_mp3_vbr_without_xing(void **state)
{
    char path[4096];
    SF_INFO info = {.samplerate = 44100, .channels = 1};
    int mode = SF_BITRATE_MODE_VARIABLE;
    float *tone = zoo_tone(ZOO_HZ, 0.5, 44100, 44100);
    info.format = SF_FORMAT_MPEG | SF_FORMAT_MPEG_LAYER_III;
    SNDFILE *f = sf_open(test_path(path, sizeof path, *state, "vbr.mp3"), SFM_WRITE, &info);
    assert_non_null(f);
    sf_command(f, SFC_SET_BITRATE_MODE, &mode, sizeof mode);
    assert_int_equal(sf_write_float(f, tone, 44100), 44100);
    assert_int_equal(sf_close(f), 0);
    free(tone);
    zoo_bytes mp3 = file_bytes(path);
    size_t frame = s2_mpeg_frame_bytes(mp3.p);
    assert_true(frame > 0 && frame < mp3.n);
    zoo_bytes stripped = {0};
    zoo_put(&stripped, mp3.p + frame, mp3.n - frame);
    expect_tone_of(*state, &stripped, 0.5, 44100, 44100 + 3 * 1152);
    zoo_done(&stripped);
    zoo_done(&mp3);
}

/* Two files one behind the other: the first says its own length only. */
static void test_mp3_joined(void **state)
{
    zoo_bytes mp3 = make_mp3(*state, 44100, 44100);
    zoo_bytes twice = {0};
    zoo_put(&twice, mp3.p, mp3.n);
    zoo_put(&twice, mp3.p, mp3.n);
    s2_audio audio = read_bytes(*state, &twice);
    assert_in_range(audio.n, 88200, 88200 + 4 * 1152);
    s2_audio_done(&audio);
    zoo_done(&twice);
    zoo_done(&mp3);
}

static void test_mp3_inside_wav(void **state)
{
    zoo_bytes mp3 = make_mp3(*state, 44100, 44100);
    zoo_wav spec = {.tag = 1, .bits = 8, .n_channels = 1, .rate = 44100};
    zoo_bytes b = zoo_make_wav(&spec);
    b.p[20] = 0x55;
    zoo_put(&b, mp3.p, mp3.n);
    expect_tone_of(*state, &b, MP3_AMPLITUDE, 44100, 44100);
    zoo_done(&b);
    zoo_done(&mp3);
}

static void write_sndfile(const char *path, int format, int n_channels)
{
    SF_INFO info = {.samplerate = 48000, .channels = n_channels};
    float *tone = zoo_tone(ZOO_HZ, 0.5, 48000, 48000);
    info.format = format;
    SNDFILE *f = sf_open(path, SFM_WRITE, &info);
    assert_non_null(f);
    for (size_t i = 0; i < 48000; i++) {
        float frame[2] = {tone[i], 0.0f};
        assert_int_equal(sf_writef_float(f, frame, 1), 1);
    }
    assert_int_equal(sf_close(f), 0);
    free(tone);
}

static void test_G4_18_flac_and_ogg(void **state)
{
    static const int formats[] = {SF_FORMAT_FLAC | SF_FORMAT_PCM_16,
            SF_FORMAT_FLAC | SF_FORMAT_PCM_24, SF_FORMAT_OGG | SF_FORMAT_VORBIS,
            SF_FORMAT_OGG | SF_FORMAT_OPUS, SF_FORMAT_WAV | SF_FORMAT_ULAW,
            SF_FORMAT_WAV | SF_FORMAT_ALAW, SF_FORMAT_WAV | SF_FORMAT_MS_ADPCM,
            SF_FORMAT_WAV | SF_FORMAT_IMA_ADPCM, SF_FORMAT_WAVEX | SF_FORMAT_PCM_16};
    char path[4096];
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        for (int n_channels = 1; n_channels <= 2; n_channels++) {
            write_sndfile(test_path(path, sizeof path, *state, "x.mp3"), formats[i], n_channels);
            s2_audio audio = read_ok(path, RATE);
            assert_in_range(audio.n, 44100, 44100 + 1500); /* ADPCM fills its last block */
            zoo_expect_tone(&audio, 0.5 / n_channels, 20);
            s2_audio_done(&audio);
        }
    }
}

static void test_flac_behind_a_tag(void **state)
{
    char path[4096];
    zoo_bytes b = {0};
    write_sndfile(test_path(path, sizeof path, *state, "x"), SF_FORMAT_FLAC | SF_FORMAT_PCM_16, 1);
    zoo_bytes flac = file_bytes(path);
    put_id3(&b, 3, 3000);
    zoo_put(&b, flac.p, flac.n);
    s2_audio audio = read_bytes(*state, &b);
    assert_int_equal(audio.n, 44100);
    s2_audio_done(&audio);
    zoo_done(&b);
    zoo_done(&flac);
}

static void test_G4_18_unsupported_formats_are_named(void **state)
{
    zoo_bytes b = {0};
    (void)state;
    expect_refused(&b, SL_EFORMAT, "an empty file");
    zoo_put_le(&b, 0x18000000, 4);
    zoo_put(&b, "ftypM4A ", 8);
    zoo_put_zeros(&b, 500);
    expect_refused(&b, SL_EUNSUPPORTED, "M4A");
    zoo_done(&b);
    zoo_put_zeros(&b, 5000);
    expect_refused(&b, SL_EFORMAT, "no known sound format; WAV, FLAC");
    zoo_done(&b);
    zoo_put(&b, "fLaC", 4);
    zoo_put_zeros(&b, 5000);
    expect_refused(&b, SL_EFORMAT, "FLAC that cannot be decoded");
    zoo_done(&b);
    zoo_put(&b, "OggS", 4);
    zoo_put_zeros(&b, 24);
    zoo_put(&b, "Speex   ", 8);
    zoo_put_zeros(&b, 500);
    expect_refused(&b, SL_EUNSUPPORTED, "Speex");
    zoo_done(&b);
}

static void test_what_is_no_file(void **state)
{
    char path[4096];
    s2_audio audio = {0};
    sl_error err;
    test_path(path, sizeof path, *state, "none.wav");
    assert_int_equal(s2_audio_read(path, RATE, 30.0, &audio, &err), SL_ENOENT);
    assert_int_equal(s2_audio_read(*state, RATE, 30.0, &audio, &err), SL_EINVAL);
    assert_int_equal(s2_audio_read("/dev/zero", RATE, 30.0, &audio, &err), SL_EINVAL);
    test_path(path, sizeof path, *state, "fifo");
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(s2_audio_read(path, RATE, 30.0, &audio, &err), SL_EINVAL); /* no waiting */
    test_path(path, sizeof path, *state, "empty.wav");
    test_write_file(path, "", 0);
    assert_int_equal(s2_audio_read(path, RATE, 30.0, &audio, &err), SL_EFORMAT);
    assert_non_null(strstr(err.msg, "empty.wav"));
    assert_null(audio.samples);
}

/* Larger than any disk, and nothing but a hole: an answer at once. */
static void test_sparse_giants(void **state)
{
    static const char *const heads[] = {"OggS", "fLaC", "\xFF\xFB\x90\xC4"};
    char path[4096];
    s2_audio audio = {0};
    sl_error err;
    test_path(path, sizeof path, *state, "giant");
    for (size_t i = 0; i < 3; i++) {
        zoo_bytes b = {0};
        zoo_put(&b, heads[i], 4);
        zoo_put_zeros(&b, 413);
        zoo_put(&b, heads[i], 4);
        zoo_put_zeros(&b, 413);
        test_write_file(path, b.p, b.n);
        assert_int_equal(truncate(path, (off_t)1 << 40), 0);
        assert_int_equal(s2_audio_read(path, RATE, 30.0, &audio, &err), SL_ELIMIT);
        zoo_done(&b);
    }
    zoo_wav spec = {.tag = 1, .bits = 16, .n_channels = 1, .rate = 8000, .n_frames = 8000};
    spec.has_size = true;
    zoo_bytes b = zoo_make_wav(&spec);
    test_write_file(path, b.p, b.n);
    assert_int_equal(truncate(path, (off_t)1 << 40), 0);
    assert_int_equal(s2_audio_read(path, RATE, 30.0, &audio, &err), SL_ELIMIT);
    zoo_done(&b);
}

static void test_rate_that_nobody_wants(void **state)
{
    char path[4096];
    zoo_wav spec = {.tag = 1, .bits = 16, .n_channels = 1, .rate = 8000, .n_frames = 8000};
    zoo_bytes b = zoo_make_wav(&spec);
    s2_audio audio = {0};
    sl_error err;
    test_write_file(test_path(path, sizeof path, *state, "x.wav"), b.p, b.n);
    assert_int_equal(s2_audio_read(path, 0, 30.0, &audio, &err), SL_EINVAL);
    assert_int_equal(s2_audio_read(path, 1000000, 30.0, &audio, &err), SL_EINVAL);
    assert_null(audio.samples);
    zoo_done(&b);
}

/* 20 kHz at 96 kHz must vanish below a rate of 40 kHz, and 24 kHz below 48. */
static void test_G4_18_no_aliasing(void **state)
{
    static const uint32_t cases[][2] = {
            {20000, 24000}, {20000, 32000}, {24000, 44100}, {30000, 44100}};
    char path[4096];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        SF_INFO info = {.samplerate = 96000, .channels = 1};
        float *tone = zoo_tone(cases[i][0], 0.9, 96000, 96000);
        info.format = SF_FORMAT_WAV | SF_FORMAT_FLOAT;
        SNDFILE *f = sf_open(test_path(path, sizeof path, *state, "t.wav"), SFM_WRITE, &info);
        assert_non_null(f);
        assert_int_equal(sf_write_float(f, tone, 96000), 96000);
        sf_close(f);
        free(tone);
        s2_audio audio = read_ok(path, cases[i][1]);
        assert_true(zoo_power_db(audio.samples + audio.n / 8, audio.n * 3 / 4) < -80.0);
        s2_audio_done(&audio);
    }
}

/* Every prefix of a file of each kind, and every byte of its first part changed: an answer, no crash. */
static void damage(const char *path, size_t step)
{
    zoo_bytes b = file_bytes(path);
    for (size_t n = 0; n < b.n; n += n < 200 ? 1 : step) {
        s2_audio audio = {0};
        sl_error err;
        int r = zoo_decode(b.p, n, &audio, &err);
        assert_true(r == 0 || r == SL_EFORMAT || r == SL_EUNSUPPORTED);
        s2_audio_done(&audio);
    }
    for (size_t i = 0; i < 200 && i < b.n; i++) {
        s2_audio audio = {0};
        sl_error err;
        b.p[i] ^= 0xFF;
        int r = zoo_decode(b.p, b.n, &audio, &err);
        assert_true(r == 0 || r == SL_EFORMAT || r == SL_EUNSUPPORTED || r == SL_ELIMIT);
        b.p[i] ^= 0xFF;
        s2_audio_done(&audio);
    }
    zoo_done(&b);
}

static void test_damaged_files(void **state)
{
    static const s2_audio_format formats[] = {
            S2_AUDIO_WAV, S2_AUDIO_FLAC, S2_AUDIO_MP3, S2_AUDIO_OPUS};
    char path[4096];
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        zoo_write(test_path(path, sizeof path, *state, "d"), formats[i], 44100, 0, 8000);
        damage(path, 211);
    }
    write_sndfile(path, SF_FORMAT_OGG | SF_FORMAT_VORBIS, 1);
    damage(path, 997);
}

static void test_failed_allocations(void **state)
{
    char path[4096];
    int r = SL_ENOMEM;
    long n_failed = -1;
    zoo_write(test_path(path, sizeof path, *state, "x.wav"), S2_AUDIO_WAV, 48000, 0, 9000);
    for (long i = 0; r == SL_ENOMEM && i < 200; i++) {
        s2_audio audio = {0};
        sl__mem_fail_after(i);
        r = s2_audio_read(path, RATE, 30.0, &audio, NULL);
        sl__mem_fail_after(-1);
        assert_int_equal(audio.samples != NULL, r == 0);
        s2_audio_done(&audio);
        n_failed++;
    }
    assert_int_equal(r, 0);
    assert_true(n_failed > 4);
}

#define dir_test(f) cmocka_unit_test_setup_teardown(f, make_dir, drop_dir)

int main(void)
{
    const struct CMUnitTest tests[] = {
            dir_test(test_G4_18_wav_encodings),
            dir_test(test_G4_18_wav_rates),
            dir_test(test_G4_18_wav_sizes_lie),
            dir_test(test_cut_wav_gives_what_is_left),
            dir_test(test_G4_18_too_short_or_too_long),
            dir_test(test_samples_that_are_no_numbers),
            dir_test(test_samples_too_large_to_resample),
            dir_test(test_G4_18_mp3),
            dir_test(test_G4_18_mp3_vbr_without_xing),
            dir_test(test_mp3_joined),
            dir_test(test_mp3_inside_wav),
            dir_test(test_G4_18_flac_and_ogg),
            dir_test(test_flac_behind_a_tag),
            dir_test(test_G4_18_unsupported_formats_are_named),
            dir_test(test_what_is_no_file),
            dir_test(test_sparse_giants),
            dir_test(test_rate_that_nobody_wants),
            dir_test(test_G4_18_no_aliasing),
            dir_test(test_damaged_files),
            dir_test(test_failed_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
