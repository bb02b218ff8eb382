/*
 * The decoder is one static graph for each piece size. A push is cut into such pieces; each run moves the
 * state on, which all graphs share. Small pieces give the lowest delay, large ones read each weight once for
 * several frames.
 */
#include "engine/model/codec_decoder.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "engine/model/codec_parts.h"
#include "engine/model/quantizer.h"
#include "engine/nn/codec_transformer.h"
#include "engine/nn/convnext.h"
#include "engine/nn/residual_unit.h"

/* Frames of a piece, largest first; the last is 1. */
static const uint32_t piece_frames[] = {8, 1};
#define N_PIECES   (sizeof piece_frames / sizeof piece_frames[0])
#define MAX_FRAMES 8

typedef struct up_step {
    s2_conv conv;
    s2_convnext next;
} up_step;

typedef struct stage {
    struct ggml_tensor *alpha;
    s2_conv up;
    s2_residual_unit units[S2_CODEC_N_UNITS];
} stage;

typedef struct piece {
    bool is_built;
    s2_graph graph;
    s2_inputs inputs;
    s2_codec_tf_inputs tf_inputs;
    struct ggml_tensor *latents; /* rows [latent_dim, frames]; of the inputs */
    struct ggml_tensor *samples; /* [samples, 1] */
} piece;

struct s2_codec_decoder {
    s2_codec_hparams hp;
    s2_build_options options;
    s2_compute *compute;
    s2_quantizer *quantizer;
    s2_state state;
    s2_codec_tf post;
    up_step steps[S2_MAX_STAGES];
    s2_conv first;
    stage stages[S2_MAX_STAGES];
    struct ggml_tensor *last_alpha;
    s2_conv last;
    piece pieces[N_PIECES];
};

static int init_steps(s2_codec_decoder *d, const s2_weights *weights, sl_error *reterr)
{
    uint32_t columns = 1;
    for (uint32_t i = 0; i < d->hp.n_down; i++) {
        char name[96];
        uint32_t factor = d->hp.down_factors[d->hp.n_down - 1 - i];
        columns *= factor;
        s2_conv_shape shape = {.n_in = d->hp.latent_dim,
                .n_out = d->hp.latent_dim,
                .kernel = factor,
                .stride = factor,
                .dilation = 1,
                .frame_columns = columns};
        snprintf(name, sizeof name, "c.quantizer.upsample.%u.0.conv", i);
        int r = s2_conv_init_up(&d->steps[i].conv, weights, &d->state, name, shape, reterr);
        if (r < 0) {
            return r;
        }
        snprintf(name, sizeof name, "c.quantizer.upsample.%u.1", i);
        r = s2_convnext_init(&d->steps[i].next, weights, &d->state, name, d->hp.latent_dim, reterr);
        if (r < 0) {
            return r;
        }
    }
    return SL_OK;
}

static int init_stage(s2_codec_decoder *d, const s2_weights *weights, uint32_t i, uint32_t columns,
        sl_error *reterr)
{
    stage *st = &d->stages[i];
    char name[96];
    uint32_t rate = d->hp.decoder_rates[i];
    uint32_t n_out = d->hp.decoder_width[i + 1];
    s2_conv_shape shape = {.n_in = d->hp.decoder_width[i],
            .n_out = n_out,
            .kernel = 2 * rate,
            .stride = rate,
            .dilation = 1,
            .frame_columns = columns};
    const int64_t alpha_ne[3] = {1, shape.n_in, 1};
    int r = s2_weights_need(weights, S2_WEIGHT_VECTOR, alpha_ne, &st->alpha, reterr,
            "c.decoder.model.%u.block.0.alpha", i + 1);
    if (r < 0) {
        return r;
    }
    snprintf(name, sizeof name, "c.decoder.model.%u.block.1.conv", i + 1);
    r = s2_conv_init_up(&st->up, weights, &d->state, name, shape, reterr);
    for (uint32_t u = 0; u < S2_CODEC_N_UNITS && r == 0; u++) {
        snprintf(name, sizeof name, "c.decoder.model.%u.block.%u", i + 1, u + 2);
        r = s2_residual_unit_init(&st->units[u], weights, &d->state, name, n_out,
                s2_codec_unit_dilation(u), columns, reterr);
    }
    return r;
}

static int init_convs(s2_codec_decoder *d, const s2_weights *weights, sl_error *reterr)
{
    char name[96];
    uint32_t n_stages = d->hp.n_stages;
    uint32_t columns = d->hp.frame_samples / d->hp.hop;
    s2_conv_shape shape = {.n_in = d->hp.latent_dim,
            .n_out = d->hp.decoder_width[0],
            .stride = 1,
            .dilation = 1,
            .frame_columns = columns};
    int r = s2_conv_init(&d->first, weights, &d->state, "c.decoder.model.0.conv", shape, reterr);
    for (uint32_t i = 0; i < n_stages && r == 0; i++) {
        columns *= d->hp.decoder_rates[i];
        r = init_stage(d, weights, i, columns, reterr);
    }
    if (r < 0) {
        return r;
    }
    const int64_t alpha_ne[3] = {1, d->hp.decoder_width[n_stages], 1};
    r = s2_weights_need(weights, S2_WEIGHT_VECTOR, alpha_ne, &d->last_alpha, reterr,
            "c.decoder.model.%u.alpha", n_stages + 1);
    if (r < 0) {
        return r;
    }
    shape.n_in = d->hp.decoder_width[n_stages];
    shape.n_out = 1;
    shape.frame_columns = columns;
    snprintf(name, sizeof name, "c.decoder.model.%u.conv", n_stages + 2);
    return s2_conv_init(&d->last, weights, &d->state, name, shape, reterr);
}

