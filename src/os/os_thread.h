/*
 * Threads, locks and conditions.
 *
 * Locks are not recursive. A condition belongs to one lock. Waits may end without cause: test in a loop.
 * Objects are initialised in place and stay where they are until done; the init functions return 0 or SL_ENOMEM.
 * Signals are blocked in new threads, so that the program's own threads receive them, except those of a fault.
 */
#ifndef SL_OS_THREAD_H
#define SL_OS_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

typedef struct sl__mutex {
    pthread_mutex_t os;
} sl__mutex;

typedef struct sl__cond {
    pthread_cond_t os;
} sl__cond;

typedef struct sl__thread {
    pthread_t os;
    bool is_running; /* started and not joined yet; zeroed memory is "no thread" */
} sl__thread;

/* For a lock that must work before anything could be initialised. */
#define SL_MUTEX_INITIALIZER                                                                       \
    {                                                                                              \
        PTHREAD_MUTEX_INITIALIZER                                                                  \
    }

int sl__mutex_init(sl__mutex *mutex, sl_error *reterr) SL_MUST_CHECK;
void sl__mutex_done(sl__mutex *mutex);
void sl__mutex_lock(sl__mutex *mutex);
void sl__mutex_unlock(sl__mutex *mutex);

int sl__cond_init(sl__cond *cond, sl_error *reterr) SL_MUST_CHECK;
void sl__cond_done(sl__cond *cond);
/* The caller holds `mutex`; it is released while waiting. */
void sl__cond_wait(sl__cond *cond, sl__mutex *mutex);
/* The same, at most until sl__now_ns() reaches deadline_ns: false if that time has passed. */
bool sl__cond_wait_until(sl__cond *cond, sl__mutex *mutex, uint64_t deadline_ns);
void sl__cond_signal(sl__cond *cond);
void sl__cond_broadcast(sl__cond *cond);

/*
 * Starts fn(ud) in a new thread; `name` (at most 15 bytes count) is what tools show.
 * Errors: SL_ENOMEM (the system gives no more threads); nothing runs then.
 */
int sl__thread_start(sl__thread *thread, const char *name, void (*fn)(void *ud), void *ud,
        sl_error *reterr) SL_MUST_CHECK;

/* Waits until the thread has returned. Does nothing for one that was never started or is joined already. */
void sl__thread_join(sl__thread *thread);

/* Lets a thread that was started end by itself: nobody waits for it. */
void sl__thread_detach(sl__thread *thread);

/*
 * Has functions called around every fork: `before` and `parent` in the process that forks, `child` in the new one,
 * where only the calling thread is left. Errors: SL_ENOMEM.
 */
int sl__at_fork(void (*before)(void), void (*parent)(void), void (*child)(void),
        sl_error *reterr) SL_MUST_CHECK;

/* Sleeps at least that long. */
void sl__sleep_ns(uint64_t ns);

#endif
