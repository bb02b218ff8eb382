/*
 * What a caller hands to graphs before each run: tensors side by side in one buffer, filled in host memory and sent to the
 * device in one copy. Several graphs of one compute may read them.
 *
 * Use: init, add tensors, alloc, build graphs over them; then fill and give them to s2_graph_run, again and again.
 *
 * Threads: one thread at a time. Zeroed memory may be passed to done.
 */
#ifndef S2_NN_INPUTS_H
#define S2_NN_INPUTS_H

#include <stddef.h>

#include "ggml.h"

#include "base/status.h"
#include "engine/nn/compute.h"
#include "engine/nn/state.h"

typedef struct s2_inputs {
    s2_state state;
    struct ggml_tensor *all; /* every byte of the buffer */
    unsigned char *host;     /* the same bytes here */
} s2_inputs;

/* Room for max_tensors. Errors: SL_ENOMEM. */
int s2_inputs_init(s2_inputs *in, size_t max_tensors, sl_error *reterr) SL_MUST_CHECK;

/* A tensor of the inputs, [ne0, ne1]. Before alloc. */
struct ggml_tensor *s2_inputs_add(s2_inputs *in, enum ggml_type type, int64_t ne0, int64_t ne1);

/* Books and allocates all of them; measures them only on a compute that measures. Errors: SL_EBUDGET, SL_ENOMEM. */
int s2_inputs_alloc(s2_inputs *in, s2_compute *compute, sl_error *reterr) SL_MUST_CHECK;

/* Host memory of one, to be filled: it is what the next run reads. Not on a compute that measures. */
void *s2_inputs_host(const s2_inputs *in, const struct ggml_tensor *tensor);

/* Sends all of them, in the order of the compute's queue: the host memory stays as it is until that has been waited for. */
void s2_inputs_send(const s2_inputs *in);

/* Bytes on the device; 0 before alloc. */
size_t s2_inputs_bytes(const s2_inputs *in);

void s2_inputs_done(s2_inputs *in);

#endif
