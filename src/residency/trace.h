/*
 * A ring of the latest events, and Chrome's trace format.
 *
 * Threads: one at a time; the owner locks.
 */
#ifndef SL_RESIDENCY_TRACE_H
#define SL_RESIDENCY_TRACE_H

#include "base/json_writer.h"
#include "base/status.h"

typedef enum sl__trace_kind {
    SL__TRACE_LOAD,
    SL__TRACE_EVICT,
    SL__TRACE_LEASE,
    SL__TRACE_STALL, /* a request waited */
    SL__TRACE_PHASE,
    SL__TRACE_FAIL, /* a load failed: an instant */
    SL__TRACE_KIND_COUNT
} sl__trace_kind;

typedef struct sl__trace_event {
    sl__trace_kind kind;
    const char *name; /* of a unit or phase; outlives the ring */
    size_t i_track;   /* a place, or 0 */
    uint64_t n_bytes;
    uint64_t begin_ns;
    uint64_t end_ns;
} sl__trace_event;

typedef struct sl__trace {
    sl__trace_event *events;
    size_t cap;
    uint64_t n_seen; /* events so far; the latest `cap` are kept */
} sl__trace;

int sl__trace_init(sl__trace *trace, size_t cap, sl_error *reterr) SL_MUST_CHECK;
void sl__trace_done(sl__trace *trace);
void sl__trace_add(sl__trace *trace, sl__trace_event event);

/* Events that are kept, oldest first. */
size_t sl__trace_n(const sl__trace *trace);
const sl__trace_event *sl__trace_at(const sl__trace *trace, size_t i);

/* {"traceEvents":[...]}: moves on a track for each place, phases, leases and stalls on tracks of their own. */
void sl__trace_json(
        const sl__trace *trace, const char *const *place_names, size_t n_places, sl__json *j);

const char *sl__trace_kind_name(sl__trace_kind kind);

#endif
