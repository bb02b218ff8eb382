/*
 * Checks a request once, so that the computation behind it neither wraps nor leaves an array: all bytes of the
 * request fit one number, also when everything is loaded in every step.
 */
#include "sluice/plan.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/byte_text.h"
#include "base/mem.h"
#include "residency/plan_impl.h"

static int bad(sl_error *reterr, const char *what, const char *name, size_t value, size_t n)
{
    return sl__fail(reterr, SL_EINVAL, "plan: %s '%s' is %zu, needed is less than %zu", what,
            name ? name : "", value, n);
}

static bool is_duration(double v)
{
    return isfinite(v) && v >= 0;
}

static int check_counts(const sl_plan_request *q, sl_error *reterr)
{
    if (q->n_places > SL_PLAN_N_MAX || q->n_units > SL_PLAN_N_MAX || q->n_phases > SL_PLAN_N_MAX) {
        return sl__fail(reterr, SL_EINVAL,
                "plan: %zu places, %zu units and %zu phases; at most %d of each can be planned",
                q->n_places, q->n_units, q->n_phases, SL_PLAN_N_MAX);
    }
    size_t n_run = q->run ? q->n_run : q->n_phases;
    if (n_run == 0 || n_run > SL_PLAN_N_RUNS) {
        return sl__fail(reterr, SL_EINVAL, "plan: a run of %zu phases; needed are 1 to %d", n_run,
                SL_PLAN_N_RUNS);
    }
    if ((unsigned)q->policy >= SL_POLICY_COUNT || (unsigned)q->prefetch >= SL_PREFETCH_COUNT) {
        return sl__fail(reterr, SL_EINVAL, "plan: policy %d or prefetch %d is not known",
                (int)q->policy, (int)q->prefetch);
    }
    if (q->policy == SL_POLICY_HOT && q->is_cyclic) {
        return sl__fail(reterr, SL_EINVAL,
                "plan: policy hot leaves nothing behind, so its run cannot be cyclic");
    }
    return 0;
}

static int check_phase(const sl_plan_request *q, const sl_plan_phase *phase, sl_error *reterr)
{
    for (size_t i = 0; i < phase->n_units; i++) {
        if (phase->units[i] >= q->n_units) {
            return bad(reterr, "a unit of phase", phase->name, phase->units[i], q->n_units);
        }
    }
    for (size_t i = 0; i < phase->n_scratch; i++) {
        const sl_plan_scratch *s = &phase->scratch[i];
        if (s->i_place >= q->n_places) {
            return bad(
                    reterr, "the place of scratch of phase", phase->name, s->i_place, q->n_places);
        }
        if (s->kind == SL_MEM_WEIGHTS || (unsigned)s->kind >= SL_MEM_KIND_COUNT) {
            return sl__fail(reterr, SL_EINVAL,
                    "plan: scratch of phase '%s' has kind %d; needed is kv, compute or staging",
                    phase->name ? phase->name : "", (int)s->kind);
        }
    }
    if (!is_duration(phase->seconds)) {
        return sl__fail(reterr, SL_EINVAL, "plan: phase '%s' takes %g s; needed is 0 or more",
                phase->name ? phase->name : "", phase->seconds);
    }
    return 0;
}

static int check_indexes(const sl_plan_request *q, sl_error *reterr)
{
    int r = 0;
    for (size_t i = 0; r >= 0 && i < q->n_units; i++) {
        const sl_plan_unit *u = &q->units[i];
        if (u->i_place >= q->n_places) {
            r = bad(reterr, "the place of unit", u->name, u->i_place, q->n_places);
        } else if (u->i_second != SL_PLAN_NONE && u->i_second >= q->n_places) {
            r = bad(reterr, "the second place of unit", u->name, u->i_second, q->n_places);
        }
    }
    for (size_t i = 0; r >= 0 && i < q->n_places; i++) {
        if (!is_duration(q->places[i].link_bytes_per_s)) {
            r = sl__fail(reterr, SL_EINVAL,
                    "plan: the link of place '%s' gives %g bytes/s; needed is 0 or more",
                    q->places[i].name ? q->places[i].name : "", q->places[i].link_bytes_per_s);
        }
    }
    for (size_t i = 0; r >= 0 && i < q->n_phases; i++) {
        r = check_phase(q, &q->phases[i], reterr);
    }
    for (size_t i = 0; r >= 0 && q->run && i < q->n_run; i++) {
        if (q->run[i] >= q->n_phases) {
            r = bad(reterr, "a phase of the run", "", q->run[i], q->n_phases);
        }
    }
    return r;
}

