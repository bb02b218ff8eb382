/*
 * A request first pins its units, so that nobody sends them away, then books and starts what is absent, then
 * waits. Memory for all units of a request is booked in one turn: two requests cannot each get half of what
 * they need and then block each other. Whoever cannot get memory without a lease being released fails.
 */

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "os/os_clock.h"
#include "residency/residency_impl.h"

/* What was tried for a unit. */
typedef enum attempt {
    FIRST_TRY,
    AFTER_EVICTING,
    SECOND_PLACE
} attempt;

typedef struct leased_unit {
    size_t i_unit;
    uint64_t seen_failed; /* failures of the unit that this request knows of */
    attempt attempt;
    size_t i_choice; /* to try next */
} leased_unit;

struct sl_lease {
    sl_residency *r;
    bool is_streaming;
    bool is_given;
    uint64_t begin_ns;
    size_t n;
    leased_unit units[];
};

static sl__unit *unit_of(const sl_lease *lease, size_t i)
{
    return lease->r->units[lease->units[i].i_unit];
}

int sl__lease_pin(sl_residency *r, const size_t *units, size_t n, bool is_streaming,
        sl_lease **ret_lease, sl_error *reterr)
{
    if (r->is_closing) {
        return sl__fail(reterr, SL_ECANCELLED, "residency: shutting down");
    }
    for (size_t i = 0; i < n; i++) {
        if (units[i] >= r->n_units) {
            return sl__fail(reterr, SL_EINVAL, "residency: unit %zu, needed is less than %zu",
                    units[i], r->n_units);
        }
    }
    sl_lease *lease = sl__alloc(1, sizeof *lease + n * sizeof lease->units[0]);
    if (!lease) {
        return sl__fail_nomem(reterr, sizeof *lease, "a lease");
    }
    lease->r = r;
    lease->is_streaming = is_streaming;
    lease->n = n;
    for (size_t i = 0; i < n; i++) {
        sl__unit *u = r->units[units[i]];
        lease->units[i] = (leased_unit){units[i], u->n_failed, FIRST_TRY, 0};
        u->n_wants++;
        u->must_leave = false;
    }
    r->sleep_level = 0;
    *ret_lease = lease;
    return 0;
}

static void record(sl_lease *lease, sl__trace_kind kind, uint64_t begin_ns)
{
    sl__trace_add(&lease->r->trace, (sl__trace_event){.kind = kind,
                                            .name = lease->n > 0 ? unit_of(lease, 0)->name : "none",
                                            .begin_ns = begin_ns,
                                            .end_ns = sl__now_ns()});
}

static void free_turn(sl_lease *lease)
{
    if (lease->r->turn == lease) {
        lease->r->turn = NULL;
        sl__changed(lease->r);
    }
}

void sl__lease_drop(sl_lease *lease)
{
    sl_residency *r = lease->r;
    free_turn(lease);
    for (size_t i = 0; i < lease->n; i++) {
        sl__unit *u = unit_of(lease, i);
        if (lease->is_given) {
            u->n_leases--;
        } else {
            u->n_wants--;
        }
        u->last_use = ++r->seq;
        sl__let_go(r, u);
    }
    if (lease->is_given) {
        record(lease, SL__TRACE_LEASE, lease->begin_ns);
    }
    sl__changed(r);
    sl__free(lease);
}

static bool try_second(sl_lease *lease, size_t i, const sl_error *why, char note[256])
{
    leased_unit *e = &lease->units[i];
    sl__unit *u = unit_of(lease, i);
    if (e->attempt == SECOND_PLACE || u->n_choices < 2) {
        return false;
    }
    e->attempt = SECOND_PLACE;
    e->i_choice = 1;
    snprintf(note, 256, "residency: unit %.60s goes to %.60s instead: %.90s", u->name,
            sl_device_name(lease->r->devices[u->choices[1].i_place]), why->msg);
    return true;
}

/* A load failed since the last look: once more after evicting, then on the second place, then no more. */
static int after_failure(sl_lease *lease, size_t i, char note[256], sl_error *reterr)
{
    leased_unit *e = &lease->units[i];
    sl__unit *u = unit_of(lease, i);
    e->seen_failed = u->n_failed;
    if (u->last_error.code == 0) {
        return 0; /* somebody else loaded it since */
    }
    if (u->last_error.code == SL_ENOMEM && e->attempt == FIRST_TRY) {
        e->attempt = AFTER_EVICTING;
        if (sl__make_room(lease->r, u->choices[e->i_choice].i_place, UINT64_MAX)) {
            return 0;
        }
    }
    if (try_second(lease, i, &u->last_error, note)) {
        return 0;
    }
    if (reterr) {
        *reterr = u->last_error;
    }
    return u->last_error.code;
}

