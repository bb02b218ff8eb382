/*
 * Scales keep activations near one through all layers: 1/sqrt(fan-in) for products, small gains on the
 * residual branches of the codec, gates and snakes near one.
 */
#include "engine/model/synth_list.h"

#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

#include "ggml.h"

#include "base/mem.h"

typedef struct builder {
    const s2_synth_opts *opts;
    s2_synth_list *list;
} builder;

void s2_synth_list_add(s2_synth_list *list, uint32_t type, float mean, float scale,
        const uint64_t ne[3], const char *fmt, ...)
{
    if (list->is_out_of_memory ||
            !sl__grow((void **)&list->items, &list->cap, list->n + 1, sizeof *list->items)) {
        list->is_out_of_memory = 1;
        return;
    }
    s2_synth_tensor *t = &list->items[list->n++];
    *t = (s2_synth_tensor){.type = type, .mean = mean, .scale = scale};
    for (uint32_t d = 0; d < 3; d++) {
        t->ne[d] = ne[d] ? ne[d] : 1;
        t->n_dims += ne[d] != 0;
    }
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(t->name, sizeof t->name, fmt, ap);
    va_end(ap);
}

#define add(b, ...) s2_synth_list_add((b)->list, __VA_ARGS__)

#define NE(...) ((const uint64_t[3]){__VA_ARGS__})

static float fan_in(uint64_t n)
{
    return 1.0f / sqrtf((float)n);
}

static void add_ar_layers(builder *b, const char *prefix, const s2_ar_hparams *hp)
{
    uint32_t m = b->opts->ar_type;
    uint32_t v = m == GGML_TYPE_F32 ? GGML_TYPE_F32 : GGML_TYPE_F16;
    uint64_t q = (uint64_t)hp->n_head * hp->head_dim;
    uint64_t qkv = q + 2 * (uint64_t)hp->n_head_kv * hp->head_dim;
    float down = fan_in(hp->n_embd);
    for (uint32_t i = 0; i < hp->n_layer; i++) {
        add(b, v, 1, 0.1f, NE(hp->n_embd), "%s%u.attention_norm.weight", prefix, i);
        add(b, v, 1, 0.1f, NE(hp->n_embd), "%s%u.ffn_norm.weight", prefix, i);
        add(b, m, 0, down, NE(hp->n_embd, qkv), "%s%u.attention.wqkv.weight", prefix, i);
        add(b, m, 0, fan_in(q), NE(q, hp->n_embd), "%s%u.attention.wo.weight", prefix, i);
        add(b, m, 0, down, NE(hp->n_embd, hp->n_ff), "%s%u.feed_forward.w1.weight", prefix, i);
        add(b, m, 0, fan_in(hp->n_ff), NE(hp->n_ff, hp->n_embd), "%s%u.feed_forward.w2.weight",
                prefix, i);
        add(b, m, 0, down, NE(hp->n_embd, hp->n_ff), "%s%u.feed_forward.w3.weight", prefix, i);
        if (hp->has_qk_norm) {
            add(b, v, 1, 0.1f, NE(hp->head_dim), "%s%u.attention.q_norm.weight", prefix, i);
            add(b, v, 1, 0.1f, NE(hp->head_dim), "%s%u.attention.k_norm.weight", prefix, i);
        }
    }
}

static void add_ar(builder *b)
{
    const s2_hparams *hp = &b->opts->hp;
    uint32_t m = b->opts->ar_type;
    uint32_t v = m == GGML_TYPE_F32 ? GGML_TYPE_F32 : GGML_TYPE_F16;
    uint64_t n_codes = (uint64_t)hp->n_codebooks * hp->codebook_size;
    add(b, m, 0, 0.12f, NE(hp->slow.n_embd, hp->n_vocab), "embeddings.weight");
    add(b, m, 0, 0.12f, NE(hp->slow.n_embd, n_codes), "codebook_embeddings.weight");
    add(b, v, 1, 0.1f, NE(hp->slow.n_embd), "norm.weight");
    add_ar_layers(b, "layers.", &hp->slow);
    add(b, m, 0, 0.5f, NE(hp->fast.n_embd, hp->codebook_size), "fast_embeddings.weight");
    add(b, m, 0, fan_in(hp->fast.n_embd), NE(hp->fast.n_embd, hp->codebook_size),
            "fast_output.weight");
    add(b, v, 1, 0.1f, NE(hp->fast.n_embd), "fast_norm.weight");
    if (hp->has_fast_project_in) {
        add(b, m, 0, fan_in(hp->slow.n_embd), NE(hp->slow.n_embd, hp->fast.n_embd),
                "fast_project_in.weight");
    }
    add_ar_layers(b, "fast_layers.", &hp->fast);
}

