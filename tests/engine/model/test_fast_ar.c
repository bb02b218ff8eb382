/*
 * The fast AR against the original's logits for ten given frames. Its cache is F32, so both files agree
 * to float noise, and F16 weights are widened.
 */
#include "engine/model/fast_ar.h"

#include <stdlib.h>
#include <string.h>

#include "golden.h"
#include "model_fixture.h"
#include "test_support.h"

static float largest_over_frames(const char *file, int n_threads)
{
    model_fixture m;
    sl_error err;
    s2_fast_ar *ar = NULL;
    float largest = 0;
    model_fixture_open(&m, file, n_threads);
    assert_ok(s2_fast_ar_create(&m.hp, m.weights, &m.compute, &ar, &err), &err);
    uint32_t n_books = m.hp.n_codebooks;
    uint32_t size = m.hp.codebook_size;
    float *hidden = golden_f32("fast.hidden", NULL);
    int32_t *codes = golden_i32("fast.codes", NULL);
    float *want = golden_f32("fast.logits", NULL);
    float *got = malloc(size * sizeof *got);
    for (uint32_t i = 0; i < 10; i++) {
        for (uint32_t j = 1; j < n_books; j++) {
            int32_t previous = codes[i * n_books + j - 1];
            int r = j == 1 ? s2_fast_ar_begin(
                                     ar, hidden + i * m.hp.slow.n_embd, previous, got, &err)
                           : s2_fast_ar_next(ar, previous, got, &err);
            assert_ok(r, &err);
            float d = largest_difference(got, want + (i * n_books + j) * size, size);
            largest = d > largest ? d : largest;
        }
    }
    assert_true(s2_fast_ar_compute_bytes(ar) > 0);
    free(hidden);
    free(codes);
    free(want);
    free(got);
    s2_fast_ar_free(&ar);
    model_fixture_close(&m);
    print_message("%s: %.2e\n", file, (double)largest);
    return largest;
}

static void test_logits_equal_the_original(void **state)
{
    (void)state;
    assert_true(largest_over_frames("golden/tiny-s2-f32.gguf", 1) <= 1e-4f);
    assert_true(largest_over_frames("golden/tiny-s2-f16.gguf", 2) <= 1e-4f);
}

static void test_codes_out_of_range_are_refused(void **state)
{
    (void)state;
    model_fixture m;
    sl_error err;
    s2_fast_ar *ar = NULL;
    float logits[64];
    float hidden[64] = {0};
    model_fixture_open(&m, "golden/tiny-s2-f32.gguf", 1);
    assert_ok(s2_fast_ar_create(&m.hp, m.weights, &m.compute, &ar, &err), &err);
    assert_int_equal(s2_fast_ar_begin(ar, hidden, -1, logits, &err), SL_EINVAL);
    assert_int_equal(s2_fast_ar_begin(ar, hidden, 64, logits, &err), SL_EINVAL);
    assert_ok(s2_fast_ar_begin(ar, hidden, 63, logits, &err), &err);
    s2_fast_ar_free(&ar);
    model_fixture_close(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_logits_equal_the_original),
            cmocka_unit_test(test_codes_out_of_range_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
