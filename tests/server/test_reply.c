/* The buffer between a maker and a reader: heads, lengths, bounds, cancelling, stalls. */
#include "reply.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "os/os_clock.h"
#include "os/os_thread.h"
#include "test_support.h"

#define MS UINT64_C(1000000)

static const reply_patience patient = {.stall_ns = 10000 * MS};

static reply *make(size_t cap)
{
    reply *r = NULL;
    sl_error err;
    assert_ok(reply_create(cap, &r, &err), &err);
    return r;
}

static void test_head_waits_for_the_first_byte(void **state)
{
    reply *r = make(100);
    uint64_t n = 0;
    (void)state;
    assert_null(reply_look(r, &n));
    reply_begin(r, 200, "a/b");
    assert_null(reply_look(r, &n));
    assert_false(reply_has_left(r));
    reply_begin(r, 404, "c/d");
    assert_int_equal(reply_write(r, "x", 1, &patient), SL_OK);
    const reply_head *head = reply_look(r, &n);
    assert_non_null(head);
    assert_int_equal(head->status, 404);
    assert_string_equal(head->content_type, "c/d");
    assert_true(n == UINT64_MAX);
    assert_true(reply_has_left(r));
    /* Now it is too late. */
    reply_begin(r, 500, "e/f");
    reply_whole(r, 500, "e/f", "no", 2);
    assert_int_equal(reply_look(r, &n)->status, 404);
    reply_unref(&r);
    assert_null(r);
}

static void test_complete_answers_have_a_length_unless_endless(void **state)
{
    (void)state;
    for (int is_endless = 0; is_endless < 2; is_endless++) {
        reply *r = make(100);
        uint64_t n = 0;
        reply_begin(r, 200, "a/b");
        if (is_endless) {
            reply_set_endless(r);
        }
        assert_int_equal(reply_write(r, "abc", 3, &patient), SL_OK);
        reply_end(r, true);
        assert_non_null(reply_look(r, &n));
        assert_true(n == (is_endless ? UINT64_MAX : 3));
        char buf[8];
        assert_int_equal(reply_read(r, buf, sizeof buf), 3);
        assert_memory_equal(buf, "abc", 3);
        assert_int_equal(reply_read(r, buf, sizeof buf), REPLY_END);
        reply_unref(&r);
    }
}

static void test_hold_keeps_the_head_back(void **state)
{
    reply *r = make(100);
    uint64_t n = 0;
    (void)state;
    reply_begin(r, 200, "a/b");
    reply_hold(r, 10);
    assert_int_equal(reply_write(r, "123456789", 9, &patient), SL_OK);
    assert_null(reply_look(r, &n));
    assert_int_equal(reply_write(r, "0", 1, &patient), SL_OK);
    assert_non_null(reply_look(r, &n));
    reply_unref(&r);

    /* One that is to be whole waits for its end, however much is there. */
    r = make(4);
    reply_begin(r, 200, "a/b");
    reply_hold(r, SIZE_MAX);
    assert_int_equal(reply_append(r, "0123456789", 10), SL_OK);
    assert_null(reply_look(r, &n));
    reply_end(r, true);
    assert_non_null(reply_look(r, &n));
    assert_true(n == 10);
    reply_unref(&r);

    /* The end lets it go, also a cut one. */
    r = make(100);
    reply_begin(r, 200, "a/b");
    reply_hold(r, 10);
    assert_int_equal(reply_write(r, "1", 1, &patient), SL_OK);
    reply_end(r, false);
    assert_non_null(reply_look(r, &n));
    char buf[8];
    assert_int_equal(reply_read(r, buf, sizeof buf), 1);
    assert_int_equal(reply_read(r, buf, sizeof buf), REPLY_CUT);
    reply_unref(&r);
}

static void test_cut_before_anything_is_dropped(void **state)
{
    reply *r = make(100);
    uint64_t n = 0;
    (void)state;
    assert_false(reply_is_dropped(r));
    reply_end(r, false);
    assert_true(reply_is_dropped(r));
    assert_null(reply_look(r, &n));
    reply_unref(&r);
}

