/*
 * The options of every command that opens a model to compute with it: one struct inside the command's own,
 * and the rows of its table.
 */
#ifndef CLI_ENGINE_OPTIONS_H
#define CLI_ENGINE_OPTIONS_H

#include <stddef.h>
#include <stdint.h>

#include "options.h"
#include "place_options.h"
#include "s2/engine.h"

typedef struct engine_options {
    const char *model;
    const char *tokenizer;
    int32_t threads;
    uint64_t ram;
    int populate; /* s2_populate */
    uint64_t lazy_over;
    place_options place;
} engine_options;

/* Values of --populate, in the order of s2_populate; NULL-terminated. */
extern const char *const engine_populate_names[];

/* NOLINTBEGIN(bugprone-macro-parentheses): the arguments are a type and a path of members */

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
            {.name = "ram",                                                                        \
                    .kind = OPT_BYTES,                                                             \
                    .offset = offsetof(type, m.ram),                                               \
                    .arg = "BYTES",                                                                \
                    .help = "Memory that weights may fill before they are used; default: what "    \
                            "this "                                                                \
                            "machine leaves (see 'sluice doctor')."},                              \
            {.name = "populate",                                                                   \
                    .kind = OPT_CHOICE,                                                            \
                    .offset = offsetof(type, m.populate),                                          \
                    .arg = "WHICH",                                                                \
                    .help = "Weights that are made present before they are used: what will be "    \
                            "read, nothing, or also tables and parts of which little is read.",    \
                    .def = "auto",                                                                 \
                    .choices = engine_populate_names},                                             \
            {.name = "lazy-over",                                                                  \
                    .kind = OPT_BYTES,                                                             \
                    .offset = offsetof(type, m.lazy_over),                                         \
                    .arg = "BYTES",                                                                \
                    .help = "Leave tensors larger than this to be read when they are used.",       \
                    .def = "4G"},                                                                  \
            PLACE_OPTION_ROWS(type, m.place),                                                      \
    {                                                                                              \
        .name = "threads", .kind = OPT_I32, .offset = offsetof(type, m.threads), .arg = "N",       \
        .help = "Threads; 0 is as many as there are processors.", .def = "0", .max = 512           \
    }

/* NOLINTEND(bugprone-macro-parentheses) */

/* What the engine is told; `line` is what the options were parsed from, and strings stay its. */
s2_engine_opts engine_options_get(
        const engine_options *options, const opt_result *line, sl_logger log);

#endif
