/*
 * Where the samples of a WAV file are, whatever its header says.
 *
 * Sizes in headers lie: they are 0, 0x7FFFFFF0 or 0xFFFFFFFF where a program could not go back to fill them
 * in, or larger than a file that was cut. So the chunks are walked here, sizes are clamped to the bytes that
 * exist, and a plain header is made anew, which libsndfile gets to see in place of the old one.
 *
 *   "RIFF" u32 size "WAVE" { id[4] u32 size, bytes, pad to even }    fmt, data; LIST, fact, ... are skipped
 *   "RF64" 0xFFFFFFFF "WAVE" "ds64" u32 size u64 riff u64 data ...   the 64-bit form
 *
 * Pure functions; any thread.
 */
#ifndef S2_RIFF_H
#define S2_RIFF_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

#define S2_RIFF_HEAD_MAX 512

typedef struct s2_riff {
    unsigned char head[S2_RIFF_HEAD_MAX]; /* a header that tells the truth */
    size_t n_head;
    size_t data_at; /* samples, in the given bytes */
    size_t n_data;
    bool is_mpeg; /* the data are MP3 frames: head is not used */
} s2_riff;

/*
 * `bytes` begin with RIFF, RF64 or BW64 and hold WAVE at 8. `name` is what messages call them.
 * Errors: SL_EFORMAT (no fmt or data chunk, absurd values), SL_EUNSUPPORTED (an encoding: its number),
 * SL_ELIMIT (4 GiB of samples or more).
 */
int s2_riff_parse(const unsigned char *bytes, size_t n, const char *name, s2_riff *ret_riff,
        sl_error *reterr) SL_MUST_CHECK;

#endif
