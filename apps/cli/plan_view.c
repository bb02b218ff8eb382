#include "plan_view.h"

#include <stdio.h>
#include <string.h>

#include "base/byte_text.h"

static const char *or_unknown(const char *name)
{
    return name && *name ? name : "?";
}

const char *plan_place_name(const plan_view *view, size_t i_place)
{
    return or_unknown(view->request->places[i_place].name);
}

const char *plan_unit_name(const plan_view *view, size_t i_unit)
{
    return or_unknown(view->request->units[i_unit].name);
}

const sl_plan_phase *plan_step_phase(const plan_view *view, size_t i_step)
{
    const sl_plan_request *q = view->request;
    return &q->phases[q->run ? q->run[i_step] : i_step];
}

const char *plan_step_name(const plan_view *view, size_t i_step)
{
    return or_unknown(plan_step_phase(view, i_step)->name);
}

/* The first move of such a unit, if it has one, is to leave. */
bool plan_starts_with(const plan_view *view, size_t i_unit)
{
    for (size_t i = 0; i < sl_plan_n_events(view->plan); i++) {
        const sl_plan_event *e = sl_plan_event_at(view->plan, i);
        if (e->i_unit == i_unit) {
            return e->kind == SL_PLAN_EVICT;
        }
    }
    return sl_plan_is_feasible(view->plan) &&
           sl_plan_unit_role(view->plan, 0, i_unit) != SL_PLAN_ABSENT;
}

bool plan_place_is_used(const plan_view *view, size_t i_place)
{
    return plan_peak_or_need(view, i_place).total > 0;
}

sl_plan_bytes plan_peak_or_need(const plan_view *view, size_t i_place)
{
    sl_plan_bytes peak = sl_plan_peak_of_run(view->plan, i_place);
    if (!sl_plan_is_feasible(view->plan)) {
        /* With keep, phases need together more than each by itself. */
        uint64_t floor = sl_plan_floor(view->plan, i_place);
        peak.total = floor > peak.total ? floor : peak.total;
    }
    return peak;
}

uint64_t plan_step_moved(const plan_view *view, size_t i_step, size_t i_place)
{
    uint64_t n = 0;
    for (size_t i = 0; i < sl_plan_n_events(view->plan); i++) {
        const sl_plan_event *e = sl_plan_event_at(view->plan, i);
        if (e->kind == SL_PLAN_LOAD && e->i_step == i_step && e->i_place == i_place) {
            n += e->n_bytes;
        }
    }
    return n;
}

double plan_step_wait(const plan_view *view, size_t i_step)
{
    double seconds = 0;
    for (size_t i = 0; i < sl_plan_n_events(view->plan); i++) {
        const sl_plan_event *e = sl_plan_event_at(view->plan, i);
        if (e->kind == SL_PLAN_STALL && e->i_step == i_step) {
            seconds += e->end_s - e->begin_s;
        }
    }
    return seconds;
}

double plan_wait(const plan_view *view)
{
    double seconds = 0;
    for (size_t i = 0; i < sl_plan_n_events(view->plan); i++) {
        const sl_plan_event *e = sl_plan_event_at(view->plan, i);
        if (e->kind == SL_PLAN_STALL) {
            seconds += e->end_s - e->begin_s;
        }
    }
    return seconds;
}

const char *plan_seconds_text(double seconds, char *buf, size_t buf_bytes)
{
    if (seconds >= 99.95) {
        uint64_t whole = seconds < 1e15 ? (uint64_t)(seconds + 0.5) : 0;
        if (whole >= 7200 || whole == 0) {
            snprintf(buf, buf_bytes, "%.1f h", seconds / 3600);
        } else {
            snprintf(buf, buf_bytes, "%u min %02u s", (unsigned)(whole / 60),
                    (unsigned)(whole % 60));
        }
    } else if (seconds >= 0.0995 || seconds <= 0) {
        snprintf(buf, buf_bytes, seconds >= 9.95 ? "%.1f s" : "%.2f s", seconds);
    } else {
        snprintf(buf, buf_bytes, seconds < 0.00095 ? "%.2g ms" : "%.0f ms", seconds * 1000);
    }
    return buf;
}

const char *plan_budget_text(uint64_t bytes, char *buf, size_t buf_bytes)
{
    if (bytes == PLAN_NO_LIMIT) {
        snprintf(buf, buf_bytes, "no limit");
        return buf;
    }
    return sl__byte_text(bytes, buf, buf_bytes);
}

const char *plan_model_name(const plan_view *view)
{
    const char *path = view->model ? view->model : "?";
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}
