/*
 * Opening an engine on what is no model, no tokenizer or not its tokenizer; the two jobs without
 * generation; and allocations that fail, one after the other.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ggml.h"

#include "base/mem.h"
#include "os/os_process.h"
#include "s2/engine.h"
#include "small_synth.h"
#include "test_support.h"

#define FRAME 8 /* samples of a frame of the small model */
#define BOOKS 3

static char *dir;
static char model[512];
static char tokenizer[512];

static int set_up(void **state)
{
    (void)state;
    s2_synth_opts opts = small_synth_opts(GGML_TYPE_F16);
    dir = test_dir_create();
    small_synth_write(&opts, dir, "small");
    test_path(model, sizeof model, dir, "small.gguf");
    test_path(tokenizer, sizeof tokenizer, dir, "small.tokenizer.json");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    test_dir_remove(dir);
    return 0;
}

static int try_open(const char *m, const char *t, s2_engine **ret, sl_error *err)
{
    s2_engine_opts opts = {.model_path = m, .tokenizer_path = t, .n_threads = 1};
    return s2_engine_open(&opts, ret, err);
}

static s2_engine *open_small(void)
{
    sl_error err;
    s2_engine *e = NULL;
    assert_ok(try_open(model, NULL, &e, &err), &err);
    return e;
}

static void expect_refused(const char *m, const char *t, int code, const char *needle)
{
    sl_error err = {0};
    s2_engine *e = NULL;
    int r = try_open(m, t, &e, &err);
    if (r != code || !strstr(err.msg, needle) || strchr(err.msg, '\n')) {
        fail_msg("want %s with \"%s\", got %s: %s", sl_err_name(code), needle, sl_err_name(r),
                err.msg);
    }
    assert_null(e);
}

/* A path in the test's folder with that content. */
static const char *make_file(char path[512], const char *name, const void *data, size_t n)
{
    test_path(path, 512, dir, name);
    test_write_file(path, data, n);
    return path;
}

static void test_models_that_are_none(void **state)
{
    (void)state;
    char path[512];
    static const char garbage[64] = "This is not a model, and it is long enough for a header.";
    expect_refused(make_file(path, "garbage.gguf", garbage, 64), tokenizer, SL_EFORMAT, "garbage");
    expect_refused(make_file(path, "empty.gguf", "", 0), tokenizer, SL_EFORMAT, "empty.gguf");
    expect_refused(make_file(path, "short.gguf", "GGUF", 4), tokenizer, SL_EFORMAT, "short.gguf");
    expect_refused(dir, tokenizer, SL_EINVAL, "directory");
    expect_refused(test_path(path, sizeof path, dir, "no.gguf"), tokenizer, SL_ENOENT, "no.gguf");
    test_path(path, sizeof path, dir, "pipe.gguf");
    assert_int_equal(mkfifo(path, 0600), 0);
    expect_refused(path, tokenizer, SL_EINVAL, "pipe.gguf");
    expect_refused("/dev/null", tokenizer, SL_EINVAL, "/dev/null");
    if (geteuid() != 0) {
        make_file(path, "closed.gguf", garbage, 64);
        assert_int_equal(chmod(path, 0), 0);
        expect_refused(path, tokenizer, SL_EACCES, "closed.gguf");
    }
}

static void test_every_truncation_is_refused(void **state)
{
    (void)state;
    size_t n = 0;
    char path[512];
    char *data = test_read_file(model, &n);
    sl_error err;
    for (size_t cut = 0; cut < n; cut += cut < 4096 ? 97 : 4999) {
        s2_engine *e = NULL;
        make_file(path, "cut.gguf", data, cut);
        int r = try_open(path, tokenizer, &e, &err);
        if (r != SL_EFORMAT) {
            fail_msg("%zu of %zu bytes: %s: %s", cut, n, sl_err_name(r), err.msg);
        }
    }
    free(data);
}

static void test_tokenizers_that_are_none(void **state)
{
    (void)state;
    char path[512];
    expect_refused(model, make_file(path, "t.json", "[}", 2), SL_EFORMAT, "t.json");
    expect_refused(model, make_file(path, "t.json", "", 0), SL_EFORMAT, "t.json");
    expect_refused(model, dir, SL_EINVAL, "directory");
    expect_refused(model, test_path(path, sizeof path, dir, "no.json"), SL_ENOENT, "no.json");
    test_data(path, sizeof path, "golden/tokenizer.json");
    expect_refused(model, path, SL_EFORMAT, "tokenizer");
    test_data(path, sizeof path, "tiny/tokenizer.json");
    expect_refused(model, path, SL_EFORMAT, "tokenizer");
}

