/*
 * Samples to the bytes of an audio format, handed out as they are made.
 *
 * The engine's audio writer writes to files and streams; here its stream is a pipe whose other end is read back after
 * every piece. A piece is small enough that its bytes always fit into the pipe.
 *
 * Threads: one at a time.
 */
#ifndef SERVER_SOUND_ENCODER_H
#define SERVER_SOUND_ENCODER_H

#include <stddef.h>

#include "base/status.h"
#include "s2/audio.h"

typedef struct sound_encoder sound_encoder;

/* Takes bytes; a negative result ends the writing with it. */
typedef int sound_sink(void *ud, const void *bytes, size_t n, sl_error *reterr);

/*
 * out_rate: Hz, 0 = the format's own (Opus) or in_rate. Errors: SL_EINVAL (a rate that the format lacks), SL_ENOMEM,
 * SL_EIO.
 */
int sound_encoder_open(s2_audio_format format, uint32_t in_rate, uint32_t out_rate,
        sound_sink *sink, void *ud, sound_encoder **ret_encoder, sl_error *reterr) SL_MUST_CHECK;

/* Errors: those of the sink, SL_EINVAL (a sample that is no number), SL_EIO. */
int sound_encoder_write(
        sound_encoder *e, const float *samples, size_t n, sl_error *reterr) SL_MUST_CHECK;

/* The end of the format. */
int sound_encoder_finish(sound_encoder *e, sl_error *reterr) SL_MUST_CHECK;

/* Accepts NULL; sets *e to NULL. */
void sound_encoder_free(sound_encoder **e);

/* Rate of the sound that comes out: what was asked for, else in_rate if the format has it, else the usual one. */
uint32_t sound_encoder_rate(s2_audio_format format, uint32_t in_rate, uint32_t asked_rate);

/* "audio/mpeg", ... */
const char *sound_content_type(s2_audio_format format);

/* Decodes an uploaded audio file from memory, at `rate`. Errors: those of s2_audio_read. */
int sound_decode(const void *bytes, size_t n, uint32_t rate, double max_seconds,
        s2_audio *ret_audio, sl_error *reterr) SL_MUST_CHECK;

#endif
