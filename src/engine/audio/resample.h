/*
 * Changing the sample rate as samples come in.
 *
 * libsoxr's HQ recipe: a linear-phase windowed sinc, flat to 91 % of the lower Nyquist frequency and below
 * -100 dB from it on. The delay of the filter is taken out: output sample k lies at input time k * from / to.
 *
 * Threads: a resampler belongs to one thread at a time.
 */
#ifndef S2_RESAMPLE_H
#define S2_RESAMPLE_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

#define S2_RATE_MIN 1000u /* Hz */
#define S2_RATE_MAX 768000u

typedef struct s2_resampler s2_resampler;

/* Takes the samples that have become complete; a negative result ends the work and is handed on. */
typedef int (*s2_samples_fn)(void *user, const float *samples, size_t n, sl_error *reterr);

/* Errors: SL_EINVAL (a rate outside S2_RATE_MIN..S2_RATE_MAX), SL_ENOMEM. */
int s2_resampler_create(
        uint32_t from, uint32_t to, s2_resampler **ret_resampler, sl_error *reterr) SL_MUST_CHECK;
void s2_resampler_free(s2_resampler **resampler);

/* Pushes n samples in; `sink` gets what comes out. Equal rates pass through unchanged. */
int s2_resampler_push(s2_resampler *resampler, const float *samples, size_t n, s2_samples_fn sink,
        void *user, sl_error *reterr) SL_MUST_CHECK;

/* Gives the rest: after this, ceil(pushed * to / from) samples have come out in all. */
int s2_resampler_finish(
        s2_resampler *resampler, s2_samples_fn sink, void *user, sl_error *reterr) SL_MUST_CHECK;

#endif
