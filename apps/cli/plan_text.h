/*
 * A plan as tables for people, at most 100 columns wide unless names are longer than their columns: what fits, what each
 * phase takes on each device, what is moved when, and where the numbers come from.
 */
#ifndef CLI_PLAN_TEXT_H
#define CLI_PLAN_TEXT_H

#include <stdio.h>

#include "plan_actual.h"

/* actual: what a trace says, printed beside the plan; may be NULL. */
void plan_print_text(const plan_view *view, const plan_actual *actual, FILE *out);

#endif