static struct ggml_tensor *build_model(
        const s2_build *b, const s2_codec_decoder *d, struct ggml_tensor *x)
{
    char name[32];
    x = s2_conv_build(b, &d->first, x, NULL, NULL);
    s2_build_stage(b, x, "model0");
    for (uint32_t i = 0; i < d->hp.n_stages; i++) {
        const stage *st = &d->stages[i];
        x = s2_conv_build_up(b, &st->up, x, st->alpha);
        for (uint32_t u = 0; u < S2_CODEC_N_UNITS; u++) {
            x = s2_residual_unit_build(b, &st->units[u], x);
        }
        snprintf(name, sizeof name, "model%u", i + 1);
        s2_build_stage(b, x, name);
    }
    return s2_conv_build(b, &d->last, x, d->last_alpha, NULL);
}

static size_t max_nodes(const s2_codec_decoder *d)
{
    return 200 + 80 * (size_t)d->hp.post_tf.n_layer + 120 * (size_t)d->hp.n_down +
           250 * (size_t)d->hp.n_stages;
}

static int init_piece(s2_codec_decoder *d, piece *p, uint32_t n_frames, sl_error *reterr)
{
    int r = s2_graph_init(&p->graph, d->compute, max_nodes(d), reterr);
    if (r == 0) {
        r = s2_inputs_init(&p->inputs, 1 + S2_CODEC_TF_MAX_INPUTS, reterr);
    }
    if (r < 0) {
        return r;
    }
    s2_build b = s2_build_begin(&p->graph, &d->options);
    p->latents = s2_inputs_add(&p->inputs, GGML_TYPE_F32, d->hp.latent_dim, n_frames);
    p->tf_inputs = s2_codec_tf_inputs_add(&b, &d->post, n_frames, &p->inputs);
    r = s2_inputs_alloc(&p->inputs, d->compute, reterr);
    if (r < 0) {
        return r;
    }
    struct ggml_tensor *rows = s2_codec_tf_build(&b, &d->post, p->latents, &p->tf_inputs);
    struct ggml_tensor *x = ggml_transpose(b.ctx, rows);
    s2_build_stage(&b, x, "post_module");
    for (uint32_t i = 0; i < d->hp.n_down; i++) {
        x = s2_conv_build_up(&b, &d->steps[i].conv, x, NULL);
        x = s2_convnext_build(&b, &d->steps[i].next, x);
    }
    s2_build_stage(&b, x, "upsample");
    x = build_model(&b, d, x);
    p->samples = ggml_tanh(b.ctx, s2_build_contiguous(&b, x));
    ggml_set_output(p->samples);
    ggml_build_forward_expand(p->graph.cgraph, p->samples);
    return s2_graph_alloc(&p->graph, reterr);
}

/* Everything but the memory of states and graphs. */
static int bind_decoder(
        s2_codec_decoder *d, const s2_weights *weights, s2_compute *compute, sl_error *reterr)
{
    const s2_codec_hparams *hp = &d->hp;
    size_t n_state = S2_CODEC_TF_N_STATE(hp->post_tf.n_layer) + 2 * (size_t)hp->n_down +
                     (1 + S2_CODEC_N_UNITS * S2_RESIDUAL_UNIT_N_STATE) * (size_t)hp->n_stages + 2;
    s2_codec_tf_shape shape = s2_codec_tf_shape_of(&hp->post_tf);
    int r = s2_codec_check_sizes(hp, reterr);
    if (r == 0) {
        r = s2_quantizer_create(hp, weights, &d->quantizer, reterr);
    }
    if (r == 0) {
        r = s2_state_init(&d->state, n_state, reterr);
    }
    if (r == 0) {
        r = s2_codec_tf_init(&d->post, weights, &d->state, compute, "c.quantizer.post_module",
                &shape, MAX_FRAMES, reterr);
    }
    if (r == 0) {
        r = init_steps(d, weights, reterr);
    }
    if (r == 0) {
        r = init_convs(d, weights, reterr);
    }
    return r;
}

