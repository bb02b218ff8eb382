/* Finding the tensors of a module, all of them or an error that names the one at fault. */
#ifndef S2_NN_BIND_H
#define S2_NN_BIND_H

#include <stddef.h>

#include "engine/nn/weights.h"

/* One tensor PREFIX.NAME that a module needs, see s2_weights_need. */
typedef struct s2_wanted {
    const char *name;
    s2_weight_kind kind;
    int64_t ne[3];
    struct ggml_tensor **ret;
} s2_wanted;

/* Fills *ret of all n. Errors: SL_EFORMAT. */
int s2_bind(const s2_weights *weights, const char *prefix, const s2_wanted *wanted, size_t n,
        sl_error *reterr) SL_MUST_CHECK;

#endif
