/*
 * Columns of a prompt or of speech as vectors, gathered on the host: the slow AR's input.
 *
 *   x = (E[id] + sum_j C[j * codebook_size + code_j]) * s     s = 1 / sqrt(n_codebooks + 1) if the model scales
 *   x = E[id]                                                 columns of text
 *
 * (Spec of the model, section 4.1.) The tables are too large to be moved for the few rows of them that are read.
 *
 * Threads: any.
 */
#ifndef S2_MODEL_COLUMNS_H
#define S2_MODEL_COLUMNS_H

#include <stdint.h>

#include "ggml.h"

#include "engine/model/hparams.h"

typedef struct s2_tables {
    struct ggml_tensor *embeddings;          /* [n_embd, n_vocab] */
    struct ggml_tensor *codebook_embeddings; /* [n_embd, n_codebooks * codebook_size] */
} s2_tables;

/* Tensors of s2_tables, for s2_weights_arrive. */
#define S2_TABLES_N (sizeof(s2_tables) / sizeof(struct ggml_tensor *))

/*
 * columns[t * (1 + n_codebooks)], ids and codes in range, to ret_x[t * n_embd]; rows: room for 2 * n_embd floats. The tables have
 * their addresses in host memory.
 */
void s2_columns_embed(const s2_hparams *hp, const s2_tables *tables, const int32_t *columns,
        uint32_t n, float *rows, float *ret_x);

/* Row i of a table as floats. */
void s2_columns_row(const struct ggml_tensor *table, int64_t i, float *ret_row);

#endif
