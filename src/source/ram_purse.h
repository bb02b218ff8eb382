/*
 * A RAM budget that is spent in several steps. What was populated counts as available again when the machine is
 * asked once more, since it is clean cache; it must not make room for the next file, or each would push out the
 * one before.
 *
 * Threads: one at a time.
 */
#ifndef SL_SOURCE_RAM_PURSE_H
#define SL_SOURCE_RAM_PURSE_H

#include "base/status.h"
#include "sluice/ram.h"

/* Zeroed memory is an empty purse. */
typedef struct sl__ram_purse {
    sl_ram_opts opts;
    sl_ram_budget first; /* as sampled at the beginning; for showing */
    uint64_t left_bytes;
    bool is_begun; /* something was taken or asked for */
} sl__ram_purse;

/* Samples the budget; call it before the first mapping. opts->root is not copied. Errors: SL_ENOMEM. */
int sl__ram_purse_fill(
        const sl_ram_opts *opts, sl__ram_purse *ret_purse, sl_error *reterr) SL_MUST_CHECK;
void sl__ram_purse_done(sl__ram_purse *purse);

/* What may be spent now: the rest of the first sample and, from the second call on, no more than there is now. */
uint64_t sl__ram_purse_now(sl__ram_purse *purse);

void sl__ram_purse_take(sl__ram_purse *purse, uint64_t n_bytes);

#endif