/* Convolution with bias: kernel ne = {k, in / groups, out}, or {k, out, in} if transposed. */
static void add_conv(builder *b, const char *prefix, uint64_t k, uint64_t ne1, uint64_t ne2,
        uint64_t n_bias, uint64_t n_in)
{
    uint32_t c = b->opts->codec_type;
    add(b, c, 0, 0.7f * fan_in(n_in), NE(k, ne1, ne2), "%s.conv.weight", prefix);
    add(b, c, 0, 0.02f, NE(n_bias), "%s.conv.bias", prefix);
}

static void add_alpha(builder *b, const char *prefix, uint64_t n)
{
    /* Away from zero: five deviations below the mean is still 0.7. */
    add(b, b->opts->codec_type, 1.2f, 0.1f, NE(1, n, 1), "%s.alpha", prefix);
}

static void add_residual_unit(builder *b, const char *prefix, uint64_t n)
{
    char p[64];
    snprintf(p, sizeof p, "%s.block.0", prefix);
    add_alpha(b, p, n);
    snprintf(p, sizeof p, "%s.block.1", prefix);
    add_conv(b, p, 7, n, n, n, 7 * n);
    snprintf(p, sizeof p, "%s.block.2", prefix);
    add_alpha(b, p, n);
    snprintf(p, sizeof p, "%s.block.3", prefix);
    add_conv(b, p, 1, n, n, n, n);
}

static void add_transformer(builder *b, const char *prefix, const s2_codec_tf_hparams *tf)
{
    uint32_t c = b->opts->codec_type;
    uint64_t d = tf->n_embd;
    float down = fan_in(d);
    for (uint32_t i = 0; i < tf->n_layer; i++) {
        char p[80];
        snprintf(p, sizeof p, "%s.layers.%u", prefix, i);
        add(b, c, 0, down, NE(d, 3 * d), "%s.attention.wqkv.weight", p);
        add(b, c, 0, down, NE(d, d), "%s.attention.wo.weight", p);
        add(b, c, 0, down, NE(d, tf->n_ff), "%s.feed_forward.w1.weight", p);
        add(b, c, 0, down, NE(d, tf->n_ff), "%s.feed_forward.w3.weight", p);
        add(b, c, 0, fan_in(tf->n_ff), NE(tf->n_ff, d), "%s.feed_forward.w2.weight", p);
        add(b, c, 1, 0.1f, NE(d), "%s.attention_norm.weight", p);
        add(b, c, 1, 0.1f, NE(d), "%s.ffn_norm.weight", p);
        add(b, c, 0.3f, 0.03f, NE(d), "%s.attention_layer_scale.gamma", p);
        add(b, c, 0.3f, 0.03f, NE(d), "%s.ffn_layer_scale.gamma", p);
    }
    add(b, c, 1, 0.1f, NE(d), "%s.norm.weight", prefix);
}

static void add_convnext(builder *b, const char *prefix, uint64_t d)
{
    char p[64];
    uint32_t c = b->opts->codec_type;
    snprintf(p, sizeof p, "%s.dwconv", prefix);
    add_conv(b, p, 7, 1, d, d, 7);
    add(b, c, 1, 0.1f, NE(d), "%s.norm.weight", prefix);
    add(b, c, 0, 0.02f, NE(d), "%s.norm.bias", prefix);
    add(b, c, 0, fan_in(d), NE(d, 4 * d), "%s.pwconv1.weight", prefix);
    add(b, c, 0, 0.02f, NE(4 * d), "%s.pwconv1.bias", prefix);
    add(b, c, 0, fan_in(4 * d), NE(4 * d, d), "%s.pwconv2.weight", prefix);
    add(b, c, 0, 0.02f, NE(d), "%s.pwconv2.bias", prefix);
    add(b, c, 0.3f, 0.03f, NE(d), "%s.gamma", prefix);
}

static void add_encoder(builder *b)
{
    const s2_codec_hparams *hp = &b->opts->hp.codec;
    char p[64];
    add_conv(b, "c.encoder.block.0", 7, 1, hp->encoder_width[0], hp->encoder_width[0], 7);
    for (uint32_t i = 0; i < hp->n_stages; i++) {
        uint64_t n = hp->encoder_width[i];
        uint64_t n_out = hp->encoder_width[i + 1];
        for (uint32_t j = 0; j < 3; j++) {
            snprintf(p, sizeof p, "c.encoder.block.%u.block.%u", i + 1, j);
            add_residual_unit(b, p, n);
        }
        snprintf(p, sizeof p, "c.encoder.block.%u.block.3", i + 1);
        add_alpha(b, p, n);
        snprintf(p, sizeof p, "c.encoder.block.%u.block.4", i + 1);
        uint64_t k = 2 * (uint64_t)hp->encoder_rates[i];
        add_conv(b, p, k, n, n_out, n_out, k * n);
        if (i == hp->encoder_tf_stage) {
            snprintf(p, sizeof p, "c.encoder.block.%u.block.5", i + 1);
            add_transformer(b, p, &hp->encoder_tf);
        }
    }
    uint64_t last = hp->encoder_width[hp->n_stages];
    snprintf(p, sizeof p, "c.encoder.block.%u", hp->n_stages + 1);
    add_alpha(b, p, last);
    snprintf(p, sizeof p, "c.encoder.block.%u", hp->n_stages + 2);
    add_conv(b, p, 3, last, hp->latent_dim, hp->latent_dim, 3 * last);
}

