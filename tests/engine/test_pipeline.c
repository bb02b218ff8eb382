/*
 * Text to codes and samples, end to end, against the original: the golden model's greedy runs and the demo
 * voice's. Then what a user may do to a request: seeds, limits, stops, bad text, a file that shrinks.
 */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "golden.h"
#include "s2/engine.h"
#include "test_support.h"

/* What a synthesis handed out. */
typedef struct take {
    int32_t *codes; /* frame major */
    float *samples;
    uint32_t n_books;
    uint32_t n_frames;
    size_t n_samples;
    uint32_t stop_after; /* frames; 0 = never */
} take;

static int on_frame(void *ud, const int32_t *codes)
{
    take *t = ud;
    t->codes = realloc(t->codes, ((size_t)t->n_frames + 1) * t->n_books * sizeof *t->codes);
    assert_non_null(t->codes);
    memcpy(t->codes + (size_t)t->n_frames * t->n_books, codes, t->n_books * sizeof *codes);
    t->n_frames++;
    return t->stop_after && t->n_frames >= t->stop_after;
}

static int on_samples(void *ud, const float *samples, size_t n)
{
    take *t = ud;
    t->samples = realloc(t->samples, (t->n_samples + n) * sizeof *t->samples);
    assert_non_null(t->samples);
    memcpy(t->samples + t->n_samples, samples, n * sizeof *samples);
    t->n_samples += n;
    return 0;
}

static void take_done(take *t)
{
    free(t->codes);
    free(t->samples);
    *t = (take){0};
}

static s2_engine *open_engine(const char *model, const char *tokenizer, uint32_t n_threads)
{
    sl_error err;
    s2_engine *e = NULL;
    s2_engine_opts opts = {
            .model_path = model, .tokenizer_path = tokenizer, .n_threads = n_threads};
    assert_ok(s2_engine_open(&opts, &e, &err), &err);
    return e;
}

static s2_engine *open_golden(const char *name)
{
    char model[512];
    char tokenizer[512];
    test_data(model, sizeof model, name);
    test_data(tokenizer, sizeof tokenizer, "golden/tokenizer.json");
    return open_engine(model, tokenizer, 1);
}

static s2_engine *open_demo(void)
{
    char model[512];
    test_data(model, sizeof model, "demo/demo-voice-f16.gguf");
    return open_engine(model, "models/demo/tokenizer.json", 1);
}

static s2_speak_opts greedy(s2_engine *e, const char *text, take *t)
{
    s2_speak_opts opts = s2_speak_defaults();
    opts.text = text;
    opts.text_bytes = strlen(text);
    opts.temperature = 0;
    opts.top_k = 1;
    opts.on_frame = on_frame;
    opts.on_samples = on_samples;
    opts.ud = t;
    t->n_books = s2_engine_get_info(e).n_codebooks;
    return opts;
}

/* Golden codes are [1 + books][columns]; row 0 is the token, which code 0 follows from. */
static void assert_golden_codes(const take *t, const char *name, uint32_t n_frames)
{
    size_t dims[GOLDEN_MAX_DIMS];
    golden_dims(name, dims);
    int32_t *want = golden_i32(name, NULL);
    assert_int_equal(t->n_frames, n_frames);
    for (uint32_t i = 0; i < n_frames; i++) {
        for (uint32_t j = 0; j < t->n_books; j++) {
            assert_int_equal(t->codes[i * t->n_books + j], want[(1 + j) * dims[1] + i]);
        }
    }
    free(want);
}

static float largest(const float *a, const float *b, size_t n)
{
    float d = 0;
    for (size_t i = 0; i < n; i++) {
        assert_true(isfinite(a[i]) && isfinite(b[i]));
        d = fabsf(a[i] - b[i]) > d ? fabsf(a[i] - b[i]) : d;
    }
    return d;
}

static void assert_golden_audio(const take *t, const char *name, float tolerance)
{
    size_t n = 0;
    float *want = golden_f32(name, &n);
    assert_int_equal(t->n_samples, n);
    float d = largest(t->samples, want, n);
    print_message("%s: largest difference %.2e\n", name, (double)d);
    assert_true(d <= tolerance);
    free(want);
}