static void test_bytes_come_out_as_they_went_in(void **state)
{
    enum {
        N = 20000,
        CAP = 777
    };
    reply *r = make(CAP);
    unsigned char in[64];
    unsigned char out[100];
    size_t n_in = 0;
    size_t n_out = 0;
    (void)state;
    reply_begin(r, 200, "a/b");
    for (unsigned round = 0; n_out < N; round++) {
        size_t n = 1 + round * 7 % sizeof in;
        for (size_t i = 0; i < n; i++) {
            in[i] = (unsigned char)((n_in + i) * 31 >> 3);
        }
        int done = reply_try_write(r, in, n);
        n_in += done > 0 ? n : 0;
        int64_t got = reply_read(r, out, 1 + round * 13 % sizeof out);
        for (int64_t i = 0; i < got; i++) {
            assert_int_equal(out[i], (unsigned char)((n_out + (size_t)i) * 31 >> 3));
        }
        n_out += got > 0 ? (size_t)got : 0;
        assert_true(n_in - n_out <= CAP);
    }
    assert_int_equal(reply_n_read(r), n_out);
    reply_unref(&r);
}

static void test_try_write_is_all_or_nothing(void **state)
{
    reply *r = make(10);
    char buf[16];
    (void)state;
    assert_int_equal(reply_try_write(r, "12345678", 8), 1);
    assert_int_equal(reply_try_write(r, "abc", 3), 0);
    assert_int_equal(reply_try_write(r, "ab", 2), 1);
    assert_int_equal(reply_read(r, buf, sizeof buf), 10);
    assert_memory_equal(buf, "12345678ab", 10);
    assert_int_equal(reply_try_write(r, "12345678901", 11), 0);
    reply_cancel(r);
    assert_int_equal(reply_try_write(r, "a", 1), SL_ECANCELLED);
    reply_unref(&r);
}

static void test_append_goes_beyond_the_bound_and_can_be_patched(void **state)
{
    reply *r = make(4);
    uint64_t n = 0;
    char buf[16];
    (void)state;
    reply_begin(r, 200, "a/b");
    assert_int_equal(reply_append(r, "0123456789", 10), SL_OK);
    reply_patch(r, 2, "xy", 2);
    reply_patch(r, 9, "zz", 2); /* not all inside: nothing */
    reply_end(r, true);
    assert_non_null(reply_look(r, &n));
    assert_true(n == 10);
    assert_int_equal(reply_read(r, buf, sizeof buf), 10);
    assert_memory_equal(buf, "01xy456789", 10);
    reply_unref(&r);
}

static void test_cancel_ends_the_maker_but_not_a_complete_answer(void **state)
{
    reply *r = make(4);
    char buf[16];
    (void)state;
    assert_int_equal(reply_write(r, "ab", 2, &patient), SL_OK);
    reply_cancel(r);
    assert_true(reply_is_cancelled(r));
    assert_int_equal(reply_write(r, "cd", 2, &patient), SL_ECANCELLED);
    assert_int_equal(reply_append(r, "cd", 2), SL_ECANCELLED);
    assert_int_equal(reply_read(r, buf, sizeof buf), REPLY_CUT);
    assert_false(reply_was_stalled(r));
    reply_unref(&r);

    r = make(4);
    reply_whole(r, 200, "a/b", "abcdefgh", 8);
    reply_cancel(r);
    assert_false(reply_is_cancelled(r));
    assert_int_equal(reply_read(r, buf, sizeof buf), 8);
    reply_unref(&r);
}

static void test_a_reader_that_does_nothing_is_dropped(void **state)
{
    (void)state;
    for (int is_waited_for = 0; is_waited_for < 2; is_waited_for++) {
        atomic_size_t n_waiting;
        atomic_init(&n_waiting, (size_t)is_waited_for);
        const reply_patience short_one = {.stall_ns = 1200 * MS, .n_waiting = &n_waiting};
        reply *r = make(4);
        uint64_t begin_ns = sl__now_ns();
        assert_int_equal(reply_write(r, "abcd", 4, &short_one), SL_OK);
        assert_int_equal(reply_write(r, "e", 1, &short_one), SL_ECANCELLED);
        uint64_t took_ns = sl__now_ns() - begin_ns;
        /* While others wait it goes six times sooner. */
        assert_true(took_ns >= (is_waited_for ? 200 : 1200) * MS);
        assert_true(reply_was_stalled(r));
        assert_true(reply_is_dropped(r));
        reply_unref(&r);
    }
}

typedef struct sipper {
    sl__thread thread;
    reply *r;
    size_t sip;
    size_t n_sips;
} sipper;

