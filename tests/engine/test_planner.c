/*
 * What is planned is what is taken: sizes that the planner measures without memory are those that the ARs and the codec
 * have when they run, and the phases of a run are those that the wish, the policy and the budget allow.
 */
#include "engine/planner.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "engine/stage.h"
#include "speak_rig.h"
#include "test_support.h"

#define N_FRAMES 4

static void assert_near_below(uint64_t actual, uint64_t planned, const char *what)
{
    if (actual > planned || actual < planned - planned / 20) {
        fail_msg("%s: %" PRIu64 " bytes, planned %" PRIu64, what, actual, planned);
    }
}

/* After a request under keep everything that it took is still there to be asked for its size. */
static void check_sizes(const s2_place_opts *place, const char *text, uint32_t n_frames)
{
    s2_engine *e = rig_open(rig_model, place, N_FRAMES);
    rig_speak(e, text, n_frames);
    const s2_needs *ar = &e->planner.ar;
    size_t decoder_at = s2_planner_wanted(&e->planner, S2_SLOT_CODEC_DECODER);
    for (size_t i = 0; i < e->planner.n_places; i++) {
        s2_compute *c = &e->computes[i];
        bool has_fast = e->fast_compute == c;
        uint64_t kv = s2_slow_ar_kv_bytes(e->slow, c);
        uint64_t compute = s2_slow_ar_compute_bytes(e->slow, c);
        kv += has_fast ? s2_fast_ar_kv_bytes(e->fast) : 0;
        compute += has_fast ? s2_fast_ar_compute_bytes(e->fast) : 0;
        assert_near_below(kv, ar->kv[i], "KV cache");
        /* The last graph of a prompt is over the columns that were left, fewer than planned for. */
        assert_true(compute <= ar->compute[i] && (compute > 0) == (ar->compute[i] > 0));
        assert_int_equal(e->planner.codec[1].kv[i], 0);
        assert_true((e->planner.codec[1].compute[i] > 0) == (i == decoder_at));
    }
    assert_non_null(e->decoder);
    assert_int_equal(s2_codec_decoder_bytes(e->decoder), e->planner.codec[1].compute[decoder_at]);
    assert_near_below(rig_place_status(e, 1).peak_total,
            sl_plan_peak_of_run(e->planned.plan, 1).total, "peak");
    s2_engine_close(&e);
}

static void test_what_is_measured_is_what_is_taken(void **state)
{
    (void)state;
    static char long_text[201];
    memset(long_text, 'a', sizeof long_text - 1);
    s2_place_opts place = rig_place(RIG_DEVICE, SL_POLICY_KEEP, S2_DECODE_AUTO, 0);
    check_sizes(&place, "ab c.", N_FRAMES);
    /* A prompt of more columns than a chunk has, and more positions than one step of the cache. */
    check_sizes(&place, long_text, N_FRAMES);
    check_sizes(&place, long_text, 90);
    place.decode = S2_DECODE_AFTER;
    check_sizes(&place, "ab c.", N_FRAMES);
    place.has_gpu_layers = true;
    place.gpu_layers = 1;
    check_sizes(&place, "ab c.", N_FRAMES);
    check_sizes(&place, long_text, N_FRAMES);
    place.embed_on_cpu = true;
    place.fast_on_cpu = true;
    check_sizes(&place, "ab c.", N_FRAMES);
    place.codec_on_cpu = true;
    check_sizes(&place, long_text, N_FRAMES);
}

