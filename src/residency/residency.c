/*
 * The object, its waits, and who has to leave when memory is short: units without a role in the active phase
 * first, then those that may stay, then those fetched ahead; within that, the one that was used longest ago.
 */
#include "sluice/residency.h"

#include <string.h>

#include "base/mem.h"
#include "os/os_clock.h"
#include "residency/residency_impl.h"

#define LEAST_RING     16 /* bytes: a transfer has as many slots */
#define N_TRACE        4096
#define CANCEL_POLL_NS UINT64_C(10000000)

const char *sl_unit_state_name(sl_unit_state state)
{
    static const char *const names[SL_UNIT_STATE_COUNT] = {
            [SL_UNIT_ABSENT] = "absent",
            [SL_UNIT_LOADING] = "loading",
            [SL_UNIT_RESIDENT] = "resident",
            [SL_UNIT_EVICTING] = "evicting",
    };
    return (unsigned)state < SL_UNIT_STATE_COUNT ? names[state] : "unknown";
}

void sl__changed(sl_residency *r)
{
    r->n_changes++;
    sl__trace_memory(&r->trace, &r->ledger, sl__now_ns());
    sl__cond_broadcast(&r->changed);
}

void sl__enter(sl_residency *r)
{
    sl__mutex_lock(&r->lock);
    r->n_calls++;
}

void sl__leave(sl_residency *r)
{
    r->n_calls--;
    if (r->is_closing) {
        sl__cond_broadcast(&r->changed);
    }
    sl__mutex_unlock(&r->lock);
}

/* Asks the caller, without the lock. What changed meanwhile shows in n_changes. */
static bool is_cancelled(sl_residency *r, const sl_wait *wait)
{
    if (!wait || !wait->is_cancelled) {
        return false;
    }
    sl__mutex_unlock(&r->lock);
    bool is = wait->is_cancelled(wait->ud);
    sl__mutex_lock(&r->lock);
    return is;
}

int sl__wait_change(sl_residency *r, const sl_wait *wait, sl_error *reterr)
{
    uint64_t seen = r->n_changes;
    if (is_cancelled(r, wait)) {
        return sl__fail(reterr, SL_ECANCELLED, "residency: cancelled while waiting");
    }
    if (r->is_closing) {
        return sl__fail(reterr, SL_ECANCELLED, "residency: shutting down");
    }
    if (r->n_changes != seen) {
        return 0;
    }
    if (r->is_stepped) {
        return sl__mover_step_any(r) ? 0
                                     : sl__fail(reterr, SL_EINTERNAL,
                                               "residency: nothing is under way to wait for");
    }
    if (wait && wait->is_cancelled) {
        (void)sl__cond_wait_until(&r->changed, &r->lock, sl__now_ns() + CANCEL_POLL_NS);
    } else {
        sl__cond_wait(&r->changed, &r->lock);
    }
    return 0;
}

const sl__choice *sl__choice_of(const sl__unit *u)
{
    return &u->choices[u->i_choice];
}

bool sl__is_free(const sl__unit *u)
{
    return u->n_leases == 0 && u->n_wants == 0;
}

void sl__begin_load(sl_residency *r, sl__unit *u)
{
    u->state = SL_UNIT_LOADING;
    u->n_loads++;
    u->n_arrived = 0;
    u->job_seq = ++r->seq;
    sl__changed(r);
}

void sl__send_away(sl_residency *r, sl__unit *u)
{
    u->is_ahead = false;
    if (u->state == SL_UNIT_LOADING && u->is_busy) {
        u->is_abandoned = true;
    } else {
        u->state = SL_UNIT_EVICTING;
    }
    sl__changed(r);
}

void sl__let_go(sl_residency *r, sl__unit *u)
{
    bool is_there = u->state == SL_UNIT_RESIDENT || u->state == SL_UNIT_LOADING;
    bool is_of_use = u->state == SL_UNIT_RESIDENT || u->is_ahead;
    if (is_there && sl__is_free(u) && (u->must_leave || !is_of_use)) {
        sl__send_away(r, u);
    }
}

static bool is_leaving(const sl__unit *u)
{
    return (u->state == SL_UNIT_EVICTING && u->n_leases == 0) ||
           (u->state == SL_UNIT_LOADING && u->is_abandoned);
}

