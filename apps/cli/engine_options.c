#include "engine_options.h"

s2_engine_opts engine_options_get(const engine_options *options, sl_logger log)
{
    s2_engine_opts opts = {
            .model_path = options->model,
            .tokenizer_path = options->tokenizer,
            .n_threads = (uint32_t)options->threads,
            .log = log,
    };
    return opts;
}
