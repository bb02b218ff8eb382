/*
 * What happens, as bars over the same time axis: phases with their waits, and for each place what is brought to it and
 * what leaves. With a trace, every lane has a twin of what happened below it.
 */
#include <stdio.h>
#include <string.h>

#include "base/byte_text.h"
#include "plan_canvas.h"

#define LANE_H 26.0
#define BAR_H  18.0

/* Seconds between two events that belong together. */
#define TOUCH_S 1e-3

typedef struct lane {
    plan_canvas *c;
    double y;
} lane;

static lane begin_lane(plan_canvas *c, const char *prefix, const char *name, const char *note)
{
    lane l = {c, c->y};
    size_t room = canvas_n_chars(CANVAS_LEFT - 12);
    size_t taken = strlen(prefix) + strlen(note);
    svg_put(c->out, "<text class=\"s %s end\" x=\"%.1f\" y=\"%.1f\">%s", *note ? "ink" : "dim",
            CANVAS_LEFT - 8, l.y + 13, prefix);
    svg_text_cut(c->out, name, room > taken ? room - taken : 1);
    svg_put(c->out, "%s</text>", note);
    svg_put(c->out, "<path class=\"grid\" d=\"M%.1f %.1fH%.1f\"/>\n", CANVAS_LEFT, l.y + BAR_H + 2,
            CANVAS_LEFT + CANVAS_PLOT_W);
    c->y += LANE_H;
    return l;
}

/* Name of a bar between two times, if it fits. */
static void draw_bar_name(
        const lane *l, double begin, double end, const char *name, const char *detail)
{
    svg_out *o = l->c->out;
    double left = canvas_x(l->c, begin);
    double width = canvas_x(l->c, end) - left;
    size_t room = canvas_n_chars(width - 6);
    size_t n_name = svg_n_chars(name);
    if (room >= 8 || (room > 0 && n_name <= room)) {
        svg_put(o, "<text class=\"s on mid\" x=\"%.1f\" y=\"%.1f\">", left + width / 2, l->y + 13);
        svg_text_cut(o, name, room);
        svg_put(o, n_name + strlen(detail) + 2 <= room ? " %s</text>\n" : "</text>\n", detail);
    }
}

/* A bar, and all that is to say of it as a tooltip. */
static void draw_bar(const lane *l, double begin, double end, const char *css, const char *name,
        const char *detail)
{
    svg_out *o = l->c->out;
    double left = canvas_x(l->c, begin);
    double width = canvas_x(l->c, end) - left;
    width = width < 1 ? 1 : width;
    svg_put(o, "<g><title>");
    svg_text(o, name);
    svg_put(o,
            ": %s</title><rect class=\"bar %s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" "
            "height=\"%.0f\"/>",
            detail, css, left, l->y, width, BAR_H);
    svg_put(o, "</g>\n");
}

static void draw_named_bar(const lane *l, double begin, double end, const char *css,
        const char *name, const char *detail)
{
    draw_bar(l, begin, end, css, name, detail);
    draw_bar_name(l, begin, end, name, detail);
}

/* Units that leave at one time: a mark, and their names beside it. */
typedef struct leavers {
    lane l;
    double x;
    size_t n_chars;
    double free_x; /* behind the names of the group before */
    svg_out names;
} leavers;

static void draw_leavers(leavers *v)
{
    svg_out *o = v->l.c->out;
    const char *names = svg_result(&v->names, NULL);
    double right = CANVAS_LEFT + CANVAS_PLOT_W;
    double width = CANVAS_CHAR_W * (double)v->n_chars;
    bool is_left = v->x + 8 + width > right;
    bool has_room = is_left ? v->x - 8 - width > v->free_x : v->x + 8 > v->free_x;
    if (!names) {
        return;
    }
    svg_put(o, "<g><title>leave: %s</title>", names);
    svg_put(o, "<path class=\"dim\" d=\"M%.1f %.1fh10l-5 10z\"/>", v->x - 5, v->l.y + 4);
    if (has_room) {
        svg_put(o, "<text class=\"s dim%s\" x=\"%.1f\" y=\"%.1f\">%s</text>", is_left ? " end" : "",
                is_left ? v->x - 8 : v->x + 8, v->l.y + 13, names);
        v->free_x = is_left ? v->x + 8 : v->x + 16 + width;
    }
    svg_put(o, "</g>\n");
    svg_done(&v->names);
    v->n_chars = 0;
}

