/*
 * Phases and scratch. A phase books all the scratch that its plan says at its begin, so that nothing that is
 * fetched ahead can take its place; scratch that is acquired meanwhile draws from that. keep leaves what was
 * booked to the next phase, which books only what it needs more.
 */
#include <assert.h>
#include <inttypes.h>

#include "base/log.h"
#include "base/mem.h"
#include "os/os_clock.h"
#include "residency/residency_impl.h"

struct sl_phase {
    sl_residency *r;
    const sl_plan *plan;
    size_t i_step;
    const char *name;
    sl_lease *lease;
    uint64_t begin_ns;
};

struct sl_scratch {
    sl_residency *r;
    size_t i_place;
    sl_mem_kind kind;
    uint64_t n_bytes;
    uint64_t from_pool; /* part of n_bytes */
    uint64_t phase_id;  /* whose pool */
    sl_buffer *buffer;
};

static uint64_t *pool_of(sl_residency *r, size_t i_place, sl_mem_kind kind)
{
    return &r->pool[i_place * SL_MEM_KIND_COUNT + (size_t)kind];
}

static uint64_t *drawn_of(const sl_scratch *s)
{
    return &s->r->drawn[s->i_place * SL_MEM_KIND_COUNT + (size_t)s->kind];
}

/* Returning what was booked cannot fail: a difference would have been one before. */
static void give_back(sl_residency *r, size_t i_place, sl_mem_kind kind, uint64_t n_bytes)
{
    int returned = sl__ledger_return(&r->ledger, i_place, kind, n_bytes, NULL);
    assert(returned >= 0);
    (void)returned;
    sl__changed(r);
}

void sl__pool_release(sl_residency *r)
{
    for (size_t i = 0; i < r->n_places * SL_MEM_KIND_COUNT; i++) {
        sl_mem_kind kind = (sl_mem_kind)(i % SL_MEM_KIND_COUNT);
        give_back(r, i / SL_MEM_KIND_COUNT, kind, r->pool[i]);
        r->pool[i] = 0;
    }
}

/* Books, and sends units away for it if needed. `self` tells whose turn it is. */
static int book(sl_residency *r, const void *self, size_t i_place, sl_mem_kind kind,
        uint64_t n_bytes, const sl_wait *wait, sl_error *reterr)
{
    int result = SL_EBUSY;
    while (result == SL_EBUSY) {
        if (!r->turn || r->turn == self) {
            result = sl__ledger_book(&r->ledger, i_place, kind, n_bytes, reterr);
            if (result >= 0 || !sl__make_room(r, i_place, n_bytes)) {
                break;
            }
            r->turn = self;
            result = SL_EBUSY;
        }
        int waited = sl__wait_change(r, wait, reterr);
        result = waited < 0 ? waited : result;
    }
    if (r->turn == self) {
        r->turn = NULL;
        sl__changed(r);
    }
    sl__trace_memory(&r->trace, &r->ledger, sl__now_ns());
    return result;
}

static int book_pool(sl_phase *p, const sl_wait *wait, sl_error *reterr)
{
    sl_residency *r = p->r;
    int result = 0;
    for (size_t i = 0; result >= 0 && i < r->n_places; i++) {
        sl_plan_bytes peak = sl_plan_peak(p->plan, p->i_step, i);
        for (int k = SL_MEM_WEIGHTS + 1; result >= 0 && k < SL_MEM_KIND_COUNT; k++) {
            sl_mem_kind kind = (sl_mem_kind)k;
            uint64_t *pool = pool_of(r, i, kind);
            uint64_t held = *pool + r->drawn[i * SL_MEM_KIND_COUNT + (size_t)k];
            uint64_t more = peak.kind[k] > held ? peak.kind[k] - held : 0;
            result = book(r, p, i, kind, more, wait, reterr);
            *pool += result >= 0 ? more : 0;
        }
    }
    return result;
}

static void assign_roles(sl_phase *p)
{
    sl_residency *r = p->r;
    for (size_t i = 0; i < r->n_units; i++) {
        sl__unit *u = r->units[i];
        u->role = sl_plan_unit_role(p->plan, p->i_step, i);
        u->is_ahead = false;
        u->must_leave = u->role == SL_PLAN_ABSENT && u->state != SL_UNIT_ABSENT;
        /* A load ahead that the phase needs goes on: it is pinned before. */
        sl__let_go(r, u);
    }
}

/*
 * What leaves is gone before anything new is booked: otherwise both would be there for a moment, which the budget may
 * allow but the plan does not say.
 */
static int wait_for_leavers(sl_phase *p, const sl_wait *wait, sl_error *reterr)
{
    int result = 0;
    for (size_t i = 0; i < p->r->n_places; i++) {
        while (result >= 0 && sl__is_coming_free(p->r, i)) {
            result = sl__wait_change(p->r, wait, reterr);
        }
    }
    return result;
}

