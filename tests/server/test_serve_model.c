/*
 * The server with models that really compute: the tiny one for what must be equal to the bit, the demo voice for long
 * texts. What is compared is the sound; how fast it comes is never judged.
 */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base64.h"
#include "http_client.h"
#include "os/os_thread.h"
#include "s2/audio.h"
#include "s2/voice.h"
#include "server_rig.h"
#include "test_support.h"

#define SPEECH "/v1/audio/speech"
#define VOICES "/v1/audio/voices"

static char tiny_model[512];
static char tiny_tokenizer[512];

static int start_tiny(void **state)
{
    server_rig *rig = calloc(1, sizeof *rig);
    server_rig_init(rig);
    test_data(tiny_model, sizeof tiny_model, "tiny/tiny-f16.gguf");
    test_data(tiny_tokenizer, sizeof tiny_tokenizer, "tiny/tokenizer.json");
    server_rig_use_model(rig, tiny_model, tiny_tokenizer);
    server_rig_start(rig);
    *state = rig;
    return 0;
}

/* On a simulated device, so that weights move. */
static int start_moving(void **state)
{
    sl_error err = {0};
    server_rig *rig = calloc(1, sizeof *rig);
    server_rig_init(rig);
    test_data(tiny_model, sizeof tiny_model, "tiny/tiny-f16.gguf");
    test_data(tiny_tokenizer, sizeof tiny_tokenizer, "tiny/tokenizer.json");
    const s2_engine_opts opts = {.model_path = tiny_model,
            .tokenizer_path = tiny_tokenizer,
            .n_threads = 1,
            .place = {.device = "sim:64M"}};
    assert_ok(engine_state_create(&opts, &rig->engine, &err), &err);
    rig->opts.engine = engine_state_speaker(rig->engine);
    server_rig_start(rig);
    *state = rig;
    return 0;
}

static int start_demo(void **state)
{
    server_rig *rig = calloc(1, sizeof *rig);
    server_rig_init(rig);
    server_rig_use_model(rig, "models/demo/demo-voice-q8_0.gguf", "models/demo/tokenizer.json");
    server_rig_start(rig);
    *state = rig;
    return 0;
}

/* The sound of a request as WAV or samples; free() it. */
static char *speak(const server_rig *rig, const char *json, size_t *ret_n)
{
    http_response r;
    http_post_json(rig->port, SPEECH, json, &r);
    if (r.status != 200) {
        fail_msg("%d: %s", r.status, r.body);
    }
    assert_true(r.is_complete);
    *ret_n = r.n_body;
    return r.body;
}

static void expect_same(const char *a, size_t n_a, const char *b, size_t n_b, bool are_same)
{
    bool same = n_a == n_b && memcmp(a, b, n_a) == 0;
    assert_int_equal(same, are_same);
}

/* A voice whose codes follow from `salt`, saved under a name. */
static void save_voice(
        const server_rig *rig, const char *name, const char *text, uint32_t n_frames, unsigned salt)
{
    char path[600];
    char file[80];
    sl_error err;
    s2_voice voice = {.n_codebooks = 4,
            .n_frames = n_frames,
            .sample_rate = 44100,
            .codebook_size = 64,
            .text = strdup(text),
            .codes = calloc(4 * (size_t)n_frames, sizeof(int32_t))};
    for (uint32_t i = 0; i < 4 * n_frames; i++) {
        voice.codes[i] = (int32_t)((i * 7 + i / 3) % 60);
    }
    /* Which code differs: 1 = late in book 0, 2 = late in book 3. */
    if (salt == 1) {
        voice.codes[n_frames - 1] ^= 1;
    } else if (salt == 2) {
        voice.codes[4 * n_frames - 1] ^= 1;
    }
    snprintf(file, sizeof file, "%s.s2voice", name);
    assert_ok(s2_voice_save(test_path(path, sizeof path, rig->dir, file), &voice, &err), &err);
    free(voice.text);
    free(voice.codes);
}

