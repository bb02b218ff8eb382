#include "engine/model/codec_parts.h"

uint32_t s2_codec_unit_dilation(uint32_t i_unit)
{
    uint32_t dilation = 1;
    for (uint32_t i = 0; i < i_unit; i++) {
        dilation *= 3;
    }
    return dilation;
}

static int check_width(const char *what, uint32_t found, uint32_t need, sl_error *reterr)
{
    if (found != need) {
        return sl__fail(reterr, SL_EFORMAT,
                "codec: %s is %u wide, but its input %u: the file contradicts itself", what, found,
                need);
    }
    return SL_OK;
}

static int check_frame(const s2_codec_hparams *hp, sl_error *reterr)
{
    uint64_t n = hp->hop;
    for (uint32_t i = 0; i < hp->n_down && n <= S2_CODEC_MAX_FRAME_SAMPLES; i++) {
        n *= hp->down_factors[i];
    }
    if (n < 1 || n > S2_CODEC_MAX_FRAME_SAMPLES || n != hp->frame_samples) {
        return sl__fail(reterr, SL_EUNSUPPORTED,
                "codec: a frame has %u samples by its rates, 1 to %u are computed",
                hp->frame_samples, S2_CODEC_MAX_FRAME_SAMPLES);
    }
    return SL_OK;
}

int s2_codec_check_sizes(const s2_codec_hparams *hp, sl_error *reterr)
{
    int r = check_frame(hp, reterr);
    if (r == 0) {
        r = check_width("quantizer.pre_module", hp->pre_tf.n_embd, hp->latent_dim, reterr);
    }
    if (r == 0) {
        r = check_width("quantizer.post_module", hp->post_tf.n_embd, hp->latent_dim, reterr);
    }
    if (r == 0 && hp->encoder_tf_stage < hp->n_stages) {
        uint32_t width = hp->encoder_width[hp->encoder_tf_stage + 1];
        r = check_width("the encoder's transformer", hp->encoder_tf.n_embd, width, reterr);
    }
    return r;
}

s2_codec_tf_shape s2_codec_tf_shape_of(const s2_codec_tf_hparams *hp)
{
    return (s2_codec_tf_shape){.n_layer = hp->n_layer,
            .n_embd = hp->n_embd,
            .n_head = hp->n_head,
            .head_dim = hp->head_dim,
            .n_ff = hp->n_ff,
            .window = hp->window,
            .rope_base = hp->rope_base,
            .rms_eps = hp->rms_eps};
}