static void add_leaver(leavers *v, double time, const char *name)
{
    double x = canvas_x(v->l.c, time);
    if (v->n_chars > 0 && x > v->x + 10) {
        draw_leavers(v);
    }
    v->x = v->n_chars > 0 ? v->x : x;
    if (v->n_chars > 0) {
        svg_put(&v->names, ", ");
    }
    svg_text_cut(&v->names, name, 40);
    v->n_chars += svg_n_chars(name) + 2;
}

static void format_move(char *buf, size_t buf_bytes, uint64_t n_bytes, double seconds)
{
    char size[32];
    char time[32];
    sl__byte_text(n_bytes, size, sizeof size);
    if (seconds > 0) {
        snprintf(buf, buf_bytes, "%s in %s", size, plan_seconds_text(seconds, time, sizeof time));
    } else {
        snprintf(buf, buf_bytes, "%s", size);
    }
}

static void draw_planned_phases(plan_canvas *c)
{
    char time[32];
    const plan_timeline *t = c->timeline;
    lane l = begin_lane(c, "", "phases", "");
    for (size_t i = 0; i < t->n_bars; i++) {
        const plan_bar *b = &t->bars[i];
        plan_seconds_text(b->end - b->begin, time, sizeof time);
        if (b->kind == SL_PLAN_COMPUTE) {
            draw_named_bar(&l, b->begin, b->end, "phase", plan_step_name(c->view, b->i_step),
                    t->is_in_steps ? "computes" : time);
        } else if (b->kind == SL_PLAN_STALL) {
            draw_named_bar(&l, b->begin, b->end, "stall", "waits", time);
        }
    }
}

/* Name of a bar that is too narrow for it, in what room there is to the next one. */
static void draw_name_beside(const lane *l, double begin, double end, double next, const char *name)
{
    double width = canvas_x(l->c, end) - canvas_x(l->c, begin);
    double left = canvas_x(l->c, end) + 4;
    bool is_inside = svg_n_chars(name) <= canvas_n_chars(width - 6);
    if (!is_inside && svg_n_chars(name) < canvas_n_chars(canvas_x(l->c, next) - left - 4)) {
        svg_put(l->c->out, "<text class=\"s dim\" x=\"%.1f\" y=\"%.1f\">", left, l->y + 13);
        svg_text(l->c->out, name);
        svg_put(l->c->out, "</text>\n");
    } else {
        draw_bar_name(l, begin, end, name, "");
    }
}

/* When the next load of a place begins, or the end of the axis. */
static double next_load(const plan_canvas *c, size_t i_bar)
{
    const plan_timeline *t = c->timeline;
    for (size_t i = i_bar + 1; i < t->n_bars; i++) {
        const plan_bar *b = &t->bars[i];
        if (b->kind == SL_PLAN_LOAD && b->i_place == t->bars[i_bar].i_place && b->n_bytes > 0) {
            return b->begin;
        }
    }
    return c->end;
}

static void draw_planned_loads(plan_canvas *c, size_t i_place)
{
    char css[24];
    char detail[64];
    const plan_timeline *t = c->timeline;
    lane l = begin_lane(c, "load to ", plan_place_name(c->view, i_place), "");
    for (size_t i = 0; i < t->n_bars; i++) {
        const plan_bar *b = &t->bars[i];
        if (b->i_place == i_place && b->n_bytes > 0 && b->kind == SL_PLAN_LOAD) {
            const char *name = plan_unit_name(c->view, b->i_unit);
            format_move(detail, sizeof detail, b->n_bytes, t->is_in_steps ? 0 : b->end - b->begin);
            draw_bar(&l, b->begin, b->end, canvas_class(c, b->i_unit, css, sizeof css), name,
                    detail);
            draw_name_beside(&l, b->begin, b->end, next_load(c, i), name);
        }
    }
}

