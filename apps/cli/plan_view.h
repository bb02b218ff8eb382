/*
 * A solved plan and what people want to read beside it, as the table, the JSON and the pictures get it; and
 * questions about a plan that all of them ask. Pure.
 *
 * Threads: any; nothing is changed.
 */
#ifndef CLI_PLAN_VIEW_H
#define CLI_PLAN_VIEW_H

#include "sluice/plan.h"

/* Where a number comes from: {"weights", "sizes of the tensors in the GGUF"}. */
typedef struct plan_source {
    const char *what;
    const char *from;
} plan_source;

typedef struct plan_view {
    const sl_plan_request *request;
    const sl_plan *plan; /* solved from that request */
    const char *model;   /* path or name; any bytes; NULL = not said */
    uint64_t n_frames;   /* of speech that the plan is for; 0 = not said */
    double speech_s;     /* that long they sound */
    const plan_source *sources;
    size_t n_sources;
} plan_view;

/* A budget that is none. */
#define PLAN_NO_LIMIT UINT64_MAX

/* Names of the request; "?" where it has none. */
const char *plan_place_name(const plan_view *view, size_t i_place);
const char *plan_unit_name(const plan_view *view, size_t i_unit);
const char *plan_step_name(const plan_view *view, size_t i_step);

/* Phase of a step of the run. */
const sl_plan_phase *plan_step_phase(const plan_view *view, size_t i_step);

/* True if the run begins with the unit on its device: it stayed from the round before. */
bool plan_starts_with(const plan_view *view, size_t i_unit);

/* Of a place: something of the run is on it at some time. */
bool plan_place_is_used(const plan_view *view, size_t i_place);

/* The most that a place holds in the run, or would have to hold if the plan was refused. */
sl_plan_bytes plan_peak_or_need(const plan_view *view, size_t i_place);

/* Bytes that loads ordered in a step bring to a place. */
uint64_t plan_step_moved(const plan_view *view, size_t i_step, size_t i_place);

/* Seconds that a step waits for weights, and all that the run waits. */
double plan_step_wait(const plan_view *view, size_t i_step);
double plan_wait(const plan_view *view);

/* "0.35 s", "1 min 05 s"; returns `buf`. */
const char *plan_seconds_text(double seconds, char *buf, size_t buf_bytes);

/* A budget for people: "4.0 GiB" or "no limit"; returns `buf`. */
const char *plan_budget_text(uint64_t bytes, char *buf, size_t buf_bytes);

/* File name at the end of the model's path. */
const char *plan_model_name(const plan_view *view);

#endif
