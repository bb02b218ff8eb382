/*
 * The one thread that uses the engine: it opens it, takes jobs from the queue, and puts the engine to sleep when
 * there are none.
 *
 * Threads: create, stop and free by one thread; the questions by any.
 */
#ifndef SERVER_WORKER_H
#define SERVER_WORKER_H

#include <stdbool.h>

#include "job_queue.h"
#include "metrics.h"
#include "server.h"

typedef enum worker_state {
    WORKER_LOADING,
    WORKER_READY,
    WORKER_FAILED,
    WORKER_STATE_COUNT
} worker_state;

const char *worker_state_name(worker_state state); /* "loading", "ready", "failed" */

typedef struct worker worker;

/* opts, queue and metrics outlive the worker. Errors: SL_ENOMEM. */
int worker_create(const server_opts *opts, job_queue *queue, metrics *m, worker **ret_worker,
        sl_error *reterr) SL_MUST_CHECK;

/* Cuts the job that runs, at the next look of the engine. */
void worker_cut(worker *w);

/*
 * The queue must be closed. Waits for the thread, closes the engine, and sets *w to NULL. Accepts NULL.
 */
void worker_free(worker **w);

/*
 * What the engine says about its memory; nothing unless it is open. An engine whose model file was changed under it
 * is opened anew after the request that met the change.
 */
void worker_get_status(worker *w, speaker_status *ret_status);
bool worker_describe(worker *w, sl__json *json); /* false: nothing was written */

worker_state worker_get_state(worker *w);
void worker_get_error(worker *w, sl_error *ret_error); /* of WORKER_FAILED */
bool worker_is_busy(worker *w);
const char *worker_activity(worker *w); /* "idle", "speech", "voice", "sleep"; static */
unsigned worker_sleep_level(worker *w);
/* Zero until the model is open. */
s2_engine_info worker_get_info(worker *w);

#endif
