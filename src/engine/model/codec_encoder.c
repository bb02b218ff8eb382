/*
 * The encoder is one static graph for each piece size, like the decoder's (codec_decoder.c): pieces are whole
 * frames, so that every strided convolution sees complete windows. The quantizer runs on the host behind it.
 */
#include "engine/model/codec_encoder.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "engine/model/codec_parts.h"
#include "engine/model/quantizer.h"
#include "engine/nn/convnext.h"
#include "engine/nn/residual_unit.h"

/* Frames of a piece, largest first; the last is 1. */
static const uint32_t piece_frames[] = {4, 1};
#define N_PIECES   (sizeof piece_frames / sizeof piece_frames[0])
#define MAX_FRAMES 4

typedef struct stage {
    s2_residual_unit units[S2_CODEC_N_UNITS];
    struct ggml_tensor *alpha;
    s2_conv down;
} stage;

typedef struct down_step {
    s2_conv conv;
    s2_convnext next;
} down_step;

typedef struct piece {
    bool is_built;
    s2_graph graph;
    s2_inputs inputs;
    s2_codec_tf_inputs tf_inputs;
    s2_codec_tf_inputs pre_inputs;
    struct ggml_tensor *samples; /* [samples, 1]; of the inputs */
    struct ggml_tensor *latents; /* rows [latent_dim, frames] */
} piece;

struct s2_codec_encoder {
    s2_codec_hparams hp;
    s2_build_options options;
    s2_compute *compute;
    s2_quantizer *quantizer;
    s2_state state;
    s2_conv first;
    stage stages[S2_MAX_STAGES];
    s2_codec_tf tf;      /* of stage hp.encoder_tf_stage, if there is one */
    uint32_t tf_columns; /* of a frame there */
    struct ggml_tensor *last_alpha;
    s2_conv last;
    down_step steps[S2_MAX_STAGES];
    s2_codec_tf pre;
    piece pieces[N_PIECES];
    float *latents; /* of the largest piece */
};

static bool has_tf(const s2_codec_encoder *e)
{
    return e->hp.encoder_tf_stage < e->hp.n_stages;
}

static int init_stage(s2_codec_encoder *e, const s2_weights *weights, uint32_t i, uint32_t columns,
        sl_error *reterr)
{
    stage *st = &e->stages[i];
    char name[96];
    uint32_t n = e->hp.encoder_width[i];
    int r = SL_OK;
    for (uint32_t u = 0; u < S2_CODEC_N_UNITS && r == 0; u++) {
        snprintf(name, sizeof name, "c.encoder.block.%u.block.%u", i + 1, u);
        r = s2_residual_unit_init(&st->units[u], weights, &e->state, name, n,
                s2_codec_unit_dilation(u), columns, reterr);
    }
    if (r < 0) {
        return r;
    }
    const int64_t alpha_ne[3] = {1, n, 1};
    r = s2_weights_need(weights, S2_WEIGHT_VECTOR, alpha_ne, &st->alpha, reterr,
            "c.encoder.block.%u.block.3.alpha", i + 1);
    if (r < 0) {
        return r;
    }
    s2_conv_shape shape = {.n_in = n,
            .n_out = e->hp.encoder_width[i + 1],
            .stride = e->hp.encoder_rates[i],
            .dilation = 1,
            .frame_columns = columns / e->hp.encoder_rates[i]};
    snprintf(name, sizeof name, "c.encoder.block.%u.block.4.conv", i + 1);
    return s2_conv_init(&st->down, weights, &e->state, name, shape, reterr);
}

static int init_convs(s2_codec_encoder *e, const s2_weights *weights, sl_error *reterr)
{
    char name[96];
    uint32_t n_stages = e->hp.n_stages;
    uint32_t columns = e->hp.frame_samples;
    s2_conv_shape shape = {.n_in = 1,
            .n_out = e->hp.encoder_width[0],
            .stride = 1,
            .dilation = 1,
            .frame_columns = columns};
    int r = s2_conv_init(&e->first, weights, &e->state, "c.encoder.block.0.conv", shape, reterr);
    for (uint32_t i = 0; i < n_stages && r == 0; i++) {
        r = init_stage(e, weights, i, columns, reterr);
        columns /= e->hp.encoder_rates[i];
    }
    if (r < 0) {
        return r;
    }
    const int64_t alpha_ne[3] = {1, e->hp.encoder_width[n_stages], 1};
    r = s2_weights_need(weights, S2_WEIGHT_VECTOR, alpha_ne, &e->last_alpha, reterr,
            "c.encoder.block.%u.alpha", n_stages + 1);
    if (r < 0) {
        return r;
    }
    shape.n_in = e->hp.encoder_width[n_stages];
    shape.n_out = e->hp.latent_dim;
    shape.frame_columns = columns;
    snprintf(name, sizeof name, "c.encoder.block.%u.conv", n_stages + 2);
    return s2_conv_init(&e->last, weights, &e->state, name, shape, reterr);
}

