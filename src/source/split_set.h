/*
 * The files of a model: one, or the shards of a split set, found, opened and checked against each other.
 *
 * Threads: one thread at a time. Zeroed memory is a valid empty set.
 */
#ifndef SL_SOURCE_SPLIT_SET_H
#define SL_SOURCE_SPLIT_SET_H

#include <stdint.h>

#include "base/status.h"
#include "sluice/gguf.h"
#include "sluice/map.h"

typedef struct sl__model_file {
    sl_map *map;
    sl_gguf *gguf;
} sl__model_file;

typedef struct sl__split_set {
    sl__model_file *files;
    uint32_t n_files;
} sl__split_set;

/* Opens a file and, if it is a shard, all others; errors as sl_model_open, with nothing left open. */
int sl__split_set_open(const char *path, sl__split_set *ret, sl_error *reterr) SL_MUST_CHECK;

/* Closes all files. */
void sl__split_set_done(sl__split_set *set);

#endif
