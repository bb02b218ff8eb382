#include "broken_model.h"

#include <stdlib.h>
#include <string.h>

#include "base/le_bytes.h"
#include "test_support.h"

#define MAX_CHANGES 512

/* A growing run of bytes; unlike gguf_bytes it keeps room, for files of megabytes. */
typedef struct bytes {
    unsigned char *p;
    size_t n;
    size_t cap;
} bytes;

typedef struct change {
    char name[96]; /* of a key or a tensor */
    bool is_tensor;
    bool is_dropped;
    bool is_done; /* met in the template, so nothing new */
    uint32_t type;
    uint32_t n_dims;
    uint64_t ne[SL_GGUF_MAX_DIMS];
    unsigned char *bytes;
    size_t n_bytes;
} change;

struct broken_model {
    char *data;
    size_t n_data;
    sl_gguf *gguf;
    uint32_t alignment; /* of the copy */
    size_t n_changes;
    change changes[MAX_CHANGES];
};

/* Appends n bytes; NULL = zeros. */
static void put(bytes *b, const void *p, size_t n)
{
    if (b->cap - b->n < n) {
        b->cap = 2 * (b->cap + n);
        b->p = realloc(b->p, b->cap);
        assert_non_null(b->p);
    }
    if (p && n > 0) {
        memcpy(b->p + b->n, p, n);
    } else if (n > 0) {
        memset(b->p + b->n, 0, n);
    }
    b->n += n;
}

static void put_le(bytes *b, uint64_t v, unsigned n)
{
    unsigned char le[8];
    sl__store_le(le, v, n);
    put(b, le, n);
}

static void put_str(bytes *b, const char *s, size_t n)
{
    put_le(b, n, 8);
    put(b, s, n);
}

static void put_padding(bytes *b, size_t align)
{
    put(b, NULL, (align - b->n % align) % align);
}

broken_model *broken_model_open(const char *path)
{
    sl_error err;
    broken_model *m = calloc(1, sizeof *m);
    assert_non_null(m);
    m->data = test_read_file(path, &m->n_data);
    assert_ok(sl_gguf_open(m->data, m->n_data, path, &m->gguf, &err), &err);
    m->alignment = (uint32_t)sl_gguf_alignment(m->gguf);
    return m;
}

static void forget_changes(broken_model *m)
{
    for (size_t i = 0; i < m->n_changes; i++) {
        free(m->changes[i].bytes);
    }
    memset(m->changes, 0, sizeof m->changes);
    m->n_changes = 0;
    m->alignment = (uint32_t)sl_gguf_alignment(m->gguf);
}

void broken_model_close(broken_model *m)
{
    if (m) {
        forget_changes(m);
        sl_gguf_close(&m->gguf);
        free(m->data);
        free(m);
    }
}

const sl_gguf *broken_model_gguf(const broken_model *m)
{
    return m->gguf;
}

static change *add_change(broken_model *m, const char *name, bool is_tensor)
{
    assert_true(m->n_changes < MAX_CHANGES);
    change *c = &m->changes[m->n_changes++];
    assert_true(strlen(name) < sizeof c->name);
    memcpy(c->name, name, strlen(name) + 1);
    c->is_tensor = is_tensor;
    return c;
}

/* n_bytes of `data`, or zeros. */
static void keep_bytes(change *c, const void *data, size_t n_bytes)
{
    c->bytes = calloc(1, n_bytes + 1);
    assert_non_null(c->bytes);
    c->n_bytes = n_bytes;
    if (data) {
        memcpy(c->bytes, data, n_bytes);
    }
}

void broken_drop_key(broken_model *m, const char *key)
{
    add_change(m, key, false)->is_dropped = true;
}

void broken_set_key(
        broken_model *m, const char *key, sl_gguf_type type, const void *value, size_t n_bytes)
{
    change *c = add_change(m, key, false);
    c->type = type;
    keep_bytes(c, value, n_bytes);
}

void broken_set_u32(broken_model *m, const char *key, uint32_t v)
{
    broken_set_key(m, key, SL_GGUF_U32, &v, sizeof v);
}

void broken_set_f32(broken_model *m, const char *key, float v)
{
    broken_set_key(m, key, SL_GGUF_F32, &v, sizeof v);
}

void broken_set_bool(broken_model *m, const char *key, bool v)
{
    unsigned char byte = v;
    broken_set_key(m, key, SL_GGUF_BOOL, &byte, 1);
}

void broken_set_str(broken_model *m, const char *key, const char *v)
{
    bytes b = {0};
    put_str(&b, v, strlen(v));
    broken_set_key(m, key, SL_GGUF_STR, b.p, b.n);
    free(b.p);
}

void broken_set_i32s(broken_model *m, const char *key, const int32_t *v, size_t n)
{
    bytes b = {0};
    put_le(&b, SL_GGUF_I32, 4);
    put_le(&b, n, 8);
    put(&b, v, n * sizeof *v);
    broken_set_key(m, key, SL_GGUF_ARRAY, b.p, b.n);
    free(b.p);
}

void broken_drop_tensor(broken_model *m, const char *name)
{
    add_change(m, name, true)->is_dropped = true;
}

