#include "plan_speeds.h"

#include <string.h>

#include "device/sim.h"

double plan_speeds_of_sim(const char *device)
{
    sl__sim_spec spec;
    bool is_sim = device && strncmp(device, "sim:", 4) == 0;
    return is_sim && sl__sim_parse(device, &spec, NULL) >= 0 ? (double)spec.link_bytes_s : 0;
}

static bool is_of_frames(const plan_actual_bar *b)
{
    return strcmp(b->name, "generate") == 0 || strcmp(b->name, "decode") == 0 ||
           strcmp(b->name, "speak") == 0;
}

/* Part of a wait that lies within a phase. */
static double overlap(const plan_actual_bar *a, const plan_actual_bar *b)
{
    double begin_s = a->begin_s > b->begin_s ? a->begin_s : b->begin_s;
    double end_s = a->end_s < b->end_s ? a->end_s : b->end_s;
    return end_s > begin_s ? end_s - begin_s : 0;
}

static double busy_seconds(const plan_actual *actual)
{
    double seconds = 0;
    for (size_t i = 0; i < actual->n_bars; i++) {
        const plan_actual_bar *phase = &actual->bars[i];
        if (phase->kind != PLAN_ACTUAL_PHASE || !is_of_frames(phase)) {
            continue;
        }
        seconds += phase->end_s - phase->begin_s;
        for (size_t k = 0; k < actual->n_bars; k++) {
            if (actual->bars[k].kind == PLAN_ACTUAL_STALL) {
                seconds -= overlap(phase, &actual->bars[k]);
            }
        }
    }
    return seconds > 0 ? seconds : 0;
}

void plan_speeds_measure(plan_speeds *speeds, const plan_actual *actual, uint64_t n_frames)
{
    double bytes = 0;
    double load_s = 0;
    for (size_t i = 0; i < actual->n_bars; i++) {
        const plan_actual_bar *b = &actual->bars[i];
        if (b->kind == PLAN_ACTUAL_LOAD && b->n_bytes > 0) {
            bytes += (double)b->n_bytes;
            load_s += b->end_s - b->begin_s;
        }
    }
    if (speeds->link_bytes_per_s <= 0 && bytes > 0 && load_s > 0) {
        speeds->link_bytes_per_s = bytes / load_s;
        speeds->link_from = "measured in the trace";
    }
    double busy_s = n_frames > 0 ? busy_seconds(actual) : 0;
    if (speeds->frame_seconds <= 0 && busy_s > 0) {
        speeds->frame_seconds = busy_s / (double)n_frames;
        speeds->frame_from = "measured in the trace, for that many frames";
    }
}
