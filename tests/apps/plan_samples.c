#include "plan_samples.h"

#include <string.h>

#include "test_support.h"

#define N_FRAMES 215

static const size_t encode_units[] = {3, 4};
static const size_t generate_units[] = {0, 1, 2};
static const size_t decode_units[] = {4, 5};

void sample_init(plan_sample *s, uint64_t budget_bytes, sl_policy policy)
{
    memset(s, 0, sizeof *s);
    s->places[0] = (sl_plan_place){"vulkan0", budget_bytes, 12e9};
    s->places[1] = (sl_plan_place){"cpu", UINT64_C(12) << 30, 0};
    s->places[2] = (sl_plan_place){"vulkan1", UINT64_C(1) << 30, 6e9};
    static const sl_plan_unit units[SAMPLE_N_UNITS] = {
            {"embed", 1, 0, SL_PLAN_NONE, 0},
            {"slow", 0, 3900000000, SL_PLAN_NONE, 0},
            {"fast", 0, 400000000, 1, 0},
            {"codec.encoder", 0, 350000000, 1, 0},
            {"codec.quantizer", 0, 450000000, 1, 0},
            {"codec.decoder", 0, 150000000, 1, 0},
    };
    memcpy(s->units, units, sizeof units);
    s->scratch[0][0] = (sl_plan_scratch){0, SL_MEM_COMPUTE, 260000000};
    s->scratch[0][1] = (sl_plan_scratch){1, SL_MEM_STAGING, 64 << 20};
    s->scratch[1][0] = (sl_plan_scratch){0, SL_MEM_KV, 150000 * (N_FRAMES + 400)};
    s->scratch[1][1] = (sl_plan_scratch){0, SL_MEM_COMPUTE, 40000000};
    s->scratch[1][2] = (sl_plan_scratch){1, SL_MEM_STAGING, 64 << 20};
    s->scratch[2][0] = (sl_plan_scratch){0, SL_MEM_COMPUTE, 310000000};
    s->scratch[2][1] = (sl_plan_scratch){1, SL_MEM_STAGING, 64 << 20};
    s->phases[0] = (sl_plan_phase){"encode", encode_units, 2, s->scratch[0], 2, 0.9};
    s->phases[1] = (sl_plan_phase){"generate", generate_units, 3, s->scratch[1], 3, 5.2};
    s->phases[2] = (sl_plan_phase){"decode", decode_units, 2, s->scratch[2], 2, 0.7};
    s->request = (sl_plan_request){.places = s->places,
            .n_places = 2,
            .units = s->units,
            .n_units = SAMPLE_N_UNITS,
            .phases = s->phases,
            .n_phases = 3,
            .policy = policy};
    s->sources[0] = (plan_source){"weights", "sizes of the tensors in the GGUF"};
    s->sources[1] = (plan_source){"budget of vulkan0", "given by --vram"};
    s->sources[2] = (plan_source){"link of vulkan0", "given by --link"};
    s->sources[3] = (plan_source){"computing", "measured in an earlier run on this machine"};
    s->view = (plan_view){.request = &s->request,
            .model = "/models/s2-pro-q8_0.gguf",
            .n_frames = N_FRAMES,
            .speech_s = N_FRAMES * 2048 / 44100.0,
            .sources = s->sources,
            .n_sources = 4};
}

void sample_solve(plan_sample *s)
{
    sl_error err = {0};
    sl_plan_free(&s->plan);
    assert_ok(sl_plan_solve(&s->request, &s->plan, &err), &err);
    s->view.plan = s->plan;
}

void sample_done(plan_sample *s)
{
    sl_plan_free(&s->plan);
}
