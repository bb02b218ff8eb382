/*
 * An exponential of our own, because the last bit of libm's differs between systems. Loops over a block run without
 * branches, so that the compiler spreads the items over as many lanes as an instruction set has; what is done with
 * an item is the same in all of them.
 */
#include "engine/sample/softmax.h"

#include <string.h>

#define ALWAYS static inline __attribute__((always_inline))

#define BLOCK   64
#define N_TERMS 14

/*
 * exp(x) for up to BLOCK x <= 0, in place: whole powers of two taken off exactly, then the series down to the last bit.
 * Both comparisons with `least` have loops of their own, because in one with the rest gcc makes branches of them.
 */
ALWAYS void exp_of_negatives(double *x, uint32_t n)
{
    static const double ln2_high = 0x1.62e42fee00000p-1;
    static const double ln2_low = 0x1.a39ef35793c76p-33;
    static const double one_over_factorial[N_TERMS] = {1.0, 1.0, 1.0 / 2, 1.0 / 6, 1.0 / 24,
            1.0 / 120, 1.0 / 720, 1.0 / 5040, 1.0 / 40320, 1.0 / 362880, 1.0 / 3628800,
            1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800};
    const double least = -700.0; /* below, the result counts as 0 */
    double value[BLOCK];
    for (uint32_t i = 0; i < n; i++) {
        value[i] = x[i] < least ? least : x[i];
    }
    for (uint32_t i = 0; i < n; i++) {
        double y = value[i];
        int32_t n_halvings = (int32_t)(0.5 - y * 0x1.71547652b82fep+0);
        double rest = (y + n_halvings * ln2_high) + n_halvings * ln2_low;
        double series = one_over_factorial[N_TERMS - 1];
        for (size_t k = N_TERMS - 1; k > 0; k--) {
            series = series * rest + one_over_factorial[k - 1];
        }
        uint64_t bits = (uint64_t)(1023 - n_halvings) << 52;
        double power = 0.0;
        memcpy(&power, &bits, sizeof power);
        value[i] = series * power;
    }
    for (uint32_t i = 0; i < n; i++) {
        x[i] = x[i] < least ? 0.0 : value[i];
    }
}

double s2_exp_of_negative(double x)
{
    exp_of_negatives(&x, 1);
    return x;
}

ALWAYS double softmax_sum(const float *logits, uint32_t n, double best)
{
    double block[BLOCK];
    double sum = 0.0;
    for (uint32_t first = 0; first < n; first += BLOCK) {
        uint32_t m = n - first < BLOCK ? n - first : BLOCK;
        for (uint32_t i = 0; i < m; i++) {
            block[i] = (double)logits[first + i] - best;
        }
        exp_of_negatives(block, m);
        for (uint32_t i = 0; i < m; i++) {
            sum += block[i];
        }
    }
    return sum;
}

static double sum_plain(const float *logits, uint32_t n, double best)
{
    return softmax_sum(logits, n, best);
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) static double sum_avx2(const float *logits, uint32_t n, double best)
{
    return softmax_sum(logits, n, best);
}

__attribute__((target("avx512f"))) static double sum_avx512(
        const float *logits, uint32_t n, double best)
{
    return softmax_sum(logits, n, best);
}
#endif

s2_softmax_sum_fn s2_softmax_sum_at(size_t i)
{
    s2_softmax_sum_fn found[4] = {NULL};
    size_t n = 0;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f")) {
        found[n++] = sum_avx512;
    }
    if (__builtin_cpu_supports("avx2")) {
        found[n++] = sum_avx2;
    }
#endif
    found[n++] = sum_plain;
    return i < n ? found[i] : NULL;
}