bool sl__is_coming_free(const sl_residency *r, size_t i_place)
{
    for (size_t i = 0; i < r->n_units; i++) {
        if (is_leaving(r->units[i]) && sl__choice_of(r->units[i])->i_place == i_place) {
            return true;
        }
    }
    return false;
}

static bool can_leave(const sl__unit *u, size_t i_place)
{
    const sl__choice *at = sl__choice_of(u);
    bool is_there = u->state == SL_UNIT_RESIDENT || u->state == SL_UNIT_LOADING;
    return is_there && !is_leaving(u) && sl__is_free(u) && at->i_place == i_place &&
           at->layout.n_bytes > 0;
}

/* True if `u` has to leave before `than`. */
static bool leaves_before(const sl__unit *u, const sl__unit *than)
{
    static const unsigned rank[SL_PLAN_ROLE_COUNT] = {
            [SL_PLAN_ABSENT] = 0, [SL_PLAN_STAYS] = 1, [SL_PLAN_AHEAD] = 2, [SL_PLAN_NEEDED] = 3};
    if (!than || rank[u->role] != rank[than->role]) {
        return !than || rank[u->role] < rank[than->role];
    }
    return u->last_use < than->last_use;
}

static sl__unit *next_to_leave(const sl_residency *r, size_t i_place)
{
    sl__unit *first = NULL;
    for (size_t i = 0; i < r->n_units; i++) {
        if (can_leave(r->units[i], i_place) && leaves_before(r->units[i], first)) {
            first = r->units[i];
        }
    }
    return first;
}

bool sl__make_room(sl_residency *r, size_t i_place, uint64_t n_bytes)
{
    uint64_t coming = sl__ledger_free(&r->ledger, i_place);
    uint64_t possible = 0;
    bool is_any = sl__is_coming_free(r, i_place);
    for (size_t i = 0; i < r->n_units; i++) {
        const sl__choice *at = sl__choice_of(r->units[i]);
        if (is_leaving(r->units[i]) && at->i_place == i_place) {
            coming += at->layout.n_bytes;
        } else if (can_leave(r->units[i], i_place)) {
            possible += at->layout.n_bytes;
        }
    }
    bool is_all = n_bytes == UINT64_MAX;
    if (!is_all && coming + possible < n_bytes) {
        return false;
    }
    while (is_all || coming < n_bytes) {
        sl__unit *u = next_to_leave(r, i_place);
        if (!u) {
            break;
        }
        coming += sl__choice_of(u)->layout.n_bytes;
        is_any = true;
        sl__send_away(r, u);
    }
    return is_any;
}

static int open_places(sl_residency *r, const sl_residency_opts *opts, sl_error *reterr)
{
    size_t n = opts->n_places;
    r->devices = sl__alloc(n, sizeof(sl_device *));
    r->infos = sl__alloc(n, sizeof *r->infos);
    r->lost_bytes = sl__alloc(n, sizeof *r->lost_bytes);
    r->movers = sl__alloc(n, sizeof *r->movers);
    r->pool = sl__alloc(n * SL_MEM_KIND_COUNT, sizeof *r->pool);
    r->drawn = sl__alloc(n * SL_MEM_KIND_COUNT, sizeof *r->drawn);
    bool has_all = r->devices && r->infos && r->lost_bytes && r->movers && r->pool && r->drawn;
    if (!has_all) {
        return sl__fail_nomem(reterr, n * sizeof *r->movers, "the residency");
    }
    for (size_t i = 0; i < n; i++) {
        r->devices[i] = opts->places[i].device;
        r->movers[i].residency = r;
        r->movers[i].i_place = i;
        r->movers[i].loader.device = opts->places[i].device;
        r->movers[i].loader.opts.ring_bytes = opts->ring_bytes;
        if (opts->is_stepped) {
            /* One thread, and no measuring: the same calls each time. */
            r->movers[i].loader.opts.is_threadless = true;
            r->movers[i].loader.opts.route = SL__ROUTE_PREAD;
        }
    }
    r->n_places = n;
    int result = sl__ledger_init(&r->ledger, n, reterr);
    for (size_t i = 0; result >= 0 && i < n; i++) {
        const sl_residency_place *place = &opts->places[i];
        result = sl_device_describe(place->device, &r->infos[i], reterr);
        if (result >= 0) {
            result = sl__ledger_set_budget(
                    &r->ledger, i, sl_device_name(place->device), place->budget_bytes, reterr);
        }
    }
    return result;
}

