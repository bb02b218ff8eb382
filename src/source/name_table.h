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
    size_t n_names;
    uint64_t key[2];
} sl__name_table;

void sl__name_table_done(sl__name_table *table);

/*
 * Adds a name with its index and sets *ret_other to SL_NAME_NONE. A name that is there already is not added,
 * and *ret_other is the index that it has. Cost: constant on average; the table grows as it fills.
 * Errors: SL_ENOMEM, SL_ELIMIT (2^31 names), the table then unchanged.
 */
int sl__name_table_add(sl__name_table *table, sl_span name, uint32_t index, uint32_t *ret_other,
        sl_error *reterr) SL_MUST_CHECK;

/* Index of a name, or SL_NAME_NONE. */
uint32_t sl__name_table_find(const sl__name_table *table, sl_span name);

uint64_t sl__name_table_bytes(const sl__name_table *table); /* heap in use */

#endif
