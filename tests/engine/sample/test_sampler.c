#include "engine/sample/sampler.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "golden.h"
#include "test_support.h"

#define N_VOCAB 640

static s2_sampler *make(float temperature, float top_p, int32_t top_k, uint64_t seed)
{
    s2_sample_params params = {temperature, top_p, top_k};
    s2_sampler *s = NULL;
    sl_error err;
    assert_ok(s2_sampler_create(&params, seed, 5000, &s, &err), &err);
    return s;
}

static uint32_t draw(s2_sampler *s, const float *logits, uint32_t n)
{
    uint32_t index = UINT32_MAX;
    sl_error err;
    assert_ok(s2_sampler_draw(s, logits, n, &index, &err), &err);
    assert_true(index < n);
    return index;
}

static uint32_t draw_semantic(s2_sampler *s, const float *logits, uint32_t n_semantic)
{
    uint32_t index = UINT32_MAX;
    sl_error err;
    assert_ok(s2_sampler_draw_semantic(s, logits, n_semantic, &index, &err), &err);
    assert_true(index <= n_semantic);
    return index;
}

static void compare_probs(const float *setting, const float *logits, const float *want)
{
    double got[N_VOCAB] = {0};
    const s2_kept_item *items = NULL;
    uint32_t n_kept = 0;
    sl_error err;
    s2_sampler *s = make(setting[0], setting[1], (int32_t)setting[2], 1);
    s2_sample_params params = {setting[0], setting[1], (int32_t)setting[2]};
    assert_ok(s2_sampler_keep(s, &params, logits, N_VOCAB, &items, &n_kept, &err), &err);
    for (uint32_t i = 0; i < n_kept; i++) {
        got[items[i].index] = items[i].p;
    }
    for (size_t i = 0; i < N_VOCAB; i++) {
        assert_int_equal(got[i] > 0.0, want[i] > 0.0f);
        assert_true(fabs(got[i] - (double)want[i]) < 2e-6);
    }
    s2_sampler_free(&s);
}

static void test_golden_probs(void **state)
{
    size_t n_logits = 0;
    size_t n_settings = 0;
    size_t n_probs = 0;
    float *logits = golden_f32("sampler.logits", &n_logits);
    float *settings = golden_f32("sampler.settings", &n_settings);
    float *probs = golden_f32("sampler.probs", &n_probs);
    (void)state;
    assert_int_equal(n_logits, 2 * N_VOCAB);
    assert_int_equal(n_probs, n_settings / 3 * n_logits);
    for (size_t row = 0; row < 2; row++) {
        for (size_t i = 0; i < n_settings / 3; i++) {
            compare_probs(settings + 3 * i, logits + row * N_VOCAB,
                    probs + (row * (n_settings / 3) + i) * N_VOCAB);
        }
    }
    free(logits);
    free(settings);
    free(probs);
}

static void fill_random(float *logits, uint32_t n, uint32_t n_values, uint64_t seed)
{
    s2_rng rng;
    s2_rng_seed(&rng, seed);
    for (uint32_t i = 0; i < n; i++) {
        logits[i] = (float)(s2_rng_u32(&rng) % n_values) * 0.25f;
        if (s2_rng_u32(&rng) % 7 == 0) {
            logits[i] = -INFINITY;
        }
    }
    logits[n / 2] = 0.5f;
}

typedef struct sort_item {
    float logit;
    uint32_t index;
} sort_item;

static int compare_items(const void *a, const void *b)
{
    const sort_item *x = a;
    const sort_item *y = b;
    if (x->logit != y->logit) {
        return x->logit > y->logit ? -1 : 1;
    }
    return x->index < y->index ? -1 : 1;
}

