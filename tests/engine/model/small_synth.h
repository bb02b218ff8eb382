/* The smallest synthetic model that has every part of a real one: 170 KB, microseconds a frame. */
#ifndef TEST_SMALL_SYNTH_H
#define TEST_SMALL_SYNTH_H

#include <stdint.h>

#include "engine/model/synth.h"
#include "s2/engine.h"

/* Complete options: AR of type `ar_type`, codec F32; 3 codebooks of 16 entries, frames of 8 samples. */
s2_synth_opts small_synth_opts(uint32_t ar_type);

/* Writes DIR/NAME.gguf and its tokenizer beside it. */
void small_synth_write(const s2_synth_opts *opts, const char *dir, const char *name);

/* Opens with one thread; returns what s2_engine_open does. */
int small_synth_try_open(const char *model, s2_engine **ret_engine, sl_error *reterr);

/* Greedy options for `text` with a limit of max_frames and no callbacks. */
s2_speak_opts small_synth_speak(const char *text, uint32_t max_frames);

#endif
