/*
 * A cursor over the bytes of a GGUF file. Every length is compared with the bytes that are left before it is
 * used, by subtraction or division so that nothing wraps.
 *
 * Threads: one thread at a time.
 */
#ifndef SL_SOURCE_GGUF_READER_H
#define SL_SOURCE_GGUF_READER_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "sluice/span.h"
#include "source/gguf_index.h"

typedef struct sl__gguf_reader {
    sl__gguf_source src;
    uint64_t at;
    uint64_t n_strings; /* of arrays so far */
    sl_error *reterr;
} sl__gguf_reader;

static inline uint64_t sl__gguf_left(const sl__gguf_reader *r)
{
    return r->src.n_bytes - r->at;
}

/* "NAME: WHAT IS WRONG" with the offset at fault; returns `code`. */
int sl__gguf_bad(const sl__gguf_reader *r, int code, uint64_t offset, const char *fmt, ...)
        SL_PRINTF(4, 5);

/* "NAME: KIND 'ITEM' WHAT IS WRONG": the same about a key or a tensor. */
int sl__gguf_bad_item(const sl__gguf_reader *r, int code, uint64_t offset, const char *kind,
        sl_span item, const char *fmt, ...) SL_PRINTF(6, 7);

/* Each reads a number or fails with "the file ends inside WHAT". */
int sl__gguf_read_u32(sl__gguf_reader *r, const char *what, uint32_t *ret);
int sl__gguf_read_u64(sl__gguf_reader *r, const char *what, uint64_t *ret);

/* A key or tensor name: length-counted, at most max_bytes, without NUL. */
int sl__gguf_read_name(sl__gguf_reader *r, const char *what, uint64_t max_bytes, sl_span *ret);

/* Steps over n strings. */
int sl__gguf_skip_strings(sl__gguf_reader *r, uint64_t n);

#endif
