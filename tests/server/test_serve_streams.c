/* The server over real sockets with a made-up engine: streams, clients that leave or do not read, queue, stop. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "http_client.h"
#include "os/os_clock.h"
#include "os/os_process.h"
#include "os/os_thread.h"
#include "s2/audio.h"
#include "server_rig.h"
#include "test_support.h"

#define SPEECH "/v1/audio/speech"
#define MS     UINT64_C(1000000)

static void test_G5_01_wav_sizes_streamed_and_whole(void **state)
{
    const server_rig *rig = *state;
    http_response r;
    char buf[64];
    http_post_json(rig->port, SPEECH,
            "{\"input\":\"noise frames=3\",\"response_format\":\"wav\",\"seed\":5}", &r);
    assert_int_equal(r.status, 200);
    assert_true(r.is_chunked && r.is_complete);
    assert_null(http_header(&r, "Content-Length", buf, sizeof buf));
    assert_memory_equal(r.body, "RIFF\xff\xff\xff\xffWAVE", 12);
    assert_int_equal(http_le32(r.body + 40), UINT32_MAX);
    assert_int_equal(r.n_body, 44 + 2 * 3 * FAKE_FRAME);
    char *samples = malloc(r.n_body);
    size_t n = r.n_body;
    memcpy(samples, r.body, n);
    http_response_done(&r);

    http_post_json(rig->port, SPEECH,
            "{\"input\":\"noise "
            "frames=3\",\"response_format\":\"wav\",\"seed\":5,\"stream\":false}",
            &r);
    assert_int_equal(r.status, 200);
    assert_false(r.is_chunked);
    assert_int_equal(r.n_body, n);
    assert_int_equal(http_le32(r.body + 4), n - 8);
    assert_int_equal(http_le32(r.body + 40), n - 44);
    assert_memory_equal(r.body + 44, samples + 44, n - 44);
    free(samples);
    http_response_done(&r);
}

/* Occurrences of four bytes. */
static size_t count4(const char *data, size_t n, const char *what)
{
    size_t hits = 0;
    for (size_t i = 0; i + 4 <= n; i++) {
        hits += memcmp(data + i, what, 4) == 0;
    }
    return hits;
}

static void test_G5_02_one_container_and_nothing_behind_it(void **state)
{
    const server_rig *rig = *state;
    static const struct {
        const char *format;
        const char *magic;
        size_t n_magic;
    } formats[] = {
            {"wav", "RIFF", 4}, {"flac", "fLaC", 4}, {"mp3", "\xff", 1}, {"opus", "OggS", 4}};
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        char json[160];
        http_response r;
        snprintf(json, sizeof json, "{\"input\":\"frames=12\",\"response_format\":\"%s\"}",
                formats[i].format);
        http_post_json(rig->port, SPEECH, json, &r);
        assert_int_equal(r.status, 200);
        assert_true(r.is_complete);
        assert_memory_equal(r.body, formats[i].magic, formats[i].n_magic);
        assert_true(count4(r.body, r.n_body, "RIFF") == (i == 0));
        assert_true(count4(r.body, r.n_body, "fLaC") == (i == 1));
        assert_true(count4(r.body, r.n_body, "LIST") == 0);
        http_response_done(&r);
    }
}

