/*
 * What the functions that add nodes to a graph share: the graph, the way to compute, probes.
 *
 * A tensor that they call a signal has the logical shape [time, channels] with any strides: a transposed view
 * is as good as a contiguous tensor. Rows are contiguous tensors [channels, time].
 */
#ifndef S2_NN_BUILD_H
#define S2_NN_BUILD_H

#include <stdbool.h>

#include "ggml.h"

#include "engine/nn/graph.h"

/* Tests look at inner tensors through this: called after each run, once for each named stage. */
typedef struct s2_probe {
    /* stage: logical shape [ne0, ne1], contiguous. */
    void (*see)(void *user, const char *stage, const float *data, int64_t ne0, int64_t ne1);
    void *user;
} s2_probe;

/* Zeroed = as usual. */
typedef struct s2_build_options {
    bool is_standard; /* standard ggml operations even where fused kernels exist */
    const s2_probe *probe;
} s2_build_options;

typedef struct s2_build {
    s2_graph *g;
    struct ggml_context *ctx; /* of g */
    bool is_fused;  /* the fused CPU kernels (nn/codec_kernels.h), not standard ggml operations */
    bool is_probed; /* keep the stages for s2_build_show */
} s2_build;

/* Starts the nodes of graph `g`; the kind of its device decides whether the kernels are fused. */
s2_build s2_build_begin(s2_graph *g, const s2_build_options *options);

/* A signal as contiguous rows [channels, time]; costs nothing if it is a transposed view of such. */
struct ggml_tensor *s2_build_rows(const s2_build *b, struct ggml_tensor *signal);

/* A signal with contiguous time. */
struct ggml_tensor *s2_build_contiguous(const s2_build *b, struct ggml_tensor *signal);

/* Keeps `t` under the name `stage` if the graph is probed. */
void s2_build_stage(const s2_build *b, struct ggml_tensor *t, const char *stage);

/* Shows all stages of a computed graph; memory runs out: they are left out. */
void s2_build_show(const s2_graph *g, const s2_probe *probe);

/* y = W x (+ bias): W [n_in, n_out], x rows [n_in, time], bias [n_out] or NULL; gives rows [n_out, time]. */
struct ggml_tensor *s2_build_linear(const s2_build *b, struct ggml_tensor *weight,
        struct ggml_tensor *bias, struct ggml_tensor *x);

#endif