static int init_steps(s2_codec_encoder *e, const s2_weights *weights, sl_error *reterr)
{
    uint32_t n = e->hp.latent_dim;
    uint32_t columns = e->hp.frame_samples / e->hp.hop;
    for (uint32_t i = 0; i < e->hp.n_down; i++) {
        char name[96];
        columns /= e->hp.down_factors[i];
        s2_conv_shape shape = {.n_in = n,
                .n_out = n,
                .stride = e->hp.down_factors[i],
                .dilation = 1,
                .frame_columns = columns};
        snprintf(name, sizeof name, "c.quantizer.downsample.%u.0.conv", i);
        int r = s2_conv_init(&e->steps[i].conv, weights, &e->state, name, shape, reterr);
        if (r < 0) {
            return r;
        }
        snprintf(name, sizeof name, "c.quantizer.downsample.%u.1", i);
        r = s2_convnext_init(&e->steps[i].next, weights, &e->state, name, n, reterr);
        if (r < 0) {
            return r;
        }
    }
    return SL_OK;
}

static int init_transformers(
        s2_codec_encoder *e, const s2_weights *weights, s2_compute *compute, sl_error *reterr)
{
    if (has_tf(e)) {
        char name[96];
        s2_codec_tf_shape shape = s2_codec_tf_shape_of(&e->hp.encoder_tf);
        uint32_t columns = e->hp.frame_samples;
        for (uint32_t i = 0; i <= e->hp.encoder_tf_stage; i++) {
            columns /= e->hp.encoder_rates[i];
        }
        e->tf_columns = columns;
        snprintf(name, sizeof name, "c.encoder.block.%u.block.5", e->hp.encoder_tf_stage + 1);
        int r = s2_codec_tf_init(
                &e->tf, weights, &e->state, compute, name, &shape, MAX_FRAMES * columns, reterr);
        if (r < 0) {
            return r;
        }
    }
    s2_codec_tf_shape shape = s2_codec_tf_shape_of(&e->hp.pre_tf);
    return s2_codec_tf_init(&e->pre, weights, &e->state, compute, "c.quantizer.pre_module", &shape,
            MAX_FRAMES, reterr);
}

static struct ggml_tensor *build_stage(
        const s2_build *b, const s2_codec_encoder *e, piece *p, uint32_t i, struct ggml_tensor *x)
{
    const stage *st = &e->stages[i];
    char name[32];
    for (uint32_t u = 0; u < S2_CODEC_N_UNITS; u++) {
        x = s2_residual_unit_build(b, &st->units[u], x);
    }
    x = s2_conv_build(b, &st->down, x, st->alpha, NULL);
    if (i == e->hp.encoder_tf_stage) {
        struct ggml_tensor *rows = s2_build_rows(b, x);
        x = ggml_transpose(b->ctx, s2_codec_tf_build(b, &e->tf, rows, &p->tf_inputs));
    }
    snprintf(name, sizeof name, "block%u", i + 1);
    s2_build_stage(b, x, name);
    return x;
}

static size_t max_nodes(const s2_codec_encoder *e)
{
    size_t n_layer = (size_t)e->hp.encoder_tf.n_layer + e->hp.pre_tf.n_layer;
    return 200 + 80 * n_layer + 120 * (size_t)e->hp.n_down + 250 * (size_t)e->hp.n_stages;
}

static int make_inputs(
        s2_codec_encoder *e, piece *p, uint32_t n_frames, const s2_build *b, sl_error *reterr)
{
    int64_t n_samples = (int64_t)n_frames * e->hp.frame_samples;
    int r = s2_inputs_init(&p->inputs, 1 + 2 * S2_CODEC_TF_MAX_INPUTS, reterr);
    if (r < 0) {
        return r;
    }
    p->samples = s2_inputs_add(&p->inputs, GGML_TYPE_F32, n_samples, 1);
    if (has_tf(e)) {
        p->tf_inputs = s2_codec_tf_inputs_add(b, &e->tf, n_frames * e->tf_columns, &p->inputs);
    }
    p->pre_inputs = s2_codec_tf_inputs_add(b, &e->pre, n_frames, &p->inputs);
    return s2_inputs_alloc(&p->inputs, e->compute, reterr);
}

