/*
 * A graph that is built once for a shape and computed many times.
 *
 * Use: init, build nodes in g->ctx over weights, states and inputs, ggml_set_output on what the caller reads,
 * ggml_build_forward_expand(g->cgraph, ...), alloc once; then fill the inputs and run, again and again.
 *
 * Threads: one thread at a time. Zeroed memory may be passed to done.
 */
#ifndef S2_NN_GRAPH_H
#define S2_NN_GRAPH_H

#include <stddef.h>

#include "ggml-alloc.h"
#include "ggml-backend.h"
#include "ggml.h"

#include "base/status.h"
#include "engine/nn/compute.h"
#include "engine/nn/inputs.h"
#include "engine/nn/state.h"

/*
 * The compute buffer of one graph, or of several that run one after the other and may overwrite each other's
 * results. Zeroed memory is an empty one.
 */
typedef struct s2_arena {
    s2_compute *compute;
    ggml_gallocr_t galloc;
    sl_scratch *booked;
    size_t n_bytes; /* of the largest graph in it */
} s2_arena;

void s2_arena_done(s2_arena *arena);

typedef struct s2_graph {
    s2_compute *compute;
    struct ggml_context *ctx; /* tensor records only, no data */
    struct ggml_cgraph *cgraph;
    s2_state constants;          /* what is computed once, when the graph is allocated */
    struct ggml_cgraph *prelude; /* computes it */
    s2_arena own;
} s2_graph;

/* Room for max_nodes nodes and as many leaves. Errors: SL_ENOMEM. */
int s2_graph_init(
        s2_graph *g, s2_compute *compute, size_t max_nodes, sl_error *reterr) SL_MUST_CHECK;

/*
 * For what stays the same as long as the weights do: build it in g->constants.ctx, of tensors that have their
 * addresses and of other constants, and give it here. It is computed when the graph is allocated, before the first
 * run. Gives the result, as F32, as a leaf for the graph.
 */
struct ggml_tensor *s2_graph_constant(s2_graph *g, struct ggml_tensor *value);

/*
 * Plans, books and allocates the compute buffer of the finished graph; measures it only on a compute that measures.
 * Errors: SL_EUNSUPPORTED (the device lacks an operation: names it), SL_EBUDGET, SL_ENOMEM.
 */
int s2_graph_alloc(s2_graph *g, sl_error *reterr) SL_MUST_CHECK;

/*
 * The same in an arena that outlives the graph: the first graph fixes its size, later ones share it if they fit, and
 * have memory of their own otherwise.
 */
int s2_graph_alloc_in(s2_graph *g, s2_arena *arena, sl_error *reterr) SL_MUST_CHECK;

/* What a run gives back: all of a result, to host memory. */
typedef struct s2_graph_read {
    const struct ggml_tensor *from;
    void *to;
} s2_graph_read;

s2_graph_read s2_graph_read_to(const struct ggml_tensor *from, void *to);

/*
 * Sends inputs, computes once, reads n_reads results, and waits once, for all of it. Inputs that an earlier run has sent
 * are NULL. Errors: SL_ECANCELLED (s2_compute_set_stop), SL_EDEVICE, SL_ENOMEM.
 */
int s2_graph_run(s2_graph *g, const s2_inputs *inputs_or_null, const s2_graph_read *reads,
        size_t n_reads, sl_error *reterr) SL_MUST_CHECK;

/* Bytes of the compute buffer of its own; 0 before alloc. */
size_t s2_graph_bytes(const s2_graph *g);

void s2_graph_done(s2_graph *g);

#endif
