/*
 * What a format has to do for the writer: a head, samples, an end.
 *
 * Samples come in at the file's rate, finite and within -1..1. An encoder appends to the out file, and goes
 * back to complete its head only if the file is no stream.
 */
#ifndef S2_ENCODER_H
#define S2_ENCODER_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "os/os_out_file.h"
#include "s2/audio.h"

typedef struct s2_encoder s2_encoder;

typedef struct s2_encoder_ops {
    /* `file` is borrowed until free. */
    int (*create)(sl__out_file *file, s2_audio_format format, uint32_t rate,
            s2_encoder **ret_encoder, sl_error *reterr);
    int (*write)(s2_encoder *encoder, const float *samples, size_t n, sl_error *reterr);
    /* All that is left, and the head. Nothing is written after it. */
    int (*end)(s2_encoder *encoder, sl_error *reterr);
    /* Writes nothing, also when there was no end. Accepts NULL. */
    void (*free)(s2_encoder *encoder);
} s2_encoder_ops;

extern const s2_encoder_ops s2_pcm_encoder;     /* WAV, PCM */
extern const s2_encoder_ops s2_sndfile_encoder; /* FLAC, MP3 */
extern const s2_encoder_ops s2_opus_encoder;    /* Opus in Ogg */

#endif
