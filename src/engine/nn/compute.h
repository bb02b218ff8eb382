/*
 * Where graphs are computed: one ggml back end with its thread pool.
 *
 * Threads: one thread at a time computes; the pool's workers live from init to done and sleep in between.
 */
#ifndef S2_NN_COMPUTE_H
#define S2_NN_COMPUTE_H

#include <stdbool.h>

#include "ggml-backend.h"
#include "ggml-cpu.h"

#include "base/status.h"

typedef struct s2_compute {
    ggml_backend_t backend;
    ggml_threadpool_t pool; /* NULL with one thread */
    int n_threads;
} s2_compute;

/* n_threads >= 1. Errors: SL_EINVAL, SL_ENOMEM. Zeroed memory may be passed to done. */
int s2_compute_init(s2_compute *compute, int n_threads, sl_error *reterr) SL_MUST_CHECK;
void s2_compute_done(s2_compute *compute);

/*
 * Lets a graph be left half way: should_stop is asked between its nodes, on a worker thread; true makes the
 * run end with SL_ECANCELLED. NULL removes it.
 */
void s2_compute_set_stop(s2_compute *compute, bool (*should_stop)(void *ud), void *ud);

#endif
