/*
 * Memory of one place: layers stacked in the order of the units, scratch on top, so that a layer changes its height
 * only when something below leaves. The axis ends a little above the peak and the budget; a budget far above the
 * peak is named, not drawn, or the plan would be a line at the bottom.
 */
#include <stdio.h>
#include <string.h>

#include "base/byte_text.h"
#include "plan_canvas.h"

#define PLOT_H        176.0
#define SMALL_PLOT_H  56.0
#define SMALL_SHARE   0.1 /* of the largest peak: a place that holds less is drawn small */
#define N_TICKS       5
#define LABEL_H       13.0 /* a layer of less height has no name in it */
#define LABEL_W       30.0
#define BUDGET_IN     2.5 /* times the peak: a larger budget is not drawn */
#define AXIS_HEADROOM 1.12

typedef struct panel {
    plan_canvas *c;
    size_t i_place;
    const plan_levels *levels;
    double top; /* of the plot */
    double height;
    double most; /* bytes at its upper end */
    bool draws_budget;
} panel;

static double y_of(const panel *p, double bytes)
{
    return p->top + p->height * (1 - bytes / p->most);
}

static const plan_actual_place *actual_of(const panel *p)
{
    const plan_actual *actual = p->c->actual;
    return actual && actual->places[p->i_place].is_known ? &actual->places[p->i_place] : NULL;
}

static void set_scale(panel *p)
{
    const sl_plan_place *place = &p->c->view->request->places[p->i_place];
    const plan_actual_place *actual = actual_of(p);
    double most = (double)p->levels->most;
    if (actual && (double)actual->peak.total > most) {
        most = (double)actual->peak.total;
    }
    most = most > 0 ? most : 1;
    p->draws_budget = (double)place->budget_bytes <= most * BUDGET_IN;
    if (p->draws_budget && (double)place->budget_bytes > most) {
        most = (double)place->budget_bytes;
    }
    double largest = 0;
    for (size_t i = 0; i < p->c->view->request->n_places; i++) {
        double peak = (double)plan_peak_or_need(p->c->view, i).total;
        largest = peak > largest ? peak : largest;
    }
    p->height = (double)p->levels->most < largest * SMALL_SHARE ? SMALL_PLOT_H : PLOT_H;
    p->most = most * AXIS_HEADROOM;
}

static const char *tick_text(double bytes, double step, char *buf, size_t buf_bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    size_t i = 0;
    for (; i + 1 < sizeof units / sizeof units[0] && step * 2 >= 1024; i++) {
        step /= 1024;
        bytes /= 1024;
    }
    snprintf(buf, buf_bytes, "%g %s", bytes, units[i]);
    return buf;
}

/* Ticks at multiples of a power of two. */
static void draw_axis(const panel *p)
{
    svg_out *o = p->c->out;
    char text[40];
    double step = 1;
    while (p->most / step > (p->height < PLOT_H ? 2 : N_TICKS)) {
        step *= 2;
    }
    for (size_t i = 0; (double)i * step <= p->most; i++) {
        double v = (double)i * step;
        double y = y_of(p, v);
        svg_put(o, "<path class=\"grid\" d=\"M%.1f %.1fH%.1f\"/>", CANVAS_LEFT, y,
                CANVAS_LEFT + CANVAS_PLOT_W);
        svg_put(o, "<text class=\"s dim end\" x=\"%.1f\" y=\"%.1f\">%s</text>\n", CANVAS_LEFT - 8,
                y + 4, v > 0 ? tick_text(v, step, text, sizeof text) : "0");
    }
}

static double bottom_of(const plan_levels *l, size_t i, size_t i_layer)
{
    return (double)plan_levels_bottom(l, i, i_layer);
}

static double bytes_of(const plan_levels *l, size_t i, size_t i_layer)
{
    return (double)plan_levels_bytes(l, i, i_layer);
}

/* Intervals from `i` on in which the layer is there without a gap. */
static size_t end_of_area(const plan_levels *l, size_t i, size_t i_layer)
{
    while (i < l->n && bytes_of(l, i, i_layer) > 0) {
        i++;
    }
    return i;
}

static void draw_area(const panel *p, size_t begin, size_t end, size_t i_layer)
{
    const plan_levels *l = p->levels;
    svg_out *o = p->c->out;
    for (size_t i = begin; i < end; i++) {
        double y = y_of(p, bottom_of(l, i, i_layer) + bytes_of(l, i, i_layer));
        svg_put(o, "%c%.1f %.1fH%.1f", i == begin ? 'M' : 'V',
                i == begin ? canvas_x(p->c, l->times[i]) : y, y, canvas_x(p->c, l->times[i + 1]));
    }
    for (size_t i = end; i > begin; i--) {
        svg_put(o, "V%.1fH%.1f", y_of(p, bottom_of(l, i - 1, i_layer)),
                canvas_x(p->c, l->times[i - 1]));
    }
    svg_put(o, "Z");
}

