#include "s2/units.h"

#include <stddef.h>
#include <string.h>

typedef struct name_rule {
    const char *prefix;
    s2_unit_id unit;
} name_rule;

static const name_rule ar_rules[] = {
        {"embeddings.", S2_UNIT_EMBED},
        {"codebook_embeddings.", S2_UNIT_EMBED},
        {"fast_", S2_UNIT_FAST},
        {"layers.", S2_UNIT_SLOW},
        {"norm.", S2_UNIT_SLOW},
        {"output.", S2_UNIT_SLOW},
};
static const name_rule codec_rules[] = {
        {"encoder.", S2_UNIT_CODEC_ENCODER},
        {"quantizer.pre_module.", S2_UNIT_CODEC_ENCODER},
        {"quantizer.downsample.", S2_UNIT_CODEC_ENCODER},
        {"quantizer.post_module.", S2_UNIT_CODEC_DECODER},
        {"quantizer.upsample.", S2_UNIT_CODEC_DECODER},
        {"quantizer.", S2_UNIT_CODEC_QUANTIZER},
        {"decoder.", S2_UNIT_CODEC_DECODER},
};

static bool has_prefix(sl_span s, const char *prefix)
{
    size_t n = strlen(prefix);
    return s.n >= n && memcmp(s.p, prefix, n) == 0;
}

static s2_unit_id match(const name_rule *rules, size_t n, sl_span name)
{
    for (size_t i = 0; i < n; i++) {
        if (has_prefix(name, rules[i].prefix)) {
            return rules[i].unit;
        }
    }
    return S2_UNIT_NONE;
}

s2_unit_id s2_unit_of(sl_span tensor_name, bool is_codec_file)
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

bool s2_unit_is_codec_file(const sl_model *model)
{
    sl_span arch;
    int r = sl_gguf_get_str(sl_model_gguf(model, 0), "general.architecture", &arch, NULL);
    const char *codec = "fish-speech-codec";
    return r >= 0 && arch.n == strlen(codec) && memcmp(arch.p, codec, arch.n) == 0;
}

const char *s2_unit_name(s2_unit_id id)
{
    static const char *const names[S2_UNIT_COUNT] = {
            [S2_UNIT_EMBED] = "embed",
            [S2_UNIT_SLOW] = "slow",
            [S2_UNIT_FAST] = "fast",
            [S2_UNIT_CODEC_ENCODER] = "codec.encoder",
            [S2_UNIT_CODEC_QUANTIZER] = "codec.quantizer",
            [S2_UNIT_CODEC_DECODER] = "codec.decoder",
            [S2_UNIT_NONE] = "none",
    };
    return names[id];
}

bool s2_unit_is_gathered(const sl_gguf_tensor *tensor)
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
