/*
 * The tiny models of tests/data/tiny against the numbers that the existing engine computes with them. It
 * rounds more than this one (an F16 KV cache, F16 inputs of F16 products and of convolutions), so logits agree
 * within those roundings; every decision agrees exactly.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "codec_files.h"
#include "engine/model/fast_ar.h"
#include "engine/model/slow_ar.h"
#include "engine/text/prompt.h"
#include "s2/engine.h"
#include "test_support.h"

/* Largest differences that are accepted: a tenth or more of room above what was measured. */
typedef struct tolerances {
    float hidden;
    float logits;
    float fast;
    float pcm;
    float margin; /* by which a decision of the existing engine may be worse than the best; 0 = never */
} tolerances;

typedef struct peer {
    model_fixture m;
    json_t *golden;
    s2_tokenizer *tokenizer;
    s2_prompt_layout layout;
    s2_slow_ar *slow;
    s2_fast_ar *fast;
    tolerances worst; /* seen */
} peer;

static void open_peer(peer *p, const char *model, const char *golden)
{
    char path[512];
    sl_error err;
    *p = (peer){0};
    model_fixture_open(&p->m, model, 1);
    const s2_hparams *hp = &p->m.hp;
    p->golden = read_json(golden);
    test_data(path, sizeof path, "tiny/tokenizer.json");
    assert_ok(s2_tokenizer_open(path, &p->tokenizer, &err), &err);
    assert_ok(s2_prompt_layout_init(&p->layout, p->tokenizer, hp->n_codebooks, hp->codebook_size,
                      hp->semantic_begin, hp->n_vocab, &err),
            &err);
    const s2_slow_places places = s2_slow_places_on(&p->m.compute);
    assert_ok(s2_slow_ar_create(hp, p->layout.im_end, p->m.weights, &places, &p->slow, &err), &err);
    assert_ok(s2_fast_ar_create(hp, p->m.weights, &p->m.compute, &p->fast, &err), &err);
}

static void close_peer(peer *p)
{
    s2_fast_ar_free(&p->fast);
    s2_slow_ar_free(&p->slow);
    s2_tokenizer_close(&p->tokenizer);
    json_decref(p->golden);
    model_fixture_close(&p->m);
}

static json_t *entry(const peer *p, const char *kase, const char *name)
{
    char key[64];
    snprintf(key, sizeof key, "%s_%s", kase, name);
    json_t *v = json_object_get(p->golden, key);
    if (!v) {
        fail_msg("no %s", key);
    }
    return v;
}

static float distance(const float *got, const json_t *want, size_t first, size_t n)
{
    float largest = 0;
    for (size_t i = 0; i < n; i++) {
        float d = fabsf(got[i] - (float)json_number_at(want, first + i));
        assert_true(isfinite(d));
        largest = fmaxf(largest, d);
    }
    return largest;
}

static void keep_worst(float *worst, float d)
{
    *worst = fmaxf(*worst, d);
}

/* The engine computes the semantic rows and the end token; the file holds the whole vocabulary. */
static void check_logits(peer *p, const float *logits, const json_t *want)
{
    const s2_hparams *hp = &p->m.hp;
    size_t n = hp->codebook_size;
    keep_worst(&p->worst.logits, distance(logits, want, (size_t)hp->semantic_begin, n));
    keep_worst(&p->worst.logits, distance(logits + n, want, (size_t)p->layout.im_end, 1));
}

static int32_t *reference_codes(const peer *p, uint32_t *ret_n_frames)
{
    const json_t *v = json_object_get(p->golden, "ref_codes");
    size_t n = json_array_size(v);
    int32_t *codes = malloc(n * sizeof *codes);
    assert_non_null(codes);
    for (size_t i = 0; i < n; i++) {
        codes[i] = (int32_t)json_number_at(v, i);
    }
    *ret_n_frames = (uint32_t)(n / p->m.hp.n_codebooks);
    return codes;
}

/* "Hello world" alone or in the voice of the reference. */
static void make_prompt(const peer *p, bool is_clone, s2_prompt *prompt)
{
    sl_error err;
    uint32_t n_frames = 0;
    int32_t *codes = reference_codes(p, &n_frames);
    const s2_reference ref = {"abc", 3, codes, n_frames};
    assert_ok(s2_prompt_begin(&p->layout, &ref, is_clone ? 1 : 0, S2_CONTROL_AS_TEXT, prompt, &err),
            &err);
    assert_ok(s2_prompt_add_user(&p->layout, "Hello world", 11, S2_CONTROL_AS_TEXT, prompt, &err),
            &err);
    free(codes);
}

static void check_prompt(const peer *p, const s2_prompt *prompt, const json_t *row0)
{
    size_t height = 1 + p->m.hp.n_codebooks;
    assert_int_equal(prompt->n_columns, json_array_size(row0));
    for (size_t t = 0; t < prompt->n_columns; t++) {
        assert_int_equal(prompt->columns[t * height], (int32_t)json_number_at(row0, t));
    }
}

