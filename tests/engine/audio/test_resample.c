#include "engine/audio/resample.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "audio_zoo.h"
#include "base/mem.h"
#include "golden.h"
#include "test_support.h"

static s2_audio resample(const float *samples, size_t n, uint32_t from, uint32_t to)
{
    s2_audio audio = {0};
    sl_error err;
    assert_ok(s2_audio_resample(samples, n, from, to, &audio, &err), &err);
    assert_int_equal(audio.rate, to);
    return audio;
}

/* A long windowed sinc that keeps what lies below `cutoff` (a part of the rate). */
static float *low_pass(const float *samples, size_t n, double cutoff)
{
    enum {
        half = 200
    };
    const double pi = 3.14159265358979323846;
    float *out = calloc(n, sizeof *out);
    assert_non_null(out);
    for (size_t i = half; i + half < n; i++) {
        double sum = 0.0;
        for (int k = -half; k <= half; k++) {
            double x = 2.0 * cutoff * k;
            double sinc = k == 0 ? 1.0 : sin(pi * x) / (pi * x);
            double window = 0.5 + 0.5 * cos(pi * k / half);
            sum += (double)samples[(size_t)((long)i + k)] * 2.0 * cutoff * sinc * window;
        }
        out[i] = (float)sum;
    }
    return out;
}

static void compare(const float *got, const float *want, size_t n, double max, double rms)
{
    double worst = 0.0;
    double sum = 0.0;
    size_t n_edge = 400; /* the two filters see the silence around the sound differently */
    for (size_t i = n_edge; i + n_edge < n; i++) {
        double d = fabs((double)got[i] - (double)want[i]);
        worst = d > worst ? d : worst;
        sum += d * d;
    }
    sum = sqrt(sum / (double)(n - 2 * n_edge));
    print_message("  difference to the original's resampler: max %.2g, rms %.2g\n", worst, sum);
    assert_true(worst < max && sum < rms);
}

/*
 * The original's short sinc is not flat near the Nyquist frequency of the lower rate: there the two must
 * differ (it passes aliases that G4-18 forbids), elsewhere by a little ripple (0.05 %).
 */
static void test_golden_vectors(void **state)
{
    static const uint32_t rates[] = {16000, 24000, 48000};
    (void)state;
    for (size_t i = 0; i < sizeof rates / sizeof rates[0]; i++) {
        char name[64];
        size_t n_in = 0;
        size_t n_out = 0;
        snprintf(name, sizeof name, "resample.%u.in", rates[i]);
        float *in = golden_f32(name, &n_in);
        snprintf(name, sizeof name, "resample.%u.out", rates[i]);
        float *want = golden_f32(name, &n_out);
        s2_audio got = resample(in, n_in, rates[i], 44100);
        assert_int_equal(got.n, n_out);
        if (rates[i] < 44100) {
            compare(got.samples, want, n_out, 5e-4, 1.5e-4);
        } else {
            float *got_low = low_pass(got.samples, n_out, 14000.0 / 44100.0);
            float *want_low = low_pass(want, n_out, 14000.0 / 44100.0);
            compare(got_low, want_low, n_out, 1e-3, 3e-4);
            free(got_low);
            free(want_low);
        }
        s2_audio_done(&got);
        free(in);
        free(want);
    }
}

static void expect_power(double hz, uint32_t from, uint32_t to, double min_db, double max_db)
{
    float *tone = zoo_tone(hz, 1.0, from, from / 2);
    s2_audio got = resample(tone, from / 2, from, to);
    double db = zoo_power_db(got.samples + got.n / 4, got.n / 2) + 3.0103; /* 0 = the tone */
    if (db < min_db || db > max_db) {
        fail_msg("%g Hz from %u to %u: %.1f dB", hz, from, to, db);
    }
    s2_audio_done(&got);
    free(tone);
}

static void test_G4_18_no_aliasing(void **state)
{
    (void)state;
    expect_power(20000, 96000, 32000, -400, -90);
    expect_power(20000, 96000, 24000, -400, -90);
    expect_power(22100, 96000, 44100, -400, -90);
    expect_power(24000, 96000, 44100, -400, -90);
    expect_power(30000, 192000, 44100, -400, -90);
    expect_power(23000, 48000, 44100, -400, -90);
    expect_power(5000, 44100, 8000, -400, -90);
    expect_power(20000, 96000, 44100, -0.1, 0.1); /* and what belongs there stays */
    expect_power(1000, 8000, 44100, -0.1, 0.1);
    expect_power(3500, 8000, 44100, -0.1, 0.1);
}

static void test_length_is_exact(void **state)
{
    static const uint32_t rates[] = {1000, 8000, 11025, 22050, 44100, 48000, 96000, 192000, 768000};
    static const size_t lengths[] = {0, 1, 2, 3, 147, 1000, 2047, 4801};
    float *tone = zoo_tone(100, 0.5, 44100, 4801);
    (void)state;
    for (size_t i = 0; i < 81; i++) {
        uint32_t from = rates[i % 9];
        uint32_t to = rates[i / 9];
        for (size_t k = 0; k < sizeof lengths / sizeof lengths[0]; k++) {
            size_t n = lengths[k];
            s2_audio got = resample(tone, n, from, to);
            assert_int_equal(got.n, (n * to + from - 1) / from);
            s2_audio_done(&got);
        }
    }
    free(tone);
}

