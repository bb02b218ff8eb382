/*
 * Synthetic models for llama.cpp, architecture "llama", dense or with experts: seeded noise for weights, and a
 * vocabulary in which every byte is a token, inside the file.
 *
 * For tests and benchmarks of what other programs do with a GGUF file: they load it, and compute what a real model of
 * that size computes.
 *
 * Threads: any, one call at a time for a path.
 */
#ifndef S2_MODEL_SYNTH_LLAMA_H
#define S2_MODEL_SYNTH_LLAMA_H

#include <stdint.h>

#include "base/status.h"
#include "engine/model/synth_noise.h"

typedef struct s2_synth_llama {
    uint32_t n_layer;
    uint32_t n_embd;
    uint32_t n_head;
    uint32_t n_head_kv;
    uint32_t head_dim;
    uint32_t n_ff; /* of an expert, if there are any */
    uint32_t n_vocab;
    uint32_t n_ctx;
    uint32_t n_expert; /* 0 = dense */
    uint32_t n_expert_used;
    uint32_t type;           /* ggml type of the matrices; vectors and routers are F32 */
    uint32_t embedding_type; /* of the table that tokens are looked up in */
    s2_synth_noise noise;
} s2_synth_llama;

/* A dense model of 1.5 billion weights: 1.6 GB at Q8_0. */
s2_synth_llama s2_synth_llama_dense(void);

/* One of 64 experts, 8 of them at a time, and 6.9 billion weights: 7.4 GB at Q8_0. */
s2_synth_llama s2_synth_llama_moe(void);

/* Errors: SL_EINVAL that names the size which does not fit. */
int s2_synth_llama_check(const s2_synth_llama *model, sl_error *reterr) SL_MUST_CHECK;

/* Writes the model atomically. Errors: SL_EINVAL (a type that does not fit the row length), those of
 * s2_synth_llama_check, those of files. */
int s2_synth_llama_write(
        const s2_synth_llama *model, const char *path, sl_error *reterr) SL_MUST_CHECK;

#endif