static void draw_planned_leaves(plan_canvas *c, size_t i_place)
{
    const plan_timeline *t = c->timeline;
    leavers v = {.l = begin_lane(c, "leave ", plan_place_name(c->view, i_place), "")};
    for (size_t i = 0; i < t->n_bars; i++) {
        const plan_bar *b = &t->bars[i];
        if (b->i_place == i_place && b->n_bytes > 0 && b->kind == SL_PLAN_EVICT) {
            add_leaver(&v, b->begin, plan_unit_name(c->view, b->i_unit));
        }
    }
    draw_leavers(&v);
}

/* Where a phase goes on after the wait that it begins with. */
static double end_of_wait(const plan_actual *a, const plan_actual_bar *phase)
{
    double end_s = phase->begin_s;
    for (size_t i = 0; i < a->n_bars; i++) {
        const plan_actual_bar *b = &a->bars[i];
        bool is_wait = b->kind == PLAN_ACTUAL_STALL && b->begin_s <= end_s + TOUCH_S;
        end_s = is_wait && b->end_s > end_s ? b->end_s : end_s;
    }
    return end_s < phase->end_s ? end_s : phase->begin_s;
}

static void draw_actual_phases(plan_canvas *c)
{
    char time[32];
    const plan_actual *a = c->actual;
    lane l = begin_lane(c, "", "phases", ", actual");
    for (size_t i = 0; i < a->n_bars; i++) {
        const plan_actual_bar *b = &a->bars[i];
        plan_seconds_text(b->end_s - b->begin_s, time, sizeof time);
        if (b->kind == PLAN_ACTUAL_PHASE) {
            draw_bar(&l, b->begin_s, b->end_s, "phase", b->name, time);
            draw_bar_name(&l, end_of_wait(a, b), b->end_s, b->name, time);
        }
    }
    for (size_t i = 0; i < a->n_bars; i++) {
        const plan_actual_bar *b = &a->bars[i];
        if (b->kind == PLAN_ACTUAL_STALL) {
            draw_named_bar(&l, b->begin_s, b->end_s, "stall", "waits",
                    plan_seconds_text(b->end_s - b->begin_s, time, sizeof time));
        }
    }
}

static const char *actual_class(const plan_canvas *c, const plan_actual_bar *b, char css[24])
{
    return b->i_unit != SL_PLAN_NONE ? canvas_class(c, b->i_unit, css, 24) : "phase";
}

static double next_actual_load(const plan_canvas *c, size_t i_bar)
{
    const plan_actual *a = c->actual;
    for (size_t i = i_bar + 1; i < a->n_bars; i++) {
        bool is_load = a->bars[i].kind == PLAN_ACTUAL_LOAD || a->bars[i].kind == PLAN_ACTUAL_FAIL;
        if (is_load && a->bars[i].i_place == a->bars[i_bar].i_place) {
            return a->bars[i].begin_s;
        }
    }
    return c->end;
}

static void draw_actual_loads(plan_canvas *c, size_t i_place)
{
    char css[24];
    char detail[64];
    const plan_actual *a = c->actual;
    lane l = begin_lane(c, "", "loads", ", actual");
    for (size_t i = 0; i < a->n_bars; i++) {
        const plan_actual_bar *b = &a->bars[i];
        bool is_load = b->kind == PLAN_ACTUAL_LOAD || b->kind == PLAN_ACTUAL_FAIL;
        if (b->i_place != i_place || !is_load) {
            continue;
        }
        if (b->kind == PLAN_ACTUAL_LOAD) {
            format_move(detail, sizeof detail, b->n_bytes, b->end_s - b->begin_s);
            draw_bar(&l, b->begin_s, b->end_s, actual_class(c, b, css), b->name, detail);
        } else {
            draw_bar(&l, b->begin_s, b->begin_s, "failed", b->name, "load failed");
        }
        draw_name_beside(&l, b->begin_s, b->end_s, next_actual_load(c, i), b->name);
    }
}

