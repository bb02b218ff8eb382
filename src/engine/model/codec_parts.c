#include "engine/model/codec_parts.h"

uint32_t s2_codec_unit_dilation(uint32_t i_unit)
{
    uint32_t dilation = 1;
    for (uint32_t i = 0; i < i_unit; i++) {
        dilation *= 3;
    }
    return dilation;
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
