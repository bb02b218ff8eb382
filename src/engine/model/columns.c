#include "engine/model/columns.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

void s2_columns_row(const struct ggml_tensor *table, int64_t i, float *ret_row)
{
    const char *row = (const char *)table->data + (size_t)i * table->nb[1];
    if (table->type == GGML_TYPE_F32) {
        memcpy(ret_row, row, (size_t)table->ne[0] * sizeof *ret_row);
    } else {
        ggml_get_type_traits(table->type)->to_float(row, ret_row, table->ne[0]);
    }
}

/* The sum of an audio column's codebook rows is made first, as the original makes it. */
static void add_codes(
        const s2_hparams *hp, const s2_tables *tables, const int32_t *codes, float *row, float *x)
{
    uint32_t n_embd = hp->slow.n_embd;
    float scale =
            hp->scale_codebook_embeddings ? 1.0f / sqrtf((float)hp->n_codebooks + 1.0f) : 1.0f;
    float *sum = row + n_embd;
    s2_columns_row(tables->codebook_embeddings, codes[0], sum);
    for (uint32_t j = 1; j < hp->n_codebooks; j++) {
        int64_t i = (int64_t)j * hp->codebook_size + codes[j];
        s2_columns_row(tables->codebook_embeddings, i, row);
        for (uint32_t k = 0; k < n_embd; k++) {
            sum[k] += row[k];
        }
    }
    for (uint32_t k = 0; k < n_embd; k++) {
        x[k] = (x[k] + sum[k]) * scale;
    }
}

void s2_columns_embed(const s2_hparams *hp, const s2_tables *tables, const int32_t *columns,
        uint32_t n, float *rows, float *ret_x)
{
    uint32_t n_embd = hp->slow.n_embd;
    for (uint32_t t = 0; t < n; t++) {
        const int32_t *column = columns + (size_t)t * (1 + hp->n_codebooks);
        bool is_audio = column[0] >= hp->semantic_begin && column[0] <= hp->semantic_end;
        float *x = ret_x + (size_t)t * n_embd;
        s2_columns_row(tables->embeddings, column[0], x);
        if (is_audio) {
            add_codes(hp, tables, column + 1, rows, x);
        }
    }
}
