#include "plan_json.h"

#include "base/json_writer.h"
#include "base/status.h"

static void put_bytes(sl__json *j, sl_plan_bytes bytes)
{
    for (int k = 0; k < SL_MEM_KIND_COUNT; k++) {
        sl__json_put_u64(j, sl_mem_kind_name((sl_mem_kind)k), bytes.kind[k]);
    }
    sl__json_put_u64(j, "total", bytes.total);
}

static void put_f64_or_null(sl__json *j, const char *key, bool has, double v)
{
    sl__json_key(j, key);
    if (has) {
        sl__json_f64(j, v);
    } else {
        sl__json_null(j);
    }
}

static const char *prefetch_name(sl_prefetch prefetch)
{
    static const char *const names[SL_PREFETCH_COUNT] = {
            [SL_PREFETCH_BUDGET] = "budget",
            [SL_PREFETCH_PEAK] = "peak",
            [SL_PREFETCH_NONE] = "none",
    };
    return names[prefetch];
}

static bool is_short(const plan_view *view, size_t i_place)
{
    return sl_plan_floor(view->plan, i_place) > view->request->places[i_place].budget_bytes;
}

static void put_refusal(sl__json *j, const plan_view *view)
{
    sl_error err = {0};
    size_t i_place = 0;
    sl__json_key(j, "refusal");
    if (sl_plan_check(view->plan, &err) >= 0) {
        sl__json_null(j);
        return;
    }
    while (i_place + 1 < view->request->n_places && !is_short(view, i_place)) {
        i_place++;
    }
    sl__json_object(j);
    sl__json_put_cstr(j, "code", sl_err_name(err.code));
    sl__json_put_cstr(j, "message", err.msg);
    sl__json_put_cstr(j, "place", plan_place_name(view, i_place));
    sl__json_put_u64(j, "budget_bytes", view->request->places[i_place].budget_bytes);
    sl__json_put_u64(j, "floor_bytes", sl_plan_floor(view->plan, i_place));
    sl__json_end(j);
}

static void put_places(sl__json *j, const plan_view *view)
{
    sl__json_key(j, "places");
    sl__json_array(j);
    for (size_t i = 0; i < view->request->n_places; i++) {
        const sl_plan_place *place = &view->request->places[i];
        sl__json_object(j);
        sl__json_put_cstr(j, "name", plan_place_name(view, i));
        sl__json_put_u64_or_null(
                j, "budget_bytes", place->budget_bytes != PLAN_NO_LIMIT, place->budget_bytes);
        sl__json_put_u64(j, "floor_bytes", sl_plan_floor(view->plan, i));
        sl__json_put_bool(j, "fits", !is_short(view, i));
        put_f64_or_null(
                j, "link_bytes_per_second", place->link_bytes_per_s > 0, place->link_bytes_per_s);
        sl__json_key(j, "peak_bytes");
        sl__json_object(j);
        put_bytes(j, sl_plan_peak_of_run(view->plan, i));
        sl__json_end(j);
        sl__json_end(j);
    }
    sl__json_end(j);
}

static void put_units(sl__json *j, const plan_view *view)
{
    const size_t *placement = sl_plan_placement(view->plan);
    sl__json_key(j, "units");
    sl__json_array(j);
    for (size_t u = 0; u < view->request->n_units; u++) {
        const sl_plan_unit *unit = &view->request->units[u];
        bool has_second = unit->i_second != SL_PLAN_NONE;
        sl__json_object(j);
        sl__json_put_cstr(j, "name", plan_unit_name(view, u));
        sl__json_put_cstr(j, "place", plan_place_name(view, unit->i_place));
        sl__json_put_u64(j, "bytes", unit->n_bytes);
        sl__json_put_cstr(
                j, "second_place", has_second ? plan_place_name(view, unit->i_second) : NULL);
        sl__json_put_u64_or_null(j, "second_bytes", has_second, unit->second_bytes);
        sl__json_put_cstr(j, "placement", placement ? plan_place_name(view, placement[u]) : NULL);
        sl__json_end(j);
    }
    sl__json_end(j);
}

static void put_roles(sl__json *j, const plan_view *view, size_t i_step)
{
    sl__json_key(j, "units");
    sl__json_object(j);
    for (size_t u = 0; u < view->request->n_units; u++) {
        sl_plan_role role = sl_plan_unit_role(view->plan, i_step, u);
        if (role != SL_PLAN_ABSENT) {
            sl__json_put_cstr(j, plan_unit_name(view, u), sl_plan_role_name(role));
        }
    }
    sl__json_end(j);
}

