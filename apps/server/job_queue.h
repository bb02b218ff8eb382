/*
 * Jobs that wait for the engine, in the order in which they came, and not more than a given number.
 *
 * A job whose client is gone is taken out where it stands and never starts.
 *
 * Threads: any; one thread pops.
 */
#ifndef SERVER_JOB_QUEUE_H
#define SERVER_JOB_QUEUE_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "job.h"

typedef struct job_queue job_queue;

/* Errors: SL_ENOMEM. */
int job_queue_create(size_t most, job_queue **ret_queue, sl_error *reterr) SL_MUST_CHECK;

/* Frees the jobs that are left. Accepts NULL. */
void job_queue_free(job_queue **queue);

/*
 * Takes the job over, also on error (it is freed then, its answer untouched).
 * Errors: SL_EBUSY (full), SL_ECANCELLED (closed).
 */
int job_queue_push(job_queue *queue, job *j, sl_error *reterr) SL_MUST_CHECK;

/* The next job, or NULL when now_ns reaches deadline_ns (UINT64_MAX = never), at a poke, or once closed. */
job *job_queue_pop(job_queue *queue, uint64_t deadline_ns);

/* The oldest job that has waited since before `before_ns`, or NULL; the caller answers and frees it. */
job *job_queue_take_older(job_queue *queue, uint64_t before_ns);

/* Lets a waiting pop return. */
void job_queue_poke(job_queue *queue);

/* Nothing comes in any more; pop returns NULL. What waits stays, for job_queue_take_older. */
void job_queue_close(job_queue *queue);

bool job_queue_is_closed(job_queue *queue);

/* Frees jobs whose clients are gone. Their number. */
size_t job_queue_sweep(job_queue *queue);

/* Jobs that wait; may be read at any time. */
const atomic_size_t *job_queue_n_waiting(const job_queue *queue);
size_t job_queue_most(const job_queue *queue);

#endif
