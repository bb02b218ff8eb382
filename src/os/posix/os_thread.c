/*
 * A thin cover over pthreads. ISO C's own <threads.h> would do the same, but ThreadSanitizer does not know it.
 * Conditions run on the monotonic clock, so that a clock that is set ends no wait.
 */
#define _GNU_SOURCE /* pthread_setname_np */
#include "os/os_thread.h"

#include <errno.h>
#include <signal.h>
#include <time.h>

#include "base/mem.h"

typedef struct start {
    void (*fn)(void *ud);
    void *ud;
    char name[16];
} start;

static int fail_init(sl_error *reterr, const char *what, int os_error)
{
    return sl__fail(reterr, SL_ENOMEM, "cannot make a %s: error %d of the system", what, os_error);
}

int sl__mutex_init(sl__mutex *mutex, sl_error *reterr)
{
    int r = pthread_mutex_init(&mutex->os, NULL);
    return r == 0 ? 0 : fail_init(reterr, "lock", r);
}

void sl__mutex_done(sl__mutex *mutex)
{
    pthread_mutex_destroy(&mutex->os);
}

void sl__mutex_lock(sl__mutex *mutex)
{
    pthread_mutex_lock(&mutex->os);
}

void sl__mutex_unlock(sl__mutex *mutex)
{
    pthread_mutex_unlock(&mutex->os);
}

int sl__cond_init(sl__cond *cond, sl_error *reterr)
{
    pthread_condattr_t attr;
    int r = pthread_condattr_init(&attr);
    if (r != 0) {
        return fail_init(reterr, "condition", r);
    }
    r = pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    if (r == 0) {
        r = pthread_cond_init(&cond->os, &attr);
    }
    pthread_condattr_destroy(&attr);
    return r == 0 ? 0 : fail_init(reterr, "condition", r);
}

void sl__cond_done(sl__cond *cond)
{
    pthread_cond_destroy(&cond->os);
}

void sl__cond_wait(sl__cond *cond, sl__mutex *mutex)
{
    pthread_cond_wait(&cond->os, &mutex->os);
}

bool sl__cond_wait_until(sl__cond *cond, sl__mutex *mutex, uint64_t deadline_ns)
{
    struct timespec t = {
            .tv_sec = (time_t)(deadline_ns / 1000000000u),
            .tv_nsec = (long)(deadline_ns % 1000000000u),
    };
    return pthread_cond_timedwait(&cond->os, &mutex->os, &t) != ETIMEDOUT;
}

void sl__cond_signal(sl__cond *cond)
{
    pthread_cond_signal(&cond->os);
}

void sl__cond_broadcast(sl__cond *cond)
{
    pthread_cond_broadcast(&cond->os);
}

static void *run(void *ud)
{
    start s = *(start *)ud;
    sl__free(ud);
    pthread_setname_np(pthread_self(), s.name);
    s.fn(s.ud);
    return NULL;
}

/* All but the signals that a fault of this very thread raises: the guard of mappings needs those. */
static void set_of_blocked(sigset_t *set)
{
    sigfillset(set);
    sigdelset(set, SIGBUS);
    sigdelset(set, SIGSEGV);
    sigdelset(set, SIGFPE);
    sigdelset(set, SIGILL);
}

int sl__thread_start(
        sl__thread *thread, const char *name, void (*fn)(void *ud), void *ud, sl_error *reterr)
{
    start *s = sl__alloc(1, sizeof *s);
    if (!s) {
        return sl__fail_nomem(reterr, sizeof *s, "a thread");
    }
    s->fn = fn;
    s->ud = ud;
    for (size_t i = 0; i + 1 < sizeof s->name && name[i] != '\0'; i++) {
        s->name[i] = name[i];
    }
    sigset_t blocked;
    sigset_t before;
    set_of_blocked(&blocked);
    pthread_sigmask(SIG_SETMASK, &blocked, &before);
    int r = pthread_create(&thread->os, NULL, run, s);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    thread->is_running = r == 0;
    if (r != 0) {
        sl__free(s);
        return sl__fail(reterr, SL_ENOMEM,
                "cannot start the thread %s: error %d of the system; raise the limit of processes",
                name, r);
    }
    return 0;
}

void sl__thread_join(sl__thread *thread)
{
    if (thread->is_running) {
        pthread_join(thread->os, NULL);
        thread->is_running = false;
    }
}

void sl__thread_detach(sl__thread *thread)
{
    if (thread->is_running) {
        pthread_detach(thread->os);
        thread->is_running = false;
    }
}

int sl__at_fork(void (*before)(void), void (*parent)(void), void (*child)(void), sl_error *reterr)
{
    int r = pthread_atfork(before, parent, child);
    return r == 0 ? 0 : fail_init(reterr, "handler of forks", r);
}

void sl__sleep_ns(uint64_t ns)
{
    struct timespec t = {
            .tv_sec = (time_t)(ns / 1000000000u),
            .tv_nsec = (long)(ns % 1000000000u),
    };
    while (clock_nanosleep(CLOCK_MONOTONIC, 0, &t, &t) == EINTR) {
        continue;
    }
}
