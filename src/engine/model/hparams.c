/*
 * A list of facts, read through one reader that keeps the first error. Widths that no key gives are taken
 * from tensors; everything that keys and tensors both say must agree.
 */
#include "engine/model/hparams.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "engine/model/hparams_reader.h"

#define MAX_LAYERS 512

/* Of the codec's transformers: what its fused attention computes. */
#define MAX_CODEC_LAYERS 64
#define MAX_CODEC_WINDOW 2048
#define MAX_CODEC_HEAD   512

/* Samples of a code frame: S2 Pro has 2048. Buffers of the codec grow with it. */
#define MAX_FRAME_SAMPLES 65536

static void check_heads(s2_hp_reader *rd, const char *part, const s2_ar_hparams *hp)
{
    if (rd->r < 0) {
        return;
    }
    if (hp->n_head % hp->n_head_kv != 0) {
        s2_hp_refuse(rd, SL_EFORMAT, "%s: %u query heads cannot share %u KV heads", part,
                hp->n_head, hp->n_head_kv);
    }
    if (hp->head_dim == 0 || hp->head_dim % 2 != 0) {
        s2_hp_refuse(
                rd, SL_EFORMAT, "%s: head dimension %u, need an even number", part, hp->head_dim);
    }
}

/* A file without the key has the norms if it has their weights. */
static bool read_qk_norm(s2_hp_reader *rd, const char *key, const char *prefix)
{
    bool has_weight = s2_hp_tensor(rd, "%s0.attention.q_norm.weight", prefix) != NULL;
    bool has_norm = s2_hp_flag(rd, key, has_weight);
    if (has_weight && !has_norm) {
        s2_hp_refuse(rd, SL_EFORMAT,
                "%s is false, but tensor %s0.attention.q_norm.weight is there: the file "
                "contradicts "
                "itself",
                key, prefix);
    }
    return has_norm;
}

/* The feed-forward width is read from a tensor; the key is for people, and must not say otherwise. */
static void check_ff_key(s2_hp_reader *rd, const char *key, const char *tensor, uint32_t n_ff)
{
    uint32_t v = n_ff;
    if (rd->r == 0 && sl_gguf_find(rd->gguf, key)) {
        s2_hp_u32(rd, key, 1, S2_HP_MAX_WIDTH, &v);
        s2_hp_expect_equal(rd, key, v, tensor, n_ff);
    }
}

static void read_slow(s2_hp_reader *rd, s2_ar_hparams *hp)
{
    s2_hp_u32(rd, "fish-speech.block_count", 1, MAX_LAYERS, &hp->n_layer);
    s2_hp_u32(rd, "fish-speech.embedding_length", 1, S2_HP_MAX_WIDTH, &hp->n_embd);
    s2_hp_u32(rd, "fish-speech.attention.head_count", 1, 1024, &hp->n_head);
    s2_hp_u32(rd, "fish-speech.attention.head_count_kv", 1, 1024, &hp->n_head_kv);
    s2_hp_f32(rd, "fish-speech.rope.freq_base", 1, 1e12, &hp->rope_base);
    s2_hp_f32(rd, "fish-speech.attention.layer_norm_rms_epsilon", 1e-12, 1, &hp->rms_eps);
    hp->has_qk_norm = read_qk_norm(rd, "fish_speech.attention_qk_norm", "layers.");
    hp->n_ff = s2_hp_width(rd, "layers.0.feed_forward.w1.weight", 1);
    if (hp->has_qk_norm) {
        hp->head_dim = s2_hp_width(rd, "layers.0.attention.q_norm.weight", 0);
    } else {
        /* No key gives it; the output projection's input is heads * head_dim. */
        hp->head_dim = s2_hp_width(rd, "layers.0.attention.wo.weight", 0);
        if (rd->r == 0 && hp->head_dim % hp->n_head != 0) {
            s2_hp_refuse(rd, SL_EFORMAT, "layers.0.attention.wo.weight has %u inputs for %u heads",
                    hp->head_dim, hp->n_head);
        }
        hp->head_dim = rd->r == 0 ? hp->head_dim / hp->n_head : 0;
    }
    check_ff_key(rd, "fish-speech.feed_forward_length",
            "the height of layers.0.feed_forward.w1.weight", hp->n_ff);
    check_heads(rd, "slow AR", hp);
}

