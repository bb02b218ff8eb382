/*
 * Where graphs are computed: one ggml back end on one place of a residency.
 *
 * A CPU comes with a thread pool. A simulated device computes with the CPU's back end: its memory is only
 * counted apart. A measuring compute allocates nothing; graphs and states made on it know their sizes.
 *
 * Memory that is taken for graphs and states is booked with the residency first, if there is one.
 *
 * Threads: one thread at a time computes; the pool's workers live from init to done and sleep in between.
 */
#ifndef S2_NN_COMPUTE_H
#define S2_NN_COMPUTE_H

#include <stdbool.h>
#include <stddef.h>

#include "ggml-backend.h"
#include "ggml.h"

#include "base/status.h"
#include "sluice/device.h"
#include "sluice/residency.h"

typedef struct s2_compute {
    ggml_backend_t backend; /* NULL: measures only */
    ggml_backend_t like;    /* what is measured for; NULL: nothing that is there */
    ggml_backend_buffer_type_t buft;
    ggml_threadpool_t pool; /* NULL with one thread, and on other devices */
    int n_threads;
    bool is_cpu;      /* the fused kernels run on it, and ggml's CPU back end */
    bool is_borrowed; /* memory apart that the host's CPU computes on: a simulated device */
    bool is_worn;     /* memory that the back end may still have on its mind was freed */
    bool is_touchy;   /* and it may look at that */
    bool is_eager; /* kernels begin before those they depend on have ended, and wait for them inside */
    bool (*should_stop)(void *ud);
    void *stop_ud;
    sl_residency *residency; /* NULL: nothing is booked */
    size_t i_place;
} s2_compute;

/*
 * ggml's CPU back end. n_threads >= 1. Zeroed memory may be passed to done.
 * Errors: SL_EINVAL, SL_ENOMEM, SL_EDEVICE (ggml has no CPU back end, see nn/back_ends.h).
 */
int s2_compute_init(s2_compute *compute, int n_threads, sl_error *reterr) SL_MUST_CHECK;

/*
 * A device: an instance of its back end of its own if it is one of ggml's, otherwise memory that `cpu` computes
 * on. `cpu` outlives it. Errors: SL_EDEVICE.
 */
int s2_compute_init_device(s2_compute *compute, const s2_compute *cpu, sl_device *device,
        sl_error *reterr) SL_MUST_CHECK;

/* A compute that only measures, as if on `like`, or, without it, as on a GPU or on a CPU. */
void s2_compute_init_measure(s2_compute *compute, const s2_compute *like, bool is_cpu);
bool s2_compute_is_measuring(const s2_compute *compute);

void s2_compute_done(s2_compute *compute);

/* From now on memory is booked on this place. */
void s2_compute_book_on(s2_compute *compute, sl_residency *residency, size_t i_place);

/* Books n_bytes, or nothing without a residency: *ret_scratch is NULL then. Errors: those of sl_scratch_acquire. */
int s2_compute_book(const s2_compute *compute, sl_mem_kind kind, uint64_t n_bytes,
        sl_scratch **ret_scratch, sl_error *reterr) SL_MUST_CHECK;

/* Memory of the device was freed that graphs have used. */
void s2_compute_note_freed(s2_compute *compute);

/*
 * Where such memory was freed, the back end's instance begins anew: its pools, which only grow, go back. It takes tens
 * of milliseconds on CUDA. Errors: SL_EDEVICE.
 */
int s2_compute_renew(s2_compute *compute, sl_error *reterr) SL_MUST_CHECK;

/*
 * Before a graph: Vulkan's back end keeps descriptors of what is gone, and the software device of Mesa 22 looks at
 * those, so that it begins anew. Errors: SL_EDEVICE.
 */
int s2_compute_ready(s2_compute *compute, sl_error *reterr) SL_MUST_CHECK;

/*
 * Lets a graph be left half way: should_stop is asked between its nodes on a worker thread (CPU), or before it
 * runs (other devices); true makes the run end with SL_ECANCELLED. NULL removes it.
 */
void s2_compute_set_stop(s2_compute *compute, bool (*should_stop)(void *ud), void *ud);

/* Whether the device has this operation with these shapes and types. */
bool s2_compute_supports(const s2_compute *compute, const struct ggml_tensor *node);

#endif