static void test_G5_03_client_goes_away_at_every_phase(void **state)
{
    server_rig *rig = *state;
    static const struct {
        const char *json;
        size_t n_read; /* bytes of the answer before it leaves */
        bool is_reset;
    } leavers[] = {
            {"{\"input\":\"frames=2000 delay_ms=5\",\"response_format\":\"pcm\"}", 4096, false},
            {"{\"input\":\"frames=2000 delay_ms=5\",\"response_format\":\"pcm\"}", 4096, true},
            {"{\"input\":\"prefill_ms=9000\",\"response_format\":\"pcm\"}", 0, false},
            {"{\"input\":\"prefill_ms=9000\",\"response_format\":\"pcm\"}", 0, true},
            {"{\"input\":\"frames=2000 delay_ms=5\",\"response_format\":\"wav\",\"stream\":false}",
                    0, false},
            {"{\"input\":\"frames=2000 delay_ms=5\",\"stream_format\":\"sse\"}", 2000, true},
    };
    for (size_t i = 0; i < sizeof leavers / sizeof leavers[0]; i++) {
        char buf[4096];
        int n_speaks = atomic_load(&rig->fake.n_speaks);
        int fd = http_begin_json(rig->port, SPEECH, leavers[i].json, 0);
        server_rig_wait(&rig->fake.n_speaks, n_speaks + 1);
        assert_int_equal(http_receive(fd, buf, leavers[i].n_read), leavers[i].n_read);
        int n_frames = atomic_load(&rig->fake.n_frames);
        if (leavers[i].is_reset) {
            http_reset(fd);
        } else {
            close(fd);
        }
        http_response r;
        http_post_json(rig->port, SPEECH,
                "{\"input\":\"noise frames=1\",\"response_format\":\"pcm\",\"seed\":9}", &r);
        assert_int_equal(r.status, 200);
        assert_true(r.is_complete);
        assert_true(atomic_load(&rig->fake.n_frames) - n_frames < 1000);
        http_response_done(&r);
    }
    server_rig_wait(&rig->n_cancelled_lines, (int)(sizeof leavers / sizeof leavers[0]));
}

static void test_G5_05_client_that_does_not_read(void **state)
{
    server_rig *rig = *state;
    rig->opts.limits.stall_ns = 600 * MS;
    rig->opts.limits.buffer_bytes = 256 << 10;
    server_rig_start(rig);
    uint64_t before = sl__process_rss().anon_bytes;
    /* Ten minutes of sound as fast as it is taken. */
    int fd = http_begin_json(
            rig->port, SPEECH, "{\"input\":\"frames=13000\",\"response_format\":\"wav\"}", 4096);
    server_rig_wait(&rig->fake.n_speaks, 1);
    server_rig_wait_idle(rig);
    /* It was stopped for not reading: the engine is free for others, and memory did not grow. */
    assert_true(atomic_load(&rig->fake.n_frames) < 6500);
    assert_true(sl__process_rss().anon_bytes < before + (UINT64_C(16) << 20));
    http_response r;
    http_post_json(rig->port, SPEECH, "{\"input\":\"frames=1\",\"response_format\":\"pcm\"}", &r);
    assert_int_equal(r.status, 200);
    http_response_done(&r);
    /* The connection was cut: the answer does not end properly. */
    http_read_response(fd, &r);
    assert_int_equal(r.status, 200);
    assert_false(r.is_complete);
    http_response_done(&r);
    close(fd);
}

static void test_G5_05_slow_reader_gets_everything(void **state)
{
    server_rig *rig = *state;
    rig->opts.limits.stall_ns = 20000 * MS;
    rig->opts.limits.buffer_bytes = 128 << 10;
    server_rig_start(rig);
    int fd = http_begin_json(rig->port, SPEECH,
            "{\"input\":\"noise frames=300\",\"response_format\":\"wav\",\"seed\":1}", 4096);
    /* Reads in sips at first, while the buffers behind it are full. */
    char head[16];
    assert_int_equal(http_receive(fd, head, sizeof head), sizeof head);
    for (int i = 0; i < 20; i++) {
        char sip[4096];
        sl__sleep_ns(20 * MS);
        assert_int_equal(http_receive(fd, sip, sizeof sip), sizeof sip);
    }
    char buf[4096];
    for (int i = 20; i < 300; i++) {
        assert_int_equal(http_receive(fd, buf, sizeof buf), sizeof buf);
    }
    assert_int_equal(atomic_load(&rig->fake.n_frames), 300);
    close(fd);
}

/* 16-bit samples of a noise, as the server makes them. */
static void expect_noise(const http_response *r, size_t offset, uint64_t seed, size_t n)
{
    assert_int_equal(r->n_body, offset + 2 * n);
    for (size_t i = 0; i < n; i++) {
        const unsigned char *p = (const unsigned char *)r->body + offset + 2 * i;
        int16_t want = s2_pcm_s16(fake_noise(seed, 0, i));
        assert_int_equal((int16_t)(p[0] | p[1] << 8), want);
    }
}

