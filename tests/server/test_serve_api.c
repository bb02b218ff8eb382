/* What the server answers: formats, fields, voices, forms, status, strangers, limits. A made-up engine speaks. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jansson.h>

#include "base64.h"
#include "http_client.h"
#include "os/os_clock.h"
#include "os/os_process.h"
#include "os/os_thread.h"
#include "s2/audio.h"
#include "server_rig.h"
#include "test_support.h"

#define SPEECH "/v1/audio/speech"
#define VOICES "/v1/audio/voices"
#define MS     UINT64_C(1000000)

/* The answer is an error of the OpenAI API's shape; `param` may be NULL. */
static void expect_error(const http_response *r, int status, const char *param)
{
    if (r->status != status) {
        fail_msg("status %d, wanted %d: %s", r->status, status, r->body);
    }
    http_expect_header(r, "Content-Type", "application/json");
    json_t *json = json_loadb(r->body, r->n_body, 0, NULL);
    const json_t *error = json_object_get(json, "error");
    assert_true(json_is_string(json_object_get(error, "message")));
    assert_true(json_is_string(json_object_get(error, "type")));
    assert_non_null(json_object_get(error, "code"));
    const char *found = json_string_value(json_object_get(error, "param"));
    if (param) {
        assert_non_null(found);
        assert_string_equal(found, param);
    }
    json_decref(json);
}

static void expect_refused(const server_rig *rig, const char *json, int status, const char *param)
{
    http_response r;
    http_post_json(rig->port, SPEECH, json, &r);
    expect_error(&r, status, param);
    http_response_done(&r);
}

static void test_G5_10_response_formats(void **state)
{
    const server_rig *rig = *state;
    static const struct {
        const char *field; /* behind the input */
        const char *type;
        const char *magic;
        size_t n;
    } good[] = {
            {"", "audio/mpeg", "\xff", 1},
            {",\"response_format\":null", "audio/mpeg", "\xff", 1},
            {",\"response_format\":\"mp3\"", "audio/mpeg", "\xff", 1},
            {",\"response_format\":\"opus\"", "audio/ogg", "OggS", 4},
            {",\"response_format\":\"flac\"", "audio/flac", "fLaC", 4},
            {",\"response_format\":\"wav\"", "audio/wav", "RIFF", 4},
            {",\"response_format\":\"WAV\"", "audio/wav", "RIFF", 4},
            {",\"response_format\":\"pcm\"", "audio/pcm", "", 0},
    };
    static const char *const bad[] = {
            "\"aac\"", "\"ogg\"", "5", "\"\"", "[]", "\"wav\\u0020\"", "\"mp3\\n\"", "true"};
    char json[200];
    http_response r;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        snprintf(json, sizeof json, "{\"input\":\"frames=8\"%s}", good[i].field);
        http_post_json(rig->port, SPEECH, json, &r);
        assert_int_equal(r.status, 200);
        http_expect_header(&r, "Content-Type", good[i].type);
        assert_true(r.n_body > good[i].n);
        assert_memory_equal(r.body, good[i].magic, good[i].n);
        http_response_done(&r);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        snprintf(json, sizeof json, "{\"input\":\"frames=8\",\"response_format\":%s}", bad[i]);
        expect_refused(rig, json, 400, "response_format");
    }
    http_post_json(rig->port, SPEECH, "{\"input\":\"x\",\"response_format\":\"aac\"}", &r);
    assert_non_null(strstr(r.body, "mp3, opus, flac, wav and pcm"));
    http_response_done(&r);
}