static void fetch_ahead(sl_phase *p)
{
    for (size_t i = 0; i < p->r->n_units; i++) {
        sl__unit *u = p->r->units[i];
        u->is_ahead = u->role == SL_PLAN_AHEAD && u->state != SL_UNIT_RESIDENT;
    }
    sl__changed(p->r);
}

static int check_step(const sl_residency *r, const sl_plan *plan, size_t i_step, sl_error *reterr)
{
    int result = sl_plan_check(plan, reterr);
    if (result < 0) {
        return result;
    }
    if (i_step >= sl_plan_n_steps(plan)) {
        return sl__fail(reterr, SL_EINVAL, "phase: step %zu, needed is less than %zu", i_step,
                sl_plan_n_steps(plan));
    }
    return r->has_phase ? sl__fail(reterr, SL_EBUSY, "phase: another one is active; end it first")
                        : 0;
}

/* Pins the needed units first, so that nothing below sends them away. */
static int pin_needed(sl_phase *p, bool is_streaming, sl_error *reterr)
{
    sl_residency *r = p->r;
    size_t n = 0;
    size_t *needed = sl__alloc(r->n_units, sizeof *needed);
    if (!needed) {
        return sl__fail_nomem(reterr, r->n_units * sizeof *needed, "a phase");
    }
    for (size_t i = 0; i < r->n_units; i++) {
        if (sl_plan_unit_role(p->plan, p->i_step, i) == SL_PLAN_NEEDED) {
            needed[n] = i;
            n++;
        }
    }
    int result = sl__lease_pin(r, needed, n, is_streaming, &p->lease, reterr);
    sl__free(needed);
    return result;
}

static void leave_phase(sl_phase *p, bool keeps_pool)
{
    sl_residency *r = p->r;
    if (p->lease) {
        sl__lease_drop(p->lease);
    }
    if (!keeps_pool) {
        sl__pool_release(r);
    }
    for (size_t i = 0; i < r->n_units; i++) {
        r->units[i]->role = SL_PLAN_ABSENT;
    }
    r->has_phase = false;
    sl__changed(r);
    sl__free(p);
}

static int begin(
        sl_phase *p, bool is_streaming, const sl_wait *wait, char note[256], sl_error *reterr)
{
    int result = pin_needed(p, is_streaming, reterr);
    if (result >= 0) {
        assign_roles(p);
        result = wait_for_leavers(p, wait, reterr);
    }
    if (result >= 0) {
        result = book_pool(p, wait, reterr);
    }
    if (result >= 0) {
        result = sl__lease_load(p->lease, wait, note, reterr);
    }
    if (result >= 0) {
        fetch_ahead(p);
    }
    return result;
}

int sl_phase_begin(sl_residency *r, const sl_plan *plan, size_t i_step, const char *name,
        bool is_streaming, const sl_wait *wait, sl_phase **ret_phase, sl_error *reterr)
{
    char note[256] = "";
    sl_phase *p = sl__alloc(1, sizeof *p);
    if (!p) {
        return sl__fail_nomem(reterr, sizeof *p, "a phase");
    }
    *p = (sl_phase){r, plan, i_step, name, NULL, sl__now_ns()};
    sl__enter(r);
    int result = check_step(r, plan, i_step, reterr);
    if (result < 0) {
        sl__free(p);
    } else {
        r->has_phase = true;
        r->phase_id++;
        result = begin(p, is_streaming, wait, note, reterr);
        if (result < 0) {
            leave_phase(p, false);
        }
    }
    sl__leave(r);
    if (note[0]) {
        sl__log(&r->log, SL_LOG_WARN, "%s", note);
    }
    if (result >= 0) {
        *ret_phase = p;
    }
    return result;
}

sl_lease *sl_phase_lease(sl_phase *phase)
{
    return phase->lease;
}

/* Units without a role in the next step leave; behind the last step the policy says. */
static void order_units_out(sl_phase *p)
{
    sl_residency *r = p->r;
    bool is_last = p->i_step + 1 == sl_plan_n_steps(p->plan);
    bool stays = r->policy == SL_POLICY_KEEP || r->policy == SL_POLICY_AUTO;
    for (size_t i = 0; i < r->n_units; i++) {
        sl__unit *u = r->units[i];
        bool leaves =
                is_last ? !stays : sl_plan_unit_role(p->plan, p->i_step + 1, i) == SL_PLAN_ABSENT;
        u->must_leave = leaves && u->state != SL_UNIT_ABSENT;
        u->is_ahead = u->is_ahead && !leaves;
        sl__let_go(r, u);
    }
}

void sl_phase_end(sl_phase **phase)
{
    if (!phase || !*phase) {
        return;
    }
    sl_phase *p = *phase;
    sl_residency *r = p->r;
    sl__enter(r);
    sl__trace_add(&r->trace, (sl__trace_event){.kind = SL__TRACE_PHASE,
                                     .name = p->name,
                                     .begin_ns = p->begin_ns,
                                     .end_ns = sl__now_ns()});
    order_units_out(p);
    leave_phase(p, r->policy == SL_POLICY_KEEP);
    sl__leave(r);
    *phase = NULL;
}

