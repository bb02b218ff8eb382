/* The queue: order, bound, jobs without a client, the closed door. */
#include "job_queue.h"

#include <string.h>

#include "os/os_clock.h"
#include "os/os_thread.h"
#include "test_support.h"

#define MS UINT64_C(1000000)

static job_queue *make(size_t most)
{
    job_queue *q = NULL;
    sl_error err;
    assert_ok(job_queue_create(most, &q, &err), &err);
    return q;
}

/* A job whose number is its level. The caller's reference to the answer is *ret. */
static job *make_job(unsigned number, reply **ret)
{
    sl_error err;
    job *j = NULL;
    assert_ok(reply_create(64, ret, &err), &err);
    assert_ok(job_create(JOB_SLEEP, *ret, &j, &err), &err);
    j->level = number;
    return j;
}

static void test_arrival_order_and_bound(void **state)
{
    enum {
        N = 5
    };
    job_queue *q = make(N);
    reply *answers[N + 1];
    sl_error err;
    (void)state;
    for (unsigned i = 0; i < N; i++) {
        assert_ok(job_queue_push(q, make_job(i, &answers[i]), &err), &err);
    }
    assert_int_equal(job_queue_push(q, make_job(N, &answers[N]), &err), SL_EBUSY);
    assert_non_null(strstr(err.msg, "5 requests"));
    assert_int_equal(atomic_load(job_queue_n_waiting(q)), N);
    for (unsigned i = 0; i < N; i++) {
        job *j = job_queue_pop(q, UINT64_MAX);
        assert_non_null(j);
        assert_int_equal(j->level, i);
        job_free(&j);
    }
    assert_null(job_queue_pop(q, sl__now_ns()));
    for (unsigned i = 0; i <= N; i++) {
        reply_unref(&answers[i]);
    }
    job_queue_free(&q);
}

static void test_jobs_without_a_client_make_room(void **state)
{
    job_queue *q = make(3);
    reply *answers[5];
    sl_error err;
    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        assert_ok(job_queue_push(q, make_job(i, &answers[i]), &err), &err);
    }
    reply_cancel(answers[0]);
    reply_cancel(answers[2]);
    assert_ok(job_queue_push(q, make_job(3, &answers[3]), &err), &err);
    assert_int_equal(atomic_load(job_queue_n_waiting(q)), 2);
    assert_ok(job_queue_push(q, make_job(4, &answers[4]), &err), &err);
    reply_cancel(answers[4]);
    assert_int_equal(job_queue_sweep(q), 1);
    static const unsigned left[] = {1, 3};
    for (size_t i = 0; i < 2; i++) {
        job *j = job_queue_pop(q, UINT64_MAX);
        assert_int_equal(j->level, left[i]);
        job_free(&j);
    }
    for (unsigned i = 0; i < 5; i++) {
        reply_unref(&answers[i]);
    }
    job_queue_free(&q);
}

static void test_take_older_takes_the_oldest_only_if_old(void **state)
{
    job_queue *q = make(3);
    reply *answers[2];
    sl_error err;
    (void)state;
    uint64_t before_ns = sl__now_ns();
    assert_ok(job_queue_push(q, make_job(0, &answers[0]), &err), &err);
    assert_ok(job_queue_push(q, make_job(1, &answers[1]), &err), &err);
    assert_null(job_queue_take_older(q, before_ns));
    job *j = job_queue_take_older(q, UINT64_MAX);
    assert_int_equal(j->level, 0);
    job_free(&j);
    reply_unref(&answers[0]);
    reply_unref(&answers[1]);
    job_queue_free(&q);
}

static void test_closed_queue_takes_and_gives_nothing(void **state)
{
    job_queue *q = make(3);
    reply *answers[2];
    sl_error err;
    (void)state;
    assert_ok(job_queue_push(q, make_job(0, &answers[0]), &err), &err);
    job_queue_close(q);
    assert_true(job_queue_is_closed(q));
    assert_int_equal(job_queue_push(q, make_job(1, &answers[1]), &err), SL_ECANCELLED);
    assert_null(job_queue_pop(q, UINT64_MAX));
    job *j = job_queue_take_older(q, UINT64_MAX);
    assert_int_equal(j->level, 0);
    job_free(&j);
    reply_unref(&answers[0]);
    reply_unref(&answers[1]);
    job_queue_free(&q);
}

typedef struct producer {
    sl__thread thread;
    job_queue *q;
    unsigned base; /* its jobs are numbered from here */
    reply *answers[100];
    int n_pushed;
} producer;

static void produce(void *ud)
{
    producer *p = ud;
    for (unsigned i = 0; i < 100; i++) {
        if (job_queue_push(p->q, make_job(p->base + i, &p->answers[i]), NULL) == 0) {
            p->n_pushed++;
        }
    }
}

static void test_several_producers_lose_nothing(void **state)
{
    enum {
        N = 3
    };
    static producer producers[N];
    job_queue *q = make(1000);
    sl_error err;
    unsigned next[3] = {0};
    (void)state;
    for (size_t i = 0; i < N; i++) {
        producers[i].q = q;
        producers[i].base = (unsigned)(1000 * i);
        assert_ok(sl__thread_start(&producers[i].thread, "producer", produce, &producers[i], &err),
                &err);
    }
    for (int n = 0; n < 100 * N; n++) {
        job *j = job_queue_pop(q, UINT64_MAX);
        assert_non_null(j);
        /* Each producer's own come in order. */
        size_t i = j->level / 1000;
        assert_true(i < N);
        assert_int_equal(j->level % 1000, next[i]);
        next[i]++;
        job_free(&j);
    }
    for (size_t i = 0; i < N; i++) {
        sl__thread_join(&producers[i].thread);
        assert_int_equal(producers[i].n_pushed, 100);
        for (size_t k = 0; k < 100; k++) {
            reply_unref(&producers[i].answers[k]);
        }
    }
    job_queue_free(&q);
}

static void poke_later(void *ud)
{
    sl__sleep_ns(20 * MS);
    job_queue_poke(ud);
}

static void test_poke_wakes_a_pop(void **state)
{
    job_queue *q = make(1);
    sl__thread thread = {0};
    sl_error err;
    (void)state;
    assert_ok(sl__thread_start(&thread, "poker", poke_later, q, &err), &err);
    assert_null(job_queue_pop(q, UINT64_MAX));
    sl__thread_join(&thread);
    job_queue_free(&q);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_arrival_order_and_bound),
            cmocka_unit_test(test_jobs_without_a_client_make_room),
            cmocka_unit_test(test_take_older_takes_the_oldest_only_if_old),
            cmocka_unit_test(test_closed_queue_takes_and_gives_nothing),
            cmocka_unit_test(test_several_producers_lose_nothing),
            cmocka_unit_test(test_poke_wakes_a_pop),
    };
    return cmocka_run_group_tests_name("job_queue", tests, NULL, NULL);
}
