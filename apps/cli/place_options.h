/* The options that say on which devices a model's units are wanted, for every command that plans or computes. */
#ifndef CLI_PLACE_OPTIONS_H
#define CLI_PLACE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "options.h"
#include "s2/placement.h"

typedef struct place_options {
    const char *device;
    opt_list places;
    int32_t gpu_layers;
    bool fast_decoder_cpu;
    bool codebook_cpu;
    bool codec_cpu;
    uint64_t vram;
    int policy; /* sl_policy */
    bool no_vram_swap;
    bool hot_swap;
    int decode; /* s2_decode_when */
} place_options;

/* Values of --policy and --decode; NULL-terminated. */
extern const char *const place_policy_names[];
extern const char *const place_decode_names[];

/* NOLINTBEGIN(bugprone-macro-parentheses): the path of a member cannot stand in parentheses. */
#define PLACE_FLAG(n, type, member, h)                                                             \
    {                                                                                              \
        .name = (n), .kind = OPT_FLAG, .offset = offsetof(type, member), .help = (h)               \
    }
#define PLACE_VALUE(n, k, type, member, a, h)                                                      \
    .name = (n), .kind = (k), .offset = offsetof(type, member), .arg = (a), .help = (h)

/* Rows of a table for the member `m`, a place_options, of the command's struct `type`. */
#define PLACE_OPTION_ROWS(type, m)                                                                 \
    {PLACE_VALUE("device", OPT_STR, type, m.device, "NAME",                                        \
            "Where the model is computed: auto, cpu, a device of 'sluice doctor' such as "         \
            "vulkan0 or cuda0, or a simulation such as sim:4G,link=12G; default: auto.")},         \
            {PLACE_VALUE("place", OPT_LIST, type, m.places, "UNIT=DEVICE",                         \
                    "Put a unit elsewhere: slow, fast, codec.encoder, codec.decoder or codec. "    \
                    "Repeatable.")},                                                               \
            {PLACE_VALUE("gpu-layers", OPT_I32, type, m.gpu_layers, "N",                           \
                     "Layers of the slow AR that are on the device; the others stay on the "       \
                     "cpu."),                                                                      \
                    .max = 65535},                                                                 \
            PLACE_FLAG("fast-decoder-cpu", type, m.fast_decoder_cpu, "As --place fast=cpu."),      \
            PLACE_FLAG("codebook-cpu", type, m.codebook_cpu,                                       \
                    "Does nothing: tables of embeddings are on the cpu always."),                  \
            PLACE_FLAG("codec-cpu", type, m.codec_cpu, "As --place codec=cpu."),                   \
            {PLACE_VALUE("vram", OPT_BYTES, type, m.vram, "BYTES",                                 \
                     "Budget of each device; default: what it says is free, less the larger of "   \
                     "512 MiB and a sixteenth."),                                                  \
                    .min = 1, .max = 1e18},                                                        \
            {PLACE_VALUE("policy", OPT_CHOICE, type, m.policy, "POLICY",                           \
                     "What happens to weights on a device when the phase that used them ends: "    \
                     "they leave unless the next one needs them, stay, leave with everything "     \
                     "else when the request is done, or leave as the plan must."),                 \
                    .def = "swap", .choices = place_policy_names},                                 \
            PLACE_FLAG("no-vram-swap", type, m.no_vram_swap, "As --policy keep."),                 \
            PLACE_FLAG("hot-swap", type, m.hot_swap, "As --policy hot."),                          \
    {                                                                                              \
        PLACE_VALUE("decode", OPT_CHOICE, type, m.decode, "WHEN",                                  \
                "When frames become sound on a device: as they are made, or after all of them, "   \
                "which needs less memory; auto: after, unless somebody listens and both fit."),    \
                .def = "auto", .choices = place_decode_names                                       \
    }
/* NOLINTEND(bugprone-macro-parentheses) */

/* Rules of these options for the table of rules. */
#define PLACE_OPTION_RULES                                                                         \
    {OPT_EXCLUDES, "no-vram-swap", "hot-swap"}, {OPT_EXCLUDES, "no-vram-swap", "policy"},          \
    {                                                                                              \
        OPT_EXCLUDES, "hot-swap", "policy"                                                         \
    }

/* `line` is what the options were parsed from; strings stay its. */
s2_place_opts place_options_get(const place_options *options, const opt_result *line);

#endif
