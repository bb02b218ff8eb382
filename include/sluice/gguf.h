/*
 * An index over the bytes of one GGUF file. Nothing is copied: keys, strings, arrays and tensor names are
 * spans into the caller's bytes; only fixed-size records and hash tables are allocated.
 *
 * Accepts versions 2 and 3, little endian. Version 1, big-endian files and everything that is not GGUF are
 * refused by name. Every tensor is checked to lie wholly inside the file, aligned, in order and without
 * gap or overlap, as ggml's own reader demands; different from it, missing tail padding is accepted, and
 * refused are: truncated data, an alignment above 1 MiB, keys longer than 65535 bytes, NUL in keys or tensor
 * names, and more than 2^27 strings in arrays.
 *
 * Does not promise: that strings are UTF-8 (values may hold any byte; quote before printing), or that bool
 * bytes are 0 or 1 (any non-zero byte reads as true).
 *
 * File layout (all little endian):
 *   "GGUF" | u32 version | u64 n_tensors | u64 n_kv
 *   n_kv      x { string key | u32 type | value }       string = u64 n_bytes | bytes
 *   n_tensors x { string name | u32 n_dims | u64 ne[n_dims] | u32 type | u64 offset }
 *   padding to general.alignment (default 32) | tensor data
 *   value of an array = u32 element type | u64 n | elements
 *
 * Threads: an open index is immutable; any thread may read it.
 * Lifetime: the bytes must outlive the index; spans and record pointers live as long as both.
 */
#ifndef SLUICE_GGUF_H
#define SLUICE_GGUF_H

#include <stdbool.h>
#include <stdint.h>

#include "sluice/api.h"
#include "sluice/error.h"
#include "sluice/span.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SL_GGUF_MAX_DIMS 4

typedef struct sl_gguf sl_gguf;

/* Value types of metadata, numbered as in the file. */
typedef enum sl_gguf_type {
    SL_GGUF_U8,
    SL_GGUF_I8,
    SL_GGUF_U16,
    SL_GGUF_I16,
    SL_GGUF_U32,
    SL_GGUF_I32,
    SL_GGUF_F32,
    SL_GGUF_BOOL,
    SL_GGUF_STR,
    SL_GGUF_ARRAY,
    SL_GGUF_U64,
    SL_GGUF_I64,
    SL_GGUF_F64,
    SL_GGUF_TYPE_COUNT
} sl_gguf_type;

/* One key and its value. */
typedef struct sl_gguf_kv {
    sl_span key;
    sl_gguf_type type;
    sl_gguf_type elem_type; /* of an array; equals `type` otherwise */
    uint64_t n;             /* elements: 1 unless an array */
    uint64_t n_bytes;       /* of the value */
    const char *data; /* first value byte, unaligned; a string value begins with its u64 length */
} sl_gguf_kv;

/* One tensor. ne[0] is the fastest dimension; unused dimensions are 1. */
typedef struct sl_gguf_tensor {
    sl_span name;
    uint32_t type; /* ggml type number */
    uint32_t n_dims;
    uint64_t ne[SL_GGUF_MAX_DIMS];
    uint64_t offset;  /* of the first byte, from the start of the file */
    uint64_t n_bytes; /* 0 if any dimension is 0 */
} sl_gguf_tensor;

/*
 * Indexes n_bytes of GGUF. `name` stands in error messages (a path) and is not kept.
 * Cost: one pass over the metadata bytes, no allocation that depends on an unchecked count.
 * Errors: SL_EFORMAT, SL_EUNSUPPORTED and SL_ELIMIT with the offset at fault, SL_ENOMEM.
 */
SL_API int sl_gguf_open(const void *bytes, uint64_t n_bytes, const char *name, sl_gguf **ret_gguf,
        sl_error *reterr);

/* Frees the index and sets *gguf to NULL; the bytes are not touched. Accepts NULL. */
SL_API void sl_gguf_close(sl_gguf **gguf);

SL_API uint32_t sl_gguf_version(const sl_gguf *gguf);
SL_API uint64_t sl_gguf_alignment(const sl_gguf *gguf); /* bytes, a power of two */
SL_API uint64_t sl_gguf_data_offset(
        const sl_gguf *gguf); /* of the tensor data, from the start of the file */
SL_API uint64_t sl_gguf_index_bytes(const sl_gguf *gguf); /* heap that the index takes */

SL_API uint64_t sl_gguf_n_kv(const sl_gguf *gguf);
SL_API const sl_gguf_kv *sl_gguf_kv_at(const sl_gguf *gguf, uint64_t i_kv);  /* i_kv < n_kv */
SL_API const sl_gguf_kv *sl_gguf_find(const sl_gguf *gguf, const char *key); /* NULL if absent */

SL_API uint64_t sl_gguf_n_tensors(const sl_gguf *gguf);
SL_API const sl_gguf_tensor *sl_gguf_tensor_at(const sl_gguf *gguf, uint64_t i_tensor);
SL_API const sl_gguf_tensor *sl_gguf_find_tensor(
        const sl_gguf *gguf, sl_span name); /* NULL if absent */

/*
 * Typed getters. Integers convert between widths when the value fits; f32 and f64 read as double; nothing
 * else converts. Errors, with key, type found and type needed in the message:
 * SL_ENOENT (no such key), SL_EFORMAT (other type, or the value does not fit).
 */
SL_API int sl_gguf_get_u64(const sl_gguf *gguf, const char *key, uint64_t *ret, sl_error *reterr);
SL_API int sl_gguf_get_u32(const sl_gguf *gguf, const char *key, uint32_t *ret, sl_error *reterr);
SL_API int sl_gguf_get_i64(const sl_gguf *gguf, const char *key, int64_t *ret, sl_error *reterr);
SL_API int sl_gguf_get_f64(const sl_gguf *gguf, const char *key, double *ret, sl_error *reterr);
SL_API int sl_gguf_get_bool(const sl_gguf *gguf, const char *key, bool *ret, sl_error *reterr);
SL_API int sl_gguf_get_str(const sl_gguf *gguf, const char *key, sl_span *ret, sl_error *reterr);

/* Element i (< kv->n) of a value as a signed integer, a double or a string; an array or a single value. */
SL_API int sl_gguf_elem_i64(const sl_gguf_kv *kv, uint64_t i, int64_t *ret, sl_error *reterr);
SL_API int sl_gguf_elem_f64(const sl_gguf_kv *kv, uint64_t i, double *ret, sl_error *reterr);
/* Strings have no fixed size: walk an array with *cursor, which starts as kv->data and is moved on. */
SL_API int sl_gguf_next_str(
        const sl_gguf_kv *kv, const char **cursor, sl_span *ret, sl_error *reterr);

SL_API const char *sl_gguf_type_name(sl_gguf_type type); /* "u32", "string", ...; static */

/* Facts of a ggml tensor type by its number; false for a number that is no known type. */
typedef struct sl_tensor_type_info {
    const char *name;     /* "f16", "q8_0", ... */
    uint32_t block_elems; /* elements in a block, 1 for plain types */
    uint32_t block_bytes; /* bytes of a block */
} sl_tensor_type_info;
SL_API bool sl_tensor_type(uint32_t type, sl_tensor_type_info *ret);

#ifdef __cplusplus
}
#endif

#endif