static int start_workers(sl_residency *r, sl_error *reterr)
{
    int result = 0;
    for (size_t i = 0; result >= 0 && !r->is_stepped && i < r->n_places; i++) {
        result = sl__thread_start(
                &r->movers[i].thread, "sl-mover", sl__mover_thread, &r->movers[i], reterr);
    }
    return result;
}

static int check_opts(const sl_residency_opts *opts, sl_error *reterr)
{
    if (opts->n_places == 0 || opts->n_places > SL_PLAN_N_MAX) {
        return sl__fail(reterr, SL_EINVAL, "residency: %zu places, needed are 1 to %d",
                opts->n_places, SL_PLAN_N_MAX);
    }
    if (opts->ring_bytes != 0 && opts->ring_bytes < LEAST_RING) {
        return sl__fail(reterr, SL_EINVAL, "residency: a ring of %zu bytes, needed are %d or more",
                opts->ring_bytes, LEAST_RING);
    }
    return 0;
}

int sl_residency_open(const sl_residency_opts *opts, sl_residency **ret_residency, sl_error *reterr)
{
    int result = check_opts(opts, reterr);
    sl_residency *r = result >= 0 ? sl__alloc(1, sizeof *r) : NULL;
    if (!r) {
        return result < 0 ? result : sl__fail_nomem(reterr, sizeof *r, "the residency");
    }
    r->log = opts->log;
    r->policy = opts->policy;
    r->slice_bytes = opts->slice_bytes;
    r->is_stepped = opts->is_stepped;
    result = sl__mutex_init(&r->lock, reterr);
    if (result < 0) {
        sl__free(r);
        return result;
    }
    result = sl__cond_init(&r->changed, reterr);
    if (result < 0) {
        sl__mutex_done(&r->lock);
        sl__free(r);
        return result;
    }
    result = sl__trace_init(
            &r->trace, opts->n_trace ? opts->n_trace : N_TRACE, opts->n_places, reterr);
    if (result >= 0) {
        result = open_places(r, opts, reterr);
    }
    if (result >= 0) {
        result = start_workers(r, reterr);
    }
    if (result < 0) {
        sl_residency_close(&r);
        return result;
    }
    *ret_residency = r;
    return 0;
}

void sl_residency_shut(sl_residency *r)
{
    sl__mutex_lock(&r->lock);
    r->is_closing = true;
    sl__changed(r);
    sl__mutex_unlock(&r->lock);
}

static void free_unit(sl__unit *u)
{
    for (size_t i = 0; i < u->n_choices; i++) {
        sl__unit_layout_done(&u->choices[i].layout);
    }
    sl__free(u->buffers);
    sl__free(u->name);
    sl__free(u);
}

/* With no worker left, this thread does their last work: everything leaves. */
static void unload_all(sl_residency *r)
{
    sl__mutex_lock(&r->lock);
    while (r->n_calls > 0) {
        sl__cond_wait(&r->changed, &r->lock);
    }
    sl__mutex_unlock(&r->lock);
    for (size_t i = 0; i < r->n_places; i++) {
        sl__thread_join(&r->movers[i].thread);
    }
    sl__mutex_lock(&r->lock);
    for (size_t i = 0; i < r->n_units; i++) {
        sl__unit *u = r->units[i];
        u->n_leases = 0;
        if (u->state != SL_UNIT_ABSENT) {
            sl__send_away(r, u);
        }
    }
    while (sl__mover_step_any(r)) {
    }
    sl__mutex_unlock(&r->lock);
}

void sl_residency_close(sl_residency **residency)
{
    if (!residency || !*residency) {
        return;
    }
    sl_residency *r = *residency;
    sl_residency_shut(r);
    unload_all(r);
    for (size_t i = 0; i < r->n_places; i++) {
        sl__loader_done(&r->movers[i].loader);
    }
    for (size_t i = 0; i < r->n_units; i++) {
        free_unit(r->units[i]);
    }
    sl__free(r->units);
    sl__ledger_done(&r->ledger);
    sl__trace_done(&r->trace);
    sl__free(r->devices);
    sl__free(r->infos);
    sl__free(r->lost_bytes);
    sl__free(r->movers);
    sl__free(r->pool);
    sl__free(r->drawn);
    sl__cond_done(&r->changed);
    sl__mutex_done(&r->lock);
    sl__free(r);
    *residency = NULL;
}