static void read_fast(s2_hp_reader *rd, s2_hparams *hp)
{
    s2_ar_hparams *fast = &hp->fast;
    s2_hp_u32(rd, "fish_speech.fast_block_count", 1, MAX_LAYERS, &fast->n_layer);
    s2_hp_u32(rd, "fish_speech.fast_embedding_length", 1, S2_HP_MAX_WIDTH, &fast->n_embd);
    s2_hp_u32(rd, "fish_speech.fast_head_count", 1, 1024, &fast->n_head);
    s2_hp_u32(rd, "fish_speech.fast_head_count_kv", 1, 1024, &fast->n_head_kv);
    s2_hp_u32(rd, "fish_speech.fast_head_dim", 0, 4096, &fast->head_dim);
    s2_hp_f32(rd, "fish_speech.fast_rope_freq_base", 1, 1e12, &fast->rope_base);
    s2_hp_f32(rd, "fish_speech.fast_layer_norm_rms_eps", 1e-12, 1, &fast->rms_eps);
    fast->has_qk_norm = read_qk_norm(rd, "fish_speech.fast_attention_qk_norm", "fast_layers.");
    fast->n_ff = s2_hp_width(rd, "fast_layers.0.feed_forward.w1.weight", 1);
    check_ff_key(rd, "fish_speech.fast_feed_forward_length",
            "the height of fast_layers.0.feed_forward.w1.weight", fast->n_ff);
    if (rd->r == 0 && fast->head_dim == 0) {
        fast->head_dim = fast->n_embd / fast->n_head;
    }
    hp->has_fast_project_in = s2_hp_flag(rd, "fish_speech.fast_project_in", false);
    if (!hp->has_fast_project_in && fast->n_embd != hp->slow.n_embd) {
        s2_hp_refuse(rd, SL_EFORMAT,
                "fast AR is %u wide, slow AR %u, and fish_speech.fast_project_in is not set",
                fast->n_embd, hp->slow.n_embd);
    }
    check_heads(rd, "fast AR", fast);
}

/* Options of the architecture that no published model uses and this engine does not compute. */
static void refuse_unsupported(s2_hp_reader *rd)
{
    static const struct {
        const char *key;
        bool supported;
    } flags[] = {
            {"fish_speech.tie_word_embeddings", true},
            {"fish_speech.norm_fastlayer_input", true},
            {"fish_speech.fast_tie_word_embeddings", false},
            {"fish_speech.fast_attention_qkv_bias", false},
            {"fish_speech.fast_attention_o_bias", false},
    };
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++) {
        bool v = s2_hp_flag(rd, flags[i].key, flags[i].supported);
        if (v != flags[i].supported) {
            s2_hp_refuse(rd, SL_EUNSUPPORTED, "%s is %s, and only %s is computed", flags[i].key,
                    v ? "true" : "false", flags[i].supported ? "true" : "false");
        }
    }
    /* Weights that would have to be used and would not be. */
    static const char *const tensors[] = {
            "output.weight",
            "layers.0.attention.wqkv.bias",
            "layers.0.attention.wo.bias",
            "fast_layers.0.attention.wqkv.bias",
            "fast_layers.0.attention.wo.bias",
    };
    for (size_t i = 0; i < sizeof tensors / sizeof tensors[0]; i++) {
        if (s2_hp_tensor(rd, "%s", tensors[i])) {
            s2_hp_refuse(rd, SL_EUNSUPPORTED,
                    "tensor %s: untied heads and attention biases are not computed", tensors[i]);
        }
    }
}