static int init_piece(s2_codec_encoder *e, piece *p, uint32_t n_frames, sl_error *reterr)
{
    int r = s2_graph_init(&p->graph, e->compute, max_nodes(e), reterr);
    if (r < 0) {
        return r;
    }
    s2_build b = s2_build_begin(&p->graph, &e->options);
    r = make_inputs(e, p, n_frames, &b, reterr);
    if (r < 0) {
        return r;
    }
    struct ggml_tensor *x = s2_conv_build(&b, &e->first, p->samples, NULL, NULL);
    s2_build_stage(&b, x, "block0");
    for (uint32_t i = 0; i < e->hp.n_stages; i++) {
        x = build_stage(&b, e, p, i, x);
    }
    x = s2_conv_build(&b, &e->last, x, e->last_alpha, NULL);
    s2_build_stage(&b, x, "encoder");
    for (uint32_t i = 0; i < e->hp.n_down; i++) {
        x = s2_conv_build(&b, &e->steps[i].conv, x, NULL, NULL);
        x = s2_convnext_build(&b, &e->steps[i].next, x);
    }
    s2_build_stage(&b, x, "downsample");
    p->latents = s2_codec_tf_build(&b, &e->pre, s2_build_rows(&b, x), &p->pre_inputs);
    s2_build_stage(&b, ggml_transpose(b.ctx, p->latents), "pre_module");
    ggml_set_output(p->latents);
    ggml_build_forward_expand(p->graph.cgraph, p->latents);
    return s2_graph_alloc(&p->graph, reterr);
}

/* Everything but the memory of states and graphs. */
static int bind_encoder(
        s2_codec_encoder *e, const s2_weights *weights, s2_compute *compute, sl_error *reterr)
{
    const s2_codec_hparams *hp = &e->hp;
    size_t n_state = S2_CODEC_TF_N_STATE(hp->encoder_tf.n_layer) +
                     S2_CODEC_TF_N_STATE(hp->pre_tf.n_layer) + 2 * (size_t)hp->n_down +
                     (1 + S2_CODEC_N_UNITS * S2_RESIDUAL_UNIT_N_STATE) * (size_t)hp->n_stages + 2;
    int r = s2_codec_check_sizes(hp, reterr);
    if (r == 0) {
        r = s2_quantizer_create(hp, weights, &e->quantizer, reterr);
    }
    if (r == 0) {
        r = s2_state_init(&e->state, n_state, reterr);
    }
    if (r == 0) {
        r = init_convs(e, weights, reterr);
    }
    if (r == 0) {
        r = init_steps(e, weights, reterr);
    }
    if (r == 0) {
        r = init_transformers(e, weights, compute, reterr);
    }
    return r;
}

static int init_encoder(
        s2_codec_encoder *e, s2_weights *weights, s2_compute *compute, sl_error *reterr)
{
    const sl_wait wait = {compute->should_stop, compute->stop_ud};
    e->compute = compute;
    int r = bind_encoder(e, weights, compute, reterr);
    if (r == 0) {
        r = s2_weights_arrive_all(weights, S2_SLOT_CODEC_QUANTIZER, &wait, reterr);
    }
    if (r == 0) {
        r = s2_weights_arrive_all(weights, S2_SLOT_CODEC_ENCODER, &wait, reterr);
    }
    return r < 0 ? r : s2_state_alloc(&e->state, compute, SL_MEM_COMPUTE, reterr);
}

int s2__codec_encoder_create(const s2_hparams *hp, s2_weights *weights, s2_compute *compute,
        const s2_build_options *options, s2_codec_encoder **ret_encoder, sl_error *reterr)
{
    s2_codec_encoder *e = sl__alloc(1, sizeof *e);
    if (!e) {
        return sl__fail_nomem(reterr, sizeof *e, "a codec encoder");
    }
    e->hp = hp->codec;
    e->options = *options;
    size_t n_latents = (size_t)MAX_FRAMES * e->hp.latent_dim;
    e->latents = sl__alloc(n_latents, sizeof *e->latents);
    int r = e->latents ? init_encoder(e, weights, compute, reterr)
                       : sl__fail_nomem(reterr, n_latents * sizeof(float), "a codec encoder");
    if (r < 0) {
        s2_codec_encoder_free(&e);
        return r;
    }
    *ret_encoder = e;
    return SL_OK;
}

int s2_codec_encoder_create(const s2_hparams *hp, s2_weights *weights, s2_compute *compute,
        s2_codec_encoder **ret_encoder, sl_error *reterr)
{
    const s2_build_options options = {0};
    return s2__codec_encoder_create(hp, weights, compute, &options, ret_encoder, reterr);
}

static void piece_done(piece *p)
{
    s2_graph_done(&p->graph);
    s2_inputs_done(&p->inputs);
}

/* Builds the graph of a piece unless it is there. */
static int need_piece(s2_codec_encoder *e, size_t i, sl_error *reterr)
{
    piece *p = &e->pieces[i];
    if (p->is_built) {
        return SL_OK;
    }
    int r = init_piece(e, p, piece_frames[i], reterr);
    if (r < 0) {
        piece_done(p);
    }
    p->is_built = r == 0;
    return r;
}

