/*
 * One ggml context holds a record for each tensor of the model, in the order of the model's own index, so that a
 * name is looked up by the model's hash. Addresses come and go; records stay where they are.
 */
#include "engine/nn/weights.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ggml-backend.h"

#include "base/mem.h"
#include "sluice/ggml_device.h"

/* Every ggml kernel may load a tensor's first element with an aligned instruction of this many bytes. */
#define WEIGHT_ALIGN 4

/* Longest name that is looked up, with its NUL. */
#define MAX_NAME 128

/* A buffer of the residency as ggml sees it. */
typedef struct seen_buffer {
    sl_buffer *buffer;
    sl_ggml_view view;
} seen_buffer;

typedef struct slot_state {
    sl_lease *lease; /* NULL: not attached */
    size_t i_unit;
    uint64_t epoch;
    seen_buffer *seen;
    size_t n_seen;
    size_t cap_seen;
} slot_state;

/* A record and the index of its tensor, sorted by the record's address. */
typedef struct record {
    const struct ggml_tensor *tensor;
    uint64_t i_tensor;
} record;

struct s2_weights {
    const sl_model *model;
    const sl_tensor *rows; /* one more tensor, behind the model's; NULL if there is none */
    bool is_codec_file;
    uint32_t n_first; /* layers of S2_SLOT_SLOW */
    struct ggml_context *ctx;
    uint64_t n_tensors;
    struct ggml_tensor **tensors; /* by index; NULL for one of no bytes */
    record *records;
    size_t n_records;
    ggml_backend_buffer_t *maps; /* one for each file, if the mapping is used */
    slot_state slots[S2_SLOT_COUNT];
};

const char *s2_slot_name(s2_slot slot)
{
    return slot == S2_SLOT_SLOW_REST ? "slow.rest" : s2_unit_name((s2_unit_id)slot);
}

static const sl_tensor *tensor_at(const s2_weights *w, uint64_t i)
{
    return i < sl_model_n_tensors(w->model) ? sl_model_tensor_at(w->model, i) : w->rows;
}