static int init_decoder(
        s2_codec_decoder *d, s2_weights *weights, s2_compute *compute, sl_error *reterr)
{
    const sl_wait wait = {compute->should_stop, compute->stop_ud};
    d->compute = compute;
    int r = bind_decoder(d, weights, compute, reterr);
    if (r == 0) {
        r = s2_weights_arrive_all(weights, S2_SLOT_CODEC_QUANTIZER, &wait, reterr);
    }
    if (r == 0) {
        r = s2_weights_arrive_all(weights, S2_SLOT_CODEC_DECODER, &wait, reterr);
    }
    return r < 0 ? r : s2_state_alloc(&d->state, compute, SL_MEM_COMPUTE, reterr);
}

int s2__codec_decoder_create(const s2_hparams *hp, s2_weights *weights, s2_compute *compute,
        const s2_build_options *options, s2_codec_decoder **ret_decoder, sl_error *reterr)
{
    s2_codec_decoder *d = sl__alloc(1, sizeof *d);
    if (!d) {
        return sl__fail_nomem(reterr, sizeof *d, "a codec decoder");
    }
    d->hp = hp->codec;
    d->options = *options;
    int r = init_decoder(d, weights, compute, reterr);
    if (r < 0) {
        s2_codec_decoder_free(&d);
        return r;
    }
    *ret_decoder = d;
    return SL_OK;
}

int s2_codec_decoder_create(const s2_hparams *hp, s2_weights *weights, s2_compute *compute,
        s2_codec_decoder **ret_decoder, sl_error *reterr)
{
    const s2_build_options options = {0};
    return s2__codec_decoder_create(hp, weights, compute, &options, ret_decoder, reterr);
}

static void piece_done(piece *p)
{
    s2_graph_done(&p->graph);
    s2_inputs_done(&p->inputs);
}

/* Builds the graph of a piece unless it is there. */
static int need_piece(s2_codec_decoder *d, size_t i, sl_error *reterr)
{
    piece *p = &d->pieces[i];
    if (p->is_built) {
        return SL_OK;
    }
    int r = init_piece(d, p, piece_frames[i], reterr);
    if (r < 0) {
        piece_done(p);
    }
    p->is_built = r == 0;
    return r;
}

void s2_codec_decoder_free(s2_codec_decoder **decoder)
{
    if (!decoder || !*decoder) {
        return;
    }
    s2_codec_decoder *d = *decoder;
    for (size_t i = 0; i < N_PIECES; i++) {
        piece_done(&d->pieces[i]);
    }
    s2_codec_tf_done(&d->post);
    s2_state_done(&d->state);
    s2_quantizer_free(&d->quantizer);
    sl__free(d);
    *decoder = NULL;
}

void s2_codec_decoder_reset(s2_codec_decoder *decoder)
{
    s2_state_clear(&decoder->state);
    s2_codec_tf_reset(&decoder->post);
}

int s2_codec_decoder_prepare(s2_codec_decoder *decoder, sl_error *reterr)
{
    return need_piece(decoder, N_PIECES - 1, reterr);
}

static int run_piece(s2_codec_decoder *d, piece *p, const int32_t *codes, uint32_t n_frames,
        float *ret_samples, sl_error *reterr)
{
    const s2_graph_read read = s2_graph_read_to(p->samples, ret_samples);
    float *latents = s2_inputs_host(&p->inputs, p->latents);
    s2_quantizer_decode(d->quantizer, codes, n_frames, latents);
    s2_codec_tf_inputs_fill(&d->post, &p->tf_inputs, &p->inputs);
    int r = s2_graph_run(&p->graph, &p->inputs, &read, 1, reterr);
    if (r < 0) {
        return r;
    }
    s2_codec_tf_advance(&d->post, n_frames);
    if (d->options.probe) {
        d->options.probe->see(d->options.probe->user, "zq", latents, d->hp.latent_dim, n_frames);
        s2_build_show(&p->graph, d->options.probe);
    }
    return SL_OK;
}

int s2_codec_decoder_push(s2_codec_decoder *decoder, const int32_t *codes, uint32_t n_frames,
        float *ret_samples, sl_error *reterr)
{
    if (n_frames == 0) {
        return sl__fail(reterr, SL_EINVAL, "codec decoder: 0 frames, need at least 1");
    }
    uint32_t n_left = n_frames;
    for (size_t i = 0; i < N_PIECES; i++) {
        uint32_t n = piece_frames[i];
        for (; n_left >= n; n_left -= n) {
            int r = need_piece(decoder, i, reterr);
            if (r == 0) {
                r = run_piece(decoder, &decoder->pieces[i], codes, n, ret_samples, reterr);
            }
            if (r < 0) {
                return r;
            }
            codes += (size_t)n * decoder->hp.n_codebooks;
            ret_samples += (size_t)n * decoder->hp.frame_samples;
        }
    }
    return SL_OK;
}

size_t s2_codec_decoder_bytes(const s2_codec_decoder *decoder)
{
    size_t n = s2_state_bytes(&decoder->state) + s2_state_bytes(&decoder->post.constants);
    for (size_t i = 0; i < N_PIECES; i++) {
        n += s2_graph_bytes(&decoder->pieces[i].graph);
        n += s2_inputs_bytes(&decoder->pieces[i].inputs);
    }
    return n;
}
