/*
 * Jobs of the worker that make sound: from the job's parameters to the bytes of its answer, and from a recording
 * to a saved voice.
 *
 * Threads: the worker.
 */
#ifndef SERVER_SPEECH_H
#define SERVER_SPEECH_H

#include "job.h"
#include "metrics.h"
#include "server.h"

typedef struct speech_context {
    const server_opts *opts;
    metrics *metrics;
    const atomic_size_t *n_waiting; /* of the queue */
} speech_context;

/* Speaks and completes the answer, whatever happens. Returns 0, or the error that was answered. */
int speech_run(const speech_context *context, job *j);

/* Makes and saves a voice, and completes the answer. The same results. */
int voice_run(const speech_context *context, job *j);

/* DIR/NAME.s2voice exists. */
bool voice_exists(const char *dir, const char *name);

#endif