static void read_codes(s2_hp_reader *rd, s2_hparams *hp)
{
    uint32_t begin = 0;
    uint32_t end = 0;
    s2_hp_u32(rd, "fish-speech.context_length", 16, 1u << 24, &hp->n_ctx);
    s2_hp_u32(rd, "fish-speech.vocab_size", 1, 1u << 24, &hp->n_vocab);
    s2_hp_u32(rd, "fish_speech.codebook_size", 2, 1u << 20, &hp->codebook_size);
    s2_hp_u32(rd, "fish_speech.num_codebooks", 2, S2_MAX_CODEBOOKS, &hp->n_codebooks);
    s2_hp_u32(rd, "fish_speech.semantic_begin_id", 1, INT_MAX, &begin);
    s2_hp_u32(rd, "fish_speech.semantic_end_id", 1, INT_MAX, &end);
    hp->semantic_begin = (int32_t)begin;
    hp->semantic_end = (int32_t)end;
    hp->scale_codebook_embeddings = s2_hp_flag(rd, "fish_speech.scale_codebook_embeddings", false);
    if (rd->r == 0 && (end < begin || end >= hp->n_vocab)) {
        s2_hp_refuse(rd, SL_EFORMAT, "semantic ids %u to %u do not lie within the vocabulary of %u",
                begin, end, hp->n_vocab);
    }
    if (rd->r == 0) {
        s2_hp_expect_equal(rd, "the number of semantic ids", end - begin + 1,
                "fish_speech.codebook_size", hp->codebook_size);
    }
}

/* Number behind `prefix` in a tensor's name, or -1: 3 for "layers.3.ffn_norm.weight" and "layers.". */
static int64_t layer_of(sl_span name, const char *prefix)
{
    int64_t v = 0;
    size_t n = strlen(prefix);
    size_t i = n;
    if (name.n <= n || memcmp(name.p, prefix, n) != 0) {
        return -1;
    }
    for (; i < name.n && name.p[i] >= '0' && name.p[i] <= '9' && v < INT_MAX; i++) {
        v = 10 * v + (name.p[i] - '0');
    }
    return i > n && i < name.n && name.p[i] == '.' ? v : -1;
}

/* A file with weights of further layers is not the model that its keys describe. */
static void refuse_further_layers(s2_hp_reader *rd, const char *prefix, uint32_t n_layer)
{
    for (uint64_t i = 0; i < sl_model_n_tensors(rd->model) && rd->r == 0; i++) {
        sl_span name = sl_model_tensor_at(rd->model, i)->info->name;
        int64_t layer = layer_of(name, prefix);
        if (layer >= (int64_t)n_layer) {
            s2_hp_refuse(rd, SL_EFORMAT,
                    "tensors of %s%lld are there, but the model has %u such layers: the file "
                    "contradicts itself",
                    prefix, (long long)layer, n_layer);
        }
    }
}

/* Layers of a codec transformer: counted by name, since keys and modules disagree in real files. */
static uint32_t count_layers(s2_hp_reader *rd, const char *prefix)
{
    char layers[96];
    uint32_t n = 0;
    while (n < MAX_LAYERS && s2_hp_tensor(rd, "%s.layers.%u.attention.wqkv.weight", prefix, n)) {
        n++;
    }
    if (n == 0) {
        s2_hp_refuse(rd, SL_EFORMAT, "tensor %s.layers.0.attention.wqkv.weight is missing", prefix);
    }
    if (n > MAX_CODEC_LAYERS) {
        s2_hp_refuse(rd, SL_EUNSUPPORTED, "%s has %u layers, at most %d are computed", prefix, n,
                MAX_CODEC_LAYERS);
    }
    snprintf(layers, sizeof layers, "%s.layers.", prefix);
    refuse_further_layers(rd, layers, n);
    return n;
}