/* Everything at once, once for each step, must fit 64 bits. */
static int check_sums(const sl_plan_request *q, sl_error *reterr)
{
    uint64_t sum = 0;
    bool fits = true;
    for (size_t i = 0; i < q->n_units; i++) {
        fits = fits && sl__add_u64(sum, q->units[i].n_bytes, &sum);
        fits = fits && sl__add_u64(sum, q->units[i].second_bytes, &sum);
    }
    for (size_t i = 0; i < q->n_phases; i++) {
        for (size_t k = 0; k < q->phases[i].n_scratch; k++) {
            fits = fits && sl__add_u64(sum, q->phases[i].scratch[k].n_bytes, &sum);
        }
    }
    if (!fits || !sl__mul_u64(sum, SL_PLAN_N_RUNS, &sum)) {
        return sl__fail(
                reterr, SL_EINVAL, "plan: the bytes of units and scratch are more than 2^52");
    }
    return 0;
}

static int prepare(const sl_plan_request *q, sl__plan_input *in, sl_error *reterr)
{
    in->request = q;
    in->n_run = q->run ? q->n_run : q->n_phases;
    in->needs = sl__alloc(q->n_phases * q->n_units, 1);
    in->runs = sl__alloc(q->n_phases, 1);
    if (!in->needs || !in->runs) {
        return sl__fail_nomem(reterr, q->n_phases * q->n_units, "a plan");
    }
    for (size_t p = 0; p < q->n_phases; p++) {
        for (size_t i = 0; i < q->phases[p].n_units; i++) {
            in->needs[p * q->n_units + q->phases[p].units[i]] = 1;
        }
    }
    for (size_t i = 0; i < in->n_run; i++) {
        in->runs[sl__plan_phase_of(in, i)] = 1;
    }
    return 0;
}

static sl_plan *create(const sl__plan_input *in)
{
    sl_plan *plan = sl__alloc(1, sizeof *plan);
    if (!plan) {
        return NULL;
    }
    plan->n_places = in->request->n_places;
    plan->n_units = in->request->n_units;
    plan->n_steps = in->n_run;
    plan->placement = sl__alloc(plan->n_units, sizeof *plan->placement);
    plan->floors = sl__alloc(plan->n_places, sizeof *plan->floors);
    plan->peaks = sl__alloc(plan->n_steps * plan->n_places, sizeof *plan->peaks);
    plan->roles = sl__alloc(plan->n_steps * plan->n_units, sizeof *plan->roles);
    if (!plan->placement || !plan->floors || !plan->peaks || !plan->roles) {
        sl_plan_free(&plan);
    }
    return plan;
}

/* " or place A on X, B on Y": what would fit instead. */
static void say_placement(const sl__plan_input *in, const sl_plan *plan, char *buf, size_t n_buf)
{
    const sl_plan_request *q = in->request;
    size_t n = 0;
    buf[0] = '\0';
    for (size_t u = 0; plan->has_placement && u < q->n_units; u++) {
        if (plan->placement[u] == q->units[u].i_place) {
            continue;
        }
        int wrote = snprintf(buf + n, n_buf - n, "%s %s on %s", n == 0 ? ", or place" : ",",
                q->units[u].name, q->places[plan->placement[u]].name);
        if (wrote < 0 || (size_t)wrote >= n_buf - n) {
            snprintf(buf + n, n_buf - n, "%s", "");
            return;
        }
        n += (size_t)wrote;
    }
}

static void say_swap(const sl__plan_input *in, size_t i_place, char *buf, size_t n_buf)
{
    buf[0] = '\0';
    if (in->request->policy == SL_POLICY_KEEP) {
        snprintf(buf, n_buf, ", or use the policy swap, which needs %" PRIu64,
                sl__plan_floor_of(in, NULL, SL_POLICY_SWAP, i_place));
    }
}

/* Budgets beside the first one that are too small as well. */
static void say_others(
        const sl__plan_input *in, const sl_plan *plan, size_t i_first, char *buf, size_t n_buf)
{
    size_t n_short = 0;
    buf[0] = '\0';
    for (size_t i = i_first + 1; i < plan->n_places; i++) {
        n_short += plan->floors[i] > in->request->places[i].budget_bytes;
    }
    for (size_t i = i_first + 1; n_short == 1 && i < plan->n_places; i++) {
        if (plan->floors[i] > in->request->places[i].budget_bytes) {
            snprintf(buf, n_buf, " (and %.40s %" PRIu64 " bytes)", in->request->places[i].name,
                    plan->floors[i]);
        }
    }
    if (n_short > 1) {
        snprintf(buf, n_buf, " (and %zu other places more than their budgets)", n_short);
    }
}

static void refuse(const sl__plan_input *in, sl_plan *plan, size_t i_place)
{
    const sl_plan_place *place = &in->request->places[i_place];
    char budget[32];
    char needed[32];
    char placement[160];
    char swap[80];
    char others[96];
    say_placement(in, plan, placement, sizeof placement);
    say_swap(in, i_place, swap, sizeof swap);
    say_others(in, plan, i_place, others, sizeof others);
    sl__fail(&plan->refusal, SL_EBUDGET,
            "%.64s: the budget of %" PRIu64 " bytes (%s) is too small: policy %s needs %" PRIu64
            " bytes (%s); give that much%s%s%s",
            place->name, place->budget_bytes,
            sl__byte_text(place->budget_bytes, budget, sizeof budget),
            sl_policy_name(in->request->policy), plan->floors[i_place],
            sl__byte_text(plan->floors[i_place], needed, sizeof needed), others, swap, placement);
}

