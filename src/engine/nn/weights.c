/*
 * One ggml context holds a record for each tensor of the model; its data pointer is the tensor's place in
 * the mapping. One buffer for each file tells ggml where such pointers live. Names are looked up by the
 * model's own hash, which gives the index of the record.
 */
#include "engine/nn/weights.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "ggml-backend.h"
#include "ggml-cpu.h"

#include "base/mem.h"

/* Every ggml kernel may load a tensor's first element with an aligned instruction of this many bytes. */
#define WEIGHT_ALIGN 4

/* Longest name that is looked up, with its NUL. */
#define MAX_NAME 128

struct s2_weights {
    const sl_model *model;
    struct ggml_context *ctx;
    struct ggml_tensor **tensors;   /* by the model's tensor index; NULL for one of no bytes */
    ggml_backend_buffer_t *buffers; /* one for each file */
};

static int bind_tensor(s2_weights *w, uint64_t i, sl_error *reterr)
{
    const sl_tensor *t = sl_model_tensor_at(w->model, i);
    const sl_gguf_tensor *info = t->info;
    char name[128];

    if (info->n_bytes == 0) {
        return SL_OK;
    }
    sl__quote(name, sizeof name, info->name.p, info->name.n);
    if (info->type >= GGML_TYPE_COUNT || ggml_blck_size((enum ggml_type)info->type) == 0) {
        return sl__fail(reterr, SL_EFORMAT, "%s: tensor %s has type %u, which ggml cannot compute",
                sl_model_path(w->model), name, info->type);
    }
    if (info->offset % WEIGHT_ALIGN != 0) {
        return sl__fail(reterr, SL_EFORMAT,
                "%s: tensor %s begins at byte %llu, need a multiple of %d to use it in place",
                sl_model_path(w->model), name, (unsigned long long)info->offset, WEIGHT_ALIGN);
    }
    int64_t ne[GGML_MAX_DIMS];
    for (int d = 0; d < GGML_MAX_DIMS; d++) {
        ne[d] = (int64_t)info->ne[d];
    }
    struct ggml_tensor *tensor =
            ggml_new_tensor(w->ctx, (enum ggml_type)info->type, GGML_MAX_DIMS, ne);
    /* ggml never writes to a leaf that is no output, so the cast does not break the promise of const. */
    void *data = (void *)(uintptr_t)sl_model_data(w->model, t);
    if (ggml_backend_tensor_alloc(w->buffers[t->i_file], tensor, data) != GGML_STATUS_SUCCESS) {
        return sl__fail(
                reterr, SL_EINTERNAL, "%s: cannot bind tensor %s", sl_model_path(w->model), name);
    }
    ggml_set_name(tensor, name);
    w->tensors[i] = tensor;
    return SL_OK;
}

