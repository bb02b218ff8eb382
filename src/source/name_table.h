/*
 * A hash from names to indexes of an array that the caller keeps. Names are not copied.
 *
 * Names come from untrusted files, so the hash is keyed by something that a file cannot know: no choice of
 * names makes lookups slow. The key never shows in a result.
 *
 * Threads: a finished table may be read from any thread.
 * Lifetime: the bytes of the names must outlive the table. Zeroed memory is a valid empty table.
 */
#ifndef SL_SOURCE_NAME_TABLE_H
#define SL_SOURCE_NAME_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "sluice/span.h"

#define SL_NAME_NONE UINT32_MAX

typedef struct sl__name_slot {
    sl_span name;
    uint32_t index; /* SL_NAME_NONE = free */
    uint32_t tag;   /* high half of the hash: most strangers are told apart without their bytes */
} sl__name_slot;

typedef struct sl__name_table {
    sl__name_slot *slots;
    size_t n_slots; /* a power of two, or 0 */
    uint64_t key[2];
} sl__name_table;

/* Room for n names. Errors: SL_ENOMEM, SL_ELIMIT (2^31 names or more); nothing is left allocated. */
int sl__name_table_init(sl__name_table *table, size_t n, sl_error *reterr) SL_MUST_CHECK;

void sl__name_table_done(sl__name_table *table);

/*
 * Adds a name with its index and returns SL_NAME_NONE; a name that is there already is not added, and the
 * index that it has is returned. The caller adds at most as many as it made room for.
 */
uint32_t sl__name_table_add(sl__name_table *table, sl_span name, uint32_t index);

/* Index of a name, or SL_NAME_NONE. */
uint32_t sl__name_table_find(const sl__name_table *table, sl_span name);

uint64_t sl__name_table_bytes(const sl__name_table *table); /* heap in use */

#endif
