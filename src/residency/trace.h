/*
 * A ring of the latest events, and Chrome's trace format.
 *
 * Besides what happened, the ring has what the ledger said whenever that changed, so that a trace alone tells
 * how much memory was held at which time.
 *
 * Threads: one at a time; the owner locks.
 */
#ifndef SL_RESIDENCY_TRACE_H
#define SL_RESIDENCY_TRACE_H

#include "base/json_writer.h"
#include "base/status.h"
#include "residency/ledger.h"

typedef enum sl__trace_kind {
    SL__TRACE_LOAD,
    SL__TRACE_EVICT,
    SL__TRACE_LEASE,
    SL__TRACE_STALL, /* a request waited */
    SL__TRACE_PHASE,
    SL__TRACE_FAIL,   /* a load failed: an instant */
    SL__TRACE_MEMORY, /* what a place holds from now on: an instant, see sl__trace_memory */
    SL__TRACE_KIND_COUNT
} sl__trace_kind;

typedef struct sl__trace_event {
    sl__trace_kind kind;
    const char *name; /* of a unit or phase; outlives the ring */
    size_t i_track;   /* a place, or 0 */
    uint64_t n_bytes;
    uint64_t begin_ns;
    uint64_t end_ns;
    const char *route; /* of a load; static, NULL = none */
    uint64_t n_stalls; /* of its transfer */
} sl__trace_event;

/* Bytes of a place by kind. */
typedef struct sl__trace_used {
    uint64_t kind[SL_MEM_KIND_COUNT];
} sl__trace_used;

typedef struct sl__trace {
    sl__trace_event *events;
    sl__trace_used *used; /* [cap]: of the events of kind MEMORY */
    sl__trace_used *last; /* [n_places]: as recorded last */
    size_t n_places;
    size_t cap;
    uint64_t n_seen; /* events so far; the latest `cap` are kept */
} sl__trace;

int sl__trace_init(sl__trace *trace, size_t cap, size_t n_places, sl_error *reterr) SL_MUST_CHECK;
void sl__trace_done(sl__trace *trace);
void sl__trace_add(sl__trace *trace, sl__trace_event event);

/* Records the places whose account differs from what was recorded last. The ledger has the trace's places. */
void sl__trace_memory(sl__trace *trace, const sl__ledger *ledger, uint64_t now_ns);

/* Events that are kept, oldest first. */
size_t sl__trace_n(const sl__trace *trace);
const sl__trace_event *sl__trace_at(const sl__trace *trace, size_t i);

/*
 * {"traceEvents":[...],"otherData":{...}}: moves and memory on a track for each place, phases, leases and stalls on
 * tracks of their own. "args" of moves have "bytes", of loads "route" and "stalls" too. otherData has what the events lack
 * to be compared with a plan:
 *
 *     {"format":"sluice-trace","version":1,"policy":"swap","dropped_events":0,
 *      "places":[{"name":"vulkan0","tid":3,"budget_bytes":... (null = no limit),
 *                 "peak_bytes":{"weights":...,"kv":...,"compute":...,"staging":...,"total":...}}]}
 */
void sl__trace_json(
        const sl__trace *trace, const sl__ledger *ledger, sl_policy policy, sl__json *j);

const char *sl__trace_kind_name(sl__trace_kind kind);

#endif
