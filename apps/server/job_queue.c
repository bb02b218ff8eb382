#include "job_queue.h"

#include <stdbool.h>

#include "base/mem.h"
#include "os/os_clock.h"
#include "os/os_thread.h"

struct job_queue {
    sl__mutex lock;
    sl__cond changed;
    job *first;
    job **last_next; /* where the next job is hooked in */
    atomic_size_t n;
    size_t most;
    bool is_closed;
    bool is_poked;
};

int job_queue_create(size_t most, job_queue **ret_queue, sl_error *reterr)
{
    job_queue *q = sl__alloc(1, sizeof *q);
    if (!q) {
        return sl__fail_nomem(reterr, sizeof *q, "a queue");
    }
    int r = sl__mutex_init(&q->lock, reterr);
    if (r < 0) {
        sl__free(q);
        return r;
    }
    r = sl__cond_init(&q->changed, reterr);
    if (r < 0) {
        sl__mutex_done(&q->lock);
        sl__free(q);
        return r;
    }
    atomic_init(&q->n, 0);
    q->last_next = &q->first;
    q->most = most;
    *ret_queue = q;
    return SL_OK;
}

/* Unhooks the job at *at; the lock is held. */
static job *unhook(job_queue *q, job **at)
{
    job *j = *at;
    *at = j->next;
    if (q->last_next == &j->next) {
        q->last_next = at;
    }
    j->next = NULL;
    atomic_fetch_sub(&q->n, 1);
    return j;
}

/* Moves the jobs without a client into a list of their own; the lock is held. */
static job *unhook_gone(job_queue *q, size_t *ret_n)
{
    job *gone = NULL;
    job **at = &q->first;
    while (*at) {
        if (reply_is_cancelled((*at)->answer)) {
            job *j = unhook(q, at);
            j->next = gone;
            gone = j;
            (*ret_n)++;
        } else {
            at = &(*at)->next;
        }
    }
    return gone;
}

static void free_list(job *list)
{
    while (list) {
        job *next = list->next;
        job_free(&list);
        list = next;
    }
}

void job_queue_free(job_queue **queue)
{
    if (queue && *queue) {
        free_list((*queue)->first);
        sl__cond_done(&(*queue)->changed);
        sl__mutex_done(&(*queue)->lock);
        sl__free(*queue);
        *queue = NULL;
    }
}

size_t job_queue_sweep(job_queue *queue)
{
    size_t n = 0;
    sl__mutex_lock(&queue->lock);
    job *gone = unhook_gone(queue, &n);
    sl__mutex_unlock(&queue->lock);
    free_list(gone);
    return n;
}

int job_queue_push(job_queue *queue, job *j, sl_error *reterr)
{
    int r = SL_OK;
    size_t n_gone = 0;
    sl__mutex_lock(&queue->lock);
    job *gone = unhook_gone(queue, &n_gone);
    size_t n = atomic_load(&queue->n);
    if (queue->is_closed) {
        r = sl__fail(reterr, SL_ECANCELLED, "the server is stopping; send the request again");
    } else if (n >= queue->most) {
        r = sl__fail(
                reterr, SL_EBUSY, "%zu requests are waiting, which is the limit; try later", n);
    } else {
        j->queued_ns = sl__now_ns();
        j->next = NULL;
        *queue->last_next = j;
        queue->last_next = &j->next;
        atomic_fetch_add(&queue->n, 1);
        sl__cond_signal(&queue->changed);
    }
    sl__mutex_unlock(&queue->lock);
    free_list(gone);
    if (r < 0) {
        job_free(&j);
    }
    return r;
}

job *job_queue_pop(job_queue *queue, uint64_t deadline_ns)
{
    job *j = NULL;
    size_t n_gone = 0;
    sl__mutex_lock(&queue->lock);
    job *gone = unhook_gone(queue, &n_gone);
    while (!queue->first && !queue->is_closed && !queue->is_poked) {
        if (deadline_ns == UINT64_MAX) {
            sl__cond_wait(&queue->changed, &queue->lock);
        } else if (!sl__cond_wait_until(&queue->changed, &queue->lock, deadline_ns)) {
            break;
        }
    }
    queue->is_poked = false;
    if (queue->first && !queue->is_closed) {
        j = unhook(queue, &queue->first);
    }
    sl__mutex_unlock(&queue->lock);
    free_list(gone);
    return j;
}

job *job_queue_take_older(job_queue *queue, uint64_t before_ns)
{
    job *j = NULL;
    sl__mutex_lock(&queue->lock);
    if (queue->first && queue->first->queued_ns < before_ns) {
        j = unhook(queue, &queue->first);
    }
    sl__mutex_unlock(&queue->lock);
    return j;
}

void job_queue_poke(job_queue *queue)
{
    sl__mutex_lock(&queue->lock);
    queue->is_poked = true;
    sl__cond_broadcast(&queue->changed);
    sl__mutex_unlock(&queue->lock);
}

void job_queue_close(job_queue *queue)
{
    sl__mutex_lock(&queue->lock);
    queue->is_closed = true;
    sl__cond_broadcast(&queue->changed);
    sl__mutex_unlock(&queue->lock);
}

bool job_queue_is_closed(job_queue *queue)
{
    sl__mutex_lock(&queue->lock);
    bool is = queue->is_closed;
    sl__mutex_unlock(&queue->lock);
    return is;
}

const atomic_size_t *job_queue_n_waiting(const job_queue *queue)
{
    return &queue->n;
}

size_t job_queue_most(const job_queue *queue)
{
    return queue->most;
}