static void test_G5_16_a_burst_is_served_in_order_and_right(void **state)
{
    const server_rig *rig = *state;
    http_asker *askers = calloc(6, sizeof *askers);
    for (unsigned i = 0; i < 6; i++) {
        snprintf(askers[i].json, sizeof askers[i].json,
                "{\"input\":\"noise frames=5 delay_ms=2\",\"response_format\":\"wav\",\"seed\":%u,"
                "\"stream\":%s}",
                i, i % 2 ? "true" : "false");
        http_asker_start(&askers[i], rig->port, SPEECH);
    }
    for (unsigned i = 0; i < 6; i++) {
        http_asker_join(&askers[i]);
        assert_int_equal(askers[i].response.status, 200);
        assert_true(askers[i].response.is_complete);
        expect_noise(&askers[i].response, 44, i, 5 * FAKE_FRAME);
        http_response_done(&askers[i].response);
    }
    free(askers);
    assert_int_equal(atomic_load(&rig->fake.n_most_inside), 1);
}

/* A line of /metrics as a number; -1 if it is not there. */
static int metric(const server_rig *rig, const char *name)
{
    http_response r;
    char line[80];
    int value = -1;
    http_ask(rig->port, "GET", "/metrics", "", NULL, 0, &r);
    snprintf(line, sizeof line, "\n%s ", name);
    const char *at = strstr(r.body, line);
    if (at) {
        value = 0;
        for (at += strlen(line); *at >= '0' && *at <= '9'; at++) {
            value = 10 * value + (*at - '0');
        }
    }
    http_response_done(&r);
    return value;
}

static void wait_for_metric(const server_rig *rig, const char *name, int value)
{
    for (int i = 0; i < 5000 && metric(rig, name) != value; i++) {
        sl__sleep_ns(4 * MS);
    }
    assert_int_equal(metric(rig, name), value);
}

/* A request that is being spoken until the gate opens. */
static int begin_holder(server_rig *rig)
{
    int fd = http_begin_json(
            rig->port, SPEECH, "{\"input\":\"gated=1 frames=1\",\"response_format\":\"pcm\"}", 0);
    server_rig_wait(&rig->fake.n_speaks, 1);
    return fd;
}

static void end_holder(server_rig *rig, int fd)
{
    http_response r;
    atomic_store(&rig->fake.gate, 1);
    http_read_response(fd, &r);
    assert_int_equal(r.status, 200);
    assert_true(r.is_complete);
    http_response_done(&r);
    close(fd);
}

static void test_G5_16_beyond_the_limit_is_429(void **state)
{
    enum {
        N = 40
    };
    server_rig *rig = *state;
    rig->opts.limits.n_waiting = 8;
    server_rig_start(rig);
    int holder = begin_holder(rig);
    http_asker *askers = calloc(N, sizeof *askers);
    for (unsigned i = 0; i < N; i++) {
        snprintf(askers[i].json, sizeof askers[i].json,
                "{\"input\":\"frames=1\",\"response_format\":\"pcm\"}");
        http_asker_start(&askers[i], rig->port, SPEECH);
    }
    wait_for_metric(rig, "sluice_refused_total", N - 8);
    end_holder(rig, holder);
    int n_good = 0;
    for (unsigned i = 0; i < N; i++) {
        http_response *r = &askers[i].response;
        http_asker_join(&askers[i]);
        n_good += r->status == 200;
        if (r->status != 200) {
            assert_int_equal(r->status, 429);
            http_expect_header(r, "Retry-After", "1");
            assert_non_null(strstr(r->body, "\"type\":\"rate_limit_error\""));
        }
        http_response_done(r);
    }
    assert_int_equal(n_good, 8);
    free(askers);
}

