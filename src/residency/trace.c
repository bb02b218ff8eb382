/*
 * An event is recorded when it ends, with both of its times: the ring then never holds half of one. The
 * format wants microseconds; fractions keep the nanoseconds.
 */
#include "residency/trace.h"

#include <string.h>

#include "base/mem.h"

/* Tracks of what does not happen on a place. */
enum {
    TRACK_PHASE,
    TRACK_LEASE,
    TRACK_STALL,
    TRACK_PLACE
};

int sl__trace_init(sl__trace *trace, size_t cap, size_t n_places, sl_error *reterr)
{
    memset(trace, 0, sizeof *trace);
    trace->events = sl__alloc(cap, sizeof *trace->events);
    trace->used = sl__alloc(cap, sizeof *trace->used);
    trace->last = sl__alloc(n_places, sizeof *trace->last);
    if (!trace->events || !trace->used || !trace->last) {
        sl__trace_done(trace);
        return sl__fail_nomem(
                reterr, cap * (sizeof *trace->events + sizeof *trace->used), "the trace");
    }
    trace->n_places = n_places;
    trace->cap = cap;
    return 0;
}

void sl__trace_done(sl__trace *trace)
{
    sl__free(trace->events);
    sl__free(trace->used);
    sl__free(trace->last);
    memset(trace, 0, sizeof *trace);
}

void sl__trace_add(sl__trace *trace, sl__trace_event event)
{
    if (trace->cap > 0) {
        trace->events[trace->n_seen % trace->cap] = event;
        trace->n_seen++;
    }
}

void sl__trace_memory(sl__trace *trace, const sl__ledger *ledger, uint64_t now_ns)
{
    size_t n_places = trace->n_places < ledger->n_places ? trace->n_places : ledger->n_places;
    for (size_t i = 0; trace->cap > 0 && i < n_places; i++) {
        sl__trace_used *last = &trace->last[i];
        const sl__account *a = &ledger->places[i];
        if (memcmp(last->kind, a->used, sizeof last->kind) == 0) {
            continue;
        }
        memcpy(last->kind, a->used, sizeof last->kind);
        trace->used[trace->n_seen % trace->cap] = *last;
        sl__trace_add(trace, (sl__trace_event){.kind = SL__TRACE_MEMORY,
                                     .name = a->name,
                                     .i_track = i,
                                     .begin_ns = now_ns,
                                     .end_ns = now_ns});
    }
}

size_t sl__trace_n(const sl__trace *trace)
{
    return trace->n_seen < trace->cap ? (size_t)trace->n_seen : trace->cap;
}

static size_t slot_of(const sl__trace *trace, size_t i)
{
    uint64_t first = trace->n_seen - sl__trace_n(trace);
    return (size_t)((first + i) % trace->cap);
}

const sl__trace_event *sl__trace_at(const sl__trace *trace, size_t i)
{
    return &trace->events[slot_of(trace, i)];
}

const char *sl__trace_kind_name(sl__trace_kind kind)
{
    static const char *const names[SL__TRACE_KIND_COUNT] = {
            [SL__TRACE_LOAD] = "load",
            [SL__TRACE_EVICT] = "evict",
            [SL__TRACE_LEASE] = "lease",
            [SL__TRACE_STALL] = "stall",
            [SL__TRACE_PHASE] = "phase",
            [SL__TRACE_FAIL] = "fail",
            [SL__TRACE_MEMORY] = "memory",
    };
    return (unsigned)kind < SL__TRACE_KIND_COUNT ? names[kind] : "unknown";
}

static size_t track_of(const sl__trace_event *e)
{
    switch (e->kind) {
    case SL__TRACE_PHASE:
        return TRACK_PHASE;
    case SL__TRACE_LEASE:
        return TRACK_LEASE;
    case SL__TRACE_STALL:
        return TRACK_STALL;
    case SL__TRACE_LOAD:
    case SL__TRACE_EVICT:
    case SL__TRACE_FAIL:
    case SL__TRACE_MEMORY:
    case SL__TRACE_KIND_COUNT:
        break;
    }
    return TRACK_PLACE + e->i_track;
}

static void begin_record(sl__json *j, const char *name, const char *ph, size_t track)
{
    sl__json_object(j);
    sl__json_put_cstr(j, "name", name);
    sl__json_put_cstr(j, "ph", ph);
    sl__json_put_u64(j, "pid", 1);
    sl__json_put_u64(j, "tid", track);
}

static void name_track(sl__json *j, size_t track, const char *name)
{
    begin_record(j, "thread_name", "M", track);
    sl__json_key(j, "args");
    sl__json_object(j);
    sl__json_put_cstr(j, "name", name);
    sl__json_end(j);
    sl__json_end(j);
}

