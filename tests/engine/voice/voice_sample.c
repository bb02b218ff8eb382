#include "voice_sample.h"

#include <string.h>

#include "test_support.h"

static int32_t sample_codes[SAMPLE_N_CODES] = {0, 4095, 7, 1, 256, 65};
static char sample_text[] = SAMPLE_TEXT;

s2_voice voice_sample(void)
{
    s2_voice voice = {2, 3, 44100, 4096, sample_text, sample_codes};
    return voice;
}

void voice_sample_bytes(unsigned char bytes[SAMPLE_N_BYTES])
{
    static const unsigned char want[SAMPLE_N_BYTES] = {'S', '2', 'V', 'O', 'I', 'C', 'E', 0, 1, 0,
            0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 0x44, 0xAC, 0, 0, 0, 0x10, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0,
            24, 0, 0, 0, 0, 0, 0, 0, 'h', 0xC3, 0xA9, 'l', 'l', 'o', 0, 0, 0, 0, 0, 0xFF, 0x0F, 0,
            0, 7, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 65, 0, 0, 0};
    memcpy(bytes, want, sizeof want);
}

void voice_expect_sample(const s2_voice *voice)
{
    assert_int_equal(voice->n_codebooks, 2);
    assert_int_equal(voice->n_frames, 3);
    assert_int_equal(voice->sample_rate, 44100);
    assert_int_equal(voice->codebook_size, 4096);
    assert_string_equal(voice->text, SAMPLE_TEXT);
    assert_memory_equal(voice->codes, sample_codes, sizeof sample_codes);
}
