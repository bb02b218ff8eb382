/*
 * The memory files of the kernel: /proc/meminfo, and the values that control groups keep. Pure.
 */
#ifndef SL_SOURCE_MEMINFO_H
#define SL_SOURCE_MEMINFO_H

#include <stdbool.h>
#include <stdint.h>

#include "sluice/span.h"

typedef enum sl__meminfo_field {
    SL_MEM_TOTAL,
    SL_MEM_FREE,
    SL_MEM_AVAILABLE,
    SL_MEM_BUFFERS,
    SL_MEM_CACHED,
    SL_MEM_SHMEM,
    SL_MEM_SRECLAIMABLE,
    SL_MEM_FIELD_COUNT
} sl__meminfo_field;

typedef struct sl__meminfo {
    bool has[SL_MEM_FIELD_COUNT];
    uint64_t bytes[SL_MEM_FIELD_COUNT];
} sl__meminfo;

/* "MemTotal", ... Static string. */
const char *sl__meminfo_name(sl__meminfo_field field);

/*
 * Lines "NAME:   123 kB" in any order. A field whose value is missing, no number, of another unit or too large
 * for 64 bits of bytes is one that the file does not have. The first line of a name counts.
 */
void sl__meminfo_parse(sl_span text, sl__meminfo *ret);

/*
 * MemFree + Buffers + Cached + SReclaimable - Shmem: what MemAvailable says roughly, for kernels without it.
 * False without MemFree.
 */
bool sl__meminfo_estimate(const sl__meminfo *info, uint64_t *ret_bytes);

typedef enum sl__limit_kind {
    SL_LIMIT_VALUE,
    SL_LIMIT_NONE,  /* "max", or a number that stands for it */
    SL_LIMIT_ABSURD /* nothing that the kernel writes */
} sl__limit_kind;

/*
 * The content of a control group's limit file, blanks and line ends around it ignored. 0 is a limit of 0.
 * A number of 2^62 or more is no limit, and -1 in version 1.
 */
sl__limit_kind sl__limit_parse(sl_span text, bool is_v1, uint64_t *ret_bytes);

/*
 * The number in a line "NAME 123"; false if there is none or it does not fit. `n_skip` words stand between
 * (ZFS: "size 4 12884901888" has one).
 */
bool sl__stat_find(sl_span text, const char *name, unsigned n_skip, uint64_t *ret);

/* A decimal number that is the whole span; false if it is none or does not fit. */
bool sl__span_u64(sl_span s, uint64_t *ret);

/* The text without a byte order mark at its start. */
sl_span sl__skip_bom(sl_span text);

#endif