/* The recipe written down with a full sort; the number of items kept. */
static uint32_t keep_by_sort(
        const float *logits, uint32_t n, const s2_sample_params *p, sort_item *items)
{
    uint32_t n_items = 0;
    double sum = 0.0;
    double cumulative = 0.0;
    for (uint32_t i = 0; i < n; i++) {
        if (!isinf(logits[i])) {
            items[n_items] = (sort_item){logits[i], i};
            n_items++;
        }
    }
    qsort(items, n_items, sizeof *items, compare_items);
    for (uint32_t i = 0; i < n_items; i++) {
        sum += exp((double)items[i].logit - (double)items[0].logit);
    }
    for (uint32_t i = 0; i < n_items; i++) {
        cumulative += exp((double)items[i].logit - (double)items[0].logit) / sum;
        bool over_k = p->top_k > 0 && i >= (uint32_t)p->top_k;
        if (over_k || (i > 0 && p->top_p < 1.0f && cumulative > (double)p->top_p)) {
            return i;
        }
    }
    return n_items;
}

static void test_selection_equals_a_full_sort(void **state)
{
    static const s2_sample_params settings[] = {{1.0f, 1.0f, 0}, {0.8f, 0.83f, 0}, {0.8f, 0.8f, 30},
            {2.0f, 1.0f, 4097}, {0.5f, 0.999f, 1000}, {1.0f, 1.0f, 1}};
    float *logits = malloc(sizeof *logits * 4097);
    sort_item *sorted = malloc(sizeof *sorted * 4097);
    s2_sampler *s = make(1.0f, 1.0f, 0, 1);
    const s2_kept_item *items = NULL;
    uint32_t n_kept = 0;
    sl_error err;
    (void)state;
    assert_non_null(logits);
    assert_non_null(sorted);
    for (uint32_t i = 0; i < 6 * 8; i++) {
        uint32_t n = i % 8 == 0 ? 4097 : 1 + i * 11;
        fill_random(logits, n, 3 + i * 5, i); /* few values: many ties */
        uint32_t want = keep_by_sort(logits, n, &settings[i % 6], sorted);
        assert_ok(s2_sampler_keep(s, &settings[i % 6], logits, n, &items, &n_kept, &err), &err);
        assert_int_equal(n_kept, want);
        for (uint32_t j = 0; j < want; j++) {
            assert_int_equal(items[j].index, sorted[j].index);
        }
    }
    free(logits);
    free(sorted);
    s2_sampler_free(&s);
}

enum {
    ALL_SAME,
    RISING,
    FALLING,
    ZEROS_OF_BOTH_SIGNS,
    FEW_ALLOWED,
    WIDE,
    EXTREMES,
    N_SHAPES
};

static float shaped_logit(int shape, uint32_t i, s2_rng *rng)
{
    uint32_t number = s2_rng_u32(rng);
    switch (shape) {
    case RISING:
        return (float)i * 0.5f - 100.0f;
    case FALLING:
        return 100.0f - (float)i * 0.5f;
    case ZEROS_OF_BOTH_SIGNS:
        return number % 40 == 0 ? -1e-45f : (number % 2 == 0 ? -0.0f : 0.0f);
    case FEW_ALLOWED:
        return number % 50 == 0 ? (float)(number % 7) - 3.0f : -INFINITY;
    case WIDE:
        return ldexpf((float)number - 2e9f, (int)(number % 120) - 100);
    case EXTREMES:
        return number % 3 == 0 ? -FLT_MAX : (number % 3 == 1 ? FLT_MAX : -INFINITY);
    default:
        return -7.5f;
    }
}

