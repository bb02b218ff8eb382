#include "engine_options.h"

const char *const engine_populate_names[] = {
        [S2_POPULATE_AUTO] = "auto",
        [S2_POPULATE_OFF] = "off",
        [S2_POPULATE_ALL] = "all",
        [S2_POPULATE_COUNT] = NULL,
};

s2_engine_opts engine_options_get(
        const engine_options *options, const opt_result *line, sl_logger log)
{
    s2_engine_opts opts = {
            .model_path = options->model,
            .tokenizer_path = options->tokenizer,
            .n_threads = (uint32_t)options->threads,
            .place = place_options_get(&options->place, line),
            .log = log,
            .memory =
                    {
                            .populate = (s2_populate)options->populate,
                            .has_ram = opt_given(line, "ram"),
                            .ram_bytes = options->ram,
                            /* Every tensor is larger than 0 bytes, and than 1. */
                            .lazy_over_bytes = options->lazy_over ? options->lazy_over : 1,
                    },
    };
    return opts;
}
