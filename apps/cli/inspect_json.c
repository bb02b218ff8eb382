/* For programs: complete, in file order, with numbers as numbers. */
#include "base/json_writer.h"
#include "base/status.h"
#include "inspect.h"
#include "kv_reader.h"

static void put_elem(sl__json *j, const kv_elem *e)
{
    switch (e->kind) {
    case KV_SIGNED:
        sl__json_i64(j, e->i);
        break;
    case KV_UNSIGNED:
        sl__json_u64(j, e->u);
        break;
    case KV_FLOAT:
        sl__json_f64(j, e->f);
        break;
    case KV_BOOL:
        sl__json_bool(j, e->b);
        break;
    case KV_STRING:
        sl__json_str(j, e->s.p, e->s.n);
        break;
    case KV_KIND_COUNT:
        break;
    }
}

static void put_kv(sl__json *j, const sl_gguf_kv *kv)
{
    kv_reader r = kv_reader_of(kv);
    kv_elem e;
    bool is_array = kv->type == SL_GGUF_ARRAY;
    sl__json_object(j);
    sl__json_put_str(j, "key", kv->key.p, kv->key.n);
    sl__json_put_cstr(j, "type", sl_gguf_type_name(kv->type));
    if (is_array) {
        sl__json_put_cstr(j, "element_type", sl_gguf_type_name(kv->elem_type));
    }
    sl__json_key(j, "value");
    if (is_array) {
        sl__json_array(j);
        while (kv_next(&r, &e)) {
            put_elem(j, &e);
        }
        sl__json_end(j);
    } else if (kv_next(&r, &e)) {
        put_elem(j, &e);
    } else {
        sl__json_null(j);
    }
    sl__json_end(j);
}

static void put_metadata(sl__json *j, const sl_gguf *gguf)
{
    sl__json_key(j, "metadata");
    sl__json_array(j);
    for (uint64_t i = 0; i < sl_gguf_n_kv(gguf); i++) {
        put_kv(j, sl_gguf_kv_at(gguf, i));
    }
    sl__json_end(j);
}

static void put_files(sl__json *j, const sl_model *model)
{
    sl__json_key(j, "files");
    sl__json_array(j);
    for (uint32_t i = 0; i < sl_model_n_files(model); i++) {
        const sl_gguf *gguf = sl_model_gguf(model, i);
        sl__json_object(j);
        sl__json_put_cstr(j, "path", sl_map_path(sl_model_map(model, i)));
        sl__json_put_u64(j, "bytes", sl_map_size(sl_model_map(model, i)));
        sl__json_put_u64(j, "version", sl_gguf_version(gguf));
        sl__json_put_u64(j, "alignment", sl_gguf_alignment(gguf));
        sl__json_put_u64(j, "data_offset", sl_gguf_data_offset(gguf));
        sl__json_put_u64(j, "tensors", sl_gguf_n_tensors(gguf));
        sl__json_end(j);
    }
    sl__json_end(j);
}

static void put_tensor(sl__json *j, const sl_tensor *tensor, bool is_codec_file)
{
    const sl_gguf_tensor *info = tensor->info;
    sl__json_object(j);
    sl__json_put_str(j, "name", info->name.p, info->name.n);
    sl__json_put_cstr(j, "type", unit_type_name(info->type));
    sl__json_key(j, "ne");
    sl__json_array(j);
    for (uint32_t d = 0; d < info->n_dims; d++) {
        sl__json_u64(j, info->ne[d]);
    }
    sl__json_end(j);
    sl__json_put_u64(j, "bytes", info->n_bytes);
    sl__json_put_u64(j, "file", tensor->i_file);
    sl__json_put_u64(j, "offset", info->offset);
    sl__json_put_cstr(j, "unit", s2_unit_name(s2_unit_of(info->name, is_codec_file)));
    sl__json_put_bool(j, "zero_size", info->n_bytes == 0);
    sl__json_put_bool(j, "lazy", unit_tensor_is_lazy(info));
    sl__json_end(j);
}

static void put_tensors(sl__json *j, const sl_model *model)
{
    bool is_codec_file = s2_unit_is_codec_file(model);
    sl__json_key(j, "tensors");
    sl__json_array(j);
    for (uint64_t i = 0; i < sl_model_n_tensors(model); i++) {
        put_tensor(j, sl_model_tensor_at(model, i), is_codec_file);
    }
    sl__json_end(j);
}

static void put_unit(sl__json *j, s2_unit_id id, const unit_summary *unit)
{
    sl__json_object(j);
    sl__json_put_cstr(j, "name", s2_unit_name(id));
    sl__json_put_u64(j, "tensors", unit->n_tensors);
    sl__json_put_u64(j, "bytes", unit->n_bytes);
    sl__json_put_u64(j, "lazy_tensors", unit->n_lazy);
    sl__json_put_u64(j, "lazy_bytes", unit->lazy_bytes);
    sl__json_put_u64(j, "zero_size_tensors", unit->n_zero_size);
    sl__json_key(j, "types");
    sl__json_object(j);
    for (uint32_t t = 0; t < UNIT_MAX_TYPES; t++) {
        if (unit->n_of_type[t] > 0) {
            sl__json_put_u64(j, unit_type_name(t), unit->n_of_type[t]);
        }
    }
    sl__json_end(j);
    sl__json_end(j);
}

static void put_units(sl__json *j, const model_summary *summary)
{
    char warning[256];
    sl__json_key(j, "units");
    sl__json_array(j);
    for (int id = 0; id < S2_UNIT_COUNT; id++) {
        if (summary->units[id].n_tensors > 0) {
            put_unit(j, (s2_unit_id)id, &summary->units[id]);
        }
    }
    sl__json_end(j);
    sl__json_key(j, "warnings");
    sl__json_array(j);
    for (int id = 0; id < S2_UNIT_COUNT; id++) {
        if (inspect_unit_warning((s2_unit_id)id, &summary->units[id], warning, sizeof warning)) {
            sl__json_cstr(j, warning);
        }
    }
    sl__json_end(j);
}

int inspect_print_json(
        const sl_model *model, const model_summary *summary, FILE *out, sl_error *reterr)
{
    sl__json j = {0};
    size_t n = 0;
    int r = SL_OK;
    sl__json_object(&j);
    put_files(&j, model);
    put_metadata(&j, sl_model_gguf(model, 0));
    put_tensors(&j, model);
    put_units(&j, summary);
    sl__json_end(&j);
    const char *text = sl__json_text(&j, &n);
    if (text) {
        fprintf(out, "%s\n", text);
    } else {
        r = sl__fail(reterr, SL_ENOMEM, "out of memory while writing the model as JSON");
    }
    sl__json_done(&j);
    return r;
}
