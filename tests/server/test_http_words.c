/* The pure parts of the server: base64, percent escapes, hosts and keys, times and sleep plans, metrics. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base64.h"
#include "metrics.h"
#include "origin.h"
#include "sleep_plan.h"
#include "test_support.h"
#include "url.h"

#define S UINT64_C(1000000000)

static void test_base64_vectors_and_round_trip(void **state)
{
    static const char *const vectors[][2] = {{"", ""}, {"f", "Zg=="}, {"fo", "Zm8="},
            {"foo", "Zm9v"}, {"foob", "Zm9vYg=="}, {"fooba", "Zm9vYmE="}, {"foobar", "Zm9vYmFy"}};
    char text[600];
    unsigned char back[600];
    size_t n = 0;
    (void)state;
    for (size_t i = 0; i < sizeof vectors / sizeof vectors[0]; i++) {
        size_t n_in = strlen(vectors[i][0]);
        assert_int_equal(base64_encode(vectors[i][0], n_in, text), strlen(vectors[i][1]));
        assert_string_equal(text, vectors[i][1]);
        assert_true(base64_decode(text, strlen(text), back, &n));
        assert_int_equal(n, n_in);
        assert_memory_equal(back, vectors[i][0], n);
    }
    unsigned char all[256];
    for (size_t i = 0; i < sizeof all; i++) {
        all[i] = (unsigned char)i;
    }
    assert_int_equal(base64_encode(all, sizeof all, text), base64_bound(sizeof all));
    assert_true(base64_decode(text, strlen(text), back, &n));
    assert_int_equal(n, sizeof all);
    assert_memory_equal(back, all, n);
}

static void test_base64_bad_and_odd_texts(void **state)
{
    static const char *const bad[] = {"Z", "Zg==Zg", "Zg=a", "Z$==", "Zg===", "Zm9vY", "\x80\x80"};
    unsigned char back[64];
    size_t n = 0;
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_false(base64_decode(bad[i], strlen(bad[i]), back, &n));
    }
    assert_true(base64_decode("Zm9v\r\nYm Fy\t", 12, back, &n));
    assert_int_equal(n, 6);
    assert_memory_equal(back, "foobar", 6);
    assert_true(base64_decode("_-8", 3, back, &n));
    assert_int_equal(n, 2);
    assert_memory_equal(back, "\xff\xef", 2);
}

static void test_G4_20_escapes_are_decoded_once_and_strictly(void **state)
{
    static const char *const bad[] = {"%", "%4", "a%4", "%4g", "%g4", "%00", "a%00b", "%%41"};
    char buf[32];
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_false(url_decode(bad[i], strlen(bad[i]), buf, sizeof buf));
    }
    assert_true(url_decode("a%2fb%252F", 10, buf, sizeof buf));
    assert_string_equal(buf, "a/b%2F");
    assert_true(url_decode("%C3%A4", 6, buf, sizeof buf));
    assert_string_equal(buf, "\xc3\xa4");
    assert_true(url_decode("", 0, buf, sizeof buf));
    assert_string_equal(buf, "");
    assert_true(url_decode("abc", 3, buf, 4));
    assert_false(url_decode("abcd", 4, buf, 4));
    assert_false(url_decode("", 0, buf, 0));
}

static void test_query_values(void **state)
{
    char buf[8];
    (void)state;
    assert_true(url_query_get("a=1&level=2&level=3", "level", buf, sizeof buf));
    assert_string_equal(buf, "2");
    assert_true(url_query_get("level=%32", "level", buf, sizeof buf));
    assert_string_equal(buf, "2");
    assert_false(url_query_get("xlevel=2&levels=3", "level", buf, sizeof buf));
    assert_false(url_query_get("level", "level", buf, sizeof buf));
    assert_false(url_query_get("level=%zz", "level", buf, sizeof buf));
    assert_false(url_query_get("level=123456789", "level", buf, sizeof buf));
    assert_false(url_query_get("", "level", buf, sizeof buf));
    assert_true(url_query_get("&&level=&", "level", buf, sizeof buf));
    assert_string_equal(buf, "");
}

static void test_hosts_that_no_foreign_name_can_stand_for(void **state)
{
    static const char *const local[] = {"", "localhost", "LOCALHOST:3030", "a.localhost",
            "127.0.0.1:80", "192.168.1.5", "[::1]", "[::1]:3030"};
    static const char *const foreign[] = {"evil.example", "localhost.evil.example:3030",
            "evil-localhost", "127.0.0.1.evil.example", "1.2.3.4x", "x", ":80x.y"};
    (void)state;
    for (size_t i = 0; i < sizeof local / sizeof local[0]; i++) {
        assert_true(host_is_local(local[i]));
    }
    for (size_t i = 0; i + 1 < sizeof foreign / sizeof foreign[0]; i++) {
        assert_false(host_is_local(foreign[i]));
    }
    assert_true(host_is("tts.example:443", "TTS.example"));
    assert_false(host_is("tts.example.org", "tts.example"));
    assert_true(origin_is_host("http://localhost:3030", "localhost:3030"));
    assert_true(origin_is_host("https://Tts.example", "tts.example"));
    assert_false(origin_is_host("http://localhost:3031", "localhost:3030"));
    assert_false(origin_is_host("null", "localhost:3030"));
    assert_false(origin_is_host("http://", ""));
}

static void test_keys(void **state)
{
    (void)state;
    assert_true(key_is_equal("secret-key", "secret-key"));
    assert_false(key_is_equal("secret-kez", "secret-key"));
    assert_false(key_is_equal("secret-ke", "secret-key"));
    assert_false(key_is_equal("secret-keyy", "secret-key"));
    assert_false(key_is_equal("secret-keysecret-key", "secret-key"));
    assert_false(key_is_equal("", "secret-key"));
}

static void test_times(void **state)
{
    static const struct {
        const char *text;
        uint64_t ns;
    } good[] = {{"0", 0}, {"5", 5 * S}, {"5s", 5 * S}, {"250ms", S / 4}, {"2m", 120 * S},
            {"1h", 3600 * S}, {"999999999h", UINT64_C(999999999) * 3600 * S}};
    static const char *const bad[] = {
            "", "s", "5x", "-1s", "1.5s", "5 s", "9999999999", "5sm", "ms"};
    uint64_t ns = 0;
    sl_error err;
    (void)state;
    for (size_t i = 0; i + 1 < sizeof good / sizeof good[0]; i++) {
        assert_ok(duration_parse(good[i].text, "--x", &ns, &err), &err);
        assert_true(ns == good[i].ns);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(duration_parse(bad[i], "--x", &ns, &err), SL_EINVAL);
        assert_non_null(strstr(err.msg, "--x is '"));
    }
}

static void test_sleep_plans(void **state)
{
    static const char *const bad[] = {"", "60s", "60s:", "60s:0", "60s:4", ":1", "0s:1", "60s:1,",
            ",60s:1", "60s:1,60s:1", "60s:2,60s:1", "60s:1,30s:2", "300s:1,60s:3", "60s:12", "x:1"};
    sleep_plan plan;
    sl_error err;
    (void)state;
    assert_ok(sleep_plan_parse("60s:1,5m:2,900:3", &plan, &err), &err);
    assert_int_equal(sleep_plan_level(&plan, 59 * S), 0);
    assert_int_equal(sleep_plan_level(&plan, 60 * S), 1);
    assert_int_equal(sleep_plan_level(&plan, 299 * S), 1);
    assert_int_equal(sleep_plan_level(&plan, 300 * S), 2);
    assert_int_equal(sleep_plan_level(&plan, UINT64_MAX), 3);
    assert_true(sleep_plan_next_ns(&plan, 0) == 60 * S);
    assert_true(sleep_plan_next_ns(&plan, 2) == 900 * S);
    assert_true(sleep_plan_next_ns(&plan, 3) == UINT64_MAX);
    assert_ok(sleep_plan_parse("10s:3", &plan, &err), &err);
    assert_true(sleep_plan_next_ns(&plan, 0) == 10 * S);
    assert_int_equal(sleep_plan_level(&plan, 10 * S), 3);
    assert_ok(sleep_plan_parse("never", &plan, &err), &err);
    assert_true(sleep_plan_next_ns(&plan, 0) == UINT64_MAX);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        if (sleep_plan_parse(bad[i], &plan, &err) != SL_EINVAL) {
            fail_msg("'%s' was taken", bad[i]);
        }
        assert_non_null(strstr(err.msg, "--sleep-after"));
    }
}

/* Number of occurrences of a text. */
static int count(const char *text, const char *what)
{
    int n = 0;
    for (const char *at = strstr(text, what); at; at = strstr(at + 1, what)) {
        n++;
    }
    return n;
}