void s2_codec_encoder_free(s2_codec_encoder **encoder)
{
    if (!encoder || !*encoder) {
        return;
    }
    s2_codec_encoder *e = *encoder;
    for (size_t i = 0; i < N_PIECES; i++) {
        piece_done(&e->pieces[i]);
    }
    s2_codec_tf_done(&e->tf);
    s2_codec_tf_done(&e->pre);
    s2_state_done(&e->state);
    s2_quantizer_free(&e->quantizer);
    sl__free(e->latents);
    sl__free(e);
    *encoder = NULL;
}

uint32_t s2_codec_encoder_n_frames(const s2_codec_encoder *encoder, size_t n_samples)
{
    size_t frame = encoder->hp.frame_samples;
    size_t n = n_samples / frame + (n_samples % frame != 0);
    return n < UINT32_MAX ? (uint32_t)n : UINT32_MAX;
}

int s2_codec_encoder_prepare(s2_codec_encoder *encoder, sl_error *reterr)
{
    int r = SL_OK;
    for (size_t i = 0; i < N_PIECES && r == 0; i++) {
        r = need_piece(encoder, i, reterr);
    }
    return r;
}

/* Runs over n_frames frames of filled samples. Leaves their latents in e->latents. */
static int run_piece(s2_codec_encoder *e, piece *p, uint32_t n_frames, sl_error *reterr)
{
    const s2_graph_read read = s2_graph_read_to(p->latents, e->latents);
    if (has_tf(e)) {
        s2_codec_tf_inputs_fill(&e->tf, &p->tf_inputs, &p->inputs);
    }
    s2_codec_tf_inputs_fill(&e->pre, &p->pre_inputs, &p->inputs);
    int r = s2_graph_run(&p->graph, &p->inputs, &read, 1, reterr);
    if (r < 0) {
        return r;
    }
    if (has_tf(e)) {
        s2_codec_tf_advance(&e->tf, p->tf_inputs.n_time);
    }
    s2_codec_tf_advance(&e->pre, n_frames);
    if (e->options.probe) {
        s2_build_show(&p->graph, e->options.probe);
    }
    return SL_OK;
}

/* Fills in the samples of a piece from `first` on, zeros behind the end. */
static void fill_samples(const piece *p, const float *samples, size_t n_samples, size_t first)
{
    float *to = s2_inputs_host(&p->inputs, p->samples);
    size_t n_want = (size_t)p->samples->ne[0];
    size_t n_have = n_samples - first < n_want ? n_samples - first : n_want;
    memcpy(to, samples + first, n_have * sizeof *samples);
    memset(to + n_have, 0, (n_want - n_have) * sizeof *samples);
}

static int check_samples(
        const float *samples, size_t n_samples, uint32_t n_frames, sl_error *reterr)
{
    if (n_samples == 0 || n_frames == UINT32_MAX) {
        return sl__fail(reterr, SL_EINVAL, "recording: %zu samples, need 1 to %u frames of them",
                n_samples, UINT32_MAX - 1);
    }
    for (size_t i = 0; i < n_samples; i++) {
        if (!isfinite(samples[i])) {
            return sl__fail(reterr, SL_EINVAL, "recording: sample %zu is not a finite number", i);
        }
    }
    return SL_OK;
}

int s2_codec_encoder_run(s2_codec_encoder *encoder, const float *samples, size_t n_samples,
        int32_t *ret_codes, sl_error *reterr)
{
    s2_codec_encoder *e = encoder;
    uint32_t n_frames = s2_codec_encoder_n_frames(e, n_samples);
    int r = check_samples(samples, n_samples, n_frames, reterr);
    if (r < 0) {
        return r;
    }
    s2_state_clear(&e->state);
    s2_codec_tf_reset(&e->tf);
    s2_codec_tf_reset(&e->pre);
    uint32_t done = 0;
    for (size_t i = 0; i < N_PIECES; i++) {
        uint32_t n = piece_frames[i];
        for (; n_frames - done >= n; done += n) {
            r = need_piece(e, i, reterr);
            if (r == 0) {
                fill_samples(&e->pieces[i], samples, n_samples, (size_t)done * e->hp.frame_samples);
                r = run_piece(e, &e->pieces[i], n, reterr);
            }
            if (r < 0) {
                return r;
            }
            s2_quantizer_encode(e->quantizer, e->latents, n, ret_codes + done, n_frames, NULL);
        }
    }
    return SL_OK;
}

size_t s2_codec_encoder_bytes(const s2_codec_encoder *encoder)
{
    size_t n = s2_state_bytes(&encoder->state) + s2_state_bytes(&encoder->tf.constants) +
               s2_state_bytes(&encoder->pre.constants);
    for (size_t i = 0; i < N_PIECES; i++) {
        n += s2_graph_bytes(&encoder->pieces[i].graph);
        n += s2_inputs_bytes(&encoder->pieces[i].inputs);
    }
    return n;
}
