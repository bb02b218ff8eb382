/*
 * The model's tensors as ggml tensors that point into the mapping: nothing is copied, and nothing may be
 * written. They serve as leaves of graphs.
 *
 * Threads: immutable once open. Lifetime: closes before the model does.
 */
#ifndef S2_NN_WEIGHTS_H
#define S2_NN_WEIGHTS_H

#include "ggml.h"

#include "base/status.h"
#include "sluice/model.h"

typedef struct s2_weights s2_weights;

/* Binds every tensor of `model`. Errors: SL_ENOMEM, SL_EFORMAT (a type or alignment ggml cannot use). */
int s2_weights_open(
        const sl_model *model, s2_weights **ret_weights, sl_error *reterr) SL_MUST_CHECK;
void s2_weights_close(s2_weights **weights);

/* Path of the model, for messages. */
const char *s2_weights_path(const s2_weights *weights);

/* The tensor whose name is the formatted text; NULL if the model has none. */
struct ggml_tensor *s2_weights_find(const s2_weights *weights, const char *fmt, ...)
        SL_PRINTF(2, 3);

/* What a tensor is used for, and so which types it may have. */
typedef enum s2_weight_kind {
    S2_WEIGHT_MATRIX, /* multiplied or gathered by row: every type that has a dot product */
    S2_WEIGHT_VECTOR, /* norms, biases, tables read as floats: F32, F16, BF16 */
} s2_weight_kind;

/*
 * The tensor of that name with exactly the shape ne[0..2] (1 for a dimension it lacks).
 * Errors: SL_EFORMAT that names the tensor, what was found and what is needed.
 */
int s2_weights_need(const s2_weights *weights, s2_weight_kind kind, const int64_t ne[3],
        struct ggml_tensor **ret_tensor, sl_error *reterr, const char *fmt, ...)
        SL_PRINTF(6, 7) SL_MUST_CHECK;

#endif