int s2_weights_open(const sl_model *model, s2_weights **ret_weights, sl_error *reterr)
{
    uint64_t n_tensors = sl_model_n_tensors(model);
    uint32_t n_files = sl_model_n_files(model);
    int r = SL_OK;

    s2_weights *w = sl__alloc(1, sizeof *w);
    if (!w) {
        return sl__fail_nomem(reterr, sizeof *w, "the weights");
    }
    w->model = model;
    w->tensors = sl__alloc(n_tensors, sizeof(struct ggml_tensor *));
    w->buffers = sl__alloc(n_files, sizeof(ggml_backend_buffer_t));
    struct ggml_init_params params = {
            .mem_size = (n_tensors + 1) * ggml_tensor_overhead(), .no_alloc = true};
    w->ctx = ggml_init(params);
    if (!w->tensors || !w->buffers || !w->ctx) {
        r = sl__fail_nomem(reterr, params.mem_size, "tensor records");
        goto out;
    }
    for (uint32_t i = 0; i < n_files; i++) {
        const sl_map *map = sl_model_map(model, i);
        void *base = (void *)(uintptr_t)sl_map_data(map);
        w->buffers[i] = ggml_backend_cpu_buffer_from_ptr(base, (size_t)sl_map_size(map));
        if (!w->buffers[i]) {
            r = sl__fail_nomem(reterr, sizeof(void *), "a buffer over the mapping");
            goto out;
        }
        ggml_backend_buffer_set_usage(w->buffers[i], GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
    }
    for (uint64_t i = 0; i < n_tensors; i++) {
        r = bind_tensor(w, i, reterr);
        if (r < 0) {
            goto out;
        }
    }
out:
    if (r < 0) {
        s2_weights_close(&w);
        return r;
    }
    *ret_weights = w;
    return SL_OK;
}

void s2_weights_close(s2_weights **weights)
{
    if (!weights || !*weights) {
        return;
    }
    s2_weights *w = *weights;
    if (w->buffers) {
        for (uint32_t i = 0; i < sl_model_n_files(w->model); i++) {
            ggml_backend_buffer_free(w->buffers[i]);
        }
    }
    ggml_free(w->ctx);
    sl__free(w->buffers);
    sl__free(w->tensors);
    sl__free(w);
    *weights = NULL;
}

const char *s2_weights_path(const s2_weights *weights)
{
    return sl_model_path(weights->model);
}

static struct ggml_tensor *find_by_name(const s2_weights *w, const char *name)
{
    const sl_tensor *t = sl_model_find(w->model, name);
    /* Records of a model lie in one array, in the order of their index. */
    return t ? w->tensors[t - sl_model_tensor_at(w->model, 0)] : NULL;
}

struct ggml_tensor *s2_weights_find(const s2_weights *weights, const char *fmt, ...)
{
    char name[MAX_NAME];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(name, sizeof name, fmt, ap);
    va_end(ap);
    return find_by_name(weights, name);
}

static bool has_shape(const struct ggml_tensor *t, const int64_t ne[3])
{
    return t->ne[0] == ne[0] && t->ne[1] == ne[1] && t->ne[2] == ne[2] && t->ne[3] == 1;
}

static bool has_kind(const struct ggml_tensor *t, s2_weight_kind kind)
{
    if (t->type == GGML_TYPE_F32 || t->type == GGML_TYPE_F16 || t->type == GGML_TYPE_BF16) {
        return true;
    }
    /* Integer types are data, not weights; a matrix may have any type that has a dot product. */
    return kind == S2_WEIGHT_MATRIX && ggml_get_type_traits_cpu(t->type)->vec_dot != NULL &&
           ggml_get_type_traits(t->type)->to_float != NULL;
}

int s2_weights_need(const s2_weights *weights, s2_weight_kind kind, const int64_t ne[3],
        struct ggml_tensor **ret_tensor, sl_error *reterr, const char *fmt, ...)
{
    char name[MAX_NAME];
    const char *path = sl_model_path(weights->model);
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(name, sizeof name, fmt, ap);
    va_end(ap);

    struct ggml_tensor *t = find_by_name(weights, name);
    if (!t) {
        return sl__fail(reterr, SL_EFORMAT, "%s: tensor %s is missing or empty", path, name);
    }
    if (!has_shape(t, ne)) {
        return sl__fail(reterr, SL_EFORMAT,
                "%s: tensor %s has shape [%lld, %lld, %lld, %lld], need [%lld, %lld, %lld, 1]",
                path, name, (long long)t->ne[0], (long long)t->ne[1], (long long)t->ne[2],
                (long long)t->ne[3], (long long)ne[0], (long long)ne[1], (long long)ne[2]);
    }
    if (!has_kind(t, kind)) {
        return sl__fail(reterr, SL_EFORMAT, "%s: tensor %s has type %s, need %s", path, name,
                ggml_type_name(t->type),
                kind == S2_WEIGHT_VECTOR ? "f32, f16 or bf16" : "a type with a matrix product");
    }
    *ret_tensor = t;
    return SL_OK;
}
