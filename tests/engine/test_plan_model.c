/* Plans from a model's file alone: they say what an engine then takes, for devices that are there and that are not. */
#include "s2/plan_model.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "engine/engine_impl.h"
#include "speak_rig.h"
#include "test_support.h"

#define N_FRAMES 4

static s2_plan_opts plan_opts(const s2_place_opts *place)
{
    return (s2_plan_opts){
            .model_path = rig_model, .place = *place, .n_threads = 1, .n_frames = N_FRAMES};
}

static s2_plan *make_plan(const s2_plan_opts *opts)
{
    s2_plan *p = NULL;
    sl_error err = {0};
    assert_ok(s2_plan_make(opts, &p, &err), &err);
    return p;
}

static void expect_refused(const s2_plan_opts *opts, int code, const char *needle)
{
    s2_plan *p = NULL;
    sl_error err = {0};
    int r = s2_plan_make(opts, &p, &err);
    if (r != code || !strstr(err.msg, needle) || strchr(err.msg, '\n')) {
        fail_msg("want %s with \"%s\", got %s: %s", sl_err_name(code), needle, sl_err_name(r),
                err.msg);
    }
    assert_null(p);
}

/* The same phases, the same bytes, the same floor as an engine that is opened with these words. */
static void test_a_plan_is_that_of_the_engine(void **state)
{
    (void)state;
    for (int k = 0; k < SL_POLICY_COUNT * S2_DECODE_COUNT * 2; k++) {
        s2_place_opts place = rig_place(RIG_DEVICE, (sl_policy)(k / 2 / S2_DECODE_COUNT),
                (s2_decode_when)(k / 2 % S2_DECODE_COUNT), 0);
        place.has_gpu_layers = k % 2 != 0;
        place.gpu_layers = 1;
        s2_plan_opts opts = plan_opts(&place);
        s2_plan *p = make_plan(&opts);
        s2_engine *e = rig_open(rig_model, &place, N_FRAMES);
        const sl_plan *a = s2_plan_solved(p);
        const sl_plan *b = e->planned.plan;
        assert_int_equal(sl_plan_n_steps(a), sl_plan_n_steps(b));
        assert_int_equal(sl_plan_floor(a, 1), sl_plan_floor(b, 1));
        assert_int_equal(sl_plan_bytes_moved(a), sl_plan_bytes_moved(b));
        for (size_t step = 0; step < sl_plan_n_steps(a); step++) {
            for (size_t place_index = 0; place_index < 2; place_index++) {
                sl_plan_bytes x = sl_plan_peak(a, step, place_index);
                sl_plan_bytes y = sl_plan_peak(b, step, place_index);
                assert_memory_equal(&x, &y, sizeof x);
            }
        }
        assert_int_equal(s2_plan_request(p)->n_places, 2);
        assert_string_equal(s2_placement_place(s2_plan_placement(p), 1)->name, "sim");
        s2_engine_close(&e);
        s2_plan_free(&p);
        assert_null(p);
    }
}

static void test_a_budget_that_is_too_small_still_gives_a_plan(void **state)
{
    (void)state;
    s2_place_opts place = rig_place(RIG_DEVICE, SL_POLICY_SWAP, S2_DECODE_AFTER, 4096);
    s2_plan_opts opts = plan_opts(&place);
    sl_error err = {0};
    char number[32];
    s2_plan *p = make_plan(&opts);
    uint64_t floor = sl_plan_floor(s2_plan_solved(p), 1);
    assert_false(sl_plan_is_feasible(s2_plan_solved(p)));
    assert_int_equal(sl_plan_check(s2_plan_solved(p), &err), SL_EBUDGET);
    snprintf(number, sizeof number, "%" PRIu64, floor);
    assert_non_null(strstr(err.msg, number));
    s2_plan_free(&p);
    for (int less = 0; less <= 1; less++) {
        opts.place.vram_bytes = floor - (uint64_t)less;
        p = make_plan(&opts);
        assert_int_equal(sl_plan_is_feasible(s2_plan_solved(p)), !less);
        assert_int_equal(sl_plan_floor(s2_plan_solved(p), 1), floor);
        s2_plan_free(&p);
    }
}

