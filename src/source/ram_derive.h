/*
 * What the parts of the RAM budget share: reading the machine's small files, and noting each step.
 *
 * A failed allocation makes the derivation dead: everything later does nothing, and its owner reports it.
 */
#ifndef SL_SOURCE_RAM_DERIVE_H
#define SL_SOURCE_RAM_DERIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "sluice/ram.h"
#include "sluice/span.h"

typedef struct sl__derive {
    const char *root; /* folder that stands for the machine, "" = this one */
    sl_ram_budget *out;
    bool is_dead;
} sl__derive;

/*
 * Reads a small file of the machine. Returns its text (sl__free ret->p by sl__derive_free), or false: a file
 * that is not there goes unsaid, anything else is noted as a warning.
 */
bool sl__derive_read(sl__derive *d, const char *path, sl_span *ret_text);
void sl__derive_free(sl_span text);

/* A number of the derivation, where it is from and what it is. */
void sl__derive_value(sl__derive *d, const char *source, const char *text, uint64_t bytes);

/* A remark without a number; warnings are for people who wonder about the result. */
void sl__derive_note(sl__derive *d, bool is_warning, const char *source, const char *fmt, ...)
        SL_PRINTF(4, 5);

/* Adds a bound whose limit and use are set: works out availability, reserve and budget. Copies `source`. */
void sl__derive_bound(sl__derive *d, const sl_ram_bound *bound, const char *source);

/*
 * Adds the bounds of the control groups. `total_bytes` (0 = unknown): from there on a limit of version 1 is none.
 * Returns the inactive clean file cache that the process's own group has, 0 if it does not say.
 */
uint64_t sl__derive_cgroups(sl__derive *d, uint64_t total_bytes);

#endif
