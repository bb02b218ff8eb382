/*
 * Names of the files of a split set: NAME-00002-of-00005.gguf. Pure functions over paths.
 */
#ifndef SL_SOURCE_SHARD_NAME_H
#define SL_SOURCE_SHARD_NAME_H

#include <stdbool.h>
#include <stdint.h>

typedef struct sl__shard_name {
    uint32_t no;    /* 1..count */
    uint32_t count; /* 1..99999 */
} sl__shard_name;

/* True if the path ends in a shard's name with a number from 1 to its count. */
bool sl__shard_name_parse(const char *path, sl__shard_name *ret);

/* The path of shard `no` (1..count) beside `path`, which is a shard's; sl__free it. NULL = out of memory. */
char *sl__shard_path(const char *path, uint32_t no);

#endif
