/*
 * Builds GGUF files byte by byte, wrong ones too, and opens them from memory of exactly their size, so that
 * a sanitizer sees every read outside.
 */
#ifndef TEST_GGUF_BYTES_H
#define TEST_GGUF_BYTES_H

#include <stddef.h>
#include <stdint.h>

#include "sluice/gguf.h"

#include "test_support.h"

typedef struct gguf_bytes {
    unsigned char *p;
    size_t n;
} gguf_bytes;

/* Starts a file: magic, version and counts. */
gguf_bytes gb_start(uint32_t version, uint64_t n_tensors, uint64_t n_kv);
void gb_done(gguf_bytes *g);

void gb_raw(gguf_bytes *g, const void *p, size_t n);
void gb_u8(gguf_bytes *g, unsigned v);
void gb_u16(gguf_bytes *g, unsigned v);
void gb_u32(gguf_bytes *g, uint32_t v);
void gb_u64(gguf_bytes *g, uint64_t v);
void gb_fill(gguf_bytes *g, int byte, size_t n);
void gb_str(gguf_bytes *g, const char *s); /* length and bytes */

/* Key and value type; the value is for the caller to add. */
void gb_key(gguf_bytes *g, const char *key, uint32_t type);
void gb_key_u32(gguf_bytes *g, const char *key, uint32_t v);
void gb_key_str(gguf_bytes *g, const char *key, const char *v);
/* Key of an array: element type and count; the elements are for the caller to add. */
void gb_key_array(gguf_bytes *g, const char *key, uint32_t elem_type, uint64_t n);

void gb_tensor(gguf_bytes *g, const char *name, uint32_t n_dims, const uint64_t *ne, uint32_t type,
        uint64_t offset);

/* Pads with zeros to a multiple of `align`. */
void gb_pad(gguf_bytes *g, size_t align);

/* sl_gguf_open over the bytes; the result must be closed before gb_done. */
int gb_open(gguf_bytes *g, sl_gguf **ret, sl_error *err);

/* Opens, expects success, walks over everything and closes. Frees the bytes. */
void gb_expect_accepted(gguf_bytes *g);

/* Expects a refusal whose message holds `needle`, with the name and one line. Frees the bytes. */
void gb_expect_refused(gguf_bytes *g, const char *needle);

/* A message for people: names the file, one line, no control bytes. */
void expect_good_message(const sl_error *err, const char *name, const char *needle);

#endif