static s2_voice golden_voice(const char *text)
{
    size_t dims[GOLDEN_MAX_DIMS];
    golden_dims("enc.ref.codes", dims);
    s2_voice v = {.n_codebooks = (uint32_t)dims[0],
            .n_frames = (uint32_t)dims[1],
            .sample_rate = 44100,
            .codebook_size = 64};
    v.codes = golden_i32("enc.ref.codes", NULL);
    v.text = strdup(text);
    return v;
}

static void check_golden_model(const char *file, float tolerance)
{
    sl_error err;
    s2_stats stats;
    take t = {0};
    s2_engine *e = open_golden(file);
    s2_speak_opts opts = greedy(e, "Hello, tiny world! It's 42.", &t);
    assert_ok(s2_engine_speak(e, &opts, &stats, &err), &err);
    assert_golden_codes(&t, "ar.plain.gen", 30);
    assert_golden_audio(&t, "ar.plain.gen_audio", tolerance);
    assert_int_equal(stats.end, S2_END_SPEECH);
    assert_int_equal(stats.n_prompt_columns, 33);
    take_done(&t);

    /* The limit keeps the last frame, which the original drops. */
    s2_voice voice = golden_voice("This is the reference voice.");
    opts = greedy(e, "Speak like this: one, two, three.", &t);
    opts.voices = &voice;
    opts.n_voices = 1;
    opts.max_frames = 36;
    assert_ok(s2_engine_speak(e, &opts, &stats, &err), &err);
    assert_golden_codes(&t, "ar.clone.gen", 36);
    assert_golden_audio(&t, "ar.clone.gen_audio", tolerance);
    assert_int_equal(stats.end, S2_END_LIMIT);
    take_done(&t);
    s2_voice_done(&voice);
    s2_engine_close(&e);
}

static void test_golden_runs_equal_the_original(void **state)
{
    (void)state;
    check_golden_model("golden/tiny-s2-f32.gguf", 5e-5f);
    check_golden_model("golden/tiny-s2-f16.gguf", 5e-5f);
}

static s2_voice demo_voice(const json_t *kase)
{
    const json_t *codes = json_object_get(kase, "reference_codes");
    size_t n_books = json_array_size(codes);
    size_t n_frames = json_array_size(json_array_get(codes, 0));
    s2_voice v = {.n_codebooks = (uint32_t)n_books,
            .n_frames = (uint32_t)n_frames,
            .sample_rate = 16000,
            .codebook_size = 1024};
    v.codes = malloc(n_books * n_frames * sizeof *v.codes);
    for (size_t j = 0; j < n_books; j++) {
        for (size_t t = 0; t < n_frames; t++) {
            v.codes[j * n_frames + t] =
                    (int32_t)json_integer_value(json_array_get(json_array_get(codes, j), t));
        }
    }
    v.text = strdup(json_string_value(json_object_get(kase, "reference_text")));
    return v;
}

static void assert_demo_case(const json_t *kase, const take *t)
{
    const json_t *codes = json_object_get(kase, "codes");
    const json_t *points = json_object_get(kase, "pcm_every_768");
    assert_int_equal(t->n_frames, json_integer_value(json_object_get(kase, "frames")));
    for (uint32_t j = 0; j < t->n_books; j++) {
        for (uint32_t i = 0; i < t->n_frames; i++) {
            assert_int_equal(t->codes[i * t->n_books + j],
                    json_integer_value(json_array_get(json_array_get(codes, j), i)));
        }
    }
    double d = 0;
    double square = 0;
    for (size_t i = 0; i < t->n_frames; i++) {
        double p = (double)t->samples[384 + i * 768] - json_real_value(json_array_get(points, i));
        d = fabs(p) > d ? fabs(p) : d;
    }
    for (size_t i = 0; i < t->n_samples; i++) {
        square += (double)t->samples[i] * (double)t->samples[i];
    }
    double rms = sqrt(square / (double)t->n_samples);
    print_message("demo: %u frames, points within %.2e, rms %.6f\n", t->n_frames, d, rms);
    /* Points lie in the middle of each frame and are rounded to 5 digits. */
    assert_true(d <= 2e-4);
    assert_true(fabs(rms - json_real_value(json_object_get(kase, "pcm_rms"))) <= 1e-4);
}

