#include "engine/model/slow_graph.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/mem.h"
#include "engine/nn/ops.h"

#define EXTRA_NODES 256

/* Layers of a segment of a prompt: few enough to start early, many enough to cost nothing. */
#define SEGMENT_LAYERS 6

/* Logits as F32: n_bytes from `offset` on. */
typedef struct head_rows {
    struct ggml_tensor *logits;
    size_t offset;
    size_t n_bytes;
} head_rows;

/* Parts: 0 gathers, 1 .. n_layer are the layers, then the norm, then the head. */
struct s2_slow_segment {
    uint32_t first_part;
    uint32_t end_part;
    size_t i_compute;
    bool is_built;
    s2_graph g;
    s2_ar_inputs in;           /* with a layer */
    struct ggml_tensor *ids;   /* I32 [n]; this and the next three with part 0 */
    struct ggml_tensor *codes; /* I32 [n * n_codebooks], book major: rows of the codebook table */
    struct ggml_tensor *is_audio; /* F32 [1, n]: 1 in audio columns, else 0 */
    struct ggml_tensor *scale;  /* F32 [1, n]: 1 / sqrt(n_codebooks + 1) in audio columns, else 1 */
    struct ggml_tensor *hidden; /* F32 [n_embd], with the norm */
    head_rows semantic;         /* [codebook_size] logits, with the head */
    head_rows end;              /* [1] */
};

static uint32_t norm_part(const s2_slow_model *m)
{
    return 1 + m->hp.slow.n_layer;
}

static uint32_t n_parts(const s2_slow_model *m)
{
    return m->hp.slow.n_layer + 3;
}

static s2_compute *compute_of(const s2_slow_model *m, uint32_t part)
{
    const s2_slow_places *p = &m->places;
    if (part == 0 || part > norm_part(m)) {
        return p->embed;
    }
    bool is_split = p->n_first < m->hp.slow.n_layer;
    return is_split && part > p->n_first ? p->rest : p->first;
}

/* Computes in the order of the places, each once. */
static size_t index_of(const s2_slow_model *m, const s2_compute *compute)
{
    const s2_slow_places *p = &m->places;
    if (compute == p->embed) {
        return 0;
    }
    return compute == p->first ? 1 : 2;
}

static s2_compute *compute_at(const s2_slow_model *m, size_t i)
{
    const s2_slow_places *p = &m->places;
    s2_compute *all[S2_SLOW_MAX_COMPUTES] = {p->embed, p->first, p->rest};
    return all[i];
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
    bool is_layer = part > 1 && part < norm_part(m);
    return is_layer && sg->n > 1 && is_moved_to(compute) && (part - 1) % SEGMENT_LAYERS == 0;
}

