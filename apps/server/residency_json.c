#include "residency_json.h"

static const char *name_of(const s2_placement *placement, size_t i_place)
{
    return i_place < s2_placement_n_places(placement) ? s2_placement_place(placement, i_place)->name
                                                      : NULL;
}

static void put_kinds(
        sl__json *json, const char *key, const uint64_t kinds[SL_MEM_KIND_COUNT], uint64_t total)
{
    sl__json_key(json, key);
    sl__json_object(json);
    for (int kind = 0; kind < SL_MEM_KIND_COUNT; kind++) {
        sl__json_put_u64(json, sl_mem_kind_name((sl_mem_kind)kind), kinds[kind]);
    }
    sl__json_put_u64(json, "total", total);
    sl__json_end(json);
}

double residency_load_speed(const sl_unit_status *u)
{
    return u->load_ns > 0 ? (double)u->load_bytes * 1e9 / (double)u->load_ns : 0;
}

/* A load that moved nothing has no speed. */
static void put_load(sl__json *json, const sl_unit_status *u)
{
    sl__json_key(json, "load");
    if (!u->route) {
        sl__json_null(json);
        return;
    }
    sl__json_object(json);
    sl__json_put_cstr(json, "route", u->route);
    sl__json_put_u64(json, "bytes", u->load_bytes);
    sl__json_put_f64(json, "seconds", (double)u->load_ns / 1e9);
    sl__json_key(json, "bytes_per_second");
    if (u->load_bytes > 0) {
        sl__json_f64(json, residency_load_speed(u));
    } else {
        sl__json_null(json);
    }
    sl__json_put_u64(json, "stalls", u->load_stalls);
    sl__json_end(json);
}

static void put_unit(sl__json *json, const sl_unit_status *u, const s2_placement *placement)
{
    sl__json_object(json);
    sl__json_put_cstr(json, "name", u->name);
    sl__json_put_cstr(json, "state", sl_unit_state_name(u->state));
    sl__json_put_cstr(json, "wanted", name_of(placement, u->wanted_place));
    sl__json_put_cstr(json, "actual", name_of(placement, u->actual_place));
    sl__json_put_u64(json, "bytes", u->n_bytes);
    sl__json_put_u64(json, "leases", u->n_leases);
    sl__json_put_u64(json, "loads", u->n_loads);
    sl__json_put_u64(json, "slices", u->n_slices);
    sl__json_put_u64(json, "arrived", u->n_arrived);
    sl__json_put_cstr(
            json, "error", u->last_error.code < 0 ? sl_err_text(u->last_error.code) : NULL);
    put_load(json, u);
    sl__json_end(json);
}

static void put_place(
        sl__json *json, sl_residency *residency, const s2_placement *placement, size_t i_place)
{
    const s2_place *place = s2_placement_place(placement, i_place);
    sl_place_status p = {0};
    sl__json_object(json);
    sl__json_put_cstr(json, "name", place->name);
    sl__json_put_u64_or_null(
            json, "budget_bytes", place->budget_bytes != UINT64_MAX, place->budget_bytes);
    sl__json_put_cstr(json, "budget_source", place->budget_source);
    if (sl_residency_place_status(residency, i_place, &p, NULL) == 0) {
        put_kinds(json, "used", p.used, p.used_total);
        put_kinds(json, "peak", p.peak, p.peak_total);
        sl__json_put_u64(json, "lost_bytes", p.lost_bytes);
        sl__json_put_u64(json, "device_bytes", p.device_bytes);
    }
    sl__json_end(json);
}

void residency_put_json(
        sl__json *json, sl_residency *residency, size_t n_units, const s2_placement *placement)
{
    sl__json_key(json, "units");
    sl__json_array(json);
    for (size_t i = 0; i < n_units; i++) {
        sl_unit_status u;
        sl_residency_unit_status(residency, i, &u);
        put_unit(json, &u, placement);
    }
    sl__json_end(json);
    sl__json_key(json, "places");
    sl__json_array(json);
    for (size_t i = 0; i < s2_placement_n_places(placement); i++) {
        put_place(json, residency, placement, i);
    }
    sl__json_end(json);
}

static void put_step(
        sl__json *json, const sl_plan_request *request, const sl_plan *plan, size_t i_step)
{
    size_t i_phase = request->run ? request->run[i_step] : i_step;
    sl__json_object(json);
    sl__json_put_cstr(json, "phase", request->phases[i_phase].name);
    sl__json_key(json, "units");
    sl__json_object(json);
    for (size_t i = 0; i < request->n_units; i++) {
        sl_plan_role role = sl_plan_unit_role(plan, i_step, i);
        if (role != SL_PLAN_ABSENT) {
            sl__json_put_cstr(json, request->units[i].name, sl_plan_role_name(role));
        }
    }
    sl__json_end(json);
    sl__json_key(json, "places");
    sl__json_array(json);
    for (size_t i = 0; i < request->n_places; i++) {
        sl_plan_bytes peak = sl_plan_peak(plan, i_step, i);
        sl__json_object(json);
        sl__json_put_cstr(json, "name", request->places[i].name);
        put_kinds(json, "peak", peak.kind, peak.total);
        sl__json_end(json);
    }
    sl__json_end(json);
    sl__json_end(json);
}

static void put_plan_units(sl__json *json, const sl_plan_request *request)
{
    sl__json_key(json, "units");
    sl__json_array(json);
    for (size_t i = 0; i < request->n_units; i++) {
        const sl_plan_unit *u = &request->units[i];
        sl__json_object(json);
        sl__json_put_cstr(json, "name", u->name);
        sl__json_put_cstr(json, "place", request->places[u->i_place].name);
        sl__json_put_u64(json, "bytes", u->n_bytes);
        sl__json_end(json);
    }
    sl__json_end(json);
}

void residency_put_plan(sl__json *json, const s2_plan *plan)
{
    const sl_plan_request *request = s2_plan_request(plan);
    const sl_plan *solved = s2_plan_solved(plan);
    sl__json_object(json);
    sl__json_put_cstr(json, "policy", sl_policy_name(request->policy));
    sl__json_put_bool(json, "feasible", sl_plan_is_feasible(solved));
    sl__json_put_u64(json, "prompt_columns", s2_plan_n_prompt(plan));
    sl__json_put_u64(json, "frames", s2_plan_n_frames(plan));
    put_plan_units(json, request);
    sl__json_key(json, "places");
    sl__json_array(json);
    for (size_t i = 0; i < request->n_places; i++) {
        sl_plan_bytes peak = sl_plan_peak_of_run(solved, i);
        sl__json_object(json);
        sl__json_put_cstr(json, "name", request->places[i].name);
        sl__json_put_u64_or_null(json, "budget_bytes",
                request->places[i].budget_bytes != UINT64_MAX, request->places[i].budget_bytes);
        put_kinds(json, "peak", peak.kind, peak.total);
        sl__json_end(json);
    }
    sl__json_end(json);
    sl__json_key(json, "steps");
    sl__json_array(json);
    for (size_t i = 0; i < sl_plan_n_steps(solved); i++) {
        put_step(json, request, solved, i);
    }
    sl__json_end(json);
    sl__json_end(json);
}