static void test_metrics_are_what_was_counted(void **state)
{
    static metrics m;
    metrics_now now = {.n_waiting = 3, .n_waiting_most = 32, .is_ready = 1, .sleep_level = 2};
    metrics_text text = {0};
    (void)state;
    atomic_fetch_add(&m.n_spoken, 5);
    atomic_fetch_add(&m.answers[4], 7);
    atomic_fetch_add(&m.audio_ms, 1500);
    metrics_time(&m.first_audio, S / 20);    /* on the first bound */
    metrics_time(&m.first_audio, 3 * S);     /* between 2.5 and 5 */
    metrics_time(&m.first_audio, 10000 * S); /* beyond all */
    metrics_write(&m, &now, &text);
    assert_false(text.is_dead);
    assert_non_null(strstr(text.buf, "\nsluice_spoken_total 5\n"));
    assert_non_null(strstr(text.buf, "sluice_http_requests_total{status=\"4xx\"} 7\n"));
    assert_non_null(strstr(text.buf, "\nsluice_audio_seconds_total 1.5\n"));
    assert_non_null(strstr(text.buf, "sluice_first_audio_seconds_bucket{le=\"0.05\"} 1\n"));
    assert_non_null(strstr(text.buf, "sluice_first_audio_seconds_bucket{le=\"2.5\"} 1\n"));
    assert_non_null(strstr(text.buf, "sluice_first_audio_seconds_bucket{le=\"5\"} 2\n"));
    assert_non_null(strstr(text.buf, "sluice_first_audio_seconds_bucket{le=\"60\"} 2\n"));
    assert_non_null(strstr(text.buf, "sluice_first_audio_seconds_bucket{le=\"+Inf\"} 3\n"));
    assert_non_null(strstr(text.buf, "sluice_first_audio_seconds_count 3\n"));
    assert_non_null(strstr(text.buf, "sluice_queue_waiting 3\n"));
    assert_int_equal(count(text.buf, "# HELP "), count(text.buf, "# TYPE "));
    metrics_text_done(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_base64_vectors_and_round_trip),
            cmocka_unit_test(test_base64_bad_and_odd_texts),
            cmocka_unit_test(test_G4_20_escapes_are_decoded_once_and_strictly),
            cmocka_unit_test(test_query_values),
            cmocka_unit_test(test_hosts_that_no_foreign_name_can_stand_for),
            cmocka_unit_test(test_keys),
            cmocka_unit_test(test_times),
            cmocka_unit_test(test_sleep_plans),
            cmocka_unit_test(test_metrics_are_what_was_counted),
    };
    return cmocka_run_group_tests_name("http_words", tests, NULL, NULL);
}
