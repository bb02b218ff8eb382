#include "engine/nn/graph.h"

#include <string.h>

/* Room for the records of n tensors and, if is_graph, of a graph over them. */
static struct ggml_context *new_record_context(size_t n_tensors, bool is_graph)
{
    size_t bytes = n_tensors * ggml_tensor_overhead();
    if (is_graph) {
        bytes += ggml_graph_overhead_custom(n_tensors, false);
    }
    struct ggml_init_params params = {.mem_size = bytes, .mem_buffer = NULL, .no_alloc = true};
    return ggml_init(params);
}

int s2_graph_init(s2_graph *g, s2_compute *compute, size_t max_nodes, sl_error *reterr)
{
    memset(g, 0, sizeof *g);
    g->compute = compute;
    g->ctx = new_record_context(2 * max_nodes, true);
    if (!g->ctx) {
        return sl__fail_nomem(reterr, 2 * max_nodes * ggml_tensor_overhead(), "a graph");
    }
    g->cgraph = ggml_new_graph_custom(g->ctx, max_nodes, false);
    return SL_OK;
}

int s2_graph_alloc(s2_graph *g, sl_error *reterr)
{
    g->galloc = ggml_gallocr_new(ggml_backend_get_default_buffer_type(g->compute->backend));
    if (!g->galloc || !ggml_gallocr_alloc_graph(g->galloc, g->cgraph)) {
        return sl__fail(reterr, SL_ENOMEM, "out of memory: cannot allocate a compute buffer");
    }
    return SL_OK;
}

int s2_graph_run(s2_graph *g, sl_error *reterr)
{
    enum ggml_status status = ggml_backend_graph_compute(g->compute->backend, g->cgraph);
    if (status == GGML_STATUS_SUCCESS) {
        return SL_OK;
    }
    if (status == GGML_STATUS_ABORTED) {
        return sl__fail(reterr, SL_ECANCELLED, "stopped");
    }
    int code = status == GGML_STATUS_ALLOC_FAILED ? SL_ENOMEM : SL_EDEVICE;
    return sl__fail(reterr, code, "graph computation failed: %s", ggml_status_to_string(status));
}

size_t s2_graph_bytes(const s2_graph *g)
{
    return g->galloc ? ggml_gallocr_get_buffer_size(g->galloc, 0) : 0;
}

void s2_graph_done(s2_graph *g)
{
    if (!g) {
        return;
    }
    ggml_gallocr_free(g->galloc);
    ggml_free(g->ctx);
    memset(g, 0, sizeof *g);
}

int s2_state_init(s2_state *s, size_t max_tensors, sl_error *reterr)
{
    memset(s, 0, sizeof *s);
    s->ctx = new_record_context(max_tensors, false);
    if (!s->ctx) {
        return sl__fail_nomem(reterr, max_tensors * ggml_tensor_overhead(), "state records");
    }
    return SL_OK;
}

int s2_state_alloc(s2_state *s, s2_compute *compute, sl_error *reterr)
{
    s->buffer = ggml_backend_alloc_ctx_tensors(s->ctx, compute->backend);
    if (!s->buffer) {
        return sl__fail(reterr, SL_ENOMEM, "out of memory: cannot allocate state tensors");
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
    return s->buffer ? ggml_backend_buffer_get_size(s->buffer) : 0;
}

void s2_state_done(s2_state *s)
{
    if (!s) {
        return;
    }
    ggml_backend_buffer_free(s->buffer);
    ggml_free(s->ctx);
    memset(s, 0, sizeof *s);
}