static void test_the_tokenizer_is_looked_for_near_the_model(void **state)
{
    (void)state;
    char folder[512];
    char below[512];
    char copy[512];
    char near[512];
    size_t n_model = 0;
    size_t n_tokenizer = 0;
    sl_error err;
    s2_engine *e = NULL;
    char *bytes = test_read_file(model, &n_model);
    char *json = test_read_file(tokenizer, &n_tokenizer);
    test_path(folder, sizeof folder, dir, "voice");
    test_path(below, sizeof below, folder, "below");
    assert_int_equal(mkdir(folder, 0700), 0);
    assert_int_equal(mkdir(below, 0700), 0);
    test_path(copy, sizeof copy, below, "m");
    test_write_file(copy, bytes, n_model);
    expect_refused(copy, NULL, SL_ENOENT, "-t FILE");
    static const char *const places[] = {"m.tokenizer.json", "tokenizer.json", "../tokenizer.json"};
    for (size_t i = 0; i < 3; i++) {
        test_path(near, sizeof near, below, places[i]);
        test_write_file(near, json, n_tokenizer);
        assert_ok(try_open(copy, NULL, &e, &err), &err);
        s2_engine_close(&e);
        assert_null(e);
        /* A broken one nearby is an error, not a reason to look elsewhere. */
        test_write_file(near, "{", 1);
        expect_refused(copy, NULL, SL_EFORMAT, "tokenizer.json");
        assert_int_equal(unlink(near), 0);
    }
    free(bytes);
    free(json);
}

/* More threads than processors only wait for each other: they are not started. */
static void test_threads_are_at_most_the_processors(void **state)
{
    (void)state;
    sl_error err = {0};
    s2_engine *e = NULL;
    s2_engine_opts opts = {.model_path = model, .n_threads = UINT32_MAX};
    assert_ok(s2_engine_open(&opts, &e, &err), &err);
    assert_int_equal(s2_engine_get_info(e).n_threads, sl__n_cpus());
    s2_engine_close(&e);
    s2_engine_close(NULL);
}

static void test_info_and_names(void **state)
{
    (void)state;
    s2_engine *e = open_small();
    s2_engine_info info = s2_engine_get_info(e);
    assert_int_equal(info.sample_rate, 44100);
    assert_int_equal(info.frame_samples, FRAME);
    assert_int_equal(info.n_codebooks, BOOKS);
    assert_int_equal(info.codebook_size, 16);
    assert_int_equal(info.n_ctx, 256);
    assert_int_equal(info.n_threads, 1);
    s2_engine_close(&e);
    assert_string_equal(s2_end_name(S2_END_SPEECH), "speech");
    assert_string_equal(s2_end_name(S2_END_LIMIT), "limit");
    assert_string_equal(s2_end_name(S2_END_STOPPED), "stopped");
    assert_string_equal(s2_end_name(S2_END_COUNT), "unknown");
}

typedef struct take {
    float samples[16 * FRAME];
    size_t n;
    size_t stop_at; /* samples; 0 = never */
} take;

static int on_samples(void *ud, const float *samples, size_t n)
{
    take *t = ud;
    assert_true(t->n + n <= sizeof t->samples / sizeof t->samples[0]);
    memcpy(t->samples + t->n, samples, n * sizeof *samples);
    t->n += n;
    return t->stop_at && t->n >= t->stop_at;
}

static void test_codes_are_clamped_when_decoded(void **state)
{
    (void)state;
    static const int32_t wild[4 * BOOKS] = {
            -5, 9000, 3, INT32_MIN, INT32_MAX, 8, 16, 7, -1, 2, 2, 2};
    static const int32_t tame[4 * BOOKS] = {0, 7, 3, 0, 7, 7, 15, 7, 0, 2, 2, 2};
    s2_engine *e = open_small();
    s2_stats stats;
    sl_error err;
    take a = {.n = 0};
    take b = {.n = 0};
    assert_ok(s2_engine_decode(e, wild, 4, on_samples, &a, &stats, &err), &err);
    assert_int_equal(stats.n_frames, 4);
    assert_ok(s2_engine_decode(e, tame, 4, on_samples, &b, &stats, &err), &err);
    assert_int_equal(a.n, 4 * FRAME);
    assert_memory_equal(a.samples, b.samples, sizeof a.samples);
    assert_ok(s2_engine_decode(e, tame, 4, NULL, NULL, &stats, &err), &err);
    s2_engine_close(&e);
}

