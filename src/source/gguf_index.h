/* The inside of an sl_gguf, shared by the files that build it and read it. */
#ifndef SL_SOURCE_GGUF_INDEX_H
#define SL_SOURCE_GGUF_INDEX_H

#include <stddef.h>

#include "sluice/gguf.h"
#include "source/name_table.h"

#define SL_GGUF_MAX_KEY_BYTES     65535u
#define SL_GGUF_MAX_NAME_BYTES    63u /* ggml keeps 64 with the NUL */
#define SL_GGUF_MAX_ALIGNMENT     (1u << 20)
#define SL_GGUF_DEFAULT_ALIGNMENT 32u
#define SL_GGUF_MAX_STRINGS       (1u << 27) /* a second of walking; vocabularies have half a million */
#define SL_GGUF_HEADER_BYTES      24u

struct sl_gguf {
    uint32_t version;
    uint64_t alignment;
    uint64_t data_offset;
    sl_gguf_kv *kvs;
    size_t n_kv;
    size_t cap_kv;
    sl_gguf_tensor *tensors;
    size_t n_tensors;
    size_t cap_tensors;
    sl__name_table kv_names;
    sl__name_table tensor_names;
};

/* The bytes of a GGUF file, and another way to get at them. */
typedef struct sl__gguf_source {
    const char *bytes;
    uint64_t n_bytes;
    const char *name; /* for messages */
    /* Reads n bytes at `offset` as sl_map_pread does; NULL = `bytes` is read alone. */
    int (*read)(void *ud, void *buf, uint64_t offset, size_t n, sl_error *reterr);
    void *ud;
} sl__gguf_source;

/* sl_gguf_open for bytes whose pages cost more to touch than to read. `src` is not kept. */
int sl__gguf_open_source(const sl__gguf_source *src, sl_gguf **ret_gguf, sl_error *reterr);

/* Bytes of one value of a type; 0 for strings and arrays, which have no fixed size. */
unsigned sl__gguf_type_bytes(sl_gguf_type type);

/*
 * Bytes of a tensor of known type whose rows are whole blocks; 0 if a dimension is 0. False if elements or
 * bytes exceed 2^63 - 1: the product runs over the dimensions that are not zero, so that strides of an
 * empty tensor cannot wrap either.
 */
bool sl__tensor_bytes(
        const sl_tensor_type_info *type, const uint64_t ne[SL_GGUF_MAX_DIMS], uint64_t *ret);

#endif
