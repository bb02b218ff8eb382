#include "engine/model/slow_graph.h"

#include <stdbool.h>
#include <string.h>

#include "base/mem.h"
#include "engine/nn/ops.h"

#define EXTRA_NODES 256

/* Layers of a segment of a prompt: few enough to start early, many enough to cost nothing. The first are shorter yet. */
#define SEGMENT_LAYERS 6

/* Columns, and where they stand. */
#define MAX_INPUTS 4

/* Parts: 0 .. n_layer - 1 are the layers, then the norm, then the head. */
struct s2_slow_segment {
    uint32_t first_part;
    uint32_t end_part;
    size_t i_compute;
    bool is_built;
    s2_graph g;
    struct ggml_tensor *hidden; /* F32 [n_embd], with the norm */
    struct ggml_tensor *logits; /* F32 [codebook_size], with the head */
};

static uint32_t norm_part(const s2_slow_model *m)
{
    return m->hp.slow.n_layer;
}

static uint32_t n_parts(const s2_slow_model *m)
{
    return m->hp.slow.n_layer + 2;
}

static s2_compute *compute_of(const s2_slow_model *m, uint32_t part)
{
    bool is_split = m->places.n_first < m->hp.slow.n_layer;
    return is_split && part >= m->places.n_first ? m->places.rest : m->places.first;
}

/* Computes in the order of the places, each once. */
static size_t index_of(const s2_slow_model *m, const s2_compute *compute)
{
    return compute == m->places.first ? 0 : 1;
}

static s2_compute *compute_at(const s2_slow_model *m, size_t i)
{
    return i == 0 ? m->places.first : m->places.rest;
}

/* Weights of a CPU are used where they are; whatever else computes gets them moved. */
static bool is_moved_to(const s2_compute *compute)
{
    return !compute->is_cpu || compute->is_borrowed;
}

static bool is_cut_before(const s2_slow_graph *sg, uint32_t part)
{
    const s2_slow_model *m = sg->model;
    s2_compute *compute = compute_of(m, part);
    if (compute != compute_of(m, part - 1)) {
        return true;
    }
    bool is_layer = part < norm_part(m);
    bool is_border = part == 1 || part == SEGMENT_LAYERS / 2 || part % SEGMENT_LAYERS == 0;
    return is_layer && sg->n > 1 && is_moved_to(compute) && is_border;
}

static uint64_t weights_epoch(const s2_slow_model *m)
{
    return s2_weights_epoch(m->weights, S2_SLOT_SLOW) +
           s2_weights_epoch(m->weights, S2_SLOT_SLOW_REST);
}

bool s2_slow_graph_fits(const s2_slow_graph *sg, uint32_t n, uint32_t n_kv)
{
    return sg->n == n && sg->n_kv == n_kv && sg->epoch == weights_epoch(sg->model);
}

static int cut_segments(s2_slow_graph *sg, sl_error *reterr)
{
    const s2_slow_model *m = sg->model;
    sg->segments = sl__alloc(n_parts(m), sizeof *sg->segments);
    if (!sg->segments) {
        return sl__fail_nomem(reterr, n_parts(m) * sizeof *sg->segments, "graph segments");
    }
    for (uint32_t part = 0; part < n_parts(m); part++) {
        if (part == 0 || is_cut_before(sg, part)) {
            s2_slow_segment *seg = &sg->segments[sg->n_segments++];
            seg->first_part = part;
            seg->i_compute = index_of(m, compute_of(m, part));
        }
        sg->segments[sg->n_segments - 1].end_part = part + 1;
    }
    return SL_OK;
}

/* Columns are handed over through memory that no graph reuses. */
static int make_bridges(s2_slow_graph *sg, sl_error *reterr)
{
    const s2_slow_model *m = sg->model;
    int r = SL_OK;
    for (size_t k = 0; k < sg->n_segments && sg->n_segments > 1 && r == 0; k++) {
        size_t i = sg->segments[k].i_compute;
        if (sg->x[i]) {
            continue;
        }
        r = s2_state_init(&sg->bridges[i], 1, reterr);
        if (r == 0) {
            sg->x[i] =
                    ggml_new_tensor_2d(sg->bridges[i].ctx, GGML_TYPE_F32, m->hp.slow.n_embd, sg->n);
            r = s2_state_alloc(&sg->bridges[i], compute_at(m, i), SL_MEM_COMPUTE, reterr);
        }
    }
    return r;
}

/* One for each compute that a segment is on. */
static int make_inputs(s2_slow_graph *sg, sl_error *reterr)
{
    const s2_ar_hparams *hp = &sg->model->hp.slow;
    int r = SL_OK;
    for (size_t k = 0; k < sg->n_segments && r == 0; k++) {
        size_t i = sg->segments[k].i_compute;
        s2_compute *compute = compute_at(sg->model, i);
        if (sg->where[i].pos) {
            continue;
        }
        r = s2_inputs_init(&sg->inputs[i], MAX_INPUTS, reterr);
        if (r < 0) {
            return r;
        }
        sg->where[i] = s2_ar_inputs_add(&sg->inputs[i], compute, hp, sg->n, sg->n_kv);
        if (k == 0) {
            sg->columns = s2_inputs_add(&sg->inputs[i], GGML_TYPE_F32, hp->n_embd, sg->n);
        }
        r = s2_inputs_alloc(&sg->inputs[i], compute, reterr);
    }
    return r;
}

