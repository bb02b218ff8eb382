/*
 * A decoder that works beside the generation: frames of codes go in, samples come out in the same order, while the
 * next frame is generated. Worth it where codec and AR do not compute on the same processors.
 *
 * At most S2_DECODE_AHEAD frames are under way: whoever generates faster than can be decoded waits. The decoder and what
 * it computes on belong to the thread from start to stop.
 *
 * Threads: one thread calls; the decoding is done by one of its own, which stop joins.
 */
#ifndef S2_ENGINE_DECODE_AHEAD_H
#define S2_ENGINE_DECODE_AHEAD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "engine/model/codec_decoder.h"

#define S2_DECODE_AHEAD 8

typedef struct s2_decode_ahead s2_decode_ahead;

/* Errors: SL_ENOMEM (memory, or no thread can be started). */
int s2_decode_ahead_start(s2_codec_decoder *decoder, uint32_t n_codebooks, uint32_t frame_samples,
        s2_decode_ahead **ret_ahead, sl_error *reterr) SL_MUST_CHECK;

/* Ends the thread, with what it has not begun left undone, and sets *ahead to NULL. Accepts NULL. */
void s2_decode_ahead_stop(s2_decode_ahead **ahead);

/* Time that was spent decoding so far. */
uint64_t s2_decode_ahead_busy_ns(s2_decode_ahead *ahead);

/* Hands a frame over: codes [n_codebooks]. There is room: see take. Errors: what decoding ended with. */
int s2_decode_ahead_push(
        s2_decode_ahead *ahead, const int32_t *codes, sl_error *reterr) SL_MUST_CHECK;

/*
 * Takes the oldest frame that is decoded: 1 with its codes and samples, or 0 if there is none. Waits for one if so many
 * are under way that there is no room for another, or if `is_last` and any is under way.
 * Errors: what decoding ended with.
 */
int s2_decode_ahead_take(s2_decode_ahead *ahead, bool is_last, int32_t *ret_codes,
        float *ret_samples, sl_error *reterr) SL_MUST_CHECK;

#endif
