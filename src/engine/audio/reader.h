/*
 * Decoding sound from memory: the core of s2_audio_read, and of uploads.
 *
 * Threads: any; nothing is shared.
 */
#ifndef S2_READER_H
#define S2_READER_H

#include <stddef.h>

#include "base/status.h"
#include "s2/audio.h"

/*
 * Decodes the n bytes of a whole file to one channel at the file's own rate. `name` is what messages call it
 * (quoted by the caller). At most max_seconds are decoded. The bytes are only read, and may be a mapping.
 * Errors: SL_EINVAL (max_seconds is not positive), and those of s2_audio_read but for the file's own.
 */
int s2_audio_decode(const void *bytes, size_t n, const char *name, double max_seconds,
        s2_audio *ret_audio, sl_error *reterr) SL_MUST_CHECK;

#endif
