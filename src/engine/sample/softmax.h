/*
 * The exponential and the sum of a softmax, in double arithmetic of a fixed order: the same bits on every processor,
 * whichever instruction set the sum is compiled for.
 */
#ifndef S2_SAMPLE_SOFTMAX_H
#define S2_SAMPLE_SOFTMAX_H

#include <stddef.h>
#include <stdint.h>

/* exp(x) for x <= 0; 0 below -700. */
double s2_exp_of_negative(double x);

/* The sum of exp(logit - best), added from the first to the last; no logit may be NaN or above best. */
typedef double (*s2_softmax_sum_fn)(const float *logits, uint32_t n, double best);

/* All that this processor runs, widest first, and always one; NULL behind the last. */
s2_softmax_sum_fn s2_softmax_sum_at(size_t i);

#endif
