/*
 * Everything in the file is checked before it is used: it may be any JSON, of any size, and events come in the order in
 * which they ended. The latest run that has the phases of the plan is shown; without one, all that there is.
 */
#include "plan_overlay.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "os/os_file.h"

#define PLACES_MAX  64
#define TIME_MAX_US 1e15 /* 30 years */

typedef struct reader {
    const plan_view *view;
    plan_actual *actual;
    char path[300]; /* for messages */
    size_t n_tids;
    json_int_t tids[PLACES_MAX];   /* of the places of the trace */
    size_t i_place_of[PLACES_MAX]; /* place of the plan, or SL_PLAN_NONE */
} reader;

static int out_of_memory(sl_error *reterr)
{
    return sl__fail_nomem(reterr, 0, "a trace");
}

static int no_trace(const reader *r, sl_error *reterr, const char *what)
{
    return sl__fail(reterr, SL_EFORMAT,
            "--overlay %s: %s; needed is a file that 'sluice say --trace' wrote", r->path, what);
}

static int load_json(
        const reader *r, const char *text, size_t n, json_t **ret_root, sl_error *reterr)
{
    json_error_t why;
    json_t *root = json_loadb(text, n, JSON_REJECT_DUPLICATES, &why);
    if (!root) {
        char quoted[120];
        char what[200];
        sl__quote(quoted, sizeof quoted, why.text, strlen(why.text));
        snprintf(what, sizeof what, "no JSON (line %d: %s)", why.line, quoted);
        return no_trace(r, reterr, what);
    }
    *ret_root = root;
    return 0;
}

