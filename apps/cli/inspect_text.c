/*
 * For people: names and values from the file are escaped (they may hold any byte), arrays are cut after a
 * few elements, sizes come in both units and bytes.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/byte_text.h"
#include "base/status.h"
#include "inspect.h"
#include "kv_reader.h"

#define MAX_ELEMS    8 /* of an array */
#define VALUE_BYTES  160
#define NAME_BYTES   100
#define SHORT_STRING 40 /* bytes of a string inside an array */

/* The shortest text that reads back as the same number of its width. */
static void print_float(double v, bool is_f32, FILE *out)
{
    char buf[40];
    for (int digits = 6; digits <= 17; digits++) {
        snprintf(buf, sizeof buf, "%.*g", digits, v);
        double back = strtod(buf, NULL);
        if (is_f32 ? (float)back == (float)v : back == v) {
            break;
        }
    }
    fputs(buf, out);
}

static void print_elem(const kv_elem *e, const sl_gguf_kv *kv, FILE *out)
{
    char buf[VALUE_BYTES];
    bool is_in_array = kv->type == SL_GGUF_ARRAY;
    size_t room = is_in_array ? SHORT_STRING : sizeof buf;
    switch (e->kind) {
    case KV_SIGNED:
        fprintf(out, "%" PRId64, e->i);
        break;
    case KV_UNSIGNED:
        fprintf(out, "%" PRIu64, e->u);
        break;
    case KV_FLOAT:
        print_float(e->f, kv->elem_type == SL_GGUF_F32, out);
        break;
    case KV_BOOL:
        fputs(e->b ? "true" : "false", out);
        break;
    case KV_STRING:
        fprintf(out, is_in_array ? "'%s'" : "%s", sl__quote(buf, room, e->s.p, e->s.n));
        break;
    case KV_KIND_COUNT:
        break;
    }
}

static void print_value(const sl_gguf_kv *kv, FILE *out)
{
    bool is_array = kv->type == SL_GGUF_ARRAY;
    kv_reader r = kv_reader_of(kv);
    kv_elem e;
    if (!is_array) {
        if (kv_next(&r, &e)) {
            print_elem(&e, kv, out);
        }
        return;
    }
    fputc('[', out);
    while (r.i_next < MAX_ELEMS && kv_next(&r, &e)) {
        fputs(r.i_next > 1 ? ", " : "", out);
        print_elem(&e, kv, out);
    }
    fprintf(out, r.i_next < kv->n ? ", ... %" PRIu64 " in all]" : "]", kv->n);
}

static void print_metadata(const sl_gguf *gguf, FILE *out)
{
    char key[NAME_BYTES];
    fprintf(out, "\nMetadata (%" PRIu64 " keys)\n", sl_gguf_n_kv(gguf));
    for (uint64_t i = 0; i < sl_gguf_n_kv(gguf); i++) {
        const sl_gguf_kv *kv = sl_gguf_kv_at(gguf, i);
        bool is_array = kv->type == SL_GGUF_ARRAY;
        fprintf(out, "  %-52s %s%-*s ", sl__quote(key, sizeof key, kv->key.p, kv->key.n),
                is_array ? "[]" : "", is_array ? 5 : 7, sl_gguf_type_name(kv->elem_type));
        print_value(kv, out);
        fputc('\n', out);
    }
}

static void print_files(const sl_model *model, const model_summary *summary, FILE *out)
{
    char path[512];
    char size[32];
    uint32_t n_files = sl_model_n_files(model);
    const sl_gguf *first = sl_model_gguf(model, 0);
    for (uint32_t i = 0; i < n_files; i++) {
        const sl_map *map = sl_model_map(model, i);
        const char *name = sl_map_path(map);
        fprintf(out, "%s: %s (%" PRIu64 " bytes), %" PRIu64 " tensors\n",
                sl__quote(path, sizeof path, name, strlen(name)),
                sl__byte_text(sl_map_size(map), size, sizeof size), sl_map_size(map),
                sl_gguf_n_tensors(sl_model_gguf(model, i)));
    }
    fprintf(out,
            "GGUF version %" PRIu32 ", alignment %" PRIu64 ", %" PRIu32 " file%s, %" PRIu64
            " tensors, %s of weights\n",
            sl_gguf_version(first), sl_gguf_alignment(first), n_files, n_files == 1 ? "" : "s",
            sl_model_n_tensors(model), sl__byte_text(summary->n_bytes, size, sizeof size));
}

