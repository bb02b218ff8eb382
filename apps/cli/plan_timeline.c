/*
 * Weights take their memory from the begin of their load to the moment they leave, scratch from the begin of its phase,
 * waiting included, to the end; with keep nothing goes. That is what the planner's peaks count.
 */
#include "plan_timeline.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* Part of a step over which its moves are spread where there are no times. */
#define MOVES_SHARE 0.6

static int add_span(plan_timeline *t, plan_span span)
{
    if (span.n_bytes == 0 || span.end <= span.begin) {
        return 0;
    }
    if (!sl__grow((void **)&t->spans, &t->cap_spans, t->n_spans + 1, sizeof *t->spans)) {
        return SL_ENOMEM;
    }
    t->spans[t->n_spans] = span;
    t->n_spans++;
    return 0;
}

static int add_bar(plan_timeline *t, plan_bar bar)
{
    if (!sl__grow((void **)&t->bars, &t->cap_bars, t->n_bars + 1, sizeof *t->bars)) {
        return SL_ENOMEM;
    }
    t->bars[t->n_bars] = bar;
    t->n_bars++;
    return 0;
}

static bool has_times(const plan_view *view)
{
    for (size_t i = 0; i < sl_plan_n_steps(view->plan); i++) {
        if (plan_step_phase(view, i)->seconds <= 0) {
            return false;
        }
    }
    return sl_plan_is_feasible(view->plan);
}

/* A step begins when the one before has computed. */
static void find_begins(plan_timeline *t, const plan_view *view)
{
    size_t n_steps = sl_plan_n_steps(view->plan);
    for (size_t i = 0; t->is_in_steps && i <= n_steps; i++) {
        t->begins[i] = (double)i;
    }
    for (size_t i = 0; !t->is_in_steps && i < sl_plan_n_events(view->plan); i++) {
        const sl_plan_event *e = sl_plan_event_at(view->plan, i);
        if (e->kind == SL_PLAN_COMPUTE) {
            t->begins[e->i_step + 1] = e->end_s;
        }
    }
    t->end = t->begins[n_steps];
}

static size_t count_loads(const plan_view *view, size_t i_step)
{
    size_t n = 0;
    for (size_t i = 0; i < sl_plan_n_events(view->plan); i++) {
        const sl_plan_event *e = sl_plan_event_at(view->plan, i);
        n += e->kind == SL_PLAN_LOAD && e->i_step == i_step;
    }
    return n;
}

static int add_bars(plan_timeline *t, const plan_view *view)
{
    int r = 0;
    size_t i_load = 0;
    size_t i_last_step = SIZE_MAX;
    double share = 0;
    for (size_t i = 0; r >= 0 && i < sl_plan_n_events(view->plan); i++) {
        const sl_plan_event *e = sl_plan_event_at(view->plan, i);
        plan_bar bar = {
                e->kind, e->i_step, e->i_unit, e->i_place, e->n_bytes, e->begin_s, e->end_s};
        if (t->is_in_steps && e->i_step != i_last_step) {
            i_last_step = e->i_step;
            i_load = 0;
            share = MOVES_SHARE / (double)(count_loads(view, e->i_step) + 1);
        }
        if (t->is_in_steps) {
            bar.begin = (double)e->i_step + (e->kind == SL_PLAN_LOAD ? share * (double)i_load : 0);
            bar.end = e->kind == SL_PLAN_LOAD ? bar.begin + share : (double)e->i_step + 1;
            bar.end = e->kind == SL_PLAN_EVICT ? bar.begin : bar.end;
            i_load += e->kind == SL_PLAN_LOAD;
        }
        if (!t->is_in_steps || e->kind != SL_PLAN_STALL) {
            r = add_bar(t, bar);
        }
    }
    return r;
}

