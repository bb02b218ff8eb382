/* What the parts of the picture share: plan_svg.c (frame), plan_panel.c (memory of a place), plan_lanes.c (moves). */
#ifndef CLI_PLAN_CANVAS_H
#define CLI_PLAN_CANVAS_H

#include "plan_actual.h"
#include "plan_timeline.h"
#include "svg_out.h"

/* The picture in CSS pixels. Text is drawn with widths that are guessed: CHAR_W at the small size. */
#define CANVAS_W      960.0
#define CANVAS_LEFT   118.0
#define CANVAS_PLOT_W 818.0
#define CANVAS_CHAR_W 6.3
#define CANVAS_N_HUES 8 /* colours of units, used again beyond */

typedef struct plan_canvas {
    const plan_view *view;
    const plan_actual *actual; /* or NULL */
    const plan_timeline *timeline;
    svg_out *out;
    double end; /* of the time axis */
    double y;   /* where the next part begins */
} plan_canvas;

/* Position of a time. */
static inline double canvas_x(const plan_canvas *c, double time)
{
    double share = c->end > 0 ? time / c->end : 0;
    share = share < 0 ? 0 : share;
    return CANVAS_LEFT + CANVAS_PLOT_W * (share > 1 ? 1 : share);
}

/* Characters of small text that fit into a width. */
static inline size_t canvas_n_chars(double width)
{
    return width > CANVAS_CHAR_W ? (size_t)(width / CANVAS_CHAR_W) : 0;
}

/* CSS class of a layer: a unit or a kind of scratch. Returns `buf`. */
const char *canvas_class(const plan_canvas *c, size_t i_layer, char *buf, size_t buf_bytes);

/* Name of a layer for people. */
const char *canvas_layer_name(const plan_canvas *c, size_t i_layer);

/* Text of some classes at a position, wrapped by words to a width in characters; returns the y behind it. */
double canvas_paragraph(
        plan_canvas *c, double x, double y, size_t n_chars, const char *classes, const char *text);

/* Each draws at c->y and moves it on. */
int plan_panel_draw(plan_canvas *c, size_t i_place, sl_error *reterr) SL_MUST_CHECK;
void plan_lanes_draw(plan_canvas *c);

#endif