static bool always(void *ud)
{
    (void)ud;
    return true;
}

static void test_decoding_is_stopped(void **state)
{
    (void)state;
    static const int32_t codes[4 * BOOKS] = {1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3, 4};
    s2_engine *e = open_small();
    s2_stats stats = {0};
    sl_error err = {0};
    take t = {.stop_at = 2 * FRAME};
    assert_int_equal(s2_engine_decode(e, codes, 0, on_samples, &t, &stats, &err), SL_EINVAL);
    assert_non_null(strstr(err.msg, "no frames"));
    assert_ok(s2_engine_decode(e, codes, 4, on_samples, &t, &stats, &err), &err);
    assert_int_equal(stats.end, S2_END_STOPPED);
    assert_int_equal(stats.n_frames, 2);
    assert_int_equal(t.n, 2 * FRAME);
    s2_engine_set_stop(e, always, NULL);
    assert_ok(s2_engine_decode(e, codes, 4, NULL, NULL, &stats, &err), &err);
    assert_int_equal(stats.end, S2_END_STOPPED);
    assert_int_equal(stats.n_frames, 0);
    s2_engine_set_stop(e, NULL, NULL);
    assert_ok(s2_engine_decode(e, codes, 4, NULL, NULL, &stats, &err), &err);
    assert_int_equal(stats.n_frames, 4);
    s2_engine_close(&e);
}

static void expect_no_voice(s2_engine *e, const float *samples, size_t n, const char *text,
        int code, const char *needle)
{
    s2_voice v = {0};
    sl_error err = {0};
    int r = s2_engine_make_voice(e, samples, n, text, &v, &err);
    if (r != code || !strstr(err.msg, needle)) {
        fail_msg("want %s with \"%s\", got %s: %s", sl_err_name(code), needle, sl_err_name(r),
                err.msg);
    }
    assert_null(v.codes);
}

static void test_voices(void **state)
{
    (void)state;
    size_t n_long = ((size_t)S2_VOICE_MAX_FRAMES + 1) * FRAME;
    float *samples = calloc(n_long, sizeof *samples);
    s2_engine *e = open_small();
    sl_error err;
    s2_voice v = {0};
    for (size_t i = 0; i < 100; i++) {
        samples[i] = (float)sin((double)i);
    }
    expect_no_voice(e, samples, 100, "", SL_EINVAL, "reference text: empty");
    expect_no_voice(e, samples, 100, "a\xff", SL_EINVAL, "not UTF-8");
    expect_no_voice(e, samples, 0, "a", SL_EINVAL, "no samples");
    expect_no_voice(e, samples, n_long, "a", SL_ELIMIT, "65536 frames");
    static const float bad[] = {NAN, INFINITY, -INFINITY};
    for (size_t i = 0; i < 3; i++) {
        float kept = samples[42];
        samples[42] = bad[i];
        expect_no_voice(e, samples, 100, "a", SL_EINVAL, "sample 42");
        samples[42] = kept;
    }
    s2_engine_set_stop(e, always, NULL);
    expect_no_voice(e, samples, 100, "a", SL_ECANCELLED, "stopped");
    s2_engine_set_stop(e, NULL, NULL);
    assert_ok(s2_engine_make_voice(e, samples, 100, "a", &v, &err), &err);
    assert_int_equal(v.n_frames, 13);
    assert_int_equal(v.n_codebooks, BOOKS);
    assert_string_equal(v.text, "a");
    for (size_t i = 0; i < (size_t)13 * BOOKS; i++) {
        assert_in_range(v.codes[i], 0, i < 13 ? 15 : 7);
    }
    s2_voice_done(&v);
    s2_engine_close(&e);
    free(samples);
}

