#include "engine/voice/voice_format.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "test_support.h"
#include "voice_sample.h"

static const char magic[8] = "S2VOICE";

/* Parses a copy of exactly n bytes, so that a read beyond them is caught; *ret_msg borrows from err. */
static int parse(const unsigned char *bytes, size_t n, sl_error *err)
{
    s2_voice voice = {0};
    char *copy = malloc(n + (n == 0));
    assert_non_null(copy);
    memcpy(copy, bytes, n);
    memset(err, 0, sizeof *err);
    int r = s2_voice_parse(copy, n, "voice x", &voice, err);
    free(copy);
    if (r == 0) {
        s2_voice_done(&voice);
    } else {
        assert_null(voice.text);
        assert_null(voice.codes);
        assert_int_equal(strncmp(err->msg, "voice x", 7), 0);
    }
    return r;
}

static void expect(
        const unsigned char *bytes, size_t n, int code, uint64_t offset, const char *part)
{
    sl_error err;
    assert_int_equal(parse(bytes, n, &err), code);
    if (!strstr(err.msg, part)) {
        fail_msg("\"%s\" is not in \"%s\"", part, err.msg);
    }
    assert_int_equal(err.offset, offset);
}

static void test_sound_file(void **state)
{
    unsigned char bytes[SAMPLE_N_BYTES];
    s2_voice voice = {0};
    sl_error err;
    (void)state;
    voice_sample_bytes(bytes);
    assert_ok(s2_voice_parse((const char *)bytes, sizeof bytes, "x", &voice, &err), &err);
    voice_expect_sample(&voice);
    s2_voice_done(&voice);
    assert_null(voice.text);
    s2_voice_done(&voice);
    s2_voice_done(NULL);
}

static void test_encoding_is_the_published_layout(void **state)
{
    unsigned char want[SAMPLE_N_BYTES];
    s2_voice voice = voice_sample();
    char *bytes = NULL;
    size_t n = 0;
    sl_error err;
    (void)state;
    voice_sample_bytes(want);
    assert_ok(s2_voice_encode(&voice, &bytes, &n, &err), &err);
    assert_int_equal(n, sizeof want);
    assert_memory_equal(bytes, want, sizeof want);
    sl__free(bytes);
}

static void test_cut_at_every_byte(void **state)
{
    unsigned char bytes[SAMPLE_N_BYTES];
    sl_error err;
    (void)state;
    voice_sample_bytes(bytes);
    for (size_t n = 0; n < sizeof bytes; n++) {
        assert_int_equal(parse(bytes, n, &err), SL_EFORMAT);
        assert_non_null(strstr(err.msg, n < 8 ? "not a .s2voice" : "cut off"));
    }
}

static void test_something_behind_the_end(void **state)
{
    unsigned char bytes[SAMPLE_N_BYTES + 1] = {0};
    (void)state;
    voice_sample_bytes(bytes);
    expect(bytes, sizeof bytes, SL_EFORMAT, SAMPLE_N_BYTES, "followed by something else");
}

/* Every bit of the header matters: with any of them flipped the file is refused or reads as other rates. */
static void test_every_bit_of_the_header(void **state)
{
    unsigned char bytes[SAMPLE_N_BYTES];
    sl_error err;
    int n_accepted = 0;
    (void)state;
    for (size_t i = 0; i < (size_t)8 * SAMPLE_HEAD; i++) {
        voice_sample_bytes(bytes);
        bytes[i / 8] ^= (unsigned char)(1u << (i % 8));
        int r = parse(bytes, sizeof bytes, &err);
        bool is_free = i / 8 >= 20 && i / 8 < 28; /* sample rate and codebook size stand alone */
        assert_true(r == SL_EFORMAT || r == SL_ELIMIT || (r == 0 && is_free));
        n_accepted += r == 0;
    }
    assert_true(n_accepted > 8);
}

static void put(unsigned char *bytes, size_t at, size_t n, uint64_t value)
{
    for (size_t i = 0; i < n; i++) {
        bytes[at + i] = (unsigned char)(value >> (8 * i));
    }
}