static void test_demo_voice_greedy_codes_and_sound_equal_the_original(void **state)
{
    (void)state;
    char path[512];
    sl_error err;
    s2_stats stats;
    json_t *golden =
            json_load_file(test_data(path, sizeof path, "demo/golden-greedy.json"), 0, NULL);
    const json_t *cases = json_object_get(golden, "cases");
    s2_engine *e = open_demo();
    assert_int_equal(json_array_size(cases), 3);
    for (size_t i = 0; i < 3; i++) {
        const json_t *kase = json_array_get(cases, i);
        take t = {0};
        s2_voice voice = {0};
        s2_speak_opts opts = greedy(e, json_string_value(json_object_get(kase, "text")), &t);
        if (json_object_get(kase, "reference_codes")) {
            voice = demo_voice(kase);
            opts.voices = &voice;
            opts.n_voices = 1;
        }
        assert_ok(s2_engine_speak(e, &opts, &stats, &err), &err);
        assert_int_equal(stats.end, S2_END_SPEECH);
        assert_demo_case(kase, &t);
        take_done(&t);
        s2_voice_done(&voice);
    }
    s2_engine_close(&e);
    json_decref(golden);
}

static void speak_seeded(s2_engine *e, const char *text, uint64_t seed, uint32_t max_frames,
        const s2_voice *voice, take *t)
{
    sl_error err;
    s2_stats stats;
    s2_speak_opts opts = greedy(e, text, t);
    opts.temperature = 0.8f;
    opts.top_k = 30;
    opts.seed = seed;
    opts.max_frames = max_frames;
    opts.voices = voice;
    opts.n_voices = voice ? 1 : 0;
    assert_ok(s2_engine_speak(e, &opts, &stats, &err), &err);
}

static void assert_same_take(const take *a, const take *b)
{
    assert_int_equal(a->n_frames, b->n_frames);
    assert_memory_equal(a->codes, b->codes, a->n_frames * a->n_books * sizeof *a->codes);
    assert_int_equal(a->n_samples, b->n_samples);
    assert_memory_equal(a->samples, b->samples, a->n_samples * sizeof *a->samples);
}

static void test_G4_04_G4_28_same_seed_same_bytes_whatever_came_before(void **state)
{
    (void)state;
    s2_engine *e = open_demo();
    s2_engine *fresh = open_demo();
    s2_voice voice = {0};
    char path[512];
    json_t *golden =
            json_load_file(test_data(path, sizeof path, "demo/golden-greedy.json"), 0, NULL);
    voice = demo_voice(json_array_get(json_object_get(golden, "cases"), 2));
    take first = {0};
    take other = {0};
    take again = {0};
    take elsewhere = {0};
    speak_seeded(e, "It is late.", 7, 30, NULL, &first);
    speak_seeded(e, "It is late now.", 7, 20, NULL, &other);
    take_done(&other);
    speak_seeded(e, "It is", 7, 20, NULL, &other);
    take_done(&other);
    speak_seeded(e, "It is late.", 7, 20, &voice, &other);
    take_done(&other);
    speak_seeded(e, "It is late.", 8, 30, NULL, &other);
    assert_true(other.n_frames != first.n_frames ||
                memcmp(other.codes, first.codes, first.n_frames * first.n_books * 4) != 0);
    speak_seeded(e, "It is late.", 7, 30, NULL, &again);
    speak_seeded(fresh, "It is late.", 7, 30, NULL, &elsewhere);
    assert_same_take(&first, &again);
    assert_same_take(&first, &elsewhere);
    take_done(&first);
    take_done(&other);
    take_done(&again);
    take_done(&elsewhere);
    s2_voice_done(&voice);
    json_decref(golden);
    s2_engine_close(&fresh);
    s2_engine_close(&e);
}

