#include "engine/nn/rows.h"

#include <inttypes.h>
#include <string.h>

int s2_rows_init(s2_rows *rows, const sl_model *model, const char *table, uint64_t first,
        uint64_t n, const char *name, sl_error *reterr)
{
    const sl_tensor *whole = sl_model_find(model, table);
    if (!whole || whole->info->n_bytes == 0) {
        return sl__fail(reterr, SL_EFORMAT, "%s: tensor %s is missing or empty",
                sl_model_path(model), table);
    }
    uint64_t n_rows = whole->info->ne[1];
    if (n > n_rows || first > n_rows - n) {
        return sl__fail(reterr, SL_EFORMAT,
                "%s: tensor %s has %" PRIu64 " rows, need rows %" PRIu64 " to %" PRIu64,
                sl_model_path(model), table, n_rows, first, first + n - 1);
    }
    uint64_t row_bytes = whole->info->n_bytes / n_rows;
    rows->info = *whole->info;
    rows->info.name = (sl_span){name, strlen(name)};
    rows->info.ne[1] = n;
    rows->info.offset += first * row_bytes;
    rows->info.n_bytes = n * row_bytes;
    rows->tensor = (sl_tensor){&rows->info, whole->i_file};
    return SL_OK;
}