static void test_selection_of_awkward_orders_and_sizes(void **state)
{
    static const uint32_t sizes[] = {1, 15, 16, 17, 63, 64, 65, 79, 128, 191, 1000, 4097};
    static const int32_t limits[] = {0, 1, 2, 30, 63, 64, 65, 200};
    static float logits[4097];
    static sort_item sorted[4097];
    s2_sampler *s = make(1.0f, 1.0f, 0, 1);
    s2_rng rng;
    sl_error err;
    (void)state;
    s2_rng_seed(&rng, 8);
    for (size_t i = 0; i < N_SHAPES * sizeof sizes / sizeof sizes[0]; i++) {
        uint32_t n = sizes[i / N_SHAPES];
        for (uint32_t j = 0; j < n; j++) {
            logits[j] = shaped_logit((int)(i % N_SHAPES), j, &rng);
        }
        logits[n / 2] = 0.0f;
        for (size_t j = 0; j < sizeof limits / sizeof limits[0]; j++) {
            s2_sample_params params = {1.0f, 1.0f, limits[j]};
            const s2_kept_item *items = NULL;
            uint32_t n_kept = 0;
            uint32_t want = keep_by_sort(logits, n, &params, sorted);
            assert_ok(s2_sampler_keep(s, &params, logits, n, &items, &n_kept, &err), &err);
            assert_int_equal(n_kept, want);
            for (uint32_t k = 0; k < want; k++) {
                assert_int_equal(items[k].index, sorted[k].index);
            }
        }
    }
    s2_sampler_free(&s);
}

/* Pearson's statistic of 20000 draws; 21 items, so 45 is the 0.1 % point of its distribution. */
static void test_draws_follow_the_probabilities(void **state)
{
    enum {
        n = 40,
        n_draws = 20000
    };
    float logits[n];
    double n_seen[n] = {0};
    s2_sampler *s = make(1.3f, 1.0f, 21, 2024);
    s2_sample_params params = {1.3f, 1.0f, 21};
    const s2_kept_item *items = NULL;
    uint32_t n_kept = 0;
    double chi_square = 0.0;
    sl_error err;
    (void)state;
    for (uint32_t i = 0; i < n; i++) {
        logits[i] = (float)((i * 7) % n) * 0.08f;
    }
    for (int i = 0; i < n_draws; i++) {
        n_seen[draw(s, logits, n)] += 1.0;
    }
    assert_ok(s2_sampler_keep(s, &params, logits, n, &items, &n_kept, &err), &err);
    assert_int_equal(n_kept, 21);
    for (uint32_t i = 0; i < n_kept; i++) {
        double want = items[i].p * n_draws;
        double diff = n_seen[items[i].index] - want;
        chi_square += diff * diff / want;
        n_seen[items[i].index] = 0.0;
    }
    assert_true(chi_square < 45.0);
    for (uint32_t i = 0; i < n; i++) {
        assert_true(n_seen[i] == 0.0); /* nothing outside the kept items */
    }
    s2_sampler_free(&s);
}

static void test_G4_28_same_seed_same_draws(void **state)
{
    float logits[300];
    uint32_t first[200];
    bool is_other = false;
    s2_sampler *a = make(1.0f, 0.95f, 50, 5);
    s2_sampler *b = make(1.0f, 0.95f, 50, 5);
    s2_sampler *c = make(1.0f, 0.95f, 50, 6);
    (void)state;
    fill_random(logits, 300, 20, 9);
    for (size_t i = 0; i < 200; i++) {
        first[i] = draw_semantic(a, logits, 299);
        assert_int_equal(draw_semantic(b, logits, 299), first[i]);
        is_other = is_other || draw_semantic(c, logits, 299) != first[i];
    }
    assert_true(is_other);
    s2_sampler_reset(a);
    for (size_t i = 0; i < 200; i++) {
        assert_int_equal(draw_semantic(a, logits, 299), first[i]);
    }
    s2_sampler_free(&a);
    s2_sampler_free(&b);
    s2_sampler_free(&c);
}

/* From an independent program of the same recipe: what a seed means on every system. */
static void test_G4_28_a_seed_keeps_its_meaning(void **state)
{
    static const uint32_t want[] = {50, 24, 43, 36, 38, 10, 5, 62, 31, 24, 19, 57, 12, 50, 36, 5,
            12, 57, 43, 50, 57, 31, 19, 12};
    float logits[64];
    s2_sampler *s = make(0.8f, 0.9f, 30, 42);
    (void)state;
    for (uint32_t i = 0; i < 64; i++) {
        logits[i] = (float)((i * 37) % 64) * 0.125f;
    }
    for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
        assert_int_equal(draw_semantic(s, logits, 63), want[i]);
    }
    s2_sampler_free(&s);
}