static void draw_actual_leaves(plan_canvas *c, size_t i_place)
{
    const plan_actual *a = c->actual;
    leavers v = {.l = begin_lane(c, "", "leave", ", actual")};
    for (size_t i = 0; i < a->n_bars; i++) {
        const plan_actual_bar *b = &a->bars[i];
        if (b->i_place == i_place && b->kind == PLAN_ACTUAL_EVICT) {
            add_leaver(&v, b->begin_s, b->name);
        }
    }
    draw_leavers(&v);
}

/* Seconds between two ticks: 1, 2 or 5 times a power of ten. */
static double tick_step(double end, double n_most)
{
    static const double factors[] = {1, 2, 5};
    double power = 1e-9;
    while (power * 10 * n_most < end) {
        power *= 10;
    }
    for (size_t i = 0; i < 3; i++) {
        if (end / (power * factors[i]) <= n_most) {
            return power * factors[i];
        }
    }
    return power * 10;
}

static void draw_axis(plan_canvas *c)
{
    svg_out *o = c->out;
    double middle = CANVAS_LEFT + CANVAS_PLOT_W / 2;
    const char *label = "seconds, predicted";
    svg_put(o, "<path class=\"axis\" d=\"M%.1f %.1fH%.1f\"/>\n", CANVAS_LEFT, c->y,
            CANVAS_LEFT + CANVAS_PLOT_W);
    if (c->timeline->is_in_steps) {
        label = sl_plan_is_feasible(c->view->plan)
                        ? "phases in their order; drawn equally long, since speeds are not known"
                        : "phases in their order; a plan that does not fit has no times";
    } else {
        double step = tick_step(c->end, 12);
        for (size_t i = 0; (double)i * step <= c->end * 1.0001; i++) {
            double x = canvas_x(c, (double)i * step);
            svg_put(o,
                    "<path class=\"axis\" d=\"M%.1f %.1fv5\"/><text class=\"s dim mid\" x=\"%.1f\" "
                    "y=\"%.1f\">%g</text>\n",
                    x, c->y, x, c->y + 18, (double)i * step);
        }
        label = c->actual ? "seconds from the begin of the run" : label;
    }
    svg_put(o, "<text class=\"s dim mid\" x=\"%.1f\" y=\"%.1f\">%s</text>\n", middle,
            c->y + (c->timeline->is_in_steps ? 18 : 36), label);
    c->y += c->timeline->is_in_steps ? 34 : 52;
}

static bool has_moves(const plan_canvas *c, size_t i_place, sl_plan_event_kind kind)
{
    plan_actual_kind actual = kind == SL_PLAN_LOAD ? PLAN_ACTUAL_LOAD : PLAN_ACTUAL_EVICT;
    for (size_t i = 0; i < c->timeline->n_bars; i++) {
        const plan_bar *b = &c->timeline->bars[i];
        if (b->i_place == i_place && b->kind == kind && b->n_bytes > 0) {
            return true;
        }
    }
    for (size_t i = 0; c->actual && i < c->actual->n_bars; i++) {
        const plan_actual_bar *b = &c->actual->bars[i];
        if (b->i_place == i_place && b->kind == actual) {
            return true;
        }
    }
    return false;
}

static void draw_moves(plan_canvas *c, size_t i_place)
{
    bool has_actual = c->actual && c->actual->places[i_place].is_known;
    if (has_moves(c, i_place, SL_PLAN_LOAD)) {
        draw_planned_loads(c, i_place);
        if (has_actual) {
            draw_actual_loads(c, i_place);
        }
    }
    if (has_moves(c, i_place, SL_PLAN_EVICT)) {
        draw_planned_leaves(c, i_place);
        if (has_actual) {
            draw_actual_leaves(c, i_place);
        }
    }
}

void plan_lanes_draw(plan_canvas *c)
{
    bool has_bars = c->timeline->n_bars > 0 || c->actual;
    if (has_bars) {
        svg_put(c->out, "<text class=\"h ink\" x=\"24\" y=\"%.1f\">What happens when</text>\n",
                c->y + 16);
        c->y += 30;
        draw_planned_phases(c);
        if (c->actual) {
            draw_actual_phases(c);
        }
    }
    for (size_t i = 0; has_bars && i < c->view->request->n_places; i++) {
        draw_moves(c, i);
    }
    c->y += 4;
    draw_axis(c);
}