static int add_record(s2_weights *w, uint64_t i, sl_error *reterr)
{
    const sl_gguf_tensor *info = tensor_at(w, i)->info;
    char name[128];

    if (info->n_bytes == 0) {
        return SL_OK;
    }
    sl__quote(name, sizeof name, info->name.p, info->name.n);
    if (info->type >= GGML_TYPE_COUNT || ggml_blck_size((enum ggml_type)info->type) == 0) {
        return sl__fail(reterr, SL_EFORMAT, "%s: tensor %s has type %u, which ggml cannot compute",
                sl_model_path(w->model), name, info->type);
    }
    /* Rows are aligned as their table is and their type needs. */
    if (info->offset % WEIGHT_ALIGN != 0 && i < sl_model_n_tensors(w->model)) {
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
    ggml_set_name(tensor, name);
    w->tensors[i] = tensor;
    w->records[w->n_records] = (record){tensor, i};
    w->n_records++;
    return SL_OK;
}

static int by_address(const void *a, const void *b)
{
    uintptr_t x = (uintptr_t)((const record *)a)->tensor;
    uintptr_t y = (uintptr_t)((const record *)b)->tensor;
    return (x > y) - (x < y);
}

/* Records of a model lie in one array, in the order of their index. */
static struct ggml_tensor *record_of(const s2_weights *w, const sl_tensor *tensor)
{
    return tensor == w->rows ? w->tensors[w->n_tensors - 1]
                             : w->tensors[tensor - sl_model_tensor_at(w->model, 0)];
}

int s2_weights_open(const sl_model *model, const sl_tensor *rows_or_null, s2_weights **ret_weights,
        sl_error *reterr)
{
    uint64_t n_tensors = sl_model_n_tensors(model) + (rows_or_null ? 1 : 0);
    int r = SL_OK;

    s2_weights *w = sl__alloc(1, sizeof *w);
    if (!w) {
        return sl__fail_nomem(reterr, sizeof *w, "the weights");
    }
    w->model = model;
    w->rows = rows_or_null;
    w->n_tensors = n_tensors;
    w->is_codec_file = s2_unit_is_codec_file(model);
    w->n_first = UINT32_MAX;
    w->tensors = sl__alloc(n_tensors, sizeof(struct ggml_tensor *));
    w->records = sl__alloc(n_tensors, sizeof *w->records);
    struct ggml_init_params params = {
            .mem_size = (n_tensors + 1) * ggml_tensor_overhead(), .no_alloc = true};
    w->ctx = ggml_init(params);
    if (!w->tensors || !w->records || !w->ctx) {
        r = sl__fail_nomem(reterr, params.mem_size, "tensor records");
    }
    for (uint64_t i = 0; i < n_tensors && r == 0; i++) {
        r = add_record(w, i, reterr);
    }
    if (r < 0) {
        s2_weights_close(&w);
        return r;
    }
    qsort(w->records, w->n_records, sizeof *w->records, by_address);
    *ret_weights = w;
    return SL_OK;
}

void s2_weights_close(s2_weights **weights)
{
    if (!weights || !*weights) {
        return;
    }
    s2_weights *w = *weights;
    for (int slot = 0; slot < S2_SLOT_COUNT; slot++) {
        s2_weights_detach(w, (s2_slot)slot);
        sl__free(w->slots[slot].seen);
    }
    for (uint32_t i = 0; w->maps && i < sl_model_n_files(w->model); i++) {
        ggml_backend_buffer_free(w->maps[i]);
    }
    ggml_free(w->ctx);
    sl__free(w->maps);
    sl__free(w->records);
    sl__free(w->tensors);
    sl__free(w);
    *weights = NULL;
}

void s2_weights_split_slow(s2_weights *weights, uint32_t n_first)
{
    weights->n_first = n_first;
}

static bool begins_with(sl_span name, const char *prefix)
{
    size_t n = strlen(prefix);
    return name.n >= n && memcmp(name.p, prefix, n) == 0;
}

/*
 * When a tensor is needed within its slot: what makes a layer's input, the layers by number, the norm, the rest.
 */
static uint32_t turn_of(sl_span name)
{
    static const char *const layers[] = {"layers.", "fast_layers."};
    for (size_t k = 0; k < sizeof layers / sizeof layers[0]; k++) {
        if (!begins_with(name, layers[k])) {
            continue;
        }
        uint32_t n = 0;
        for (size_t i = strlen(layers[k]); i < name.n && name.p[i] >= '0' && name.p[i] <= '9';
                i++) {
            n = n > UINT32_MAX / 16 ? n : 10 * n + (uint32_t)(name.p[i] - '0');
        }
        return 1 + n;
    }
    if (begins_with(name, "norm.")) {
        return UINT32_MAX - 1;
    }
    bool is_first = begins_with(name, "fast_embeddings.") || begins_with(name, "fast_project_in.");
    return is_first ? 0 : UINT32_MAX;
}

static int slot_of(const s2_weights *w, uint64_t i_tensor)
{
    sl_span name = tensor_at(w, i_tensor)->info->name;
    s2_unit_id unit = s2_unit_of(name, w->is_codec_file);
    if (unit == S2_UNIT_NONE) {
        return S2_SLOT_COUNT;
    }
    /* Layer n has turn n + 1, the last norm and the head larger ones. */
    bool is_rest = unit == S2_UNIT_SLOW && w->n_first != UINT32_MAX && turn_of(name) > w->n_first;
    return is_rest ? S2_SLOT_SLOW_REST : (int)unit;
}

static int by_turn(const void *a, const void *b)
{
    const sl_tensor *x = *(const sl_tensor *const *)a;
    const sl_tensor *y = *(const sl_tensor *const *)b;
    uint32_t turn_x = turn_of(x->info->name);
    uint32_t turn_y = turn_of(y->info->name);
    if (turn_x != turn_y) {
        return turn_x < turn_y ? -1 : 1;
    }
    if (x->i_file != y->i_file) {
        return x->i_file < y->i_file ? -1 : 1;
    }
    return (x->info->offset > y->info->offset) - (x->info->offset < y->info->offset);
}

size_t s2_weights_list(const s2_weights *weights, s2_slot slot, const sl_tensor **ret_tensors)
{
    size_t n = 0;
    for (uint64_t i = 0; i < weights->n_tensors; i++) {
        if (slot_of(weights, i) == (int)slot) {
            ret_tensors[n] = tensor_at(weights, i);
            n++;
        }
    }
    if (n > 0) {
        qsort(ret_tensors, n, sizeof(const sl_tensor *), by_turn);
    }
    return n;
}

uint64_t s2_weights_room(
        const s2_weights *weights, const sl_tensor *tensor, const s2_compute *compute)
{
    const struct ggml_tensor *t = record_of(weights, tensor);
    return t ? ggml_backend_buft_get_alloc_size(compute->buft, t) : 0;
}

const char *s2_weights_path(const s2_weights *weights)
{
    return sl_model_path(weights->model);
}

static int bind_record(const s2_weights *w, struct ggml_tensor *tensor,
        ggml_backend_buffer_t buffer, void *data, sl_error *reterr)
{
    if (ggml_backend_tensor_alloc(buffer, tensor, data) != GGML_STATUS_SUCCESS) {
        tensor->buffer = NULL;
        tensor->data = NULL;
        return sl__fail(reterr, SL_EDEVICE, "%s: cannot bind tensor %s", sl_model_path(w->model),
                tensor->name);
    }
    return SL_OK;
}

int s2_weights_use_mapping(s2_weights *w, sl_error *reterr)
{
    uint32_t n_files = sl_model_n_files(w->model);
    int r = SL_OK;
    w->maps = sl__alloc(n_files, sizeof(ggml_backend_buffer_t));
    for (uint32_t i = 0; i < n_files && w->maps; i++) {
        const sl_map *map = sl_model_map(w->model, i);
        void *base = (void *)(uintptr_t)sl_map_data(map);
        w->maps[i] = ggml_backend_cpu_buffer_from_ptr(base, (size_t)sl_map_size(map));
        if (!w->maps[i]) {
            return sl__fail_nomem(reterr, sizeof(void *), "a buffer over the mapping");
        }
        ggml_backend_buffer_set_usage(w->maps[i], GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
    }
    if (!w->maps) {
        return sl__fail_nomem(reterr, n_files * sizeof(void *), "buffers over the mapping");
    }
    for (size_t i = 0; i < w->n_records && r == 0; i++) {
        const sl_tensor *t = tensor_at(w, w->records[i].i_tensor);
        /* ggml never writes to a leaf that is no output, so the cast does not break the promise of const. */
        void *data = (void *)(uintptr_t)sl_model_data(w->model, t);
        r = bind_record(w, w->tensors[w->records[i].i_tensor], w->maps[t->i_file], data, reterr);
    }
    return r;
}

void s2_weights_attach(s2_weights *weights, s2_slot slot, sl_lease *lease, size_t i_unit)
{
    weights->slots[slot].lease = lease;
    weights->slots[slot].i_unit = i_unit;
}

void s2_weights_detach(s2_weights *w, s2_slot slot)
{
    slot_state *s = &w->slots[slot];
    if (!s->lease) {
        return;
    }
    for (size_t i = 0; i < w->n_records; i++) {
        uint64_t i_tensor = w->records[i].i_tensor;
        if (w->tensors[i_tensor]->buffer && slot_of(w, i_tensor) == (int)slot) {
            w->tensors[i_tensor]->buffer = NULL;
            w->tensors[i_tensor]->data = NULL;
        }
    }
    for (size_t i = 0; i < s->n_seen; i++) {
        sl_ggml_view_done(&s->seen[i].view);
    }
    s->n_seen = 0;
    s->lease = NULL;
    s->epoch++;
}

uint64_t s2_weights_epoch(const s2_weights *weights, s2_slot slot)
{
    return weights->slots[slot].epoch;
}

static int see(slot_state *s, sl_buffer *buffer, sl_ggml_view *ret_view, sl_error *reterr)
{
    for (size_t i = 0; i < s->n_seen; i++) {
        if (s->seen[i].buffer == buffer) {
            *ret_view = s->seen[i].view;
            return SL_OK;
        }
    }
    if (!sl__grow((void **)&s->seen, &s->cap_seen, s->n_seen + 1, sizeof *s->seen)) {
        return sl__fail_nomem(reterr, sizeof *s->seen, "a list of buffers");
    }
    int r = sl_ggml_view_init(buffer, ret_view, reterr);
    if (r >= 0) {
        s->seen[s->n_seen] = (seen_buffer){buffer, *ret_view};
        s->n_seen++;
    }
    return r;
}

static int arrive(s2_weights *w, uint64_t i_tensor, const sl_wait *wait, sl_error *reterr)
{
    const sl_tensor *t = tensor_at(w, i_tensor);
    int slot = slot_of(w, i_tensor);
    slot_state *s = slot < S2_SLOT_COUNT ? &w->slots[slot] : NULL;
    sl_tensor_at at = {0};
    sl_ggml_view view;
    if (!s || !s->lease) {
        return sl__fail(reterr, SL_EINTERNAL, "%s: tensor %s is used without a lease",
                sl_model_path(w->model), w->tensors[i_tensor]->name);
    }
    int r = sl_lease_wait(s->lease, s->i_unit, t, wait, reterr);
    if (r >= 0) {
        r = sl_lease_tensor(s->lease, s->i_unit, t, &at, reterr);
    }
    if (r >= 0) {
        r = see(s, at.buffer, &view, reterr);
    }
    return r < 0 ? r
                 : bind_record(w, w->tensors[i_tensor], view.buffer, (char *)view.base + at.offset,
                           reterr);
}

int s2_weights_arrive(s2_weights *weights, struct ggml_tensor *const *tensors, size_t n,
        const sl_wait *wait, sl_error *reterr)
{
    int r = SL_OK;
    for (size_t i = 0; i < n && r == 0; i++) {
        if (!tensors[i] || tensors[i]->buffer) {
            continue;
        }
        record key = {.tensor = tensors[i]};
        const record *found =
                bsearch(&key, weights->records, weights->n_records, sizeof key, by_address);
        r = found ? arrive(weights, found->i_tensor, wait, reterr)
                  : sl__fail(reterr, SL_EINTERNAL, "tensor %s is none of the model's",
                            tensors[i]->name);
    }
    return r;
}

int s2_weights_arrive_all(s2_weights *weights, s2_slot slot, const sl_wait *wait, sl_error *reterr)
{
    int r = SL_OK;
    for (size_t i = 0; i < weights->n_records && r == 0; i++) {
        uint64_t i_tensor = weights->records[i].i_tensor;
        if (!weights->tensors[i_tensor]->buffer && slot_of(weights, i_tensor) == (int)slot) {
            r = arrive(weights, i_tensor, wait, reterr);
        }
    }
    return r;
}

struct ggml_tensor *s2_weights_rows(const s2_weights *weights)
{
    return weights->rows ? record_of(weights, weights->rows) : NULL;
}

static struct ggml_tensor *find_by_name(const s2_weights *w, const char *name)
{
    const sl_tensor *t = sl_model_find(w->model, name);
    return t ? record_of(w, t) : NULL;
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
    /* Integer types are data, not weights; types of intermediate results cannot be widened. */
    return kind == S2_WEIGHT_MATRIX && ggml_is_quantized(t->type) &&
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
