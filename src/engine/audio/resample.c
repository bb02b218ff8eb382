/*
 * soxr rounds the length of its output as it likes, so the promise of ceil(n * to / from) samples is kept
 * here: output is counted, zeros are pushed behind the end until there is enough, and the rest is dropped.
 */
#include "engine/audio/resample.h"

#include <math.h>
#include <string.h>

#include <soxr.h>

#include "base/mem.h"
#include "s2/audio.h"

#define BLOCK 2048u

struct s2_resampler {
    soxr_t soxr; /* NULL if the rates are equal */
    uint32_t from;
    uint32_t to;
    uint64_t n_in;
    uint64_t n_out;
    float out[BLOCK];
};

static int check_rate(uint32_t rate, sl_error *reterr)
{
    if (rate < S2_RATE_MIN || rate > S2_RATE_MAX) {
        return sl__fail(reterr, SL_EINVAL, "sample rate %u Hz; %u to %u are possible", rate,
                S2_RATE_MIN, S2_RATE_MAX);
    }
    return 0;
}

int s2_resampler_create(uint32_t from, uint32_t to, s2_resampler **ret_resampler, sl_error *reterr)
{
    int r = check_rate(from, reterr);
    if (r == 0) {
        r = check_rate(to, reterr);
    }
    if (r < 0) {
        return r;
    }
    s2_resampler *rs = sl__alloc(1, sizeof *rs);
    if (!rs) {
        return sl__fail_nomem(reterr, sizeof *rs, "a resampler");
    }
    rs->from = from;
    rs->to = to;
    if (from != to) {
        soxr_error_t error = NULL;
        soxr_io_spec_t io = soxr_io_spec(SOXR_FLOAT32_I, SOXR_FLOAT32_I);
        soxr_quality_spec_t quality = soxr_quality_spec(SOXR_HQ, 0);
        soxr_runtime_spec_t runtime = soxr_runtime_spec(1);
        rs->soxr = soxr_create(from, to, 1, &error, &io, &quality, &runtime);
        if (!rs->soxr) {
            sl__free(rs);
            return sl__fail(reterr, SL_ENOMEM, "resampling %u Hz to %u Hz: %s", from, to,
                    error ? error : "no resampler");
        }
    }
    *ret_resampler = rs;
    return 0;
}

void s2_resampler_free(s2_resampler **resampler)
{
    if (resampler && *resampler) {
        soxr_delete((*resampler)->soxr);
        sl__free(*resampler);
        *resampler = NULL;
    }
}

/* Output samples that n_in input samples are good for. */
static uint64_t wanted(const s2_resampler *rs)
{
    /* Whole seconds apart, so that the product cannot wrap. */
    uint64_t rest = rs->n_in % rs->from;
    return rs->n_in / rs->from * rs->to + (rest * rs->to + rs->from - 1) / rs->from;
}

/* Gives at most what is wanted: zeros behind the end make more. */
static int give(s2_resampler *rs, size_t n, s2_samples_fn sink, void *user, sl_error *reterr)
{
    uint64_t n_left = wanted(rs) - rs->n_out;
    size_t n_given = n < n_left ? n : (size_t)n_left;
    rs->n_out += n_given;
    return n_given > 0 ? sink(user, rs->out, n_given, reterr) : 0;
}

static int run(s2_resampler *rs, const float *samples, size_t n, s2_samples_fn sink, void *user,
        sl_error *reterr)
{
    size_t n_out = BLOCK;
    while (n > 0 || n_out == BLOCK) {
        size_t n_used = 0;
        soxr_error_t error = soxr_process(rs->soxr, samples, n, &n_used, rs->out, BLOCK, &n_out);
        if (error) {
            return sl__fail(
                    reterr, SL_ENOMEM, "resampling %u Hz to %u Hz: %s", rs->from, rs->to, error);
        }
        if (n_used == 0 && n_out == 0) {
            return 0;
        }
        int r = give(rs, n_out, sink, user, reterr);
        if (r < 0) {
            return r;
        }
        samples += n_used;
        n -= n_used;
    }
    return 0;
}

int s2_resampler_push(s2_resampler *resampler, const float *samples, size_t n, s2_samples_fn sink,
        void *user, sl_error *reterr)
{
    s2_resampler *rs = resampler;
    rs->n_in += n;
    if (n == 0) {
        return 0;
    }
    if (!rs->soxr) {
        rs->n_out += n;
        return sink(user, samples, n, reterr);
    }
    return run(rs, samples, n, sink, user, reterr);
}

int s2_resampler_finish(s2_resampler *resampler, s2_samples_fn sink, void *user, sl_error *reterr)
{
    static const float zeros[BLOCK] = {0};
    s2_resampler *rs = resampler;
    int r = 0;
    while (r == 0 && rs->n_out < wanted(rs)) {
        r = run(rs, zeros, BLOCK, sink, user, reterr);
    }
    return r < 0 ? r : 0;
}

typedef struct growing {
    float *samples;
    size_t n;
    size_t cap;
} growing;

static int collect(void *user, const float *samples, size_t n, sl_error *reterr)
{
    growing *g = user;
    void *p = g->samples;
    if (!sl__grow(&p, &g->cap, g->n + n, sizeof *samples)) {
        return sl__fail_nomem(reterr, (g->n + n) * sizeof *samples, "resampled sound");
    }
    g->samples = p;
    memcpy(g->samples + g->n, samples, n * sizeof *samples);
    g->n += n;
    return 0;
}

int s2_audio_resample(const float *samples, size_t n, uint32_t from, uint32_t to,
        s2_audio *ret_audio, sl_error *reterr)
{
    s2_resampler *rs = NULL;
    growing g = {0};
    int r = s2_resampler_create(from, to, &rs, reterr);
    if (r == 0) {
        r = s2_resampler_push(rs, samples, n, collect, &g, reterr);
    }
    if (r == 0) {
        r = s2_resampler_finish(rs, collect, &g, reterr);
    }
    s2_resampler_free(&rs);
    if (r < 0) {
        sl__free(g.samples);
        return r;
    }
    ret_audio->samples = g.samples;
    ret_audio->n = g.n;
    ret_audio->rate = to;
    return 0;
}
