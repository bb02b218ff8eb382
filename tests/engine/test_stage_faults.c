/*
 * What goes wrong on a device while it is moved to and computed on: every call fails once, waits are given up at every
 * point, requests follow each other a thousand times. A request that fails does so with one line, and the next is good.
 */
#include "engine/stage.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "speak_rig.h"
#include "test_support.h"

#define N_FRAMES 3

/* Calls of a kind in so many requests are fewer than that. */
#define N_REQUESTS 2
#define N_MOST     200

#if defined(__SANITIZE_ADDRESS__)
/* Freed memory is kept for a while, and everything is slower. */
#define N_CYCLES         100
#define N_ENGINES        16
#define RSS_GROWTH_BYTES (INT64_C(300) << 20)
#define STOP_STEP        97
#else
#define N_CYCLES         1000
#define N_ENGINES        48
#define RSS_GROWTH_BYTES (INT64_C(1) << 20)
#define STOP_STEP        17
#endif

static spoken on_cpu;

static int set_up(void **state)
{
    rig_set_up(state);
    on_cpu = rig_speak_on_cpu(N_FRAMES);
    return 0;
}

static void speak_as_on_cpu(s2_engine *e, const char *what)
{
    spoken s = rig_speak(e, RIG_TEXT, N_FRAMES);
    assert_same_sound(&on_cpu, &s, what);
}

/* One line that says something, with a code that people can act on. */
static void assert_clean(int r, const sl_error *err, const char *what)
{
    bool is_expected = r == SL_ENOMEM || r == SL_EDEVICE || r == SL_EIO || r == SL_ECHANGED;
    if (!is_expected || err->code != r || err->msg[0] == '\0' || strchr(err->msg, '\n')) {
        fail_msg("%s: %s: '%s'", what, sl_err_name(r), err->msg);
    }
}

/* Everything leaves the device, and all that was booked is given back. */
static void assert_leaves_nothing(s2_engine *e, const char *what)
{
    sl_error err = {0};
    assert_ok(s2_engine_sleep(e, 2, &err), &err);
    assert_nothing_held(e, 1, what);
    assert_nothing_held(e, 0, what);
}

typedef struct tally {
    int n_failed;
    int n_good;
} tally;

/* Requests on a device of which one call fails, as the text says: at most one of them fails, the others are good. */
static bool speak_with_fault(const char *fault, sl_policy policy, s2_decode_when decode, tally *t)
{
    char device[96];
    char what[160];
    snprintf(device, sizeof device, RIG_DEVICE ",%s", fault);
    snprintf(what, sizeof what, "%s, %s, decode %d", fault, sl_policy_name(policy), (int)decode);
    s2_place_opts place = rig_place(device, policy, decode, 0);
    s2_engine_opts opts = rig_opts(rig_model, &place, N_FRAMES);
    s2_engine *e = NULL;
    sl_error err = {0};
    int n_failed = 0;
    int r = s2_engine_open(&opts, &e, &err);
    if (r < 0) {
        assert_null(e);
        assert_clean(r, &err, what);
        t->n_failed++;
        return true;
    }
    for (int i = 0; i < N_REQUESTS + n_failed; i++) {
        spoken s;
        err = (sl_error){0};
        r = rig_try(e, RIG_TEXT, N_FRAMES, &s, &err);
        if (r == SL_OK) {
            assert_same_sound(&on_cpu, &s, what);
            continue;
        }
        assert_clean(r, &err, what);
        n_failed++;
        if (n_failed > 1) {
            fail_msg("%s: request %d fails as well: %s", what, i + 1, err.msg);
        }
    }
    assert_leaves_nothing(e, what);
    s2_engine_close(&e);
    t->n_failed += n_failed;
    t->n_good += n_failed == 0;
    return n_failed > 0;
}

static const char *const kinds[] = {
        "alloc", "free", "upload", "copy", "event", "record", "wait", "pin", "register", "read"};
#define N_KINDS (sizeof kinds / sizeof kinds[0])

static void fail_every_call(sl_policy policy, s2_decode_when decode)
{
    tally all = {0};
    for (size_t k = 0; k < N_KINDS; k++) {
        int n_quiet = 0;
        for (int n = 1; n_quiet < 2; n++) {
            char fault[40];
            snprintf(fault, sizeof fault, "fail=%s:%d", kinds[k], n);
            n_quiet = speak_with_fault(fault, policy, decode, &all) ? 0 : n_quiet + 1;
            assert_true(n < N_MOST);
        }
    }
    print_message("%s, decode %d: %d failed cleanly, %d went well\n", sl_policy_name(policy),
            (int)decode, all.n_failed, all.n_good);
    assert_true(all.n_failed > 0);
    assert_true(all.n_good >= 2 * (int)N_KINDS);
}

