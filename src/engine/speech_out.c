#include "engine/speech_out.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "engine/stage.h"
#include "os/os_clock.h"

int s2_speech_out_init(s2_speech_out *out, s2_engine *e, const s2_speak_opts *opts, s2_stats *stats,
        uint64_t begin_ns, sl_error *reterr)
{
    memset(out, 0, sizeof *out);
    out->e = e;
    out->opts = opts;
    out->stats = stats;
    out->begin_ns = begin_ns;
    out->samples = sl__alloc(e->hp.codec.frame_samples, sizeof *out->samples);
    out->codes = sl__alloc(e->hp.n_codebooks, sizeof *out->codes);
    if (!out->samples || !out->codes) {
        s2_speech_out_done(out);
        return sl__fail_nomem(
                reterr, e->hp.codec.frame_samples * sizeof *out->samples, "a frame of samples");
    }
    return SL_OK;
}

void s2_speech_out_done(s2_speech_out *out)
{
    if (out->ahead) {
        out->stats->decode_ns += s2_decode_ahead_busy_ns(out->ahead);
    }
    s2_decode_ahead_stop(&out->ahead);
    sl__free(out->samples);
    sl__free(out->codes);
    sl__free(out->pauses);
    memset(out, 0, sizeof *out);
}

static int check_samples(const s2_speech_out *out, sl_error *reterr)
{
    for (size_t i = 0; i < out->e->hp.codec.frame_samples; i++) {
        if (!isfinite(out->samples[i])) {
            return sl__fail(reterr, SL_EINVAL, "the codec made a sample that is not a number");
        }
    }
    return SL_OK;
}

int s2_speech_out_pause(s2_speech_out *out, uint32_t i_frame, sl_error *reterr)
{
    if (out->opts->pause_ms == 0) {
        return SL_OK;
    }
    if (!sl__grow(
                (void **)&out->pauses, &out->pauses_cap, out->n_pauses + 1, sizeof *out->pauses)) {
        return sl__fail_nomem(reterr, (out->n_pauses + 1) * sizeof *out->pauses, "pauses");
    }
    out->pauses[out->n_pauses] = i_frame;
    out->n_pauses++;
    return SL_OK;
}

/* Silence that is due. True = a callback wants to stop. */
static bool hand_out_silence(s2_speech_out *out)
{
    static const float silence[256];
    const s2_speak_opts *opts = out->opts;
    bool stop = false;
    while (out->i_pause < out->n_pauses && out->pauses[out->i_pause] == out->stats->n_frames) {
        uint64_t n = (uint64_t)opts->pause_ms * out->e->hp.codec.sample_rate / 1000;
        out->i_pause++;
        while (n > 0 && opts->on_samples && !stop) {
            size_t part = n < 256 ? (size_t)n : 256;
            stop = opts->on_samples(opts->ud, silence, part) != 0;
            n -= part;
        }
    }
    return stop;
}

/* Hands out the decoded frame with its codes. 1 = a callback wants to stop. */
static int hand_out(s2_speech_out *out, const int32_t *codes, sl_error *reterr)
{
    const s2_speak_opts *opts = out->opts;
    int r = sl_model_check(out->e->model, reterr);
    if (r == 0) {
        r = check_samples(out, reterr);
    }
    if (r < 0) {
        return r;
    }
    if (hand_out_silence(out)) {
        return 1;
    }
    if (out->stats->n_frames++ == 0) {
        out->stats->first_audio_ns = sl__now_ns() - out->begin_ns;
    }
    bool stop = opts->on_frame && opts->on_frame(opts->ud, codes) != 0;
    stop |= opts->on_samples &&
            opts->on_samples(opts->ud, out->samples, out->e->hp.codec.frame_samples) != 0;
    return stop ? 1 : 0;
}

static int hand_out_ready(s2_speech_out *out, bool is_last, sl_error *reterr)
{
    int r = s2_decode_ahead_take(out->ahead, is_last, out->codes, out->samples, reterr);
    while (r > 0) {
        r = hand_out(out, out->codes, reterr);
        if (r != 0) {
            return r;
        }
        r = s2_decode_ahead_take(out->ahead, is_last, out->codes, out->samples, reterr);
    }
    return r;
}

static int decode_here(s2_speech_out *out, const int32_t *codes, sl_error *reterr)
{
    uint64_t begin_ns = sl__now_ns();
    int r = s2_codec_decoder_push(out->e->decoder, codes, 1, out->samples, reterr);
    out->stats->decode_ns += sl__now_ns() - begin_ns;
    return r < 0 ? r : hand_out(out, codes, reterr);
}

int s2_speech_out_frame(s2_speech_out *out, const int32_t *codes, sl_error *reterr)
{
    s2_engine *e = out->e;
    int r = e->decoder ? SL_OK : s2__engine_need_decoder(e, reterr);
    if (r < 0) {
        return r;
    }
    if (!s2_stage_decodes_beside(e)) {
        return decode_here(out, codes, reterr);
    }
    if (!out->ahead) {
        r = s2_decode_ahead_start(
                e->decoder, e->hp.n_codebooks, e->hp.codec.frame_samples, &out->ahead, reterr);
    }
    if (r == 0) {
        r = s2_decode_ahead_push(out->ahead, codes, reterr);
    }
    /* The first is waited for: it would come a whole frame later otherwise. */
    bool is_first = out->stats->n_frames == 0;
    return r < 0 ? r : hand_out_ready(out, is_first, reterr);
}

int s2_speech_out_flush(s2_speech_out *out, sl_error *reterr)
{
    return out->ahead ? hand_out_ready(out, true, reterr) : SL_OK;
}
