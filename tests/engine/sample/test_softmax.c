#include "engine/sample/softmax.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "engine/sample/rng.h"
#include "test_support.h"

#define N_MOST 4097

static void assert_same_bits(double a, double b)
{
    uint64_t x = 0;
    uint64_t y = 0;
    memcpy(&x, &a, sizeof x);
    memcpy(&y, &b, sizeof y);
    assert_int_equal(x, y);
}

/* The bits that seeds were first drawn with. */
static void test_exponential_keeps_its_bits(void **state)
{
    static const struct {
        double x;
        double want;
    } rows[] = {{0.0, 1.0}, {-0.0, 1.0}, {-0x1.12e0be826d695p-30, 0x1.fffffff768fa1p-1},
            {-0x1.62e42fefa39efp-2, 0x1.6a09e667f3bccp-1},
            {-0x1.62e42fefa39fp-2, 0x1.6a09e667f3bccp-1}, {-1.0, 0x1.78b56362cef38p-2},
            {-2.5, 0x1.50385c094f425p-4}, {-36.75, 0x1.f9494acde2139p-54},
            {-0x1.5d33333333333p+6, 0x1.09874c0b9cacbp-126},
            {-0x1.5dfeb851eb852p+9, 0x1.17bb3c2b1abfp-1010}, {-700.0, 0x1.14f2b0fb9307fp-1010},
            {-0x1.5e000000d6bf9p+9, 0.0}, {-DBL_MAX, 0.0}, {-HUGE_VAL, 0.0}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_same_bits(s2_exp_of_negative(rows[i].x), rows[i].want);
    }
}

static void test_exponential_agrees_with_the_library(void **state)
{
    (void)state;
    for (int i = 0; i <= 70000; i++) {
        double x = -(double)i * 0.01;
        double want = exp(x);
        assert_true(fabs(s2_exp_of_negative(x) - want) <= 4.0 * DBL_EPSILON * want);
    }
}

static void test_sum_keeps_its_bits(void **state)
{
    static float logits[N_MOST];
    (void)state;
    for (uint32_t i = 0; i < N_MOST; i++) {
        logits[i] = i % 9 == 0 ? -INFINITY : -(float)((i * UINT32_C(2654435761)) >> 8) * 0x1p-19f;
    }
    for (size_t i = 0; s2_softmax_sum_at(i); i++) {
        assert_same_bits(s2_softmax_sum_at(i)(logits, N_MOST, -0x1.225p-7), 0x1.d1a17cda2b76p+6);
        assert_same_bits(s2_softmax_sum_at(i)(logits, 100, 0.0), 0x1.702451628743bp+1);
        assert_same_bits(s2_softmax_sum_at(i)(logits, 0, 0.0), 0.0);
    }
}

/* Of ranges from all alike to most beyond the exponential's; gives the best. */
static float fill(float *logits, uint32_t n, s2_rng *rng)
{
    float range = ldexpf(1.0f, (int)(s2_rng_u32(rng) % 20) - 6);
    uint32_t n_values = s2_rng_u32(rng) % 2 == 0 ? 5 : UINT32_C(1) << 24; /* few: many ties */
    float best = -INFINITY;
    for (uint32_t i = 0; i < n; i++) {
        float part = (float)(s2_rng_u32(rng) % n_values) / (float)n_values;
        logits[i] = s2_rng_u32(rng) % 8 == 0 ? -INFINITY : (part - 0.7f) * range;
        best = logits[i] > best ? logits[i] : best;
    }
    if (n > 0 && isinf(best)) {
        logits[0] = 3.0f;
        best = 3.0f;
    }
    return best;
}

/* As those of the exponentials taken one at a time. */
static void test_sum_has_the_same_bits_with_each_instruction_set(void **state)
{
    static float logits[N_MOST];
    s2_rng rng;
    (void)state;
    s2_rng_seed(&rng, 31);
    assert_non_null(s2_softmax_sum_at(0));
    for (uint32_t round = 0; round < 600; round++) {
        uint32_t n = round < 20 ? N_MOST - round : round % 300;
        double best = (double)fill(logits, n, &rng);
        double want = 0.0;
        for (uint32_t i = 0; i < n; i++) {
            want += s2_exp_of_negative((double)logits[i] - best);
        }
        for (size_t i = 0; s2_softmax_sum_at(i); i++) {
            assert_same_bits(s2_softmax_sum_at(i)(logits, n, best), want);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_exponential_keeps_its_bits),
            cmocka_unit_test(test_exponential_agrees_with_the_library),
            cmocka_unit_test(test_sum_keeps_its_bits),
            cmocka_unit_test(test_sum_has_the_same_bits_with_each_instruction_set),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