static void test_G4_02_stopped_request_leaves_no_trace(void **state)
{
    (void)state;
    sl_error err;
    s2_stats stats;
    s2_engine *e = open_golden("golden/tiny-s2-f16.gguf");
    for (uint32_t n = 1; n <= 5; n++) {
        take cut = {.stop_after = n};
        s2_speak_opts opts = greedy(e, "Something else entirely, and long.", &cut);
        assert_ok(s2_engine_speak(e, &opts, &stats, &err), &err);
        assert_int_equal(stats.end, S2_END_STOPPED);
        assert_int_equal(stats.n_frames, n);
        assert_int_equal(cut.n_samples, (size_t)n * 2048);
        take_done(&cut);
        take t = {0};
        opts = greedy(e, "Hello, tiny world! It's 42.", &t);
        assert_ok(s2_engine_speak(e, &opts, &stats, &err), &err);
        assert_golden_codes(&t, "ar.plain.gen", 30);
        take_done(&t);
    }
    s2_engine_close(&e);
}

static bool stop_at_once(void *ud)
{
    (void)ud;
    return true;
}

static void test_stop_in_the_middle_of_a_graph(void **state)
{
    (void)state;
    sl_error err;
    s2_stats stats;
    static const float sound[4096];
    s2_voice voice = {0};
    take t = {0};
    s2_engine *e = open_golden("golden/tiny-s2-f16.gguf");
    s2_speak_opts opts = greedy(e, "Hello, tiny world! It's 42.", &t);
    s2_engine_set_stop(e, stop_at_once, NULL);
    assert_ok(s2_engine_speak(e, &opts, &stats, &err), &err);
    assert_int_equal(stats.end, S2_END_STOPPED);
    assert_int_equal(stats.n_frames, 0);
    assert_int_equal(s2_engine_make_voice(e, sound, 4096, "x", &voice, &err), SL_ECANCELLED);
    s2_engine_set_stop(e, NULL, NULL);
    assert_ok(s2_engine_speak(e, &opts, &stats, &err), &err);
    assert_golden_codes(&t, "ar.plain.gen", 30);
    take_done(&t);
    s2_engine_close(&e);
}

static void test_G4_01_G4_32_end_at_once_is_no_silent_success(void **state)
{
    (void)state;
    sl_error err;
    s2_stats stats;
    s2_engine *e = open_golden("golden/tiny-s2-f16.gguf");
    /* Many seeds of a model of noise: the end token is drawn early again and again. */
    for (uint64_t seed = 0; seed < 20; seed++) {
        take t = {0};
        s2_speak_opts opts = greedy(e, "The quick brown fox jumps over the lazy dog.", &t);
        opts.temperature = 2.0f;
        opts.top_p = 1.0f;
        opts.top_k = 0;
        opts.seed = seed;
        opts.max_frames = 40;
        assert_ok(s2_engine_speak(e, &opts, &stats, &err), &err);
        /* 35 letters at 60 a second are 12 frames of 46 ms. */
        assert_true(t.n_frames >= 12);
        assert_int_equal(t.n_samples, (size_t)t.n_frames * 2048);
        take_done(&t);
    }
    s2_engine_close(&e);
}

static void test_G4_03_limit_is_kept_and_told(void **state)
{
    (void)state;
    sl_error err;
    s2_stats stats;
    take t = {0};
    s2_engine *e = open_golden("golden/tiny-s2-f16.gguf");
    s2_speak_opts opts = greedy(e, "Hello, tiny world! It's 42.", &t);
    opts.min_frames = 300;
    opts.max_frames = 300;
    assert_ok(s2_engine_speak(e, &opts, &stats, &err), &err);
    assert_int_equal(stats.end, S2_END_LIMIT);
    assert_int_equal(t.n_frames, 300);
    assert_int_equal(t.n_samples, 300 * 2048);
    take_done(&t);
    s2_engine_close(&e);
}

