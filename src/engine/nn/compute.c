/*
 * The CPU back end may be a library of its own that is loaded at run time, so its functions are asked for by name;
 * all back ends are then reached in the same way.
 */
#include "engine/nn/compute.h"

#include <string.h>

#include "engine/nn/back_ends.h"
#include "os/os_thread.h"
#include "sluice/ggml_device.h"

typedef ggml_threadpool_t (*pool_new_fn)(struct ggml_threadpool_params *params);
typedef void (*pool_free_fn)(ggml_threadpool_t pool);
typedef void (*set_pool_fn)(ggml_backend_t backend, ggml_threadpool_t pool);

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

/* ggml passes functions as void pointers, which ISO C does not convert. */
static void get_function(ggml_backend_t backend, const char *name, void *ret_fn, size_t n_bytes)
{
    ggml_backend_reg_t reg = ggml_backend_dev_backend_reg(ggml_backend_get_device(backend));
    void *found = ggml_backend_reg_get_proc_address(reg, name);
    memcpy(ret_fn, &found, n_bytes);
}

static int start_pool(s2_compute *compute, sl_error *reterr)
{
    pool_new_fn pool_new;
    set_pool_fn set_pool;
    get_function(compute->backend, "ggml_threadpool_new", &pool_new, sizeof pool_new);
    get_function(compute->backend, "ggml_backend_cpu_set_threadpool", &set_pool, sizeof set_pool);
    struct ggml_threadpool_params params = ggml_threadpool_params_default(compute->n_threads);
    compute->pool = pool_new(&params);
    if (!compute->pool) {
        return sl__fail(reterr, SL_ENOMEM, "cannot start %d threads", compute->n_threads);
    }
    set_pool(compute->backend, compute->pool);
    return SL_OK;
}

int s2_compute_init(s2_compute *compute, int n_threads, sl_error *reterr)
{
    memset(compute, 0, sizeof *compute);
    if (n_threads < 1 || n_threads > GGML_MAX_N_THREADS) {
        return sl__fail(
                reterr, SL_EINVAL, "threads: %d, need 1 to %d", n_threads, GGML_MAX_N_THREADS);
    }
    int r = n_threads > 1 ? try_thread(reterr) : SL_OK;
    if (r < 0) {
        return r;
    }
    s2_back_ends_load();
    compute->n_threads = n_threads;
    compute->is_cpu = true;
    compute->backend = ggml_backend_init_by_type(GGML_BACKEND_DEVICE_TYPE_CPU, NULL);
    if (!compute->backend) {
        return sl__fail(reterr, SL_EDEVICE,
                "cannot start ggml's CPU back end; if ggml's back ends are files of their own, "
                "name "
                "their folder in SLUICE_GGML_BACKENDS");
    }
    compute->buft = ggml_backend_get_default_buffer_type(compute->backend);
    ggml_backend_set_n_threads_t set_n_threads;
    get_function(
            compute->backend, "ggml_backend_set_n_threads", &set_n_threads, sizeof set_n_threads);
    set_n_threads(compute->backend, n_threads);
    r = n_threads > 1 ? start_pool(compute, reterr) : SL_OK;
    if (r < 0) {
        s2_compute_done(compute);
    }
    return r;
}

int s2_compute_init_device(
        s2_compute *compute, const s2_compute *cpu, sl_device *device, sl_error *reterr)
{
    memset(compute, 0, sizeof *compute);
    compute->n_threads = cpu->n_threads;
    if (!sl_ggml_is(device)) {
        compute->backend = cpu->backend;
        compute->buft = cpu->buft;
        compute->is_cpu = true;
        compute->is_borrowed = true;
        return SL_OK;
    }
    compute->backend = ggml_backend_dev_init(sl_ggml_dev(device), NULL);
    if (!compute->backend) {
        return sl__fail(reterr, SL_EDEVICE, "%s: the back end does not start for computing",
                sl_device_name(device));
    }
    compute->buft = ggml_backend_get_default_buffer_type(compute->backend);
    const char *reg = ggml_backend_reg_name(ggml_backend_dev_backend_reg(sl_ggml_dev(device)));
    compute->is_touchy = strcmp(reg, "Vulkan") == 0;
    compute->is_eager = strcmp(reg, "CUDA") == 0;
    return SL_OK;
}

void s2_compute_init_measure(s2_compute *compute, const s2_compute *like, bool is_cpu)
{
    memset(compute, 0, sizeof *compute);
    compute->n_threads = like ? like->n_threads : 1;
    compute->is_cpu = like ? like->is_cpu : is_cpu;
    compute->is_borrowed = like && like->is_borrowed;
    compute->buft = like ? like->buft : ggml_backend_cpu_buffer_type();
    compute->like = like ? like->backend : NULL;
}

bool s2_compute_is_measuring(const s2_compute *compute)
{
    return !compute->backend;
}

void s2_compute_book_on(s2_compute *compute, sl_residency *residency, size_t i_place)
{
    compute->residency = residency;
    compute->i_place = i_place;
}

int s2_compute_book(const s2_compute *compute, sl_mem_kind kind, uint64_t n_bytes,
        sl_scratch **ret_scratch, sl_error *reterr)
{
    const sl_wait wait = {compute->should_stop, compute->stop_ud};
    *ret_scratch = NULL;
    if (!compute->residency) {
        return SL_OK;
    }
    return sl_scratch_acquire(
            compute->residency, compute->i_place, kind, n_bytes, false, &wait, ret_scratch, reterr);
}

void s2_compute_set_stop(s2_compute *compute, bool (*should_stop)(void *ud), void *ud)
{
    compute->should_stop = should_stop;
    compute->stop_ud = ud;
    if (compute->is_cpu && compute->backend && !compute->is_borrowed) {
        ggml_backend_set_abort_callback_t set_abort;
        get_function(
                compute->backend, "ggml_backend_set_abort_callback", &set_abort, sizeof set_abort);
        set_abort(compute->backend, should_stop, ud);
    }
}

void s2_compute_note_freed(s2_compute *compute)
{
    compute->is_worn = compute->backend && !compute->is_cpu;
}

int s2_compute_renew(s2_compute *compute, sl_error *reterr)
{
    if (!compute->is_worn) {
        return SL_OK;
    }
    ggml_backend_dev_t dev = ggml_backend_get_device(compute->backend);
    ggml_backend_t fresh = ggml_backend_dev_init(dev, NULL);
    if (!fresh) {
        return sl__fail(reterr, SL_EDEVICE, "%s: the back end does not start again",
                ggml_backend_dev_name(dev));
    }
    ggml_backend_free(compute->backend);
    compute->backend = fresh;
    compute->is_worn = false;
    return SL_OK;
}

int s2_compute_ready(s2_compute *compute, sl_error *reterr)
{
    return compute->is_touchy ? s2_compute_renew(compute, reterr) : SL_OK;
}

bool s2_compute_supports(const s2_compute *compute, const struct ggml_tensor *node)
{
    ggml_backend_t asked = compute->backend ? compute->backend : compute->like;
    return compute->is_cpu || !asked || ggml_backend_supports_op(asked, node);
}

void s2_compute_done(s2_compute *compute)
{
    if (!compute) {
        return;
    }
    if (compute->backend && !compute->is_borrowed) {
        pool_free_fn pool_free = NULL;
        if (compute->pool) {
            get_function(compute->backend, "ggml_threadpool_free", &pool_free, sizeof pool_free);
        }
        ggml_backend_free(compute->backend);
        if (compute->pool) {
            pool_free(compute->pool);
        }
    }
    memset(compute, 0, sizeof *compute);
}