static void test_G5_16_cancelled_in_the_queue_never_starts(void **state)
{
    server_rig *rig = *state;
    int holder = begin_holder(rig);
    int leaver = http_begin_json(
            rig->port, SPEECH, "{\"input\":\"frames=1\",\"response_format\":\"pcm\"}", 0);
    wait_for_metric(rig, "sluice_queue_waiting", 1);
    close(leaver);
    wait_for_metric(rig, "sluice_queue_waiting", 0);
    end_holder(rig, holder);
    http_response r;
    http_post_json(rig->port, SPEECH, "{\"input\":\"frames=1\",\"response_format\":\"pcm\"}", &r);
    assert_int_equal(r.status, 200);
    http_response_done(&r);
    assert_int_equal(atomic_load(&rig->fake.n_speaks), 2);
    assert_int_equal(metric(rig, "sluice_cancelled_total"), 1);
}

static void test_G5_16_waiting_too_long_is_503(void **state)
{
    server_rig *rig = *state;
    rig->opts.limits.queue_ns = 200 * MS;
    server_rig_start(rig);
    int holder = begin_holder(rig);
    http_response r;
    http_post_json(rig->port, SPEECH, "{\"input\":\"frames=1\"}", &r);
    assert_int_equal(r.status, 503);
    http_expect_header(&r, "Retry-After", "1");
    http_response_done(&r);
    end_holder(rig, holder); /* it was running, so it has its time */
}

static void test_G5_07_stop_with_streams(void **state)
{
    static const int counts[] = {0, 1, 3};
    (void)state;
    for (size_t c = 0; c < 3; c++) {
        server_rig *rig = calloc(1, sizeof *rig);
        server_rig_init(rig);
        rig->opts.stop_ns = 200 * MS;
        server_rig_start(rig);
        int fds[3];
        for (int i = 0; i < counts[c]; i++) {
            fds[i] = http_begin_json(rig->port, SPEECH,
                    "{\"input\":\"frames=5000 delay_ms=5\",\"response_format\":\"pcm\"}", 0);
        }
        if (counts[c] > 0) {
            server_rig_wait(&rig->fake.n_frames, 2);
        }
        uint64_t begin_ns = sl__now_ns();
        server_close(&rig->server);
        /* The streams would have gone on for more than 25 seconds. */
        assert_true(sl__now_ns() - begin_ns < 15000 * MS);
        for (int i = 0; i < counts[c]; i++) {
            http_response r;
            http_read_response(fds[i], &r);
            /* The running one is cut without its last chunk; those that waited are told so, or lost their line. */
            assert_true(r.status == 503 || !r.is_complete);
            http_response_done(&r);
            close(fds[i]);
        }
        server_rig_done(rig);
        free(rig);
    }
}

static void test_G5_07_stop_lets_a_short_stream_end(void **state)
{
    server_rig *rig = *state;
    rig->opts.stop_ns = 20000 * MS;
    server_rig_start(rig);
    int fd = http_begin_json(rig->port, SPEECH,
            "{\"input\":\"noise frames=20 delay_ms=10\",\"response_format\":\"wav\",\"seed\":4}",
            0);
    server_rig_wait(&rig->fake.n_frames, 2);
    server_close(&rig->server);
    http_response r;
    http_read_response(fd, &r);
    assert_true(r.is_complete);
    expect_noise(&r, 44, 4, 20 * FAKE_FRAME);
    http_response_done(&r);
    close(fd);
}

static void test_G5_07_stop_while_loading(void **state)
{
    server_rig *rig = *state;
    atomic_store(&rig->fake.open_ms, 300);
    server_rig_start(rig);
    int fd = http_begin_json(rig->port, SPEECH, "{\"input\":\"frames=1\"}", 0);
    server_close(&rig->server);
    http_response r;
    http_read_response(fd, &r);
    assert_true(r.status == 503 || r.status == 0);
    http_response_done(&r);
    close(fd);
}