static void expect_broken(const float *logits, uint32_t n, const char *part)
{
    s2_sampler *s = make(1.0f, 0.9f, 30, 1);
    uint32_t index = 77;
    sl_error err;
    assert_int_equal(s2_sampler_draw(s, logits, n, &index, &err), SL_EINVAL);
    assert_non_null(strstr(err.msg, part));
    assert_int_equal(index, 77);
    s2_sampler_free(&s);
}

static void test_G4_28_broken_logits_are_errors(void **state)
{
    float nan_logits[4] = {1.0f, 2.0f, NAN, 0.0f};
    float inf_logits[4] = {1.0f, 2.0f, 0.0f, INFINITY};
    float no_logits[4] = {-INFINITY, -INFINITY, -INFINITY, -INFINITY};
    static const float many[5001] = {0};
    (void)state;
    expect_broken(nan_logits, 4, "logit 2 of 4 is nan");
    expect_broken(inf_logits, 4, "logit 3 of 4 is inf");
    expect_broken((const float[5]){1.0f, INFINITY, 0.0f, NAN, INFINITY}, 5, "logit 1 of 5 is inf");
    expect_broken(no_logits, 4, "all 4 logits are -inf");
    expect_broken(no_logits, 0, "all 0 logits");
    expect_broken(many, 5001, "at most 5000");
}

static void test_G4_28_broken_logits_with_nan_beside_inf(void **state)
{
    float logits[3] = {-INFINITY, -NAN, -INFINITY};
    (void)state;
    expect_broken(logits, 3, "logit 1");
}

static void test_G4_28_extreme_parameters(void **state)
{
    static const float logits[6] = {0.5f, 3.0f, 3.0f, -INFINITY, 2.9f, -80.0f};
    static const s2_sample_params best_only[] = {{0.0f, 1.0f, 0}, {1e-8f, 1.0f, 0}, {0.0f, 0.0f, 0},
            {100.0f, 0.0f, 0}, {100.0f, 1.0f, 1}, {0.0f, 1.0f, INT32_MAX}};
    (void)state;
    for (size_t i = 0; i < sizeof best_only / sizeof best_only[0]; i++) {
        s2_sample_params p = best_only[i];
        s2_sampler *s = make(p.temperature, p.top_p, p.top_k, i);
        for (int j = 0; j < 50; j++) {
            assert_int_equal(draw(s, logits, 6), 1); /* the lower id of the tie */
        }
        s2_sampler_free(&s);
    }
    s2_sampler *s = make(1e-5f, 1.0f, 0, 3); /* not greedy: the tie is drawn from, nothing else */
    int n_seen[6] = {0};
    for (int j = 0; j < 400; j++) {
        n_seen[draw(s, logits, 6)]++;
    }
    assert_true(n_seen[1] > 100 && n_seen[2] > 100 && n_seen[1] + n_seen[2] == 400);
    s2_sampler_free(&s);
}

static void test_G4_28_hottest_temperature_is_near_even(void **state)
{
    static const float logits[4] = {0.5f, 3.0f, -INFINITY, -30.0f};
    int n_seen[4] = {0};
    s2_sampler *s = make(100.0f, 1.0f, 0, 4);
    (void)state;
    for (int j = 0; j < 3000; j++) {
        n_seen[draw(s, logits, 4)]++;
    }
    assert_true(n_seen[0] > 900 && n_seen[1] > 900 && n_seen[2] == 0 && n_seen[3] > 700);
    s2_sampler_free(&s);
}