/* What draws from the pool of a phase goes back to it while that phase lasts; with keep always. */
static void return_scratch(sl_scratch *s)
{
    sl_residency *r = s->r;
    bool is_same = r->has_phase && s->phase_id == r->phase_id;
    uint64_t to_pool = is_same || r->policy == SL_POLICY_KEEP ? s->from_pool : 0;
    *drawn_of(s) -= s->from_pool;
    *pool_of(r, s->i_place, s->kind) += to_pool;
    give_back(r, s->i_place, s->kind, s->n_bytes - to_pool);
}

/* Books scratch: from the pool of the phase as far as that goes. */
static int book_scratch(sl_scratch *s, const sl_wait *wait, sl_error *reterr)
{
    sl_residency *r = s->r;
    uint64_t *pool = pool_of(r, s->i_place, s->kind);
    s->phase_id = r->phase_id;
    s->from_pool = *pool < s->n_bytes ? *pool : s->n_bytes;
    *pool -= s->from_pool;
    *drawn_of(s) += s->from_pool;
    int result = book(r, s, s->i_place, s->kind, s->n_bytes - s->from_pool, wait, reterr);
    if (result < 0) {
        s->n_bytes = s->from_pool; /* the rest was not booked */
        return_scratch(s);
    }
    return result;
}

/* Allocates without the lock; if the device has no memory, once more when units have left. */
static int allocate(sl_scratch *s, const sl_wait *wait, sl_error *reterr)
{
    sl_residency *r = s->r;
    int result = sl_buffer_alloc(r->devices[s->i_place], s->n_bytes, &s->buffer, reterr);
    if (result != SL_ENOMEM) {
        return result;
    }
    sl__enter(r);
    int waited = sl__make_room(r, s->i_place, UINT64_MAX) ? 0 : result;
    while (waited >= 0 && sl__is_coming_free(r, s->i_place)) {
        waited = sl__wait_change(r, wait, reterr);
    }
    sl__leave(r);
    return waited < 0 ? waited
                      : sl_buffer_alloc(r->devices[s->i_place], s->n_bytes, &s->buffer, reterr);
}

static int check_scratch(const sl_residency *r, size_t i_place, sl_mem_kind kind, sl_error *reterr)
{
    if (i_place >= r->n_places || kind <= SL_MEM_WEIGHTS || kind >= SL_MEM_KIND_COUNT) {
        return sl__fail(reterr, SL_EINVAL,
                "scratch: place %zu of %zu, kind %d; needed is kv, compute or staging", i_place,
                r->n_places, (int)kind);
    }
    return 0;
}

int sl_scratch_acquire(sl_residency *r, size_t i_place, sl_mem_kind kind, uint64_t n_bytes,
        bool is_allocated, const sl_wait *wait, sl_scratch **ret_scratch, sl_error *reterr)
{
    int result = check_scratch(r, i_place, kind, reterr);
    sl_scratch *s = result >= 0 ? sl__alloc(1, sizeof *s) : NULL;
    if (!s) {
        return result < 0 ? result : sl__fail_nomem(reterr, sizeof *s, "scratch");
    }
    /* A device takes memory in steps of its alignment: the account has to count it. */
    uint64_t alignment =
            is_allocated && r->infos[i_place].alignment ? r->infos[i_place].alignment : 1;
    *s = (sl_scratch){.r = r, .i_place = i_place, .kind = kind, .n_bytes = n_bytes};
    if (!sl__align_up_u64(n_bytes, alignment, &s->n_bytes)) {
        sl__free(s);
        return sl__fail(reterr, SL_EINVAL, "scratch: %" PRIu64 " bytes", n_bytes);
    }
    sl__enter(r);
    result = book_scratch(s, wait, reterr);
    sl__leave(r);
    if (result < 0) {
        sl__free(s);
        return result;
    }
    if (is_allocated && n_bytes > 0) {
        result = allocate(s, wait, reterr);
    }
    if (result < 0) {
        sl_scratch_release(&s);
        return result;
    }
    *ret_scratch = s;
    return 0;
}

sl_buffer *sl_scratch_buffer(const sl_scratch *scratch)
{
    return scratch->buffer;
}

void sl_scratch_release(sl_scratch **scratch)
{
    if (!scratch || !*scratch) {
        return;
    }
    sl_scratch *s = *scratch;
    sl_residency *r = s->r;
    sl_error err = {0};
    bool is_lost = sl_buffer_free(&s->buffer, &err) < 0;
    if (is_lost) {
        sl__log(&r->log, SL_LOG_WARN, "residency: scratch: %s", err.msg);
    }
    sl__enter(r);
    if (is_lost) {
        r->lost_bytes[s->i_place] += s->n_bytes;
        *drawn_of(s) -= s->from_pool;
    } else {
        return_scratch(s);
    }
    sl__leave(r);
    sl__free(s);
    *scratch = NULL;
}