static void write_kinds(sl__json *j, const uint64_t *kinds)
{
    for (int k = 0; k < SL_MEM_KIND_COUNT; k++) {
        sl__json_key(j, sl_mem_kind_name((sl_mem_kind)k));
        sl__json_u64(j, kinds[k]);
    }
}

static void write_start(sl__json *j, const sl__trace_event *e, uint64_t origin_ns)
{
    sl__json_put_cstr(j, "cat", sl__trace_kind_name(e->kind));
    sl__json_put_f64(j, "ts", (double)(e->begin_ns - origin_ns) / 1000.0);
}

/* A counter: the viewer draws the kinds stacked. */
static void write_memory(
        sl__json *j, const sl__trace_event *e, const sl__trace_used *used, uint64_t origin_ns)
{
    begin_record(j, e->name, "C", track_of(e));
    write_start(j, e, origin_ns);
    sl__json_key(j, "args");
    sl__json_object(j);
    write_kinds(j, used->kind);
    sl__json_end(j);
    sl__json_end(j);
}

static void write_event(sl__json *j, const sl__trace_event *e, uint64_t origin_ns)
{
    bool is_instant = e->kind == SL__TRACE_FAIL;
    begin_record(j, e->name, is_instant ? "i" : "X", track_of(e));
    write_start(j, e, origin_ns);
    if (is_instant) {
        sl__json_put_cstr(j, "s", "t");
    } else {
        sl__json_put_f64(j, "dur", (double)(e->end_ns - e->begin_ns) / 1000.0);
    }
    if (e->n_bytes > 0) {
        sl__json_key(j, "args");
        sl__json_object(j);
        sl__json_put_u64(j, "bytes", e->n_bytes);
        if (e->route) {
            sl__json_put_cstr(j, "route", e->route);
            sl__json_put_u64(j, "stalls", e->n_stalls);
        }
        sl__json_end(j);
    }
    sl__json_end(j);
}

static void write_place(sl__json *j, const sl__account *a, size_t track)
{
    sl__json_object(j);
    sl__json_put_cstr(j, "name", a->name);
    sl__json_put_u64(j, "tid", track);
    /* No limit is null; and readers of JSON have signed numbers. */
    sl__json_put_u64_or_null(j, "budget_bytes", a->budget_bytes != UINT64_MAX, a->budget_bytes);
    sl__json_key(j, "peak_bytes");
    sl__json_object(j);
    write_kinds(j, a->peak);
    sl__json_put_u64(j, "total", a->peak_total);
    sl__json_end(j);
    sl__json_end(j);
}

static void write_other_data(
        sl__json *j, const sl__trace *trace, const sl__ledger *ledger, sl_policy policy)
{
    sl__json_key(j, "otherData");
    sl__json_object(j);
    sl__json_put_cstr(j, "format", "sluice-trace");
    sl__json_put_u64(j, "version", 1);
    sl__json_put_cstr(j, "policy", sl_policy_name(policy));
    sl__json_put_u64(j, "dropped_events", trace->n_seen - sl__trace_n(trace));
    sl__json_key(j, "places");
    sl__json_array(j);
    for (size_t i = 0; i < ledger->n_places; i++) {
        write_place(j, &ledger->places[i], TRACK_PLACE + i);
    }
    sl__json_end(j);
    sl__json_end(j);
}

static uint64_t first_begin(const sl__trace *trace)
{
    uint64_t origin_ns = UINT64_MAX;
    for (size_t i = 0; i < sl__trace_n(trace); i++) {
        uint64_t begin_ns = sl__trace_at(trace, i)->begin_ns;
        origin_ns = begin_ns < origin_ns ? begin_ns : origin_ns;
    }
    return origin_ns;
}

void sl__trace_json(const sl__trace *trace, const sl__ledger *ledger, sl_policy policy, sl__json *j)
{
    static const char *const tracks[TRACK_PLACE] = {"phases", "leases", "stalls"};
    uint64_t origin_ns = first_begin(trace);
    sl__json_object(j);
    sl__json_key(j, "traceEvents");
    sl__json_array(j);
    for (size_t i = 0; i < TRACK_PLACE; i++) {
        name_track(j, i, tracks[i]);
    }
    for (size_t i = 0; i < ledger->n_places; i++) {
        name_track(j, TRACK_PLACE + i, ledger->places[i].name);
    }
    for (size_t i = 0; i < sl__trace_n(trace); i++) {
        const sl__trace_event *e = sl__trace_at(trace, i);
        if (e->kind == SL__TRACE_MEMORY) {
            write_memory(j, e, &trace->used[slot_of(trace, i)], origin_ns);
        } else {
            write_event(j, e, origin_ns);
        }
    }
    sl__json_end(j);
    write_other_data(j, trace, ledger, policy);
    sl__json_end(j);
}