/* The phase of a tone is kept, so there is no delay; a click stays where it was. */
static void test_no_delay(void **state)
{
    static const uint32_t pairs[][2] = {
            {48000, 44100}, {44100, 48000}, {16000, 44100}, {44100, 8000}};
    (void)state;
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        size_t n = pairs[i][0];
        float *tone = zoo_tone(300, 0.5, pairs[i][0], n);
        float *want = zoo_tone(300, 0.5, pairs[i][1], pairs[i][1]);
        s2_audio got = resample(tone, n, pairs[i][0], pairs[i][1]);
        for (size_t k = got.n / 8; k < got.n * 7 / 8; k++) {
            assert_true(fabs((double)got.samples[k] - (double)want[k]) < 1e-4);
        }
        s2_audio_done(&got);
        memset(tone, 0, n * sizeof *tone);
        tone[n / 2] = 1.0f;
        got = resample(tone, n, pairs[i][0], pairs[i][1]);
        size_t at = 0;
        for (size_t k = 0; k < got.n; k++) {
            at = got.samples[k] > got.samples[at] ? k : at;
        }
        size_t due = n / 2 * pairs[i][1] / pairs[i][0];
        assert_true(at == due || at == due + 1);
        s2_audio_done(&got);
        free(tone);
        free(want);
    }
}

typedef struct taken {
    float samples[50000];
    size_t n;
    size_t n_calls;
} taken;

static int take(void *user, const float *samples, size_t n, sl_error *reterr)
{
    taken *t = user;
    assert_true(n > 0 && t->n + n <= sizeof t->samples / sizeof t->samples[0]);
    memcpy(t->samples + t->n, samples, n * sizeof *samples);
    t->n += n;
    t->n_calls++;
    (void)reterr;
    return 0;
}

static void test_pieces_equal_the_whole(void **state)
{
    float *tone = zoo_tone(700, 0.5, 44100, 40000);
    s2_audio whole = resample(tone, 40000, 44100, 48000);
    taken *t = calloc(1, sizeof *t);
    s2_resampler *rs = NULL;
    sl_error err;
    size_t n_piece = 1;
    (void)state;
    assert_non_null(t);
    assert_ok(s2_resampler_create(44100, 48000, &rs, &err), &err);
    for (size_t done = 0; done < 40000; n_piece = n_piece * 3 % 3001) {
        size_t n = 40000 - done < n_piece ? 40000 - done : n_piece;
        assert_ok(s2_resampler_push(rs, tone + done, n, take, t, &err), &err);
        done += n;
    }
    assert_ok(s2_resampler_push(rs, tone, 0, take, t, &err), &err);
    assert_true(t->n > 35000); /* most of it came while pushing */
    assert_ok(s2_resampler_finish(rs, take, t, &err), &err);
    assert_int_equal(t->n, whole.n);
    for (size_t i = 0; i < whole.n; i++) {
        assert_true(fabs((double)t->samples[i] - (double)whole.samples[i]) < 1e-6);
    }
    s2_resampler_free(&rs);
    s2_resampler_free(&rs);
    s2_audio_done(&whole);
    free(t);
    free(tone);
}

static void test_equal_rates_change_nothing(void **state)
{
    float *tone = zoo_tone(700, 0.5, 44100, 5000);
    s2_audio got = resample(tone, 5000, 44100, 44100);
    (void)state;
    assert_int_equal(got.n, 5000);
    assert_memory_equal(got.samples, tone, 5000 * sizeof *tone);
    s2_audio_done(&got);
    free(tone);
}

static void test_rates_out_of_range(void **state)
{
    static const uint32_t bad[] = {0, 1, 999, 768001, UINT32_MAX};
    float samples[4] = {0};
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        s2_audio audio = {0};
        sl_error err;
        char part[32];
        snprintf(part, sizeof part, "%u Hz", bad[i]);
        assert_int_equal(s2_audio_resample(samples, 4, bad[i], 44100, &audio, &err), SL_EINVAL);
        assert_non_null(strstr(err.msg, part));
        assert_int_equal(s2_audio_resample(samples, 4, 44100, bad[i], &audio, &err), SL_EINVAL);
        assert_null(audio.samples);
    }
}

static int refuse(void *user, const float *samples, size_t n, sl_error *reterr)
{
    (void)samples;
    (void)n;
    (void)user;
    return sl__fail(reterr, SL_ENOSPC, "full");
}

static void test_errors_of_the_sink_are_handed_on(void **state)
{
    float *tone = zoo_tone(700, 0.5, 44100, 9000);
    s2_resampler *rs = NULL;
    sl_error err;
    (void)state;
    assert_ok(s2_resampler_create(44100, 8000, &rs, &err), &err);
    assert_int_equal(s2_resampler_push(rs, tone, 9000, refuse, NULL, &err), SL_ENOSPC);
    assert_int_equal(s2_resampler_finish(rs, refuse, NULL, &err), SL_ENOSPC);
    s2_resampler_free(&rs);
    free(tone);
}

static void test_failed_allocations(void **state)
{
    float *tone = zoo_tone(700, 0.5, 44100, 9000);
    int r = SL_ENOMEM;
    long n_failed = -1;
    (void)state;
    for (long i = 0; r == SL_ENOMEM; i++) {
        s2_audio audio = {0};
        sl__mem_fail_after(i);
        r = s2_audio_resample(tone, 9000, 44100, 8000, &audio, NULL);
        sl__mem_fail_after(-1);
        assert_int_equal(audio.samples != NULL, r == 0);
        s2_audio_done(&audio);
        n_failed++;
    }
    assert_int_equal(r, 0);
    assert_true(n_failed >= 2);
    free(tone);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_golden_vectors),
            cmocka_unit_test(test_G4_18_no_aliasing),
            cmocka_unit_test(test_length_is_exact),
            cmocka_unit_test(test_no_delay),
            cmocka_unit_test(test_pieces_equal_the_whole),
            cmocka_unit_test(test_equal_rates_change_nothing),
            cmocka_unit_test(test_rates_out_of_range),
            cmocka_unit_test(test_errors_of_the_sink_are_handed_on),
            cmocka_unit_test(test_failed_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