/* A stretch of time in which a layer keeps its place. */
typedef struct box {
    double begin;
    double end;
    double bottom;
    double bytes;
} box;

static box widest_box(const plan_levels *l, size_t i_layer)
{
    box best = {0};
    for (size_t i = 0; i < l->n;) {
        box b = {l->times[i], l->times[i + 1], bottom_of(l, i, i_layer), bytes_of(l, i, i_layer)};
        for (i++; i < l->n; i++) {
            double bottom = bottom_of(l, i, i_layer);
            double bytes = bytes_of(l, i, i_layer);
            if (bottom < b.bottom || bottom > b.bottom || bytes < b.bytes || bytes > b.bytes) {
                break;
            }
            b.end = l->times[i + 1];
        }
        if (b.bytes > 0 && b.end - b.begin > best.end - best.begin) {
            best = b;
        }
    }
    return best;
}

static void draw_label(const panel *p, size_t i_layer)
{
    svg_out *o = p->c->out;
    box b = widest_box(p->levels, i_layer);
    double left = canvas_x(p->c, b.begin);
    double width = canvas_x(p->c, b.end) - left;
    double y = y_of(p, b.bottom + b.bytes / 2);
    double height = y_of(p, b.bottom) - y_of(p, b.bottom + b.bytes);
    char size[32];
    const char *name = canvas_layer_name(p->c, i_layer);
    if (height < LABEL_H || width < LABEL_W) {
        return;
    }
    size_t room = canvas_n_chars(width - 6);
    sl__byte_text((uint64_t)b.bytes, size, sizeof size);
    svg_put(o, "<text class=\"s on mid\" x=\"%.1f\" y=\"%.1f\">", left + width / 2, y + 4);
    svg_text_cut(o, name, room);
    if (svg_n_chars(name) + svg_n_chars(size) + 2 <= room) {
        svg_put(o, " %s", size);
    }
    svg_put(o, "</text>\n");
}

static void draw_layer(const panel *p, size_t i_layer)
{
    svg_out *o = p->c->out;
    const plan_levels *l = p->levels;
    char css[24];
    bool is_open = false;
    for (size_t i = 0; i < l->n; i++) {
        size_t end = end_of_area(l, i, i_layer);
        if (end == i) {
            continue;
        }
        if (!is_open) {
            svg_put(o, "<path class=\"layer %s\" d=\"",
                    canvas_class(p->c, i_layer, css, sizeof css));
            is_open = true;
        }
        draw_area(p, i, end, i_layer);
        i = end;
    }
    if (is_open) {
        svg_put(o, "\"><title>");
        svg_text(o, canvas_layer_name(p->c, i_layer));
        svg_put(o, "</title></path>\n");
    }
}

/* The part of the stack that is above the budget. */
static void draw_excess(const panel *p)
{
    const plan_levels *l = p->levels;
    uint64_t budget = p->c->view->request->places[p->i_place].budget_bytes;
    for (size_t i = 0; i < l->n; i++) {
        uint64_t total = plan_levels_total(l, i);
        if (total > budget) {
            double left = canvas_x(p->c, l->times[i]);
            double top = y_of(p, (double)total);
            svg_put(p->c->out,
                    "<rect class=\"over\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>\n",
                    left, top, canvas_x(p->c, l->times[i + 1]) - left,
                    y_of(p, (double)budget) - top);
        }
    }
}

/* On a ground of its own, since the stack may be behind it. */
static void draw_budget_label(const panel *p, double y, const char *text, const char *note)
{
    double right = CANVAS_LEFT + CANVAS_PLOT_W;
    double width = CANVAS_CHAR_W * (double)(strlen(text) + svg_n_chars(note) + 7) + 8;
    svg_put(p->c->out,
            "<rect class=\"bg\" fill-opacity=\".85\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" "
            "height=\"15\"/><text class=\"s red end\" x=\"%.1f\" y=\"%.1f\">budget %s%s</text>\n",
            right - width, y - 11, width, right - 4, y, text, note);
}

static void draw_budget(const panel *p)
{
    uint64_t budget = p->c->view->request->places[p->i_place].budget_bytes;
    char text[40];
    plan_budget_text(budget, text, sizeof text);
    if (p->draws_budget) {
        double y = y_of(p, (double)budget);
        svg_put(p->c->out, "<path class=\"budget\" d=\"M%.1f %.1fH%.1f\"/>", CANVAS_LEFT, y,
                CANVAS_LEFT + CANVAS_PLOT_W);
        draw_budget_label(p, y - 5, text, "");
    } else if (budget != PLAN_NO_LIMIT && p->height >= PLOT_H) {
        draw_budget_label(p, p->top + 8, text, ", above this scale \xE2\x86\x91");
    }
}

