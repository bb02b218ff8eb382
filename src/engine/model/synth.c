#include "engine/model/synth.h"

#include <string.h>

#include "ggml.h"

#include "engine/model/synth_list.h"
#include "engine/model/synth_noise.h"

s2_synth_opts s2_synth_s2_pro(void)
{
    s2_synth_opts opts = {
            .hp =
                    {
                            .slow = {36, 2560, 32, 8, 128, 9728, 1e6f, 1e-6f, true},
                            .fast = {4, 2560, 32, 8, 128, 9728, 1e6f, 1e-6f, false},
                            .n_ctx = 32768,
                            .n_vocab = 155776,
                            .n_codebooks = 10,
                            .codebook_size = 4096,
                            .scale_codebook_embeddings = true,
                            .codec =
                                    {
                                            .sample_rate = 44100,
                                            .latent_dim = 1024,
                                            .n_stages = 4,
                                            .encoder_rates = {2, 4, 8, 8},
                                            .decoder_rates = {8, 8, 4, 2},
                                            .encoder_width = {64},
                                            .decoder_width = {1536},
                                            .n_down = 2,
                                            .down_factors = {2, 2},
                                            .codebook_dim = 8,
                                            .semantic_size = 4096,
                                            .residual_size = 1024,
                                            .encoder_tf_stage = 3,
                                            .encoder_tf = {4, 0, 0, 64, 0, 512, 1e4f, 1e-5f},
                                            .pre_tf = {8, 0, 0, 64, 0, 128, 1e4f, 1e-5f},
                                            .post_tf = {8, 0, 0, 64, 0, 128, 1e4f, 1e-5f},
                                    },
                    },
            .ar_type = GGML_TYPE_Q8_0,
            .codec_type = GGML_TYPE_F16,
            .seed = 1,
    };
    return opts;
}

s2_synth_opts s2_synth_tiny(void)
{
    s2_synth_opts opts = s2_synth_s2_pro();
    s2_hparams *hp = &opts.hp;
    hp->slow = (s2_ar_hparams){3, 256, 4, 2, 64, 512, 1e6f, 1e-6f, true};
    hp->fast = (s2_ar_hparams){2, 256, 4, 2, 64, 512, 1e6f, 1e-6f, false};
    hp->n_ctx = 4096;
    hp->n_vocab = 1024;
    hp->codebook_size = 256;
    hp->codec.latent_dim = 128;
    hp->codec.encoder_width[0] = 16;
    hp->codec.decoder_width[0] = 192;
    hp->codec.semantic_size = 256;
    hp->codec.residual_size = 128;
    hp->codec.encoder_tf.n_layer = 1;
    hp->codec.pre_tf.n_layer = 1;
    hp->codec.post_tf.n_layer = 2;
    return opts;
}

/* Width, heads and feed-forward of a codec transformer; S2 uses three times the width. */
static void complete_transformer(s2_codec_tf_hparams *tf, uint32_t width)
{
    tf->n_embd = width;
    tf->n_head = width / tf->head_dim;
    tf->n_ff = 3 * width;
}

int s2_synth_complete(s2_synth_opts *opts, sl_error *reterr)
{
    s2_hparams *hp = &opts->hp;
    s2_codec_hparams *c = &hp->codec;
    /* Bytes as tokens, 34 special tokens before the semantic ones and two unused ids, as in S2 Pro. */
    if (hp->n_vocab < 256 + 34 + hp->codebook_size + 2) {
        return sl__fail(reterr, SL_EINVAL, "vocabulary of %u, need at least %u for %u codes",
                hp->n_vocab, 256 + 34 + hp->codebook_size + 2, hp->codebook_size);
    }
    const s2_ar_hparams *ars[] = {&hp->slow, &hp->fast};
    for (size_t i = 0; i < 2; i++) {
        if (ars[i]->n_head % ars[i]->n_head_kv != 0 || ars[i]->head_dim % 2 != 0) {
            return sl__fail(reterr, SL_EINVAL,
                    "%u heads of %u share %u KV heads, need a divisor and an even width",
                    ars[i]->n_head, ars[i]->head_dim, ars[i]->n_head_kv);
        }
    }
    hp->semantic_begin = (int32_t)(hp->n_vocab - hp->codebook_size - 2);
    hp->semantic_end = hp->semantic_begin + (int32_t)hp->codebook_size - 1;
    hp->has_fast_project_in = hp->fast.n_embd != hp->slow.n_embd;
    c->n_codebooks = hp->n_codebooks;
    c->hop = 1;
    for (uint32_t i = 0; i < c->n_stages; i++) {
        c->hop *= c->encoder_rates[i];
        c->encoder_width[i + 1] = 2 * c->encoder_width[i];
        c->decoder_width[i + 1] = c->decoder_width[i] / 2;
    }
    c->frame_samples = c->hop;
    for (uint32_t i = 0; i < c->n_down; i++) {
        c->frame_samples *= c->down_factors[i];
    }
    uint32_t tf_width = c->encoder_width[c->encoder_tf_stage + 1];
    if (tf_width % c->encoder_tf.head_dim != 0 || c->latent_dim % c->pre_tf.head_dim != 0) {
        return sl__fail(reterr, SL_EINVAL,
                "codec widths %u and %u, need multiples of their head dimension", tf_width,
                c->latent_dim);
    }
    complete_transformer(&c->encoder_tf, tf_width);
    complete_transformer(&c->pre_tf, c->latent_dim);
    complete_transformer(&c->post_tf, c->latent_dim);
    return SL_OK;
}

bool s2_synth_type(const char *name, uint32_t *ret_type)
{
    static const enum ggml_type types[] = {
            GGML_TYPE_F32,
            GGML_TYPE_F16,
            GGML_TYPE_BF16,
            GGML_TYPE_Q8_0,
            GGML_TYPE_Q4_0,
            GGML_TYPE_Q4_1,
            GGML_TYPE_Q5_0,
            GGML_TYPE_Q5_1,
            GGML_TYPE_Q2_K,
            GGML_TYPE_Q3_K,
            GGML_TYPE_Q4_K,
            GGML_TYPE_Q5_K,
            GGML_TYPE_Q6_K,
    };
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        const char *known = ggml_type_name(types[i]);
        size_t n = strlen(known);
        bool same = strlen(name) == n;
        for (size_t k = 0; k < n && same; k++) {
            /* ggml writes the K in capitals, people do not. */
            char a = name[k] == 'K' ? 'k' : name[k];
            same = a == (known[k] == 'K' ? 'k' : known[k]);
        }
        if (same) {
            *ret_type = (uint32_t)types[i];
            return true;
        }
    }
    return false;
}

int s2_synth_write(const s2_synth_opts *opts, const char *path, sl_error *reterr)
{
    s2_synth_list list = {0};
    sl__gguf_writer *w = NULL;
    const s2_synth_noise noise = {opts->seed, opts->should_stop};
    int r = s2_synth_list_fill(opts, &list, reterr);
    if (r == 0) {
        r = sl__gguf_writer_create(32, &w, reterr);
    }
    if (r == 0) {
        s2_synth_put_keys(opts, w);
        r = s2_synth_noise_write(&noise, w, &list, path, reterr);
    }
    sl__gguf_writer_free(&w);
    s2_synth_list_done(&list);
    return r;
}
