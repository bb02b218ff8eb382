/*
 * A model ties each tensor to a file. One file is searched through its own index; a set has one table over
 * all of its files, which also finds a tensor that two of them hold.
 */
#include "sluice/model.h"

#include <string.h>

#include "base/mem.h"
#include "base/status.h"
#include "source/name_table.h"
#include "source/split_set.h"

struct sl_model {
    sl__split_set set;
    sl_tensor *tensors;
    size_t n_tensors;
    sl__name_table names; /* of a set of several files */
};

static int count_tensors(sl_model *m, sl_error *reterr)
{
    uint64_t total = 0;
    for (uint32_t i = 0; i < m->set.n_files; i++) {
        total += sl_gguf_n_tensors(m->set.files[i].gguf);
    }
    m->tensors = sl__alloc((size_t)total, sizeof *m->tensors);
    if (!m->tensors) {
        return sl__fail_nomem(reterr, (size_t)total * sizeof *m->tensors, "the list of tensors");
    }
    for (uint32_t i = 0; i < m->set.n_files; i++) {
        const sl_gguf *gguf = m->set.files[i].gguf;
        for (uint64_t k = 0; k < sl_gguf_n_tensors(gguf); k++) {
            sl_tensor *tensor = &m->tensors[m->n_tensors++];
            tensor->info = sl_gguf_tensor_at(gguf, k);
            tensor->i_file = i;
        }
    }
    return 0;
}

static int fail_twice(const sl_model *m, uint32_t a, uint32_t b, sl_error *reterr)
{
    char name[80];
    char first[160];
    char second[160];
    sl_span span = m->tensors[a].info->name;
    const char *path_a = sl_map_path(m->set.files[m->tensors[a].i_file].map);
    const char *path_b = sl_map_path(m->set.files[m->tensors[b].i_file].map);
    return sl__fail(reterr, SL_EFORMAT, "tensor '%s' is in two shards: %s and %s",
            sl__quote(name, sizeof name, span.p, span.n),
            sl__quote(first, sizeof first, path_a, strlen(path_a)),
            sl__quote(second, sizeof second, path_b, strlen(path_b)));
}

static int index_names(sl_model *m, sl_error *reterr)
{
    if (m->set.n_files == 1) {
        return 0;
    }
    int r = 0;
    for (size_t i = 0; r >= 0 && i < m->n_tensors; i++) {
        uint32_t other = SL_NAME_NONE;
        sl_span name = m->tensors[i].info->name;
        r = sl__name_table_add(&m->names, name, (uint32_t)i, &other, reterr);
        if (r >= 0 && other != SL_NAME_NONE) {
            r = fail_twice(m, other, (uint32_t)i, reterr);
        }
    }
    return r;
}

int sl_model_open(const char *path, sl_model **ret_model, sl_error *reterr)
{
    sl_model *m = sl__alloc(1, sizeof *m);
    if (!m) {
        return sl__fail_nomem(reterr, sizeof *m, "a model");
    }
    int r = sl__split_set_open(path, &m->set, reterr);
    if (r >= 0) {
        r = count_tensors(m, reterr);
    }
    if (r >= 0) {
        r = index_names(m, reterr);
    }
    /* What was indexed came from pages that may have vanished meanwhile. */
    if (r >= 0) {
        r = sl_model_check(m, reterr);
    }
    if (r < 0) {
        sl_model_close(&m);
        return r;
    }
    *ret_model = m;
    return 0;
}

void sl_model_close(sl_model **model)
{
    if (model && *model) {
        sl__name_table_done(&(*model)->names);
        sl__free((*model)->tensors);
        sl__split_set_done(&(*model)->set);
        sl__free(*model);
        *model = NULL;
    }
}

uint32_t sl_model_n_files(const sl_model *model)
{
    return model->set.n_files;
}

const sl_map *sl_model_map(const sl_model *model, uint32_t i_file)
{
    return i_file < model->set.n_files ? model->set.files[i_file].map : NULL;
}

const sl_gguf *sl_model_gguf(const sl_model *model, uint32_t i_file)
{
    return i_file < model->set.n_files ? model->set.files[i_file].gguf : NULL;
}

const char *sl_model_path(const sl_model *model)
{
    return sl_map_path(model->set.files[0].map);
}

uint64_t sl_model_n_tensors(const sl_model *model)
{
    return model->n_tensors;
}

const sl_tensor *sl_model_tensor_at(const sl_model *model, uint64_t i_tensor)
{
    return i_tensor < model->n_tensors ? &model->tensors[i_tensor] : NULL;
}

const sl_tensor *sl_model_find(const sl_model *model, const char *name)
{
    sl_span span = {name, strlen(name)};
    if (model->set.n_files > 1) {
        uint32_t i = sl__name_table_find(&model->names, span);
        return i == SL_NAME_NONE ? NULL : &model->tensors[i];
    }
    const sl_gguf *gguf = model->set.files[0].gguf;
    const sl_gguf_tensor *found = sl_gguf_find_tensor(gguf, span);
    return found ? &model->tensors[found - sl_gguf_tensor_at(gguf, 0)] : NULL;
}

const void *sl_model_data(const sl_model *model, const sl_tensor *tensor)
{
    if (tensor->info->n_bytes == 0) {
        return NULL;
    }
    const char *base = sl_map_data(model->set.files[tensor->i_file].map);
    return base + tensor->info->offset;
}

int sl_model_check(const sl_model *model, sl_error *reterr)
{
    for (uint32_t i = 0; i < model->set.n_files; i++) {
        int r = sl_map_check(model->set.files[i].map, reterr);
        if (r < 0) {
            return r;
        }
    }
    return 0;
}
