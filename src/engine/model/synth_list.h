/* The keys and tensors of an S2 model of given sizes, in file order. For synth.c. */
#ifndef S2_MODEL_SYNTH_LIST_H
#define S2_MODEL_SYNTH_LIST_H

#include <stddef.h>
#include <stdint.h>

#include "engine/model/synth.h"
#include "source/gguf_write.h"

/* What the values of a tensor look like: mean + scale * noise. */
typedef struct s2_synth_tensor {
    char name[96];
    uint32_t type; /* ggml */
    uint32_t n_dims;
    uint64_t ne[3];
    float mean;
    float scale;
} s2_synth_tensor;

typedef struct s2_synth_list {
    s2_synth_tensor *items;
    size_t n;
    size_t cap;
    int is_out_of_memory;
} s2_synth_list;

/* Adds one; ne: up to three sizes, 0 = no such dimension. Out of memory is noted in the list. */
void s2_synth_list_add(s2_synth_list *list, uint32_t type, float mean, float scale,
        const uint64_t ne[3], const char *fmt, ...) SL_PRINTF(6, 7);

/* Errors: SL_ENOMEM. Free with s2_synth_list_done in any case. */
int s2_synth_list_fill(
        const s2_synth_opts *opts, s2_synth_list *list, sl_error *reterr) SL_MUST_CHECK;
void s2_synth_list_done(s2_synth_list *list);

/* A key whose value is a u32. */
typedef struct s2_synth_u32 {
    const char *key;
    uint32_t v;
} s2_synth_u32;

/* Errors are kept by the writer, here and below. */
void s2_synth_put_u32s(sl__gguf_writer *w, const s2_synth_u32 *items, size_t n);

/* Puts every key of an S2 model. */
void s2_synth_put_keys(const s2_synth_opts *opts, sl__gguf_writer *w);

#endif
