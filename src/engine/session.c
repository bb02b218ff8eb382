/*
 * The loop of the original model, with its stop rule mended so that the last real frame is kept: the end
 * token is looked for on every draw, the first and a repetition-aware one included, and a run that is cut by
 * the limit keeps all its frames. The slow AR is stepped lazily, at the start of the next frame, so no step
 * is computed whose result nobody reads.
 */
#include "engine/session.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "os/os_clock.h"

int s2_session_init(
        s2_session *s, const s2_hparams *hp, s2_slow_ar *slow, s2_fast_ar *fast, sl_error *reterr)
{
    memset(s, 0, sizeof *s);
    s->hp = hp;
    s->slow = slow;
    s->fast = fast;
    s->logits = sl__alloc(hp->codebook_size + 1, sizeof *s->logits);
    s->hidden = sl__alloc(hp->slow.n_embd, sizeof *s->hidden);
    s->fast_logits = sl__alloc(hp->codebook_size, sizeof *s->fast_logits);
    s->column = sl__alloc(1 + hp->n_codebooks, sizeof *s->column);
    if (!s->logits || !s->hidden || !s->fast_logits || !s->column) {
        s2_session_done(s);
        return sl__fail_nomem(reterr, hp->codebook_size * sizeof *s->logits, "a session");
    }
    return SL_OK;
}

void s2_session_done(s2_session *s)
{
    if (!s) {
        return;
    }
    sl__free(s->logits);
    sl__free(s->hidden);
    sl__free(s->fast_logits);
    sl__free(s->column);
    memset(s, 0, sizeof *s);
}

int s2_session_begin(s2_session *s, s2_sampler *sampler, const s2_session_start *start,
        s2_stats *stats, sl_error *reterr)
{
    uint32_t height = 1 + s->hp->n_codebooks;
    if (start->n_columns >= s->hp->n_ctx) {
        return sl__fail(reterr, SL_ELIMIT,
                "prompt of %u columns leaves no room in the model's context of %u: shorten the "
                "text or the reference",
                start->n_columns, s->hp->n_ctx);
    }
    uint32_t n_room = s->hp->n_ctx - start->n_columns;
    s->sampler = sampler;
    s->stats = stats;
    s->n_frames = 0;
    s->min_frames = start->min_frames;
    s->max_frames = start->max_frames < n_room ? start->max_frames : n_room;
    s->is_ended = false;
    s2_slow_ar_rewind(s->slow, start->n_shared);

    uint64_t begin_ns = sl__now_ns();
    int r = s2_slow_ar_eval(s->slow, start->columns + (size_t)start->n_shared * height,
            start->n_columns - start->n_shared, 0, s->logits, s->hidden, reterr);
    stats->prefill_ns += sl__now_ns() - begin_ns;
    return r;
}

static int end_session(s2_session *s, s2_end end)
{
    s->is_ended = true;
    s->end = end;
    return 0;
}

static int draw_semantic(s2_session *s, uint32_t *ret_index, sl_error *reterr)
{
    uint32_t n_semantic = s->hp->codebook_size;
    uint64_t begin_ns = sl__now_ns();
    if (s->n_frames < s->min_frames) {
        s->logits[n_semantic] = -INFINITY;
    }
    int r = s2_sampler_draw_semantic(s->sampler, s->logits, n_semantic, ret_index, reterr);
    s->stats->sample_ns += sl__now_ns() - begin_ns;
    return r;
}

static int draw_residual(s2_session *s, int32_t *ret_code, sl_error *reterr)
{
    uint32_t index = 0;
    uint64_t begin_ns = sl__now_ns();
    int r = s2_sampler_draw(s->sampler, s->fast_logits, s->hp->codebook_size, &index, reterr);
    s->stats->sample_ns += sl__now_ns() - begin_ns;
    *ret_code = (int32_t)index;
    return r;
}

/* codes[0] is given; fills codes[1..]. */
static int generate_residuals(s2_session *s, int32_t *codes, sl_error *reterr)
{
    int r = SL_OK;
    for (uint32_t j = 1; j < s->hp->n_codebooks && r == 0; j++) {
        uint64_t begin_ns = sl__now_ns();
        r = j == 1 ? s2_fast_ar_begin(s->fast, s->hidden, codes[0], s->fast_logits, reterr)
                   : s2_fast_ar_next(s->fast, codes[j - 1], s->fast_logits, reterr);
        s->stats->fast_ns += sl__now_ns() - begin_ns;
        if (r == 0) {
            r = draw_residual(s, &codes[j], reterr);
        }
    }
    return r;
}

/* Feeds the last frame back and gets the logits of the next. */
static int step_slow(s2_session *s, sl_error *reterr)
{
    uint64_t begin_ns = sl__now_ns();
    int r = s2_slow_ar_eval(s->slow, s->column, 1, 0, s->logits, s->hidden, reterr);
    s->stats->slow_ns += sl__now_ns() - begin_ns;
    return r;
}

int s2_session_next(s2_session *s, int32_t *ret_codes, sl_error *reterr)
{
    uint32_t index = 0;
    if (s->is_ended) {
        return 0;
    }
    if (s->n_frames == s->max_frames) {
        return end_session(s, S2_END_LIMIT);
    }
    int r = s->n_frames > 0 ? step_slow(s, reterr) : SL_OK;
    if (r == 0) {
        r = draw_semantic(s, &index, reterr);
    }
    if (r < 0) {
        return r;
    }
    if (index == s->hp->codebook_size) {
        return end_session(s, S2_END_SPEECH);
    }
    ret_codes[0] = (int32_t)index;
    r = generate_residuals(s, ret_codes, reterr);
    if (r < 0) {
        return r;
    }
    s->column[0] = s->hp->semantic_begin + ret_codes[0];
    memcpy(s->column + 1, ret_codes, s->hp->n_codebooks * sizeof *ret_codes);
    s->n_frames++;
    return 1;
}