static void test_G5_08_pcm_is_24_kHz(void **state)
{
    const server_rig *rig = *state;
    http_response r;
    /* 21.53 frames are a second. */
    http_post_json(rig->port, SPEECH, "{\"input\":\"frames=22\",\"response_format\":\"pcm\"}", &r);
    assert_int_equal(r.status, 200);
    http_expect_header(&r, "Content-Type", "audio/pcm");
    http_expect_header(&r, "X-Audio-Sample-Rate", "24000");
    size_t n = r.n_body / 2;
    size_t want = (size_t)22 * FAKE_FRAME * 24000 / FAKE_RATE;
    assert_in_range(n, want - 1, want + 1);
    /* A tone of 1 kHz crosses zero upwards a thousand times a second, also where frames meet. */
    size_t n_crossings = 0;
    int16_t last = -1;
    size_t longest = 0;
    size_t since = 0;
    for (size_t i = 0; i < n; i++) {
        const unsigned char *p = (const unsigned char *)r.body + 2 * i;
        int16_t v = (int16_t)(p[0] | p[1] << 8);
        since++;
        if (last < 0 && v >= 0) {
            longest = n_crossings > 2 && since > longest ? since : longest;
            since = 0;
            n_crossings++;
        }
        last = v;
    }
    assert_in_range(n_crossings, 1018, 1025);
    assert_in_range(longest, 24, 26);
    http_response_done(&r);
}

static void test_G5_13_error_before_the_first_byte(void **state)
{
    const server_rig *rig = *state;
    http_response r;
    http_post_json(rig->port, SPEECH, "{\"input\":\"frames=9 fail=0\"}", &r);
    assert_int_equal(r.status, 503);
    assert_true(r.is_complete);
    http_expect_header(&r, "Content-Type", "application/json");
    assert_non_null(strstr(r.body, "\"type\":\"server_error\""));
    http_response_done(&r);
}

static void test_G5_13_error_in_the_middle(void **state)
{
    const server_rig *rig = *state;
    http_response r;
    http_post_json(
            rig->port, SPEECH, "{\"input\":\"frames=30 fail=22\",\"response_format\":\"wav\"}", &r);
    assert_int_equal(r.status, 200);
    assert_false(r.is_complete);
    assert_int_equal(r.n_body, 44 + 2 * 22 * FAKE_FRAME);
    http_response_done(&r);
    http_post_json(rig->port, SPEECH,
            "{\"input\":\"frames=30 "
            "fail=22\",\"response_format\":\"pcm\",\"stream_format\":\"sse\"}",
            &r);
    assert_int_equal(r.status, 200);
    assert_false(r.is_complete);
    assert_non_null(strstr(r.body, "event: error\n"));
    assert_null(strstr(r.body, "speech.audio.done"));
    http_response_done(&r);
    /* A whole answer has not begun, so it can still fail properly. */
    http_post_json(rig->port, SPEECH,
            "{\"input\":\"frames=30 fail=22\",\"response_format\":\"wav\",\"stream\":false}", &r);
    assert_int_equal(r.status, 503);
    assert_true(r.is_complete);
    assert_null(strstr(r.head, "X-Audio"));
    http_response_done(&r);
}

/* Every frame comes in a chunk of its own as soon as it is made: the next one is only made when it was read. */
static void test_G5_18_a_chunk_a_frame(void **state)
{
    server_rig *rig = *state;
    char value[16];
    char data[44 + 2 * FAKE_FRAME];
    http_response r = {0};
    int fd = http_begin_json(
            rig->port, SPEECH, "{\"input\":\"gated=1 frames=12\",\"response_format\":\"wav\"}", 0);
    atomic_store(&rig->fake.gate, 1);
    assert_true(http_read_head(fd, &r));
    assert_non_null(http_header(&r, "X-Accel-Buffering", value, sizeof value));
    assert_string_equal(value, "no");
    assert_int_equal(http_read_chunk(fd, data, sizeof data), sizeof data);
    for (int i = 2; i <= 12; i++) {
        assert_int_equal(atomic_load(&rig->fake.n_frames), i - 1);
        atomic_store(&rig->fake.gate, i);
        assert_int_equal(http_read_chunk(fd, data, sizeof data), 2 * FAKE_FRAME);
    }
    assert_int_equal(http_read_chunk(fd, data, sizeof data), 0);
    close(fd);
}

