/*
 * Totals are kept beside the kinds, not summed when asked: a booking is refused or accepted by one
 * comparison, and what is booked can then never wrap.
 */
#include "residency/ledger.h"

#include <inttypes.h>
#include <string.h>

#include "base/mem.h"

int sl__ledger_init(sl__ledger *ledger, size_t n_places, sl_error *reterr)
{
    memset(ledger, 0, sizeof *ledger);
    ledger->places = sl__alloc(n_places, sizeof *ledger->places);
    if (!ledger->places) {
        return sl__fail_nomem(reterr, n_places * sizeof *ledger->places, "the ledger");
    }
    ledger->n_places = n_places;
    for (size_t i = 0; i < n_places; i++) {
        ledger->places[i].name = "";
    }
    return 0;
}

void sl__ledger_done(sl__ledger *ledger)
{
    sl__free(ledger->places);
    memset(ledger, 0, sizeof *ledger);
}

int sl__ledger_set_budget(
        sl__ledger *ledger, size_t i_place, const char *name, uint64_t bytes, sl_error *reterr)
{
    sl__account *a = &ledger->places[i_place];
    if (a->used_total > bytes) {
        return sl__fail(reterr, SL_EBUDGET,
                "%s: a budget of %" PRIu64 " bytes is less than the %" PRIu64
                " bytes in use; release them first",
                name, bytes, a->used_total);
    }
    a->name = name;
    a->budget_bytes = bytes;
    return 0;
}

uint64_t sl__ledger_free(const sl__ledger *ledger, size_t i_place)
{
    return ledger->places[i_place].budget_bytes - ledger->places[i_place].used_total;
}

int sl__ledger_book(
        sl__ledger *ledger, size_t i_place, sl_mem_kind kind, uint64_t bytes, sl_error *reterr)
{
    sl__account *a = &ledger->places[i_place];
    if (bytes > a->budget_bytes - a->used_total) {
        return sl__fail(reterr, SL_EBUDGET,
                "%s: %" PRIu64 " bytes for %s do not fit: %" PRIu64 " of the budget of %" PRIu64
                " bytes are in use",
                a->name, bytes, sl_mem_kind_name(kind), a->used_total, a->budget_bytes);
    }
    a->used[kind] += bytes;
    a->used_total += bytes;
    a->peak[kind] = a->used[kind] > a->peak[kind] ? a->used[kind] : a->peak[kind];
    a->peak_total = a->used_total > a->peak_total ? a->used_total : a->peak_total;
    return 0;
}

int sl__ledger_return(
        sl__ledger *ledger, size_t i_place, sl_mem_kind kind, uint64_t bytes, sl_error *reterr)
{
    sl__account *a = &ledger->places[i_place];
    if (bytes > a->used[kind]) {
        return sl__fail(reterr, SL_EINTERNAL,
                "%s: %" PRIu64 " bytes of %s were returned, but only %" PRIu64 " are booked",
                a->name, bytes, sl_mem_kind_name(kind), a->used[kind]);
    }
    a->used[kind] -= bytes;
    a->used_total -= bytes;
    return 0;
}

void sl__ledger_reset_peaks(sl__ledger *ledger)
{
    for (size_t i = 0; i < ledger->n_places; i++) {
        sl__account *a = &ledger->places[i];
        memcpy(a->peak, a->used, sizeof a->peak);
        a->peak_total = a->used_total;
    }
}

int sl__ledger_compare(
        const sl__ledger *ledger, size_t i_place, uint64_t device_bytes, sl_error *reterr)
{
    const sl__account *a = &ledger->places[i_place];
    if (device_bytes == a->used_total) {
        return 0;
    }
    return sl__fail(reterr, SL_EINTERNAL,
            "%s: the device says that it holds %" PRIu64 " bytes, the ledger %" PRIu64, a->name,
            device_bytes, a->used_total);
}
