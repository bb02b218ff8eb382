/* The metadata of an S2 model, with the types and names of the published files. */
#include "engine/model/synth_list.h"

void s2_synth_put_u32s(sl__gguf_writer *w, const s2_synth_u32 *items, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        sl__gguf_put_u64(w, items[i].key, SL_GGUF_U32, items[i].v);
    }
}

static void put_ar_keys(sl__gguf_writer *w, const s2_synth_opts *opts)
{
    const s2_hparams *hp = &opts->hp;
    const s2_ar_hparams *s = &hp->slow;
    const s2_ar_hparams *f = &hp->fast;
    static const char arch[] = "fish-speech";
    static const char name[] = "Synthetic S2 model: noise for weights";
    sl__gguf_put_str(w, "general.architecture", (sl_span){arch, sizeof arch - 1});
    sl__gguf_put_str(w, "general.name", (sl_span){name, sizeof name - 1});
    const s2_synth_u32 u32s[] = {
            {"fish-speech.context_length", hp->n_ctx},
            {"fish-speech.embedding_length", s->n_embd},
            {"fish-speech.feed_forward_length", s->n_ff},
            {"fish-speech.block_count", s->n_layer},
            {"fish-speech.attention.head_count", s->n_head},
            {"fish-speech.attention.head_count_kv", s->n_head_kv},
            {"fish-speech.vocab_size", hp->n_vocab},
            {"fish_speech.codebook_size", hp->codebook_size},
            {"fish_speech.num_codebooks", hp->n_codebooks},
            {"fish_speech.semantic_begin_id", (uint32_t)hp->semantic_begin},
            {"fish_speech.semantic_end_id", (uint32_t)hp->semantic_end},
            {"fish_speech.fast_context_length", hp->n_codebooks + 1},
            {"fish_speech.fast_embedding_length", f->n_embd},
            {"fish_speech.fast_feed_forward_length", f->n_ff},
            {"fish_speech.fast_block_count", f->n_layer},
            {"fish_speech.fast_head_count", f->n_head},
            {"fish_speech.fast_head_count_kv", f->n_head_kv},
            {"fish_speech.fast_head_dim", f->head_dim},
    };
    s2_synth_put_u32s(w, u32s, sizeof u32s / sizeof u32s[0]);
}

static void put_ar_constants(sl__gguf_writer *w, const s2_synth_opts *opts)
{
    const s2_hparams *hp = &opts->hp;
    const s2_ar_hparams *s = &hp->slow;
    const s2_ar_hparams *f = &hp->fast;
    const struct {
        const char *key;
        float v;
    } f32s[] = {
            {"fish-speech.rope.freq_base", s->rope_base},
            {"fish-speech.attention.layer_norm_rms_epsilon", s->rms_eps},
            {"fish_speech.fast_rope_freq_base", f->rope_base},
            {"fish_speech.fast_layer_norm_rms_eps", f->rms_eps},
    };
    for (size_t i = 0; i < sizeof f32s / sizeof f32s[0]; i++) {
        sl__gguf_put_f64(w, f32s[i].key, SL_GGUF_F32, (double)f32s[i].v);
    }
    const struct {
        const char *key;
        bool v;
    } flags[] = {
            {"fish_speech.scale_codebook_embeddings", hp->scale_codebook_embeddings},
            {"fish_speech.norm_fastlayer_input", true},
            {"fish_speech.tie_word_embeddings", true},
            {"fish_speech.attention_qk_norm", s->has_qk_norm},
            {"fish_speech.fast_tie_word_embeddings", false},
            {"fish_speech.fast_attention_qk_norm", f->has_qk_norm},
            {"fish_speech.fast_attention_qkv_bias", false},
            {"fish_speech.fast_attention_o_bias", false},
            {"fish_speech.fast_project_in", hp->has_fast_project_in},
    };
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++) {
        sl__gguf_put_u64(w, flags[i].key, SL_GGUF_BOOL, flags[i].v);
    }
}