static void read_transformer(s2_hp_reader *rd, const char *prefix, s2_codec_tf_hparams *tf)
{
    char name[128];
    tf->n_layer = count_layers(rd, prefix);
    snprintf(name, sizeof name, "%s.layers.0.attention.wqkv.weight", prefix);
    tf->n_embd = s2_hp_width(rd, name, 0);
    snprintf(name, sizeof name, "%s.layers.0.feed_forward.w1.weight", prefix);
    tf->n_ff = s2_hp_width(rd, name, 1);
    if (rd->r < 0) {
        return;
    }
    if (tf->head_dim % 2 != 0 || tf->n_embd % tf->head_dim != 0) {
        s2_hp_refuse(rd, SL_EFORMAT, "%s is %u wide, which %u-wide heads do not divide", prefix,
                tf->n_embd, tf->head_dim);
        return;
    }
    tf->n_head = tf->n_embd / tf->head_dim;
}

/* n_local_heads: -1 or the number of heads; grouped heads exist in no published codec. */
static void expect_all_heads(s2_hp_reader *rd, const char *key, uint32_t n_head)
{
    sl_error err;
    int64_t v = -1;
    if (rd->r < 0 || !sl_gguf_find(rd->gguf, key)) {
        return;
    }
    if (sl_gguf_get_i64(rd->gguf, key, &v, &err) < 0) {
        s2_hp_refuse(rd, SL_EFORMAT, "%s", err.msg);
    } else if (v != -1 && v != (int64_t)n_head) {
        s2_hp_refuse(rd, SL_EUNSUPPORTED, "%s is %lld, and only -1 (all %u heads) is computed", key,
                (long long)v, n_head);
    }
}

#define CODEC_KEY "fish_speech.codec."

static void read_codec_transformers(s2_hp_reader *rd, s2_codec_hparams *c)
{
    uint32_t per_stage[S2_MAX_STAGES] = {0};
    char prefix[64];
    uint32_t n = s2_hp_list(
            rd, CODEC_KEY "encoder_transformer_layers", S2_MAX_STAGES, 0, MAX_LAYERS, per_stage);
    if (rd->r < 0) {
        return;
    }
    s2_hp_expect_equal(rd, "the length of " CODEC_KEY "encoder_transformer_layers", n,
            "the length of encoder_rates", c->n_stages);
    c->encoder_tf_stage = c->n_stages;
    for (uint32_t i = 0; i < n; i++) {
        if (per_stage[i] == 0) {
            continue;
        }
        if (c->encoder_tf_stage != c->n_stages) {
            s2_hp_refuse(rd, SL_EUNSUPPORTED,
                    "two encoder stages end in a transformer, and one is computed");
            return;
        }
        c->encoder_tf_stage = i;
    }
    s2_codec_tf_hparams *enc = &c->encoder_tf;
    /* The window of the encoder's transformer is in no file; 512 latents is the original's constant. */
    enc->window = 512;
    s2_hp_u32(rd, CODEC_KEY "transformer.head_dim", 2, MAX_CODEC_HEAD, &enc->head_dim);
    s2_hp_f32(rd, CODEC_KEY "transformer.rope_freq_base", 1, 1e12, &enc->rope_base);
    s2_hp_f32(rd, CODEC_KEY "transformer.layer_norm_rms_eps", 1e-12, 1, &enc->rms_eps);
    if (rd->r == 0 && c->encoder_tf_stage < c->n_stages) {
        snprintf(prefix, sizeof prefix, "c.encoder.block.%u.block.5", c->encoder_tf_stage + 1);
        read_transformer(rd, prefix, enc);
        s2_hp_expect_equal(rd, prefix, enc->n_layer, CODEC_KEY "encoder_transformer_layers",
                per_stage[c->encoder_tf_stage]);
        expect_all_heads(rd, CODEC_KEY "transformer.n_local_heads", enc->n_head);
    }
    s2_codec_tf_hparams *pre = &c->pre_tf;
    s2_hp_u32(rd, CODEC_KEY "rvq_transformer.window_size", 1, MAX_CODEC_WINDOW, &pre->window);
    s2_hp_u32(rd, CODEC_KEY "rvq_transformer.head_dim", 2, MAX_CODEC_HEAD, &pre->head_dim);
    s2_hp_f32(rd, CODEC_KEY "rvq_transformer.rope_freq_base", 1, 1e12, &pre->rope_base);
    s2_hp_f32(rd, CODEC_KEY "rvq_transformer.layer_norm_rms_eps", 1e-12, 1, &pre->rms_eps);
    c->post_tf = *pre;
    if (rd->r == 0) {
        read_transformer(rd, "c.quantizer.pre_module", pre);
        read_transformer(rd, "c.quantizer.post_module", &c->post_tf);
        expect_all_heads(rd, CODEC_KEY "rvq_transformer.n_local_heads", pre->n_head);
    }
}