static void test_min_frames_are_kept(void **state)
{
    (void)state;
    sl_error err;
    s2_stats stats;
    take t = {0};
    s2_engine *e = open_golden("golden/tiny-s2-f16.gguf");
    s2_speak_opts opts = greedy(e, "Hello, tiny world! It's 42.", &t);
    opts.min_frames = 35;
    opts.max_frames = 60;
    assert_ok(s2_engine_speak(e, &opts, &stats, &err), &err);
    assert_true(t.n_frames >= 35);
    take_done(&t);
    s2_engine_close(&e);
}

static void test_G4_12_control_tokens_are_text_unless_allowed(void **state)
{
    (void)state;
    sl_error err;
    s2_stats as_text;
    s2_stats as_tokens;
    take t = {0};
    s2_engine *e = open_golden("golden/tiny-s2-f16.gguf");
    s2_speak_opts opts = greedy(e, "Hi <|im_end|> there", &t);
    opts.max_frames = 4;
    assert_ok(s2_engine_speak(e, &opts, &as_text, &err), &err);
    opts.allow_control_tokens = true;
    assert_ok(s2_engine_speak(e, &opts, &as_tokens, &err), &err);
    assert_true(as_tokens.n_prompt_columns + 5 < as_text.n_prompt_columns + 20);
    assert_true(as_text.n_prompt_columns > as_tokens.n_prompt_columns);
    take_done(&t);
    s2_engine_close(&e);
}

static void test_bad_requests_are_refused(void **state)
{
    (void)state;
    sl_error err;
    s2_stats stats;
    take t = {0};
    s2_engine *e = open_golden("golden/tiny-s2-f16.gguf");
    static const struct {
        const char *text;
        size_t n;
    } bad[] = {
            {"", 0},
            {" \n\t ", 4},
            {"\xef\xbb\xbf", 3},
            {"\xc4\xe3\xba\xc3", 4},
            {"ok \xed\xa0\x80", 6},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        s2_speak_opts opts = greedy(e, bad[i].text, &t);
        opts.text_bytes = bad[i].n;
        assert_int_equal(s2_engine_speak(e, &opts, &stats, &err), SL_EINVAL);
    }
    s2_speak_opts opts = greedy(e, "Hi", &t);
    opts.max_frames = 0;
    assert_int_equal(s2_engine_speak(e, &opts, &stats, &err), SL_EINVAL);
    opts.max_frames = 10;
    opts.top_p = 1.5f;
    assert_int_equal(s2_engine_speak(e, &opts, &stats, &err), SL_EINVAL);
    opts.top_p = 0.8f;
    s2_voice voice = golden_voice("x");
    voice.codebook_size = 4096;
    opts.voices = &voice;
    opts.n_voices = 1;
    assert_int_equal(s2_engine_speak(e, &opts, &stats, &err), SL_EINVAL);
    assert_int_equal(t.n_frames, 0);
    s2_voice_done(&voice);
    s2_engine_close(&e);
}

static void test_G4_27_prompt_longer_than_the_context_is_refused(void **state)
{
    (void)state;
    sl_error err;
    s2_stats stats;
    take t = {0};
    s2_engine *e = open_golden("golden/tiny-s2-f16.gguf");
    size_t n = 2 * (size_t)s2_engine_get_info(e).n_ctx;
    char *text = malloc(n + 1);
    memset(text, 'q', n);
    text[n] = '\0';
    s2_speak_opts opts = greedy(e, text, &t);
    assert_int_equal(s2_engine_speak(e, &opts, &stats, &err), SL_ELIMIT);
    assert_int_equal(t.n_frames, 0);
    free(text);
    s2_engine_close(&e);
}