/* Opens with the n-th allocation failing, for n = 0, step, ...; until none fails. Returns the last n. */
static long fail_opening(const char *m, const char *t, long step)
{
    sl_error err;
    for (long n = 0;; n += step) {
        s2_engine *e = NULL;
        err = (sl_error){0};
        sl__mem_fail_after(n);
        int r = try_open(m, t, &e, &err);
        sl__mem_fail_after(-1);
        if (r == SL_OK) {
            s2_engine_close(&e);
            return n;
        }
        assert_null(e);
        assert_int_equal(r, SL_ENOMEM);
        assert_non_null(strstr(err.msg, "out of memory"));
    }
}

static void test_every_allocation_of_opening_may_fail(void **state)
{
    (void)state;
    char paths[2][512];
    assert_true(fail_opening(model, tokenizer, 1) > 20);
    test_data(paths[0], sizeof paths[0], "golden/tiny-s2-f16.gguf");
    test_data(paths[1], sizeof paths[1], "golden/tokenizer.json");
    assert_true(fail_opening(paths[0], paths[1], 1) > 20);
}

typedef struct job {
    s2_engine *e;
    take out;
    s2_voice voice;
} job;

static int speak(job *j, sl_error *err)
{
    s2_stats stats;
    s2_speak_opts opts = small_synth_speak("ab c", 5);
    opts.voices = &j->voice;
    opts.n_voices = 1;
    opts.on_samples = on_samples;
    opts.ud = &j->out;
    j->out = (take){.n = 0};
    return s2_engine_speak(j->e, &opts, &stats, err);
}

/* After any failure the same request gives what it gave before. */
static void test_every_allocation_of_speaking_may_fail(void **state)
{
    (void)state;
    sl_error err;
    float samples[5 * FRAME];
    job j = {.e = open_small()};
    for (size_t i = 0; i < 5 * FRAME; i++) {
        samples[i] = (float)cos((double)i);
    }
    assert_ok(s2_engine_make_voice(j.e, samples, 5 * FRAME, "xy", &j.voice, &err), &err);
    assert_ok(speak(&j, &err), &err);
    assert_int_equal(j.out.n, 5 * FRAME);
    take first = j.out;
    s2_engine_close(&j.e);
    long n = 0;
    for (int r = SL_ENOMEM; r < 0; n++) {
        /* A new engine each time, so that what is made once fails as well. */
        j.e = open_small();
        assert_true(n < 3000);
        sl__mem_fail_after(n);
        r = speak(&j, &err);
        sl__mem_fail_after(-1);
        assert_true(r == SL_OK || r == SL_ENOMEM);
        assert_ok(speak(&j, &err), &err);
        assert_memory_equal(j.out.samples, first.samples, sizeof first.samples);
        s2_engine_close(&j.e);
    }
    assert_true(n > 20);
    s2_voice_done(&j.voice);
}

static void test_every_allocation_of_a_voice_may_fail(void **state)
{
    (void)state;
    sl_error err;
    float samples[5 * FRAME] = {0.25F, -0.5F};
    s2_engine *e = open_small();
    long n = 0;
    s2_voice first = {0};
    /* The first voice populates the encoder's pages, which may fail without a word: test_host_pages. */
    assert_ok(s2_engine_make_voice(e, samples, 5 * FRAME, "xy", &first, &err), &err);
    s2_voice_done(&first);
    for (int r = SL_ENOMEM; r < 0; n++) {
        s2_voice v = {0};
        assert_true(n < 1000);
        sl__mem_fail_after(n);
        r = s2_engine_make_voice(e, samples, 5 * FRAME, "xy", &v, &err);
        sl__mem_fail_after(-1);
        assert_true(r == SL_OK || r == SL_ENOMEM);
        s2_voice_done(&v);
    }
    assert_true(n > 5);
    s2_engine_close(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_models_that_are_none),
            cmocka_unit_test(test_every_truncation_is_refused),
            cmocka_unit_test(test_tokenizers_that_are_none),
            cmocka_unit_test(test_the_tokenizer_is_looked_for_near_the_model),
            cmocka_unit_test(test_threads_are_at_most_the_processors),
            cmocka_unit_test(test_info_and_names),
            cmocka_unit_test(test_codes_are_clamped_when_decoded),
            cmocka_unit_test(test_decoding_is_stopped),
            cmocka_unit_test(test_voices),
            cmocka_unit_test(test_every_allocation_of_opening_may_fail),
            cmocka_unit_test(test_every_allocation_of_speaking_may_fail),
            cmocka_unit_test(test_every_allocation_of_a_voice_may_fail),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