typedef struct room_of_place {
    const sl_unit_spec *spec;
    size_t i_place;
} room_of_place;

static uint64_t room(void *ud, const sl_tensor *tensor)
{
    const room_of_place *at = ud;
    return at->spec->room(at->spec->ud, at->i_place, tensor);
}

/* Adds a place to a unit if it can be there. */
static int add_choice(const sl_residency *r, const sl_unit_spec *spec, size_t i_place, sl__unit *u,
        sl_error *reterr)
{
    const sl_device_info *info = &r->infos[i_place];
    room_of_place at = {spec, i_place};
    sl__choice *choice = &u->choices[u->n_choices];
    sl__unit_limits limits = {.device_name = info->name,
            .alignment = info->alignment ? info->alignment : 1,
            .max_alloc_bytes = info->max_alloc_bytes,
            .slice_bytes = r->slice_bytes,
            .room = spec->room ? room : NULL,
            .ud = &at};
    choice->i_place = i_place;
    choice->is_in_place = info->can_wrap;
    int result = info->can_wrap ? sl__unit_lay_in_place(u->name, spec->tensors, spec->n_tensors,
                                          &limits, &choice->layout, reterr)
                                : sl__unit_lay_out(u->name, spec->tensors, spec->n_tensors, &limits,
                                          &choice->layout, reterr);
    u->n_choices += result >= 0;
    return result;
}

static int add_choices(
        const sl_residency *r, const sl_unit_spec *spec, sl__unit *u, sl_error *reterr)
{
    bool has_second = spec->i_second != SL_PLAN_NONE && spec->i_second != spec->i_place;
    int result = add_choice(r, spec, spec->i_place, u, reterr);
    if (has_second && (result >= 0 || result == SL_ELIMIT)) {
        /* One place is enough; without any, the error of the wanted one is the one to show. */
        int second = add_choice(r, spec, spec->i_second, u, result < 0 ? NULL : reterr);
        result = second >= 0 || second == SL_ELIMIT ? (u->n_choices > 0 ? 0 : result) : second;
    }
    return result;
}

static int check_spec(const sl_residency *r, const sl_unit_spec *spec, sl_error *reterr)
{
    bool has_second = spec->i_second != SL_PLAN_NONE;
    if (spec->i_place >= r->n_places || (has_second && spec->i_second >= r->n_places)) {
        return sl__fail(reterr, SL_EINVAL,
                "unit %s: place %zu or second place %zu, needed is less than %zu", spec->name,
                spec->i_place, spec->i_second, r->n_places);
    }
    if (r->n_units == SL_PLAN_N_MAX) {
        return sl__fail(reterr, SL_EINVAL, "unit %s: %d units are the most that can be added",
                spec->name, SL_PLAN_N_MAX);
    }
    return 0;
}

int sl_residency_add_unit(
        sl_residency *r, const sl_unit_spec *spec, size_t *ret_unit, sl_error *reterr)
{
    int result = check_spec(r, spec, reterr);
    sl__unit *u = result >= 0 ? sl__alloc(1, sizeof *u) : NULL;
    if (!u) {
        return result < 0 ? result : sl__fail_nomem(reterr, sizeof *u, spec->name);
    }
    u->name = sl__strndup(spec->name, strlen(spec->name));
    u->model = spec->model;
    u->wanted_place = spec->i_place;
    result = u->name ? add_choices(r, spec, u, reterr)
                     : sl__fail_nomem(reterr, strlen(spec->name), spec->name);
    size_t n_buffers = 0;
    for (size_t i = 0; i < u->n_choices; i++) {
        size_t n = u->choices[i].layout.n_buffers;
        n_buffers = n > n_buffers ? n : n_buffers;
    }
    sl__mutex_lock(&r->lock);
    if (result >= 0) {
        u->buffers = sl__alloc(n_buffers, sizeof(sl_buffer *));
        if (!u->buffers ||
                !sl__grow((void **)&r->units, &r->cap_units, r->n_units + 1, sizeof(sl__unit *))) {
            result = sl__fail_nomem(reterr, n_buffers * sizeof(sl_buffer *), u->name);
        }
    }
    if (result >= 0) {
        *ret_unit = r->n_units;
        r->units[r->n_units] = u;
        r->n_units++;
    }
    sl__mutex_unlock(&r->lock);
    if (result < 0) {
        free_unit(u);
    }
    return result;
}
