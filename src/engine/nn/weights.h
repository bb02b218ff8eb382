/*
 * The model's tensors as ggml tensors, which serve as leaves of graphs. A tensor has an address only while
 * somebody has the right to it: the lease of its slot, or the mapping itself.
 *
 * A slot is what moves as one: a unit of the model, or the last layers of the slow AR if they are split from the
 * first ones.
 *
 * Threads: one thread at a time. Lifetime: closes before the model and the residency do.
 */
#ifndef S2_NN_WEIGHTS_H
#define S2_NN_WEIGHTS_H

#include <stdint.h>

#include "ggml.h"

#include "base/status.h"
#include "engine/nn/compute.h"
#include "s2/units.h"
#include "sluice/model.h"
#include "sluice/residency.h"

typedef struct s2_weights s2_weights;

typedef enum s2_slot {
    S2_SLOT_EMBED = S2_UNIT_EMBED,
    S2_SLOT_SLOW = S2_UNIT_SLOW,
    S2_SLOT_FAST = S2_UNIT_FAST,
    S2_SLOT_CODEC_ENCODER = S2_UNIT_CODEC_ENCODER,
    S2_SLOT_CODEC_QUANTIZER = S2_UNIT_CODEC_QUANTIZER,
    S2_SLOT_CODEC_DECODER = S2_UNIT_CODEC_DECODER,
    S2_SLOT_SLOW_REST,
    S2_SLOT_COUNT
} s2_slot;

const char *s2_slot_name(s2_slot slot); /* as s2_unit_name; "slow.rest" */

/*
 * Makes a record of every tensor of `model`, and of one more that lies in its files if rows_or_null is given (rows.h): it
 * belongs to the slot that its name says. Errors: SL_ENOMEM, SL_EFORMAT (a type or alignment ggml cannot use).
 */
int s2_weights_open(const sl_model *model, const sl_tensor *rows_or_null, s2_weights **ret_weights,
        sl_error *reterr) SL_MUST_CHECK;
void s2_weights_close(s2_weights **weights);

/* Layers of the slow AR from n_first on, its last norm and the head are a slot of their own. Before the slots are used. */
void s2_weights_split_slow(s2_weights *weights, uint32_t n_first);

/*
 * The tensors of a slot in the order in which a computation needs them; ret_tensors has room for all of the model and one.
 * Gives their number.
 */
size_t s2_weights_list(const s2_weights *weights, s2_slot slot, const sl_tensor **ret_tensors);

/* Room that a tensor takes in memory of a compute's device: some want more than its bytes. */
uint64_t s2_weights_room(
        const s2_weights *weights, const sl_tensor *tensor, const s2_compute *compute);

/* Path of the model, for messages. */
const char *s2_weights_path(const s2_weights *weights);

/*
 * Gives every tensor its address in the mapping, for good: for graphs that are measured, and for computing on the
 * host without a residency. Errors: SL_ENOMEM.
 */
int s2_weights_use_mapping(s2_weights *weights, sl_error *reterr) SL_MUST_CHECK;

/* A lease that holds the slot as unit i_unit; it stays the caller's. The slot is not attached before. */
void s2_weights_attach(s2_weights *weights, s2_slot slot, sl_lease *lease, size_t i_unit);

/* Takes all addresses of the slot back, before the lease is released; graphs over it are void. */
void s2_weights_detach(s2_weights *weights, s2_slot slot);

/* Counts the detachments of a slot: a graph is valid as long as this stays what it was when it was built. */
uint64_t s2_weights_epoch(const s2_weights *weights, s2_slot slot);

/*
 * Waits until n tensors have arrived and gives them their addresses; NULLs are skipped. What has one already costs
 * nothing. Errors: SL_EINTERNAL (not attached), SL_ECANCELLED, the error of the load.
 */
int s2_weights_arrive(s2_weights *weights, struct ggml_tensor *const *tensors, size_t n,
        const sl_wait *wait, sl_error *reterr) SL_MUST_CHECK;

/* The same for all tensors of a slot. */
int s2_weights_arrive_all(
        s2_weights *weights, s2_slot slot, const sl_wait *wait, sl_error *reterr) SL_MUST_CHECK;

/* The tensor whose name is the formatted text; NULL if the model has none. */
struct ggml_tensor *s2_weights_find(const s2_weights *weights, const char *fmt, ...)
        SL_PRINTF(2, 3);

/* The tensor that was given beside the model's; NULL if there was none. */
struct ggml_tensor *s2_weights_rows(const s2_weights *weights);

/* What a tensor is used for, and so which types it may have. */
typedef enum s2_weight_kind {
    S2_WEIGHT_MATRIX, /* multiplied or gathered by row: every type that can be widened to floats */
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
