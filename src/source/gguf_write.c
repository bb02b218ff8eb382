/*
 * Two buffers grow while keys and tensors are put; begin joins them behind the header. From then on only
 * the sizes of the tensors are needed.
 */
#include "source/gguf_write.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/le_bytes.h"
#include "base/mem.h"
#include "source/gguf_index.h"

typedef struct bytes {
    char *p;
    size_t n;
    size_t cap;
} bytes;

struct sl__gguf_writer {
    uint64_t alignment;
    bytes kvs;
    bytes infos;
    uint64_t n_kv;
    uint64_t *sizes; /* of the tensors */
    size_t n_tensors;
    size_t cap_sizes;
    uint64_t n_data; /* bytes of all tensors with padding */
    sl_error error;  /* of the first failing put */
    sl__out_file *file;
    size_t i_tensor;      /* that is being written */
    uint64_t n_in_tensor; /* bytes of it so far */
};

static void put_bytes(sl__gguf_writer *w, bytes *to, const void *p, size_t n)
{
    if (w->error.code < 0 || n == 0) {
        return;
    }
    if (n > SIZE_MAX - to->n || !sl__grow((void **)&to->p, &to->cap, to->n + n, 1)) {
        sl__fail_nomem(&w->error, n, "the keys of a GGUF file");
        return;
    }
    memcpy(to->p + to->n, p, n);
    to->n += n;
}

static void put_le(sl__gguf_writer *w, bytes *to, uint64_t v, unsigned n_bytes)
{
    unsigned char le[8];
    sl__store_le(le, v, n_bytes);
    put_bytes(w, to, le, n_bytes);
}

static void put_span(sl__gguf_writer *w, bytes *to, const char *p, size_t n)
{
    put_le(w, to, n, 8);
    put_bytes(w, to, p, n);
}

static void put_key(sl__gguf_writer *w, const char *key, sl_gguf_type type)
{
    size_t n = strlen(key);
    if (w->error.code >= 0 && (n == 0 || n > SL_GGUF_MAX_KEY_BYTES)) {
        sl__fail(&w->error, SL_EINVAL, "a GGUF key of %zu bytes, need 1 to %u", n,
                SL_GGUF_MAX_KEY_BYTES);
    }
    put_span(w, &w->kvs, key, n);
    put_le(w, &w->kvs, type, 4);
    w->n_kv++;
}

static void bad_put(sl__gguf_writer *w, const char *key, sl_gguf_type type)
{
    if (w->error.code >= 0) {
        sl__fail(&w->error, SL_EINVAL, "the value of GGUF key '%s' does not fit type %s", key,
                sl_gguf_type_name(type));
    }
}

/* Bits of an integer type, 0 for another; bool is an integer of one bit here. */
static unsigned value_bits(sl_gguf_type type)
{
    bool is_plain = type != SL_GGUF_F32 && type != SL_GGUF_F64 && type != SL_GGUF_BOOL;
    return type == SL_GGUF_BOOL ? 1 : is_plain ? 8 * sl__gguf_type_bytes(type) : 0;
}

static bool is_signed(sl_gguf_type type)
{
    return type == SL_GGUF_I8 || type == SL_GGUF_I16 || type == SL_GGUF_I32 || type == SL_GGUF_I64;
}

int sl__gguf_writer_create(uint32_t alignment, sl__gguf_writer **ret_writer, sl_error *reterr)
{
    if (alignment == 0 || (alignment & (alignment - 1)) != 0 || alignment > SL_GGUF_MAX_ALIGNMENT) {
        return sl__fail(reterr, SL_EINVAL,
                "alignment %" PRIu32 ", need a power of two from 1 to %u", alignment,
                SL_GGUF_MAX_ALIGNMENT);
    }
    sl__gguf_writer *w = sl__alloc(1, sizeof *w);
    if (!w) {
        return sl__fail_nomem(reterr, sizeof *w, "a GGUF writer");
    }
    w->alignment = alignment;
    if (alignment != SL_GGUF_DEFAULT_ALIGNMENT) {
        sl__gguf_put_u64(w, "general.alignment", SL_GGUF_U32, alignment);
    }
    *ret_writer = w;
    return 0;
}

void sl__gguf_writer_free(sl__gguf_writer **writer)
{
    if (writer && *writer) {
        sl__free((*writer)->kvs.p);
        sl__free((*writer)->infos.p);
        sl__free((*writer)->sizes);
        sl__free(*writer);
        *writer = NULL;
    }
}