static void test_G5_19_others_do_not_touch_a_running_stream(void **state)
{
    server_rig *rig = *state;
    rig->opts.sleep.after_ns[1] = 30 * MS;
    rig->opts.sleep.after_ns[2] = 60 * MS;
    server_rig_start(rig);
    http_asker a = {
            .json = "{\"input\":\"noise frames=40 delay_ms=10\",\"response_format\":\"wav\","
                    "\"seed\":3}"};
    http_asker_start(&a, rig->port, SPEECH);
    server_rig_wait(&rig->fake.n_frames, 3);
    int n_sleeps = atomic_load(&rig->fake.n_sleeps);
    http_response r;
    /* Sleep waits for its turn, another model and another voice for theirs. */
    http_asker b = {
            .json = "{\"model\":\"another\",\"input\":\"noise frames=2\",\"response_format\":"
                    "\"wav\",\"seed\":8}"};
    http_asker_start(&b, rig->port, SPEECH);
    http_ask(rig->port, "POST", "/sleep?level=2", "", "", 0, &r);
    assert_int_equal(r.status, 200);
    http_response_done(&r);
    http_asker_join(&a);
    http_asker_join(&b);
    assert_true(a.response.is_complete);
    expect_noise(&a.response, 44, 3, 40 * FAKE_FRAME);
    expect_noise(&b.response, 44, 8, 2 * FAKE_FRAME);
    assert_true(atomic_load(&rig->fake.n_sleeps) >= n_sleeps + 1);
    http_response_done(&a.response);
    http_response_done(&b.response);
}

static void test_idle_server_goes_to_sleep_and_wakes(void **state)
{
    server_rig *rig = *state;
    rig->opts.sleep.after_ns[1] = 50 * MS;
    rig->opts.sleep.after_ns[3] = 150 * MS;
    server_rig_start(rig);
    http_response r;
    server_rig_wait(&rig->fake.level, 1);
    /* Health and metrics do not keep it awake. */
    while (atomic_load(&rig->fake.level) < 3) {
        http_ask(rig->port, "GET", "/health", "", NULL, 0, &r);
        assert_int_equal(r.status, 200);
        http_response_done(&r);
    }
    assert_in_range(atomic_load(&rig->fake.n_sleeps), 1, 2);
    http_ask(rig->port, "POST", "/wake", "", "", 0, &r);
    assert_int_equal(r.status, 200);
    assert_non_null(strstr(r.body, "\"sleep_level\":0"));
    http_response_done(&r);
    server_rig_wait(&rig->fake.level, 3);
    http_post_json(rig->port, SPEECH, "{\"input\":\"frames=1\",\"response_format\":\"pcm\"}", &r);
    assert_int_equal(r.status, 200);
    http_response_done(&r);
}

#define STARTED(f)  cmocka_unit_test_setup_teardown(f, server_rig_prepare_started, server_rig_finish)
#define PREPARED(f) cmocka_unit_test_setup_teardown(f, server_rig_prepare, server_rig_finish)

int main(void)
{
    const struct CMUnitTest tests[] = {
            STARTED(test_G5_01_wav_sizes_streamed_and_whole),
            STARTED(test_G5_02_one_container_and_nothing_behind_it),
            STARTED(test_G5_03_client_goes_away_at_every_phase),
            PREPARED(test_G5_05_client_that_does_not_read),
            PREPARED(test_G5_05_slow_reader_gets_everything),
            cmocka_unit_test(test_G5_07_stop_with_streams),
            PREPARED(test_G5_07_stop_lets_a_short_stream_end),
            PREPARED(test_G5_07_stop_while_loading),
            STARTED(test_G5_08_pcm_is_24_kHz),
            STARTED(test_G5_13_error_before_the_first_byte),
            STARTED(test_G5_13_error_in_the_middle),
            STARTED(test_G5_16_a_burst_is_served_in_order_and_right),
            PREPARED(test_G5_16_beyond_the_limit_is_429),
            STARTED(test_G5_16_cancelled_in_the_queue_never_starts),
            PREPARED(test_G5_16_waiting_too_long_is_503),
            STARTED(test_G5_18_a_chunk_a_frame),
            PREPARED(test_G5_19_others_do_not_touch_a_running_stream),
            PREPARED(test_idle_server_goes_to_sleep_and_wakes),
    };
    return cmocka_run_group_tests_name("serve_streams", tests, NULL, NULL);
}