static void test_fields_are_checked_by_name(void **state)
{
    const server_rig *rig = *state;
    static const struct {
        const char *json;
        int status;
        const char *param;
    } cases[] = {
            {"", 400, NULL},
            {"{", 400, NULL},
            {"[]", 400, NULL},
            {"null", 400, NULL},
            {"{\"input\":\"a\",\"input\":\"b\"}", 400, NULL},
            {"{\"input\":\"a\\u0000b\"}", 400, NULL},
            {"{\"input\":\"\xff\"}", 400, NULL},
            {"{\"input\":\"\\ud800\"}", 400, NULL},
            {"{}", 400, "input"},
            {"{\"input\":\"\"}", 400, "input"},
            {"{\"input\":null}", 400, "input"},
            {"{\"input\":5}", 400, "input"},
            {"{\"input\":\"x\",\"model\":5}", 400, "model"},
            {"{\"input\":\"x\",\"voice\":5}", 400, "voice"},
            {"{\"input\":\"x\",\"voice\":\"\"}", 400, "voice"},
            {"{\"input\":\"x\",\"voice\":\"nobody\"}", 404, "voice"},
            {"{\"input\":\"x\",\"voice\":{\"id\":\"nobody\"}}", 404, "voice"},
            {"{\"input\":\"x\",\"voice\":{\"id\":7}}", 400, "id"},
            {"{\"input\":\"x\",\"speed\":1.5}", 400, "speed"},
            {"{\"input\":\"x\",\"speed\":\"1\"}", 400, "speed"},
            {"{\"input\":\"x\",\"speed\":0}", 400, "speed"},
            {"{\"input\":\"x\",\"instructions\":\"sing\"}", 400, "instructions"},
            {"{\"input\":\"x\",\"stream_format\":\"xml\"}", 400, "stream_format"},
            {"{\"input\":\"x\",\"stream\":1}", 400, "stream"},
            {"{\"input\":\"x\",\"seed\":-1}", 400, "seed"},
            {"{\"input\":\"x\",\"seed\":1.5}", 400, "seed"},
            {"{\"input\":\"x\",\"seed\":99999999999999999999}", 400, NULL},
            {"{\"input\":\"x\",\"temperature\":-0.1}", 400, "temperature"},
            {"{\"input\":\"x\",\"temperature\":1e999}", 400, NULL},
            {"{\"input\":\"x\",\"temperature\":NaN}", 400, NULL},
            {"{\"input\":\"x\",\"top_p\":1.01}", 400, "top_p"},
            {"{\"input\":\"x\",\"top_k\":2000000}", 400, "top_k"},
            {"{\"input\":\"x\",\"max_frames\":0}", 400, "max_frames"},
            {"{\"input\":\"x\",\"max_frames\":1000000}", 400, "max_frames"},
            {"{\"input\":\"x\",\"max_frames\":5,\"min_frames\":6}", 400, "min_frames"},
            {"{\"input\":\"x\",\"segment\":-1}", 400, "segment"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        expect_refused(rig, cases[i].json, cases[i].status, cases[i].param);
    }
    assert_int_equal(atomic_load(&rig->fake.n_speaks), 0);
}

static void test_what_other_clients_add_is_ignored_aloud(void **state)
{
    const server_rig *rig = *state;
    http_response r;
    http_post_json(rig->port, SPEECH,
            "{\"model\":\"tts-1-hd\",\"voice\":\"alloy\",\"input\":\"frames=1\",\"speed\":1.0,"
            "\"instructions\":\"\",\"lang_code\":\"a\",\"volume multiplier\":1,\"seed\":12}",
            &r);
    assert_int_equal(r.status, 200);
    http_expect_header(&r, "X-Ignored-Fields", "lang_code");
    http_expect_header(&r, "X-Seed", "12");
    http_response_done(&r);
}

static void test_events_carry_the_same_sound(void **state)
{
    const server_rig *rig = *state;
    http_response plain;
    http_response events;
    http_post_json(rig->port, SPEECH,
            "{\"input\":\"noise frames=3\",\"response_format\":\"wav\",\"seed\":2}", &plain);
    http_post_json(rig->port, SPEECH,
            "{\"input\":\"noise "
            "frames=3\",\"response_format\":\"wav\",\"seed\":2,\"stream_format\":"
            "\"sse\"}",
            &events);
    http_expect_header(&events, "Content-Type", "text/event-stream");
    unsigned char *sound = malloc(events.n_body);
    size_t n = 0;
    const char *at = events.body;
    while ((at = strstr(at, "\"audio\":\"")) != NULL) {
        size_t got = 0;
        at += 9;
        assert_true(base64_decode(at, strcspn(at, "\""), sound + n, &got));
        n += got;
    }
    assert_int_equal(n, plain.n_body);
    assert_memory_equal(sound, plain.body, n);
    const char *done = strstr(events.body, "event: speech.audio.done\ndata: {");
    assert_non_null(done);
    assert_non_null(strstr(done, "\"output_tokens\":3"));
    free(sound);
    http_response_done(&plain);
    http_response_done(&events);
}

static void test_G5_12_probes_of_clients(void **state)
{
    server_rig *rig = *state;
    http_response r;
    atomic_store(&rig->fake.open_ms, 300);
    server_rig_start(rig);
    http_ask(rig->port, "GET", "/health", "", NULL, 0, &r);
    assert_int_equal(r.status, 503);
    assert_non_null(strstr(r.body, "\"status\":\"loading\""));
    assert_non_null(strstr(r.body, "\"live\":true"));
    http_response_done(&r);
    /* What comes while the model is loading waits for it. */
    http_post_json(rig->port, SPEECH, "{\"input\":\"frames=1\"}", &r);
    assert_int_equal(r.status, 200);
    http_response_done(&r);
    http_ask(rig->port, "GET", "/health", "", NULL, 0, &r);
    assert_int_equal(r.status, 200);
    assert_non_null(strstr(r.body, "\"wanted\":\"GPU\",\"actual\":\"GPU\""));
    http_response_done(&r);
    http_ask(rig->port, "GET", "/v1/models", "", NULL, 0, &r);
    assert_int_equal(r.status, 200);
    assert_string_equal(r.body,
            "{\"object\":\"list\",\"data\":[{\"id\":\"fake\",\"object\":\"model\","
            "\"created\":0,\"owned_by\":\"sluice\"}]}");
    http_response_done(&r);
    http_ask(rig->port, "GET", "/v1/models/fake", "", NULL, 0, &r);
    assert_int_equal(r.status, 200);
    http_response_done(&r);
    http_ask(rig->port, "GET", "/v1/models/other", "", NULL, 0, &r);
    expect_error(&r, 404, "model");
    http_response_done(&r);
    http_ask(rig->port, "OPTIONS", "/v1/models", "Origin: http://localhost\r\n", NULL, 0, &r);
    assert_int_equal(r.status, 204);
    http_expect_header(&r, "Allow", "GET, HEAD, OPTIONS");
    assert_null(strstr(r.head, "Access-Control"));
    http_response_done(&r);
}

static void test_G5_12_head_and_the_page(void **state)
{
    const server_rig *rig = *state;
    http_response r;
    char etag[80];
    char head[120];
    http_ask(rig->port, "GET", "/", "", NULL, 0, &r);
    assert_int_equal(r.status, 200);
    http_expect_header(&r, "Content-Type", "text/html; charset=utf-8");
    http_expect_header(&r, "X-Content-Type-Options", "nosniff");
    http_expect_header(&r, "X-Frame-Options", "DENY");
    assert_non_null(http_header(&r, "Content-Security-Policy", head, sizeof head));
    assert_non_null(http_header(&r, "ETag", etag, sizeof etag));
    http_response_done(&r);
    snprintf(head, sizeof head, "If-None-Match: %s\r\n", etag);
    http_ask(rig->port, "GET", "/", head, NULL, 0, &r);
    assert_int_equal(r.status, 304);
    http_response_done(&r);
    int fd = http_connect(rig->port, 0);
    static const char ask[] = "HEAD / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    char answer[2048] = {0};
    assert_true(http_send(fd, ask, sizeof ask - 1));
    size_t n = http_receive(fd, answer, sizeof answer - 1);
    assert_memory_equal(answer, "HTTP/1.1 200", 12);
    assert_memory_equal(answer + n - 4, "\r\n\r\n", 4);
    close(fd);
}

static void test_unknown_places_and_methods(void **state)
{
    const server_rig *rig = *state;
    static const char *const paths[] = {"/nowhere", "/v1/audio/speech/", "/v1", "/../etc/passwd",
            "/%2e%2e/x", "/index.html/..", "/%", "/%00", "//", "/v1/audio/voices//"};
    http_response r;
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        http_ask(rig->port, "GET", paths[i], "", NULL, 0, &r);
        assert_true(r.status == 404 || r.status == 405);
        http_response_done(&r);
    }
    http_ask(rig->port, "GET", SPEECH, "", NULL, 0, &r);
    expect_error(&r, 405, NULL);
    http_expect_header(&r, "Allow", "POST");
    http_response_done(&r);
    http_ask(rig->port, "DELETE", "/", "", NULL, 0, &r);
    expect_error(&r, 405, NULL);
    http_response_done(&r);
}

