#include "engine/nn/graph.h"

#include <string.h>

/* Room for the records of n tensors, and of two graphs over them. */
static struct ggml_context *new_record_context(size_t n_tensors)
{
    size_t bytes =
            n_tensors * ggml_tensor_overhead() + 2 * ggml_graph_overhead_custom(n_tensors, false);
    struct ggml_init_params params = {.mem_size = bytes, .mem_buffer = NULL, .no_alloc = true};
    return ggml_init(params);
}

/* Queues the graph's computation and the copies of its results, and waits for all of it. */
static int compute(const s2_compute *c, struct ggml_cgraph *cgraph, const s2_graph_read *reads,
        size_t n_reads, sl_error *reterr)
{
    enum ggml_status status = ggml_backend_graph_compute_async(c->backend, cgraph);
    for (size_t i = 0; i < n_reads && status == GGML_STATUS_SUCCESS; i++) {
        const struct ggml_tensor *from = reads[i].from;
        ggml_backend_tensor_get_async(c->backend, from, reads[i].to, 0, ggml_nbytes(from));
    }
    ggml_backend_synchronize(c->backend);
    if (status == GGML_STATUS_SUCCESS) {
        return SL_OK;
    }
    if (status == GGML_STATUS_ABORTED) {
        return sl__fail(reterr, SL_ECANCELLED, "stopped");
    }
    int code = status == GGML_STATUS_ALLOC_FAILED ? SL_ENOMEM : SL_EDEVICE;
    return sl__fail(reterr, code, "graph computation failed: %s", ggml_status_to_string(status));
}

int s2_graph_init(s2_graph *g, s2_compute *compute, size_t max_nodes, sl_error *reterr)
{
    memset(g, 0, sizeof *g);
    g->compute = compute;
    g->ctx = new_record_context(2 * max_nodes);
    if (!g->ctx) {
        return sl__fail_nomem(reterr, 2 * max_nodes * ggml_tensor_overhead(), "a graph");
    }
    g->cgraph = ggml_new_graph_custom(g->ctx, max_nodes, false);
    g->prelude = ggml_new_graph_custom(g->ctx, max_nodes, false);
    return s2_state_init(&g->constants, 2 * max_nodes, reterr);
}

struct ggml_tensor *s2_graph_constant(s2_graph *g, struct ggml_tensor *value)
{
    struct ggml_context *ctx = g->constants.ctx;
    struct ggml_tensor *leaf = ggml_new_tensor(ctx, GGML_TYPE_F32, GGML_MAX_DIMS, value->ne);
    ggml_build_forward_expand(g->prelude, ggml_cpy(ctx, value, leaf));
    return leaf;
}

static int check_support(const s2_graph *g, struct ggml_cgraph *cgraph, sl_error *reterr)
{
    for (int i = 0; i < ggml_graph_n_nodes(cgraph); i++) {
        const struct ggml_tensor *node = ggml_graph_node(cgraph, i);
        if (!s2_compute_supports(g->compute, node)) {
            const struct ggml_tensor *first = node->src[0];
            ggml_backend_t asked = g->compute->backend ? g->compute->backend : g->compute->like;
            return sl__fail(reterr, SL_EUNSUPPORTED, "%s does not compute %s%s%s",
                    ggml_backend_name(asked), ggml_op_desc(node), first ? " of " : "",
                    first ? ggml_type_name(first->type) : "");
        }
    }
    return SL_OK;
}

static int open_arena(s2_arena *arena, s2_compute *compute, sl_error *reterr)
{
    arena->compute = compute;
    arena->galloc = ggml_gallocr_new(compute->buft);
    return arena->galloc
                   ? SL_OK
                   : sl__fail(reterr, SL_ENOMEM, "out of memory: cannot plan a compute buffer");
}