void sl__gguf_put_u64(sl__gguf_writer *w, const char *key, sl_gguf_type type, uint64_t v)
{
    unsigned n_bits = value_bits(type);
    unsigned n_usable = n_bits > 0 && is_signed(type) ? n_bits - 1 : n_bits;
    if (n_usable == 0 || (n_usable < 64 && v >> n_usable != 0)) {
        bad_put(w, key, type);
        return;
    }
    put_key(w, key, type);
    put_le(w, &w->kvs, v, sl__gguf_type_bytes(type));
}

void sl__gguf_put_i64(sl__gguf_writer *w, const char *key, sl_gguf_type type, int64_t v)
{
    if (v >= 0) {
        sl__gguf_put_u64(w, key, type, (uint64_t)v);
        return;
    }
    unsigned n_bits = value_bits(type);
    if (!is_signed(type) || ~(uint64_t)v >> (n_bits - 1) != 0) {
        bad_put(w, key, type);
        return;
    }
    put_key(w, key, type);
    put_le(w, &w->kvs, (uint64_t)v, sl__gguf_type_bytes(type));
}

void sl__gguf_put_f64(sl__gguf_writer *w, const char *key, sl_gguf_type type, double v)
{
    uint64_t bits64;
    uint32_t bits32;
    bool is_f32 = type == SL_GGUF_F32;
    if ((!is_f32 && type != SL_GGUF_F64) || (is_f32 && isfinite(v) && fabs(v) > (double)FLT_MAX)) {
        bad_put(w, key, type);
        return;
    }
    float f = is_f32 ? (float)v : 0;
    memcpy(&bits64, &v, sizeof bits64);
    memcpy(&bits32, &f, sizeof bits32);
    put_key(w, key, type);
    put_le(w, &w->kvs, is_f32 ? bits32 : bits64, sl__gguf_type_bytes(type));
}

void sl__gguf_put_str(sl__gguf_writer *w, const char *key, sl_span v)
{
    put_key(w, key, SL_GGUF_STR);
    put_span(w, &w->kvs, v.p, v.n);
}

static uint64_t load_host(const void *at, unsigned n_bytes)
{
    uint8_t v8;
    uint16_t v16;
    uint32_t v32;
    uint64_t v64;
    switch (n_bytes) {
    case 1:
        memcpy(&v8, at, 1);
        return v8;
    case 2:
        memcpy(&v16, at, 2);
        return v16;
    case 4:
        memcpy(&v32, at, 4);
        return v32;
    default:
        memcpy(&v64, at, 8);
        return v64;
    }
}

void sl__gguf_put_array(
        sl__gguf_writer *w, const char *key, sl_gguf_type elem_type, const void *elems, size_t n)
{
    unsigned n_bytes = sl__gguf_type_bytes(elem_type);
    if (n_bytes == 0) {
        bad_put(w, key, elem_type);
        return;
    }
    put_key(w, key, SL_GGUF_ARRAY);
    put_le(w, &w->kvs, elem_type, 4);
    put_le(w, &w->kvs, n, 8);
    for (size_t i = 0; i < n; i++) {
        put_le(w, &w->kvs, load_host((const char *)elems + i * n_bytes, n_bytes), n_bytes);
    }
}

void sl__gguf_put_strs(sl__gguf_writer *w, const char *key, const sl_span *strs, size_t n)
{
    put_key(w, key, SL_GGUF_ARRAY);
    put_le(w, &w->kvs, SL_GGUF_STR, 4);
    put_le(w, &w->kvs, n, 8);
    for (size_t i = 0; i < n; i++) {
        put_span(w, &w->kvs, strs[i].p, strs[i].n);
    }
}

static bool push_size(sl__gguf_writer *w, uint64_t n_bytes)
{
    uint64_t end = 0;
    if (!sl__add_u64(w->n_data, n_bytes, &end) || !sl__align_up_u64(end, w->alignment, &end)) {
        return false;
    }
    if (!sl__grow((void **)&w->sizes, &w->cap_sizes, w->n_tensors + 1, sizeof *w->sizes)) {
        sl__fail_nomem(&w->error, sizeof *w->sizes, "a tensor");
        return false;
    }
    w->sizes[w->n_tensors] = n_bytes;
    w->n_tensors++;
    w->n_data = end;
    return true;
}

