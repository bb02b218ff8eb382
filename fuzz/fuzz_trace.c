/* A trace to be laid over a plan: what is accepted can be drawn, and the peak is that of the levels. */
#include <stdlib.h>
#include <string.h>

#include "fuzz_target.h"

#include "plan_overlay.h"
#include "plan_svg.h"

static const size_t both[] = {0, 1};
static const sl_plan_place places[] = {{"vulkan0", 5000000000, 1e9}, {"cpu", PLAN_NO_LIMIT, 0}};
static const sl_plan_unit units[] = {
        {"slow", 0, 4000000000, SL_PLAN_NONE, 0}, {"fast", 0, 400000000, 1, 0}};
static const sl_plan_phase phases[] = {
        {"encode", both, 1, NULL, 0, 1}, {"decode", both, 2, NULL, 0, 1}};

static void check(const plan_view *view, const plan_actual *a)
{
    svg_out out = {0};
    sl_error err = {0};
    for (size_t i = 0; i < a->n_places; i++) {
        uint64_t most = 0;
        for (size_t k = 0; k < a->places[i].n_levels; k++) {
            uint64_t total = a->places[i].levels[k].used.total;
            most = total > most ? total : most;
        }
        if (most != a->places[i].peak.total) {
            abort();
        }
    }
    if (plan_svg_draw(view, a, &out, &err) < 0 || !svg_result(&out, NULL)) {
        abort();
    }
    svg_done(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const sl_plan_request request = {.places = places,
            .n_places = 2,
            .units = units,
            .n_units = 2,
            .phases = phases,
            .n_phases = 2};
    sl_plan *plan = NULL;
    plan_actual actual;
    sl_error err = {0};
    if (sl_plan_solve(&request, &plan, &err) < 0) {
        abort();
    }
    plan_view view = {.request = &request, .plan = plan, .model = "m"};
    int r = plan_actual_parse((const char *)data, size, "input", &view, &actual, &err);
    if (r >= 0) {
        check(&view, &actual);
        plan_actual_done(&actual);
    } else if (err.code != r || err.msg[0] == '\0') {
        abort();
    }
    sl_plan_free(&plan);
    return 0;
}
