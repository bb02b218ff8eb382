#include "test_support.h"

#include <signal.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "os/os_clock.h"
#include "os/os_thread.h"

typedef struct box {
    sl__mutex mutex;
    sl__cond cond;
    int n;
    bool blocks_term;
    bool blocks_bus;
} box;

static void box_init(box *b)
{
    sl_error err = {0};
    assert_ok(sl__mutex_init(&b->mutex, &err), &err);
    assert_ok(sl__cond_init(&b->cond, &err), &err);
}

static void box_done(box *b)
{
    sl__cond_done(&b->cond);
    sl__mutex_done(&b->mutex);
}

static void add_100(void *ud)
{
    box *b = ud;
    for (int i = 0; i < 100; i++) {
        sl__mutex_lock(&b->mutex);
        b->n++;
        sl__cond_broadcast(&b->cond);
        sl__mutex_unlock(&b->mutex);
    }
}

static void test_counts_of_all_threads_arrive(void **state)
{
    (void)state;
    box b = {0};
    sl__thread threads[4] = {0};
    sl_error err = {0};
    box_init(&b);
    for (int i = 0; i < 4; i++) {
        assert_ok(
                sl__thread_start(&threads[i], "a name that is too long", add_100, &b, &err), &err);
    }
    sl__mutex_lock(&b.mutex);
    while (b.n < 400) {
        sl__cond_wait(&b.cond, &b.mutex);
    }
    sl__mutex_unlock(&b.mutex);
    for (int i = 0; i < 4; i++) {
        sl__thread_join(&threads[i]);
        sl__thread_join(&threads[i]);
        assert_false(threads[i].is_running);
    }
    assert_int_equal(b.n, 400);
    box_done(&b);
}

static void test_a_wait_ends_at_its_deadline(void **state)
{
    (void)state;
    box b = {0};
    box_init(&b);
    uint64_t deadline = sl__now_ns() + 2000000;
    sl__mutex_lock(&b.mutex);
    while (sl__cond_wait_until(&b.cond, &b.mutex, deadline)) {
        continue;
    }
    sl__mutex_unlock(&b.mutex);
    assert_true(sl__now_ns() >= deadline);
    box_done(&b);
}

static void test_sleep_is_not_short(void **state)
{
    (void)state;
    uint64_t start = sl__now_ns();
    sl__sleep_ns(3000000);
    assert_true(sl__now_ns() - start >= 3000000);
}

static void read_mask(void *ud)
{
    box *b = ud;
    sigset_t now;
    pthread_sigmask(SIG_BLOCK, NULL, &now);
    b->blocks_term = sigismember(&now, SIGTERM) == 1;
    b->blocks_bus = sigismember(&now, SIGBUS) == 1;
}

static void test_threads_leave_signals_to_the_program_but_not_faults(void **state)
{
    (void)state;
    box b = {0};
    sl__thread thread = {0};
    sl_error err = {0};
    sigset_t before;
    pthread_sigmask(SIG_BLOCK, NULL, &before);
    assert_ok(sl__thread_start(&thread, "mask", read_mask, &b, &err), &err);
    sl__thread_join(&thread);
    assert_true(b.blocks_term);
    assert_false(b.blocks_bus);
    sigset_t now;
    pthread_sigmask(SIG_BLOCK, NULL, &now);
    assert_int_equal(sigismember(&now, SIGTERM), sigismember(&before, SIGTERM));
}

static void test_out_of_memory_starts_nothing(void **state)
{
    (void)state;
    box b = {0};
    sl__thread thread = {0};
    sl_error err = {0};
    sl__mem_fail_after(0);
    int r = sl__thread_start(&thread, "none", read_mask, &b, &err);
    sl__mem_fail_after(-1);
    assert_int_equal(r, SL_ENOMEM);
    assert_false(thread.is_running);
    sl__thread_join(&thread);
}

static void test_a_thread_that_nobody_waits_for(void **state)
{
    (void)state;
    box b = {0};
    sl__thread thread = {0};
    sl_error err = {0};
    box_init(&b);
    assert_ok(sl__thread_start(&thread, "alone", add_100, &b, &err), &err);
    sl__thread_detach(&thread);
    assert_false(thread.is_running);
    sl__thread_detach(&thread);
    sl__thread_join(&thread);
    sl__mutex_lock(&b.mutex);
    while (b.n < 100) {
        sl__cond_wait(&b.cond, &b.mutex);
    }
    sl__mutex_unlock(&b.mutex);
    /* It may still hold the condition that it has just signalled. */
    sl__mutex_lock(&b.mutex);
    sl__mutex_unlock(&b.mutex);
}

static sl__mutex static_lock = SL_MUTEX_INITIALIZER;
static int n_before;
static int n_parent;
static int n_child;

static void before(void)
{
    sl__mutex_lock(&static_lock);
    n_before++;
}

static void parent(void)
{
    n_parent++;
    sl__mutex_unlock(&static_lock);
}

static void child(void)
{
    n_child++;
    static_lock = (sl__mutex)SL_MUTEX_INITIALIZER;
}

static void test_functions_around_a_fork(void **state)
{
    (void)state;
    sl_error err = {0};
    int status = -1;
    assert_ok(sl__at_fork(before, parent, child, &err), &err);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        sl__mutex_lock(&static_lock);
        _exit(n_before == 1 && n_parent == 0 && n_child == 1 ? 0 : 1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_int_equal(n_before, 1);
    assert_int_equal(n_parent, 1);
    assert_int_equal(n_child, 0);
    sl__mutex_lock(&static_lock);
    sl__mutex_unlock(&static_lock);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_counts_of_all_threads_arrive),
            cmocka_unit_test(test_a_wait_ends_at_its_deadline),
            cmocka_unit_test(test_sleep_is_not_short),
            cmocka_unit_test(test_threads_leave_signals_to_the_program_but_not_faults),
            cmocka_unit_test(test_out_of_memory_starts_nothing),
            cmocka_unit_test(test_a_thread_that_nobody_waits_for),
            cmocka_unit_test(test_functions_around_a_fork),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
