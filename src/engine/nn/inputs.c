#include "engine/nn/inputs.h"

#include <string.h>

#include "ggml-backend.h"

#include "base/mem.h"

int s2_inputs_init(s2_inputs *in, size_t max_tensors, sl_error *reterr)
{
    memset(in, 0, sizeof *in);
    return s2_state_init(&in->state, max_tensors + 1, reterr);
}

struct ggml_tensor *s2_inputs_add(s2_inputs *in, enum ggml_type type, int64_t ne0, int64_t ne1)
{
    return ggml_new_tensor_2d(in->state.ctx, type, ne0, ne1);
}

int s2_inputs_alloc(s2_inputs *in, s2_compute *compute, sl_error *reterr)
{
    int r = s2_state_alloc(&in->state, compute, SL_MEM_COMPUTE, reterr);
    if (r < 0 || s2_compute_is_measuring(compute)) {
        return r;
    }
    ggml_backend_buffer_t buffer = in->state.buffer;
    size_t n_bytes = ggml_backend_buffer_get_size(buffer);
    in->host = sl__alloc(n_bytes, 1);
    if (!in->host) {
        return sl__fail_nomem(reterr, n_bytes, "the inputs of a graph");
    }
    in->all = ggml_new_tensor_1d(in->state.ctx, GGML_TYPE_I8, (int64_t)n_bytes);
    void *base = ggml_backend_buffer_get_base(buffer);
    return ggml_backend_tensor_alloc(buffer, in->all, base) == GGML_STATUS_SUCCESS
                   ? SL_OK
                   : sl__fail(reterr, SL_EDEVICE, "%s: the inputs of a graph cannot be bound",
                             ggml_backend_name(compute->backend));
}

void *s2_inputs_host(const s2_inputs *in, const struct ggml_tensor *tensor)
{
    return in->host + ((const char *)tensor->data - (const char *)in->all->data);
}

void s2_inputs_send(const s2_inputs *in)
{
    ggml_backend_tensor_set_async(
            in->state.compute->backend, in->all, in->host, 0, ggml_nbytes(in->all));
}

size_t s2_inputs_bytes(const s2_inputs *in)
{
    return s2_state_bytes(&in->state);
}

void s2_inputs_done(s2_inputs *in)
{
    s2_state_done(&in->state);
    sl__free(in->host);
    memset(in, 0, sizeof *in);
}