int s2_slow_graph_init(
        s2_slow_graph *sg, const s2_slow_model *model, uint32_t n, uint32_t n_kv, sl_error *reterr)
{
    size_t n_rows = 2 * (size_t)model->hp.slow.n_embd;
    memset(sg, 0, sizeof *sg);
    sg->model = model;
    sg->n = n;
    sg->n_kv = n_kv;
    sg->epoch = weights_epoch(model);
    sg->rows = sl__alloc(n_rows, sizeof *sg->rows);
    int r = sg->rows ? SL_OK : sl__fail_nomem(reterr, n_rows * sizeof *sg->rows, "rows of tables");
    if (r == 0) {
        r = cut_segments(sg, reterr);
    }
    if (r == 0) {
        r = make_inputs(sg, reterr);
    }
    if (r == 0) {
        r = make_bridges(sg, reterr);
    }
    if (r < 0) {
        s2_slow_graph_done(sg);
    }
    return r;
}

static void segment_clear(s2_slow_segment *seg)
{
    s2_graph_done(&seg->g);
    seg->is_built = false;
}

void s2_slow_graph_done(s2_slow_graph *sg)
{
    for (size_t i = 0; i < sg->n_segments; i++) {
        segment_clear(&sg->segments[i]);
    }
    for (size_t i = 0; i < S2_SLOW_MAX_COMPUTES; i++) {
        s2_arena_done(&sg->arenas[i]);
        s2_state_done(&sg->bridges[i]);
        s2_inputs_done(&sg->inputs[i]);
    }
    sl__free(sg->segments);
    sl__free(sg->rows);
    memset(sg, 0, sizeof *sg);
}

static struct ggml_tensor *add_output(s2_graph *g, struct ggml_tensor *t)
{
    ggml_set_output(t);
    ggml_build_forward_expand(g->cgraph, t);
    return t;
}

/* The final norm of the last column. */
static struct ggml_tensor *build_norm(
        const s2_slow_graph *sg, s2_slow_segment *seg, struct ggml_tensor *x)
{
    const s2_ar_hparams *hp = &sg->model->hp.slow;
    struct ggml_tensor *last =
            ggml_view_2d(seg->g.ctx, x, hp->n_embd, 1, x->nb[1], (size_t)(sg->n - 1) * x->nb[1]);
    seg->hidden = s2_nn_rms_norm(&seg->g, last, sg->model->norm, hp->rms_eps);
    return add_output(&seg->g, seg->hidden);
}

static void build_parts(const s2_slow_graph *sg, s2_slow_segment *seg)
{
    const s2_slow_model *m = sg->model;
    struct ggml_tensor *x = seg->first_part == 0 ? sg->columns : sg->x[seg->i_compute];
    if (seg->first_part == 0 && sg->n_segments > 1) {
        /* A layer behind another reads memory of the graph. So does this one, and all segments take as much and share it. */
        x = ggml_cont(seg->g.ctx, x);
    }
    for (uint32_t part = seg->first_part; part < seg->end_part; part++) {
        if (part < norm_part(m)) {
            x = s2_ar_layer_build(&seg->g, &m->hp.slow, &m->layers[part], &m->kv.layers[part],
                    &sg->where[seg->i_compute], x);
        } else if (part == norm_part(m)) {
            x = build_norm(sg, seg, x);
        } else {
            seg->logits = add_output(&seg->g, s2_nn_linear(&seg->g, m->head, x));
        }
    }
    if (seg->end_part < n_parts(m)) {
        struct ggml_tensor *bridge = sg->x[seg->i_compute];
        ggml_build_forward_expand(seg->g.cgraph, ggml_cpy(seg->g.ctx, x, bridge));
    }
}

/* Waits for the weights of the segment's parts. */
static int arrive(const s2_slow_graph *sg, const s2_slow_segment *seg, sl_error *reterr)
{
    const s2_slow_model *m = sg->model;
    const s2_compute *c = compute_at(m, seg->i_compute);
    const sl_wait wait = {c->should_stop, c->stop_ud};
    int r = SL_OK;
    for (uint32_t part = seg->first_part; part < seg->end_part && r == 0; part++) {
        if (part < norm_part(m)) {
            const s2_ar_layer *layer = &m->layers[part];
            r = s2_weights_arrive(
                    m->weights, &layer->attn_norm, S2_AR_LAYER_TENSORS, &wait, reterr);
        } else {
            struct ggml_tensor *const *one = part == norm_part(m) ? &m->norm : &m->head;
            r = s2_weights_arrive(m->weights, one, 1, &wait, reterr);
        }
    }
    return r;
}

