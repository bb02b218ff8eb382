/*
 * The graphs of the slow AR over a fixed number of columns and cache rows.
 *
 * The columns are embedded on the host. The model is a row of parts: the layers, the last norm, the head. Neighbours on
 * the same device make one segment, which is one graph; between segments the columns are handed over. Where
 * weights are moved to a device, a prompt's layers are cut into segments too, always at the same borders, so that the
 * first run while the last layers are still on their way, and every result is the same whether they are.
 *
 * Threads: one thread at a time. For slow_ar.c alone.
 */
#ifndef S2_MODEL_SLOW_GRAPH_H
#define S2_MODEL_SLOW_GRAPH_H

#include <stdint.h>

#include "base/status.h"
#include "engine/model/ar_layer.h"
#include "engine/model/columns.h"
#include "engine/model/hparams.h"
#include "engine/model/slow_ar.h"
#include "engine/nn/graph.h"
#include "engine/nn/kv_cache.h"
#include "engine/nn/weights.h"

/* What all graphs share. */
typedef struct s2_slow_model {
    s2_hparams hp;
    s2_slow_places places;
    s2_weights *weights;
    s2_tables tables;
    struct ggml_tensor *norm; /* [n_embd] */
    struct ggml_tensor
            *head; /* [n_embd, codebook_size]: the rows of the tied head that stand for codes */
    s2_ar_layer *layers;
    s2_kv_cache kv;
    int32_t end_token;
} s2_slow_model;

/* The computes of a model, each once. */
#define S2_SLOW_MAX_COMPUTES 2

typedef struct s2_slow_segment s2_slow_segment;

typedef struct s2_slow_graph {
    const s2_slow_model *model;
    uint32_t n;     /* columns; 0 = there is no graph */
    uint32_t n_kv;  /* rows of the cache that are looked at */
    uint64_t epoch; /* of the weights */
    s2_slow_segment *segments;
    size_t n_segments;
    s2_arena arenas[S2_SLOW_MAX_COMPUTES];
    s2_state bridges[S2_SLOW_MAX_COMPUTES]; /* what is handed over, [n_embd, n] each */
    struct ggml_tensor *x[S2_SLOW_MAX_COMPUTES];
    s2_inputs inputs[S2_SLOW_MAX_COMPUTES]; /* of all segments there */
    s2_ar_inputs where[S2_SLOW_MAX_COMPUTES];
    struct ggml_tensor *columns; /* F32 [n_embd, n], of the first inputs */
    float *rows;                 /* [2 * n_embd], for embedding */
} s2_slow_graph;

/* Plans the graph; its segments are built when they run first. Errors: SL_ENOMEM, SL_EBUDGET. */
int s2_slow_graph_init(s2_slow_graph *sg, const s2_slow_model *model, uint32_t n, uint32_t n_kv,
        sl_error *reterr) SL_MUST_CHECK;
/* Accepts zeroed memory, and leaves such. */
void s2_slow_graph_done(s2_slow_graph *sg);

/* True if it is of this shape and over the weights as they are now. */
bool s2_slow_graph_fits(const s2_slow_graph *sg, uint32_t n, uint32_t n_kv);

/*
 * Runs columns[n * (1 + n_codebooks)] at positions n_past, n_past + 1, ...; results as in s2_slow_ar_eval, or NULL.
 * Errors: those of building, of arriving weights, and of s2_graph_run.
 */
int s2_slow_graph_run(s2_slow_graph *sg, const int32_t *columns, uint32_t n_past, float *ret_logits,
        float *ret_hidden, sl_error *reterr) SL_MUST_CHECK;

/* Builds every segment without running it: for measuring. */
int s2_slow_graph_build_all(s2_slow_graph *sg, sl_error *reterr) SL_MUST_CHECK;

/* Bytes on one compute. */
size_t s2_slow_graph_bytes(const s2_slow_graph *sg, const s2_compute *compute);

#endif
