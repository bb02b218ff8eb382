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
/* False if the name is none of them. */
bool s2_audio_format_parse(const char *name, s2_audio_format *ret_format);

/* Samples and their rate. Zeroed memory is empty. */
typedef struct s2_audio {
    float *samples;
    size_t n;
    uint32_t rate; /* Hz */
} s2_audio;

void s2_audio_done(s2_audio *audio);

/*
 * Reads a whole file (WAV, FLAC, Ogg, MP3, recognised by content), averages its channels and resamples to
 * `rate` with a windowed sinc. Sizes in headers are clamped to the file. At most max_seconds are accepted.
 * Errors: SL_ENOENT, SL_EACCES, SL_EINVAL (not a regular file), SL_EUNSUPPORTED (another format: named),
 * SL_EFORMAT (no samples, samples that are not finite, absurd rate), SL_ELIMIT (too long), SL_ENOMEM.
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
 * are written, with a header of unknown length where the format has one.
 * Errors: SL_EINVAL (a rate that the format cannot carry), and those of creating a file.
 */
int s2_audio_writer_open(
        const s2_audio_writer_opts *opts, s2_audio_writer **ret_writer, sl_error *reterr);

/* Appends n samples; values beyond -1..1 are clipped, NaN is an error (SL_EINVAL). */
int s2_audio_writer_write(
        s2_audio_writer *writer, const float *samples, size_t n, sl_error *reterr);

/* Hands what is complete on to the reader of a stream. */
int s2_audio_writer_flush(s2_audio_writer *writer, sl_error *reterr);

/* Completes the file, closes and sets *writer to NULL. On error nothing remains under the name. */
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
