/*
 * Reads the index. Values are decoded each time they are asked for, with the bounds that were checked when
 * the index was built: a file that is rewritten under the mapping gives other values, never a read outside.
 */
#include <inttypes.h>
#include <string.h>

#include "base/le_bytes.h"
#include "base/status.h"
#include "source/gguf_index.h"

uint32_t sl_gguf_version(const sl_gguf *gguf)
{
    return gguf->version;
}

uint64_t sl_gguf_alignment(const sl_gguf *gguf)
{
    return gguf->alignment;
}

uint64_t sl_gguf_data_offset(const sl_gguf *gguf)
{
    return gguf->data_offset;
}

uint64_t sl_gguf_index_bytes(const sl_gguf *gguf)
{
    return sizeof *gguf + gguf->cap_kv * sizeof *gguf->kvs +
           gguf->cap_tensors * sizeof *gguf->tensors + sl__name_table_bytes(&gguf->kv_names) +
           sl__name_table_bytes(&gguf->tensor_names);
}

uint64_t sl_gguf_n_kv(const sl_gguf *gguf)
{
    return gguf->n_kv;
}

const sl_gguf_kv *sl_gguf_kv_at(const sl_gguf *gguf, uint64_t i_kv)
{
    return i_kv < gguf->n_kv ? &gguf->kvs[i_kv] : NULL;
}

const sl_gguf_kv *sl_gguf_find(const sl_gguf *gguf, const char *key)
{
    sl_span name = {key, strlen(key)};
    uint32_t i = sl__name_table_find(&gguf->kv_names, name);
    return i == SL_NAME_NONE ? NULL : &gguf->kvs[i];
}

uint64_t sl_gguf_n_tensors(const sl_gguf *gguf)
{
    return gguf->n_tensors;
}

const sl_gguf_tensor *sl_gguf_tensor_at(const sl_gguf *gguf, uint64_t i_tensor)
{
    return i_tensor < gguf->n_tensors ? &gguf->tensors[i_tensor] : NULL;
}

const sl_gguf_tensor *sl_gguf_find_tensor(const sl_gguf *gguf, sl_span name)
{
    uint32_t i = sl__name_table_find(&gguf->tensor_names, name);
    return i == SL_NAME_NONE ? NULL : &gguf->tensors[i];
}

/* An integer of any width: its magnitude bits as two's complement, and whether it is below zero. */
typedef struct wide_int {
    uint64_t bits;
    bool is_negative;
} wide_int;

static bool load_int(sl_gguf_type type, const char *at, wide_int *ret)
{
    int64_t v = 0;
    switch (type) {
    case SL_GGUF_U8:
        v = (unsigned char)*at;
        break;
    case SL_GGUF_I8:
        v = (signed char)*at;
        break;
    case SL_GGUF_U16:
        v = sl__load_u16(at);
        break;
    case SL_GGUF_I16:
        v = (int16_t)sl__load_u16(at);
        break;
    case SL_GGUF_U32:
        v = sl__load_u32(at);
        break;
    case SL_GGUF_I32:
        v = (int32_t)sl__load_u32(at);
        break;
    case SL_GGUF_I64:
        v = (int64_t)sl__load_u64(at);
        break;
    case SL_GGUF_U64:
        ret->bits = sl__load_u64(at);
        ret->is_negative = false;
        return true;
    case SL_GGUF_F32:
    case SL_GGUF_BOOL:
    case SL_GGUF_STR:
    case SL_GGUF_ARRAY:
    case SL_GGUF_F64:
    case SL_GGUF_TYPE_COUNT:
    default:
        return false;
    }
    ret->bits = (uint64_t)v;
    ret->is_negative = v < 0;
    return true;
}

static bool load_float(sl_gguf_type type, const char *at, double *ret)
{
    if (type == SL_GGUF_F32) {
        uint32_t bits = sl__load_u32(at);
        float f;
        memcpy(&f, &bits, sizeof f);
        *ret = (double)f;
        return true;
    }
    if (type == SL_GGUF_F64) {
        uint64_t bits = sl__load_u64(at);
        memcpy(ret, &bits, sizeof *ret);
        return true;
    }
    return false;
}

static int wrong_type(const sl_gguf_kv *kv, const char *needed, sl_error *reterr)
{
    char key[80];
    bool is_array = kv->type == SL_GGUF_ARRAY;
    return sl__fail(reterr, SL_EFORMAT, "key '%s' has type %s%s, need %s",
            sl__quote(key, sizeof key, kv->key.p, kv->key.n), is_array ? "array of " : "",
            sl_gguf_type_name(kv->elem_type), needed);
}

static int does_not_fit(const sl_gguf_kv *kv, wide_int v, const char *needed, sl_error *reterr)
{
    char key[80];
    sl__quote(key, sizeof key, kv->key.p, kv->key.n);
    if (v.is_negative) {
        return sl__fail(reterr, SL_EFORMAT, "key '%s' is %" PRId64 ", which does not fit %s", key,
                (int64_t)v.bits, needed);
    }
    return sl__fail(reterr, SL_EFORMAT, "key '%s' is %" PRIu64 ", which does not fit %s", key,
            v.bits, needed);
}

/* The value of a key if it is no array; NULL with *ret_code set otherwise. */
static const sl_gguf_kv *find_single(
        const sl_gguf *gguf, const char *key, const char *needed, int *ret_code, sl_error *reterr)
{
    char shown[80];
    const sl_gguf_kv *kv = sl_gguf_find(gguf, key);
    if (!kv) {
        *ret_code = sl__fail(reterr, SL_ENOENT, "key '%s' is missing, need %s",
                sl__quote(shown, sizeof shown, key, strlen(key)), needed);
        return NULL;
    }
    if (kv->type == SL_GGUF_ARRAY) {
        *ret_code = wrong_type(kv, needed, reterr);
        return NULL;
    }
    return kv;
}

