/* The loop of one piece of speech: where it ends, what it shares, what an error leaves behind. */
#include "engine/session.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "engine/model/slow_ar.h"
#include "golden.h"
#include "model/model_fixture.h"
#include "test_support.h"

#define IM_END  514
#define N_BOOKS 10

typedef struct fixture {
    model_fixture m;
    s2_slow_ar *slow;
    s2_fast_ar *fast;
    s2_sampler *sampler;
    s2_session session;
    s2_stats stats;
    int32_t *prompt; /* column major */
    uint32_t n_columns;
    int32_t *want; /* [1 + books][n_want] of the original */
    uint32_t n_want;
} fixture;

/* The golden file has rows; the engine takes columns. */
static void load_prompt(fixture *f)
{
    size_t dims[GOLDEN_MAX_DIMS];
    golden_dims("ar.plain.prompt", dims);
    int32_t *rows = golden_i32("ar.plain.prompt", NULL);
    f->n_columns = (uint32_t)dims[1];
    f->prompt = malloc(dims[0] * dims[1] * sizeof *f->prompt);
    assert_non_null(f->prompt);
    for (size_t t = 0; t < dims[1]; t++) {
        for (size_t j = 0; j < dims[0]; j++) {
            f->prompt[t * dims[0] + j] = rows[j * dims[1] + t];
        }
    }
    free(rows);
    golden_dims("ar.plain.gen", dims);
    f->want = golden_i32("ar.plain.gen", NULL);
    f->n_want = (uint32_t)dims[1];
}

static int set_up(void **state)
{
    sl_error err;
    const s2_sample_params greedy = {0, 1, 1};
    fixture *f = calloc(1, sizeof *f);
    model_fixture_open(&f->m, "golden/tiny-s2-f32.gguf", 1);
    const s2_slow_places places = s2_slow_places_on(&f->m.compute);
    assert_ok(s2_slow_ar_create(&f->m.hp, IM_END, f->m.weights, &places, &f->slow, &err), &err);
    assert_ok(s2_fast_ar_create(&f->m.hp, f->m.weights, &f->m.compute, &f->fast, &err), &err);
    assert_ok(s2_sampler_create(&greedy, 1, f->m.hp.codebook_size + 1, &f->sampler, &err), &err);
    assert_ok(s2_session_init(&f->session, &f->m.hp, f->slow, f->fast, &err), &err);
    assert_int_equal(f->m.hp.n_codebooks, N_BOOKS);
    load_prompt(f);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    fixture *f = *state;
    s2_session_done(&f->session);
    s2_sampler_free(&f->sampler);
    s2_fast_ar_free(&f->fast);
    s2_slow_ar_free(&f->slow);
    model_fixture_close(&f->m);
    free(f->prompt);
    free(f->want);
    free(f);
    return 0;
}

static void begin(fixture *f, uint32_t n_shared, uint32_t min_frames, uint32_t max_frames)
{
    sl_error err;
    assert_ok(
            s2_session_begin(&f->session, f->sampler,
                    &(s2_session_start){f->prompt, f->n_columns, n_shared, min_frames, max_frames},
                    &f->stats, &err),
            &err);
}

/* Draws until the end; compares the first frames with the original's. Returns how many there were. */
static uint32_t run_to_end(fixture *f)
{
    int32_t codes[N_BOOKS];
    sl_error err;
    uint32_t n = 0;
    int r = s2_session_next(&f->session, codes, &err);
    for (; r == 1; n++) {
        for (size_t j = 0; j < N_BOOKS && n + 1 < f->n_want; j++) {
            assert_int_equal(codes[j], f->want[(1 + j) * f->n_want + n]);
        }
        r = s2_session_next(&f->session, codes, &err);
    }
    assert_ok(r, &err);
    assert_int_equal(f->session.n_frames, n);
    return n;
}

static void test_speech_ends_where_the_model_ends_it(void **state)
{
    fixture *f = *state;
    int32_t codes[N_BOOKS];
    sl_error err;
    begin(f, 0, 0, 100);
    assert_int_equal(run_to_end(f), f->n_want - 1);
    assert_int_equal(f->session.end, S2_END_SPEECH);
    /* An ended session stays ended. */
    assert_int_equal(s2_session_next(&f->session, codes, &err), 0);
    assert_int_equal(s2_session_next(&f->session, codes, &err), 0);
    assert_true(f->stats.prefill_ns > 0 && f->stats.slow_ns > 0 && f->stats.fast_ns > 0);
}

static void test_the_limit_keeps_its_frames(void **state)
{
    fixture *f = *state;
    static const uint32_t limits[] = {0, 1, 2, 7};
    for (size_t i = 0; i < 4; i++) {
        begin(f, 0, 0, limits[i]);
        assert_int_equal(run_to_end(f), limits[i]);
        assert_int_equal(f->session.end, S2_END_LIMIT);
    }
}