static void test_fields_out_of_range(void **state)
{
    static const struct {
        size_t at;
        size_t n_bytes;
        uint64_t value;
        int code;
        uint64_t offset;
        const char *part;
    } bad[] = {
            {8, 4, 0, SL_EFORMAT, 8, "version 0"},
            {8, 4, 2, SL_EFORMAT, 8, "version 2"},
            {12, 4, 0, SL_EFORMAT, 12, "number of codebooks is 0"},
            {12, 4, UINT64_MAX, SL_EFORMAT, 12, "number of codebooks is -1"},
            {12, 4, 0x7FFFFFFF, SL_EFORMAT, 12, "number of codebooks is 2147483647"},
            {12, 4, 3, SL_EFORMAT, 36, "3 codebooks of 3 frames need 36"},
            {16, 4, 0, SL_EFORMAT, 16, "number of frames is 0"},
            {16, 4, UINT64_MAX, SL_EFORMAT, 16, "number of frames is -1"},
            {16, 4, 100000, SL_ELIMIT, 16, "number of frames is 100000"},
            {16, 4, 0x40000000, SL_ELIMIT, 16, "number of frames is 1073741824"},
            {16, 4, 2, SL_EFORMAT, 36, "2 codebooks of 2 frames need 16"},
            {20, 4, 0, SL_EFORMAT, 20, "sample rate is 0"},
            {20, 4, 0x80000000, SL_EFORMAT, 20, "sample rate is -2147483648"},
            {20, 4, 0x7FFFFFFF, SL_EFORMAT, 20, "sample rate"},
            {24, 4, 0, SL_EFORMAT, 24, "codebook size is 0"},
            {24, 4, UINT64_MAX, SL_EFORMAT, 24, "codebook size is -1"},
            {24, 4, 4095, SL_EFORMAT, SAMPLE_AT_CODES + 4,
                    "code 4095 in codebook 0, frame 1 is outside 0 to 4094"},
            {28, 8, 0, SL_EFORMAT, 28, "transcript has 0 bytes"},
            {28, 8, 1, SL_EFORMAT, 28, "transcript has 1 bytes"},
            {28, 8, UINT64_MAX, SL_EFORMAT, 28, "transcript has 18446744073709551615 bytes"},
            {28, 8, UINT64_MAX - 60, SL_EFORMAT, 28, "transcript"}, /* the sum would wrap */
            {28, 8, 1048576, SL_EFORMAT, SAMPLE_N_BYTES, "cut off"},
            {28, 8, 6, SL_EFORMAT, SAMPLE_N_BYTES - 1, "followed by"},
            {36, 8, 0, SL_EFORMAT, 36, "codes have 0 bytes"},
            {36, 8, 23, SL_EFORMAT, 36, "codes have 23 bytes"},
            {36, 8, UINT64_MAX - 3, SL_EFORMAT, 36, "codes have 18446744073709551612 bytes"},
            {SAMPLE_AT_CODES, 4, UINT64_MAX, SL_EFORMAT, SAMPLE_AT_CODES, "code -1 in codebook 0"},
            {SAMPLE_AT_CODES + 20, 4, 4096, SL_EFORMAT, SAMPLE_AT_CODES + 20,
                    "code 4096 in codebook 1, frame 2"},
            {SAMPLE_HEAD + 2, 1, 0, SL_EFORMAT, SAMPLE_HEAD + 2, "NUL inside, at byte 2"},
            {SAMPLE_HEAD + 1, 1, 0xFF, SL_EFORMAT, SAMPLE_HEAD + 1, "not UTF-8 from its byte 1"},
            {SAMPLE_HEAD + 5, 1, 0xC3, SL_EFORMAT, SAMPLE_HEAD + 5, "not UTF-8 from its byte 5"},
            {SAMPLE_HEAD + 6, 1, 'x', SL_EFORMAT, SAMPLE_HEAD + 6, "does not end with a NUL"},
    };
    unsigned char bytes[SAMPLE_N_BYTES];
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        voice_sample_bytes(bytes);
        put(bytes, bad[i].at, bad[i].n_bytes, bad[i].value);
        expect(bytes, sizeof bytes, bad[i].code, bad[i].offset, bad[i].part);
    }
}

static void expect_not_saved(s2_voice voice, const char *part)
{
    char *bytes = NULL;
    size_t n = 0;
    sl_error err;
    assert_int_equal(s2_voice_encode(&voice, &bytes, &n, &err), SL_EINVAL);
    assert_non_null(strstr(err.msg, part));
    assert_null(bytes);
}