static void check_ar(peer *p, const char *kase)
{
    sl_error err;
    s2_prompt prompt = {0};
    float logits[65];
    float hidden[64];
    float fast[64];
    assert_int_equal(p->m.hp.codebook_size, 64);
    assert_int_equal(p->m.hp.slow.n_embd, 64);
    make_prompt(p, strcmp(kase, "clone") == 0, &prompt);
    check_prompt(p, &prompt, entry(p, kase, "prompt_row0"));
    s2_slow_ar_rewind(p->slow, 0);
    assert_ok(s2_slow_ar_eval(
                      p->slow, prompt.columns, (uint32_t)prompt.n_columns, 0, logits, hidden, &err),
            &err);
    s2_prompt_done(&prompt);
    keep_worst(&p->worst.hidden, distance(hidden, entry(p, kase, "prefill_hidden"), 0, 64));
    check_logits(p, logits, entry(p, kase, "prefill_logits"));

    assert_ok(s2_fast_ar_begin(p->fast, hidden, 7, fast, &err), &err);
    keep_worst(&p->worst.fast, distance(fast, entry(p, kase, "fast_logits_prefix7"), 0, 64));
    assert_ok(s2_fast_ar_next(p->fast, 3, fast, &err), &err);
    assert_ok(s2_fast_ar_next(p->fast, 63, fast, &err), &err);
    keep_worst(&p->worst.fast, distance(fast, entry(p, kase, "fast_logits_prefix7_3_63"), 0, 64));

    const int32_t column[5] = {272 + 7, 7, 3, 63, 0};
    assert_ok(s2_slow_ar_eval(p->slow, column, 1, 0, logits, hidden, &err), &err);
    keep_worst(&p->worst.hidden, distance(hidden, entry(p, kase, "step_hidden"), 0, 64));
    check_logits(p, logits, entry(p, kase, "step_logits"));
}

typedef struct take {
    int32_t codes[160]; /* frame major */
    float samples[1280];
    size_t n_frames;
    size_t n_samples;
} take;

static int on_frame(void *ud, const int32_t *codes)
{
    take *t = ud;
    assert_true(t->n_frames < 40);
    memcpy(t->codes + 4 * t->n_frames, codes, 4 * sizeof *codes);
    t->n_frames++;
    return 0;
}

static int on_samples(void *ud, const float *samples, size_t n)
{
    take *t = ud;
    assert_true(t->n_samples + n <= 1280);
    memcpy(t->samples + t->n_samples, samples, n * sizeof *samples);
    t->n_samples += n;
    return 0;
}

static void check_speech(peer *p, const char *model, const char *kase)
{
    char paths[2][512];
    sl_error err;
    s2_engine *e = NULL;
    s2_stats stats;
    take *t = calloc(1, sizeof *t);
    char text[] = "abc";
    s2_voice voice = {.n_codebooks = 4, .sample_rate = 44100, .codebook_size = 64, .text = text};
    s2_engine_opts open = {.model_path = test_data(paths[0], sizeof paths[0], model),
            .tokenizer_path = test_data(paths[1], sizeof paths[1], "tiny/tokenizer.json"),
            .n_threads = 1};
    assert_ok(s2_engine_open(&open, &e, &err), &err);
    s2_speak_opts opts = s2_speak_defaults();
    opts.text = "Hello world";
    opts.text_bytes = 11;
    opts.temperature = 0;
    opts.top_k = 1;
    opts.max_frames = 40;
    opts.min_frames = 40;
    opts.on_frame = on_frame;
    opts.on_samples = on_samples;
    opts.ud = t;
    voice.codes = reference_codes(p, &voice.n_frames);
    opts.voices = &voice;
    opts.n_voices = strcmp(kase, "clone") == 0 ? 1 : 0;
    assert_ok(s2_engine_speak(e, &opts, &stats, &err), &err);
    assert_int_equal(stats.end, S2_END_LIMIT);
    assert_int_equal(t->n_frames, 40);
    assert_int_equal(t->n_samples, 1280);
    const json_t *codes = entry(p, kase, "codes");
    for (size_t i = 0; i < 40; i++) {
        for (size_t j = 0; j < 4; j++) {
            assert_int_equal(t->codes[4 * i + j], (int32_t)json_number_at(codes, 40 * j + i));
        }
    }
    keep_worst(&p->worst.pcm, distance(t->samples, entry(p, kase, "pcm_full_decode"), 0, 1280));
    free(voice.codes);
    free(t);
    s2_engine_close(&e);
}

/* How far below the best the given choice is. */
static float margin_of(const float *logits, size_t n, int32_t choice)
{
    float best = logits[0];
    for (size_t i = 1; i < n; i++) {
        best = fmaxf(best, logits[i]);
    }
    return best - logits[choice];
}