static const char *string_at(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

static bool bytes_at(const json_t *object, const char *key, uint64_t *ret)
{
    const json_t *v = json_object_get(object, key);
    if (!json_is_integer(v) || json_integer_value(v) < 0) {
        return false;
    }
    *ret = (uint64_t)json_integer_value(v);
    return true;
}

/* A time or duration in microseconds. */
static bool seconds_at(const json_t *event, const char *key, double *ret)
{
    const json_t *v = json_object_get(event, key);
    double us = json_number_value(v);
    if (!json_is_number(v) || !isfinite(us) || us < 0 || us > TIME_MAX_US) {
        return false;
    }
    *ret = us / 1e6;
    return true;
}

static size_t find_place(const plan_view *view, const char *name)
{
    for (size_t i = 0; i < view->request->n_places; i++) {
        if (strcmp(plan_place_name(view, i), name) == 0) {
            return i;
        }
    }
    return SL_PLAN_NONE;
}

static size_t find_unit(const plan_view *view, const char *name)
{
    for (size_t i = 0; i < view->request->n_units; i++) {
        if (strcmp(plan_unit_name(view, i), name) == 0) {
            return i;
        }
    }
    return SL_PLAN_NONE;
}

static int read_place(reader *r, const json_t *place, sl_error *reterr)
{
    const char *name = string_at(place, "name");
    const json_t *tid = json_object_get(place, "tid");
    uint64_t budget = 0;
    if (!name || !json_is_integer(tid) || r->n_tids == PLACES_MAX) {
        return no_trace(r, reterr, "places without name or tid, or too many");
    }
    size_t i = find_place(r->view, name);
    r->tids[r->n_tids] = json_integer_value(tid);
    r->i_place_of[r->n_tids] = i;
    r->n_tids++;
    if (i != SL_PLAN_NONE) {
        r->actual->places[i].is_known = true;
        /* null = no limit */
        bool has_budget = bytes_at(place, "budget_bytes", &budget);
        r->actual->places[i].budget_bytes = has_budget ? budget : PLAN_NO_LIMIT;
    }
    return 0;
}

static int read_head(reader *r, const json_t *root, sl_error *reterr)
{
    const json_t *other = json_object_get(root, "otherData");
    const char *format = string_at(other, "format");
    const char *policy = string_at(other, "policy");
    const json_t *places = json_object_get(other, "places");
    if (!format || strcmp(format, "sluice-trace") != 0 || !json_is_array(places)) {
        return no_trace(r, reterr, "JSON without the otherData of a trace of Sluice");
    }
    if (json_integer_value(json_object_get(other, "version")) != 1) {
        return no_trace(r, reterr, "a trace of another version than 1");
    }
    snprintf(r->actual->policy, sizeof r->actual->policy, "%s", policy ? policy : "?");
    (void)bytes_at(other, "dropped_events", &r->actual->n_dropped);
    int result = 0;
    for (size_t i = 0; result >= 0 && i < json_array_size(places); i++) {
        result = read_place(r, json_array_get(places, i), reterr);
    }
    return result;
}

/* Place of the plan on whose track an event is. */
static size_t place_of_event(const reader *r, const json_t *event)
{
    const json_t *tid = json_object_get(event, "tid");
    for (size_t i = 0; json_is_integer(tid) && i < r->n_tids; i++) {
        if (r->tids[i] == json_integer_value(tid)) {
            return r->i_place_of[i];
        }
    }
    return SL_PLAN_NONE;
}

static int add_level(reader *r, const json_t *event, double begin_s, sl_error *reterr)
{
    const json_t *args = json_object_get(event, "args");
    size_t i_place = place_of_event(r, event);
    plan_actual_level level = {.begin_s = begin_s};
    for (int k = 0; k < SL_MEM_KIND_COUNT; k++) {
        if (!bytes_at(args, sl_mem_kind_name((sl_mem_kind)k), &level.used.kind[k]) ||
                !sl__add_u64(level.used.total, level.used.kind[k], &level.used.total)) {
            return no_trace(r, reterr, "a memory event without its bytes");
        }
    }
    if (i_place == SL_PLAN_NONE) {
        return 0;
    }
    plan_actual_place *place = &r->actual->places[i_place];
    if (!sl__grow((void **)&place->levels, &place->cap_levels, place->n_levels + 1,
                sizeof *place->levels)) {
        return out_of_memory(reterr);
    }
    place->levels[place->n_levels] = level;
    place->n_levels++;
    return 0;
}

static plan_actual_kind kind_of(const char *category)
{
    static const char *const names[PLAN_ACTUAL_KIND_COUNT] = {
            [PLAN_ACTUAL_LOAD] = "load",
            [PLAN_ACTUAL_EVICT] = "evict",
            [PLAN_ACTUAL_FAIL] = "fail",
            [PLAN_ACTUAL_STALL] = "stall",
            [PLAN_ACTUAL_PHASE] = "phase",
    };
    int k = 0;
    while (k < PLAN_ACTUAL_KIND_COUNT && strcmp(names[k], category) != 0) {
        k++;
    }
    return (plan_actual_kind)k;
}

static int add_bar(
        reader *r, const json_t *event, plan_actual_kind kind, double begin_s, sl_error *reterr)
{
    plan_actual *a = r->actual;
    const char *name = string_at(event, "name");
    double seconds = 0;
    uint64_t n_bytes = 0;
    if (!name || (kind != PLAN_ACTUAL_FAIL && !seconds_at(event, "dur", &seconds))) {
        return no_trace(r, reterr, "an event without name or duration");
    }
    (void)bytes_at(json_object_get(event, "args"), "bytes", &n_bytes);
    char *copy = sl__strndup(name, strlen(name));
    if (!copy || !sl__grow((void **)&a->bars, &a->cap_bars, a->n_bars + 1, sizeof *a->bars)) {
        sl__free(copy);
        return out_of_memory(reterr);
    }
    bool is_move =
            kind == PLAN_ACTUAL_LOAD || kind == PLAN_ACTUAL_EVICT || kind == PLAN_ACTUAL_FAIL;
    a->bars[a->n_bars] = (plan_actual_bar){.kind = kind,
            .name = copy,
            .i_unit = is_move ? find_unit(r->view, name) : SL_PLAN_NONE,
            .i_place = is_move ? place_of_event(r, event) : SL_PLAN_NONE,
            .n_bytes = n_bytes,
            .begin_s = begin_s,
            .end_s = begin_s + seconds};
    a->n_bars++;
    return 0;
}

static int read_event(reader *r, const json_t *event, sl_error *reterr)
{
    const char *category = string_at(event, "cat");
    double begin_s = 0;
    if (!category) {
        return 0; /* names of tracks */
    }
    bool is_memory = strcmp(category, "memory") == 0;
    plan_actual_kind kind = kind_of(category);
    if (!is_memory && kind == PLAN_ACTUAL_KIND_COUNT) {
        return 0; /* leases, and what later versions may add */
    }
    if (!seconds_at(event, "ts", &begin_s)) {
        return no_trace(r, reterr, "an event whose time is no time");
    }
    return is_memory ? add_level(r, event, begin_s, reterr)
                     : add_bar(r, event, kind, begin_s, reterr);
}

static int read_events(reader *r, const json_t *root, sl_error *reterr)
{
    const json_t *events = json_object_get(root, "traceEvents");
    if (!json_is_array(events)) {
        return no_trace(r, reterr, "JSON without traceEvents");
    }
    int result = 0;
    for (size_t i = 0; result >= 0 && i < json_array_size(events); i++) {
        result = read_event(r, json_array_get(events, i), reterr);
    }
    return result;
}

static int compare_begins(const void *a, const void *b)
{
    const plan_actual_bar *x = a;
    const plan_actual_bar *y = b;
    return (x->begin_s > y->begin_s) - (x->begin_s < y->begin_s);
}

static int compare_levels(const void *a, const void *b)
{
    const plan_actual_level *x = a;
    const plan_actual_level *y = b;
    return (x->begin_s > y->begin_s) - (x->begin_s < y->begin_s);
}

/* Phases of the trace, in order of time, by index of their bars. */
static size_t collect_phases(const plan_actual *a, size_t *ret)
{
    size_t n = 0;
    for (size_t i = 0; i < a->n_bars; i++) {
        if (a->bars[i].kind == PLAN_ACTUAL_PHASE) {
            ret[n] = i;
            n++;
        }
    }
    return n;
}

static bool is_run(const reader *r, const size_t *phases)
{
    for (size_t i = 0; i < sl_plan_n_steps(r->view->plan); i++) {
        if (strcmp(r->actual->bars[phases[i]].name, plan_step_name(r->view, i)) != 0) {
            return false;
        }
    }
    return true;
}

/* Part of the trace that is shown. */
typedef struct window {
    double begin_s;
    double end_s;
} window;

static int find_window(reader *r, window *ret, sl_error *reterr)
{
    plan_actual *a = r->actual;
    size_t n_steps = sl_plan_n_steps(r->view->plan);
    size_t *phases = sl__alloc(a->n_bars, sizeof *phases);
    if (!phases) {
        return out_of_memory(reterr);
    }
    size_t n = collect_phases(a, phases);
    size_t first = 0;
    size_t last = n;
    for (size_t i = 0; i + n_steps <= n; i++) {
        if (is_run(r, phases + i)) {
            first = i;
            last = i + n_steps;
            a->follows = true;
            a->n_runs++;
        }
    }
    double before_s = 0;
    if (n > 0) {
        before_s = first > 0 ? a->bars[phases[first - 1]].end_s : 0;
        ret->begin_s = a->bars[phases[first]].begin_s;
        ret->end_s = 0;
    }
    for (size_t i = first; i < last; i++) {
        double end_s = a->bars[phases[i]].end_s;
        ret->end_s = end_s > ret->end_s ? end_s : ret->end_s;
    }
    /* What was fetched ahead of the run belongs to it. */
    for (size_t i = 0; i < a->n_bars; i++) {
        const plan_actual_bar *b = &a->bars[i];
        if (b->kind == PLAN_ACTUAL_LOAD && b->begin_s >= before_s && b->begin_s < ret->begin_s) {
            ret->begin_s = b->begin_s;
        }
    }
    sl__free(phases);
    return n > 0 ? 0 : no_trace(r, reterr, "a trace without a phase that ended");
}

/* Times become those of the window; what lies outside goes. */
static void cut_bars(plan_actual *a, window w)
{
    size_t n = 0;
    for (size_t i = 0; i < a->n_bars; i++) {
        plan_actual_bar b = a->bars[i];
        bool is_inside = b.end_s >= w.begin_s && b.begin_s <= w.end_s;
        if (!is_inside) {
            sl__free(b.name);
            continue;
        }
        b.begin_s = b.begin_s > w.begin_s ? b.begin_s - w.begin_s : 0;
        b.end_s = (b.end_s < w.end_s ? b.end_s : w.end_s) - w.begin_s;
        a->bars[n] = b;
        n++;
    }
    a->n_bars = n;
}

/* The last level before the window is what it begins with. */
static void cut_levels(plan_actual_place *place, window w)
{
    size_t n = 0;
    for (size_t i = 0; i < place->n_levels; i++) {
        plan_actual_level level = place->levels[i];
        if (level.begin_s > w.end_s) {
            break;
        }
        bool is_before = level.begin_s <= w.begin_s;
        level.begin_s = is_before ? 0 : level.begin_s - w.begin_s;
        n = is_before ? 0 : n;
        place->levels[n] = level;
        n++;
    }
    place->n_levels = n;
    for (size_t i = 0; i < n; i++) {
        if (place->levels[i].used.total > place->peak.total) {
            place->peak = place->levels[i].used;
            place->peak_s = place->levels[i].begin_s;
        }
    }
}

static int arrange(reader *r, sl_error *reterr)
{
    plan_actual *a = r->actual;
    window w = {0, 0};
    if (a->n_bars > 1) {
        qsort(a->bars, a->n_bars, sizeof *a->bars, compare_begins);
    }
    int result = find_window(r, &w, reterr);
    if (result < 0) {
        return result;
    }
    cut_bars(a, w);
    for (size_t i = 0; i < a->n_places; i++) {
        plan_actual_place *place = &a->places[i];
        if (place->n_levels > 1) {
            qsort(place->levels, place->n_levels, sizeof *place->levels, compare_levels);
        }
        cut_levels(place, w);
    }
    a->end_s = w.end_s - w.begin_s;
    return 0;
}

int plan_actual_parse(const char *text, size_t n_bytes, const char *path, const plan_view *view,
        plan_actual *ret_actual, sl_error *reterr)
{
    plan_actual actual = {.n_places = view->request->n_places};
    reader r = {.view = view, .actual = &actual};
    json_t *root = NULL;
    sl__quote(r.path, sizeof r.path, path, strlen(path));
    actual.places = sl__alloc(actual.n_places, sizeof *actual.places);
    int result =
            actual.places ? load_json(&r, text, n_bytes, &root, reterr) : out_of_memory(reterr);
    if (result >= 0) {
        result = read_head(&r, root, reterr);
    }
    if (result >= 0) {
        result = read_events(&r, root, reterr);
    }
    if (result >= 0) {
        result = arrange(&r, reterr);
    }
    json_decref(root);
    if (result < 0) {
        plan_actual_done(&actual);
        return result;
    }
    *ret_actual = actual;
    return 0;
}

int plan_actual_read(
        const char *path, const plan_view *view, plan_actual *ret_actual, sl_error *reterr)
{
    char *text = NULL;
    size_t n = 0;
    int result = sl__read_file(path, "trace", PLAN_TRACE_MAX_BYTES, &text, &n, reterr);
    if (result >= 0) {
        result = plan_actual_parse(text, n, path, view, ret_actual, reterr);
    }
    sl__free(text);
    return result;
}

void plan_actual_done(plan_actual *a)
{
    for (size_t i = 0; i < a->n_bars; i++) {
        sl__free(a->bars[i].name);
    }
    for (size_t i = 0; a->places && i < a->n_places; i++) {
        sl__free(a->places[i].levels);
    }
    sl__free(a->bars);
    sl__free(a->places);
    memset(a, 0, sizeof *a);
}