/* A unit lies there from each of its loads, or from the begin, to when it leaves. */
static int add_weights(plan_timeline *t, const plan_view *view, double *since)
{
    int r = 0;
    size_t n_units = view->request->n_units;
    for (size_t u = 0; u < n_units; u++) {
        since[u] = plan_starts_with(view, u) ? 0 : -1;
    }
    for (size_t i = 0; r >= 0 && i < t->n_bars; i++) {
        const plan_bar *bar = &t->bars[i];
        if (bar->kind == SL_PLAN_LOAD) {
            since[bar->i_unit] = bar->begin;
        } else if (bar->kind == SL_PLAN_EVICT && since[bar->i_unit] >= 0) {
            plan_span span = {
                    bar->i_place, bar->i_unit, bar->n_bytes, since[bar->i_unit], bar->begin};
            since[bar->i_unit] = -1;
            r = add_span(t, span);
        }
    }
    for (size_t u = 0; r >= 0 && u < n_units; u++) {
        const sl_plan_unit *unit = &view->request->units[u];
        if (since[u] >= 0) {
            r = add_span(t, (plan_span){unit->i_place, u, unit->n_bytes, since[u], t->end});
        }
    }
    return r;
}

static bool has_run_before(const plan_view *view, size_t i_step)
{
    for (size_t i = 0; i < i_step; i++) {
        if (plan_step_phase(view, i) == plan_step_phase(view, i_step)) {
            return true;
        }
    }
    return false;
}

/* With keep, scratch stays from its first use on, and a phase that runs again uses it again. */
static int add_scratch(plan_timeline *t, const plan_view *view)
{
    int r = 0;
    bool keeps = view->request->policy == SL_POLICY_KEEP;
    for (size_t i = 0; r >= 0 && i < sl_plan_n_steps(view->plan); i++) {
        const sl_plan_phase *phase = plan_step_phase(view, i);
        if (keeps && has_run_before(view, i)) {
            continue;
        }
        bool was_there = keeps && view->request->is_cyclic;
        double begin = was_there ? 0 : t->begins[i];
        double end = keeps ? t->end : t->begins[i + 1];
        for (size_t k = 0; r >= 0 && k < phase->n_scratch; k++) {
            const sl_plan_scratch *s = &phase->scratch[k];
            size_t i_layer = view->request->n_units + (size_t)s->kind;
            r = add_span(t, (plan_span){s->i_place, i_layer, s->n_bytes, begin, end});
        }
    }
    return r;
}

/* Of a refused plan: every step with the units that it needs, or, with keep, those of the steps before too. */
static int add_needs(plan_timeline *t, const plan_view *view)
{
    int r = 0;
    bool keeps = view->request->policy == SL_POLICY_KEEP;
    for (size_t u = 0; r >= 0 && u < view->request->n_units; u++) {
        const sl_plan_unit *unit = &view->request->units[u];
        for (size_t i = 0; r >= 0 && i < sl_plan_n_steps(view->plan); i++) {
            if (sl_plan_unit_role(view->plan, i, u) != SL_PLAN_NEEDED) {
                continue;
            }
            double end = keeps ? t->end : t->begins[i + 1];
            r = add_span(t, (plan_span){unit->i_place, u, unit->n_bytes, t->begins[i], end});
            if (keeps) {
                break;
            }
        }
    }
    return r;
}

int plan_timeline_init(plan_timeline *t, const plan_view *view, sl_error *reterr)
{
    size_t n_units = view->request->n_units;
    memset(t, 0, sizeof *t);
    t->n_layers = n_units + SL_MEM_KIND_COUNT;
    t->is_in_steps = !has_times(view);
    t->begins = sl__alloc(sl_plan_n_steps(view->plan) + 1, sizeof *t->begins);
    double *since = sl__alloc(n_units, sizeof *since);
    int r = t->begins && since ? 0 : SL_ENOMEM;
    if (r >= 0) {
        find_begins(t, view);
        r = add_bars(t, view);
    }
    if (r >= 0) {
        r = sl_plan_is_feasible(view->plan) ? add_weights(t, view, since) : add_needs(t, view);
    }
    if (r >= 0) {
        r = add_scratch(t, view);
    }
    sl__free(since);
    if (r < 0) {
        plan_timeline_done(t);
        return sl__fail_nomem(reterr, sizeof *t, "a picture of the plan");
    }
    return 0;
}