/* Of one prompt, the floor is what such a request really takes, and one byte less is refused. */
static void test_a_full_prompt_fills_its_floor(void **state)
{
    (void)state;
    static char text[300];
    s2_place_opts place = rig_place(RIG_DEVICE, SL_POLICY_SWAP, S2_DECODE_AFTER, 0);
    s2_engine *e = rig_open(rig_model, &place, N_FRAMES);
    const s2_run_wish wish = {.policy = SL_POLICY_SWAP, .decode = S2_DECODE_AFTER};
    const s2_speeds speeds = {0};
    const s2_extent usual = {256, 256 + N_FRAMES, N_FRAMES};
    s2_planned planned = {0};
    s2_run run;
    sl_error err = {0};
    assert_ok(s2_planner_plan_speech(&e->planner, &wish, &usual, &speeds, &run, &planned, &err),
            &err);
    uint64_t floor = sl_plan_floor(planned.plan, 1);
    s2_planned_done(&planned);
    s2_engine_close(&e);
    place.vram_bytes = floor;
    e = rig_open(rig_model, &place, N_FRAMES);
    uint64_t peak = 0;
    /* A byte is a column: the longest text that still fits is the one that the floor is for. */
    for (size_t n = 190; n < sizeof text - 1; n++) {
        spoken s;
        memset(text, 'a', n);
        text[n] = '\0';
        sl_residency_reset_peaks(s2_engine_residency(e));
        int r = rig_try(e, text, N_FRAMES, &s, &err);
        if (r < 0) {
            assert_int_equal(r, SL_EBUDGET);
            break;
        }
        peak = rig_place_status(e, 1).peak_total;
        assert_true(peak <= floor);
    }
    assert_near_below(peak, floor, "a full prompt");
    s2_engine_close(&e);
}

static void expect_run(s2_engine *e, const s2_run_wish *wish, const s2_phase_kind *kinds, size_t n)
{
    const s2_extent extent = {20, 20 + N_FRAMES, N_FRAMES};
    const s2_speeds speeds = {0};
    s2_planned planned = {0};
    s2_run run;
    sl_error err = {0};
    assert_ok(s2_planner_plan_speech(&e->planner, wish, &extent, &speeds, &run, &planned, &err),
            &err);
    assert_int_equal(run.n, n);
    for (size_t i = 0; i < n; i++) {
        assert_string_equal(s2_phase_name(run.kinds[i]), s2_phase_name(kinds[i]));
        assert_string_equal(planned.request.phases[i].name, s2_phase_name(kinds[i]));
    }
    assert_int_equal(sl_plan_n_steps(planned.plan), n);
    s2_planned_done(&planned);
    s2_planned_done(&planned);
}

static void test_phases_follow_from_wish_and_policy(void **state)
{
    (void)state;
    static const s2_phase_kind together[] = {S2_PHASE_SPEAK};
    static const s2_phase_kind after[] = {S2_PHASE_GENERATE, S2_PHASE_DECODE};
    static const s2_phase_kind voice[] = {S2_PHASE_ENCODE, S2_PHASE_GENERATE, S2_PHASE_DECODE};
    s2_place_opts place = rig_place(RIG_DEVICE, SL_POLICY_SWAP, S2_DECODE_AUTO, 0);
    s2_engine *e = rig_open(rig_model, &place, N_FRAMES);
    expect_run(e, &(s2_run_wish){SL_POLICY_SWAP, S2_DECODE_AUTO, false, false}, after, 2);
    expect_run(e, &(s2_run_wish){SL_POLICY_SWAP, S2_DECODE_AUTO, false, true}, together, 1);
    expect_run(e, &(s2_run_wish){SL_POLICY_KEEP, S2_DECODE_AUTO, false, false}, together, 1);
    expect_run(e, &(s2_run_wish){SL_POLICY_KEEP, S2_DECODE_AFTER, false, true}, after, 2);
    expect_run(e, &(s2_run_wish){SL_POLICY_HOT, S2_DECODE_TOGETHER, false, false}, together, 1);
    expect_run(e, &(s2_run_wish){SL_POLICY_SWAP, S2_DECODE_AUTO, true, false}, voice, 3);
    s2_engine_close(&e);
    /* Sound at once costs nothing where the codec has memory of its own, and is given up where it does not fit. */
    place.codec_on_cpu = true;
    e = rig_open(rig_model, &place, N_FRAMES);
    expect_run(e, &(s2_run_wish){SL_POLICY_SWAP, S2_DECODE_AUTO, false, false}, together, 1);
    s2_engine_close(&e);
    place.codec_on_cpu = false;
    place.decode = S2_DECODE_AFTER;
    e = rig_open(rig_model, &place, N_FRAMES);
    place.vram_bytes = sl_plan_floor(e->planned.plan, 1);
    s2_engine_close(&e);
    e = rig_open(rig_model, &place, N_FRAMES);
    const s2_run_wish wish = {SL_POLICY_SWAP, S2_DECODE_AUTO, false, true};
    const s2_extent usual = {256, 256 + N_FRAMES, N_FRAMES};
    const s2_speeds speeds = {0};
    s2_planned planned = {0};
    s2_run run;
    sl_error err = {0};
    assert_ok(s2_planner_plan_speech(&e->planner, &wish, &usual, &speeds, &run, &planned, &err),
            &err);
    assert_int_equal(run.n, 2);
    assert_true(sl_plan_is_feasible(planned.plan));
    s2_planned_done(&planned);
    s2_engine_close(&e);
}

