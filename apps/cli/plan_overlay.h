/*
 * Reads a trace of sl_residency_write_trace (`say --trace FILE`) to be laid over a plan.
 *
 * Does not promise: that the trace is of the same model or options. Places and units are matched by name; what has no
 * match is shown under its own name or left out.
 *
 * Threads: one at a time for each object. Zeroed memory is a valid empty one.
 */
#ifndef CLI_PLAN_OVERLAY_H
#define CLI_PLAN_OVERLAY_H

#include "plan_actual.h"

#define PLAN_TRACE_MAX_BYTES (UINT64_C(16) << 20)

/*
 * Reads the bytes of a trace; `path` names it in messages.
 * Errors: SL_EFORMAT (no JSON, no trace of Sluice, an event with times or bytes that make no sense, no phase in it);
 * SL_ENOMEM.
 */
int plan_actual_parse(const char *text, size_t n_bytes, const char *path, const plan_view *view,
        plan_actual *ret_actual, sl_error *reterr) SL_MUST_CHECK;

/* The same from a file. Errors: also those of reading it, and SL_ELIMIT (larger than PLAN_TRACE_MAX_BYTES). */
int plan_actual_read(const char *path, const plan_view *view, plan_actual *ret_actual,
        sl_error *reterr) SL_MUST_CHECK;
void plan_actual_done(plan_actual *actual);

#endif