static void test_inconsistent_voices_are_not_encoded(void **state)
{
    char bad_text[] = "a\xFFz";
    char no_text[] = "";
    int32_t bad_codes[SAMPLE_N_CODES] = {0, 0, 0, 0, 0, 4096};
    s2_voice voice = voice_sample();
    (void)state;
    voice.text = NULL;
    expect_not_saved(voice, "no transcript");
    voice.text = no_text;
    expect_not_saved(voice, "no transcript");
    voice.text = bad_text;
    expect_not_saved(voice, "not UTF-8");
    voice = voice_sample();
    voice.codes = NULL;
    expect_not_saved(voice, "no codes");
    voice.codes = bad_codes;
    expect_not_saved(voice, "code 4096 in codebook 1, frame 2");
    voice = voice_sample();
    voice.n_frames = 0;
    expect_not_saved(voice, "frames is 0");
    voice.n_frames = S2_VOICE_MAX_FRAMES + 1;
    expect_not_saved(voice, "frames is 65537");
    voice = voice_sample();
    voice.n_codebooks = UINT32_MAX;
    expect_not_saved(voice, "codebooks is 4294967295");
    voice = voice_sample();
    voice.sample_rate = 0;
    expect_not_saved(voice, "sample rate is 0");
}

static void test_longest_transcript(void **state)
{
    s2_voice voice = voice_sample();
    char *bytes = NULL;
    size_t n = 0;
    sl_error err;
    char *text = malloc(S2_VOICE_MAX_TEXT_BYTES + 1);
    (void)state;
    assert_non_null(text);
    memset(text, 'a', S2_VOICE_MAX_TEXT_BYTES);
    text[S2_VOICE_MAX_TEXT_BYTES] = '\0';
    voice.text = text;
    expect_not_saved(voice, "1048576 bytes, at most 1048575");
    text[S2_VOICE_MAX_TEXT_BYTES - 1] = '\0';
    assert_ok(s2_voice_encode(&voice, &bytes, &n, &err), &err);
    assert_int_equal(parse((const unsigned char *)bytes, n, &err), 0);
    assert_true(n <= S2_VOICE_MAX_BYTES);
    sl__free(bytes);
    free(text);
}

static void test_failed_allocations(void **state)
{
    unsigned char bytes[SAMPLE_N_BYTES];
    s2_voice voice = voice_sample();
    char *encoded = NULL;
    size_t n = 0;
    sl_error err;
    (void)state;
    voice_sample_bytes(bytes);
    for (long i = 0; i < 2; i++) {
        s2_voice got = {0};
        sl__mem_fail_after(i);
        int r = s2_voice_parse((const char *)bytes, sizeof bytes, "x", &got, &err);
        sl__mem_fail_after(-1);
        assert_int_equal(r, SL_ENOMEM);
        assert_null(got.text);
    }
    sl__mem_fail_after(0);
    int r = s2_voice_encode(&voice, &encoded, &n, &err);
    sl__mem_fail_after(-1);
    assert_int_equal(r, SL_ENOMEM);
    assert_null(encoded);
}

static void test_other_files(void **state)
{
    static const unsigned char zeros[300] = {0};
    unsigned char gguf[64] = "GGUF";
    (void)state;
    expect(zeros, sizeof zeros, SL_EFORMAT, 0, "not a .s2voice file");
    expect(gguf, sizeof gguf, SL_EFORMAT, 0, "not a .s2voice file");
    expect((const unsigned char *)magic, sizeof magic, SL_EFORMAT, 8, "cut off");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_sound_file),
            cmocka_unit_test(test_encoding_is_the_published_layout),
            cmocka_unit_test(test_cut_at_every_byte),
            cmocka_unit_test(test_something_behind_the_end),
            cmocka_unit_test(test_every_bit_of_the_header),
            cmocka_unit_test(test_fields_out_of_range),
            cmocka_unit_test(test_inconsistent_voices_are_not_encoded),
            cmocka_unit_test(test_longest_transcript),
            cmocka_unit_test(test_failed_allocations),
            cmocka_unit_test(test_other_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