/* The peaks of a plan that does not fit are what each phase needs by itself. */
static void record_needs(const sl__plan_input *in, sl_plan *plan)
{
    for (size_t s = 0; s < plan->n_steps; s++) {
        size_t i_phase = sl__plan_phase_of(in, s);
        for (size_t i = 0; i < plan->n_places; i++) {
            plan->peaks[s * plan->n_places + i] = sl__plan_need(in, NULL, i_phase, i);
        }
        for (size_t u = 0; u < plan->n_units; u++) {
            plan->roles[s * plan->n_units + u] =
                    sl__plan_needs(in, i_phase, u) ? SL_PLAN_NEEDED : SL_PLAN_ABSENT;
        }
    }
}

static int solve(const sl__plan_input *in, sl_plan *plan)
{
    size_t i_short = SL_PLAN_NONE;
    for (size_t i = 0; i < plan->n_places; i++) {
        plan->floors[i] = sl__plan_floor_of(in, NULL, in->request->policy, i);
        if (i_short == SL_PLAN_NONE && plan->floors[i] > in->request->places[i].budget_bytes) {
            i_short = i;
        }
    }
    plan->is_feasible = i_short == SL_PLAN_NONE;
    plan->has_placement = sl__plan_find_placement(in, plan->placement);
    if (plan->is_feasible) {
        return sl__plan_schedule(in, plan);
    }
    record_needs(in, plan);
    refuse(in, plan, i_short);
    return 0;
}

int sl_plan_solve(const sl_plan_request *request, sl_plan **ret_plan, sl_error *reterr)
{
    sl__plan_input in = {0};
    sl_plan *plan = NULL;
    int r = check_counts(request, reterr);
    if (r >= 0) {
        r = check_indexes(request, reterr);
    }
    if (r >= 0) {
        r = check_sums(request, reterr);
    }
    if (r >= 0) {
        r = prepare(request, &in, reterr);
    }
    if (r >= 0) {
        plan = create(&in);
        r = plan ? solve(&in, plan) : SL_ENOMEM;
        if (r < 0) {
            sl_plan_free(&plan);
            r = sl__fail_nomem(reterr, sizeof *plan, "a plan");
        }
    }
    sl__free(in.needs);
    sl__free(in.runs);
    if (r >= 0) {
        *ret_plan = plan;
    }
    return r;
}

void sl_plan_free(sl_plan **plan)
{
    if (!plan || !*plan) {
        return;
    }
    sl__free((*plan)->placement);
    sl__free((*plan)->floors);
    sl__free((*plan)->peaks);
    sl__free((*plan)->roles);
    sl__free((*plan)->events);
    sl__free(*plan);
    *plan = NULL;
}

bool sl_plan_is_feasible(const sl_plan *plan)
{
    return plan->is_feasible;
}

int sl_plan_check(const sl_plan *plan, sl_error *reterr)
{
    if (plan->is_feasible) {
        return 0;
    }
    if (reterr) {
        *reterr = plan->refusal;
    }
    return plan->refusal.code;
}

uint64_t sl_plan_floor(const sl_plan *plan, size_t i_place)
{
    return plan->floors[i_place];
}

const size_t *sl_plan_placement(const sl_plan *plan)
{
    return plan->has_placement ? plan->placement : NULL;
}

size_t sl_plan_n_steps(const sl_plan *plan)
{
    return plan->n_steps;
}

sl_plan_bytes sl_plan_peak(const sl_plan *plan, size_t i_step, size_t i_place)
{
    return plan->peaks[i_step * plan->n_places + i_place];
}

sl_plan_bytes sl_plan_peak_of_run(const sl_plan *plan, size_t i_place)
{
    sl_plan_bytes largest = {{0}, 0};
    for (size_t s = 0; s < plan->n_steps; s++) {
        sl_plan_bytes peak = sl_plan_peak(plan, s, i_place);
        largest = peak.total > largest.total ? peak : largest;
    }
    return largest;
}

sl_plan_role sl_plan_unit_role(const sl_plan *plan, size_t i_step, size_t i_unit)
{
    return (sl_plan_role)plan->roles[i_step * plan->n_units + i_unit];
}

size_t sl_plan_n_events(const sl_plan *plan)
{
    return plan->n_events;
}

const sl_plan_event *sl_plan_event_at(const sl_plan *plan, size_t i_event)
{
    return &plan->events[i_event];
}

uint64_t sl_plan_bytes_moved(const sl_plan *plan)
{
    return plan->bytes_moved;
}

double sl_plan_seconds(const sl_plan *plan)
{
    return plan->seconds;
}
