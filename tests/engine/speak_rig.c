#include "speak_rig.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ggml.h"

#include "engine/engine_impl.h"
#include "small_synth.h"
#include "test_support.h"

#define HASH_START UINT64_C(14695981039346656037)
#define HASH_PRIME UINT64_C(1099511628211)

const char *rig_write_model(char path[512], const char *dir)
{
    s2_synth_opts opts = small_synth_opts(GGML_TYPE_F16);
    opts.hp.n_ctx = 1024;
    small_synth_write(&opts, dir, "rig");
    return test_path(path, 512, dir, "rig.gguf");
}

char rig_model[512];
char *rig_dir;

int rig_set_up(void **state)
{
    (void)state;
    rig_dir = test_dir_create();
    rig_write_model(rig_model, rig_dir);
    return 0;
}

int rig_tear_down(void **state)
{
    (void)state;
    test_dir_remove(rig_dir);
    return 0;
}

s2_place_opts rig_place(
        const char *device, sl_policy policy, s2_decode_when decode, uint64_t vram_bytes)
{
    return (s2_place_opts){
            .device = device, .policy = policy, .decode = decode, .vram_bytes = vram_bytes};
}

s2_engine_opts rig_opts(const char *model, const s2_place_opts *place, uint32_t max_frames)
{
    return (s2_engine_opts){
            .model_path = model, .n_threads = 1, .place = *place, .expected_frames = max_frames};
}

s2_engine *rig_open(const char *model, const s2_place_opts *place, uint32_t max_frames)
{
    s2_engine_opts opts = rig_opts(model, place, max_frames);
    s2_engine *e = NULL;
    sl_error err = {0};
    assert_ok(s2_engine_open(&opts, &e, &err), &err);
    return e;
}

uint64_t rig_floor(const char *model, const s2_place_opts *place, uint32_t max_frames)
{
    s2_place_opts roomy = *place;
    roomy.vram_bytes = 0;
    s2_engine *e = rig_open(model, &roomy, max_frames);
    uint64_t bytes = sl_plan_floor(e->planned.plan, 1);
    s2_engine_close(&e);
    return bytes;
}

void rig_expect_refused(
        const char *model, const s2_place_opts *place, uint32_t max_frames, uint64_t floor)
{
    char number[32];
    s2_engine_opts opts = rig_opts(model, place, max_frames);
    s2_engine *e = NULL;
    sl_error err = {0};
    snprintf(number, sizeof number, "%" PRIu64, floor);
    assert_int_equal(s2_engine_open(&opts, &e, &err), SL_EBUDGET);
    assert_null(e);
    if (!strstr(err.msg, number) || strchr(err.msg, '\n')) {
        fail_msg("floor %s: %s", number, err.msg);
    }
}

static int on_samples(void *ud, const float *samples, size_t n)
{
    spoken *s = ud;
    const unsigned char *bytes = (const unsigned char *)samples;
    for (size_t i = 0; i < n * sizeof *samples; i++) {
        s->hash = (s->hash ^ bytes[i]) * HASH_PRIME;
    }
    s->n_samples += n;
    return 0;
}

int rig_try_opts(s2_engine *e, const s2_speak_opts *given, spoken *ret, sl_error *reterr)
{
    s2_stats stats = {0};
    s2_speak_opts opts = *given;
    *ret = (spoken){.hash = HASH_START};
    opts.on_samples = on_samples;
    opts.on_frame = NULL;
    opts.ud = ret;
    int r = s2_engine_speak(e, &opts, &stats, reterr);
    ret->n_frames = stats.n_frames;
    ret->end = stats.end;
    ret->n_segments = stats.n_segments;
    ret->n_prompt_columns = stats.n_prompt_columns;
    return r;
}

int rig_try(s2_engine *e, const char *text, uint32_t max_frames, spoken *ret, sl_error *reterr)
{
    s2_speak_opts opts = small_synth_speak(text, max_frames);
    opts.min_frames = max_frames;
    return rig_try_opts(e, &opts, ret, reterr);
}

spoken rig_speak(s2_engine *e, const char *text, uint32_t max_frames)
{
    sl_error err = {0};
    spoken s;
    assert_ok(rig_try(e, text, max_frames, &s, &err), &err);
    assert_int_equal(s.n_frames, max_frames);
    return s;
}

spoken rig_speak_on_cpu(uint32_t max_frames)
{
    const s2_place_opts cpu = {.device = "cpu"};
    s2_engine *e = rig_open(rig_model, &cpu, max_frames);
    spoken s = rig_speak(e, RIG_TEXT, max_frames);
    s2_engine_close(&e);
    return s;
}

void assert_same_sound(const spoken *a, const spoken *b, const char *what)
{
    if (a->hash != b->hash || a->n_samples != b->n_samples || a->n_samples == 0) {
        fail_msg("%s: other samples: %zu and %zu, hashes %016" PRIx64 " and %016" PRIx64, what,
                a->n_samples, b->n_samples, a->hash, b->hash);
    }
}

/* The units of a model, and the part of slow that may be one. */
static const char *const unit_names[] = {
        "embed", "slow", "fast", "codec.encoder", "codec.quantizer", "codec.decoder", "slow.rest"};
#define N_UNITS (sizeof unit_names / sizeof unit_names[0])

/* Units of a model come first, in their order; slow.rest is there only if slow is split. */
size_t rig_unit(s2_engine *e, const char *name)
{
    for (size_t i = 0; i < N_UNITS; i++) {
        sl_unit_status status;
        if (strcmp(unit_names[i], name) != 0) {
            continue;
        }
        sl_residency_unit_status(s2_engine_residency(e), i, &status);
        assert_string_equal(status.name, name);
        return i;
    }
    fail_msg("no unit '%s'", name);
    return 0;
}

sl_unit_status rig_unit_status(s2_engine *e, const char *name)
{
    sl_unit_status status;
    sl_residency_unit_status(s2_engine_residency(e), rig_unit(e, name), &status);
    return status;
}

sl_place_status rig_place_status(s2_engine *e, size_t i_place)
{
    sl_place_status status;
    sl_error err = {0};
    assert_ok(sl_residency_place_status(s2_engine_residency(e), i_place, &status, &err), &err);
    return status;
}

void rig_settle(s2_engine *e)
{
    sl_error err = {0};
    assert_ok(sl_residency_settle(s2_engine_residency(e), NULL, &err), &err);
}

rig_moves rig_count_moves(s2_engine *e)
{
    rig_moves moves = {0};
    for (size_t i = 0; i < N_UNITS - 1; i++) {
        sl_unit_status s = rig_unit_status(e, unit_names[i]);
        if (s.wanted_place > 0) {
            moves.n_loads += s.n_loads;
            moves.n_evicted += s.n_evicted;
            moves.epochs += s.epoch;
            moves.n_resident += s.state == SL_UNIT_RESIDENT;
        }
    }
    return moves;
}

void assert_nothing_held(s2_engine *e, size_t i_place, const char *what)
{
    sl_place_status status = rig_place_status(e, i_place);
    for (int kind = 0; kind < SL_MEM_KIND_COUNT; kind++) {
        uint64_t lost = kind == SL_MEM_WEIGHTS ? status.lost_bytes : 0;
        if (status.used[kind] != lost) {
            fail_msg("%s: %" PRIu64 " bytes of %s are held", what, status.used[kind],
                    sl_mem_kind_name((sl_mem_kind)kind));
        }
    }
}