void broken_set_tensor(broken_model *m, const char *name, uint32_t type, uint32_t n_dims,
        const uint64_t *ne, const void *data)
{
    sl_tensor_type_info info;
    change *c = add_change(m, name, true);
    uint64_t n = 1;
    assert_true(sl_tensor_type(type, &info));
    for (uint32_t d = 0; d < n_dims; d++) {
        c->ne[d] = ne[d];
        n *= ne[d];
    }
    assert_int_equal(ne[0] % info.block_elems, 0);
    c->type = type;
    c->n_dims = n_dims;
    keep_bytes(c, data, (size_t)(n / info.block_elems * info.block_bytes));
}

void broken_set_alignment(broken_model *m, uint32_t alignment)
{
    broken_set_u32(m, "general.alignment", alignment);
    m->alignment = alignment;
}

static change *find_change(broken_model *m, sl_span name, bool is_tensor)
{
    for (size_t i = 0; i < m->n_changes; i++) {
        change *c = &m->changes[i];
        if (c->is_tensor == is_tensor && strlen(c->name) == name.n &&
                memcmp(c->name, name.p, name.n) == 0) {
            c->is_done = true;
            return c;
        }
    }
    return NULL;
}

/* Adds a key; returns 1 for the count. */
static uint64_t put_key(bytes *out, sl_span key, uint32_t type, const void *value, size_t n)
{
    put_str(out, key.p, key.n);
    put_le(out, type, 4);
    put(out, value, n);
    return 1;
}

static uint64_t put_keys(broken_model *m, bytes *out)
{
    uint64_t n = 0;
    for (uint64_t i = 0; i < sl_gguf_n_kv(m->gguf); i++) {
        const sl_gguf_kv *kv = sl_gguf_kv_at(m->gguf, i);
        const change *c = find_change(m, kv->key, false);
        if (c && c->is_dropped) {
            continue;
        }
        if (c) {
            n += put_key(out, kv->key, c->type, c->bytes, c->n_bytes);
            continue;
        }
        /* The bytes of an array's value begin with its element type and count. */
        size_t head = kv->type == SL_GGUF_ARRAY ? 12 : 0;
        const char *next = kv->data + kv->n_bytes;
        n += put_key(out, kv->key, kv->type, kv->data - head, (size_t)(next - kv->data) + head);
    }
    for (size_t i = 0; i < m->n_changes; i++) {
        const change *c = &m->changes[i];
        if (!c->is_tensor && !c->is_dropped && !c->is_done) {
            sl_span key = {c->name, strlen(c->name)};
            n += put_key(out, key, c->type, c->bytes, c->n_bytes);
        }
    }
    return n;
}

/* The tensors' descriptions go to `out`, their bytes to `data`. */
typedef struct tensor_writer {
    bytes *out;
    bytes data;
    uint32_t alignment;
    uint64_t n;
} tensor_writer;

static void put_tensor(tensor_writer *w, sl_span name, uint32_t type, uint32_t n_dims,
        const uint64_t *ne, const void *data, size_t n_bytes)
{
    put_padding(&w->data, w->alignment);
    put_str(w->out, name.p, name.n);
    put_le(w->out, n_dims, 4);
    for (uint32_t d = 0; d < n_dims; d++) {
        put_le(w->out, ne[d], 8);
    }
    put_le(w->out, type, 4);
    put_le(w->out, w->data.n, 8);
    put(&w->data, data, n_bytes);
    w->n++;
}

static void put_tensors(broken_model *m, tensor_writer *w)
{
    for (uint64_t i = 0; i < sl_gguf_n_tensors(m->gguf); i++) {
        const sl_gguf_tensor *t = sl_gguf_tensor_at(m->gguf, i);
        const change *c = find_change(m, t->name, true);
        if (c && !c->is_dropped) {
            put_tensor(w, t->name, c->type, c->n_dims, c->ne, c->bytes, c->n_bytes);
        } else if (!c) {
            put_tensor(
                    w, t->name, t->type, t->n_dims, t->ne, m->data + t->offset, (size_t)t->n_bytes);
        }
    }
    for (size_t i = 0; i < m->n_changes; i++) {
        const change *c = &m->changes[i];
        if (c->is_tensor && !c->is_dropped && !c->is_done) {
            sl_span name = {c->name, strlen(c->name)};
            put_tensor(w, name, c->type, c->n_dims, c->ne, c->bytes, c->n_bytes);
        }
    }
    put_padding(&w->data, w->alignment);
}

void broken_model_write(broken_model *m, const char *path)
{
    bytes body = {0};
    bytes file = {0};
    tensor_writer w = {.out = &body, .alignment = m->alignment};
    uint64_t n_kv = put_keys(m, &body);
    put_tensors(m, &w);
    put(&file, "GGUF", 4);
    put_le(&file, 3, 4);
    put_le(&file, w.n, 8);
    put_le(&file, n_kv, 8);
    put(&file, body.p, body.n);
    put_padding(&file, m->alignment);
    put(&file, w.data.p, w.data.n);
    test_write_file(path, file.p, file.n);
    free(file.p);
    free(body.p);
    free(w.data.p);
    forget_changes(m);
}