static void test_G3_01_G3_05_G3_21_every_call_fails_once(void **state)
{
    (void)state;
    fail_every_call(SL_POLICY_SWAP, S2_DECODE_AFTER);
    fail_every_call(SL_POLICY_KEEP, S2_DECODE_AUTO);
#if !defined(__SANITIZE_ADDRESS__)
    fail_every_call(SL_POLICY_SWAP, S2_DECODE_TOGETHER);
    fail_every_call(SL_POLICY_HOT, S2_DECODE_AUTO);
#endif
}

static void test_a_file_that_ends_early_fails_the_request_alone(void **state)
{
    (void)state;
    tally all = {0};
    for (int n = 1; n <= 6; n++) {
        char fault[40];
        snprintf(fault, sizeof fault, "short=read:%d", n);
        speak_with_fault(fault, SL_POLICY_SWAP, S2_DECODE_AUTO, &all);
    }
    assert_int_equal(all.n_failed + all.n_good, 6);
}

/* A lost device stays lost: each request says so at once, and closing works. */
static void test_G3_26_a_lost_device_fails_requests_and_nothing_else(void **state)
{
    (void)state;
    static const char *const causes[] = {"alloc", "upload", "copy", "event", "record", "wait"};
    int n_failed = 0;
    for (size_t k = 0; k < sizeof causes / sizeof causes[0]; k++) {
        for (int n = 1; n <= 7; n += 2) {
            char device[96];
            snprintf(device, sizeof device, RIG_DEVICE ",lost=%s:%d", causes[k], n);
            s2_place_opts place = rig_place(device, SL_POLICY_SWAP, S2_DECODE_AFTER, 0);
            s2_engine_opts opts = rig_opts(rig_model, &place, N_FRAMES);
            s2_engine *e = NULL;
            sl_error err = {0};
            spoken s;
            bool is_lost = s2_engine_open(&opts, &e, &err) < 0;
            for (int i = 0; i < 3 && e; i++) {
                err = (sl_error){0};
                int r = rig_try(e, RIG_TEXT, N_FRAMES, &s, &err);
                if (r < 0) {
                    assert_clean(r, &err, device);
                    assert_non_null(strstr(err.msg, "sim"));
                } else {
                    assert_same_sound(&on_cpu, &s, device);
                    assert_false(is_lost);
                }
                is_lost |= r < 0;
            }
            n_failed += is_lost;
            s2_engine_close(&e);
            assert_null(e);
        }
    }
    assert_true(n_failed >= 12);
}

/* Says stop at the n-th question. */
typedef struct stopper {
    int n_left;
    int n_asked;
} stopper;

static bool stop_at(void *ud)
{
    stopper *s = ud;
    s->n_asked++;
    s->n_left -= s->n_left > 0;
    return s->n_left == 0;
}

static void test_a_request_is_left_at_every_point_and_the_next_is_good(void **state)
{
    (void)state;
    for (int policy = 0; policy < SL_POLICY_COUNT; policy++) {
        s2_place_opts place = rig_place(RIG_DEVICE, (sl_policy)policy, S2_DECODE_AFTER, 0);
        s2_engine *e = rig_open(rig_model, &place, N_FRAMES);
        int n_stopped = 0;
        int n_gone_through = 0;
        for (int n = 1; n_gone_through < 2; n += n < 20 ? 1 : STOP_STEP) {
            stopper stop = {.n_left = n};
            sl_error err = {0};
            spoken s;
            assert_true(n < 20000);
            s2_engine_set_stop(e, stop_at, &stop);
            assert_ok(rig_try(e, RIG_TEXT, N_FRAMES, &s, &err), &err);
            s2_engine_set_stop(e, NULL, NULL);
            if (s.end == S2_END_STOPPED) {
                n_stopped++;
                assert_true(s.n_frames < N_FRAMES);
            } else {
                n_gone_through++;
                assert_same_sound(&on_cpu, &s, "not stopped");
            }
            speak_as_on_cpu(e, "after a stop");
        }
        assert_true(n_stopped > 10);
        assert_leaves_nothing(e, "after stops");
        s2_engine_close(&e);
    }
}

