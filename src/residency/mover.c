/*
 * The workers. There is no queue of jobs: what is to be done follows from the states of the units, so that a job
 * cannot be stale. Order of need: memory comes back first, then loads that somebody waits for in the order
 * in which they were asked for, then loads ahead.
 *
 * run_transition is the one way by which a unit moves.
 */
#include <inttypes.h>
#include <string.h>

#include "base/byte_text.h"
#include "base/log.h"
#include "os/os_clock.h"
#include "residency/residency_impl.h"

typedef struct progress {
    sl_residency *r;
    sl__unit *u;
} progress;

static bool is_over(void *ud)
{
    const progress *p = ud;
    sl__mutex_lock(&p->r->lock);
    bool is = p->u->is_abandoned || p->r->is_closing;
    sl__mutex_unlock(&p->r->lock);
    return is;
}

static void on_slice(void *ud, size_t i_slice)
{
    const progress *p = ud;
    sl__mutex_lock(&p->r->lock);
    p->u->n_arrived = i_slice + 1;
    sl__changed(p->r);
    sl__mutex_unlock(&p->r->lock);
}

static void record(sl_residency *r, sl__unit *u, sl__trace_kind kind, uint64_t begin_ns)
{
    const sl__choice *at = sl__choice_of(u);
    bool is_load = kind == SL__TRACE_LOAD;
    sl__trace_add(&r->trace, (sl__trace_event){.kind = kind,
                                     .name = u->name,
                                     .i_track = at->i_place,
                                     .n_bytes = at->layout.n_file_bytes,
                                     .begin_ns = begin_ns,
                                     .end_ns = sl__now_ns(),
                                     .route = is_load ? u->load.route : NULL,
                                     .n_stalls = is_load ? u->load.n_stalls : 0});
}

/* Without the lock. */
static void log_load(const sl__mover *m, const sl__unit *u, const sl__load_figures *load)
{
    char size[32];
    double seconds = (double)(load->ns > 0 ? load->ns : 1) * 1e-9;
    sl__log(&m->residency->log, SL_LOG_DEBUG,
            "residency: unit %s: %s to %s in %.1f ms, %.3g GB/s by %s, %" PRIu64 " stall%s",
            u->name, sl__byte_text(load->n_bytes, size, sizeof size),
            sl_device_name(m->loader.device), seconds * 1e3, (double)load->n_bytes * 1e-9 / seconds,
            load->route, load->n_stalls, load->n_stalls == 1 ? "" : "s");
}

/* Without the lock. */
static int load(sl__mover *m, sl__unit *u, sl__load_figures *ret_load, sl_error *reterr)
{
    const sl__choice *at = sl__choice_of(u);
    progress p = {m->residency, u};
    sl__load_job job = {.unit_name = u->name,
            .model = u->model,
            .layout = &at->layout,
            .is_in_place = at->is_in_place,
            .buffers = u->buffers,
            .hooks = {is_over, on_slice, &p}};
    return sl__loader_load(&m->loader, &job, ret_load, reterr);
}

/* Without the lock. Frees what there is, also after a failure; *ret_lost says what a device did not take back. */
static int unload(sl__unit *u, uint64_t *ret_lost, sl_error *reterr)
{
    const sl__choice *at = sl__choice_of(u);
    int r = 0;
    *ret_lost = 0;
    for (size_t i = at->layout.n_buffers; i > 0; i--) {
        sl_error err = {0};
        int freed = sl_buffer_free(&u->buffers[i - 1], &err);
        if (freed < 0) {
            *ret_lost += at->is_in_place ? 0 : at->layout.buffers[i - 1];
            *reterr = err;
            r = freed;
        }
    }
    return r;
}

static void finish_load(sl_residency *r, sl__unit *u, uint64_t begin_ns,
        const sl__load_figures *load, int result, const sl_error *err)
{
    u->load = result < 0 ? u->load : *load;
    record(r, u, result < 0 ? SL__TRACE_FAIL : SL__TRACE_LOAD, begin_ns);
    if (result >= 0) {
        u->state = SL_UNIT_RESIDENT;
        u->n_arrived = sl__choice_of(u)->layout.n_slices;
        u->epoch++;
        u->is_ahead = false;
        memset(&u->last_error, 0, sizeof u->last_error);
        if (u->is_abandoned) {
            u->is_abandoned = false;
            u->must_leave = true;
        }
        sl__let_go(r, u);
        return;
    }
    u->has_failed = !u->is_abandoned;
    u->is_ahead = u->is_ahead && u->is_abandoned;
    u->last_error = u->is_abandoned ? u->last_error : *err;
    u->state = SL_UNIT_EVICTING;
}

