/*
 * Writes a GGUF file, version 3: keys first, then the tensors' descriptions, then their bytes in order. Only
 * keys and descriptions are kept in memory; the bytes of tensors pass through, so a file may be of any size.
 *
 * Order of calls: create; put keys and tensors; begin; data for each tensor in the order of the puts;
 * finish. The first failing put is kept, later puts do nothing, and begin returns its error.
 * Does not promise: that no name is used twice, or that rows of data make sense.
 *
 * Threads: one thread at a time.
 */
#ifndef SL_SOURCE_GGUF_WRITE_H
#define SL_SOURCE_GGUF_WRITE_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "os/os_out_file.h"
#include "sluice/gguf.h"

typedef struct sl__gguf_writer sl__gguf_writer;

/* alignment: a power of two up to 1 MiB; written as a key unless it is the default of 32. */
int sl__gguf_writer_create(
        uint32_t alignment, sl__gguf_writer **ret_writer, sl_error *reterr) SL_MUST_CHECK;

/* Frees the writer and sets *writer to NULL; the file stays as it is. Accepts NULL. */
void sl__gguf_writer_free(sl__gguf_writer **writer);

/* One value. An integer type (or bool) takes what fits it; f32 and f64 take a double. */
void sl__gguf_put_u64(sl__gguf_writer *w, const char *key, sl_gguf_type type, uint64_t v);
void sl__gguf_put_i64(sl__gguf_writer *w, const char *key, sl_gguf_type type, int64_t v);
void sl__gguf_put_f64(sl__gguf_writer *w, const char *key, sl_gguf_type type, double v);
void sl__gguf_put_str(sl__gguf_writer *w, const char *key, sl_span v);

/* elems: n values of the C type that the element type names (bool: one byte each), in host order. */
void sl__gguf_put_array(
        sl__gguf_writer *w, const char *key, sl_gguf_type elem_type, const void *elems, size_t n);
void sl__gguf_put_strs(sl__gguf_writer *w, const char *key, const sl_span *strs, size_t n);

/* ne: n_dims (0..4) sizes, the fastest first. */
void sl__gguf_put_tensor(
        sl__gguf_writer *w, const char *name, uint32_t type, uint32_t n_dims, const uint64_t *ne);

/* Bytes that the whole file will have. */
uint64_t sl__gguf_writer_total_bytes(const sl__gguf_writer *w);

/* Writes all that comes before the data. `file` must stay open until finish. Errors: those of the puts and
 * of sl__out_file_write. */
int sl__gguf_writer_begin(sl__gguf_writer *w, sl__out_file *file, sl_error *reterr) SL_MUST_CHECK;

/* Appends bytes of the current tensor, in pieces of any size; padding and the step to the next tensor are
 * done here. Errors: SL_EINVAL (more than the tensor has), those of sl__out_file_write. */
int sl__gguf_writer_data(
        sl__gguf_writer *w, const void *data, size_t n_bytes, sl_error *reterr) SL_MUST_CHECK;

/* Checks that every byte was given. The caller commits the file. Errors: SL_EINVAL. */
int sl__gguf_writer_finish(sl__gguf_writer *w, sl_error *reterr) SL_MUST_CHECK;

#endif
