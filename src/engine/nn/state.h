/*
 * Tensors that outlive a graph run: KV caches, convolution states, inputs.
 *
 * Threads: one thread at a time. Zeroed memory may be passed to done.
 */
#ifndef S2_NN_STATE_H
#define S2_NN_STATE_H

#include <stddef.h>

#include "ggml-backend.h"
#include "ggml.h"

#include "base/status.h"
#include "engine/nn/compute.h"

/* Made in one context and one buffer, zero at the start. */
typedef struct s2_state {
    s2_compute *compute; /* set by alloc */
    struct ggml_context *ctx;
    ggml_backend_buffer_t buffer;
    sl_scratch *booked;
    size_t n_bytes;
} s2_state;

/* Room for max_tensors records; create tensors in s->ctx, then alloc. */
int s2_state_init(s2_state *s, size_t max_tensors, sl_error *reterr) SL_MUST_CHECK;
/* kind: SL_MEM_KV or SL_MEM_COMPUTE. Errors: SL_EBUDGET, SL_ENOMEM. */
int s2_state_alloc(
        s2_state *s, s2_compute *compute, sl_mem_kind kind, sl_error *reterr) SL_MUST_CHECK;
void s2_state_clear(s2_state *s); /* all zero again */
size_t s2_state_bytes(const s2_state *s);
void s2_state_done(s2_state *s);

#endif
