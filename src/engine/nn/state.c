#include "engine/nn/state.h"

#include <string.h>

#include "ggml-alloc.h"

#include "os/os_process.h"

/* Stands for memory that is only measured: ggml takes a tensor with an address for one that has its memory. */
#define NO_MEMORY ((void *)(uintptr_t)64)

int s2_state_init(s2_state *s, size_t max_tensors, sl_error *reterr)
{
    memset(s, 0, sizeof *s);
    struct ggml_init_params params = {
            .mem_size = max_tensors * ggml_tensor_overhead(), .mem_buffer = NULL, .no_alloc = true};
    s->ctx = ggml_init(params);
    if (!s->ctx) {
        return sl__fail_nomem(reterr, max_tensors * ggml_tensor_overhead(), "state records");
    }
    return SL_OK;
}

/* Gives every tensor an address, so that graphs over them can be measured. */
static void pretend(s2_state *s)
{
    for (struct ggml_tensor *t = ggml_get_first_tensor(s->ctx); t;
            t = ggml_get_next_tensor(s->ctx, t)) {
        t->data = NO_MEMORY;
    }
}

int s2_state_alloc(s2_state *s, s2_compute *compute, sl_mem_kind kind, sl_error *reterr)
{
    s->compute = compute;
    size_t n_bytes = ggml_backend_alloc_ctx_tensors_from_buft_size(s->ctx, compute->buft);
    if (s2_compute_is_measuring(compute)) {
        pretend(s);
        s->n_bytes = n_bytes;
        return SL_OK;
    }
    int r = s2_compute_book(compute, kind, n_bytes, &s->booked, reterr);
    if (r < 0) {
        return r;
    }
    s->buffer = ggml_backend_alloc_ctx_tensors_from_buft(s->ctx, compute->buft);
    if (!s->buffer) {
        sl_scratch_release(&s->booked);
        return sl__fail(reterr, SL_ENOMEM,
                "out of memory: cannot allocate state tensors of %zu bytes on %s", n_bytes,
                ggml_backend_name(compute->backend));
    }
    s->n_bytes = n_bytes;
    if (ggml_backend_buffer_is_host(s->buffer)) {
        /* It is made for each request, and all of it is touched at once. */
        sl__advise_large_pages(
                ggml_backend_buffer_get_base(s->buffer), ggml_backend_buffer_get_size(s->buffer));
    }
    s2_state_clear(s);
    return SL_OK;
}

void s2_state_clear(s2_state *s)
{
    if (s->buffer) {
        ggml_backend_buffer_clear(s->buffer, 0);
    }
}

size_t s2_state_bytes(const s2_state *s)
{
    return s->n_bytes;
}

void s2_state_done(s2_state *s)
{
    if (!s) {
        return;
    }
    if (s->buffer) {
        ggml_backend_buffer_free(s->buffer);
        s2_compute_note_freed(s->compute);
    }
    sl_scratch_release(&s->booked);
    ggml_free(s->ctx);
    memset(s, 0, sizeof *s);
}