static void test_G4_04_same_request_same_sound_whatever_came_between(void **state)
{
    const server_rig *rig = *state;
    static const char ask[] =
            "{\"input\":\"Hello world again.\",\"response_format\":\"wav\",\"seed\":3,"
            "\"max_frames\":6}";
    static const char *const between[] = {
            "{\"input\":\"Hello world "
            "now.\",\"response_format\":\"wav\",\"seed\":3,\"max_frames\":6}",
            "{\"input\":\"Hello\",\"response_format\":\"wav\",\"seed\":3,\"max_frames\":6}",
            "{\"input\":\"Hello world "
            "again.\",\"voice\":\"v\",\"response_format\":\"wav\",\"seed\":3,"
            "\"max_frames\":6}",
    };
    size_t n = 0;
    save_voice(rig, "v", "abc", 20, 0);
    char *first = speak(rig, ask, &n);
    assert_true(n > 44);
    for (size_t i = 0; i <= sizeof between / sizeof between[0]; i++) {
        size_t n_again = 0;
        char *again = speak(rig, ask, &n_again);
        expect_same(first, n, again, n_again, true);
        free(again);
        if (i < sizeof between / sizeof between[0]) {
            size_t n_other = 0;
            char *other = speak(rig, between[i], &n_other);
            expect_same(first, n, other, n_other, false);
            free(other);
        }
    }
    free(first);
}

static void test_G4_28_a_seed_is_one_sound_in_every_mode(void **state)
{
    const server_rig *rig = *state;
    size_t n = 0;
    size_t n_whole = 0;
    size_t n_other = 0;
    char *stream = speak(rig,
            "{\"input\":\"Hello.\",\"response_format\":\"wav\",\"seed\":7,\"max_frames\":8}", &n);
    char *whole = speak(rig,
            "{\"input\":\"Hello.\",\"response_format\":\"wav\",\"seed\":7,\"max_frames\":8,"
            "\"stream\":false}",
            &n_whole);
    char *other = speak(rig,
            "{\"input\":\"Hello.\",\"response_format\":\"wav\",\"seed\":8,\"max_frames\":8}",
            &n_other);
    expect_same(stream + 44, n - 44, whole + 44, n_whole - 44, true);
    expect_same(stream, n, other, n_other, false);
    free(stream);
    free(whole);
    free(other);
    /* Another server, as another process would be, and one that slept in between. */
    http_response r;
    void *again = NULL;
    start_tiny(&again);
    for (int level = 1; level <= 3; level++) {
        char path[32];
        size_t n_a = 0;
        size_t n_b = 0;
        snprintf(path, sizeof path, "/sleep?level=%d", level);
        http_ask(rig->port, "POST", path, "", "", 0, &r);
        assert_int_equal(r.status, 200);
        http_response_done(&r);
        static const char ask[] =
                "{\"input\":\"Hello.\",\"response_format\":\"wav\",\"seed\":7,\"max_frames\":8}";
        char *here = speak(rig, ask, &n_a);
        char *there = speak(again, ask, &n_b);
        expect_same(here, n_a, there, n_b, true);
        free(here);
        free(there);
    }
    server_rig_finish(&again);
}

static void test_G4_30_prompts_that_look_alike_are_told_apart(void **state)
{
    const server_rig *rig = *state;
    static const struct {
        const char *voices[2];
        const char *texts[2];
    } pairs[] = {
            {{"a-b", "a"}, {"c", "b|c"}},
            {{"base", "late0"}, {"hi", "hi"}},
            {{"base", "late3"}, {"hi", "hi"}},
            {{"base", "longer"}, {"hi", "hi"}},
    };
    save_voice(rig, "a-b", "a|b", 20, 0);
    save_voice(rig, "a", "a", 20, 0);
    save_voice(rig, "base", "abc", 24, 0);
    save_voice(rig, "late0", "abc", 24, 1);
    save_voice(rig, "late3", "abc", 24, 2);
    save_voice(rig, "longer", "abc", 25, 0);
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        char json[2][240];
        char *first[2];
        size_t n[2];
        for (int k = 0; k < 2; k++) {
            void *fresh = NULL;
            snprintf(json[k], sizeof json[k],
                    "{\"input\":\"%s\",\"voice\":\"%s\",\"response_format\":\"wav\",\"seed\":5,"
                    "\"max_frames\":6}",
                    pairs[i].texts[k], pairs[i].voices[k]);
            /* What a server says that has said nothing before. */
            start_tiny(&fresh);
            server_rig *other = fresh;
            server_close(&other->server);
            other->opts.voice_dir = rig->dir;
            server_rig_start(other);
            first[k] = speak(other, json[k], &n[k]);
            server_rig_finish(&fresh);
        }
        for (int k = 0; k < 2; k++) {
            size_t n_now = 0;
            char *now = speak(rig, json[k], &n_now);
            expect_same(now, n_now, first[k], n[k], true);
            free(now);
        }
        free(first[0]);
        free(first[1]);
    }
    /* The same name, another voice. */
    static const char ask[] = "{\"input\":\"hi\",\"voice\":\"again\",\"response_format\":\"wav\","
                              "\"seed\":5,\"max_frames\":6}";
    size_t n_old = 0;
    size_t n_new = 0;
    http_response r;
    save_voice(rig, "again", "abc", 24, 0);
    char *old = speak(rig, ask, &n_old);
    http_ask(rig->port, "DELETE", VOICES "/again", "", NULL, 0, &r);
    assert_int_equal(r.status, 200);
    http_response_done(&r);
    save_voice(rig, "again", "other words", 30, 0);
    char *new = speak(rig, ask, &n_new);
    expect_same(old, n_old, new, n_new, false);
    free(old);
    free(new);
}

