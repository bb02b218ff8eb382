/*
 * A model: one GGUF file or a split set of them, mapped read-only, every tensor resolved to a file and a
 * range of it. The files are the only backing store of the weights.
 *
 * A split set may be opened through any of its shards (NAME-00002-of-00005.gguf). The siblings are looked
 * for in the folder of the given path and, if that path is a symbolic link, then in the folder of its target.
 * Missing or unreadable shards are all named in one error. Metadata is that of the first shard.
 *
 * Does not promise: that a tensor's bytes are in memory. See map.h for what a changing file does.
 *
 * Threads: an open model is immutable; any thread may read it.
 * Lifetime: spans, records and data pointers are valid until sl_model_close.
 */
#ifndef SLUICE_MODEL_H
#define SLUICE_MODEL_H

#include <stdint.h>

#include "sluice/api.h"
#include "sluice/error.h"
#include "sluice/gguf.h"
#include "sluice/map.h"
#include "sluice/span.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sl_model sl_model;

/* A tensor of the model and where its bytes are. */
typedef struct sl_tensor {
    const sl_gguf_tensor *info; /* name, type, shape; offset and n_bytes within the file */
    uint32_t i_file;            /* which file of the set */
} sl_tensor;

/*
 * Opens a file or a split set and checks it as gguf.h says, and the set for consistency: split.count,
 * split.no, split.tensors.count, general.architecture, no tensor twice.
 * Errors: those of sl_map_open and sl_gguf_open; SL_EFORMAT for an inconsistent set.
 */
SL_API int sl_model_open(const char *path, sl_model **ret_model, sl_error *reterr);

/* Closes everything and sets *model to NULL. Accepts NULL. */
SL_API void sl_model_close(sl_model **model);

SL_API uint32_t sl_model_n_files(const sl_model *model);
SL_API const sl_map *sl_model_map(const sl_model *model, uint32_t i_file);
SL_API const sl_gguf *sl_model_gguf(const sl_model *model, uint32_t i_file);

/* Path of the first shard as opened; for messages. */
SL_API const char *sl_model_path(const sl_model *model);

SL_API uint64_t sl_model_n_tensors(const sl_model *model);
SL_API const sl_tensor *sl_model_tensor_at(
        const sl_model *model, uint64_t i_tensor);                              /* file order */
SL_API const sl_tensor *sl_model_find(const sl_model *model, const char *name); /* NULL if absent */

/* First byte of the tensor in its mapping; NULL for a tensor of no bytes. */
SL_API const void *sl_model_data(const sl_model *model, const sl_tensor *tensor);

/* sl_map_check over every file. */
SL_API int sl_model_check(const sl_model *model, sl_error *reterr);

#ifdef __cplusplus
}
#endif

#endif
