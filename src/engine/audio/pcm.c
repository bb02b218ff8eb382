/* Small facts of samples and formats; nothing here does input or output. */
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "s2/audio.h"

static const char *const format_names[S2_AUDIO_FORMAT_COUNT] = {
        [S2_AUDIO_WAV] = "wav",
        [S2_AUDIO_FLAC] = "flac",
        [S2_AUDIO_MP3] = "mp3",
        [S2_AUDIO_OPUS] = "opus",
        [S2_AUDIO_PCM] = "pcm",
};

const char *s2_audio_format_name(s2_audio_format format)
{
    return (unsigned)format < S2_AUDIO_FORMAT_COUNT ? format_names[format] : "unknown";
}

bool s2_audio_format_parse(const char *name, s2_audio_format *ret_format)
{
    for (unsigned i = 0; i < S2_AUDIO_FORMAT_COUNT; i++) {
        if (strcasecmp(name, format_names[i]) == 0) {
            *ret_format = (s2_audio_format)i;
            return true;
        }
    }
    return false;
}

void s2_audio_done(s2_audio *audio)
{
    if (audio) {
        sl__free(audio->samples);
        memset(audio, 0, sizeof *audio);
    }
}

int16_t s2_pcm_s16(float sample)
{
    if (sample >= 1.0f) {
        return 32767;
    }
    if (sample > -1.0f) {
        return (int16_t)(sample * 32768.0f);
    }
    return sample <= -1.0f ? -32768 : 0; /* NaN, which no caller lets through, is silence */
}
