/*
 * The slow AR: a column of text or audio in, the logits of the next semantic token out.
 *
 * The sequence is one timeline of positions 0, 1, 2, ...; eval appends to it and the KV cache remembers it.
 * Only the rows of the tied head that may be sampled are computed: the semantic codes and the end token. The tables of
 * embeddings stay in host memory; what moves of them is the head, the rows of the semantic codes.
 *
 * Threads: one thread at a time.
 */
#ifndef S2_MODEL_SLOW_AR_H
#define S2_MODEL_SLOW_AR_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "engine/model/hparams.h"
#include "engine/nn/compute.h"
#include "engine/nn/rows.h"
#include "engine/nn/weights.h"

typedef struct s2_slow_ar s2_slow_ar;

/* Where the parts of the slow AR are computed. */
typedef struct s2_slow_places {
    s2_compute *first; /* layers below n_first */
    s2_compute *rest;  /* the other layers, the norm behind the last one, and the head */
    uint32_t n_first;
} s2_slow_places;

/* All of it on one. */
s2_slow_places s2_slow_places_on(s2_compute *compute);

/*
 * The rows of the head that stand for codes, for s2_weights_open: of the slot S2_SLOT_SLOW, or of the last layers' if these
 * are split off. Errors: SL_EFORMAT (no table, or too few rows).
 */
int s2_head_rows_init(
        s2_rows *rows, const sl_model *model, const s2_hparams *hp, sl_error *reterr) SL_MUST_CHECK;

/*
 * weights: opened with the rows of the head.
 * end_token: id of the token that ends speech, outside the semantic ids.
 * Errors: SL_EFORMAT (tensors, or an end token outside the vocabulary), SL_ENOMEM.
 */
int s2_slow_ar_create(const s2_hparams *hp, int32_t end_token, s2_weights *weights,
        const s2_slow_places *places, s2_slow_ar **ret_ar, sl_error *reterr) SL_MUST_CHECK;
void s2_slow_ar_free(s2_slow_ar **ar);

/* Positions so far. */
uint32_t s2_slow_ar_n_past(const s2_slow_ar *ar);

/* Forgets every position from n_past on; n_past <= the current number. 0 begins a new sequence. */
void s2_slow_ar_rewind(s2_slow_ar *ar, uint32_t n_past);

/*
 * Keys and values of the first positions, to outlive the cache in host memory: bytes of one position, once something
 * was evaluated; reading n of them, n <= s2_slow_ar_n_past; beginning a sequence with n that this AR's read gave.
 * Errors of write: SL_ENOMEM, SL_EBUDGET; the sequence is empty then.
 */
size_t s2_slow_ar_row_bytes(const s2_slow_ar *ar);
void s2_slow_ar_read_rows(const s2_slow_ar *ar, uint32_t n, void *rows);
int s2_slow_ar_write_rows(
        s2_slow_ar *ar, const void *rows, uint32_t n, sl_error *reterr) SL_MUST_CHECK;

/*
 * Appends n >= 1 columns, columns[t * (1 + n_codebooks)] as in prompt.h, and gives the state after the last:
 *   ret_logits: [codebook_size + 1] semantic codes 0.., then the end token; not masked
 *   ret_hidden: [slow.n_embd] after the final norm: what the fast AR gets
 * Columns are worked off in chunks of at most max_chunk (0 = the default); the size is not visible in the
 * results beyond rounding. Room in the cache is made as needed.
 * Errors: SL_ELIMIT (the sequence would exceed n_ctx), SL_EINVAL (id or code out of range), SL_ENOMEM; the
 * sequence is then as it was.
 */
int s2_slow_ar_eval(s2_slow_ar *ar, const int32_t *columns, uint32_t n, uint32_t max_chunk,
        float *ret_logits, float *ret_hidden, sl_error *reterr) SL_MUST_CHECK;

/* Makes room for n_positions, at most n_ctx, at once: a cache that grows is copied. Errors: SL_ENOMEM, SL_EBUDGET. */
int s2_slow_ar_reserve(s2_slow_ar *ar, uint32_t n_positions, sl_error *reterr) SL_MUST_CHECK;

/* Bytes of the KV cache on one compute or on all, and of compute buffers on one, now. */
size_t s2_slow_ar_kv_bytes(const s2_slow_ar *ar, const s2_compute *compute_or_null);
size_t s2_slow_ar_compute_bytes(const s2_slow_ar *ar, const s2_compute *compute);

/*
 * On computes that measure: builds what a prompt of n_prompt columns and a sequence of n_positions take, so that
 * the bytes above tell.
 */
int s2_slow_ar_measure(
        s2_slow_ar *ar, uint32_t n_prompt, uint32_t n_positions, sl_error *reterr) SL_MUST_CHECK;

/* Gives KV cache and compute buffers back; the sequence is empty then. */
void s2_slow_ar_release(s2_slow_ar *ar);

#endif