static void test_strangers_are_refused(void **state)
{
    const server_rig *rig = *state;
    http_response r;
    /* A page of another site: also with requests that browsers send without asking first. */
    http_ask(rig->port, "POST", "/sleep?level=3", "Origin: http://evil.example\r\n", "", 0, &r);
    expect_error(&r, 403, NULL);
    http_response_done(&r);
    assert_int_equal(atomic_load(&rig->fake.n_sleeps), 0);
    /* A foreign name that was made to mean this machine. */
    int fd = http_connect(rig->port, 0);
    static const char ask[] = "GET /health HTTP/1.1\r\nHost: evil.example\r\n\r\n";
    assert_true(http_send(fd, ask, sizeof ask - 1));
    http_read_response(fd, &r);
    expect_error(&r, 403, NULL);
    http_response_done(&r);
    close(fd);
}

static void test_cors_for_one_origin(void **state)
{
    server_rig *rig = *state;
    http_response r;
    rig->opts.cors_origin = "http://app.example";
    server_rig_start(rig);
    http_ask(rig->port, "OPTIONS", SPEECH, "Origin: http://app.example\r\n", NULL, 0, &r);
    assert_int_equal(r.status, 204);
    http_expect_header(&r, "Access-Control-Allow-Origin", "http://app.example");
    http_expect_header(&r, "Access-Control-Allow-Methods", "POST");
    http_response_done(&r);
    http_ask(rig->port, "GET", "/health", "Origin: http://app.example\r\n", NULL, 0, &r);
    assert_int_equal(r.status, 200);
    http_response_done(&r);
    http_ask(rig->port, "GET", "/health", "Origin: http://evil.example\r\n", NULL, 0, &r);
    assert_int_equal(r.status, 403);
    http_response_done(&r);
}

static void test_api_key(void **state)
{
    server_rig *rig = *state;
    static const struct {
        const char *headers;
        int status;
    } cases[] = {
            {"", 401},
            {"Authorization: Bearer wrong-key\r\n", 401},
            {"Authorization: Bearer \r\n", 401},
            {"Authorization: Basic secret-key\r\n", 401},
            {"X-API-Key: secret\r\n", 401},
            {"Authorization: Bearer secret-key\r\n", 200},
            {"X-API-Key: secret-key\r\n", 200},
    };
    http_response r;
    rig->opts.api_key = "secret-key";
    server_rig_start(rig);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        http_ask(rig->port, "GET", "/v1/models", cases[i].headers, NULL, 0, &r);
        assert_int_equal(r.status, cases[i].status);
        http_response_done(&r);
    }
    static const char *const closed[] = {"/metrics", "/residency", VOICES};
    for (size_t i = 0; i < sizeof closed / sizeof closed[0]; i++) {
        http_ask(rig->port, "GET", closed[i], "", NULL, 0, &r);
        expect_error(&r, 401, NULL);
        http_response_done(&r);
    }
    static const char *const open[] = {"/", "/health"};
    for (size_t i = 0; i < sizeof open / sizeof open[0]; i++) {
        http_ask(rig->port, "GET", open[i], "", NULL, 0, &r);
        assert_int_equal(r.status, 200);
        http_response_done(&r);
    }
}

/* ---- voices ---- */

typedef struct form {
    char *data;
    size_t n;
} form;

static void form_add(form *f, const char *name, const char *file, const void *data, size_t n)
{
    char head[1200];
    int n_head = snprintf(head, sizeof head,
            "--BOUND\r\nContent-Disposition: form-data; name=\"%s\"%s%s%s\r\n\r\n", name,
            file ? "; filename=\"" : "", file ? file : "", file ? "\"" : "");
    f->data = realloc(f->data, f->n + (size_t)n_head + n + 32);
    memcpy(f->data + f->n, head, (size_t)n_head);
    memcpy(f->data + f->n + n_head, data, n);
    f->n += (size_t)n_head + n;
    memcpy(f->data + f->n, "\r\n", 2);
    f->n += 2;
}

static void form_add_text(form *f, const char *name, const char *text)
{
    form_add(f, name, NULL, text, strlen(text));
}

static void form_post(const server_rig *rig, const char *path, form *f, http_response *ret)
{
    memcpy(f->data + f->n, "--BOUND--\r\n", 11);
    http_ask(rig->port, "POST", path, "Content-Type: multipart/form-data; boundary=BOUND\r\n",
            f->data, f->n + 11, ret);
    free(f->data);
    *f = (form){0};
}

static char *read_reference(size_t *ret_n)
{
    char path[512];
    return test_read_file(test_data(path, sizeof path, "tiny/ref.wav"), ret_n);
}

static void add_voice(const server_rig *rig, const char *name, bool overwrite, http_response *ret)
{
    size_t n = 0;
    char *wav = read_reference(&n);
    form f = {0};
    form_add_text(&f, "name", name);
    form_add_text(&f, "transcript", "hello");
    if (overwrite) {
        form_add_text(&f, "overwrite", "true");
    }
    form_add(&f, "file", "me.wav", wav, n);
    form_post(rig, VOICES, &f, ret);
    free(wav);
}