static int get_uint(const sl_gguf *gguf, const char *key, uint64_t max, const char *needed,
        uint64_t *ret, sl_error *reterr)
{
    int r = 0;
    wide_int v;
    const sl_gguf_kv *kv = find_single(gguf, key, needed, &r, reterr);
    if (!kv) {
        return r;
    }
    if (!load_int(kv->type, kv->data, &v)) {
        return wrong_type(kv, needed, reterr);
    }
    if (v.is_negative || v.bits > max) {
        return does_not_fit(kv, v, needed, reterr);
    }
    *ret = v.bits;
    return 0;
}

int sl_gguf_get_u64(const sl_gguf *gguf, const char *key, uint64_t *ret, sl_error *reterr)
{
    return get_uint(gguf, key, UINT64_MAX, "an unsigned integer", ret, reterr);
}

int sl_gguf_get_u32(const sl_gguf *gguf, const char *key, uint32_t *ret, sl_error *reterr)
{
    uint64_t v = 0;
    int r = get_uint(gguf, key, UINT32_MAX, "an unsigned integer of 32 bits", &v, reterr);
    if (r >= 0) {
        *ret = (uint32_t)v;
    }
    return r;
}

int sl_gguf_get_i64(const sl_gguf *gguf, const char *key, int64_t *ret, sl_error *reterr)
{
    int r = 0;
    const sl_gguf_kv *kv = find_single(gguf, key, "a signed integer of 64 bits", &r, reterr);
    return kv ? sl_gguf_elem_i64(kv, 0, ret, reterr) : r;
}

int sl_gguf_get_f64(const sl_gguf *gguf, const char *key, double *ret, sl_error *reterr)
{
    int r = 0;
    const sl_gguf_kv *kv = find_single(gguf, key, "a floating-point number", &r, reterr);
    return kv ? sl_gguf_elem_f64(kv, 0, ret, reterr) : r;
}

int sl_gguf_get_bool(const sl_gguf *gguf, const char *key, bool *ret, sl_error *reterr)
{
    static const char needed[] = "a bool";
    int r = 0;
    const sl_gguf_kv *kv = find_single(gguf, key, needed, &r, reterr);
    if (!kv) {
        return r;
    }
    if (kv->type != SL_GGUF_BOOL) {
        return wrong_type(kv, needed, reterr);
    }
    *ret = *kv->data != 0;
    return 0;
}

int sl_gguf_get_str(const sl_gguf *gguf, const char *key, sl_span *ret, sl_error *reterr)
{
    int r = 0;
    const sl_gguf_kv *kv = find_single(gguf, key, "a string", &r, reterr);
    if (!kv) {
        return r;
    }
    const char *cursor = kv->data;
    return sl_gguf_next_str(kv, &cursor, ret, reterr);
}

static int check_elem(const sl_gguf_kv *kv, uint64_t i, sl_error *reterr)
{
    char key[80];
    if (i < kv->n) {
        return 0;
    }
    return sl__fail(reterr, SL_EINVAL,
            "key '%s' has %" PRIu64 " values, value %" PRIu64 " was asked for",
            sl__quote(key, sizeof key, kv->key.p, kv->key.n), kv->n, i);
}

int sl_gguf_elem_i64(const sl_gguf_kv *kv, uint64_t i, int64_t *ret, sl_error *reterr)
{
    static const char needed[] = "a signed integer of 64 bits";
    wide_int v;
    int r = check_elem(kv, i, reterr);
    if (r < 0) {
        return r;
    }
    if (!load_int(kv->elem_type, kv->data + i * sl__gguf_type_bytes(kv->elem_type), &v)) {
        return wrong_type(kv, needed, reterr);
    }
    if (!v.is_negative && v.bits > INT64_MAX) {
        return does_not_fit(kv, v, needed, reterr);
    }
    *ret = (int64_t)v.bits;
    return 0;
}

int sl_gguf_elem_f64(const sl_gguf_kv *kv, uint64_t i, double *ret, sl_error *reterr)
{
    int r = check_elem(kv, i, reterr);
    if (r < 0) {
        return r;
    }
    if (!load_float(kv->elem_type, kv->data + i * sl__gguf_type_bytes(kv->elem_type), ret)) {
        return wrong_type(kv, "a floating-point number", reterr);
    }
    return 0;
}

int sl_gguf_next_str(const sl_gguf_kv *kv, const char **cursor, sl_span *ret, sl_error *reterr)
{
    char key[80];
    if (kv->elem_type != SL_GGUF_STR) {
        return wrong_type(kv, "a string", reterr);
    }
    uint64_t left = kv->n_bytes - (uint64_t)(*cursor - kv->data);
    uint64_t n = left >= 8 ? sl__load_u64(*cursor) : 0;
    if (left < 8) {
        return sl__fail(reterr, SL_EINVAL, "key '%s' has no more than %" PRIu64 " strings",
                sl__quote(key, sizeof key, kv->key.p, kv->key.n), kv->n);
    }
    if (n > left - 8) {
        return sl__fail(reterr, SL_ECHANGED, "key '%s' changed while in use: open the file again",
                sl__quote(key, sizeof key, kv->key.p, kv->key.n));
    }
    ret->p = *cursor + 8;
    ret->n = (size_t)n;
    *cursor += 8 + n;
    return 0;
}