static void test_G4_28_parameters_out_of_range_are_named(void **state)
{
    static const struct {
        s2_sample_params params;
        const char *part;
    } bad[] = {{{-0.1f, 0.9f, 30}, "temperature is -0.1"}, {{NAN, 0.9f, 30}, "temperature is nan"},
            {{100.5f, 0.9f, 30}, "temperature is 100.5"}, {{INFINITY, 0.9f, 30}, "temperature"},
            {{1.0f, -0.01f, 30}, "top-p is -0.01"}, {{1.0f, 1.01f, 30}, "top-p is 1.01"},
            {{1.0f, NAN, 30}, "top-p is nan"}, {{1.0f, 0.9f, -1}, "top-k is -1"},
            {{1.0f, 0.9f, INT32_MIN}, "top-k"}};
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        s2_sampler *s = NULL;
        sl_error err;
        assert_int_equal(s2_sampler_create(&bad[i].params, 1, 10, &s, &err), SL_EINVAL);
        assert_non_null(strstr(err.msg, bad[i].part));
        assert_null(s);
    }
}

/* A table in which `token` is almost certain and three others share the rest. */
static void peak_at(float *logits, uint32_t n_semantic, uint32_t token)
{
    for (uint32_t i = 0; i <= n_semantic; i++) {
        logits[i] = -INFINITY;
    }
    logits[token] = 10.0f;
    for (uint32_t i = 1; i < 4; i++) {
        logits[(token + i) % n_semantic] = 9.9f;
    }
}

static void test_G4_08_ras_replaces_a_token_of_the_window(void **state)
{
    enum {
        n = 20,
        n_runs = 300
    };
    float logits[n + 1];
    int n_replaced = 0;
    (void)state;
    peak_at(logits, n, 5);
    for (uint64_t seed = 0; seed < n_runs; seed++) {
        s2_sampler *s = make(0.01f, 0.5f, 30, seed);      /* always 5 but for the second draw */
        assert_int_equal(draw_semantic(s, logits, n), 5); /* first frame: not in the window */
        assert_int_equal(draw_semantic(s, logits, n), 5); /* so this is no repetition */
        uint32_t third = draw_semantic(s, logits, n);
        assert_true(third >= 5 && third < 9);
        n_replaced += third != 5; /* not tested again: 5 may come back, one time in four */
        s2_sampler_free(&s);
    }
    assert_true(n_replaced > n_runs / 2 && n_replaced < n_runs * 9 / 10);
}

static void test_G4_08_ras_window_is_ten_tokens(void **state)
{
    enum {
        n = 20
    };
    float logits[n + 1];
    float even[n + 1];
    (void)state;
    for (uint32_t i = 0; i <= n; i++) {
        even[i] = i < n ? 0.0f : -INFINITY;
    }
    for (uint32_t n_between = 8; n_between <= 11; n_between++) {
        int n_changed = 0;
        for (uint64_t seed = 0; seed < 60; seed++) {
            s2_sampler *s = make(0.01f, 0.5f, 0, seed);
            peak_at(logits, n, 0);
            (void)draw_semantic(s, logits, n); /* the first frame does not count */
            (void)draw_semantic(s, logits, n);
            for (uint32_t i = 1; i <= n_between; i++) {
                peak_at(even, n, i);
                even[i] = 50.0f; /* the others cannot be drawn, also at temperature 1 */
                assert_int_equal(draw_semantic(s, even, n), i);
            }
            n_changed += draw_semantic(s, logits, n) != 0;
            s2_sampler_free(&s);
        }
        if (n_between < S2_RAS_WINDOW) {
            assert_true(n_changed > 20);
        } else {
            assert_int_equal(n_changed, 0);
        }
    }
}

static void test_G4_08_ras_never_blocks_the_end_token(void **state)
{
    enum {
        n = 8
    };
    float logits[n + 1];
    s2_sampler *s = make(0.01f, 0.5f, 30, 3);
    (void)state;
    for (uint32_t i = 0; i < n; i++) {
        logits[i] = 0.0f;
    }
    logits[n] = 1.0f;
    for (int i = 0; i < 30; i++) {
        assert_int_equal(draw_semantic(s, logits, n), n);
    }
    s2_sampler_free(&s);
}

