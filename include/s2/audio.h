/*
 * Audio files: reading recordings, writing speech.
 *
 * All samples are mono float, nominally -1..1.
 *
 * Threads: an object belongs to one thread at a time.
 */
#ifndef S2_AUDIO_H
#define S2_AUDIO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sluice/error.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum s2_audio_format {
    S2_AUDIO_WAV, /* PCM16 */
    S2_AUDIO_FLAC,
    S2_AUDIO_MP3,
    S2_AUDIO_OPUS, /* Ogg */
    S2_AUDIO_PCM,  /* raw s16le */
    S2_AUDIO_FORMAT_COUNT
} s2_audio_format;

const char *s2_audio_format_name(s2_audio_format format); /* "wav", ... */
/* False if the name is none of them; case does not matter. */
bool s2_audio_format_parse(const char *name, s2_audio_format *ret_format);

/* Samples and their rate. Zeroed memory is empty. */
typedef struct s2_audio {
    float *samples;
    size_t n;
    uint32_t rate; /* Hz */
} s2_audio;

void s2_audio_done(s2_audio *audio);

/*
 * Less sound than this is refused: it is one code frame of S2 Pro. A reference voice wants seconds; callers
 * say a word about one below S2_AUDIO_SHORT_MS.
 */
#define S2_AUDIO_MIN_MS   46
#define S2_AUDIO_SHORT_MS 200

/*
 * Reads a whole file, averages its channels and resamples to `rate` with a windowed sinc. WAV (RIFF and RF64;
 * integers, floats, A-law, mu-law, ADPCM, GSM, MP3), FLAC, Ogg (Vorbis, Opus) and MP3 are recognised by
 * content, whatever the name says. Sizes in headers are clamped to the file, and a file that was cut gives
 * what is left of it. At most max_seconds are accepted.
 * Errors: SL_ENOENT, SL_EACCES, SL_EINVAL (not a regular file, a rate outside 1000..768000), SL_EUNSUPPORTED
 * (another format: named), SL_EFORMAT (too short, samples that are not finite, absurd rate), SL_ELIMIT (too
 * long), SL_ECHANGED (the file shrank meanwhile), SL_ENOMEM, SL_EIO.
 */
int s2_audio_read(
        const char *path, uint32_t rate, double max_seconds, s2_audio *ret_audio, sl_error *reterr);

/* Resamples in one go; ceil(n * to / from) samples. Rates 1000..768000 Hz. */
int s2_audio_resample(const float *samples, size_t n, uint32_t from, uint32_t to,
        s2_audio *ret_audio, sl_error *reterr);

typedef struct s2_audio_writer s2_audio_writer;

typedef struct s2_audio_writer_opts {
    const char *path; /* "-" = standard output */
    s2_audio_format format;
    uint32_t in_rate;  /* Hz of the samples that will be written */
    uint32_t out_rate; /* Hz of the file; 0 = in_rate (Opus: 48000) */
} s2_audio_writer_opts;

/*
 * Begins a file. It appears under its name only when finish succeeds; to a stream, samples leave as they
 * are written: WAV then has 0xFFFFFFFF for its sizes, FLAC no length, MP3 no "Info" frame.
 * MP3 has a constant bitrate (128 kbit/s from 32 kHz on, 80 and 64 below) and is 0.4 dB softer, which is LAME's
 * headroom; Opus has 64 kbit/s. The same samples give the same bytes.
 * Rates in Hz: WAV and PCM 1000..768000, FLAC 1000..655350, MP3 8000, 11025, 12000, 16000, 22050, 24000, 32000,
 * 44100 and 48000, Opus 48000.
 * Errors: SL_EINVAL (a rate that the format cannot carry: names those it can), and those of creating a file.
 */
int s2_audio_writer_open(
        const s2_audio_writer_opts *opts, s2_audio_writer **ret_writer, sl_error *reterr);

/*
 * Appends n samples; values beyond -1..1 are clipped. A NaN among them is an error (SL_EINVAL) and none is
 * appended. After any other error only abort is left. Errors also: SL_ENOSPC, SL_EIO, SL_ELIMIT (a WAV file
 * of 4 GiB).
 */
int s2_audio_writer_write(
        s2_audio_writer *writer, const float *samples, size_t n, sl_error *reterr);

/* Hands what is complete on to the reader of a stream. */
int s2_audio_writer_flush(s2_audio_writer *writer, sl_error *reterr);

/*
 * Completes the file, closes and sets *writer to NULL, also on error. On error nothing new is under the name.
 * FLAC, MP3 and Opus need at least one sample (SL_EINVAL).
 */
int s2_audio_writer_finish(s2_audio_writer **writer, sl_error *reterr);

/* Drops the file. Accepts NULL. */
void s2_audio_writer_abort(s2_audio_writer **writer);

/*
 * Sample to s16: clamped, 1.0 gives 32767, else truncated toward zero of s * 32768 as the existing engine
 * does it.
 */
int16_t s2_pcm_s16(float sample);

#ifdef __cplusplus
}
#endif

#endif
