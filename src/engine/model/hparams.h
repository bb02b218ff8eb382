/*
 * The sizes and constants of one S2 model, read from its metadata and checked against its tensors.
 *
 * Everything later trusts these numbers: a file whose keys or shapes contradict each other is refused here,
 * with a sentence that names the key or tensor and both values.
 *
 * Shapes are given as ggml writes them, fastest dimension first.
 */
#ifndef S2_MODEL_HPARAMS_H
#define S2_MODEL_HPARAMS_H

#include <stdbool.h>
#include <stdint.h>

#include "sluice/model.h"

#define S2_MAX_CODEBOOKS 32 /* codes of one frame; S2 Pro has 10 */
#define S2_MAX_STAGES    8  /* entries of a list of strides; S2 Pro has 4 */

/* One decoder-only transformer with grouped-query attention and a SwiGLU feed-forward. */
typedef struct s2_ar_hparams {
    uint32_t n_layer;
    uint32_t n_embd;    /* width of the residual stream */
    uint32_t n_head;    /* query heads */
    uint32_t n_head_kv; /* divides n_head */
    uint32_t head_dim;  /* even; n_head * head_dim need not equal n_embd */
    uint32_t n_ff;
    float rope_base;
    float rms_eps;
    bool has_qk_norm;
} s2_ar_hparams;

/* A codec transformer: windowed causal attention, layer scale, as many KV heads as heads. */
typedef struct s2_codec_tf_hparams {
    uint32_t n_layer;
    uint32_t n_embd;
    uint32_t n_head;
    uint32_t head_dim;
    uint32_t n_ff;
    uint32_t window; /* a query sees itself and window - 1 earlier positions */
    float rope_base;
    float rms_eps;
} s2_codec_tf_hparams;

typedef struct s2_codec_hparams {
    uint32_t sample_rate;   /* Hz */
    uint32_t hop;           /* samples of one latent */
    uint32_t frame_samples; /* samples of one code frame: hop * product of down_factors */
    uint32_t latent_dim;
    uint32_t n_stages; /* of the encoder and of the decoder */
    uint32_t encoder_rates[S2_MAX_STAGES];
    uint32_t decoder_rates[S2_MAX_STAGES];
    uint32_t encoder_width[S2_MAX_STAGES +
                           1]; /* channels before each encoder stage and after the last */
    uint32_t decoder_width[S2_MAX_STAGES +
                           1]; /* channels before each decoder stage and after the last */
    uint32_t n_down;           /* down- and upsampling steps of the quantizer */
    uint32_t down_factors[S2_MAX_STAGES];
    uint32_t codebook_dim;
    uint32_t n_codebooks;      /* semantic + residual */
    uint32_t semantic_size;    /* entries of the semantic codebook */
    uint32_t residual_size;    /* entries of each residual codebook */
    uint32_t encoder_tf_stage; /* stage that ends in a transformer; n_stages if none does */
    s2_codec_tf_hparams encoder_tf;
    s2_codec_tf_hparams pre_tf;
    s2_codec_tf_hparams post_tf;
} s2_codec_hparams;

typedef struct s2_hparams {
    s2_ar_hparams slow;
    s2_ar_hparams fast;
    uint32_t n_ctx; /* longest sequence: prompt columns + frames */
    uint32_t n_vocab;
    uint32_t n_codebooks;   /* codes of one frame */
    uint32_t codebook_size; /* entries of an AR codebook; the fast AR's vocabulary */
    int32_t semantic_begin; /* token id of semantic code 0 */
    int32_t semantic_end;   /* token id of the last semantic code, inclusive */
    bool scale_codebook_embeddings;
    bool has_fast_project_in;
    s2_codec_hparams codec;
} s2_hparams;

/*
 * Reads and checks. `model` is only read.
 * Errors: SL_EUNSUPPORTED (another architecture, or an option of it that this engine does not compute),
 * SL_EFORMAT (missing or contradicting keys, missing tensors, wrong shapes or types).
 */
int s2_hparams_read(const sl_model *model, s2_hparams *ret_hparams, sl_error *reterr);

#endif