static void read_codec_widths(s2_hp_reader *rd, s2_codec_hparams *c)
{
    char name[96];
    c->encoder_width[0] = s2_hp_width(rd, "c.encoder.block.0.conv.weight", 2);
    c->decoder_width[0] = s2_hp_width(rd, "c.decoder.model.0.conv.weight", 2);
    for (uint32_t i = 0; i < c->n_stages && rd->r == 0; i++) {
        snprintf(name, sizeof name, "c.encoder.block.%u.block.4.conv.weight", i + 1);
        c->encoder_width[i + 1] = s2_hp_width(rd, name, 2);
        snprintf(name, sizeof name, "c.decoder.model.%u.block.1.conv.weight", i + 1);
        c->decoder_width[i + 1] = s2_hp_width(rd, name, 1);
    }
}

static uint32_t product(const uint32_t *factors, uint32_t n)
{
    uint32_t p = 1;
    for (uint32_t i = 0; i < n; i++) {
        p *= factors[i];
    }
    return p;
}

static void read_codec(s2_hp_reader *rd, s2_codec_hparams *c)
{
    uint32_t n_residual = 0;
    uint32_t input_dim = 0;
    s2_hp_u32(rd, CODEC_KEY "sample_rate", 1000, 384000, &c->sample_rate);
    s2_hp_u32(rd, CODEC_KEY "hop_length", 1, 1u << 16, &c->hop);
    s2_hp_u32(rd, CODEC_KEY "latent_dim", 1, S2_HP_MAX_WIDTH, &c->latent_dim);
    s2_hp_u32(rd, CODEC_KEY "quantizer_input_dim", 1, S2_HP_MAX_WIDTH, &input_dim);
    s2_hp_u32(rd, CODEC_KEY "quantizer_codebook_dim", 1, 1024, &c->codebook_dim);
    s2_hp_u32(rd, CODEC_KEY "quantizer_residual_codebooks", 1, S2_MAX_CODEBOOKS - 1, &n_residual);
    s2_hp_u32(rd, CODEC_KEY "quantizer_residual_codebook_size", 1, 1u << 20, &c->residual_size);
    s2_hp_u32(rd, CODEC_KEY "quantizer_semantic_codebook_size", 1, 1u << 20, &c->semantic_size);
    c->n_codebooks = n_residual + 1;
    /* A stride above 64 would make a frame of seconds; the product stays far below 2^32. */
    c->n_stages = s2_hp_list(rd, CODEC_KEY "encoder_rates", S2_MAX_STAGES, 1, 64, c->encoder_rates);
    uint32_t n_decoder =
            s2_hp_list(rd, CODEC_KEY "decoder_rates", S2_MAX_STAGES, 1, 64, c->decoder_rates);
    c->n_down = s2_hp_list(
            rd, CODEC_KEY "quantizer_downsample_factor", S2_MAX_STAGES, 1, 16, c->down_factors);
    if (rd->r < 0) {
        return;
    }
    s2_hp_expect_equal(
            rd, "the length of decoder_rates", n_decoder, "that of encoder_rates", c->n_stages);
    if (c->n_stages > 5 || c->n_down > 4) {
        s2_hp_refuse(rd, SL_EUNSUPPORTED,
                "%u codec stages and %u downsampling steps, at most 5 and 4 are computed",
                c->n_stages, c->n_down);
        return;
    }
    s2_hp_expect_equal(rd, "the product of encoder_rates", product(c->encoder_rates, c->n_stages),
            CODEC_KEY "hop_length", c->hop);
    s2_hp_expect_equal(rd, "the product of decoder_rates", product(c->decoder_rates, c->n_stages),
            CODEC_KEY "hop_length", c->hop);
    s2_hp_expect_equal(
            rd, CODEC_KEY "quantizer_input_dim", input_dim, CODEC_KEY "latent_dim", c->latent_dim);
    c->frame_samples = c->hop * product(c->down_factors, c->n_down);
    if (rd->r == 0 && (uint64_t)c->hop * product(c->down_factors, c->n_down) > MAX_FRAME_SAMPLES) {
        s2_hp_refuse(rd, SL_EUNSUPPORTED,
                "a code frame of %u x %u samples, at most %d are computed", c->hop,
                product(c->down_factors, c->n_down), MAX_FRAME_SAMPLES);
    }
    read_codec_widths(rd, c);
    read_codec_transformers(rd, c);
    s2_hp_expect_equal(rd, "the width of c.quantizer.pre_module", c->pre_tf.n_embd,
            CODEC_KEY "latent_dim", c->latent_dim);
    s2_hp_expect_equal(rd, "the width of c.quantizer.post_module", c->post_tf.n_embd,
            CODEC_KEY "latent_dim", c->latent_dim);
    if (c->encoder_tf_stage < c->n_stages) {
        s2_hp_expect_equal(rd, "the width of the encoder's transformer", c->encoder_tf.n_embd,
                "that of its stage", c->encoder_width[c->encoder_tf_stage + 1]);
    }
}

