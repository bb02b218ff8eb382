#include "gguf_walk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_ELEMS 4096 /* of one array: more of the same finds nothing */

static void require(bool is_true, const char *what)
{
    if (!is_true) {
        fprintf(stderr, "gguf_walk: %s\n", what);
        abort();
    }
}

static void require_inside(const char *p, size_t n, const void *bytes, size_t n_bytes)
{
    size_t at = (size_t)(p - (const char *)bytes);
    require(at <= n_bytes && n <= n_bytes - at, "a span lies outside the file");
}

/* Touches every byte of a span, so that a sanitizer sees it. */
static unsigned sum_bytes(sl_span s)
{
    unsigned sum = 0;
    for (size_t i = 0; i < s.n; i++) {
        sum += (unsigned char)s.p[i];
    }
    return sum;
}

static void walk_elems(const sl_gguf_kv *kv, const void *bytes, size_t n_bytes)
{
    const char *cursor = kv->data;
    bool is_str = kv->elem_type == SL_GGUF_STR;
    for (uint64_t i = 0; i < kv->n && i < MAX_ELEMS; i++) {
        int64_t whole = 0;
        double real = 0;
        sl_span s = {0};
        (void)sl_gguf_elem_i64(kv, i, &whole, NULL);
        (void)sl_gguf_elem_f64(kv, i, &real, NULL);
        int r = sl_gguf_next_str(kv, &cursor, &s, NULL);
        require((r >= 0) == is_str, "a string is read from strings alone");
        if (r >= 0) {
            require_inside(s.p, s.n, bytes, n_bytes);
            (void)sum_bytes(s);
        }
    }
    int64_t none = 0;
    require(sl_gguf_elem_i64(kv, kv->n, &none, NULL) < 0, "an element behind the last");
}

static void walk_kv(const sl_gguf *gguf, const sl_gguf_kv *kv, const void *bytes, size_t n_bytes)
{
    require_inside(kv->key.p, kv->key.n, bytes, n_bytes);
    require_inside(kv->data, (size_t)kv->n_bytes, bytes, n_bytes);
    require(kv->key.n > 0 && kv->key.n < 65536, "the length of a key");
    char *key = calloc(kv->key.n + 1, 1);
    require(key, "out of memory");
    memcpy(key, kv->key.p, kv->key.n);
    require(sl_gguf_find(gguf, key) == kv, "a key finds itself");
    uint64_t u64 = 0;
    uint32_t u32 = 0;
    int64_t i64 = 0;
    double f64 = 0;
    bool is_set = false;
    sl_span s = {0};
    sl_error err;
    (void)sl_gguf_get_u64(gguf, key, &u64, &err);
    (void)sl_gguf_get_u32(gguf, key, &u32, &err);
    (void)sl_gguf_get_i64(gguf, key, &i64, &err);
    (void)sl_gguf_get_f64(gguf, key, &f64, &err);
    (void)sl_gguf_get_bool(gguf, key, &is_set, &err);
    (void)sl_gguf_get_str(gguf, key, &s, &err);
    require(strcmp(sl_gguf_type_name(kv->elem_type), "unknown") != 0, "the type of a value");
    walk_elems(kv, bytes, n_bytes);
    free(key);
}

static void walk_tensor(const sl_gguf *gguf, const sl_gguf_tensor *t, size_t n_bytes)
{
    sl_tensor_type_info info;
    require(sl_gguf_find_tensor(gguf, t->name) == t, "a tensor finds itself");
    require(sl_tensor_type(t->type, &info), "the type of a tensor");
    require(t->n_dims <= SL_GGUF_MAX_DIMS, "dimensions");
    require(t->ne[0] % info.block_elems == 0, "whole blocks in a row");
    require((t->offset - sl_gguf_data_offset(gguf)) % sl_gguf_alignment(gguf) == 0, "alignment");
    if (t->n_bytes > 0) {
        require(t->offset <= n_bytes && t->n_bytes <= n_bytes - t->offset,
                "a tensor lies outside the file");
    }
}

void gguf_walk(const sl_gguf *gguf, const void *bytes, size_t n_bytes)
{
    for (uint64_t i = 0; i < sl_gguf_n_kv(gguf); i++) {
        walk_kv(gguf, sl_gguf_kv_at(gguf, i), bytes, n_bytes);
    }
    for (uint64_t i = 0; i < sl_gguf_n_tensors(gguf); i++) {
        walk_tensor(gguf, sl_gguf_tensor_at(gguf, i), n_bytes);
    }
    require(!sl_gguf_kv_at(gguf, sl_gguf_n_kv(gguf)), "a key behind the last");
    require(!sl_gguf_tensor_at(gguf, sl_gguf_n_tensors(gguf)), "a tensor behind the last");
    require(!sl_gguf_find(gguf, "no such key, and longer than any"), "a key that is not there");
    require(sl_gguf_data_offset(gguf) <= n_bytes, "where the data starts");
    require(sl_gguf_index_bytes(gguf) > 0, "the size of the index");
}
