/*
 * A plan as one JSON object. Bytes and frames are whole numbers, times seconds, places and units given by name:
 *
 *     model, policy, prefetch, cyclic, frames, speech_seconds
 *     feasible         true if it fits
 *     refusal          null, or {"code","message","place","budget_bytes","floor_bytes"}
 *     bytes_moved, seconds, wait_seconds       of the run; seconds 0 = speeds are not known
 *     places           [{"name","budget_bytes" (null = no limit),"floor_bytes","fits","link_bytes_per_second" (null =
 *                      not known),"peak_bytes":{"weights","kv","compute","staging","total"}}]
 *     units            [{"name","place","bytes" (0 = used in place),"second_place" (or null),"second_bytes",
 *                      "placement": where it goes in the nearest placement that fits, null if none does}]
 *     steps            [{"phase","seconds","wait_seconds","begin_seconds" (null if refused),
 *                      "places":[{"name","bytes_moved", and the keys of peak_bytes}],
 *                      "units":{NAME:"needed"|"ahead"|"stays"}}]
 *     events           [{"kind":"load"|"evict"|"stall"|"compute","step","phase","unit","place","bytes","begin_seconds",
 *                      "end_seconds"}]; none if refused
 *     sources          {WHAT: where it comes from}
 *     trace            null, or {"policy","follows_plan","dropped_events","seconds","places":[{"name","budget_bytes",
 *                      "peak_seconds","peak_bytes":{...}}]} of what was laid over it
 *
 * Of a refused plan, the peaks are what each phase needs at least.
 */
#ifndef CLI_PLAN_JSON_H
#define CLI_PLAN_JSON_H

#include "base/json_writer.h"
#include "plan_actual.h"

/* Writes the object as the next value of `j`. actual may be NULL. */
void plan_put_json(const plan_view *view, const plan_actual *actual, sl__json *j);

#endif
