#include "inspect_units.h"

#include <string.h>

#include "sluice/populate.h"

typedef struct name_rule {
    const char *prefix;
    unit_id unit;
} name_rule;

static const name_rule ar_rules[] = {
        {"embeddings.", UNIT_EMBED},
        {"codebook_embeddings.", UNIT_EMBED},
        {"fast_", UNIT_FAST},
        {"layers.", UNIT_SLOW},
        {"norm.", UNIT_SLOW},
        {"output.", UNIT_SLOW},
};
static const name_rule codec_rules[] = {
        {"encoder.", UNIT_CODEC_ENCODER},
        {"quantizer.", UNIT_CODEC_QUANTIZER},
        {"decoder.", UNIT_CODEC_DECODER},
};

static bool has_prefix(sl_span s, const char *prefix)
{
    size_t n = strlen(prefix);
    return s.n >= n && memcmp(s.p, prefix, n) == 0;
}

static unit_id match(const name_rule *rules, size_t n, sl_span name)
{
    for (size_t i = 0; i < n; i++) {
        if (has_prefix(name, rules[i].prefix)) {
            return rules[i].unit;
        }
    }
    return UNIT_NONE;
}

unit_id unit_of(sl_span tensor_name, bool is_codec_file)
{
    bool has_codec_prefix = has_prefix(tensor_name, "c.");
    sl_span rest = tensor_name;
    if (has_codec_prefix) {
        rest = (sl_span){tensor_name.p + 2, tensor_name.n - 2};
    }
    return has_codec_prefix || is_codec_file
                   ? match(codec_rules, sizeof codec_rules / sizeof codec_rules[0], rest)
                   : match(ar_rules, sizeof ar_rules / sizeof ar_rules[0], rest);
}

bool unit_is_codec_file(const sl_model *model)
{
    sl_span arch;
    int r = sl_gguf_get_str(sl_model_gguf(model, 0), "general.architecture", &arch, NULL);
    const char *codec = "fish-speech-codec";
    return r >= 0 && arch.n == strlen(codec) && memcmp(arch.p, codec, arch.n) == 0;
}

const char *unit_name(unit_id id)
{
    static const char *const names[UNIT_COUNT] = {
            [UNIT_EMBED] = "embed",
            [UNIT_SLOW] = "slow",
            [UNIT_FAST] = "fast",
            [UNIT_CODEC_ENCODER] = "codec.encoder",
            [UNIT_CODEC_QUANTIZER] = "codec.quantizer",
            [UNIT_CODEC_DECODER] = "codec.decoder",
            [UNIT_NONE] = "none",
    };
    return names[id];
}

const char *unit_type_name(uint32_t type)
{
    sl_tensor_type_info info;
    return sl_tensor_type(type, &info) ? info.name : "unknown";
}

bool unit_tensor_is_gathered(const sl_gguf_tensor *tensor)
{
    static const char *const gathered[] = {
            "embeddings.weight", "codebook_embeddings.weight", "fast_embeddings.weight"};
    for (size_t i = 0; i < sizeof gathered / sizeof gathered[0]; i++) {
        if (tensor->name.n == strlen(gathered[i]) && has_prefix(tensor->name, gathered[i])) {
            return true;
        }
    }
    return false;
}

bool unit_tensor_is_lazy(const sl_gguf_tensor *tensor)
{
    return unit_tensor_is_gathered(tensor) || tensor->n_bytes > SL_LAZY_OVER_BYTES;
}

unsigned unit_floor_bits(unit_id id)
{
    switch (id) {
    case UNIT_FAST:
        return 8;
    case UNIT_CODEC_ENCODER:
    case UNIT_CODEC_QUANTIZER:
    case UNIT_CODEC_DECODER:
        return 16;
    case UNIT_EMBED:
    case UNIT_SLOW:
    case UNIT_NONE:
    case UNIT_COUNT:
        break;
    }
    return 0;
}

static void add(unit_summary *u, const sl_tensor *tensor, unsigned floor_bits)
{
    const sl_gguf_tensor *info = tensor->info;
    sl_tensor_type_info type = {0};
    bool is_known = sl_tensor_type(info->type, &type);
    u->n_tensors++;
    u->n_bytes += info->n_bytes;
    u->n_zero_size += info->n_bytes == 0;
    if (info->type < UNIT_MAX_TYPES) {
        u->n_of_type[info->type]++;
    }
    if (unit_tensor_is_lazy(info)) {
        u->n_lazy++;
        u->lazy_bytes += info->n_bytes;
    }
    if (is_known && 8 * type.block_bytes < floor_bits * type.block_elems) {
        u->coarse.first = u->coarse.n == 0 ? tensor : u->coarse.first;
        u->coarse.n++;
    }
}

void unit_summarize(const sl_model *model, model_summary *ret)
{
    bool is_codec_file = unit_is_codec_file(model);
    memset(ret, 0, sizeof *ret);
    for (uint64_t i = 0; i < sl_model_n_tensors(model); i++) {
        const sl_tensor *tensor = sl_model_tensor_at(model, i);
        unit_id id = unit_of(tensor->info->name, is_codec_file);
        add(&ret->units[id], tensor, unit_floor_bits(id));
        ret->n_bytes += tensor->info->n_bytes;
    }
}
