/*
 * The options of every command that opens a model to compute with it: one struct inside the command's own,
 * and the rows of its table.
 */
#ifndef CLI_ENGINE_OPTIONS_H
#define CLI_ENGINE_OPTIONS_H

#include <stddef.h>

#include "options.h"
#include "s2/engine.h"

typedef struct engine_options {
    const char *model;
    const char *tokenizer;
    int32_t threads;
} engine_options;

/* Rows of a table for the member `m`, an engine_options, of the command's struct `type`. */
#define ENGINE_OPTION_ROWS(type, m)                                                                \
    {.name = "model",                                                                              \
            .short_name = 'm',                                                                     \
            .kind = OPT_STR,                                                                       \
            .offset = offsetof(type, m.model),                                                     \
            .arg = "FILE",                                                                         \
            .help = "The model, a GGUF file; any shard of a split one."},                          \
            {.name = "tokenizer",                                                                  \
                    .short_name = 't',                                                             \
                    .kind = OPT_STR,                                                               \
                    .offset = offsetof(type, m.tokenizer),                                         \
                    .arg = "FILE",                                                                 \
                    .help = "Its tokenizer.json; default: beside the model or one folder up."},    \
    {                                                                                              \
        .name = "threads", .kind = OPT_I32, .offset = offsetof(type, m.threads), .arg = "N",       \
        .help = "Threads; 0 is as many as there are processors.", .def = "0", .max = 512           \
    }

/* What the engine is told; strings stay those of the command line. */
s2_engine_opts engine_options_get(const engine_options *options, sl_logger log);

#endif