static void test_units_that_phases_need(void **state)
{
    (void)state;
    static const unsigned ar =
            1u << S2_SLOT_EMBED | 1u << S2_SLOT_SLOW | 1u << S2_SLOT_SLOW_REST | 1u << S2_SLOT_FAST;
    static const unsigned decoder = 1u << S2_SLOT_CODEC_DECODER | 1u << S2_SLOT_CODEC_QUANTIZER;
    static const unsigned encoder = 1u << S2_SLOT_CODEC_ENCODER | 1u << S2_SLOT_CODEC_QUANTIZER;
    const unsigned want[S2_PHASE_COUNT] = {[S2_PHASE_ENCODE] = encoder,
            [S2_PHASE_GENERATE] = ar,
            [S2_PHASE_DECODE] = decoder,
            [S2_PHASE_SPEAK] = ar | decoder};
    for (int kind = 0; kind < S2_PHASE_COUNT; kind++) {
        for (int slot = 0; slot < S2_SLOT_COUNT; slot++) {
            assert_int_equal(
                    s2_phase_needs((s2_phase_kind)kind, (s2_slot)slot), (want[kind] >> slot) & 1);
        }
    }
    assert_false(s2_phase_needs(S2_PHASE_SPEAK, S2_SLOT_COUNT));
}

/* Time is predicted of what is given, bytes of what is moved. */
static void test_predictions(void **state)
{
    (void)state;
    s2_place_opts place = rig_place(RIG_DEVICE, SL_POLICY_SWAP, S2_DECODE_AFTER, 0);
    s2_engine *e = rig_open(rig_model, &place, N_FRAMES);
    const s2_run run = {.kinds = {S2_PHASE_GENERATE, S2_PHASE_DECODE}, .n = 2};
    const s2_extent extent = {20, 20 + N_FRAMES, N_FRAMES};
    const s2_speeds none = {0};
    const s2_speeds some = {1e6, 0.5};
    s2_planned planned = {0};
    sl_error err = {0};
    assert_ok(s2_planner_plan(&e->planner, &run, &extent, SL_POLICY_SWAP, &none, &planned, &err),
            &err);
    assert_true(sl_plan_seconds(planned.plan) == 0);
    uint64_t moved = sl_plan_bytes_moved(planned.plan);
    uint64_t units = 0;
    static const char *const names[] = {"embed", "slow", "fast", "codec.decoder"};
    for (size_t i = 0; i < 4; i++) {
        units += sl_residency_unit_bytes(e->residency, rig_unit(e, names[i]), 1);
    }
    assert_int_equal(moved, units);
    s2_planned_done(&planned);
    assert_ok(s2_planner_plan(&e->planner, &run, &extent, SL_POLICY_SWAP, &some, &planned, &err),
            &err);
    double seconds = sl_plan_seconds(planned.plan);
    assert_true(seconds >= N_FRAMES * 0.5);
    assert_true(seconds <= N_FRAMES * 0.5 + (double)moved / 1e6 + 1e-9);
    s2_planned_done(&planned);
    s2_engine_close(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_what_is_measured_is_what_is_taken),
            cmocka_unit_test(test_a_full_prompt_fills_its_floor),
            cmocka_unit_test(test_phases_follow_from_wish_and_policy),
            cmocka_unit_test(test_units_that_phases_need),
            cmocka_unit_test(test_predictions),
    };
    return cmocka_run_group_tests(tests, rig_set_up, rig_tear_down);
}