static void print_tensor(const sl_tensor *tensor, bool is_codec_file, FILE *out)
{
    char name[NAME_BYTES];
    const sl_gguf_tensor *info = tensor->info;
    fprintf(out, "  %-56s %-6s %14" PRIu64 "  %-15s [",
            sl__quote(name, sizeof name, info->name.p, info->name.n), unit_type_name(info->type),
            info->n_bytes, s2_unit_name(s2_unit_of(info->name, is_codec_file)));
    for (uint32_t d = 0; d < info->n_dims; d++) {
        fprintf(out, "%s%" PRIu64, d > 0 ? ", " : "", info->ne[d]);
    }
    fprintf(out, "] file %" PRIu32 " at %" PRIu64 "%s%s\n", tensor->i_file, info->offset,
            info->n_bytes == 0 ? ", zero-size" : "", unit_tensor_is_lazy(info) ? ", lazy" : "");
}

static void print_tensors(const sl_model *model, FILE *out)
{
    bool is_codec_file = s2_unit_is_codec_file(model);
    fprintf(out, "\nTensors (%" PRIu64 "): name, type, bytes, unit, shape\n",
            sl_model_n_tensors(model));
    for (uint64_t i = 0; i < sl_model_n_tensors(model); i++) {
        print_tensor(sl_model_tensor_at(model, i), is_codec_file, out);
    }
}

static void print_unit(s2_unit_id id, const unit_summary *unit, FILE *out)
{
    char size[32];
    fprintf(out, "  %-16s %7" PRIu64 " %15" PRIu64 " %11s ", s2_unit_name(id), unit->n_tensors,
            unit->n_bytes, sl__byte_text(unit->n_bytes, size, sizeof size));
    const char *separator = " ";
    for (uint32_t t = 0; t < UNIT_MAX_TYPES; t++) {
        if (unit->n_of_type[t] > 0) {
            fprintf(out, "%s%" PRIu64 " %s", separator, unit->n_of_type[t], unit_type_name(t));
            separator = ", ";
        }
    }
    if (unit->n_lazy > 0) {
        fprintf(out, "; lazy: %" PRIu64 ", %s", unit->n_lazy,
                sl__byte_text(unit->lazy_bytes, size, sizeof size));
    }
    if (unit->n_zero_size > 0) {
        fprintf(out, "; zero-size: %" PRIu64, unit->n_zero_size);
    }
    fputc('\n', out);
}

static void print_units(const sl_model *model, const model_summary *summary, FILE *out)
{
    if (sl_model_n_tensors(model) == 0) {
        fprintf(out, "\nNo tensors, so no units.\n");
        return;
    }
    fprintf(out, "\n  %-16s %7s %15s %11s  %s\n", "unit", "tensors", "bytes", "", "types");
    for (int id = 0; id < S2_UNIT_COUNT; id++) {
        if (summary->units[id].n_tensors > 0) {
            print_unit((s2_unit_id)id, &summary->units[id], out);
        }
    }
}

const char *inspect_unit_warning(
        s2_unit_id id, const unit_summary *unit, char *buf, size_t buf_bytes)
{
    char name[NAME_BYTES];
    if (unit->coarse.n == 0) {
        return NULL;
    }
    const sl_gguf_tensor *info = unit->coarse.first->info;
    snprintf(buf, buf_bytes,
            "%" PRIu64 " tensors of unit %s have fewer than %u bits a weight (%s is %s); "
            "speech may suffer",
            unit->coarse.n, s2_unit_name(id), unit_floor_bits(id),
            sl__quote(name, sizeof name, info->name.p, info->name.n), unit_type_name(info->type));
    return buf;
}

void inspect_print_text(
        const sl_model *model, const model_summary *summary, inspect_sections sections, FILE *out)
{
    print_files(model, summary, out);
    if (sections.has_metadata) {
        print_metadata(sl_model_gguf(model, 0), out);
    }
    if (sections.has_tensors) {
        print_tensors(model, out);
    }
    if (sections.has_units) {
        print_units(model, summary, out);
    }
}