static int build_segment(s2_slow_graph *sg, s2_slow_segment *seg, sl_error *reterr)
{
    const s2_slow_model *m = sg->model;
    size_t n_layers = seg->end_part - seg->first_part;
    segment_clear(seg);
    int r = arrive(sg, seg, reterr);
    if (r == 0) {
        r = s2_graph_init(&seg->g, compute_at(m, seg->i_compute),
                n_layers * S2_AR_LAYER_NODES + EXTRA_NODES, reterr);
    }
    if (r == 0) {
        build_parts(sg, seg);
        r = s2_graph_alloc_in(&seg->g, &sg->arenas[seg->i_compute], reterr);
    }
    seg->is_built = r == 0;
    if (r < 0) {
        segment_clear(seg);
    }
    return r;
}

int s2_slow_graph_build_all(s2_slow_graph *sg, sl_error *reterr)
{
    int r = SL_OK;
    for (size_t i = 0; i < sg->n_segments && r == 0; i++) {
        r = build_segment(sg, &sg->segments[i], reterr);
    }
    return r;
}

/* Fills the inputs in; the tables are there at once, since they stay on the host. */
static int fill_inputs(
        const s2_slow_graph *sg, const int32_t *columns, uint32_t n_past, sl_error *reterr)
{
    const s2_slow_model *m = sg->model;
    const s2_tables *tables = &m->tables;
    size_t i_first = sg->segments[0].i_compute;
    int r = s2_weights_arrive(m->weights, &tables->embeddings, S2_TABLES_N, NULL, reterr);
    if (r < 0) {
        return r;
    }
    s2_columns_embed(&m->hp, tables, columns, sg->n, sg->rows,
            s2_inputs_host(&sg->inputs[i_first], sg->columns));
    for (size_t i = 0; i < S2_SLOW_MAX_COMPUTES; i++) {
        if (sg->where[i].pos) {
            s2_ar_inputs_fill(&sg->where[i], &sg->inputs[i], n_past);
        }
    }
    return SL_OK;
}

/* Runs segment i, and reads what it has of the results if they are wanted. */
static int run_segment(
        s2_slow_graph *sg, size_t i, float *ret_logits, float *ret_hidden, sl_error *reterr)
{
    s2_slow_segment *seg = &sg->segments[i];
    bool is_new_here = i == 0 || seg->i_compute != sg->segments[i - 1].i_compute;
    int r = seg->is_built ? SL_OK : build_segment(sg, seg, reterr);
    if (r < 0) {
        return r;
    }
    if (i > 0 && is_new_here) {
        ggml_backend_tensor_copy(sg->x[sg->segments[i - 1].i_compute], sg->x[seg->i_compute]);
    }
    s2_graph_read reads[2];
    size_t n_reads = 0;
    if (seg->hidden && ret_hidden) {
        reads[n_reads++] = s2_graph_read_to(seg->hidden, ret_hidden);
    }
    if (seg->logits && ret_logits) {
        reads[n_reads++] = s2_graph_read_to(seg->logits, ret_logits);
    }
    const s2_inputs *inputs = is_new_here ? &sg->inputs[seg->i_compute] : NULL;
    return s2_graph_run(&seg->g, inputs, reads, n_reads, reterr);
}

/* One row of the head, for the token that ends speech: not worth a graph's node. */
static float end_logit(const s2_slow_graph *sg, const float *hidden)
{
    double sum = 0.0;
    s2_columns_row(sg->model->tables.embeddings, sg->model->end_token, sg->rows);
    for (uint32_t i = 0; i < sg->model->hp.slow.n_embd; i++) {
        sum += (double)hidden[i] * (double)sg->rows[i];
    }
    return (float)sum;
}

int s2_slow_graph_run(s2_slow_graph *sg, const int32_t *columns, uint32_t n_past, float *ret_logits,
        float *ret_hidden, sl_error *reterr)
{
    int r = fill_inputs(sg, columns, n_past, reterr);
    for (size_t i = 0; i < sg->n_segments && r == 0; i++) {
        r = run_segment(sg, i, ret_logits, ret_hidden, reterr);
    }
    if (r == 0 && ret_logits) {
        ret_logits[sg->model->hp.codebook_size] = end_logit(sg, ret_hidden);
    }
    return r;
}

size_t s2_slow_graph_bytes(const s2_slow_graph *sg, const s2_compute *compute)
{
    if (sg->n == 0) {
        return 0;
    }
    size_t i = index_of(sg->model, compute);
    if (compute_at(sg->model, i) != compute) {
        return 0;
    }
    size_t n = sg->arenas[i].n_bytes + s2_state_bytes(&sg->bridges[i]) +
               s2_inputs_bytes(&sg->inputs[i]);
    for (size_t k = 0; k < sg->n_segments; k++) {
        n += sg->segments[k].i_compute == i ? s2_graph_bytes(&sg->segments[k].g) : 0;
    }
    return n;
}