static void test_G5_16_six_at_once_are_as_one_after_the_other(void **state)
{
    enum {
        N = 6
    };
    const server_rig *rig = *state;
    http_asker *askers = calloc(N, sizeof *askers);
    char *alone[N];
    size_t n[N];
    save_voice(rig, "v0", "abc", 20, 0);
    save_voice(rig, "v1", "cde", 30, 1);
    for (unsigned i = 0; i < N; i++) {
        snprintf(askers[i].json, sizeof askers[i].json,
                "{\"input\":\"Sentence number %u.\",\"response_format\":\"%s\",\"seed\":%u,"
                "\"max_frames\":6,\"stream\":%s%s}",
                i, i < 3 ? "wav" : "flac", i, i % 2 ? "true" : "false",
                i % 3 == 0 ? "" : (i % 3 == 1 ? ",\"voice\":\"v0\"" : ",\"voice\":\"v1\""));
        alone[i] = speak(rig, askers[i].json, &n[i]);
    }
    for (unsigned i = 0; i < N; i++) {
        http_asker_start(&askers[i], rig->port, SPEECH);
    }
    for (unsigned i = 0; i < N; i++) {
        http_asker_join(&askers[i]);
        assert_int_equal(askers[i].response.status, 200);
        expect_same(alone[i], n[i], askers[i].response.body, askers[i].response.n_body, true);
        http_response_done(&askers[i].response);
        free(alone[i]);
    }
    free(askers);
}

static void test_G5_03_a_cancelled_request_leaves_no_trace(void **state)
{
    const server_rig *rig = *state;
    static const char json[] =
            "{\"input\":\"One, two, three.\",\"response_format\":\"wav\",\"seed\":2,"
            "\"max_frames\":8}";
    size_t n = 0;
    char *first = speak(rig, json, &n);
    for (size_t n_read = 0; n_read < 3; n_read++) {
        char buf[2000];
        int fd = http_begin_json(rig->port, SPEECH,
                "{\"input\":\"A longer text that nobody will listen "
                "to.\",\"response_format\":\"wav\","
                "\"seed\":9,\"max_frames\":700,\"min_frames\":700}",
                0);
        assert_int_equal(http_receive(fd, buf, n_read * 400), n_read * 400);
        http_reset(fd);
        size_t n_again = 0;
        char *again = speak(rig, json, &n_again);
        expect_same(first, n, again, n_again, true);
        free(again);
    }
    free(first);
}