static uint64_t weights_epoch(const s2_slow_model *m)
{
    return s2_weights_epoch(m->weights, S2_SLOT_EMBED) +
           s2_weights_epoch(m->weights, S2_SLOT_SLOW) +
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

int s2_slow_graph_init(
        s2_slow_graph *sg, const s2_slow_model *model, uint32_t n, uint32_t n_kv, sl_error *reterr)
{
    size_t n_codes = (size_t)n * model->hp.n_codebooks;
    memset(sg, 0, sizeof *sg);
    sg->model = model;
    sg->n = n;
    sg->n_kv = n_kv;
    sg->epoch = weights_epoch(model);
    sg->host_i32 = sl__alloc(n + n_codes, sizeof *sg->host_i32);
    sg->host_f32 = sl__alloc(2 * (size_t)n, sizeof *sg->host_f32);
    int r = sg->host_i32 && sg->host_f32
                    ? SL_OK
                    : sl__fail_nomem(reterr, n_codes * sizeof *sg->host_i32, "graph inputs");
    if (r == 0) {
        r = cut_segments(sg, reterr);
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
    s2_ar_inputs_done(&seg->in);
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
    }
    sl__free(sg->segments);
    sl__free(sg->host_i32);
    sl__free(sg->host_f32);
    memset(sg, 0, sizeof *sg);
}

static struct ggml_tensor *new_input(s2_graph *g, enum ggml_type type, int64_t ne0, int64_t ne1)
{
    struct ggml_tensor *t = ggml_new_tensor_2d(g->ctx, type, ne0, ne1);
    ggml_set_input(t);
    return t;
}

static struct ggml_tensor *add_output(s2_graph *g, struct ggml_tensor *t)
{
    ggml_set_output(t);
    ggml_build_forward_expand(g->cgraph, t);
    return t;
}

/*
 * x = (E[id] + is_audio * sum_j C[j * codebook_size + code_j]) * scale. Text columns gather rows too, which
 * the factor 0 removes, so that one graph serves every mix of columns.
 */
static struct ggml_tensor *build_embedding(const s2_slow_graph *sg, s2_slow_segment *seg)
{
    const s2_slow_model *m = sg->model;
    struct ggml_context *ctx = seg->g.ctx;
    int64_t n_embd = m->hp.slow.n_embd;
    seg->ids = new_input(&seg->g, GGML_TYPE_I32, sg->n, 1);
    seg->codes = new_input(&seg->g, GGML_TYPE_I32, (int64_t)sg->n * m->hp.n_codebooks, 1);
    seg->is_audio = new_input(&seg->g, GGML_TYPE_F32, 1, sg->n);
    seg->scale = new_input(&seg->g, GGML_TYPE_F32, 1, sg->n);
    struct ggml_tensor *text = ggml_get_rows(ctx, m->embeddings, seg->ids);
    struct ggml_tensor *rows = ggml_get_rows(ctx, m->codebook_embeddings, seg->codes);
    struct ggml_tensor *sum = NULL;
    for (uint32_t j = 0; j < m->hp.n_codebooks; j++) {
        size_t offset = (size_t)j * sg->n * rows->nb[1];
        struct ggml_tensor *book = ggml_view_2d(ctx, rows, n_embd, sg->n, rows->nb[1], offset);
        sum = sum ? ggml_add(ctx, sum, book) : book;
    }
    struct ggml_tensor *x = ggml_add(ctx, text, ggml_mul(ctx, sum, seg->is_audio));
    return ggml_mul(ctx, x, seg->scale);
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

/*
 * x times n rows of the table from `first` on. Some devices want a view to begin at a multiple of their alignment:
 * rows before the first are then computed too.
 */
static head_rows build_rows(const s2_slow_graph *sg, s2_slow_segment *seg, int32_t first, int64_t n,
        struct ggml_tensor *x)
{
    struct ggml_tensor *e = sg->model->embeddings;
    const s2_compute *c = compute_at(sg->model, seg->i_compute);
    size_t align = c->is_cpu ? 1 : ggml_backend_buft_get_alignment(c->buft);
    size_t begin = (size_t)first;
    while (begin * e->nb[1] % align != 0) {
        begin--;
    }
    int64_t n_before = (int64_t)((size_t)first - begin);
    struct ggml_tensor *rows =
            ggml_view_2d(seg->g.ctx, e, e->ne[0], n_before + n, e->nb[1], begin * e->nb[1]);
    return (head_rows){
            .logits = add_output(&seg->g, s2_nn_linear(&seg->g, rows, x)),
            .offset = (size_t)n_before * sizeof(float),
            .n_bytes = (size_t)n * sizeof(float),
    };
}

/* The rows of the table that may be sampled. x: [n_embd, 1] after the norm. */
static void build_head(const s2_slow_graph *sg, s2_slow_segment *seg, struct ggml_tensor *x)
{
    const s2_hparams *hp = &sg->model->hp;
    seg->semantic = build_rows(sg, seg, hp->semantic_begin, hp->codebook_size, x);
    seg->end = build_rows(sg, seg, sg->model->end_token, 1, x);
}

/* What comes in from the segment before: all columns, or, for the head, the one behind the norm. */
static struct ggml_tensor *incoming(const s2_slow_graph *sg, const s2_slow_segment *seg)
{
    struct ggml_tensor *x = sg->x[seg->i_compute];
    bool is_head = seg->first_part > norm_part(sg->model);
    return is_head ? ggml_view_2d(seg->g.ctx, x, x->ne[0], 1, x->nb[1], 0) : x;
}

static void hand_over(const s2_slow_graph *sg, s2_slow_segment *seg, struct ggml_tensor *x)
{
    struct ggml_tensor *bridge = sg->x[seg->i_compute];
    struct ggml_tensor *to = x->ne[1] == bridge->ne[1] ? bridge
                                                       : ggml_view_2d(seg->g.ctx, bridge, x->ne[0],
                                                                 x->ne[1], bridge->nb[1], 0);
    ggml_build_forward_expand(seg->g.cgraph, ggml_cpy(seg->g.ctx, x, to));
}

static void build_parts(const s2_slow_graph *sg, s2_slow_segment *seg)
{
    const s2_slow_model *m = sg->model;
    struct ggml_tensor *x = seg->first_part > 0 ? incoming(sg, seg) : NULL;
    for (uint32_t part = seg->first_part; part < seg->end_part; part++) {
        if (part == 0) {
            x = build_embedding(sg, seg);
        } else if (part < norm_part(m)) {
            x = s2_ar_layer_build(&seg->g, &m->hp.slow, &m->layers[part - 1],
                    &m->kv.layers[part - 1], &seg->in, x);
        } else if (part == norm_part(m)) {
            x = build_norm(sg, seg, x);
        } else {
            build_head(sg, seg, x);
        }
    }
    if (x && seg->end_part < n_parts(m)) {
        hand_over(sg, seg, x);
    }
}

/* Waits for the weights of the segment's parts. */
static int arrive(const s2_slow_graph *sg, const s2_slow_segment *seg, sl_error *reterr)
{
    const s2_slow_model *m = sg->model;
    const s2_compute *c = compute_at(m, seg->i_compute);
    const sl_wait wait = {c->should_stop, c->stop_ud};
    struct ggml_tensor *const tables[] = {m->embeddings, m->codebook_embeddings};
    int r = SL_OK;
    for (uint32_t part = seg->first_part; part < seg->end_part && r == 0; part++) {
        if (part == 0) {
            r = s2_weights_arrive(m->weights, tables, 2, &wait, reterr);
        } else if (part < norm_part(m)) {
            const s2_ar_layer *layer = &m->layers[part - 1];
            r = s2_weights_arrive(
                    m->weights, &layer->attn_norm, S2_AR_LAYER_TENSORS, &wait, reterr);
        } else {
            struct ggml_tensor *const *one = part == norm_part(m) ? &m->norm : &m->embeddings;
            r = s2_weights_arrive(m->weights, one, 1, &wait, reterr);
        }
    }
    return r;
}

static int build_segment(s2_slow_graph *sg, s2_slow_segment *seg, sl_error *reterr)
{
    const s2_slow_model *m = sg->model;
    size_t n_layers = seg->end_part - seg->first_part;
    bool has_layer = seg->first_part < norm_part(m) && seg->end_part > 1;
    segment_clear(seg);
    int r = arrive(sg, seg, reterr);
    if (r == 0) {
        r = s2_graph_init(&seg->g, compute_at(m, seg->i_compute),
                n_layers * S2_AR_LAYER_NODES + EXTRA_NODES, reterr);
    }
    if (r == 0 && has_layer) {
        r = s2_ar_inputs_init(&seg->in, &seg->g, &m->hp.slow, sg->n, sg->n_kv, reterr);
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

static void fill_column(const s2_slow_graph *sg, uint32_t t, const int32_t *col)
{
    const s2_hparams *hp = &sg->model->hp;
    uint32_t n_books = hp->n_codebooks;
    bool is_audio = col[0] >= hp->semantic_begin && col[0] <= hp->semantic_end;
    bool is_scaled = is_audio && hp->scale_codebook_embeddings;
    int32_t *codes = sg->host_i32 + sg->n;

    sg->host_i32[t] = col[0];
    sg->host_f32[t] = is_audio ? 1.0f : 0.0f;
    sg->host_f32[sg->n + t] = is_scaled ? 1.0f / sqrtf((float)n_books + 1.0f) : 1.0f;
    for (uint32_t j = 0; j < n_books; j++) {
        codes[(size_t)j * sg->n + t] =
                (int32_t)(j * hp->codebook_size) + (is_audio ? col[1 + j] : 0);
    }
}

static void set_columns(const s2_slow_graph *sg, const s2_slow_segment *seg, const int32_t *columns)
{
    for (uint32_t t = 0; t < sg->n; t++) {
        fill_column(sg, t, columns + (size_t)t * (1 + sg->model->hp.n_codebooks));
    }
    ggml_backend_tensor_set(seg->ids, sg->host_i32, 0, ggml_nbytes(seg->ids));
    ggml_backend_tensor_set(seg->codes, sg->host_i32 + sg->n, 0, ggml_nbytes(seg->codes));
    ggml_backend_tensor_set(seg->is_audio, sg->host_f32, 0, ggml_nbytes(seg->is_audio));
    ggml_backend_tensor_set(seg->scale, sg->host_f32 + sg->n, 0, ggml_nbytes(seg->scale));
}

static int run_segment(
        s2_slow_graph *sg, size_t i, const int32_t *columns, uint32_t n_past, sl_error *reterr)
{
    s2_slow_segment *seg = &sg->segments[i];
    int r = seg->is_built ? SL_OK : build_segment(sg, seg, reterr);
    if (r < 0) {
        return r;
    }
    if (seg->first_part == 0) {
        set_columns(sg, seg, columns);
    } else if (seg->i_compute != sg->segments[i - 1].i_compute) {
        ggml_backend_tensor_copy(sg->x[sg->segments[i - 1].i_compute], sg->x[seg->i_compute]);
    }
    if (seg->in.pos) {
        s2_ar_inputs_set(&seg->in, n_past);
    }
    return s2_graph_run(&seg->g, reterr);
}

static void get_results(const s2_slow_graph *sg, float *ret_logits, float *ret_hidden)
{
    for (size_t i = 0; i < sg->n_segments; i++) {
        const s2_slow_segment *seg = &sg->segments[i];
        if (seg->hidden) {
            ggml_backend_tensor_get(seg->hidden, ret_hidden, 0, ggml_nbytes(seg->hidden));
        }
        if (seg->semantic.logits) {
            const head_rows *rows = &seg->semantic;
            const head_rows *end = &seg->end;
            ggml_backend_tensor_get(rows->logits, ret_logits, rows->offset, rows->n_bytes);
            ggml_backend_tensor_get(end->logits, ret_logits + sg->model->hp.codebook_size,
                    end->offset, end->n_bytes);
        }
    }
}

int s2_slow_graph_run(s2_slow_graph *sg, const int32_t *columns, uint32_t n_past, float *ret_logits,
        float *ret_hidden, sl_error *reterr)
{
    int r = SL_OK;
    for (size_t i = 0; i < sg->n_segments && r == 0; i++) {
        r = run_segment(sg, i, columns, n_past, reterr);
    }
    if (r == 0 && ret_logits) {
        get_results(sg, ret_logits, ret_hidden);
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
    size_t n = sg->arenas[i].n_bytes + s2_state_bytes(&sg->bridges[i]);
    for (size_t k = 0; k < sg->n_segments; k++) {
        n += sg->segments[k].i_compute == i ? s2_graph_bytes(&sg->segments[k].g) : 0;
    }
    return n;
}
