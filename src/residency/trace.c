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

int sl__trace_init(sl__trace *trace, size_t cap, sl_error *reterr)
{
    memset(trace, 0, sizeof *trace);
    trace->events = sl__alloc(cap, sizeof *trace->events);
    if (!trace->events) {
        return sl__fail_nomem(reterr, cap * sizeof *trace->events, "the trace");
    }
    trace->cap = cap;
    return 0;
}

void sl__trace_done(sl__trace *trace)
{
    sl__free(trace->events);
    memset(trace, 0, sizeof *trace);
}

void sl__trace_add(sl__trace *trace, sl__trace_event event)
{
    if (trace->cap > 0) {
        trace->events[trace->n_seen % trace->cap] = event;
        trace->n_seen++;
    }
}

size_t sl__trace_n(const sl__trace *trace)
{
    return trace->n_seen < trace->cap ? (size_t)trace->n_seen : trace->cap;
}

const sl__trace_event *sl__trace_at(const sl__trace *trace, size_t i)
{
    uint64_t first = trace->n_seen - sl__trace_n(trace);
    return &trace->events[(first + i) % trace->cap];
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
    case SL__TRACE_KIND_COUNT:
        break;
    }
    return TRACK_PLACE + e->i_track;
}

static void begin_record(sl__json *j, const char *name, const char *ph, size_t track)
{
    sl__json_object(j);
    sl__json_key(j, "name");
    sl__json_cstr(j, name);
    sl__json_key(j, "ph");
    sl__json_cstr(j, ph);
    sl__json_key(j, "pid");
    sl__json_u64(j, 1);
    sl__json_key(j, "tid");
    sl__json_u64(j, track);
}

static void name_track(sl__json *j, size_t track, const char *name)
{
    begin_record(j, "thread_name", "M", track);
    sl__json_key(j, "args");
    sl__json_object(j);
    sl__json_key(j, "name");
    sl__json_cstr(j, name);
    sl__json_end(j);
    sl__json_end(j);
}

static void write_event(sl__json *j, const sl__trace_event *e, uint64_t origin_ns)
{
    bool is_instant = e->kind == SL__TRACE_FAIL;
    begin_record(j, e->name, is_instant ? "i" : "X", track_of(e));
    sl__json_key(j, "cat");
    sl__json_cstr(j, sl__trace_kind_name(e->kind));
    sl__json_key(j, "ts");
    sl__json_f64(j, (double)(e->begin_ns - origin_ns) / 1000.0);
    if (is_instant) {
        sl__json_key(j, "s");
        sl__json_cstr(j, "t");
    } else {
        sl__json_key(j, "dur");
        sl__json_f64(j, (double)(e->end_ns - e->begin_ns) / 1000.0);
    }
    if (e->n_bytes > 0) {
        sl__json_key(j, "args");
        sl__json_object(j);
        sl__json_key(j, "bytes");
        sl__json_u64(j, e->n_bytes);
        sl__json_end(j);
    }
    sl__json_end(j);
}

void sl__trace_json(
        const sl__trace *trace, const char *const *place_names, size_t n_places, sl__json *j)
{
    static const char *const tracks[TRACK_PLACE] = {"phases", "leases", "stalls"};
    uint64_t origin_ns = UINT64_MAX;
    size_t n = sl__trace_n(trace);
    for (size_t i = 0; i < n; i++) {
        uint64_t begin_ns = sl__trace_at(trace, i)->begin_ns;
        origin_ns = begin_ns < origin_ns ? begin_ns : origin_ns;
    }
    sl__json_object(j);
    sl__json_key(j, "traceEvents");
    sl__json_array(j);
    for (size_t i = 0; i < TRACK_PLACE; i++) {
        name_track(j, i, tracks[i]);
    }
    for (size_t i = 0; i < n_places; i++) {
        name_track(j, TRACK_PLACE + i, place_names[i]);
    }
    for (size_t i = 0; i < n; i++) {
        write_event(j, sl__trace_at(trace, i), origin_ns);
    }
    sl__json_end(j);
    sl__json_end(j);
}