/*
 * Feeds the existing engine's frames one by one and looks at every decision: where blocks of activations are
 * rounded to eight bits, a near tie may fall the other way, and all that follows would differ.
 */
static void check_decisions(peer *p, const char *kase)
{
    sl_error err;
    s2_prompt prompt = {0};
    float logits[65];
    float hidden[64];
    const json_t *codes = entry(p, kase, "codes");
    make_prompt(p, strcmp(kase, "clone") == 0, &prompt);
    s2_slow_ar_rewind(p->slow, 0);
    assert_ok(s2_slow_ar_eval(
                      p->slow, prompt.columns, (uint32_t)prompt.n_columns, 0, logits, hidden, &err),
            &err);
    s2_prompt_done(&prompt);
    for (size_t i = 0; i < 40; i++) {
        int32_t column[5];
        for (size_t j = 0; j < 4; j++) {
            column[1 + j] = (int32_t)json_number_at(codes, 40 * j + i);
        }
        column[0] = p->m.hp.semantic_begin + column[1];
        keep_worst(&p->worst.margin, margin_of(logits, 64, column[1]));
        for (size_t j = 1; j < 4; j++) {
            int r = j == 1 ? s2_fast_ar_begin(p->fast, hidden, column[1], logits, &err)
                           : s2_fast_ar_next(p->fast, column[j], logits, &err);
            assert_ok(r, &err);
            keep_worst(&p->worst.margin, margin_of(logits, 64, column[1 + j]));
        }
        assert_ok(s2_slow_ar_eval(p->slow, column, 1, 0, logits, hidden, &err), &err);
    }
}

static void check_decoded(peer *p, const char *model, const char *kase)
{
    char paths[2][512];
    sl_error err;
    s2_engine *e = NULL;
    s2_stats stats;
    int32_t codes[160];
    take *t = calloc(1, sizeof *t);
    s2_engine_opts open = {.model_path = test_data(paths[0], sizeof paths[0], model),
            .tokenizer_path = test_data(paths[1], sizeof paths[1], "tiny/tokenizer.json"),
            .n_threads = 1};
    assert_ok(s2_engine_open(&open, &e, &err), &err);
    for (size_t i = 0; i < 160; i++) {
        codes[i] = (int32_t)json_number_at(entry(p, kase, "codes"), 40 * (i % 4) + i / 4);
    }
    assert_ok(s2_engine_decode(e, codes, 40, on_samples, t, &stats, &err), &err);
    assert_int_equal(t->n_samples, 1280);
    keep_worst(&p->worst.pcm, distance(t->samples, entry(p, kase, "pcm_full_decode"), 0, 1280));
    free(t);
    s2_engine_close(&e);
}

static void check_model(const char *model, const char *golden, tolerances limit)
{
    peer p;
    open_peer(&p, model, golden);
    check_ar(&p, "plain");
    check_ar(&p, "clone");
    static const char *const cases[] = {"plain", "clone"};
    for (size_t i = 0; i < 2; i++) {
        check_decisions(&p, cases[i]);
        check_decoded(&p, model, cases[i]);
        if (limit.margin <= 0) {
            check_speech(&p, model, cases[i]);
        }
    }
    print_message("%s: hidden %.2e, logits %.2e, fast %.2e, pcm %.2e, margin %.2e\n", model,
            (double)p.worst.hidden, (double)p.worst.logits, (double)p.worst.fast,
            (double)p.worst.pcm, (double)p.worst.margin);
    assert_true(p.worst.hidden <= limit.hidden);
    assert_true(p.worst.logits <= limit.logits);
    assert_true(p.worst.fast <= limit.fast);
    assert_true(p.worst.pcm <= limit.pcm);
    assert_true(p.worst.margin <= limit.margin);
    close_peer(&p);
}

static void test_f32_weights(void **state)
{
    (void)state;
    check_model("tiny/tiny-arf32.gguf", "tiny/golden-arf32.json",
            (tolerances){8e-4F, 1e-3F, 5e-6F, 1e-3F, 0});
}

static void test_f16_weights(void **state)
{
    (void)state;
    check_model("tiny/tiny-f16.gguf", "tiny/golden-f16.json",
            (tolerances){4e-3F, 4e-3F, 4e-3F, 1e-3F, 0});
}

/* The existing engine rounds the inputs of these products to eight bits; this one need not. */
static void test_q8_0_weights(void **state)
{
    (void)state;
    check_model("tiny/tiny-q8_0.gguf", "tiny/golden-q8_0.json",
            (tolerances){1e-1F, 1e-1F, 2e-1F, 1e-3F, 1.5e-1F});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_f32_weights),
            cmocka_unit_test(test_f16_weights),
            cmocka_unit_test(test_q8_0_weights),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