static void test_G4_06_every_sentence_of_a_long_text_is_spoken(void **state)
{
    (void)state;
    sl_error err;
    s2_stats stats;
    take t = {0};
    char text[2048] = "";
    s2_engine *e = open_golden("golden/tiny-s2-f16.gguf");
    size_t n = 0;
    for (int i = 0; i < 20; i++) {
        n += (size_t)snprintf(text + n, sizeof text - n, "This is sentence number %d. ", i);
    }
    s2_speak_opts opts = greedy(e, text, &t);
    opts.segment_bytes = 60;
    opts.max_frames = 20;
    assert_ok(s2_engine_speak(e, &opts, &stats, &err), &err);
    assert_in_range(stats.n_segments, 10, 20);
    assert_int_equal(stats.n_frames, t.n_frames);
    assert_true(t.n_frames >= 10 * stats.n_segments);
    take_done(&t);
    s2_engine_close(&e);
}

static void test_G4_06_a_book_needs_no_more_context_than_a_page(void **state)
{
    (void)state;
    sl_error err;
    s2_stats stats;
    take t = {0};
    s2_engine *e = open_golden("golden/tiny-s2-f16.gguf");
    uint32_t n_ctx = s2_engine_get_info(e).n_ctx;
    size_t n = 8 * (size_t)n_ctx;
    char *text = malloc(n + 1);
    for (size_t i = 0; i < n; i++) {
        text[i] = "One more sentence. "[i % 19];
    }
    text[n] = '\0';
    s2_speak_opts opts = greedy(e, text, &t);
    opts.segment_bytes = 400;
    opts.max_frames = 8;
    assert_ok(s2_engine_speak(e, &opts, &stats, &err), &err);
    assert_true(stats.n_segments >= n / 400);
    assert_int_equal(stats.n_frames, t.n_frames);
    free(text);
    take_done(&t);
    s2_engine_close(&e);
}

static int shrink_file(void *ud, const float *samples, size_t n)
{
    (void)samples;
    (void)n;
    assert_int_equal(truncate(ud, 4096), 0);
    return 0;
}

static void test_model_that_shrinks_while_speaking_is_an_error(void **state)
{
    (void)state;
    char source[512];
    char path[512];
    char tokenizer[512];
    sl_error err;
    s2_stats stats;
    size_t n = 0;
    char *dir = test_dir_create();
    char *bytes = test_read_file(test_data(source, sizeof source, "golden/tiny-s2-f16.gguf"), &n);
    test_write_file(test_path(path, sizeof path, dir, "m.gguf"), bytes, n);
    test_data(tokenizer, sizeof tokenizer, "golden/tokenizer.json");
    s2_engine *e = open_engine(path, tokenizer, 1);
    s2_speak_opts opts = s2_speak_defaults();
    opts.text = "Hello";
    opts.text_bytes = 5;
    opts.on_samples = shrink_file;
    opts.ud = path;
    assert_int_equal(s2_engine_speak(e, &opts, &stats, &err), SL_ECHANGED);
    assert_non_null(strstr(err.msg, "m.gguf"));
    s2_engine_close(&e);
    free(bytes);
    test_dir_remove(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            /* First: cmocka takes SIGBUS at each test, the guard at the first map of the process. */
            cmocka_unit_test(test_model_that_shrinks_while_speaking_is_an_error),
            cmocka_unit_test(test_golden_runs_equal_the_original),
            cmocka_unit_test(test_demo_voice_greedy_codes_and_sound_equal_the_original),
            cmocka_unit_test(test_G4_04_G4_28_same_seed_same_bytes_whatever_came_before),
            cmocka_unit_test(test_G4_02_stopped_request_leaves_no_trace),
            cmocka_unit_test(test_stop_in_the_middle_of_a_graph),
            cmocka_unit_test(test_G4_01_G4_32_end_at_once_is_no_silent_success),
            cmocka_unit_test(test_G4_03_limit_is_kept_and_told),
            cmocka_unit_test(test_min_frames_are_kept),
            cmocka_unit_test(test_G4_12_control_tokens_are_text_unless_allowed),
            cmocka_unit_test(test_bad_requests_are_refused),
            cmocka_unit_test(test_G4_27_prompt_longer_than_the_context_is_refused),
            cmocka_unit_test(test_G4_06_every_sentence_of_a_long_text_is_spoken),
            cmocka_unit_test(test_G4_06_a_book_needs_no_more_context_than_a_page),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