static void test_voices_come_and_go(void **state)
{
    const server_rig *rig = *state;
    http_response r;
    char path[600];
    struct stat st;
    add_voice(rig, "ann", false, &r);
    assert_int_equal(r.status, 201);
    assert_non_null(strstr(r.body, "\"id\":\"ann\""));
    http_response_done(&r);
    assert_int_equal(stat(test_path(path, sizeof path, rig->dir, "ann.s2voice"), &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    add_voice(rig, "ann", false, &r);
    expect_error(&r, 409, "name");
    http_response_done(&r);
    add_voice(rig, "ann", true, &r);
    assert_int_equal(r.status, 201);
    http_response_done(&r);
    http_ask(rig->port, "GET", VOICES, "", NULL, 0, &r);
    assert_non_null(strstr(r.body, "\"voices\":[\"ann\"]"));
    http_response_done(&r);
    http_post_json(rig->port, SPEECH, "{\"input\":\"frames=1\",\"voice\":\"ann\"}", &r);
    assert_int_equal(r.status, 200);
    http_response_done(&r);
    http_ask(rig->port, "DELETE", VOICES "/ann", "", NULL, 0, &r);
    assert_int_equal(r.status, 200);
    http_response_done(&r);
    http_ask(rig->port, "DELETE", VOICES "/ann", "", NULL, 0, &r);
    expect_error(&r, 404, "voice");
    http_response_done(&r);
    http_post_json(rig->port, SPEECH, "{\"input\":\"frames=1\",\"voice\":\"ann\"}", &r);
    expect_error(&r, 404, "voice");
    http_response_done(&r);
}

static void test_usual_names_mean_the_default_voice(void **state)
{
    server_rig *rig = *state;
    http_response r;
    server_rig_start(rig);
    add_voice(rig, "house", false, &r);
    http_response_done(&r);
    add_voice(rig, "nova", false, &r);
    http_response_done(&r);
    server_close(&rig->server);
    rig->opts.default_voice = "house";
    server_rig_start(rig);
    /* A recording of 2205 samples is a voice of two frames for the fake. */
    static const char *const names[] = {"\"alloy\"", "\"nova\"", "\"house\"", "null"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char json[160];
        snprintf(json, sizeof json,
                "{\"input\":\"noise "
                "frames=1\",\"response_format\":\"wav\",\"seed\":1,\"voice\":%s}",
                names[i]);
        http_post_json(rig->port, SPEECH, json, &r);
        assert_int_equal(r.status, 200);
        int16_t want = s2_pcm_s16(fake_noise(1, 2, 100));
        const unsigned char *p = (const unsigned char *)r.body + 44 + 200;
        assert_int_equal((int16_t)(p[0] | p[1] << 8), want);
        http_response_done(&r);
    }
}

static void test_G4_20_names_are_never_paths(void **state)
{
    const server_rig *rig = *state;
    static const char *const names[] = {"../../etc/passwd", "..%2fx", "/abs", "a/b", "a\\\\b", ".",
            "", "..", "CON", "con", "a b", "ann.s2voice", "\xc3\xa4"};
    char longest[301];
    memset(longest, 'a', 300);
    longest[300] = '\0';
    http_response r;
    for (size_t i = 0; i <= sizeof names / sizeof names[0]; i++) {
        const char *name = i < sizeof names / sizeof names[0] ? names[i] : longest;
        char json[500];
        snprintf(json, sizeof json, "{\"input\":\"frames=1\",\"voice\":\"%s\"}", name);
        expect_refused(rig, json, 400, "voice");
        add_voice(rig, name, false, &r);
        expect_error(&r, 400, "name");
        http_response_done(&r);
    }
    static const char *const deletes[] = {"/..%2f..%2fx", "/%2e%2e", "/a%2fb", "/v%00x", "/CON"};
    for (size_t i = 0; i < sizeof deletes / sizeof deletes[0]; i++) {
        char path[100];
        snprintf(path, sizeof path, VOICES "%s", deletes[i]);
        http_ask(rig->port, "DELETE", path, "", NULL, 0, &r);
        assert_true(r.status == 400 || r.status == 404);
        http_response_done(&r);
    }
    form f = {0};
    form_add_text(&f, "text", "frames=1");
    form_add_text(&f, "voice_dir", "/tmp");
    form_post(rig, "/generate", &f, &r);
    assert_int_equal(r.status, 400);
    http_response_done(&r);
    http_ask(rig->port, "GET", VOICES, "", NULL, 0, &r);
    assert_non_null(strstr(r.body, "\"voices\":[]"));
    http_response_done(&r);
}

static void test_voice_uploads_that_are_none(void **state)
{
    const server_rig *rig = *state;
    size_t n = 0;
    char *wav = read_reference(&n);
    http_response r;
    for (int i = 0; i < 6; i++) {
        static const int statuses[] = {400, 400, 400, 400, 400, 413};
        form f = {0};
        if (i != 0) {
            form_add_text(&f, "name", "x");
        }
        if (i != 1) {
            form_add_text(&f, "transcript", i == 2 ? "\xff" : "hello");
        }
        if (i == 3) {
            form_add(&f, "file", "a.wav", "", 0);
        } else if (i == 4) {
            form_add(&f, "file", "a.wav", "<html>no</html>", 15);
        } else if (i == 5) {
            char *large = calloc(1, 40u << 20);
            form_add(&f, "file", "a.wav", large, 40u << 20);
            free(large);
        } else {
            form_add(&f, "file", "a.wav", wav, n);
        }
        form_post(rig, VOICES, &f, &r);
        /* The fake takes any transcript, so bad UTF-8 is found when the voice is saved. */
        if (r.status != statuses[i]) {
            fail_msg("upload %d: %d %s", i, r.status, r.body);
        }
        http_response_done(&r);
    }
    free(wav);
}

static void test_G5_15_json_and_form_make_the_same_voice(void **state)
{
    const server_rig *rig = *state;
    size_t n = 0;
    char *wav = read_reference(&n);
    http_response r;
    add_voice(rig, "by-form", false, &r);
    assert_int_equal(r.status, 201);
    http_response_done(&r);
    char *text = malloc(base64_bound(n) + 1);
    size_t n_text = base64_encode(wav, n, text);
    char *json = malloc(2 * n_text + 200);
    size_t at = (size_t)snprintf(
            json, 200, "{\"name\":\"by-json\",\"transcript\":\"hello\",\"file\":\"");
    for (size_t i = 0; i < n_text; i++) {
        json[at++] = text[i];
        if (i % 76 == 75) { /* as tools wrap it */
            json[at++] = '\\';
            json[at++] = 'n';
        }
    }
    memcpy(json + at, "\"}", 3);
    http_post_json(rig->port, VOICES, json, &r);
    assert_int_equal(r.status, 201);
    http_response_done(&r);
    char path[600];
    size_t n_form = 0;
    size_t n_json = 0;
    char *a = test_read_file(test_path(path, sizeof path, rig->dir, "by-form.s2voice"), &n_form);
    char *b = test_read_file(test_path(path, sizeof path, rig->dir, "by-json.s2voice"), &n_json);
    assert_int_equal(n_form, n_json);
    assert_memory_equal(a, b, n_form);
    free(a);
    free(b);
    free(json);
    free(text);
    free(wav);
}

static void test_a_folder_that_cannot_be_written(void **state)
{
    server_rig *rig = *state;
    http_response r;
    /* A file where the folder should be: root is not stopped by permissions. */
    char path[600];
    test_write_file(test_path(path, sizeof path, rig->dir, "file"), "x", 1);
    rig->opts.voice_dir = path;
    server_rig_start(rig);
    add_voice(rig, "ann", false, &r);
    assert_true(r.status >= 400);
    assert_null(strstr(r.body, rig->dir));
    http_response_done(&r);
    http_post_json(rig->port, SPEECH, "{\"input\":\"frames=1\"}", &r);
    assert_int_equal(r.status, 200);
    http_response_done(&r);
}

static void test_only_so_many_voices(void **state)
{
    server_rig *rig = *state;
    http_response r;
    rig->opts.limits.n_voices = 1;
    server_rig_start(rig);
    add_voice(rig, "one", false, &r);
    assert_int_equal(r.status, 201);
    http_response_done(&r);
    add_voice(rig, "two", false, &r);
    expect_error(&r, 409, NULL);
    http_response_done(&r);
    add_voice(rig, "one", true, &r);
    assert_int_equal(r.status, 201);
    http_response_done(&r);
}

/* ---- the form API ---- */

static void generate(
        const server_rig *rig, const char *text, const char *params, http_response *ret)
{
    form f = {0};
    if (text) {
        form_add_text(&f, "text", text);
    }
    if (params) {
        form_add_text(&f, "params", params);
    }
    if (!text && !params) {
        form_add_text(&f, "other", "x");
    }
    form_post(rig, "/generate", &f, ret);
}

static void test_generate_one_shot_is_a_wav_of_floats(void **state)
{
    const server_rig *rig = *state;
    http_response r;
    generate(rig, "frames=2", NULL, &r);
    assert_int_equal(r.status, 200);
    http_expect_header(&r, "Content-Type", "audio/wav");
    http_expect_header(&r, "Content-Disposition", "attachment; filename=\"generated_audio.wav\"");
    assert_false(r.is_chunked);
    http_expect_header(&r, "X-Audio-Sample-Rate", "44100");
    char buf[64];
    assert_non_null(http_header(&r, "X-Request-Start", buf, sizeof buf));
    assert_int_equal(r.n_body, 44 + 4 * 2 * FAKE_FRAME);
    assert_int_equal(http_le32(r.body + 4), r.n_body - 8);
    assert_int_equal(r.body[20], 3);
    assert_int_equal(http_le32(r.body + 24), FAKE_RATE);
    assert_int_equal(http_le32(r.body + 40), r.n_body - 44);
    float sample = 0;
    memcpy(&sample, r.body + 44 + 4 * 11, 4);
    assert_true(sample > 0.49f && sample < 0.51f); /* a quarter of the way round 1 kHz */
    http_response_done(&r);
}

static void test_generate_streams(void **state)
{
    const server_rig *rig = *state;
    http_response r;
    generate(rig, "frames=2", "{\"stream\":true}", &r);
    assert_int_equal(r.status, 200);
    assert_false(r.is_chunked);
    assert_int_equal(r.body[20], 1);
    assert_int_equal(http_le32(r.body + 40), 2 * 2 * FAKE_FRAME);
    http_response_done(&r);
    generate(rig, "frames=2", "{\"stream\":true,\"realtime\":true}", &r);
    assert_true(r.is_chunked && r.is_complete);
    assert_int_equal(r.n_body, 44 + 2 * 2 * FAKE_FRAME);
    http_response_done(&r);
    generate(rig, "frames=2",
            "{\"stream\":true,\"chunked\":true,\"output_format\":\"PCM16\",\"low_latency\":true}",
            &r);
    assert_true(r.is_chunked && r.is_complete);
    http_expect_header(&r, "Content-Type", "audio/L16; rate=44100; channels=1");
    http_expect_header(&r, "X-Audio-Sample-Rate", "44100");
    http_expect_header(&r, "X-Audio-Channels", "1");
    http_expect_header(&r, "X-Audio-Encoding", "pcm_s16le");
    assert_int_equal(r.n_body, 2 * 2 * FAKE_FRAME);
    http_response_done(&r);
    static const struct {
        const char *params;
        unsigned pause_ms;
    } pauses[] = {
            {"{\"segment_sentences\":true,\"output_format\":\"s16le\"}", 180},
            {"{\"segment_sentences\":true,\"sentence_pause_ms\":25,\"output_format\":\"s16le\"}",
                    25},
            {"{\"segment_sentences\":true,\"sentence_pause_ms\":-5,\"output_format\":\"s16le\"}",
                    0},
            {"{\"segment_sentences\":true,\"sentence_pause_ms\":99999,\"output_format\":\"s16le\"}",
                    10000},
            {"{\"sentence_pause_ms\":25}", 0}, /* one piece */
    };
    for (size_t i = 0; i < sizeof pauses / sizeof pauses[0]; i++) {
        generate(rig, "frames=2", pauses[i].params, &r);
        assert_int_equal(r.status, 200);
        assert_int_equal(atomic_load(&rig->fake.pause_ms), pauses[i].pause_ms);
        http_response_done(&r);
    }
}

static void test_generate_says_what_is_wrong_as_its_clients_know_it(void **state)
{
    const server_rig *rig = *state;
    static const struct {
        const char *text;
        const char *params;
        const char *message;
    } cases[] = {
            {NULL, "{}", "No text field in multipart form"},
            {"x", "{", "JSON parse error"},
            {"x", "[]", "Params JSON must be an object"},
            {"x", "{\"top_k\":\"1\"}", "Invalid params JSON: top_k"},
            {"x", "{\"stream\":1}", "Invalid params JSON: stream"},
            {"x", "{\"n_threads\":1.5}", "Invalid params JSON: n_threads"},
            {"x", "{\"verbose\":0}", "Invalid params JSON: verbose"},
            {"x", "{\"temperature\":\"hot\"}", "Invalid params JSON: temperature"},
            {"x", "{\"voice\":3}", "Invalid params JSON: voice"},
            {"x", "{\"max_new_tokens\":0}", "max_new_tokens"},
            {"x", "{\"output_format\":\"mp3\"}", "output_format"},
            {"x", "{\"voice_dir\":\"/tmp\"}", "voice_dir"},
    };
    http_response r;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        generate(rig, cases[i].text, cases[i].params, &r);
        assert_int_equal(r.status, 400);
        if (!strstr(r.body, cases[i].message)) {
            fail_msg("case %zu: %s", i, r.body);
        }
        http_response_done(&r);
    }
    http_post_json(rig->port, "/generate", "{\"text\":\"x\"}", &r);
    assert_int_equal(r.status, 400);
    http_response_done(&r);
    http_ask(rig->port, "POST", "/generate", "Content-Type: application/x-www-form-urlencoded\r\n",
            "text=x", 6, &r);
    assert_int_equal(r.status, 400);
    http_response_done(&r);
}

static void test_generate_with_a_reference_and_its_aliases(void **state)
{
    const server_rig *rig = *state;
    static const char *const files[] = {
            "reference", "reference_audio", "prompt_audio", "ref_audio"};
    static const char *const texts[] = {"reference_text", "ref_text", "prompt_text", NULL};
    size_t n = 0;
    char *wav = read_reference(&n);
    http_response r;
    for (size_t i = 0; i < 4; i++) {
        form f = {0};
        form_add_text(&f, "text", "noise frames=1");
        form_add(&f, files[i], "r.wav", wav, n);
        if (texts[i]) {
            form_add_text(&f, texts[i], "hello");
        }
        form_post(rig, "/generate", &f, &r);
        assert_int_equal(r.status, texts[i] ? 200 : 400);
        if (!texts[i]) {
            assert_non_null(strstr(r.body, "reference_text"));
        }
        http_response_done(&r);
    }
    assert_int_equal(atomic_load(&rig->fake.n_voices), 3);
    /* A recording that is none is an error, not another voice. */
    form f = {0};
    form_add_text(&f, "text", "frames=1");
    form_add(&f, "reference", "r.wav", "RIFFnothing", 11);
    form_add_text(&f, "ref_text", "hello");
    form_post(rig, "/generate", &f, &r);
    assert_int_equal(r.status, 400);
    assert_null(strstr(r.body, "/proc"));
    http_response_done(&r);
    free(wav);
}

/* ---- bodies and limits ---- */

/* `head`, n letters, `tail`; free() it. */
static char *make_text(const char *head, size_t n, const char *tail)
{
    size_t n_head = strlen(head);
    size_t n_all = n_head + n + strlen(tail) + 1;
    char *text = calloc(1, n_all);
    assert_non_null(text);
    snprintf(text, n_all, "%s", head);
    memset(text + n_head, 'x', n);
    snprintf(text + n_head + n, n_all - n_head - n, "%s", tail);
    return text;
}

static void test_G5_15_too_large_is_413_before_it_is_sent(void **state)
{
    const server_rig *rig = *state;
    static const char *const paths[] = {SPEECH, VOICES, "/generate", "/sleep"};
    for (size_t i = 0; i < 4; i++) {
        char head[200];
        http_response r;
        int fd = http_connect(rig->port, 0);
        int n = snprintf(head, sizeof head,
                "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10737418240\r\n\r\n",
                paths[i]);
        assert_true(http_send(fd, head, (size_t)n));
        http_read_response(fd, &r);
        expect_error(&r, 413, NULL);
        http_response_done(&r);
        close(fd);
    }
}

static void test_G5_15_endless_chunks_are_cut(void **state)
{
    const server_rig *rig = *state;
    static const char head[] = "POST /v1/audio/speech HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
                               "application/json\r\nTransfer-Encoding: chunked\r\n\r\n";
    uint64_t before = sl__process_rss().anon_bytes;
    http_response r;
    int fd = http_connect(rig->port, 0);
    assert_true(http_send(fd, head, sizeof head - 1));
    char *chunk = make_text("10000\r\n", 65536, "\r\n");
    bool is_open = true;
    for (int i = 0; i < 16384 && is_open; i++) { /* a gigabyte */
        is_open = http_send(fd, chunk, 65536 + 9);
    }
    assert_false(is_open);
    http_read_response(fd, &r);
    assert_true(
            r.status == 413 || r.status == 0); /* what was sent may be lost with the connection */
    http_response_done(&r);
    close(fd);
    free(chunk);
    assert_true(sl__process_rss().anon_bytes < before + (UINT64_C(16) << 20));
    /* One that is only a little too large is told why. */
    size_t n = 600000;
    char *json = make_text("{\"input\":\"", n - 10, "");
    fd = http_connect(rig->port, 0);
    assert_true(http_send(fd, head, sizeof head - 1));
    char line[16];
    int n_line = snprintf(line, sizeof line, "%zx\r\n", n);
    bool is_sent = http_send(fd, line, (size_t)n_line) && http_send(fd, json, n) &&
                   http_send(fd, "\r\n0\r\n\r\n", 7);
    assert_true(is_sent);
    http_read_response(fd, &r);
    assert_int_equal(r.status, 413);
    http_response_done(&r);
    close(fd);
    free(json);
}

static void test_G5_15_expect_100_continue(void **state)
{
    const server_rig *rig = *state;
    static const char body[] = "{\"input\":\"frames=1\",\"response_format\":\"pcm\"}";
    char head[300];
    char line[26] = {0};
    http_response r;
    int fd = http_connect(rig->port, 0);
    int n = snprintf(head, sizeof head,
            "POST " SPEECH " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            "Content-Length: %zu\r\nExpect: 100-continue\r\n\r\n",
            sizeof body - 1);
    assert_true(http_send(fd, head, (size_t)n));
    assert_int_equal(http_receive(fd, line, 25), 25);
    assert_string_equal(line, "HTTP/1.1 100 Continue\r\n\r\n");
    assert_true(http_send(fd, body, sizeof body - 1));
    http_read_response(fd, &r);
    assert_int_equal(r.status, 200);
    http_response_done(&r);
    close(fd);
}

static void test_G5_15_types_and_long_texts(void **state)
{
    const server_rig *rig = *state;
    http_response r;
    http_ask(rig->port, "POST", SPEECH, "", "{\"input\":\"frames=1\"}", 20, &r);
    assert_int_equal(r.status, 200); /* no type: it is JSON, or it is not */
    http_response_done(&r);
    http_ask(rig->port, "POST", SPEECH, "Content-Type: text/plain\r\n", "{\"input\":\"frames=1\"}",
            20, &r);
    expect_error(&r, 415, NULL);
    http_response_done(&r);
    http_ask(rig->port, "POST", VOICES, "", "x", 1, &r);
    expect_error(&r, 415, NULL);
    http_response_done(&r);
    size_t n = 65537;
    char *json = make_text("{\"input\":\"", n, "\"}");
    http_post_json(rig->port, SPEECH, json, &r);
    expect_error(&r, 413, "input");
    http_response_done(&r);
    free(json);
}

static void test_slow_heads_and_bodies_are_cut(void **state)
{
    server_rig *rig = *state;
    rig->opts.limits.head_ns = 400 * MS;
    server_rig_start(rig);
    static const char *const starts[] = {"", "GET /health HTTP/1.1\r\nHost: loc",
            "POST " SPEECH " HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{\"in"};
    int fds[3];
    for (size_t i = 0; i < 3; i++) {
        fds[i] = http_connect(rig->port, 0);
        assert_true(http_send(fds[i], starts[i], strlen(starts[i])));
    }
    bool are_open = true;
    for (int k = 0; k < 100 && are_open; k++) { /* a byte now and then does not help */
        sl__sleep_ns(50 * MS);
        are_open = http_send(fds[1], "x", 1) && http_send(fds[2], "x", 1);
    }
    assert_false(are_open);
    for (size_t i = 0; i < 3; i++) {
        char c[64];
        assert_true(http_receive(fds[i], c, sizeof c) < sizeof c);
        close(fds[i]);
    }
    http_response r;
    http_ask(rig->port, "GET", "/health", "", NULL, 0, &r);
    assert_int_equal(r.status, 200);
    http_response_done(&r);
}

static void test_many_requests_on_one_connection(void **state)
{
    const server_rig *rig = *state;
    int fd = http_connect(rig->port, 0);
    static const char *const asks[] = {
            "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n",
            "POST " SPEECH " HTTP/1.1\r\nHost: localhost\r\nContent-Length: 45\r\n\r\n"
            "{\"input\":\"frames=2\",\"response_format\":\"pcm\"} ",
            "GET /nowhere HTTP/1.1\r\nHost: localhost\r\n\r\n",
            "POST " SPEECH " HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}",
    };
    static const int statuses[] = {200, 200, 404, 400};
    for (int i = 0; i < 12; i++) {
        http_response r;
        assert_true(http_send(fd, asks[i % 4], strlen(asks[i % 4])));
        http_read_response(fd, &r);
        assert_int_equal(r.status, statuses[i % 4]);
        assert_true(r.is_complete);
        http_response_done(&r);
    }
    /* Two at once: the second waits for its turn on the wire. */
    assert_true(http_send(fd, asks[1], strlen(asks[1])) && http_send(fd, asks[0], strlen(asks[0])));
    for (int i = 0; i < 2; i++) {
        http_response r;
        http_read_response(fd, &r);
        assert_int_equal(r.status, 200);
        assert_true(r.is_complete);
        http_response_done(&r);
    }
    close(fd);
}

/* ---- status ---- */

static void test_residency_as_json_and_as_events(void **state)
{
    const server_rig *rig = *state;
    http_response r;
    http_ask(rig->port, "GET", "/residency", "", NULL, 0, &r);
    assert_int_equal(r.status, 200);
    json_t *json = json_loadb(r.body, r.n_body, 0, NULL);
    assert_true(json_is_object(json));
    assert_string_equal(json_string_value(json_object_get(json, "activity")), "idle");
    json_decref(json);
    http_response_done(&r);
    static const char ask[] = "GET /residency HTTP/1.1\r\nHost: localhost\r\nAccept: "
                              "text/event-stream\r\n\r\n";
    int fd = http_connect(rig->port, 0);
    assert_true(http_send(fd, ask, sizeof ask - 1));
    char buf[4096] = {0};
    size_t n = 0;
    while (!strstr(buf, "\"frames\":0") && n + 1 < sizeof buf) {
        assert_int_equal(http_receive(fd, buf + n, 1), 1);
        n++;
    }
    assert_non_null(strstr(buf, "Content-Type: text/event-stream"));
    assert_non_null(strstr(buf, "event: residency\ndata: {\"status\":\"ok\""));
    http_post_json(rig->port, SPEECH, "{\"input\":\"frames=3\"}", &r);
    http_response_done(&r);
    while (!strstr(buf, "\"frames\":3") && n + 1 < sizeof buf) {
        assert_int_equal(http_receive(fd, buf + n, 1), 1);
        n++;
    }
    assert_non_null(strstr(buf, "\"frames\":3"));
    close(fd);
}

static void test_only_so_many_listeners(void **state)
{
    const server_rig *rig = *state;
    static const char ask[] = "GET /residency HTTP/1.1\r\nHost: localhost\r\nAccept: "
                              "text/event-stream\r\n\r\n";
    int fds[17];
    for (int i = 0; i < 17; i++) {
        fds[i] = http_connect(rig->port, 0);
        assert_true(http_send(fds[i], ask, sizeof ask - 1));
        char line[13] = {0};
        assert_int_equal(http_receive(fds[i], line, 12), 12);
        assert_string_equal(line, i < 16 ? "HTTP/1.1 200" : "HTTP/1.1 429");
    }
    for (int i = 0; i < 17; i++) {
        close(fds[i]);
    }
}

static void test_metrics_count(void **state)
{
    const server_rig *rig = *state;
    http_response r;
    http_post_json(rig->port, SPEECH, "{\"input\":\"frames=5\"}", &r);
    http_response_done(&r);
    http_post_json(rig->port, SPEECH, "{\"input\":\"frames=5 fail=2\",\"stream\":false}", &r);
    http_response_done(&r);
    http_ask(rig->port, "GET", "/metrics", "", NULL, 0, &r);
    assert_int_equal(r.status, 200);
    assert_non_null(strstr(r.body, "\nsluice_spoken_total 1\n"));
    assert_non_null(strstr(r.body, "\nsluice_failed_total 1\n"));
    assert_non_null(strstr(r.body, "\nsluice_frames_total 7\n"));
    assert_non_null(strstr(r.body, "sluice_place_bytes{place=\"GPU\",kind=\"budget\"} 5000"));
    assert_non_null(
            strstr(r.body, "sluice_unit_resident{unit=\"slow\",wanted=\"GPU\",actual=\"GPU\"} 1"));
    assert_non_null(strstr(r.body, "\nsluice_unit_load_bytes_per_second{unit=\"slow\",route="
                                   "\"memcpy\"} 46300000000\n"));
    assert_non_null(
            strstr(r.body, "\nsluice_unit_load_stalls{unit=\"slow\",route=\"memcpy\"} 2\n"));
    http_response_done(&r);
}

static void test_sleep_levels_by_request(void **state)
{
    const server_rig *rig = *state;
    static const char *const bad[] = {"/sleep?level=0", "/sleep?level=4",
            "/sleep?level=", "/sleep?level=12", "/sleep?level=x", "/sleep?level=%"};
    http_response r;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        http_ask(rig->port, "POST", bad[i], "", "", 0, &r);
        expect_error(&r, 400, "level");
        http_response_done(&r);
    }
    for (int level = 1; level <= 3; level++) {
        char path[40];
        snprintf(path, sizeof path, "/sleep?level=%d", level);
        http_ask(rig->port, "POST", path, "", "", 0, &r);
        assert_int_equal(r.status, 200);
        http_response_done(&r);
        assert_int_equal(atomic_load(&rig->fake.level), level);
    }
    http_ask(rig->port, "GET", "/health", "", NULL, 0, &r);
    assert_non_null(strstr(r.body, "\"sleep_level\":3"));
    assert_non_null(strstr(r.body, "\"state\":\"absent\",\"wanted\":\"GPU\",\"actual\":null"));
    http_response_done(&r);
    http_ask(rig->port, "GET", "/sleep", "", NULL, 0, &r);
    expect_error(&r, 405, NULL);
    http_response_done(&r);
}

