/*
 * Synthetic S2 models: every tensor and key of a real one, any size and type, seeded noise for weights.
 *
 * For tests and benchmarks: they compute what a real model of that size computes, and say nothing.
 *
 * Threads: any, one call at a time for a path.
 */
#ifndef S2_MODEL_SYNTH_H
#define S2_MODEL_SYNTH_H

#include <stdint.h>

#include <stdbool.h>

#include "base/status.h"
#include "engine/model/hparams.h"

typedef struct s2_synth_opts {
    s2_hparams hp;    /* sizes; those that follow from others are filled in by s2_synth_complete */
    uint32_t ar_type; /* ggml type of the AR's matrices; its vectors are F32 for F32, else F16 */
    uint32_t codec_type; /* F16 or F32 */
    uint64_t seed;
    bool (*should_stop)(
            void); /* asked while writing; true ends it with SL_ECANCELLED. NULL = never */
} s2_synth_opts;

/* The sizes of S2 Pro, AR Q8_0, codec F16: 5.6 GB. */
s2_synth_opts s2_synth_s2_pro(void);

/* A model of the same shape that a test can afford: 12 MB at Q8_0. */
s2_synth_opts s2_synth_tiny(void);

/*
 * Fills in what follows: semantic ids at the end of the vocabulary, frame size, widths of codec stages,
 * heads. Errors: SL_EINVAL that names the size which does not fit.
 */
int s2_synth_complete(s2_synth_opts *opts, sl_error *reterr) SL_MUST_CHECK;

/* Writes the model atomically. Errors: SL_EINVAL (a type that does not fit the row length), those of files. */
int s2_synth_write(const s2_synth_opts *opts, const char *path, sl_error *reterr) SL_MUST_CHECK;

/* Writes a tokenizer.json with the model's ids: bytes as tokens, no merges. */
int s2_synth_write_tokenizer(
        const s2_synth_opts *opts, const char *path, sl_error *reterr) SL_MUST_CHECK;

/* ggml type number of a name ("q8_0", "f16"); false for one that a model cannot have. */
bool s2_synth_type(const char *name, uint32_t *ret_type);

#endif
