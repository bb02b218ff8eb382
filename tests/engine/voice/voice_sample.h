/* A small sound voice, as a value and as the bytes of its file, written independently of the library. */
#ifndef VOICE_SAMPLE_H
#define VOICE_SAMPLE_H

#include <stddef.h>

#include "s2/voice.h"

#define SAMPLE_TEXT     "h\xC3\xA9llo"
#define SAMPLE_N_CODES  6 /* 2 codebooks of 3 frames */
#define SAMPLE_HEAD     44
#define SAMPLE_N_BYTES  (SAMPLE_HEAD + 7 + 4 * SAMPLE_N_CODES)
#define SAMPLE_AT_CODES (SAMPLE_HEAD + 7)

/* The voice borrows its text and codes from static memory: not for s2_voice_done. */
s2_voice voice_sample(void);

void voice_sample_bytes(unsigned char bytes[SAMPLE_N_BYTES]);

void voice_expect_sample(const s2_voice *voice);

#endif