static void check_architecture(s2_hp_reader *rd)
{
    sl_error err;
    sl_span arch = {0};
    char quoted[64];
    if (sl_gguf_get_str(rd->gguf, "general.architecture", &arch, &err) < 0) {
        s2_hp_refuse(rd, SL_EUNSUPPORTED, "%s: not an S2 model", err.msg);
        return;
    }
    if (arch.n != strlen("fish-speech") || memcmp(arch.p, "fish-speech", arch.n) != 0) {
        s2_hp_refuse(rd, SL_EUNSUPPORTED,
                "general.architecture is \"%s\", need \"fish-speech\": not an S2 model",
                sl__quote(quoted, sizeof quoted, arch.p, arch.n));
    }
}

int s2_hparams_read(const sl_model *model, s2_hparams *ret_hparams, sl_error *reterr)
{
    s2_hp_reader rd = {.model = model, .gguf = sl_model_gguf(model, 0), .reterr = reterr};
    s2_hparams hp = {0};

    check_architecture(&rd);
    read_slow(&rd, &hp.slow);
    read_codes(&rd, &hp);
    read_fast(&rd, &hp);
    refuse_unsupported(&rd);
    refuse_further_layers(&rd, "layers.", hp.slow.n_layer);
    refuse_further_layers(&rd, "fast_layers.", hp.fast.n_layer);
    read_codec(&rd, &hp.codec);
    if (rd.r == 0) {
        s2_hp_expect_equal(&rd, "fish_speech.num_codebooks", hp.n_codebooks,
                "the number of codebooks of the codec", hp.codec.n_codebooks);
    }
    if (rd.r == 0 && hp.codec.semantic_size < hp.codebook_size) {
        s2_hp_refuse(&rd, SL_EFORMAT,
                "the codec's semantic codebook has %u entries for %u semantic ids",
                hp.codec.semantic_size, hp.codebook_size);
    }
    if (rd.r == 0) {
        *ret_hparams = hp;
    }
    return rd.r;
}