static void test_bad_texts_are_errors_before_any_sound(void **state)
{
    const server_rig *rig = *state;
    static const char *const texts[] = {"   ", "\\n\\t", "\\u200b"};
    http_response r;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        char json[80];
        snprintf(json, sizeof json, "{\"input\":\"%s\",\"max_frames\":4}", texts[i]);
        http_post_json(rig->port, SPEECH, json, &r);
        assert_true(r.status == 400 || r.status == 200);
        assert_true(r.status == 200 || strstr(r.body, "\"invalid_request_error\""));
        http_response_done(&r);
    }
    /* A voice of another model. */
    char path[600];
    sl_error err;
    int32_t codes[9] = {0};
    s2_voice voice = {.n_codebooks = 9,
            .n_frames = 1,
            .sample_rate = 44100,
            .codebook_size = 64,
            .text = strdup("x"),
            .codes = codes};
    assert_ok(s2_voice_save(test_path(path, sizeof path, rig->dir, "alien.s2voice"), &voice, &err),
            &err);
    free(voice.text);
    http_post_json(rig->port, SPEECH, "{\"input\":\"hi\",\"voice\":\"alien\"}", &r);
    assert_int_equal(r.status, 400);
    assert_non_null(strstr(r.body, "9 codebooks"));
    http_response_done(&r);
    test_write_file(test_path(path, sizeof path, rig->dir, "torn.s2voice"), "S2VOICE", 7);
    http_post_json(rig->port, SPEECH, "{\"input\":\"hi\",\"voice\":\"torn\"}", &r);
    assert_int_equal(r.status, 400);
    assert_null(strstr(r.body, rig->dir));
    http_response_done(&r);
}

/* The engine's own tests force the sampler; here it counts that no short success comes out of the API. */
static void test_G4_01_a_sentence_is_never_one_frame(void **state)
{
    const server_rig *rig = *state;
    for (unsigned seed = 0; seed < 4; seed++) {
        char json[200];
        http_response r;
        snprintf(json, sizeof json,
                "{\"input\":\"The quick brown fox jumps over the lazy dog.\",\"response_format\":"
                "\"wav\",\"seed\":%u,\"temperature\":100,\"top_p\":1,\"max_frames\":40}",
                seed);
        http_post_json(rig->port, SPEECH, json, &r);
        /* Of 35 letters nobody says more than 60 a second. */
        assert_true(r.status >= 400 || r.n_body > 44 + 2 * 16000 * 35 / 60);
        http_response_done(&r);
    }
}

static double rms(const char *wav, size_t from, size_t to)
{
    double sum = 0;
    for (size_t i = from; i < to; i++) {
        const unsigned char *p = (const unsigned char *)wav + 44 + 2 * i;
        double v = (int16_t)(p[0] | p[1] << 8);
        sum += v * v;
    }
    return sqrt(sum / (double)(to - from));
}

static void test_G4_06_long_text_keeps_its_level_and_its_length(void **state)
{
    const server_rig *rig = *state;
    char json[1200];
    size_t at = (size_t)snprintf(json, sizeof json,
            "{\"response_format\":\"wav\",\"seed\":1,\"segment\":120,\"input\":\"");
    static const char *const numbers[] = {"one", "two", "three", "four", "five", "six", "seven",
            "eight", "nine", "ten", "eleven", "twelve", "thirteen", "fourteen", "fifteen"};
    for (size_t i = 0; i < 15; i++) {
        at += (size_t)snprintf(json + at, sizeof json - at, "Sentence %s. ", numbers[i]);
    }
    snprintf(json + at, sizeof json - at, "\"}");
    size_t n_one = 0;
    size_t n = 0;
    char *one = speak(
            rig, "{\"response_format\":\"wav\",\"seed\":1,\"input\":\"Sentence one.\"}", &n_one);
    char *all = speak(rig, json, &n);
    size_t n_samples = (n - 44) / 2;
    /* Fifteen sentences take the time of about fifteen. */
    assert_true(n > 8 * n_one && n < 30 * n_one);
    double first = rms(all, 0, n_samples / 4);
    double last = rms(all, n_samples - n_samples / 4, n_samples);
    assert_true(last > first / 2 && last < first * 2); /* 6 dB */
    free(one);
    free(all);
}

/* /residency parsed; json_decref() it. */
static json_t *residency_of(const server_rig *rig)
{
    http_response r;
    http_ask(rig->port, "GET", "/residency", "", NULL, 0, &r);
    assert_int_equal(r.status, 200);
    json_t *root = json_loadb(r.body, r.n_body, 0, NULL);
    http_response_done(&r);
    assert_true(json_is_object(root));
    return root;
}

