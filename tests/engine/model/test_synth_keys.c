/* What the writer says of a model is what the reader understands. */
#include <string.h>

#include "ggml.h"

#include "engine/model/hparams.h"
#include "small_synth.h"
#include "test_support.h"

static char *dir;

static int set_up(void **state)
{
    (void)state;
    dir = test_dir_create();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    test_dir_remove(dir);
    return 0;
}

static void assert_same_ar(const s2_ar_hparams *a, const s2_ar_hparams *b)
{
    assert_int_equal(a->n_layer, b->n_layer);
    assert_int_equal(a->n_embd, b->n_embd);
    assert_int_equal(a->n_head, b->n_head);
    assert_int_equal(a->n_head_kv, b->n_head_kv);
    assert_int_equal(a->head_dim, b->head_dim);
    assert_int_equal(a->n_ff, b->n_ff);
    assert_true(a->rope_base == b->rope_base);
    assert_true(a->rms_eps == b->rms_eps);
    assert_int_equal(a->has_qk_norm, b->has_qk_norm);
}

static void assert_same_tf(const s2_codec_tf_hparams *a, const s2_codec_tf_hparams *b)
{
    assert_int_equal(a->n_layer, b->n_layer);
    assert_int_equal(a->n_embd, b->n_embd);
    assert_int_equal(a->n_head, b->n_head);
    assert_int_equal(a->head_dim, b->head_dim);
    assert_int_equal(a->n_ff, b->n_ff);
    assert_int_equal(a->window, b->window);
    assert_true(a->rope_base == b->rope_base);
    assert_true(a->rms_eps == b->rms_eps);
}

static void assert_same_codec(const s2_codec_hparams *a, const s2_codec_hparams *b)
{
    assert_int_equal(a->sample_rate, b->sample_rate);
    assert_int_equal(a->hop, b->hop);
    assert_int_equal(a->frame_samples, b->frame_samples);
    assert_int_equal(a->latent_dim, b->latent_dim);
    assert_int_equal(a->n_stages, b->n_stages);
    assert_int_equal(a->n_down, b->n_down);
    for (uint32_t i = 0; i < a->n_stages; i++) {
        assert_int_equal(a->encoder_rates[i], b->encoder_rates[i]);
        assert_int_equal(a->decoder_rates[i], b->decoder_rates[i]);
        assert_int_equal(a->encoder_width[i + 1], b->encoder_width[i + 1]);
        assert_int_equal(a->decoder_width[i + 1], b->decoder_width[i + 1]);
    }
    for (uint32_t i = 0; i < a->n_down; i++) {
        assert_int_equal(a->down_factors[i], b->down_factors[i]);
    }
    assert_int_equal(a->codebook_dim, b->codebook_dim);
    assert_int_equal(a->n_codebooks, b->n_codebooks);
    assert_int_equal(a->semantic_size, b->semantic_size);
    assert_int_equal(a->residual_size, b->residual_size);
    assert_int_equal(a->encoder_tf_stage, b->encoder_tf_stage);
    assert_same_tf(&a->encoder_tf, &b->encoder_tf);
    assert_same_tf(&a->pre_tf, &b->pre_tf);
    assert_same_tf(&a->post_tf, &b->post_tf);
}

static void check(const s2_synth_opts *opts)
{
    char path[512];
    sl_error err;
    sl_model *model = NULL;
    s2_hparams hp;
    const s2_hparams *want = &opts->hp;
    small_synth_write(opts, dir, "keys");
    assert_ok(sl_model_open(test_path(path, sizeof path, dir, "keys.gguf"), &model, &err), &err);
    assert_ok(s2_hparams_read(model, &hp, &err), &err);
    assert_same_ar(&hp.slow, &want->slow);
    assert_same_ar(&hp.fast, &want->fast);
    assert_same_codec(&hp.codec, &want->codec);
    assert_int_equal(hp.n_ctx, want->n_ctx);
    assert_int_equal(hp.n_vocab, want->n_vocab);
    assert_int_equal(hp.n_codebooks, want->n_codebooks);
    assert_int_equal(hp.codebook_size, want->codebook_size);
    assert_int_equal(hp.semantic_begin, want->semantic_begin);
    assert_int_equal(hp.semantic_end, want->semantic_end);
    assert_int_equal(hp.scale_codebook_embeddings, want->scale_codebook_embeddings);
    assert_int_equal(hp.has_fast_project_in, want->has_fast_project_in);
    sl_model_close(&model);
}

static void test_sizes_are_read_back(void **state)
{
    (void)state;
    sl_error err;
    s2_synth_opts opts = small_synth_opts(GGML_TYPE_F16);
    check(&opts);
    /* Other choices: a projection into a narrower fast AR, its norms, no norms in the slow AR, no scaling. */
    opts.hp.fast.n_embd = 16;
    opts.hp.fast.has_qk_norm = true;
    opts.hp.slow.has_qk_norm = false;
    opts.hp.scale_codebook_embeddings = false;
    opts.hp.codec.encoder_tf_stage = 0;
    opts.hp.codec.n_down = 2;
    assert_ok(s2_synth_complete(&opts, &err), &err);
    assert_true(opts.hp.has_fast_project_in);
    check(&opts);
}

static void test_other_choices_speak(void **state)
{
    (void)state;
    char path[512];
    sl_error err;
    s2_engine *e = NULL;
    s2_stats stats;
    s2_synth_opts opts = small_synth_opts(GGML_TYPE_F16);
    opts.hp.fast.n_embd = 16;
    opts.hp.fast.has_qk_norm = true;
    opts.hp.slow.has_qk_norm = false;
    assert_ok(s2_synth_complete(&opts, &err), &err);
    small_synth_write(&opts, dir, "other");
    assert_ok(
            small_synth_try_open(test_path(path, sizeof path, dir, "other.gguf"), &e, &err), &err);
    s2_speak_opts speak = small_synth_speak("a", 3);
    assert_ok(s2_engine_speak(e, &speak, &stats, &err), &err);
    assert_int_equal(stats.n_frames, 3);
    s2_engine_close(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_sizes_are_read_back),
            cmocka_unit_test(test_other_choices_speak),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
