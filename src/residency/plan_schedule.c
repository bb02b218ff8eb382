/*
 * Plays the run: at the begin of each step everything leaves that the step has no role for, then what it needs
 * is loaded, then what it may hold for later. A step's peak is the sum over all units with a role, so it
 * holds at every instant of the step, whenever the loads happen.
 */
#include <string.h>

#include "base/mem.h"
#include "residency/plan_impl.h"

typedef struct player {
    const sl__plan_input *in;
    sl_plan *plan;
    bool is_recording; /* false in the first round of a cyclic run */
    unsigned char *is_resident;
    unsigned char *was_used; /* phases whose scratch keep holds */
    double *arrival_s;       /* of each unit */
    double *link_free_s;     /* of each place */
    size_t *order;           /* units that the step does not need, nearest next use first */
    double now_s;
    double origin_s; /* begin of the recorded round */
} player;

static int emit(player *p, sl_plan_event event)
{
    sl_plan *plan = p->plan;
    if (!p->is_recording) {
        return 0;
    }
    if (!sl__grow((void **)&plan->events, &plan->cap_events, plan->n_events + 1,
                sizeof *plan->events)) {
        return SL_ENOMEM;
    }
    event.begin_s -= p->origin_s;
    event.end_s -= p->origin_s;
    plan->events[plan->n_events] = event;
    plan->n_events++;
    if (event.kind == SL_PLAN_LOAD) {
        plan->bytes_moved += event.n_bytes;
    }
    return 0;
}

/* Steps until a unit is needed again, SIZE_MAX if never. */
static size_t next_use(const player *p, size_t i_step, size_t i_unit)
{
    size_t n = p->in->n_run;
    size_t last = p->in->request->is_cyclic ? n : n - 1 - i_step;
    for (size_t k = 1; k <= last; k++) {
        if (sl__plan_needs(p->in, sl__plan_phase_of(p->in, (i_step + k) % n), i_unit)) {
            return k;
        }
    }
    return SIZE_MAX;
}

/* Sorts the units that the step does not need by next use; equal ones by index. Returns how many. */
static size_t order_others(player *p, size_t i_step)
{
    size_t n = 0;
    for (size_t u = 0; u < p->in->request->n_units; u++) {
        if (sl__plan_needs(p->in, sl__plan_phase_of(p->in, i_step), u)) {
            continue;
        }
        size_t at = n;
        size_t use = next_use(p, i_step, u);
        for (; at > 0 && next_use(p, i_step, p->order[at - 1]) > use; at--) {
            p->order[at] = p->order[at - 1];
        }
        p->order[at] = u;
        n++;
    }
    return n;
}

/* What the policy wants of a unit that the step does not need, if there is room. */
static sl_plan_role wanted_role(const player *p, size_t i_step, size_t i_unit)
{
    const sl_plan_request *request = p->in->request;
    bool is_next = next_use(p, i_step, i_unit) == 1;
    if (is_next && (p->is_resident[i_unit] || request->prefetch != SL_PREFETCH_NONE)) {
        return SL_PLAN_AHEAD;
    }
    bool may_stay = request->policy == SL_POLICY_KEEP || request->policy == SL_POLICY_AUTO;
    return may_stay && p->is_resident[i_unit] ? SL_PLAN_STAYS : SL_PLAN_ABSENT;
}

static uint64_t limit_of(const player *p, size_t i_place)
{
    const sl_plan_request *request = p->in->request;
    bool is_peak = request->prefetch == SL_PREFETCH_PEAK && request->policy != SL_POLICY_KEEP;
    return is_peak ? p->plan->floors[i_place] : request->places[i_place].budget_bytes;
}

/* Scratch of the step on every place; with keep that of the phases before as well. */
static void begin_peaks(player *p, size_t i_step, sl_plan_bytes *peaks)
{
    const sl_plan_request *request = p->in->request;
    size_t i_phase = sl__plan_phase_of(p->in, i_step);
    if (request->policy != SL_POLICY_KEEP) {
        memset(p->was_used, 0, request->n_phases);
    }
    p->was_used[i_phase] = 1;
    for (size_t i = 0; i < request->n_places; i++) {
        memset(&peaks[i], 0, sizeof peaks[i]);
        for (size_t k = 0; k < request->n_phases; k++) {
            if (p->was_used[k]) {
                sl__plan_add_scratch(p->in, k, i, &peaks[i]);
            }
        }
    }
}

static void assign_roles(player *p, size_t i_step, unsigned char *roles, sl_plan_bytes *peaks)
{
    const sl_plan_request *request = p->in->request;
    size_t i_phase = sl__plan_phase_of(p->in, i_step);
    begin_peaks(p, i_step, peaks);
    for (size_t u = 0; u < request->n_units; u++) {
        bool is_needed = sl__plan_needs(p->in, i_phase, u);
        roles[u] = is_needed ? SL_PLAN_NEEDED : SL_PLAN_ABSENT;
        if (is_needed) {
            sl__plan_add_weights(request->units[u].n_bytes, &peaks[request->units[u].i_place]);
        }
    }
    size_t n_others = order_others(p, i_step);
    for (size_t i = 0; i < n_others; i++) {
        const sl_plan_unit *unit = &request->units[p->order[i]];
        sl_plan_role role = wanted_role(p, i_step, p->order[i]);
        uint64_t limit = limit_of(p, unit->i_place);
        uint64_t used = peaks[unit->i_place].total;
        if (role != SL_PLAN_ABSENT && used <= limit && unit->n_bytes <= limit - used) {
            roles[p->order[i]] = (unsigned char)role;
            sl__plan_add_weights(unit->n_bytes, &peaks[unit->i_place]);
        }
    }
}