static int finish_unload(
        sl_residency *r, sl__unit *u, uint64_t lost, uint64_t begin_ns, sl_error *reterr)
{
    const sl__choice *at = sl__choice_of(u);
    r->lost_bytes[at->i_place] += lost;
    record(r, u, SL__TRACE_EVICT, begin_ns);
    u->state = SL_UNIT_ABSENT;
    u->n_failed += u->has_failed;
    u->n_evicted++;
    u->has_failed = false;
    u->is_abandoned = false;
    u->must_leave = false;
    u->n_arrived = 0;
    return sl__ledger_return(
            &r->ledger, at->i_place, SL_MEM_WEIGHTS, at->layout.n_bytes - lost, reterr);
}

/*
 * Takes a unit one step on its way: loading becomes resident, or evicting if it fails; evicting becomes absent. The
 * lock is held at begin and end. The result is that of the device. *ret_load is set if a load succeeded.
 */
static int run_transition(
        sl__mover *m, sl__unit *u, sl__load_figures *ret_load, sl_error *reterr) SL_MUST_CHECK;

static int run_transition(sl__mover *m, sl__unit *u, sl__load_figures *ret_load, sl_error *reterr)
{
    sl_residency *r = m->residency;
    bool is_load = u->state == SL_UNIT_LOADING;
    uint64_t lost = 0;
    uint64_t begin_ns = sl__now_ns();
    u->is_busy = true;
    sl__mutex_unlock(&r->lock);
    int result = is_load ? load(m, u, ret_load, reterr) : unload(u, &lost, reterr);
    sl__mutex_lock(&r->lock);
    u->is_busy = false;
    if (is_load) {
        finish_load(r, u, begin_ns, ret_load, result, reterr);
    } else {
        int booked = finish_unload(r, u, lost, begin_ns, result < 0 ? NULL : reterr);
        result = result < 0 ? result : booked;
    }
    sl__changed(r);
    return result;
}

static bool is_here(const sl__mover *m, const sl__unit *u)
{
    return sl__choice_of(u)->i_place == m->i_place;
}

static bool is_better(const sl__unit *u, const sl__unit *than)
{
    if (!than || sl__is_free(u) != sl__is_free(than)) {
        return !than || !sl__is_free(u);
    }
    return u->job_seq < than->job_seq;
}

/* The unit that is to move next, NULL if none is. */
static sl__unit *pick(const sl__mover *m)
{
    const sl_residency *r = m->residency;
    sl__unit *best = NULL;
    for (size_t i = 0; i < r->n_units; i++) {
        sl__unit *u = r->units[i];
        if (u->is_busy || !is_here(m, u)) {
            continue;
        }
        if (u->state == SL_UNIT_EVICTING && u->n_leases == 0) {
            return u;
        }
        if (u->state == SL_UNIT_LOADING && is_better(u, best)) {
            best = u;
        }
    }
    return best;
}

/* A unit to be loaded ahead for which there is room, now booked; NULL if there is none. */
static sl__unit *pick_ahead(sl__mover *m)
{
    sl_residency *r = m->residency;
    bool may = !r->is_closing && !r->turn && r->sleep_level == 0;
    for (size_t i = 0; may && i < r->n_units; i++) {
        sl__unit *u = r->units[i];
        const sl__choice *at = &u->choices[0];
        if (u->state != SL_UNIT_ABSENT || !u->is_ahead || at->i_place != m->i_place) {
            continue;
        }
        if (sl__ledger_book(&r->ledger, at->i_place, SL_MEM_WEIGHTS, at->layout.n_bytes, NULL) >=
                0) {
            u->i_choice = 0;
            sl__begin_load(r, u);
            return u;
        }
    }
    return NULL;
}

bool sl__mover_step(sl__mover *m)
{
    sl_residency *r = m->residency;
    sl__unit *u = pick(m);
    u = u ? u : pick_ahead(m);
    if (!u) {
        return false;
    }
    sl_error err = {0};
    sl__load_figures moved = {0};
    bool has_failed = run_transition(m, u, &moved, &err) < 0 && err.code != SL_ECANCELLED;
    if (has_failed || moved.n_bytes > 0) {
        sl__mutex_unlock(&r->lock);
        if (has_failed) {
            sl__log(&r->log, SL_LOG_WARN, "residency: unit %s: %s", u->name, err.msg);
        } else {
            log_load(m, u, &moved);
        }
        sl__mutex_lock(&r->lock);
    }
    return true;
}

bool sl__mover_step_any(sl_residency *r)
{
    for (size_t i = 0; i < r->n_places; i++) {
        if (sl__mover_step(&r->movers[i])) {
            return true;
        }
    }
    return false;
}

void sl__mover_thread(void *mover)
{
    sl__mover *m = mover;
    sl_residency *r = m->residency;
    sl__mutex_lock(&r->lock);
    while (!r->is_closing) {
        if (!sl__mover_step(m)) {
            sl__cond_wait(&r->changed, &r->lock);
        }
    }
    sl__mutex_unlock(&r->lock);
}
