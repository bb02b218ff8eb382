/*
 * Drawing tokens: the recipe of the original model, seeded and the same on every platform.
 *
 * One draw: sort by logit, softmax at temperature 1 over all finite logits, keep the first items up to
 * top_k and up to a cumulative probability of top_p (the first item always stays), then softmax of the kept
 * logits / temperature and one draw. Ties in logits are ordered by the lower id.
 *
 * Repetition-aware sampling (RAS) of semantic tokens: a token that occurs among the last 10 is replaced by
 * one second draw from the same logits at temperature 1.0 and top_p 0.9, same top_k; the end token is never
 * tested, and the replacement is not tested again. The first generated frame is neither tested nor does it
 * enter the window, as in the original; the end token never enters it.
 *
 * Random numbers: every draw takes exactly one from the generator, also a greedy one; the second draw of
 * RAS happens (and takes its number) only when it is needed.
 *
 * Threads: a sampler belongs to one thread at a time.
 */
#ifndef S2_SAMPLE_SAMPLER_H
#define S2_SAMPLE_SAMPLER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "engine/sample/rng.h"

#define S2_RAS_WINDOW 10

typedef struct s2_sample_params {
    float temperature; /* 0..100; below 1e-5 = take the best item (the lowest id of equal ones) */
    float top_p;       /* 0..1; 0 = the best item only, 1 = no limit */
    int32_t top_k;     /* 0 = no limit */
} s2_sample_params;

typedef struct s2_sampler s2_sampler;

/* For up to n_max logits. Errors: SL_EINVAL (parameter out of range: names it), SL_ENOMEM. */
int s2_sampler_create(const s2_sample_params *params, uint64_t seed, uint32_t n_max,
        s2_sampler **ret_sampler, sl_error *reterr) SL_MUST_CHECK;
void s2_sampler_free(s2_sampler **sampler);

/* Back to the state after create: same seed, empty window. */
void s2_sampler_reset(s2_sampler *sampler);

/*
 * Draws an index of logits[0..n-1] (-inf = forbidden).
 * Errors: SL_EINVAL if a logit is NaN or +inf or all are -inf: the model's output is broken.
 */
int s2_sampler_draw(s2_sampler *sampler, const float *logits, uint32_t n, uint32_t *ret_index,
        sl_error *reterr) SL_MUST_CHECK;

/*
 * Draws the semantic token of the next frame with RAS. logits[0..n_semantic-1] are the semantic codes,
 * logits[n_semantic] is the end token; the result is an index into them.
 */
int s2_sampler_draw_semantic(s2_sampler *sampler, const float *logits, uint32_t n_semantic,
        uint32_t *ret_index, sl_error *reterr) SL_MUST_CHECK;

/* An item that may be drawn. */
typedef struct s2_kept_item {
    uint32_t index;
    double p; /* probability of being drawn; all together 1 */
} s2_kept_item;

/*
 * What a draw with `params` would choose from, best first; every draw uses this. The items belong to the
 * sampler and are valid until its next call. Takes no random number. Errors as in s2_sampler_draw.
 */
int s2_sampler_keep(s2_sampler *sampler, const s2_sample_params *params, const float *logits,
        uint32_t n, const s2_kept_item **ret_items, uint32_t *ret_n,
        sl_error *reterr) SL_MUST_CHECK;

#endif
