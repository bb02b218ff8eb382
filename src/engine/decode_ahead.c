#include "engine/decode_ahead.h"

#include <stdbool.h>
#include <string.h>

#include "base/mem.h"
#include "os/os_clock.h"
#include "os/os_thread.h"

/* Frames are counted from the start; frame i lies in slot i % S2_DECODE_AHEAD. */
struct s2_decode_ahead {
    s2_codec_decoder *decoder;
    uint32_t n_codebooks;
    uint32_t frame_samples;
    int32_t *codes; /* [S2_DECODE_AHEAD][n_codebooks] */
    float *samples; /* [S2_DECODE_AHEAD][frame_samples] */
    sl__thread thread;
    sl__mutex lock;
    sl__cond changed;
    uint64_t n_pushed;
    uint64_t n_decoded;
    uint64_t n_taken;
    uint64_t busy_ns;
    bool is_stopping;
    sl_error err; /* code 0 while all is well */
};

static int32_t *codes_of(const s2_decode_ahead *a, uint64_t i)
{
    return a->codes + (size_t)(i % S2_DECODE_AHEAD) * a->n_codebooks;
}

static float *samples_of(const s2_decode_ahead *a, uint64_t i)
{
    return a->samples + (size_t)(i % S2_DECODE_AHEAD) * a->frame_samples;
}

static void decode_all(void *ud)
{
    s2_decode_ahead *a = ud;
    sl__mutex_lock(&a->lock);
    while (!a->is_stopping && a->err.code == 0) {
        if (a->n_decoded == a->n_pushed) {
            sl__cond_wait(&a->changed, &a->lock);
            continue;
        }
        uint64_t i = a->n_decoded;
        sl_error err = {0};
        sl__mutex_unlock(&a->lock);
        uint64_t begin_ns = sl__now_ns();
        int r = s2_codec_decoder_push(a->decoder, codes_of(a, i), 1, samples_of(a, i), &err);
        uint64_t end_ns = sl__now_ns();
        sl__mutex_lock(&a->lock);
        a->busy_ns += end_ns - begin_ns;
        if (r < 0) {
            a->err = err;
        } else {
            a->n_decoded++;
        }
        sl__cond_broadcast(&a->changed);
    }
    sl__mutex_unlock(&a->lock);
}

static int start_thread(s2_decode_ahead *a, sl_error *reterr)
{
    int r = sl__mutex_init(&a->lock, reterr);
    if (r < 0) {
        return r;
    }
    r = sl__cond_init(&a->changed, reterr);
    if (r < 0) {
        sl__mutex_done(&a->lock);
        return r;
    }
    r = sl__thread_start(&a->thread, "sluice-codec", decode_all, a, reterr);
    if (r < 0) {
        sl__cond_done(&a->changed);
        sl__mutex_done(&a->lock);
    }
    return r;
}

static void free_memory(s2_decode_ahead *a)
{
    sl__free(a->codes);
    sl__free(a->samples);
    sl__free(a);
}

int s2_decode_ahead_start(s2_codec_decoder *decoder, uint32_t n_codebooks, uint32_t frame_samples,
        s2_decode_ahead **ret_ahead, sl_error *reterr)
{
    s2_decode_ahead *a = sl__alloc(1, sizeof *a);
    if (!a) {
        return sl__fail_nomem(reterr, sizeof *a, "a decoding thread");
    }
    a->decoder = decoder;
    a->n_codebooks = n_codebooks;
    a->frame_samples = frame_samples;
    a->codes = sl__alloc((size_t)S2_DECODE_AHEAD * n_codebooks, sizeof *a->codes);
    a->samples = sl__alloc((size_t)S2_DECODE_AHEAD * frame_samples, sizeof *a->samples);
    int r = a->codes && a->samples
                    ? start_thread(a, reterr)
                    : sl__fail_nomem(reterr,
                              (size_t)S2_DECODE_AHEAD * frame_samples * sizeof(float),
                              "frames under way");
    if (r < 0) {
        free_memory(a);
        return r;
    }
    *ret_ahead = a;
    return SL_OK;
}

void s2_decode_ahead_stop(s2_decode_ahead **ahead)
{
    if (!ahead || !*ahead) {
        return;
    }
    s2_decode_ahead *a = *ahead;
    sl__mutex_lock(&a->lock);
    a->is_stopping = true;
    sl__cond_broadcast(&a->changed);
    sl__mutex_unlock(&a->lock);
    sl__thread_join(&a->thread);
    sl__cond_done(&a->changed);
    sl__mutex_done(&a->lock);
    free_memory(a);
    *ahead = NULL;
}

uint64_t s2_decode_ahead_busy_ns(s2_decode_ahead *ahead)
{
    sl__mutex_lock(&ahead->lock);
    uint64_t busy_ns = ahead->busy_ns;
    sl__mutex_unlock(&ahead->lock);
    return busy_ns;
}

/* The error that decoding ended with; 0 while all is well. */
static int failure(const s2_decode_ahead *a, sl_error *reterr)
{
    if (a->err.code < 0 && reterr) {
        *reterr = a->err;
    }
    return a->err.code;
}

int s2_decode_ahead_push(s2_decode_ahead *ahead, const int32_t *codes, sl_error *reterr)
{
    s2_decode_ahead *a = ahead;
    sl__mutex_lock(&a->lock);
    int r = failure(a, reterr);
    if (r == 0 && a->n_pushed - a->n_taken == S2_DECODE_AHEAD) {
        r = sl__fail(reterr, SL_EINTERNAL, "%d frames are under way already", S2_DECODE_AHEAD);
    }
    if (r == 0) {
        memcpy(codes_of(a, a->n_pushed), codes, a->n_codebooks * sizeof *codes);
        a->n_pushed++;
        sl__cond_broadcast(&a->changed);
    }
    sl__mutex_unlock(&a->lock);
    return r;
}

int s2_decode_ahead_take(s2_decode_ahead *ahead, bool is_last, int32_t *ret_codes,
        float *ret_samples, sl_error *reterr)
{
    s2_decode_ahead *a = ahead;
    sl__mutex_lock(&a->lock);
    uint64_t n_under_way = a->n_pushed - a->n_taken;
    bool waits = n_under_way == S2_DECODE_AHEAD || (is_last && n_under_way > 0);
    while (waits && a->err.code == 0 && a->n_decoded == a->n_taken) {
        sl__cond_wait(&a->changed, &a->lock);
    }
    int r = a->n_decoded > a->n_taken ? 1 : failure(a, reterr);
    if (r > 0) {
        memcpy(ret_codes, codes_of(a, a->n_taken), a->n_codebooks * sizeof *ret_codes);
        memcpy(ret_samples, samples_of(a, a->n_taken), a->frame_samples * sizeof *ret_samples);
        a->n_taken++;
    }
    sl__mutex_unlock(&a->lock);
    return r;
}
