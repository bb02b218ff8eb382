#include "inspect_units.h"

#include <string.h>

#include "sluice/populate.h"

const char *unit_type_name(uint32_t type)
{
    sl_tensor_type_info info;
    return sl_tensor_type(type, &info) ? info.name : "unknown";
}

bool unit_tensor_is_lazy(const sl_gguf_tensor *tensor)
{
    return s2_unit_is_gathered(tensor) || tensor->n_bytes > SL_LAZY_OVER_BYTES;
}

unsigned unit_floor_bits(s2_unit_id id)
{
    switch (id) {
    case S2_UNIT_FAST:
        return 8;
    case S2_UNIT_CODEC_ENCODER:
    case S2_UNIT_CODEC_QUANTIZER:
    case S2_UNIT_CODEC_DECODER:
        return 16;
    case S2_UNIT_EMBED:
    case S2_UNIT_SLOW:
    case S2_UNIT_NONE:
    case S2_UNIT_COUNT:
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
    bool is_codec_file = s2_unit_is_codec_file(model);
    memset(ret, 0, sizeof *ret);
    for (uint64_t i = 0; i < sl_model_n_tensors(model); i++) {
        const sl_tensor *tensor = sl_model_tensor_at(model, i);
        s2_unit_id id = s2_unit_of(tensor->info->name, is_codec_file);
        add(&ret->units[id], tensor, unit_floor_bits(id));
        ret->n_bytes += tensor->info->n_bytes;
    }
}