static void add_decoder(builder *b)
{
    const s2_codec_hparams *hp = &b->opts->hp.codec;
    char p[64];
    add_conv(b, "c.decoder.model.0", 7, hp->latent_dim, hp->decoder_width[0], hp->decoder_width[0],
            7 * (uint64_t)hp->latent_dim);
    for (uint32_t i = 0; i < hp->n_stages; i++) {
        uint64_t n = hp->decoder_width[i];
        uint64_t n_out = hp->decoder_width[i + 1];
        snprintf(p, sizeof p, "c.decoder.model.%u.block.0", i + 1);
        add_alpha(b, p, n);
        snprintf(p, sizeof p, "c.decoder.model.%u.block.1", i + 1);
        add_conv(b, p, 2 * (uint64_t)hp->decoder_rates[i], n_out, n, n_out, 2 * n);
        for (uint32_t j = 0; j < 3; j++) {
            snprintf(p, sizeof p, "c.decoder.model.%u.block.%u", i + 1, j + 2);
            add_residual_unit(b, p, n_out);
        }
    }
    uint64_t last = hp->decoder_width[hp->n_stages];
    snprintf(p, sizeof p, "c.decoder.model.%u", hp->n_stages + 1);
    add_alpha(b, p, last);
    snprintf(p, sizeof p, "c.decoder.model.%u", hp->n_stages + 2);
    add_conv(b, p, 7, last, 1, 1, 7 * last);
}

static void add_codebook(builder *b, const char *prefix, uint64_t n_entries)
{
    const s2_codec_hparams *hp = &b->opts->hp.codec;
    uint32_t c = b->opts->codec_type;
    uint64_t d = hp->latent_dim;
    uint64_t e = hp->codebook_dim;
    add(b, c, 0, fan_in(d), NE(1, d, e), "%s.in_proj.weight", prefix);
    add(b, c, 0, 0.02f, NE(e), "%s.in_proj.bias", prefix);
    add(b, c, 0, fan_in(e), NE(1, e, d), "%s.out_proj.weight", prefix);
    add(b, c, 0, 0.02f, NE(d), "%s.out_proj.bias", prefix);
    add(b, c, 0, 1, NE(e, n_entries), "%s.codebook.weight", prefix);
}

static void add_quantizer(builder *b)
{
    const s2_codec_hparams *hp = &b->opts->hp.codec;
    uint64_t d = hp->latent_dim;
    char p[64];
    for (uint32_t i = 0; i < hp->n_down; i++) {
        uint64_t k = hp->down_factors[i];
        snprintf(p, sizeof p, "c.quantizer.downsample.%u.0", i);
        add_conv(b, p, k, d, d, d, k * d);
        snprintf(p, sizeof p, "c.quantizer.downsample.%u.1", i);
        add_convnext(b, p, d);
    }
    add_codebook(b, "c.quantizer.semantic_quantizer.quantizers.0", hp->semantic_size);
    for (uint32_t i = 0; i + 1 < hp->n_codebooks; i++) {
        snprintf(p, sizeof p, "c.quantizer.quantizer.quantizers.%u", i);
        add_codebook(b, p, hp->residual_size);
    }
    for (uint32_t i = 0; i < hp->n_down; i++) {
        snprintf(p, sizeof p, "c.quantizer.upsample.%u.0", i);
        add_conv(b, p, hp->down_factors[hp->n_down - 1 - i], d, d, d, d);
        snprintf(p, sizeof p, "c.quantizer.upsample.%u.1", i);
        add_convnext(b, p, d);
    }
    add_transformer(b, "c.quantizer.pre_module", &hp->pre_tf);
    add_transformer(b, "c.quantizer.post_module", &hp->post_tf);
}

int s2_synth_list_fill(const s2_synth_opts *opts, s2_synth_list *list, sl_error *reterr)
{
    builder b = {opts, list};
    add_ar(&b);
    add_encoder(&b);
    add_decoder(&b);
    add_quantizer(&b);
    if (list->is_out_of_memory) {
        return sl__fail_nomem(reterr, list->n * sizeof *list->items, "a list of tensors");
    }
    return SL_OK;
}

void s2_synth_list_done(s2_synth_list *list)
{
    sl__free(list->items);
    *list = (s2_synth_list){0};
}