/* The line of what was held, and a dot where it was the most. */
static void draw_actual(const panel *p, const plan_actual_place *actual)
{
    svg_out *o = p->c->out;
    if (actual->n_levels == 0) {
        return;
    }
    for (size_t i = 0; i < actual->n_levels; i++) {
        double x = canvas_x(p->c, actual->levels[i].begin_s);
        double y = y_of(p, (double)actual->levels[i].used.total);
        if (i == 0) {
            svg_put(o, "<path class=\"actual\" d=\"M%.1f %.1f", x, y);
        } else {
            svg_put(o, "H%.1fV%.1f", x, y);
        }
    }
    svg_put(o, "H%.1f\"><title>held, as the trace says</title></path>\n",
            canvas_x(p->c, p->c->actual->end_s));
    svg_put(o, "<circle class=\"peak\" cx=\"%.1f\" cy=\"%.1f\" r=\"4\"/>\n",
            canvas_x(p->c, actual->peak_s), y_of(p, (double)actual->peak.total));
}

static void draw_heading(const panel *p)
{
    svg_out *o = p->c->out;
    const plan_view *view = p->c->view;
    const plan_actual_place *actual = actual_of(p);
    bool fits = sl_plan_is_feasible(view->plan);
    char budget[40];
    char peak[40];
    char floor[40];
    plan_budget_text(view->request->places[p->i_place].budget_bytes, budget, sizeof budget);
    sl__byte_text(plan_peak_or_need(view, p->i_place).total, peak, sizeof peak);
    sl__byte_text(sl_plan_floor(view->plan, p->i_place), floor, sizeof floor);
    svg_put(o, "<text class=\"h ink\" x=\"24\" y=\"%.1f\">Memory of ", p->top - 30);
    svg_text_cut(o, plan_place_name(view, p->i_place), 30);
    svg_put(o, "</text><text class=\"s dim end\" x=\"%.1f\" y=\"%.1f\">",
            CANVAS_LEFT + CANVAS_PLOT_W, p->top - 30);
    bool has_limit = view->request->places[p->i_place].budget_bytes != PLAN_NO_LIMIT;
    if (actual) {
        char held[40];
        sl__byte_text(actual->peak.total, held, sizeof held);
        svg_put(o, "peak held %s, planned %s; budget %s", held, peak, budget);
    } else if (!has_limit) {
        svg_put(o, "peak %s; no limit", peak);
    } else if (fits) {
        svg_put(o, "peak %s of the budget of %s; smallest budget that does: %s", peak, budget,
                floor);
    } else {
        svg_put(o, "needs %s, the budget is %s", floor, budget);
    }
    svg_put(o, "</text>\n");
}

/* Where phases begin, and their names where there is room. */
static void draw_steps(const panel *p)
{
    svg_out *o = p->c->out;
    const plan_timeline *t = p->c->timeline;
    for (size_t i = 0; i < sl_plan_n_steps(p->c->view->plan); i++) {
        double left = canvas_x(p->c, t->begins[i]);
        double width = canvas_x(p->c, t->begins[i + 1]) - left;
        const char *name = plan_step_name(p->c->view, i);
        if (i > 0 && width > 8) {
            svg_put(o, "<path class=\"step\" d=\"M%.1f %.1fV%.1f\"/>", left, p->top - 14,
                    p->top + p->height);
        }
        size_t room = canvas_n_chars(width - 4);
        if (room >= 3 && (svg_n_chars(name) <= room || room >= 6)) {
            svg_put(o, "<text class=\"s dim mid\" x=\"%.1f\" y=\"%.1f\">", left + width / 2,
                    p->top - 6);
            svg_text_cut(o, name, room);
            svg_put(o, "</text>\n");
        }
    }
}

int plan_panel_draw(plan_canvas *c, size_t i_place, sl_error *reterr)
{
    plan_levels levels;
    int r = plan_levels_init(&levels, c->timeline, i_place, reterr);
    if (r < 0) {
        return r;
    }
    panel p = {.c = c, .i_place = i_place, .levels = &levels, .top = c->y + 52};
    set_scale(&p);
    draw_heading(&p);
    draw_axis(&p);
    svg_put(c->out, "<g class=\"%s\">\n", actual_of(&p) ? "planned faded" : "planned");
    for (size_t i = 0; i < levels.n_layers; i++) {
        draw_layer(&p, i);
    }
    for (size_t i = 0; i < levels.n_layers; i++) {
        draw_label(&p, i);
    }
    svg_put(c->out, "</g>\n");
    draw_excess(&p);
    draw_steps(&p);
    if (actual_of(&p)) {
        draw_actual(&p, actual_of(&p));
    }
    draw_budget(&p);
    c->y = p.top + p.height + 8;
    plan_levels_done(&levels);
    return 0;
}