static void test_speech_does_not_end_before_its_least(void **state)
{
    fixture *f = *state;
    begin(f, 0, f->n_want + 5, 100);
    assert_true(run_to_end(f) >= f->n_want + 5);
    begin(f, 0, 3, 100);
    assert_int_equal(run_to_end(f), f->n_want - 1);
}

static void test_shared_columns_are_not_evaluated_again(void **state)
{
    fixture *f = *state;
    begin(f, 0, 0, 100);
    assert_int_equal(run_to_end(f), f->n_want - 1);
    begin(f, f->n_columns - 4, 0, 100);
    assert_int_equal(s2_slow_ar_n_past(f->slow), f->n_columns);
    assert_int_equal(run_to_end(f), f->n_want - 1);
    /* A session that was left half way leaves no trace in the next. */
    begin(f, 0, 0, 3);
    run_to_end(f);
    begin(f, 5, 0, 100);
    assert_int_equal(run_to_end(f), f->n_want - 1);
}

static void test_the_context_limits_frames(void **state)
{
    fixture *f = *state;
    uint32_t n_ctx = f->m.hp.n_ctx;
    f->m.hp.n_ctx = f->n_columns + 2;
    begin(f, 0, 0, 100);
    assert_int_equal(run_to_end(f), 2);
    assert_int_equal(f->session.end, S2_END_LIMIT);
    sl_error err = {0};
    for (uint32_t n = f->n_columns; n >= f->n_columns - 1; n--) {
        f->m.hp.n_ctx = n;
        assert_int_equal(
                s2_session_begin(&f->session, f->sampler,
                        &(s2_session_start){f->prompt, f->n_columns, 0, 0, 100}, &f->stats, &err),
                SL_ELIMIT);
        assert_non_null(strstr(err.msg, "context"));
    }
    f->m.hp.n_ctx = n_ctx;
}

static void test_bad_columns_leave_the_session_usable(void **state)
{
    fixture *f = *state;
    static const int32_t bad[] = {-1, INT32_MAX, 640};
    sl_error err = {0};
    int32_t kept = f->prompt[3 * (1 + N_BOOKS)];
    for (size_t i = 0; i < 3; i++) {
        f->prompt[3 * (1 + N_BOOKS)] = bad[i];
        assert_int_equal(
                s2_session_begin(&f->session, f->sampler,
                        &(s2_session_start){f->prompt, f->n_columns, 0, 0, 100}, &f->stats, &err),
                SL_EINVAL);
        assert_non_null(strstr(err.msg, "column 3"));
    }
    f->prompt[3 * (1 + N_BOOKS)] = kept;
    begin(f, 0, 0, 100);
    assert_int_equal(run_to_end(f), f->n_want - 1);
}

static bool always(void *ud)
{
    (void)ud;
    return true;
}

static void test_a_stop_is_an_error_that_leaves_no_trace(void **state)
{
    fixture *f = *state;
    int32_t codes[N_BOOKS];
    sl_error err = {0};
    begin(f, 0, 0, 100);
    assert_int_equal(s2_session_next(&f->session, codes, &err), 1);
    s2_compute_set_stop(&f->m.compute, always, NULL);
    assert_int_equal(s2_session_next(&f->session, codes, &err), SL_ECANCELLED);
    assert_int_equal(
            s2_session_begin(&f->session, f->sampler,
                    &(s2_session_start){f->prompt, f->n_columns, 0, 0, 100}, &f->stats, &err),
            SL_ECANCELLED);
    s2_compute_set_stop(&f->m.compute, NULL, NULL);
    begin(f, 0, 0, 100);
    assert_int_equal(run_to_end(f), f->n_want - 1);
}

static void test_no_memory_for_scratch(void **state)
{
    fixture *f = *state;
    for (long n = 0; n < 4; n++) {
        s2_session s;
        sl_error err = {0};
        sl__mem_fail_after(n);
        int r = s2_session_init(&s, &f->m.hp, f->slow, f->fast, &err);
        sl__mem_fail_after(-1);
        assert_int_equal(r, SL_ENOMEM);
        s2_session_done(&s);
    }
    s2_session_done(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_speech_ends_where_the_model_ends_it),
            cmocka_unit_test(test_the_limit_keeps_its_frames),
            cmocka_unit_test(test_speech_does_not_end_before_its_least),
            cmocka_unit_test(test_shared_columns_are_not_evaluated_again),
            cmocka_unit_test(test_the_context_limits_frames),
            cmocka_unit_test(test_bad_columns_leave_the_session_usable),
            cmocka_unit_test(test_a_stop_is_an_error_that_leaves_no_trace),
            cmocka_unit_test(test_no_memory_for_scratch),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