/* Books and starts one load. SL_EBUSY: not now, something is on its way. */
static int start(sl_lease *lease, size_t i, char note[256], sl_error *reterr)
{
    sl_residency *r = lease->r;
    sl__unit *u = unit_of(lease, i);
    leased_unit *e = &lease->units[i];
    sl_error err = {0};
    for (;;) {
        const sl__choice *at = &u->choices[e->i_choice];
        uint64_t n_bytes = at->layout.n_bytes;
        bool waits = e->attempt == AFTER_EVICTING && sl__is_coming_free(r, at->i_place);
        int booked =
                waits ? SL_EBUSY
                      : sl__ledger_book(&r->ledger, at->i_place, SL_MEM_WEIGHTS, n_bytes, &err);
        if (booked >= 0) {
            u->i_choice = e->i_choice;
            sl__begin_load(r, u);
            return 0;
        }
        if (waits || sl__make_room(r, at->i_place, n_bytes)) {
            return SL_EBUSY;
        }
        if (!try_second(lease, i, &err, note)) {
            return sl__fail(reterr, booked, "unit %s: %s", u->name, err.msg);
        }
    }
}

/* 1 = the unit is as the request wants it, 0 = it must wait. */
static int advance_unit(sl_lease *lease, size_t i, char note[256], sl_error *reterr)
{
    sl_residency *r = lease->r;
    sl__unit *u = unit_of(lease, i);
    if (u->state == SL_UNIT_RESIDENT) {
        return 1;
    }
    if (u->state == SL_UNIT_LOADING) {
        return lease->is_streaming && !u->is_abandoned;
    }
    if (u->state == SL_UNIT_EVICTING && u->n_leases > 0) {
        return sl__fail(reterr, SL_EBUSY,
                "unit %s: its load failed and a lease still holds what arrived: %s", u->name,
                u->last_error.msg);
    }
    if (u->state == SL_UNIT_EVICTING || (r->turn && r->turn != lease)) {
        return 0;
    }
    r->turn = lease;
    int result = 0;
    if (u->n_failed != lease->units[i].seen_failed) {
        result = after_failure(lease, i, note, reterr);
    }
    if (result >= 0) {
        result = start(lease, i, note, reterr);
    }
    if (result == SL_EBUSY) {
        return 0;
    }
    return result < 0 ? result : lease->is_streaming;
}

/* Looks at all units; 1 = all are ready. The turn is kept until everything has begun. */
static int advance(sl_lease *lease, char note[256], sl_error *reterr)
{
    bool is_ready = true;
    bool has_begun = true;
    for (size_t i = 0; i < lease->n; i++) {
        int result = advance_unit(lease, i, note, reterr);
        if (result < 0) {
            return result;
        }
        is_ready = is_ready && result == 1;
        sl_unit_state state = unit_of(lease, i)->state;
        has_begun = has_begun && (state == SL_UNIT_LOADING || state == SL_UNIT_RESIDENT);
    }
    if (has_begun) {
        free_turn(lease);
    }
    return is_ready;
}

int sl__lease_load(sl_lease *lease, const sl_wait *wait, char note[256], sl_error *reterr)
{
    sl_residency *r = lease->r;
    uint64_t begin_ns = sl__now_ns();
    bool has_waited = false;
    note[0] = '\0';
    int result = advance(lease, note, reterr);
    while (result == 0) {
        has_waited = true;
        result = sl__wait_change(r, wait, reterr);
        result = result < 0 ? result : advance(lease, note, reterr);
    }
    if (has_waited) {
        record(lease, SL__TRACE_STALL, begin_ns);
    }
    if (result < 0) {
        return result;
    }
    lease->is_given = true;
    lease->begin_ns = sl__now_ns();
    for (size_t i = 0; i < lease->n; i++) {
        unit_of(lease, i)->n_wants--;
        unit_of(lease, i)->n_leases++;
    }
    return 0;
}

