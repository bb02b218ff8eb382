/*
 * The generation of one piece of speech: prompt in, frames of codes out.
 *
 *   begin -> prefilled -> next -> next -> ... -> ended
 *
 * A session owns nothing but its sampler; the ARs are the engine's, and begin puts them into a known state,
 * so that nothing of an earlier, cancelled or failed session shows in this one.
 *
 * Threads: one thread at a time.
 */
#ifndef S2_ENGINE_SESSION_H
#define S2_ENGINE_SESSION_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/model/fast_ar.h"
#include "engine/model/hparams.h"
#include "engine/model/slow_ar.h"
#include "engine/sample/sampler.h"
#include "s2/engine.h"

typedef struct s2_session {
    const s2_hparams *hp;
    s2_slow_ar *slow;
    s2_fast_ar *fast;
    s2_sampler *sampler;
    float *logits;      /* [codebook_size + 1] of the next semantic token */
    float *hidden;      /* [slow.n_embd] it came from */
    float *fast_logits; /* [codebook_size] */
    int32_t *column;    /* [1 + n_codebooks] the last frame as it is fed back */
    uint32_t n_frames;
    uint32_t min_frames;
    uint32_t max_frames;
    bool is_ended;
    s2_end end;
    s2_stats *stats; /* times are added here */
} s2_session;

/* Allocates scratch for a model. Errors: SL_ENOMEM. Zeroed memory may be passed to done. */
int s2_session_init(s2_session *s, const s2_hparams *hp, s2_slow_ar *slow, s2_fast_ar *fast,
        sl_error *reterr) SL_MUST_CHECK;
void s2_session_done(s2_session *s);

/* Where a session begins. */
typedef struct s2_session_start {
    const int32_t *columns; /* the whole prompt */
    uint32_t n_columns;
    uint32_t n_shared; /* columns at its beginning that the slow AR holds already */
    uint32_t min_frames;
    uint32_t max_frames; /* clamped to what the context holds */
} s2_session_start;

/*
 * Begins: keeps the shared positions of the slow AR and evaluates the rest of the prompt. `sampler` is
 * borrowed, `start` is only read.
 * Errors: SL_ELIMIT (no room for a single frame), and those of s2_slow_ar_eval.
 */
int s2_session_begin(s2_session *s, s2_sampler *sampler, const s2_session_start *start,
        s2_stats *stats, sl_error *reterr) SL_MUST_CHECK;

/*
 * Makes the next frame: returns 1 and the codes [n_codebooks], or 0 when the speech has ended (s->end
 * says why). Errors: those of the ARs and of the sampler.
 */
int s2_session_next(s2_session *s, int32_t *ret_codes, sl_error *reterr) SL_MUST_CHECK;

#endif