/* The steps, each of which begins when the one before has computed. */
static void put_steps(sl__json *j, const plan_view *view)
{
    double begin_s = 0;
    bool fits = sl_plan_is_feasible(view->plan);
    sl__json_key(j, "steps");
    sl__json_array(j);
    for (size_t i = 0; i < sl_plan_n_steps(view->plan); i++) {
        double seconds = plan_step_phase(view, i)->seconds;
        double wait_s = plan_step_wait(view, i);
        sl__json_object(j);
        sl__json_put_cstr(j, "phase", plan_step_name(view, i));
        sl__json_put_f64(j, "seconds", seconds);
        sl__json_put_f64(j, "wait_seconds", wait_s);
        put_f64_or_null(j, "begin_seconds", fits, begin_s);
        sl__json_key(j, "places");
        sl__json_array(j);
        for (size_t k = 0; k < view->request->n_places; k++) {
            sl__json_object(j);
            sl__json_put_cstr(j, "name", plan_place_name(view, k));
            sl__json_put_u64(j, "bytes_moved", plan_step_moved(view, i, k));
            put_bytes(j, sl_plan_peak(view->plan, i, k));
            sl__json_end(j);
        }
        sl__json_end(j);
        put_roles(j, view, i);
        sl__json_end(j);
        begin_s += wait_s + seconds;
    }
    sl__json_end(j);
}

static void put_events(sl__json *j, const plan_view *view)
{
    sl__json_key(j, "events");
    sl__json_array(j);
    for (size_t i = 0; i < sl_plan_n_events(view->plan); i++) {
        const sl_plan_event *e = sl_plan_event_at(view->plan, i);
        bool is_move = e->i_unit != SL_PLAN_NONE;
        sl__json_object(j);
        sl__json_put_cstr(j, "kind", sl_plan_event_kind_name(e->kind));
        sl__json_put_u64(j, "step", e->i_step);
        sl__json_put_cstr(j, "phase", plan_step_name(view, e->i_step));
        sl__json_put_cstr(j, "unit", is_move ? plan_unit_name(view, e->i_unit) : NULL);
        sl__json_put_cstr(j, "place", is_move ? plan_place_name(view, e->i_place) : NULL);
        sl__json_put_u64(j, "bytes", e->n_bytes);
        sl__json_put_f64(j, "begin_seconds", e->begin_s);
        sl__json_put_f64(j, "end_seconds", e->end_s);
        sl__json_end(j);
    }
    sl__json_end(j);
}

static void put_sources(sl__json *j, const plan_view *view)
{
    sl__json_key(j, "sources");
    sl__json_object(j);
    for (size_t i = 0; i < view->n_sources; i++) {
        sl__json_put_cstr(j, view->sources[i].what, view->sources[i].from);
    }
    sl__json_end(j);
}

static void put_actual(sl__json *j, const plan_view *view, const plan_actual *a)
{
    sl__json_key(j, "trace");
    if (!a) {
        sl__json_null(j);
        return;
    }
    sl__json_object(j);
    sl__json_put_cstr(j, "policy", a->policy);
    sl__json_put_bool(j, "follows_plan", a->follows);
    sl__json_put_u64(j, "dropped_events", a->n_dropped);
    sl__json_put_f64(j, "seconds", a->end_s);
    sl__json_key(j, "places");
    sl__json_array(j);
    for (size_t i = 0; i < a->n_places; i++) {
        const plan_actual_place *place = &a->places[i];
        if (!place->is_known) {
            continue;
        }
        sl__json_object(j);
        sl__json_put_cstr(j, "name", plan_place_name(view, i));
        sl__json_put_u64_or_null(
                j, "budget_bytes", place->budget_bytes != PLAN_NO_LIMIT, place->budget_bytes);
        sl__json_put_f64(j, "peak_seconds", place->peak_s);
        sl__json_key(j, "peak_bytes");
        sl__json_object(j);
        put_bytes(j, place->peak);
        sl__json_end(j);
        sl__json_end(j);
    }
    sl__json_end(j);
    sl__json_end(j);
}

void plan_put_json(const plan_view *view, const plan_actual *actual, sl__json *j)
{
    sl__json_object(j);
    sl__json_put_cstr(j, "model", view->model);
    sl__json_put_cstr(j, "policy", sl_policy_name(view->request->policy));
    sl__json_put_cstr(j, "prefetch", prefetch_name(view->request->prefetch));
    sl__json_put_bool(j, "cyclic", view->request->is_cyclic);
    sl__json_put_u64_or_null(j, "frames", view->n_frames > 0, view->n_frames);
    sl__json_put_f64(j, "speech_seconds", view->speech_s);
    sl__json_put_bool(j, "feasible", sl_plan_is_feasible(view->plan));
    put_refusal(j, view);
    sl__json_put_u64(j, "bytes_moved", sl_plan_bytes_moved(view->plan));
    sl__json_put_f64(j, "seconds", sl_plan_seconds(view->plan));
    sl__json_put_f64(j, "wait_seconds", plan_wait(view));
    put_places(j, view);
    put_units(j, view);
    put_steps(j, view);
    put_events(j, view);
    put_sources(j, view);
    put_actual(j, view, actual);
    sl__json_end(j);
}