static void sip(void *ud)
{
    sipper *s = ud;
    char buf[16384 - 1024];
    for (size_t i = 0; i < s->n_sips; i++) {
        sl__sleep_ns(20 * MS);
        (void)reply_read(s->r, buf, s->sip);
    }
}

static void test_sips_are_no_progress_but_gulps_are(void **state)
{
    (void)state;
    for (int is_gulp = 0; is_gulp < 2; is_gulp++) {
        const reply_patience short_one = {.stall_ns = is_gulp ? 20000 * MS : 300 * MS};
        sl_error err;
        sipper s = {.r = make(65536), .sip = is_gulp ? 15000 : 1, .n_sips = 50};
        char *block = calloc(1, 65536);
        assert_int_equal(reply_write(s.r, block, 65536, &short_one), SL_OK);
        assert_ok(sl__thread_start(&s.thread, "sipper", sip, &s, &err), &err);
        int r = reply_write(s.r, block, 65536, &short_one);
        sl__thread_join(&s.thread);
        assert_int_equal(r, is_gulp ? SL_OK : SL_ECANCELLED);
        free(block);
        reply_unref(&s.r);
    }
}

static void count_wakes(void *ud, uint64_t id)
{
    int *n = ud;
    *n += id == 7;
}

static void test_waker_is_told_of_all_that_matters(void **state)
{
    reply *r = make(16);
    int n = 0;
    (void)state;
    reply_set_waker(r, count_wakes, &n, 7);
    assert_int_equal(reply_write(r, "a", 1, &patient), SL_OK);
    assert_int_equal(n, 1);
    assert_int_equal(reply_try_write(r, "a", 1), 1);
    assert_int_equal(n, 2);
    reply_cancel(r);
    assert_int_equal(n, 3);
    reply_end(r, true);
    assert_int_equal(n, 4);
    reply_set_waker(r, NULL, NULL, 0);
    reply_end(r, true);
    assert_int_equal(n, 4);
    reply_unref(&r);
}

static void test_headers_are_bounded(void **state)
{
    reply *r = make(16);
    uint64_t n = 0;
    char longest[400];
    (void)state;
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    for (int i = 0; i < REPLY_MAX_HEADERS + 5; i++) {
        reply_add_header(r, "X-A", "%s", longest);
    }
    reply_whole(r, 200, NULL, "", 0);
    const reply_head *head = reply_look(r, &n);
    assert_non_null(head);
    assert_int_equal(head->n_headers, REPLY_MAX_HEADERS);
    assert_int_equal(strlen(head->headers[0].value), sizeof head->headers[0].value - 1);
    assert_true(n == 0);
    reply_unref(&r);
}

static void test_every_failed_allocation_is_an_answer(void **state)
{
    (void)state;
    sl_error err;
    reply *r = NULL;
    sl__mem_fail_after(0);
    assert_int_equal(reply_create(16, &r, &err), SL_ENOMEM);
    sl__mem_fail_after(-1);
    r = make(16);
    sl__mem_fail_after(0);
    reply_whole(r, 200, "a/b", "abc", 3);
    sl__mem_fail_after(-1);
    uint64_t n = 1;
    const reply_head *head = reply_look(r, &n);
    assert_non_null(head);
    assert_int_equal(head->status, 503);
    assert_true(n == 0);
    reply_unref(&r);
    reply_unref(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_head_waits_for_the_first_byte),
            cmocka_unit_test(test_complete_answers_have_a_length_unless_endless),
            cmocka_unit_test(test_hold_keeps_the_head_back),
            cmocka_unit_test(test_cut_before_anything_is_dropped),
            cmocka_unit_test(test_bytes_come_out_as_they_went_in),
            cmocka_unit_test(test_try_write_is_all_or_nothing),
            cmocka_unit_test(test_append_goes_beyond_the_bound_and_can_be_patched),
            cmocka_unit_test(test_cancel_ends_the_maker_but_not_a_complete_answer),
            cmocka_unit_test(test_a_reader_that_does_nothing_is_dropped),
            cmocka_unit_test(test_sips_are_no_progress_but_gulps_are),
            cmocka_unit_test(test_waker_is_told_of_all_that_matters),
            cmocka_unit_test(test_headers_are_bounded),
            cmocka_unit_test(test_every_failed_allocation_is_an_answer),
    };
    return cmocka_run_group_tests_name("reply", tests, NULL, NULL);
}