/* The second draw may give the end token, which is then the result. */
static void test_G4_08_ras_replacement_may_be_the_end(void **state)
{
    enum {
        n = 4
    };
    float logits[n + 1] = {2.0f, 1.5f, 1.5f, -INFINITY, 1.9f};
    int n_end = 0;
    (void)state;
    for (uint64_t seed = 0; seed < 100; seed++) {
        s2_sampler *s = make(0.001f, 0.1f, 30, seed);
        (void)draw_semantic(s, logits, n);
        (void)draw_semantic(s, logits, n);
        uint32_t third = draw_semantic(s, logits, n);
        assert_true(third == 0 || third == 1 || third == n); /* top_p 0.9 cuts the last */
        n_end += third == n;
        s2_sampler_free(&s);
    }
    assert_true(n_end > 20 && n_end < 80);
}

static void test_G4_08_ras_is_neutral_when_greedy(void **state)
{
    enum {
        n = 20
    };
    float logits[n + 1];
    s2_sampler *s = make(0.0f, 1.0f, 1, 3);
    (void)state;
    peak_at(logits, n, 7);
    for (int i = 0; i < 40; i++) {
        assert_int_equal(draw_semantic(s, logits, n), 7);
    }
    s2_sampler_free(&s);
}

/* The second draw takes a number only when it happens; a plain draw takes exactly one. */
static void test_random_numbers_taken(void **state)
{
    enum {
        n = 400
    };
    float logits[n + 1];
    s2_sampler *greedy = make(0.0f, 1.0f, 0, 11);
    s2_sampler *plain = make(1.0f, 1.0f, 0, 11);
    sl_error err;
    (void)state;
    for (uint32_t i = 0; i <= n; i++) {
        logits[i] = 0.0f;
    }
    s2_rng rng;
    s2_rng_seed(&rng, 11);
    for (int i = 0; i < 20; i++) {
        double u = s2_rng_unit(&rng);
        assert_int_equal(draw(plain, logits, n), (uint32_t)(u * n));
        assert_int_equal(draw(greedy, logits, n), 0);
    }
    uint32_t index = 0;
    assert_int_equal(s2_sampler_draw(plain, logits, 0, &index, &err), SL_EINVAL);
    assert_int_equal(draw(plain, logits, n), (uint32_t)(s2_rng_unit(&rng) * n));
    s2_sampler_free(&greedy);
    s2_sampler_free(&plain);
}

static void test_failed_allocations(void **state)
{
    s2_sample_params params = {1.0f, 0.9f, 30};
    (void)state;
    for (long i = 0; i < 3; i++) {
        s2_sampler *s = NULL;
        sl_error err;
        sl__mem_fail_after(i);
        int r = s2_sampler_create(&params, 1, 100, &s, &err);
        sl__mem_fail_after(-1);
        assert_int_equal(r, SL_ENOMEM);
        assert_null(s);
    }
    s2_sampler_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_golden_probs),
            cmocka_unit_test(test_selection_equals_a_full_sort),
            cmocka_unit_test(test_selection_of_awkward_orders_and_sizes),
            cmocka_unit_test(test_draws_follow_the_probabilities),
            cmocka_unit_test(test_G4_28_same_seed_same_draws),
            cmocka_unit_test(test_G4_28_a_seed_keeps_its_meaning),
            cmocka_unit_test(test_G4_28_broken_logits_are_errors),
            cmocka_unit_test(test_G4_28_broken_logits_with_nan_beside_inf),
            cmocka_unit_test(test_G4_28_extreme_parameters),
            cmocka_unit_test(test_G4_28_hottest_temperature_is_near_even),
            cmocka_unit_test(test_G4_28_parameters_out_of_range_are_named),
            cmocka_unit_test(test_G4_08_ras_replaces_a_token_of_the_window),
            cmocka_unit_test(test_G4_08_ras_window_is_ten_tokens),
            cmocka_unit_test(test_G4_08_ras_never_blocks_the_end_token),
            cmocka_unit_test(test_G4_08_ras_replacement_may_be_the_end),
            cmocka_unit_test(test_G4_08_ras_is_neutral_when_greedy),
            cmocka_unit_test(test_random_numbers_taken),
            cmocka_unit_test(test_failed_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