void plan_timeline_done(plan_timeline *t)
{
    sl__free(t->spans);
    sl__free(t->bars);
    sl__free(t->begins);
    memset(t, 0, sizeof *t);
}

/* A span's begin or end. */
typedef struct edge {
    double time;
    const plan_span *span;
    bool is_begin;
} edge;

static int compare_edges(const void *a, const void *b)
{
    const edge *x = a;
    const edge *y = b;
    if (x->time < y->time || x->time > y->time) {
        return x->time < y->time ? -1 : 1;
    }
    return (int)x->is_begin - (int)y->is_begin;
}

static size_t collect_edges(const plan_timeline *t, size_t i_place, edge *edges)
{
    size_t n = 0;
    for (size_t i = 0; i < t->n_spans; i++) {
        const plan_span *span = &t->spans[i];
        if (span->i_place == i_place) {
            edges[n] = (edge){span->begin, span, true};
            edges[n + 1] = (edge){span->end, span, false};
            n += 2;
        }
    }
    qsort(edges, n, sizeof *edges, compare_edges);
    return n;
}

uint64_t plan_levels_bottom(const plan_levels *l, size_t i, size_t i_layer)
{
    return i_layer > 0 ? l->tops[i * l->n_layers + i_layer - 1] : 0;
}

uint64_t plan_levels_bytes(const plan_levels *l, size_t i, size_t i_layer)
{
    return l->tops[i * l->n_layers + i_layer] - plan_levels_bottom(l, i, i_layer);
}

uint64_t plan_levels_total(const plan_levels *l, size_t i)
{
    return l->tops[(i + 1) * l->n_layers - 1];
}

static void add_interval(plan_levels *l, double begin, double end, const uint64_t *now)
{
    uint64_t sum = 0;
    l->times[l->n] = begin;
    l->times[l->n + 1] = end;
    for (size_t k = 0; k < l->n_layers; k++) {
        sum += now[k];
        l->tops[l->n * l->n_layers + k] = sum;
    }
    l->most = sum > l->most ? sum : l->most;
    l->n++;
}

/* One interval between two neighbouring times of the edges. */
static void sweep(plan_levels *l, const edge *edges, size_t n_edges, double end, uint64_t *now)
{
    for (size_t i = 0; i < n_edges;) {
        double time = edges[i].time;
        for (; i < n_edges && edges[i].time <= time; i++) {
            const plan_span *span = edges[i].span;
            uint64_t *layer = &now[span->i_layer];
            *layer = edges[i].is_begin ? *layer + span->n_bytes : *layer - span->n_bytes;
        }
        double next = i < n_edges ? edges[i].time : end;
        if (next > time) {
            add_interval(l, time, next, now);
        }
    }
}

int plan_levels_init(plan_levels *l, const plan_timeline *t, size_t i_place, sl_error *reterr)
{
    memset(l, 0, sizeof *l);
    l->n_layers = t->n_layers;
    size_t cap = 2 * t->n_spans + 1;
    edge *edges = sl__alloc(cap, sizeof *edges);
    uint64_t *now = sl__alloc(l->n_layers, sizeof *now);
    size_t n_edges = edges ? collect_edges(t, i_place, edges) : 0;
    l->times = sl__alloc(n_edges + 2, sizeof *l->times);
    l->tops = sl__alloc((n_edges + 1) * l->n_layers, sizeof *l->tops);
    bool has_memory = edges && now && l->times && l->tops;
    if (has_memory) {
        sweep(l, edges, n_edges, t->end, now);
    }
    sl__free(edges);
    sl__free(now);
    if (!has_memory) {
        plan_levels_done(l);
        return sl__fail_nomem(reterr, cap * sizeof *edges, "a picture of the plan");
    }
    return 0;
}

void plan_levels_done(plan_levels *l)
{
    sl__free(l->times);
    sl__free(l->tops);
    memset(l, 0, sizeof *l);
}
