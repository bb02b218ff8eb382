/*
 * A plan as a picture: for each place its memory over predicted time against the budget, and below what happens when. A
 * plan that was refused shows what each phase would need. What really happened can be laid over it.
 *
 * The SVG stands alone: no fonts, scripts or files from elsewhere; it follows the reader's light or dark colours and
 * says in words (title and desc) what it shows.
 *
 * Threads: any.
 */
#ifndef CLI_PLAN_SVG_H
#define CLI_PLAN_SVG_H

#include "plan_actual.h"
#include "svg_out.h"

/* Draws into `out`; actual may be NULL. Errors: SL_ENOMEM. */
int plan_svg_draw(const plan_view *view, const plan_actual *actual, svg_out *out,
        sl_error *reterr) SL_MUST_CHECK;

/* The same into a file, which is complete or absent; "-" is standard output. Errors also those of writing. */
int plan_svg_write(const plan_view *view, const plan_actual *actual, const char *path,
        sl_error *reterr) SL_MUST_CHECK;

#endif
