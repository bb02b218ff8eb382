#include "place_options.h"

const char *const place_policy_names[] = {
        [SL_POLICY_SWAP] = "swap",
        [SL_POLICY_KEEP] = "keep",
        [SL_POLICY_HOT] = "hot",
        [SL_POLICY_AUTO] = "auto",
        [SL_POLICY_COUNT] = NULL,
};

const char *const place_decode_names[] = {
        [S2_DECODE_AUTO] = "auto",
        [S2_DECODE_TOGETHER] = "together",
        [S2_DECODE_AFTER] = "after",
        [S2_DECODE_COUNT] = NULL,
};

static sl_policy policy_of(const place_options *options)
{
    if (options->no_vram_swap) {
        return SL_POLICY_KEEP;
    }
    return options->hot_swap ? SL_POLICY_HOT : (sl_policy)options->policy;
}

s2_place_opts place_options_get(const place_options *options, const opt_result *line)
{
    s2_place_opts opts = {
            .device = options->device,
            .places = options->places.items,
            .n_places = options->places.n,
            .has_gpu_layers = opt_given(line, "gpu-layers"),
            .gpu_layers = (uint32_t)options->gpu_layers,
            .embed_on_cpu = options->codebook_cpu,
            .fast_on_cpu = options->fast_decoder_cpu,
            .codec_on_cpu = options->codec_cpu,
            .vram_bytes = options->vram,
            .policy = policy_of(options),
            .decode = (s2_decode_when)options->decode,
    };
    return opts;
}
