/*
 * Copies of a sound GGUF file in which keys or tensors are missing, different or new.
 *
 * Open a template, ask for changes, write the copy; writing forgets the changes. Failures fail the test.
 */
#ifndef TEST_BROKEN_MODEL_H
#define TEST_BROKEN_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sluice/gguf.h"

typedef struct broken_model broken_model;

broken_model *broken_model_open(const char *path);
void broken_model_close(broken_model *m);

/* The template's own index. */
const sl_gguf *broken_model_gguf(const broken_model *m);

/* Keys: left out, or with another value. n_bytes of `value` as they stand in a file. */
void broken_drop_key(broken_model *m, const char *key);
void broken_set_key(
        broken_model *m, const char *key, sl_gguf_type type, const void *value, size_t n_bytes);
void broken_set_u32(broken_model *m, const char *key, uint32_t v);
void broken_set_f32(broken_model *m, const char *key, float v);
void broken_set_bool(broken_model *m, const char *key, bool v);
void broken_set_str(broken_model *m, const char *key, const char *v);
void broken_set_i32s(broken_model *m, const char *key, const int32_t *v, size_t n);

/* Tensors: left out, or with another type, shape and data (NULL = zeros; `data` is copied). */
void broken_drop_tensor(broken_model *m, const char *name);
void broken_set_tensor(broken_model *m, const char *name, uint32_t type, uint32_t n_dims,
        const uint64_t *ne, const void *data);

/* Tensors begin at multiples of `alignment`, with their bytes as they are. */
void broken_set_alignment(broken_model *m, uint32_t alignment);

/* Writes the copy. */
void broken_model_write(broken_model *m, const char *path);

#endif
