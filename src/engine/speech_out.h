/*
 * From frames of codes to samples in the hands of whoever asked for them: decodes, checks, calls back. Frames are
 * decoded on the calling thread, or by one beside it where the codec has processors of its own.
 *
 * Threads: one at a time; callbacks run on the calling thread.
 */
#ifndef S2_ENGINE_SPEECH_OUT_H
#define S2_ENGINE_SPEECH_OUT_H

#include "engine/decode_ahead.h"
#include "engine/engine_impl.h"

typedef struct s2_speech_out {
    s2_engine *e;
    const s2_speak_opts *opts;
    s2_stats *stats;
    uint64_t begin_ns; /* of the request */
    float *samples;    /* [frame_samples] */
    int32_t *codes;    /* [n_codebooks], of the frame that is handed out */
    s2_decode_ahead *ahead;
    uint32_t *pauses; /* frames of the request before which there is silence, ascending */
    size_t pauses_cap;
    size_t n_pauses;
    size_t i_pause; /* the next that is to come */
} s2_speech_out;

/* Zeroed memory may be passed to done. Errors: SL_ENOMEM. */
int s2_speech_out_init(s2_speech_out *out, s2_engine *e, const s2_speak_opts *opts, s2_stats *stats,
        uint64_t begin_ns, sl_error *reterr) SL_MUST_CHECK;

/* Ends the thread, if there is one, and frees everything. Before a phase that decodes ends. */
void s2_speech_out_done(s2_speech_out *out);

/*
 * Takes the codes of one frame, [n_codebooks], and hands out what is decoded. 1 = a callback wants to stop.
 * Errors: those of decoding, SL_ECHANGED, SL_EINVAL (a sample that is not a number).
 */
int s2_speech_out_frame(s2_speech_out *out, const int32_t *codes, sl_error *reterr) SL_MUST_CHECK;

/* Silence of opts->pause_ms comes before frame i_frame of the request, which is not handed over yet. Errors: SL_ENOMEM. */
int s2_speech_out_pause(s2_speech_out *out, uint32_t i_frame, sl_error *reterr) SL_MUST_CHECK;

/* Hands out all that is still under way. As above. */
int s2_speech_out_flush(s2_speech_out *out, sl_error *reterr) SL_MUST_CHECK;

#endif