static void test_devices_that_are_not_there_are_stood_in_for(void **state)
{
    (void)state;
    s2_place_opts place = rig_place("cuda5", SL_POLICY_SWAP, S2_DECODE_AFTER, 16 << 20);
    s2_plan_opts opts = plan_opts(&place);
    s2_plan *p = make_plan(&opts);
    const s2_place *there = s2_placement_place(s2_plan_placement(p), 1);
    assert_true(there->is_stand_in);
    assert_string_equal(there->name, "cuda5");
    assert_true(sl_plan_is_feasible(s2_plan_solved(p)));
    /* A GPU keeps its cache in halves: it takes less than the simulation, which computes like a CPU. */
    uint64_t gpu_kv = sl_plan_peak(s2_plan_solved(p), 0, 1).kind[SL_MEM_KV];
    s2_plan_free(&p);
    opts.place.device = RIG_DEVICE;
    p = make_plan(&opts);
    assert_true(sl_plan_peak(s2_plan_solved(p), 0, 1).kind[SL_MEM_KV] > gpu_kv);
    assert_false(s2_placement_place(s2_plan_placement(p), 1)->is_stand_in);
    s2_plan_free(&p);
    opts.place.device = "cuda5";
    opts.place.vram_bytes = 0;
    expect_refused(&opts, SL_ENOENT, "cuda5");
}

static void test_lengths_and_their_defaults(void **state)
{
    (void)state;
    s2_place_opts place = rig_place(RIG_DEVICE, SL_POLICY_SWAP, S2_DECODE_AFTER, 0);
    s2_plan_opts opts = plan_opts(&place);
    opts.n_frames = 0;
    s2_plan *p = make_plan(&opts);
    assert_int_equal(s2_plan_n_prompt(p), 256);
    assert_int_equal(s2_plan_n_frames(p), 1024);
    s2_engine *e = rig_open(rig_model, &place, N_FRAMES);
    s2_engine_info info = s2_engine_get_info(e);
    s2_engine_close(&e);
    assert_true(s2_plan_frame_sound_s(p) == (double)info.frame_samples / info.sample_rate);
    /* The cache of a context is the most that there can be. */
    uint64_t most = sl_plan_peak(s2_plan_solved(p), 0, 1).kind[SL_MEM_KV];
    s2_plan_free(&p);
    opts.n_prompt = UINT32_MAX;
    opts.n_frames = UINT32_MAX;
    p = make_plan(&opts);
    assert_int_equal(s2_plan_n_prompt(p), info.n_ctx);
    assert_int_equal(sl_plan_peak(s2_plan_solved(p), 0, 1).kind[SL_MEM_KV], most);
    s2_plan_free(&p);
    opts.n_prompt = 1;
    opts.n_frames = 1;
    p = make_plan(&opts);
    assert_true(sl_plan_peak(s2_plan_solved(p), 0, 1).kind[SL_MEM_KV] < most);
    s2_plan_free(&p);
}

static void test_a_recording_is_a_phase_of_its_own(void **state)
{
    (void)state;
    s2_place_opts place = rig_place(RIG_DEVICE, SL_POLICY_SWAP, S2_DECODE_AFTER, 0);
    s2_plan_opts opts = plan_opts(&place);
    opts.begins_with_voice = true;
    opts.link_bytes_per_s = 1e6;
    opts.frame_seconds = 0.1;
    s2_plan *p = make_plan(&opts);
    const sl_plan_request *request = s2_plan_request(p);
    assert_int_equal(request->n_phases, 3);
    assert_string_equal(request->phases[0].name, "encode");
    assert_true(sl_plan_seconds(s2_plan_solved(p)) > 0.1 * N_FRAMES);
    s2_plan_free(&p);
}

static void test_what_cannot_be_planned_is_refused(void **state)
{
    (void)state;
    char path[512];
    s2_place_opts place = rig_place(RIG_DEVICE, SL_POLICY_SWAP, S2_DECODE_AFTER, 0);
    s2_plan_opts opts = plan_opts(&place);
    opts.model_path = test_path(path, sizeof path, rig_dir, "none.gguf");
    expect_refused(&opts, SL_ENOENT, "none.gguf");
    test_write_file(test_path(path, sizeof path, rig_dir, "bad.gguf"), "GGUF", 4);
    expect_refused(&opts, SL_EFORMAT, "bad.gguf");
    /* A tensor is never split: G3-06. */
    opts = plan_opts(&place);
    opts.place.device = "sim:16M,max-alloc=2K";
    expect_refused(&opts, SL_ELIMIT, "layers.0.attention.wqkv.weight");
    opts.place.device = "sim:16M,max-alloc=64K";
    s2_plan *p = make_plan(&opts);
    assert_true(sl_plan_is_feasible(s2_plan_solved(p)));
    s2_plan_free(&p);
    s2_plan_free(&p);
    s2_plan_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_a_plan_is_that_of_the_engine),
            cmocka_unit_test(test_a_budget_that_is_too_small_still_gives_a_plan),
            cmocka_unit_test(test_devices_that_are_not_there_are_stood_in_for),
            cmocka_unit_test(test_lengths_and_their_defaults),
            cmocka_unit_test(test_a_recording_is_a_phase_of_its_own),
            cmocka_unit_test(test_what_cannot_be_planned_is_refused),
    };
    return cmocka_run_group_tests(tests, rig_set_up, rig_tear_down);
}