static int place_graph(s2_graph *g, s2_arena *arena, size_t n_bytes, sl_error *reterr)
{
    if (arena->n_bytes == 0) {
        int r = s2_compute_book(g->compute, SL_MEM_COMPUTE, n_bytes, &arena->booked, reterr);
        if (r < 0) {
            return r;
        }
        arena->n_bytes = n_bytes;
    }
    bool is_there = ggml_gallocr_reserve(arena->galloc, g->cgraph) &&
                    ggml_gallocr_alloc_graph(arena->galloc, g->cgraph);
    return is_there ? SL_OK
                    : sl__fail(reterr, SL_ENOMEM,
                              "out of memory: cannot allocate a compute buffer of %zu bytes on %s",
                              n_bytes, ggml_backend_name(g->compute->backend));
}

/* What the graph needs, by an allocator of its own: asking that of an arena would forget its memory. */
static int measure_graph(const s2_graph *g, size_t *ret_bytes, sl_error *reterr)
{
    s2_arena trial = {0};
    int r = open_arena(&trial, g->compute, reterr);
    if (r == 0) {
        ggml_gallocr_reserve_n_size(trial.galloc, g->cgraph, NULL, NULL, ret_bytes);
        ggml_gallocr_free(trial.galloc);
    }
    return r;
}

static int compute_constants(s2_graph *g, sl_error *reterr)
{
    if (ggml_graph_n_nodes(g->prelude) == 0) {
        return SL_OK;
    }
    int r = s2_state_alloc(&g->constants, g->compute, SL_MEM_COMPUTE, reterr);
    if (r < 0 || s2_compute_is_measuring(g->compute)) {
        return r;
    }
    r = s2_compute_ready(g->compute, reterr);
    return r < 0 ? r : compute(g->compute, g->prelude, NULL, 0, reterr);
}

int s2_graph_alloc_in(s2_graph *g, s2_arena *arena, sl_error *reterr)
{
    size_t n_bytes = 0;
    int r = check_support(g, g->prelude, reterr);
    if (r == 0) {
        r = check_support(g, g->cgraph, reterr);
    }
    if (r == 0) {
        r = compute_constants(g, reterr);
    }
    if (r == 0) {
        r = measure_graph(g, &n_bytes, reterr);
    }
    if (r < 0) {
        return r;
    }
    arena = arena->n_bytes == 0 || n_bytes <= arena->n_bytes ? arena : &g->own;
    if (s2_compute_is_measuring(g->compute)) {
        arena->n_bytes = n_bytes > arena->n_bytes ? n_bytes : arena->n_bytes;
        return SL_OK;
    }
    r = arena->galloc ? SL_OK : open_arena(arena, g->compute, reterr);
    return r < 0 ? r : place_graph(g, arena, n_bytes, reterr);
}

int s2_graph_alloc(s2_graph *g, sl_error *reterr)
{
    return s2_graph_alloc_in(g, &g->own, reterr);
}

s2_graph_read s2_graph_read_to(const struct ggml_tensor *from, void *to)
{
    return (s2_graph_read){from, to};
}

int s2_graph_run(s2_graph *g, const s2_inputs *inputs_or_null, const s2_graph_read *reads,
        size_t n_reads, sl_error *reterr)
{
    s2_compute *c = g->compute;
    if (c->should_stop && c->should_stop(c->stop_ud)) {
        return sl__fail(reterr, SL_ECANCELLED, "stopped");
    }
    int r = s2_compute_ready(c, reterr);
    if (r < 0) {
        return r;
    }
    if (inputs_or_null) {
        s2_inputs_send(inputs_or_null);
    }
    return compute(c, g->cgraph, reads, n_reads, reterr);
}

size_t s2_graph_bytes(const s2_graph *g)
{
    return g->own.n_bytes + s2_state_bytes(&g->constants);
}

void s2_arena_done(s2_arena *arena)
{
    if (arena->galloc) {
        ggml_gallocr_free(arena->galloc);
        s2_compute_note_freed(arena->compute);
    }
    sl_scratch_release(&arena->booked);
    memset(arena, 0, sizeof *arena);
}

void s2_graph_done(s2_graph *g)
{
    if (!g) {
        return;
    }
    s2_arena_done(&g->own);
    s2_state_done(&g->constants);
    ggml_free(g->ctx);
    memset(g, 0, sizeof *g);
}