/* The link is slow enough that stops fall into loads. */
static void test_loads_are_left_half_way(void **state)
{
    (void)state;
    int n_in_load = 0;
    for (int n = 1; n <= 12; n++) {
        s2_place_opts place =
                rig_place(RIG_DEVICE ",link=1M", SL_POLICY_SWAP, S2_DECODE_TOGETHER, 0);
        s2_engine *e = rig_open(rig_model, &place, N_FRAMES);
        stopper stop = {.n_left = n};
        sl_error err = {0};
        spoken s;
        s2_engine_set_stop(e, stop_at, &stop);
        assert_ok(rig_try(e, RIG_TEXT, N_FRAMES, &s, &err), &err);
        s2_engine_set_stop(e, NULL, NULL);
        assert_int_equal(s.end, S2_END_STOPPED);
        assert_int_equal(s.n_frames, 0);
        n_in_load += rig_count_moves(e).epochs < 4;
        speak_as_on_cpu(e, "after half a load");
        assert_leaves_nothing(e, "after half a load");
        s2_engine_close(&e);
    }
    assert_true(n_in_load > 0);
}

/* Bytes of this process that are in memory. */
static int64_t resident_bytes(void)
{
    char text[256] = "";
    int64_t pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    assert_non_null(f);
    assert_non_null(fgets(text, sizeof text, f));
    fclose(f);
    const char *p = strchr(text, ' ');
    assert_non_null(p);
    for (p++; *p >= '0' && *p <= '9'; p++) {
        pages = pages * 10 + (*p - '0');
    }
    return pages * sysconf(_SC_PAGESIZE);
}

static void test_G3_10_many_cycles_leave_no_trace(void **state)
{
    (void)state;
    s2_place_opts place = rig_place(RIG_DEVICE, SL_POLICY_HOT, S2_DECODE_AFTER, 0);
    s2_engine *e = rig_open(rig_model, &place, N_FRAMES);
    for (int i = 0; i < 20; i++) {
        speak_as_on_cpu(e, "warm-up");
    }
    int64_t before = resident_bytes();
    sl_place_status held = rig_place_status(e, 1);
    for (int i = 0; i < N_CYCLES; i++) {
        speak_as_on_cpu(e, "cycle");
        assert_nothing_held(e, 1, "cycle");
    }
    int64_t growth = resident_bytes() - before;
    print_message("%d cycles: %" PRId64 " bytes more in memory\n", N_CYCLES, growth);
    assert_true(growth < RSS_GROWTH_BYTES);
    assert_int_equal(rig_place_status(e, 1).peak_total, held.peak_total);
    rig_moves moves = rig_count_moves(e);
    assert_int_equal(moves.n_loads, 3 * (N_CYCLES + 20));
    assert_int_equal(moves.n_evicted, moves.n_loads);
    s2_engine_close(&e);
}

/* Engines come and go, with and without a request. */
static void test_G3_10_engines_are_made_again_and_again(void **state)
{
    (void)state;
    for (int i = 0; i < N_ENGINES; i++) {
        s2_place_opts place =
                rig_place(RIG_DEVICE, (sl_policy)(i % SL_POLICY_COUNT), (s2_decode_when)(i % 3), 0);
        s2_engine_opts opts = rig_opts(rig_model, &place, N_FRAMES);
        s2_engine *e = NULL;
        sl_error err = {0};
        opts.expects_speech = i % 2 != 0;
        assert_ok(s2_engine_open(&opts, &e, &err), &err);
        if (i % 3 != 0) {
            speak_as_on_cpu(e, "one of many");
        }
        s2_engine_close(&e);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_G3_01_G3_05_G3_21_every_call_fails_once),
            cmocka_unit_test(test_a_file_that_ends_early_fails_the_request_alone),
            cmocka_unit_test(test_G3_26_a_lost_device_fails_requests_and_nothing_else),
            cmocka_unit_test(test_a_request_is_left_at_every_point_and_the_next_is_good),
            cmocka_unit_test(test_loads_are_left_half_way),
            cmocka_unit_test(test_G3_10_many_cycles_leave_no_trace),
            cmocka_unit_test(test_G3_10_engines_are_made_again_and_again),
    };
    return cmocka_run_group_tests(tests, set_up, rig_tear_down);
}
