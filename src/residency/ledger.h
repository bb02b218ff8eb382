/*
 * The account of every byte of every place (device or RAM), by kind, with its peaks.
 *
 * A byte is booked before it is allocated and returned after it was freed, so that what a place holds is
 * never more than its account, and the account never more than the budget.
 *
 * Does not promise: that somebody else does not use the same device. sl__ledger_compare finds that out.
 *
 * Threads: one at a time; the owner locks.
 */
#ifndef SL_RESIDENCY_LEDGER_H
#define SL_RESIDENCY_LEDGER_H

#include "base/status.h"
#include "sluice/plan.h"

typedef struct sl__account {
    const char *name; /* of the caller, outlives the ledger */
    uint64_t budget_bytes;
    uint64_t used[SL_MEM_KIND_COUNT];
    uint64_t peak[SL_MEM_KIND_COUNT]; /* each at its own time */
    uint64_t used_total;
    uint64_t peak_total;
} sl__account;

typedef struct sl__ledger {
    sl__account *places;
    size_t n_places;
} sl__ledger;

/* Room for n_places accounts with a budget of 0. Errors: SL_ENOMEM. */
int sl__ledger_init(sl__ledger *ledger, size_t n_places, sl_error *reterr) SL_MUST_CHECK;

/* Frees the accounts. Accepts zeroed memory. */
void sl__ledger_done(sl__ledger *ledger);

/* Names a place and sets its budget. Errors: SL_EBUDGET if more than that is booked; nothing changes. */
int sl__ledger_set_budget(sl__ledger *ledger, size_t i_place, const char *name, uint64_t bytes,
        sl_error *reterr) SL_MUST_CHECK;

/* Bytes that can still be booked. */
uint64_t sl__ledger_free(const sl__ledger *ledger, size_t i_place);

/* Errors: SL_EBUDGET with the place, what is asked, what is booked and the budget; nothing changes. */
int sl__ledger_book(sl__ledger *ledger, size_t i_place, sl_mem_kind kind, uint64_t bytes,
        sl_error *reterr) SL_MUST_CHECK;

/* Returns booked bytes. Errors: SL_EINTERNAL if less is booked; nothing changes. */
int sl__ledger_return(sl__ledger *ledger, size_t i_place, sl_mem_kind kind, uint64_t bytes,
        sl_error *reterr) SL_MUST_CHECK;

/* Starts new peaks at what is booked now. */
void sl__ledger_reset_peaks(sl__ledger *ledger);

/* Errors: SL_EINTERNAL with both figures if a device says that it holds something else. */
int sl__ledger_compare(const sl__ledger *ledger, size_t i_place, uint64_t device_bytes,
        sl_error *reterr) SL_MUST_CHECK;

#endif