int sl_lease_acquire(sl_residency *r, const size_t *units, size_t n, bool is_streaming,
        const sl_wait *wait, sl_lease **ret_lease, sl_error *reterr)
{
    sl_lease *lease = NULL;
    char note[256] = "";
    sl__enter(r);
    int result = sl__lease_pin(r, units, n, is_streaming, &lease, reterr);
    if (result >= 0 && lease) {
        result = sl__lease_load(lease, wait, note, reterr);
        if (result < 0) {
            sl__lease_drop(lease);
        }
    }
    sl__leave(r);
    if (note[0]) {
        sl__log(&r->log, SL_LOG_WARN, "%s", note);
    }
    if (result >= 0) {
        *ret_lease = lease;
    }
    return result;
}

void sl_lease_release(sl_lease **lease)
{
    if (lease && *lease) {
        sl_residency *r = (*lease)->r;
        sl__enter(r);
        sl__lease_drop(*lease);
        sl__leave(r);
        *lease = NULL;
    }
}

/* The leased unit, and where the tensor is in it (NULL without one, or without bytes); NULL on error. */
static sl__unit *find(const sl_lease *lease, size_t i_unit, const sl_tensor *tensor,
        const sl__placed_tensor **ret_placed, sl_error *reterr)
{
    sl__unit *u = NULL;
    for (size_t i = 0; i < lease->n && !u; i++) {
        u = lease->units[i].i_unit == i_unit ? unit_of(lease, i) : NULL;
    }
    if (!u) {
        sl__fail(reterr, SL_EINVAL, "residency: unit %zu is not in the lease", i_unit);
        return NULL;
    }
    *ret_placed = tensor ? sl__unit_find(&sl__choice_of(u)->layout, tensor) : NULL;
    if (tensor && tensor->info->n_bytes > 0 && !*ret_placed) {
        char name[128];
        sl__quote(name, sizeof name, tensor->info->name.p, tensor->info->name.n);
        sl__fail(reterr, SL_EINVAL, "unit %s: has no tensor %s", u->name, name);
        return NULL;
    }
    return u;
}

/* 1 = there, 0 = not yet, or the error of the load. The lease keeps the unit from any other state. */
static int has_arrived(const sl__unit *u, const sl_tensor *tensor, const sl__placed_tensor *placed,
        sl_error *reterr)
{
    if (u->state == SL_UNIT_EVICTING) {
        if (reterr) {
            *reterr = u->last_error;
        }
        return u->last_error.code;
    }
    bool is_partial = placed && !sl__choice_of(u)->is_in_place && u->n_arrived > placed->i_arrival;
    bool is_empty = tensor && !placed;
    return u->state == SL_UNIT_RESIDENT || is_partial || is_empty;
}

int sl_lease_wait(sl_lease *lease, size_t i_unit, const sl_tensor *tensor, const sl_wait *wait,
        sl_error *reterr)
{
    sl_residency *r = lease->r;
    const sl__placed_tensor *placed = NULL;
    sl__enter(r);
    const sl__unit *u = find(lease, i_unit, tensor, &placed, reterr);
    int result = u ? 0 : SL_EINVAL;
    while (u && result == 0) {
        result = has_arrived(u, tensor, placed, reterr);
        if (result == 0) {
            result = sl__wait_change(r, wait, reterr);
        }
    }
    sl__leave(r);
    return result < 0 ? result : 0;
}

int sl_lease_tensor(sl_lease *lease, size_t i_unit, const sl_tensor *tensor, sl_tensor_at *ret_at,
        sl_error *reterr)
{
    sl_residency *r = lease->r;
    const sl__placed_tensor *placed = NULL;
    sl__enter(r);
    const sl__unit *u = find(lease, i_unit, tensor, &placed, reterr);
    int result = u ? has_arrived(u, tensor, placed, reterr) : SL_EINVAL;
    if (u && result == 0) {
        result = sl__fail(reterr, SL_EBUSY, "unit %s: the tensor has not arrived yet", u->name);
    }
    if (u && result > 0) {
        *ret_at = (sl_tensor_at){.buffer = placed ? u->buffers[placed->i_buffer] : NULL,
                .offset = placed ? placed->offset : 0,
                .i_place = sl__choice_of(u)->i_place,
                .epoch = u->epoch + (u->state == SL_UNIT_LOADING)};
    }
    sl__leave(r);
    return result < 0 ? result : 0;
}
