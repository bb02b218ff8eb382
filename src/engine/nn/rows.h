/*
 * Some rows of a table as a tensor of their own, so that they are moved without the rest of it.
 *
 * Threads: any. Lifetime: the model and the caller's memory outlive whatever refers to the tensor.
 */
#ifndef S2_NN_ROWS_H
#define S2_NN_ROWS_H

#include <stdint.h>

#include "base/status.h"
#include "sluice/model.h"

typedef struct s2_rows {
    sl_gguf_tensor info;
    sl_tensor tensor; /* points to the record above: not to be copied */
} s2_rows;

/*
 * Rows first .. first + n - 1 of the two-dimensional `table`, called `name` (which is kept). Not to be moved in memory
 * afterwards. Errors: SL_EFORMAT (no such table, or it has too few rows).
 */
int s2_rows_init(s2_rows *rows, const sl_model *model, const char *table, uint64_t first,
        uint64_t n, const char *name, sl_error *reterr) SL_MUST_CHECK;

#endif