static void test_a_model_that_does_not_open(void **state)
{
    server_rig *rig = *state;
    sl_error err = {0};
    http_response r;
    atomic_store(&rig->fake.open_result, SL_EFORMAT);
    atomic_store(&rig->fake.open_ms, 1);
    server_rig_start(rig);
    while (!server_has_failed(rig->server, &err)) {
        sl__sleep_ns(MS);
    }
    assert_int_equal(err.code, SL_EFORMAT);
    http_ask(rig->port, "GET", "/health", "", NULL, 0, &r);
    assert_int_equal(r.status, 503);
    assert_non_null(strstr(r.body, "\"status\":\"failed\""));
    http_response_done(&r);
    http_post_json(rig->port, SPEECH, "{\"input\":\"frames=1\"}", &r);
    expect_error(&r, 503, NULL);
    http_response_done(&r);
}

#define STARTED(f)  cmocka_unit_test_setup_teardown(f, server_rig_prepare_started, server_rig_finish)
#define PREPARED(f) cmocka_unit_test_setup_teardown(f, server_rig_prepare, server_rig_finish)

int main(void)
{
    const struct CMUnitTest tests[] = {
            STARTED(test_G5_10_response_formats),
            STARTED(test_fields_are_checked_by_name),
            STARTED(test_what_other_clients_add_is_ignored_aloud),
            STARTED(test_events_carry_the_same_sound),
            PREPARED(test_G5_12_probes_of_clients),
            STARTED(test_G5_12_head_and_the_page),
            STARTED(test_unknown_places_and_methods),
            STARTED(test_strangers_are_refused),
            PREPARED(test_cors_for_one_origin),
            PREPARED(test_api_key),
            STARTED(test_voices_come_and_go),
            PREPARED(test_usual_names_mean_the_default_voice),
            STARTED(test_G4_20_names_are_never_paths),
            STARTED(test_voice_uploads_that_are_none),
            STARTED(test_G5_15_json_and_form_make_the_same_voice),
            PREPARED(test_a_folder_that_cannot_be_written),
            PREPARED(test_only_so_many_voices),
            STARTED(test_generate_one_shot_is_a_wav_of_floats),
            STARTED(test_generate_streams),
            STARTED(test_generate_says_what_is_wrong_as_its_clients_know_it),
            STARTED(test_generate_with_a_reference_and_its_aliases),
            STARTED(test_G5_15_too_large_is_413_before_it_is_sent),
            STARTED(test_G5_15_endless_chunks_are_cut),
            STARTED(test_G5_15_expect_100_continue),
            STARTED(test_G5_15_types_and_long_texts),
            PREPARED(test_slow_heads_and_bodies_are_cut),
            STARTED(test_many_requests_on_one_connection),
            STARTED(test_residency_as_json_and_as_events),
            STARTED(test_only_so_many_listeners),
            STARTED(test_metrics_count),
            STARTED(test_sleep_levels_by_request),
            PREPARED(test_a_model_that_does_not_open),
    };
    return cmocka_run_group_tests_name("serve_api", tests, NULL, NULL);
}
