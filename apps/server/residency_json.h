/* Units, places and plans as members of a JSON object; docs/SERVER.md describes them. */
#ifndef SERVER_RESIDENCY_JSON_H
#define SERVER_RESIDENCY_JSON_H

#include "base/json_writer.h"
#include "s2/placement.h"
#include "s2/plan_model.h"
#include "sluice/residency.h"

/* Bytes a second of a unit's latest load; 0 if there was none, or if it moved nothing. */
double residency_load_speed(const sl_unit_status *unit);

/* "units" and "places" as they are now. Any thread. */
void residency_put_json(
        sl__json *json, sl_residency *residency, size_t n_units, const s2_placement *placement);

/* An object. */
void residency_put_plan(sl__json *json, const s2_plan *plan);

#endif
