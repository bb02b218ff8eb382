#include "small_synth.h"

#include <stdio.h>
#include <string.h>

#include "ggml.h"

#include "test_support.h"

s2_synth_opts small_synth_opts(uint32_t ar_type)
{
    sl_error err;
    s2_synth_opts opts = s2_synth_tiny();
    s2_hparams *hp = &opts.hp;
    s2_codec_hparams *c = &hp->codec;
    hp->slow = (s2_ar_hparams){2, 32, 4, 2, 16, 64, 1e6F, 1e-6F, true};
    hp->fast = (s2_ar_hparams){2, 32, 4, 2, 16, 32, 1e6F, 1e-6F, false};
    hp->n_ctx = 256;
    hp->codebook_size = 16;
    hp->n_vocab = 256 + 34 + 16 + 2;
    hp->n_codebooks = 3;
    c->latent_dim = 32;
    c->n_stages = 2;
    c->encoder_rates[0] = 2;
    c->encoder_rates[1] = 2;
    c->decoder_rates[0] = 2;
    c->decoder_rates[1] = 2;
    c->encoder_width[0] = 4;
    c->decoder_width[0] = 16;
    c->n_down = 1;
    c->down_factors[0] = 2;
    c->semantic_size = 16;
    c->residual_size = 8;
    c->encoder_tf_stage = 1;
    c->encoder_tf = (s2_codec_tf_hparams){1, 0, 0, 8, 0, 512, 1e4F, 1e-5F};
    c->pre_tf = (s2_codec_tf_hparams){2, 0, 0, 16, 0, 8, 1e4F, 1e-5F};
    c->post_tf = (s2_codec_tf_hparams){2, 0, 0, 16, 0, 8, 1e4F, 1e-5F};
    opts.ar_type = ar_type;
    opts.codec_type = GGML_TYPE_F32;
    assert_ok(s2_synth_complete(&opts, &err), &err);
    return opts;
}

void small_synth_write(const s2_synth_opts *opts, const char *dir, const char *name)
{
    char path[512];
    sl_error err;
    snprintf(path, sizeof path, "%s/%s.gguf", dir, name);
    assert_ok(s2_synth_write(opts, path, &err), &err);
    snprintf(path, sizeof path, "%s/%s.tokenizer.json", dir, name);
    assert_ok(s2_synth_write_tokenizer(opts, path, &err), &err);
}

int small_synth_try_open(const char *model, s2_engine **ret_engine, sl_error *reterr)
{
    s2_engine_opts opts = {.model_path = model, .n_threads = 1};
    return s2_engine_open(&opts, ret_engine, reterr);
}

s2_speak_opts small_synth_speak(const char *text, uint32_t max_frames)
{
    s2_speak_opts opts = s2_speak_defaults();
    opts.text = text;
    opts.text_bytes = strlen(text);
    opts.temperature = 0;
    opts.top_k = 1;
    opts.max_frames = max_frames;
    return opts;
}
