/* Reads the elements of any metadata value one after the other, whatever its type. Pure. */
#ifndef CLI_KV_READER_H
#define CLI_KV_READER_H

#include <stdbool.h>
#include <stdint.h>

#include "sluice/gguf.h"

typedef enum kv_kind {
    KV_SIGNED,
    KV_UNSIGNED,
    KV_FLOAT,
    KV_BOOL,
    KV_STRING,
    KV_KIND_COUNT
} kv_kind;

typedef struct kv_elem {
    kv_kind kind;
    int64_t i;
    uint64_t u;
    double f;
    bool b;
    sl_span s;
} kv_elem;

typedef struct kv_reader {
    const sl_gguf_kv *kv;
    uint64_t i_next;
    const char *cursor;
} kv_reader;

kv_reader kv_reader_of(const sl_gguf_kv *kv);

/* The next element; false after the last one, or at one that cannot be read. */
bool kv_next(kv_reader *r, kv_elem *ret);

#endif