void sl__gguf_put_tensor(
        sl__gguf_writer *w, const char *name, uint32_t type, uint32_t n_dims, const uint64_t *ne)
{
    uint64_t dims[SL_GGUF_MAX_DIMS] = {1, 1, 1, 1};
    uint64_t n_bytes = 0;
    uint64_t offset = w->n_data;
    sl_tensor_type_info info;
    if (w->error.code < 0) {
        return;
    }
    if (n_dims <= SL_GGUF_MAX_DIMS && n_dims > 0) {
        memcpy(dims, ne, n_dims * sizeof *ne);
    }
    if (n_dims > SL_GGUF_MAX_DIMS || strlen(name) > SL_GGUF_MAX_NAME_BYTES ||
            !sl_tensor_type(type, &info) || dims[0] % info.block_elems != 0 ||
            !sl__tensor_bytes(&info, dims, &n_bytes) || !push_size(w, n_bytes)) {
        if (w->error.code >= 0) {
            sl__fail(&w->error, SL_EINVAL,
                    "tensor '%s' of type %" PRIu32 " and %" PRIu32
                    " dimensions cannot be written: name, type or shape is out of range",
                    name, type, n_dims);
        }
        return;
    }
    put_span(w, &w->infos, name, strlen(name));
    put_le(w, &w->infos, n_dims, 4);
    for (uint32_t i = 0; i < n_dims; i++) {
        put_le(w, &w->infos, dims[i], 8);
    }
    put_le(w, &w->infos, type, 4);
    put_le(w, &w->infos, offset, 8);
}

static uint64_t metadata_bytes(const sl__gguf_writer *w)
{
    return SL_GGUF_HEADER_BYTES + (uint64_t)w->kvs.n + w->infos.n;
}

static uint64_t padding(uint64_t n, uint64_t alignment)
{
    return (alignment - n % alignment) % alignment;
}

uint64_t sl__gguf_writer_total_bytes(const sl__gguf_writer *w)
{
    uint64_t n = metadata_bytes(w);
    return n + padding(n, w->alignment) + w->n_data;
}

static int write_padding(sl__gguf_writer *w, uint64_t n, sl_error *reterr)
{
    static const char zeros[4096];
    int r = 0;
    while (r >= 0 && n > 0) {
        size_t part = n < sizeof zeros ? (size_t)n : sizeof zeros;
        r = sl__out_file_write(w->file, zeros, part, reterr);
        n -= part;
    }
    return r;
}

/* Steps over tensors that are complete (also those of no bytes), writing their padding. */
static int skip_complete(sl__gguf_writer *w, sl_error *reterr)
{
    int r = 0;
    while (r >= 0 && w->i_tensor < w->n_tensors && w->n_in_tensor == w->sizes[w->i_tensor]) {
        r = write_padding(w, padding(w->n_in_tensor, w->alignment), reterr);
        w->i_tensor++;
        w->n_in_tensor = 0;
    }
    return r;
}

int sl__gguf_writer_begin(sl__gguf_writer *w, sl__out_file *file, sl_error *reterr)
{
    unsigned char header[SL_GGUF_HEADER_BYTES] = {'G', 'G', 'U', 'F', 3};
    if (w->error.code < 0) {
        if (reterr) {
            *reterr = w->error;
        }
        return w->error.code;
    }
    sl__store_le(header + 8, w->n_tensors, 8);
    sl__store_le(header + 16, w->n_kv, 8);
    w->file = file;
    int r = sl__out_file_write(file, header, sizeof header, reterr);
    if (r >= 0) {
        r = sl__out_file_write(file, w->kvs.p, w->kvs.n, reterr);
    }
    if (r >= 0) {
        r = sl__out_file_write(file, w->infos.p, w->infos.n, reterr);
    }
    if (r >= 0) {
        r = write_padding(w, padding(metadata_bytes(w), w->alignment), reterr);
    }
    return r < 0 ? r : skip_complete(w, reterr);
}

int sl__gguf_writer_data(sl__gguf_writer *w, const void *data, size_t n_bytes, sl_error *reterr)
{
    uint64_t left = w->i_tensor < w->n_tensors ? w->sizes[w->i_tensor] - w->n_in_tensor : 0;
    if (n_bytes > left) {
        return sl__fail(reterr, SL_EINVAL,
                "%zu bytes for tensor number %zu of a GGUF file, which takes %" PRIu64 " more",
                n_bytes, w->i_tensor, left);
    }
    int r = sl__out_file_write(w->file, data, n_bytes, reterr);
    if (r < 0) {
        return r;
    }
    w->n_in_tensor += n_bytes;
    return n_bytes > 0 ? skip_complete(w, reterr) : 0;
}

int sl__gguf_writer_finish(sl__gguf_writer *w, sl_error *reterr)
{
    if (w->i_tensor < w->n_tensors) {
        return sl__fail(reterr, SL_EINVAL,
                "a GGUF file ends inside tensor number %zu of %zu: %" PRIu64 " of %" PRIu64
                " bytes",
                w->i_tensor, w->n_tensors, w->n_in_tensor, w->sizes[w->i_tensor]);
    }
    return 0;
}
