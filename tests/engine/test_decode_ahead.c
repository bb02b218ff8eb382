/* Decoding beside somebody else's work gives what decoding at once gives, in order, and can be left at any time. */
#include "engine/decode_ahead.h"

#include <stdlib.h>
#include <string.h>

#include "model/model_fixture.h"
#include "test_support.h"

#define N_FRAMES 40

static model_fixture f;
static s2_codec_decoder *decoder;
static int32_t *codes;  /* [N_FRAMES][n_codebooks] */
static float *expected; /* [N_FRAMES][frame_samples] */
static size_t n_books;
static size_t n_samples;

static int set_up(void **state)
{
    (void)state;
    sl_error err;
    model_fixture_open(&f, "tiny/tiny-f16.gguf", 1);
    n_books = f.hp.n_codebooks;
    n_samples = f.hp.codec.frame_samples;
    assert_ok(s2_codec_decoder_create(&f.hp, f.weights, &f.compute, &decoder, &err), &err);
    codes = malloc(N_FRAMES * n_books * sizeof *codes);
    expected = malloc(N_FRAMES * n_samples * sizeof *expected);
    assert_non_null(codes);
    assert_non_null(expected);
    for (size_t i = 0; i < N_FRAMES * n_books; i++) {
        codes[i] = (int32_t)((i * 7919) % f.hp.codec.residual_size);
    }
    for (size_t i = 0; i < N_FRAMES; i++) {
        assert_ok(s2_codec_decoder_push(
                          decoder, codes + i * n_books, 1, expected + i * n_samples, &err),
                &err);
    }
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    free(codes);
    free(expected);
    s2_codec_decoder_free(&decoder);
    model_fixture_close(&f);
    return 0;
}

static s2_decode_ahead *start(void)
{
    sl_error err;
    s2_decode_ahead *ahead = NULL;
    s2_codec_decoder_reset(decoder);
    assert_ok(s2_decode_ahead_start(decoder, (uint32_t)n_books, (uint32_t)n_samples, &ahead, &err),
            &err);
    return ahead;
}

/* Takes what is there and compares it with frame *i and those behind it. */
static void take_all(s2_decode_ahead *ahead, bool is_last, size_t *i)
{
    sl_error err;
    int32_t got_codes[64];
    float *got = malloc(n_samples * sizeof *got);
    assert_non_null(got);
    assert_true(n_books <= 64);
    int r = s2_decode_ahead_take(ahead, is_last, got_codes, got, &err);
    while (r > 0) {
        assert_memory_equal(got_codes, codes + *i * n_books, n_books * sizeof *codes);
        assert_memory_equal(got, expected + *i * n_samples, n_samples * sizeof *got);
        (*i)++;
        r = s2_decode_ahead_take(ahead, is_last, got_codes, got, &err);
    }
    assert_ok(r, &err);
    free(got);
}

static void test_frames_come_out_as_they_went_in(void **state)
{
    (void)state;
    sl_error err;
    size_t n_out = 0;
    s2_decode_ahead *ahead = start();
    for (size_t i = 0; i < N_FRAMES; i++) {
        assert_ok(s2_decode_ahead_push(ahead, codes + i * n_books, &err), &err);
        take_all(ahead, false, &n_out);
        assert_true(i + 1 - n_out < S2_DECODE_AHEAD);
    }
    take_all(ahead, true, &n_out);
    assert_int_equal(n_out, N_FRAMES);
    assert_true(s2_decode_ahead_busy_ns(ahead) > 0);
    s2_decode_ahead_stop(&ahead);
    assert_null(ahead);
    s2_decode_ahead_stop(&ahead);
}

static void test_more_than_there_is_room_for_is_refused(void **state)
{
    (void)state;
    sl_error err = {0};
    size_t n_out = 0;
    s2_decode_ahead *ahead = start();
    for (size_t i = 0; i < S2_DECODE_AHEAD; i++) {
        assert_ok(s2_decode_ahead_push(ahead, codes + i * n_books, &err), &err);
    }
    assert_int_equal(s2_decode_ahead_push(ahead, codes, &err), SL_EINTERNAL);
    take_all(ahead, true, &n_out);
    assert_int_equal(n_out, S2_DECODE_AHEAD);
    s2_decode_ahead_stop(&ahead);
}

/* Whatever is under way, stopping returns, and the decoder serves the next one as if nothing had been. */
static void test_G3_29_it_can_be_left_at_any_time(void **state)
{
    (void)state;
    sl_error err;
    for (size_t n = 0; n <= S2_DECODE_AHEAD; n++) {
        s2_decode_ahead *ahead = start();
        for (size_t i = 0; i < n; i++) {
            assert_ok(s2_decode_ahead_push(ahead, codes + i * n_books, &err), &err);
        }
        s2_decode_ahead_stop(&ahead);
        assert_null(ahead);
    }
    test_frames_come_out_as_they_went_in(NULL);
}

static bool always(void *ud)
{
    (void)ud;
    return true;
}

static void test_an_error_ends_it_and_is_told(void **state)
{
    (void)state;
    sl_error err = {0};
    int32_t got_codes[64];
    float *got = malloc(n_samples * sizeof *got);
    assert_non_null(got);
    s2_decode_ahead *ahead = start();
    s2_compute_set_stop(&f.compute, always, NULL);
    assert_ok(s2_decode_ahead_push(ahead, codes, &err), &err);
    assert_int_equal(s2_decode_ahead_take(ahead, true, got_codes, got, &err), SL_ECANCELLED);
    assert_int_equal(s2_decode_ahead_push(ahead, codes, &err), SL_ECANCELLED);
    s2_decode_ahead_stop(&ahead);
    s2_compute_set_stop(&f.compute, NULL, NULL);
    free(got);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_frames_come_out_as_they_went_in),
            cmocka_unit_test(test_more_than_there_is_room_for_is_refused),
            cmocka_unit_test(test_G3_29_it_can_be_left_at_any_time),
            cmocka_unit_test(test_an_error_ends_it_and_is_told),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
