#include "engine/nn/compute.h"

#include <string.h>

#include "os/os_thread.h"

static void do_nothing(void *ud)
{
    (void)ud;
}

/* ggml ends the process if a thread cannot be started, so one is tried first; most limits show here. */
static int try_thread(sl_error *reterr)
{
    sl__thread thread = {0};
    int r = sl__thread_start(&thread, "sluice-try", do_nothing, NULL, reterr);
    sl__thread_join(&thread);
    return r;
}

int s2_compute_init(s2_compute *compute, int n_threads, sl_error *reterr)
{
    memset(compute, 0, sizeof *compute);
    if (n_threads < 1 || n_threads > GGML_MAX_N_THREADS) {
        return sl__fail(
                reterr, SL_EINVAL, "threads: %d, need 1 to %d", n_threads, GGML_MAX_N_THREADS);
    }
    if (n_threads > 1) {
        int r = try_thread(reterr);
        if (r < 0) {
            return r;
        }
    }
    compute->n_threads = n_threads;
    compute->backend = ggml_backend_cpu_init();
    if (!compute->backend) {
        return sl__fail(reterr, SL_ENOMEM, "cannot start ggml's CPU back end");
    }
    ggml_backend_cpu_set_n_threads(compute->backend, n_threads);
    if (n_threads > 1) {
        struct ggml_threadpool_params params = ggml_threadpool_params_default(n_threads);
        compute->pool = ggml_threadpool_new(&params);
        if (!compute->pool) {
            s2_compute_done(compute);
            return sl__fail(reterr, SL_ENOMEM, "cannot start %d threads", n_threads);
        }
        ggml_backend_cpu_set_threadpool(compute->backend, compute->pool);
    }
    return SL_OK;
}

void s2_compute_set_stop(s2_compute *compute, bool (*should_stop)(void *ud), void *ud)
{
    ggml_backend_cpu_set_abort_callback(compute->backend, should_stop, ud);
}

void s2_compute_done(s2_compute *compute)
{
    if (!compute) {
        return;
    }
    ggml_backend_free(compute->backend);
    if (compute->pool) {
        ggml_threadpool_free(compute->pool);
    }
    memset(compute, 0, sizeof *compute);
}