static int evict_others(player *p, size_t i_step, const unsigned char *roles)
{
    int r = 0;
    for (size_t u = 0; r >= 0 && u < p->in->request->n_units; u++) {
        const sl_plan_unit *unit = &p->in->request->units[u];
        if (p->is_resident[u] && roles[u] == SL_PLAN_ABSENT) {
            p->is_resident[u] = 0;
            r = emit(p, (sl_plan_event){SL_PLAN_EVICT, i_step, u, unit->i_place, unit->n_bytes,
                                p->now_s, p->now_s});
        }
    }
    return r;
}

/* Loads the absent units of one role, in order of index, each behind the last load of its place. */
static int load_role(player *p, size_t i_step, const unsigned char *roles, sl_plan_role role)
{
    int r = 0;
    for (size_t u = 0; r >= 0 && u < p->in->request->n_units; u++) {
        if (roles[u] != role || p->is_resident[u]) {
            continue;
        }
        const sl_plan_unit *unit = &p->in->request->units[u];
        double speed = p->in->request->places[unit->i_place].link_bytes_per_s;
        double *link_s = &p->link_free_s[unit->i_place];
        double begin_s = *link_s > p->now_s ? *link_s : p->now_s;
        *link_s = begin_s + (speed > 0 ? (double)unit->n_bytes / speed : 0);
        p->arrival_s[u] = *link_s;
        p->is_resident[u] = 1;
        r = emit(p, (sl_plan_event){SL_PLAN_LOAD, i_step, u, unit->i_place, unit->n_bytes, begin_s,
                            *link_s});
    }
    return r;
}

static int wait_and_compute(player *p, size_t i_step, const unsigned char *roles)
{
    double ready_s = p->now_s;
    double seconds = p->in->request->phases[sl__plan_phase_of(p->in, i_step)].seconds;
    for (size_t u = 0; u < p->in->request->n_units; u++) {
        if (roles[u] == SL_PLAN_NEEDED && p->arrival_s[u] > ready_s) {
            ready_s = p->arrival_s[u];
        }
    }
    int r = 0;
    if (ready_s > p->now_s) {
        r = emit(p, (sl_plan_event){SL_PLAN_STALL, i_step, SL_PLAN_NONE, SL_PLAN_NONE, 0, p->now_s,
                            ready_s});
    }
    if (r >= 0) {
        r = emit(p, (sl_plan_event){SL_PLAN_COMPUTE, i_step, SL_PLAN_NONE, SL_PLAN_NONE, 0, ready_s,
                            ready_s + seconds});
    }
    /* What is fetched ahead is fetched from the begin of the step on, beside computing. */
    if (r >= 0) {
        r = load_role(p, i_step, roles, SL_PLAN_AHEAD);
    }
    p->now_s = ready_s + seconds;
    return r;
}

static int play_step(player *p, size_t i_step)
{
    unsigned char *roles = p->plan->roles + i_step * p->plan->n_units;
    assign_roles(p, i_step, roles, p->plan->peaks + i_step * p->plan->n_places);
    int r = evict_others(p, i_step, roles);
    if (r >= 0) {
        r = load_role(p, i_step, roles, SL_PLAN_NEEDED);
    }
    return r < 0 ? r : wait_and_compute(p, i_step, roles);
}

static int play_round(player *p, bool is_recording)
{
    int r = 0;
    p->is_recording = is_recording;
    p->origin_s = p->now_s;
    for (size_t i = 0; r >= 0 && i < p->in->n_run; i++) {
        r = play_step(p, i);
    }
    p->plan->seconds = p->now_s - p->origin_s;
    return r;
}

int sl__plan_schedule(const sl__plan_input *in, sl_plan *plan)
{
    player p = {.in = in, .plan = plan};
    p.is_resident = sl__alloc(plan->n_units, 1);
    p.was_used = sl__alloc(in->request->n_phases, 1);
    p.arrival_s = sl__alloc(plan->n_units, sizeof *p.arrival_s);
    p.link_free_s = sl__alloc(plan->n_places, sizeof *p.link_free_s);
    p.order = sl__alloc(plan->n_units, sizeof *p.order);
    int r = SL_ENOMEM;
    if (p.is_resident && p.was_used && p.arrival_s && p.link_free_s && p.order) {
        r = in->request->is_cyclic ? play_round(&p, false) : 0;
    }
    if (r >= 0) {
        r = play_round(&p, true);
    }
    sl__free(p.is_resident);
    sl__free(p.was_used);
    sl__free(p.arrival_s);
    sl__free(p.link_free_s);
    sl__free(p.order);
    return r;
}
