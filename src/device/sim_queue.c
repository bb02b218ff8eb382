/*
 * Copies are done one at a time from the front, by the thread or by whoever waits if the queue is stepped. The
 * lock is released while a copy runs; is_running keeps others off it. On the real clock a copy ends when the
 * link would have passed its last byte, counted from the end of the copy before it, so that many small copies
 * together take what one large one takes, however late the thread wakes.
 */
#include "device/sim_queue.h"

#include <string.h>

#include "os/os_clock.h"

static void serve(void *ud)
{
    sl__sim_queue *q = ud;
    sl__mutex_lock(&q->lock);
    while (!q->stops) {
        if (!sl__sim_queue_step(q)) {
            sl__cond_wait(&q->work, &q->lock);
        }
    }
    sl__mutex_unlock(&q->lock);
}

int sl__sim_queue_init(sl__sim_queue *queue, sl_error *reterr)
{
    int r = sl__mutex_init(&queue->lock, reterr);
    if (r < 0) {
        return r;
    }
    r = sl__cond_init(&queue->work, reterr);
    if (r < 0) {
        goto out_lock;
    }
    r = sl__cond_init(&queue->done, reterr);
    if (r < 0) {
        goto out_work;
    }
    if (!queue->is_stepped) {
        r = sl__thread_start(&queue->thread, "sluice-sim", serve, queue, reterr);
    }
    if (r == 0) {
        return 0;
    }
    sl__cond_done(&queue->done);
out_work:
    sl__cond_done(&queue->work);
out_lock:
    sl__mutex_done(&queue->lock);
    return r;
}

void sl__sim_queue_done(sl__sim_queue *queue)
{
    sl__mutex_lock(&queue->lock);
    sl__sim_queue_drop_all(queue);
    queue->stops = true;
    sl__cond_broadcast(&queue->work);
    sl__mutex_unlock(&queue->lock);
    sl__thread_join(&queue->thread);
    sl__cond_done(&queue->done);
    sl__cond_done(&queue->work);
    sl__mutex_done(&queue->lock);
}

/* The i-th copy from the front. */
static sl__sim_copy *copy_at(sl__sim_queue *queue, size_t i)
{
    return &queue->copies[(queue->i_first + i) % SL__SIM_QUEUE_CAP];
}

static uint64_t n_done(const sl__sim_queue *queue)
{
    return queue->n_ever - queue->n;
}

bool sl__sim_queue_is_done(const sl__sim_queue *queue, uint64_t number)
{
    return n_done(queue) >= number;
}

static void wait_for_change(sl__sim_queue *queue)
{
    if (!queue->is_stepped || !sl__sim_queue_step(queue)) {
        sl__cond_wait(&queue->done, &queue->lock);
    }
}

uint64_t sl__sim_queue_push(sl__sim_queue *queue, sl__sim_copy copy)
{
    while (queue->n == SL__SIM_QUEUE_CAP) {
        wait_for_change(queue);
    }
    copy.ready_ns = sl__now_ns();
    *copy_at(queue, queue->n) = copy;
    queue->n++;
    queue->n_ever++;
    sl__cond_signal(&queue->work);
    return queue->n_ever;
}

void sl__sim_queue_wait(sl__sim_queue *queue, uint64_t number)
{
    while (!sl__sim_queue_is_done(queue, number)) {
        wait_for_change(queue);
    }
}

static void note_failure(sl__sim_queue *queue, uint64_t number)
{
    if (queue->first_failed == 0 || number < queue->first_failed) {
        queue->first_failed = number;
    }
}

static uint64_t link_ns(const sl__sim_queue *queue, size_t n_bytes)
{
    return queue->link_bytes_s == 0
                   ? 0
                   : (uint64_t)((double)n_bytes * 1e9 / (double)queue->link_bytes_s);
}

/* Real time until the link has passed the copy. */
static uint64_t time_left(sl__sim_queue *queue, const sl__sim_copy *copy, uint64_t lasts_ns)
{
    uint64_t now = sl__now_ns();
    uint64_t start = copy->ready_ns > queue->free_ns ? copy->ready_ns : queue->free_ns;
    queue->free_ns = start + lasts_ns;
    return queue->free_ns > now ? queue->free_ns - now : 0;
}

bool sl__sim_queue_step(sl__sim_queue *queue)
{
    if (queue->n == 0 || queue->is_running) {
        return false;
    }
    queue->is_running = true;
    sl__sim_verdict verdict = queue->judge(queue->ud);
    /* After the verdict, which may drop copies. */
    const sl__sim_copy copy = *copy_at(queue, 0);
    bool works = verdict != SL__SIM_COPY_FAILS && copy.dst;
    uint64_t lasts = works ? link_ns(queue, copy.n_bytes) : 0;
    lasts += verdict == SL__SIM_COPY_IS_SLOW ? UINT64_C(1000000000) : 0;
    uint64_t sleeps = 0;
    if (queue->has_virtual_clock) {
        queue->now_ns += lasts;
    } else {
        sleeps = lasts > 0 ? time_left(queue, &copy, lasts) : 0;
    }
    sl__mutex_unlock(&queue->lock);
    if (works) {
        memcpy(copy.dst, copy.src, copy.n_bytes);
    }
    if (sleeps > 0) {
        sl__sleep_ns(sleeps);
    }
    sl__mutex_lock(&queue->lock);
    queue->is_running = false;
    queue->i_first = (queue->i_first + 1) % SL__SIM_QUEUE_CAP;
    queue->n--;
    if (works) {
        queue->copied_bytes += copy.n_bytes;
    } else {
        note_failure(queue, n_done(queue));
    }
    sl__cond_broadcast(&queue->done);
    return true;
}

void sl__sim_queue_drop_all(sl__sim_queue *queue)
{
    for (size_t i = 0; i < queue->n; i++) {
        copy_at(queue, i)->dst = NULL;
    }
}

size_t sl__sim_queue_drop_buffer(sl__sim_queue *queue, const void *buffer)
{
    size_t n_found = 0;
    uint64_t last = 0;
    for (size_t i = 0; i < queue->n; i++) {
        if (copy_at(queue, i)->buffer == buffer) {
            copy_at(queue, i)->dst = NULL;
            n_found++;
            last = n_done(queue) + i + 1;
        }
    }
    /* The one that runs was copied out of the ring already: wait for it, and for the others to fail. */
    sl__sim_queue_wait(queue, last);
    return n_found;
}

static bool overlaps(const sl__sim_copy *copy, const void *data, uint64_t n_bytes)
{
    uintptr_t a = (uintptr_t)copy->src;
    uintptr_t b = (uintptr_t)data;
    return a < b + n_bytes && b < a + copy->n_bytes;
}

bool sl__sim_queue_reads(const sl__sim_queue *queue, const void *data, uint64_t n_bytes)
{
    for (size_t i = 0; i < queue->n; i++) {
        if (overlaps(&queue->copies[(queue->i_first + i) % SL__SIM_QUEUE_CAP], data, n_bytes)) {
            return true;
        }
    }
    return false;
}

void sl__sim_queue_delay(sl__sim_queue *queue, uint64_t ns)
{
    if (queue->has_virtual_clock) {
        queue->now_ns += ns;
        return;
    }
    sl__mutex_unlock(&queue->lock);
    sl__sleep_ns(ns);
    sl__mutex_lock(&queue->lock);
}
