/*
 * The queue of copies of a simulated device, its thread and its clock.
 *
 * Threads: the queue brings the one lock of its device. Callers of every function but init and done hold it;
 * functions that wait or copy release it meanwhile.
 */
#ifndef SL_DEVICE_SIM_QUEUE_H
#define SL_DEVICE_SIM_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "os/os_thread.h"

enum {
    SL__SIM_QUEUE_CAP = 64
};

typedef struct sl__sim_copy {
    const void *buffer; /* whose memory dst is */
    unsigned char *dst; /* NULL: dropped, nothing is copied */
    const unsigned char *src;
    size_t n_bytes;
    uint64_t ready_ns; /* when it was queued */
} sl__sim_copy;

typedef enum sl__sim_verdict {
    SL__SIM_COPY_WORKS,
    SL__SIM_COPY_IS_SLOW,
    SL__SIM_COPY_FAILS,
} sl__sim_verdict;

typedef struct sl__sim_queue {
    sl__mutex lock;
    sl__cond work;
    sl__cond done;
    sl__thread thread;
    bool stops;
    bool is_running; /* the first copy is being done, without the lock */
    sl__sim_copy copies[SL__SIM_QUEUE_CAP];
    size_t i_first;
    size_t n;
    uint64_t n_ever;       /* copies queued so far; the number of the last one */
    uint64_t first_failed; /* number of the first copy that failed since the last clear; 0 = none */
    uint64_t copied_bytes;
    uint64_t link_bytes_s;
    bool has_virtual_clock;
    bool is_stepped;
    uint64_t now_ns;  /* of the virtual clock */
    uint64_t free_ns; /* real time at which the link is free again */
    /* Asked once for each copy, with the lock held: what becomes of it. */
    sl__sim_verdict (*judge)(void *ud);
    void *ud;
} sl__sim_queue;

/* The caller has set link, clock, is_stepped, judge and ud. Starts the thread unless the queue is stepped. */
int sl__sim_queue_init(sl__sim_queue *queue, sl_error *reterr) SL_MUST_CHECK;

/* Drops what is queued and joins the thread. */
void sl__sim_queue_done(sl__sim_queue *queue);

/* Waits for room and queues a copy; returns its number. */
uint64_t sl__sim_queue_push(sl__sim_queue *queue, sl__sim_copy copy);

/* Waits until the copy of that number and all before it are done. */
void sl__sim_queue_wait(sl__sim_queue *queue, uint64_t number);

bool sl__sim_queue_is_done(const sl__sim_queue *queue, uint64_t number);

/* Does the first copy if there is one: for stepped queues. */
bool sl__sim_queue_step(sl__sim_queue *queue);

/* All queued copies fail, in their order, without being done; one that runs already is finished. */
void sl__sim_queue_drop_all(sl__sim_queue *queue);

/* The same for those to a buffer, and waits until they are gone; returns how many there were. */
size_t sl__sim_queue_drop_buffer(sl__sim_queue *queue, const void *buffer);

/* Whether a queued copy reads from that memory. */
bool sl__sim_queue_reads(const sl__sim_queue *queue, const void *data, uint64_t n_bytes);

/* Time passes, on whichever clock. */
void sl__sim_queue_delay(sl__sim_queue *queue, uint64_t ns);

#endif