#define CODEC_KEY "fish_speech.codec."

static void put_codec_lists(sl__gguf_writer *w, const s2_codec_hparams *c)
{
    uint32_t tf_layers[S2_MAX_STAGES] = {0};
    tf_layers[c->encoder_tf_stage] = c->encoder_tf.n_layer;
    sl__gguf_put_array(w, CODEC_KEY "encoder_rates", SL_GGUF_I32, c->encoder_rates, c->n_stages);
    sl__gguf_put_array(w, CODEC_KEY "decoder_rates", SL_GGUF_I32, c->decoder_rates, c->n_stages);
    sl__gguf_put_array(
            w, CODEC_KEY "encoder_transformer_layers", SL_GGUF_I32, tf_layers, c->n_stages);
    sl__gguf_put_array(
            w, CODEC_KEY "quantizer_downsample_factor", SL_GGUF_I32, c->down_factors, c->n_down);
}

static void put_codec_keys(sl__gguf_writer *w, const s2_codec_hparams *c)
{
    const s2_synth_u32 u32s[] = {
            {CODEC_KEY "sample_rate", c->sample_rate},
            {CODEC_KEY "hop_length", c->hop},
            {CODEC_KEY "frame_length", c->hop},
            {CODEC_KEY "encoder_dim", c->encoder_width[0]},
            {CODEC_KEY "decoder_dim", c->decoder_width[0]},
            {CODEC_KEY "latent_dim", c->latent_dim},
            {CODEC_KEY "quantizer_input_dim", c->latent_dim},
            {CODEC_KEY "quantizer_codebook_dim", c->codebook_dim},
            {CODEC_KEY "quantizer_residual_codebooks", c->n_codebooks - 1},
            {CODEC_KEY "quantizer_residual_codebook_size", c->residual_size},
            {CODEC_KEY "quantizer_semantic_codebook_size", c->semantic_size},
            {CODEC_KEY "transformer.block_size", 8192},
            {CODEC_KEY "transformer.head_dim", c->encoder_tf.head_dim},
            {CODEC_KEY "rvq_transformer.window_size", c->pre_tf.window},
            {CODEC_KEY "rvq_transformer.block_size", 2048},
            {CODEC_KEY "rvq_transformer.n_layer", c->post_tf.n_layer},
            {CODEC_KEY "rvq_transformer.n_head", c->post_tf.n_head},
            {CODEC_KEY "rvq_transformer.head_dim", c->post_tf.head_dim},
            {CODEC_KEY "rvq_transformer.dim", c->post_tf.n_embd},
            {CODEC_KEY "rvq_transformer.feed_forward_length", c->post_tf.n_ff},
    };
    s2_synth_put_u32s(w, u32s, sizeof u32s / sizeof u32s[0]);
    put_codec_lists(w, c);
    sl__gguf_put_i64(w, CODEC_KEY "transformer.n_local_heads", SL_GGUF_I32, -1);
    sl__gguf_put_i64(w, CODEC_KEY "rvq_transformer.n_local_heads", SL_GGUF_I32, -1);
    const struct {
        const char *key;
        float v;
    } f32s[] = {
            {CODEC_KEY "transformer.rope_freq_base", c->encoder_tf.rope_base},
            {CODEC_KEY "transformer.layer_norm_rms_eps", c->encoder_tf.rms_eps},
            {CODEC_KEY "rvq_transformer.rope_freq_base", c->pre_tf.rope_base},
            {CODEC_KEY "rvq_transformer.layer_norm_rms_eps", c->pre_tf.rms_eps},
    };
    for (size_t i = 0; i < sizeof f32s / sizeof f32s[0]; i++) {
        sl__gguf_put_f64(w, f32s[i].key, SL_GGUF_F32, (double)f32s[i].v);
    }
}

void s2_synth_put_keys(const s2_synth_opts *opts, sl__gguf_writer *w)
{
    put_ar_keys(w, opts);
    put_ar_constants(w, opts);
    put_codec_keys(w, &opts->hp.codec);
}