static const json_t *load_of(const json_t *root, const char *unit)
{
    const json_t *units = json_object_get(root, "units");
    for (size_t i = 0; i < json_array_size(units); i++) {
        const json_t *u = json_array_get(units, i);
        if (strcmp(json_string_value(json_object_get(u, "name")), unit) == 0) {
            return json_object_get(u, "load");
        }
    }
    fail_msg("no unit %s", unit);
    return NULL;
}

static bool is_moving_route(const char *route)
{
    static const char *const names[] = {"plain", "pread", "memcpy", "registered"};
    bool is = false;
    for (size_t i = 0; route && i < sizeof names / sizeof names[0]; i++) {
        is = is || strcmp(route, names[i]) == 0;
    }
    return is;
}

static void expect_load_metrics(const server_rig *rig, const char *unit, const char *route)
{
    http_response r;
    char line[200];
    http_ask(rig->port, "GET", "/metrics", "", NULL, 0, &r);
    snprintf(line, sizeof line, "\nsluice_unit_load_bytes_per_second{unit=\"%s\",route=\"%s\"} ",
            unit, route);
    assert_non_null(strstr(r.body, line));
    snprintf(
            line, sizeof line, "\nsluice_unit_load_stalls{unit=\"%s\",route=\"%s\"} ", unit, route);
    assert_non_null(strstr(r.body, line));
    assert_null(strstr(r.body, "sluice_unit_load_stalls{unit=\"embed\""));
    http_response_done(&r);
}

static void test_loads_say_their_route_speed_and_stalls(void **state)
{
    const server_rig *rig = *state;
    size_t n = 0;
    json_t *root = residency_of(rig);
    assert_true(json_is_null(load_of(root, "slow")));
    json_decref(root);
    free(speak(rig,
            "{\"input\":\"Hello.\",\"response_format\":\"wav\",\"seed\":1,\"max_frames\":4}", &n));
    root = residency_of(rig);
    const json_t *load = load_of(root, "slow");
    const char *route = json_string_value(json_object_get(load, "route"));
    json_int_t n_bytes = json_integer_value(json_object_get(load, "bytes"));
    double seconds = json_number_value(json_object_get(load, "seconds"));
    double speed = json_number_value(json_object_get(load, "bytes_per_second"));
    assert_true(is_moving_route(route));
    assert_true(n_bytes > 0 && seconds > 0);
    assert_true(fabs(speed * seconds / (double)n_bytes - 1) < 1e-6);
    assert_true(json_is_integer(json_object_get(load, "stalls")));
    expect_load_metrics(rig, "slow", route);
    /* What is used in the file is there without having moved. */
    load = load_of(root, "embed");
    assert_string_equal(json_string_value(json_object_get(load, "route")), "in place");
    assert_int_equal(json_integer_value(json_object_get(load, "bytes")), 0);
    assert_true(json_is_null(json_object_get(load, "bytes_per_second")));
    json_decref(root);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test_setup_teardown(
                    test_G4_04_same_request_same_sound_whatever_came_between, start_tiny,
                    server_rig_finish),
            cmocka_unit_test_setup_teardown(
                    test_G4_28_a_seed_is_one_sound_in_every_mode, start_tiny, server_rig_finish),
            cmocka_unit_test_setup_teardown(test_G4_30_prompts_that_look_alike_are_told_apart,
                    start_tiny, server_rig_finish),
            cmocka_unit_test_setup_teardown(test_G5_16_six_at_once_are_as_one_after_the_other,
                    start_tiny, server_rig_finish),
            cmocka_unit_test_setup_teardown(
                    test_G5_03_a_cancelled_request_leaves_no_trace, start_tiny, server_rig_finish),
            cmocka_unit_test_setup_teardown(
                    test_bad_texts_are_errors_before_any_sound, start_tiny, server_rig_finish),
            cmocka_unit_test_setup_teardown(
                    test_loads_say_their_route_speed_and_stalls, start_moving, server_rig_finish),
            cmocka_unit_test_setup_teardown(
                    test_G4_01_a_sentence_is_never_one_frame, start_demo, server_rig_finish),
            cmocka_unit_test_setup_teardown(test_G4_06_long_text_keeps_its_level_and_its_length,
                    start_demo, server_rig_finish),
    };
    return cmocka_run_group_tests_name("serve_model", tests, NULL, NULL);
}
