/* What can be asked and ordered from outside: status, prefetch, evict, settle, sleep, trace. */
#include <string.h>

#include "os/os_out_file.h"
#include "residency/residency_impl.h"

uint64_t sl_residency_unit_bytes(const sl_residency *r, size_t i_unit, size_t i_place)
{
    const sl__unit *u = r->units[i_unit];
    for (size_t i = 0; i < u->n_choices; i++) {
        if (u->choices[i].i_place == i_place) {
            return u->choices[i].layout.n_bytes;
        }
    }
    return 0;
}

void sl_residency_unit_status(sl_residency *r, size_t i_unit, sl_unit_status *ret)
{
    sl__mutex_lock(&r->lock);
    const sl__unit *u = r->units[i_unit];
    bool is_absent = u->state == SL_UNIT_ABSENT;
    *ret = (sl_unit_status){.name = u->name,
            .state = u->state,
            .wanted_place = u->wanted_place,
            .actual_place = is_absent ? SL_PLAN_NONE : sl__choice_of(u)->i_place,
            .n_bytes = is_absent ? 0 : sl__choice_of(u)->layout.n_bytes,
            .n_leases = u->n_leases,
            .epoch = u->epoch,
            .n_loads = u->n_loads,
            .n_evicted = u->n_evicted,
            .n_slices = sl__choice_of(u)->layout.n_slices,
            .n_arrived = u->n_arrived,
            .last_error = u->last_error,
            .route = u->load.route,
            .load_ns = u->load.ns,
            .load_bytes = u->load.n_bytes,
            .load_stalls = u->load.n_stalls};
    sl__mutex_unlock(&r->lock);
}

int sl_residency_place_status(
        sl_residency *r, size_t i_place, sl_place_status *ret, sl_error *reterr)
{
    sl_device_info info;
    int result = sl_device_describe(r->devices[i_place], &info, reterr);
    if (result < 0) {
        return result;
    }
    sl__mutex_lock(&r->lock);
    const sl__account *a = &r->ledger.places[i_place];
    uint64_t free_before = r->infos[i_place].free_bytes;
    *ret = (sl_place_status){.name = a->name,
            .budget_bytes = a->budget_bytes,
            .used_total = a->used_total,
            .peak_total = a->peak_total,
            .lost_bytes = r->lost_bytes[i_place],
            .device_bytes = free_before > info.free_bytes ? free_before - info.free_bytes : 0};
    memcpy(ret->used, a->used, sizeof ret->used);
    memcpy(ret->peak, a->peak, sizeof ret->peak);
    sl__mutex_unlock(&r->lock);
    return 0;
}

void sl_residency_reset_peaks(sl_residency *r)
{
    sl__mutex_lock(&r->lock);
    sl__ledger_reset_peaks(&r->ledger);
    sl__mutex_unlock(&r->lock);
}

void sl_residency_prefetch(sl_residency *r, size_t i_unit)
{
    sl__mutex_lock(&r->lock);
    r->units[i_unit]->is_ahead = r->units[i_unit]->state != SL_UNIT_RESIDENT;
    sl__changed(r);
    sl__mutex_unlock(&r->lock);
}

static void order_out(sl_residency *r, sl__unit *u)
{
    u->is_ahead = false;
    u->must_leave = u->state != SL_UNIT_ABSENT;
    sl__let_go(r, u);
}

void sl_residency_evict(sl_residency *r, size_t i_unit)
{
    sl__mutex_lock(&r->lock);
    order_out(r, r->units[i_unit]);
    sl__mutex_unlock(&r->lock);
}

static bool has_work(const sl_residency *r)
{
    for (size_t i = 0; i < r->n_units; i++) {
        const sl__unit *u = r->units[i];
        const sl__choice *at = &u->choices[0];
        bool is_ahead = u->state == SL_UNIT_ABSENT && u->is_ahead && r->sleep_level == 0;
        bool is_moving = u->state == SL_UNIT_LOADING ||
                         (u->state == SL_UNIT_EVICTING && (u->n_leases == 0 || u->is_busy));
        if (is_moving ||
                (is_ahead && at->layout.n_bytes <= sl__ledger_free(&r->ledger, at->i_place))) {
            return true;
        }
    }
    return false;
}

static int settle(sl_residency *r, const sl_wait *wait, sl_error *reterr)
{
    int result = 0;
    while (result >= 0 && has_work(r)) {
        result = sl__wait_change(r, wait, reterr);
    }
    return result;
}

int sl_residency_settle(sl_residency *r, const sl_wait *wait, sl_error *reterr)
{
    sl__enter(r);
    int result = settle(r, wait, reterr);
    sl__leave(r);
    return result;
}

static int check_sleep(const sl_residency *r, unsigned level, sl_error *reterr)
{
    if (level > 2) {
        return sl__fail(reterr, SL_EINVAL, "sleep: level %u, needed is 0, 1 or 2", level);
    }
    if (level > 0 && r->has_phase) {
        return sl__fail(reterr, SL_EBUSY, "sleep: a phase is active; end it first");
    }
    for (size_t i = 0; level == 2 && i < r->n_units; i++) {
        if (!sl__is_free(r->units[i])) {
            return sl__fail(reterr, SL_EBUSY, "sleep: unit %s is in use; release it first",
                    r->units[i]->name);
        }
    }
    return 0;
}

int sl_residency_sleep(sl_residency *r, unsigned level, const sl_wait *wait, sl_error *reterr)
{
    sl__enter(r);
    int result = check_sleep(r, level, reterr);
    if (result >= 0) {
        r->sleep_level = level;
        sl__changed(r);
    }
    if (result >= 0 && level > 0) {
        sl__pool_release(r);
    }
    for (size_t i = 0; result >= 0 && level == 2 && i < r->n_units; i++) {
        order_out(r, r->units[i]);
    }
    if (result >= 0 && level == 2) {
        result = settle(r, wait, reterr);
    }
    sl__leave(r);
    return result;
}

unsigned sl_residency_sleep_level(sl_residency *r)
{
    sl__mutex_lock(&r->lock);
    unsigned level = r->sleep_level;
    sl__mutex_unlock(&r->lock);
    return level;
}

int sl_residency_write_trace(sl_residency *r, const char *path, sl_error *reterr)
{
    sl__json j = {0};
    sl__out_file *file = NULL;
    sl__mutex_lock(&r->lock);
    sl__trace_json(&r->trace, &r->ledger, r->policy, &j);
    sl__mutex_unlock(&r->lock);
    size_t n = 0;
    const char *text = sl__json_text(&j, &n);
    int result = text ? sl__out_file_open(path, 0644, &file, reterr)
                      : sl__fail_nomem(reterr, 0, "the trace");
    if (result >= 0) {
        result = sl__out_file_write(file, text, n, reterr);
    }
    if (result >= 0) {
        result = sl__out_file_commit(&file, reterr);
    }
    sl__out_file_discard(&file);
    sl__json_done(&j);
    return result;
}
