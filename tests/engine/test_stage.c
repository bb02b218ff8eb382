/*
 * Weights on a device: policies, budgets and places change where weights are and when, never what is spoken, and what is
 * held is what was planned.
 */
#include "engine/stage.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "speak_rig.h"
#include "test_support.h"

#define N_FRAMES 6

static spoken on_cpu; /* what everything else must sound like */

static int set_up(void **state)
{
    rig_set_up(state);
    on_cpu = rig_speak_on_cpu(N_FRAMES);
    return 0;
}

static s2_place_opts device_place(sl_policy policy, s2_decode_when decode, uint64_t vram_bytes)
{
    return rig_place(RIG_DEVICE, policy, decode, vram_bytes);
}

static void speak_as_on_cpu(s2_engine *e, const char *what)
{
    spoken s = rig_speak(e, RIG_TEXT, N_FRAMES);
    assert_same_sound(&on_cpu, &s, what);
}

/* What was held since the residency was opened is what the plan of the request said, or up to 5 % less. */
static void assert_as_planned(s2_engine *e, const char *what)
{
    uint64_t planned = sl_plan_peak_of_run(e->planned.plan, 1).total;
    sl_place_status held = rig_place_status(e, 1);
    if (held.peak_total > planned || held.peak_total < planned - planned / 20) {
        fail_msg("%s: held %" PRIu64 ", planned %" PRIu64, what, held.peak_total, planned);
    }
    assert_true(held.peak_total <= held.budget_bytes);
}

static void check_budgets(sl_policy policy, s2_decode_when decode)
{
    s2_place_opts place = device_place(policy, decode, 0);
    uint64_t floor = rig_floor(rig_model, &place, N_FRAMES);
    const uint64_t budgets[] = {
            floor, floor + 1, floor + floor / 8, floor + floor / 3, 2 * floor, 4 * floor};
    assert_true(floor > 100000);
    for (size_t i = 0; i < sizeof budgets / sizeof budgets[0]; i++) {
        char what[80];
        snprintf(what, sizeof what, "%s, decode %d, %" PRIu64 " of %" PRIu64,
                sl_policy_name(policy), (int)decode, budgets[i], floor);
        place.vram_bytes = budgets[i];
        s2_engine *e = rig_open(rig_model, &place, N_FRAMES);
        speak_as_on_cpu(e, what);
        assert_as_planned(e, what);
        speak_as_on_cpu(e, what);
        s2_engine_close(&e);
    }
    const uint64_t refused[] = {floor - 1, floor / 2, 1};
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        place.vram_bytes = refused[i];
        rig_expect_refused(rig_model, &place, N_FRAMES, floor);
    }
}

static void test_every_policy_decoding_and_budget_sounds_the_same(void **state)
{
    (void)state;
    for (int policy = 0; policy < SL_POLICY_COUNT; policy++) {
        for (int decode = 0; decode < S2_DECODE_COUNT; decode++) {
            check_budgets((sl_policy)policy, (s2_decode_when)decode);
        }
    }
}

/* Less is held when codec and AR take turns, and everything is held by keep. */
static void test_floors_are_in_order(void **state)
{
    (void)state;
    s2_place_opts after = device_place(SL_POLICY_SWAP, S2_DECODE_AFTER, 0);
    s2_place_opts together = device_place(SL_POLICY_SWAP, S2_DECODE_TOGETHER, 0);
    s2_place_opts keep = device_place(SL_POLICY_KEEP, S2_DECODE_AFTER, 0);
    uint64_t low = rig_floor(rig_model, &after, N_FRAMES);
    assert_true(low < rig_floor(rig_model, &together, N_FRAMES));
    assert_true(low < rig_floor(rig_model, &keep, N_FRAMES));
}

static void check_place(const s2_place_opts *place, const char *what)
{
    for (int policy = 0; policy < SL_POLICY_COUNT; policy++) {
        s2_place_opts this = *place;
        this.policy = (sl_policy)policy;
        s2_engine *e = rig_open(rig_model, &this, N_FRAMES);
        speak_as_on_cpu(e, what);
        assert_as_planned(e, what);
        assert_true(sl_plan_peak_of_run(e->planned.plan, 1).total > 0);
        speak_as_on_cpu(e, what);
        s2_engine_close(&e);
        uint64_t floor = rig_floor(rig_model, &this, N_FRAMES);
        this.vram_bytes = floor;
        e = rig_open(rig_model, &this, N_FRAMES);
        speak_as_on_cpu(e, what);
        s2_engine_close(&e);
        this.vram_bytes = floor - 1;
        rig_expect_refused(rig_model, &this, N_FRAMES, floor);
    }
}

static void test_every_place_sounds_the_same(void **state)
{
    (void)state;
    static const char *const units[] = {"slow", "fast", "codec.encoder", "codec.decoder", "codec"};
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        char away[64];
        char alone[64];
        const char *away_words[] = {away};
        const char *alone_words[] = {alone};
        snprintf(away, sizeof away, "%s=cpu", units[i]);
        snprintf(alone, sizeof alone, "%s=" RIG_DEVICE, units[i]);
        const s2_place_opts but = {.device = RIG_DEVICE, .places = away_words, .n_places = 1};
        check_place(&but, away);
        if (strcmp(units[i], "codec.encoder") != 0) {
            const s2_place_opts only = {.device = "cpu", .places = alone_words, .n_places = 1};
            check_place(&only, alone);
        }
    }
}

static void test_shorthands_and_layers_sound_the_same(void **state)
{
    (void)state;
    const s2_place_opts all[] = {
            {.device = RIG_DEVICE, .embed_on_cpu = true},
            {.device = RIG_DEVICE, .fast_on_cpu = true},
            {.device = RIG_DEVICE, .codec_on_cpu = true},
            {.device = RIG_DEVICE, .has_gpu_layers = true, .gpu_layers = 0},
            {.device = RIG_DEVICE, .has_gpu_layers = true, .gpu_layers = 1},
            {.device = RIG_DEVICE, .has_gpu_layers = true, .gpu_layers = 2},
            {.device = RIG_DEVICE, .has_gpu_layers = true, .gpu_layers = 99},
            {.device = RIG_DEVICE, .has_gpu_layers = true, .gpu_layers = 1, .embed_on_cpu = true},
            {.device = RIG_DEVICE,
                    .has_gpu_layers = true,
                    .gpu_layers = 1,
                    .fast_on_cpu = true,
                    .codec_on_cpu = true},
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        char what[32];
        snprintf(what, sizeof what, "shorthand %zu", i);
        check_place(&all[i], what);
    }
}

/* Bytes of KV cache and graphs that are booked now, as the ARs know them. */
static void assert_kv_where_it_is(s2_engine *e, size_t i_place)
{
    uint64_t kv = s2_slow_ar_kv_bytes(e->slow, &e->computes[i_place]);
    kv += e->fast_compute == &e->computes[i_place] ? s2_fast_ar_kv_bytes(e->fast) : 0;
    sl_place_status held = rig_place_status(e, i_place);
    if (held.used[SL_MEM_KV] < kv || held.used[SL_MEM_KV] > kv + kv / 20) {
        fail_msg("place %zu: %" PRIu64 " bytes of KV booked, there are %" PRIu64, i_place,
                held.used[SL_MEM_KV], kv);
    }
    assert_true((kv > 0) == (held.used[SL_MEM_KV] > 0));
}

static void test_G3_25_the_cache_is_booked_where_it_is(void **state)
{
    (void)state;
    uint64_t kv_of[4];
    for (uint32_t layers = 0; layers <= 3; layers++) {
        s2_place_opts place = device_place(SL_POLICY_KEEP, S2_DECODE_AUTO, 0);
        place.has_gpu_layers = true;
        place.gpu_layers = layers;
        place.fast_on_cpu = layers != 3;
        s2_engine *e = rig_open(rig_model, &place, N_FRAMES);
        speak_as_on_cpu(e, "layers");
        assert_kv_where_it_is(e, 0);
        assert_kv_where_it_is(e, 1);
        kv_of[layers] = rig_place_status(e, 1).used[SL_MEM_KV];
        s2_engine_close(&e);
    }
    assert_int_equal(kv_of[0], 0);
    assert_int_equal(kv_of[2], 2 * kv_of[1]);
    assert_true(kv_of[3] > kv_of[2]);
}

/* Speech that is longer than what was expected at open. */
static void test_a_request_that_does_not_fit_is_refused_before_anything_is_loaded(void **state)
{
    (void)state;
    s2_place_opts place = device_place(SL_POLICY_SWAP, S2_DECODE_AFTER, 0);
    place.vram_bytes = rig_floor(rig_model, &place, N_FRAMES);
    s2_engine *e = rig_open(rig_model, &place, N_FRAMES);
    sl_error err = {0};
    spoken s;
    assert_int_equal(rig_try(e, RIG_TEXT, 700, &s, &err), SL_EBUDGET);
    assert_non_null(strstr(err.msg, "needs"));
    assert_int_equal(s.n_samples, 0);
    assert_int_equal(rig_count_moves(e).n_loads, 0);
    assert_nothing_held(e, 1, "refused");
    assert_int_equal(rig_place_status(e, 1).peak_total, 0);
    speak_as_on_cpu(e, "after a refusal");
    assert_int_equal(rig_try(e, RIG_TEXT, 700, &s, &err), SL_EBUDGET);
    speak_as_on_cpu(e, "after another refusal");
    s2_engine_close(&e);
}

static void test_nothing_is_held_between_requests_under_hot(void **state)
{
    (void)state;
    for (int decode = 0; decode < S2_DECODE_COUNT; decode++) {
        s2_place_opts place = device_place(SL_POLICY_HOT, (s2_decode_when)decode, 0);
        s2_engine *e = rig_open(rig_model, &place, N_FRAMES);
        for (uint64_t n = 1; n <= 3; n++) {
            speak_as_on_cpu(e, "hot");
            rig_moves moves = rig_count_moves(e);
            assert_nothing_held(e, 1, "hot");
            assert_nothing_held(e, 0, "hot, on the host");
            assert_int_equal(moves.n_resident, 0);
            assert_int_equal(moves.n_loads, 3 * n);
            assert_int_equal(moves.n_evicted, 3 * n);
        }
        s2_engine_close(&e);
    }
}

static void test_keep_moves_nothing_again(void **state)
{
    (void)state;
    for (int decode = 0; decode < S2_DECODE_COUNT; decode++) {
        s2_place_opts place = device_place(SL_POLICY_KEEP, (s2_decode_when)decode, 0);
        s2_engine *e = rig_open(rig_model, &place, N_FRAMES);
        speak_as_on_cpu(e, "keep");
        rig_settle(e);
        rig_moves first = rig_count_moves(e);
        sl_place_status held = rig_place_status(e, 1);
        assert_int_equal(first.n_loads, 3);
        assert_int_equal(first.epochs, 3);
        assert_int_equal(first.n_resident, 3);
        for (int i = 0; i < 3; i++) {
            speak_as_on_cpu(e, "keep, again");
            rig_moves again = rig_count_moves(e);
            assert_memory_equal(&again, &first, sizeof first);
            assert_int_equal(rig_place_status(e, 1).peak_total, held.peak_total);
        }
        s2_engine_close(&e);
    }
}

static uint64_t kv_held(s2_engine *e)
{
    return rig_place_status(e, 1).used[SL_MEM_KV];
}

/* Where everything fits, auto moves nothing again either, and gives room to what needs it: other lengths, a voice. */
static void test_auto_keeps_what_fits_between_requests(void **state)
{
    (void)state;
    static const uint32_t lengths[] = {N_FRAMES, 90, N_FRAMES, 150, 90, N_FRAMES};
    s2_place_opts place = device_place(SL_POLICY_AUTO, S2_DECODE_TOGETHER, 0);
    place.vram_bytes = rig_floor(rig_model, &place, 150);
    s2_engine *e = rig_open(rig_model, &place, N_FRAMES);
    uint64_t most = 0;
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        spoken want = rig_speak_on_cpu(lengths[i]);
        for (int k = 0; k < 2; k++) {
            spoken got = rig_speak(e, RIG_TEXT, lengths[i]);
            assert_same_sound(&want, &got, "auto");
            assert_true(kv_held(e) >= most); /* what was left is used, or replaced by more */
            most = kv_held(e);
            assert_true(rig_place_status(e, 1).peak_total <= place.vram_bytes);
        }
    }
    rig_settle(e);
    assert_int_equal(rig_count_moves(e).n_loads, 3);
    assert_int_equal(rig_count_moves(e).n_evicted, 0);
    sl_error err = {0};
    s2_voice voice = {0};
    static float samples[4096];
    for (size_t i = 0; i < 4096; i++) {
        samples[i] = (float)(i % 64) / 64.0F;
    }
    assert_ok(s2_engine_make_voice(e, samples, 4096, "xy", &voice, &err), &err);
    assert_int_equal(kv_held(e), 0);
    assert_true(rig_place_status(e, 1).peak_total <= place.vram_bytes);
    s2_voice_done(&voice);
    speak_as_on_cpu(e, "auto, after a voice");
    assert_ok(s2_engine_sleep(e, 1, &err), &err);
    assert_int_equal(kv_held(e), 0);
    s2_engine_close(&e);
}

/* Under a budget of one phase the units of both move in every request, and none twice. */
static void test_G3_20_swap_moves_the_same_in_every_request(void **state)
{
    (void)state;
    s2_place_opts place = device_place(SL_POLICY_SWAP, S2_DECODE_AFTER, 0);
    place.vram_bytes = rig_floor(rig_model, &place, N_FRAMES);
    s2_engine *e = rig_open(rig_model, &place, N_FRAMES);
    speak_as_on_cpu(e, "swap");
    uint64_t before = rig_count_moves(e).n_loads;
    assert_int_equal(before, 3);
    for (int i = 0; i < 5; i++) {
        sl_residency_reset_peaks(s2_engine_residency(e));
        speak_as_on_cpu(e, "swap, again");
        assert_as_planned(e, "swap, again");
        uint64_t now = rig_count_moves(e).n_loads;
        assert_true(now - before >= 2 && now - before <= 3);
        before = now;
    }
    s2_engine_close(&e);
}

static void test_sleep_gives_back_and_waking_sounds_the_same(void **state)
{
    (void)state;
    for (int policy = 0; policy < SL_POLICY_COUNT; policy++) {
        s2_place_opts place = device_place((sl_policy)policy, S2_DECODE_AUTO, 0);
        s2_engine *e = rig_open(rig_model, &place, N_FRAMES);
        sl_error err = {0};
        assert_int_equal(s2_engine_sleep(e, 0, &err), SL_EINVAL);
        assert_int_equal(s2_engine_sleep(e, 4, &err), SL_EINVAL);
        assert_non_null(strstr(err.msg, "1 to 3"));
        for (unsigned level = 1; level <= 3; level++) {
            assert_ok(s2_engine_sleep(e, level, &err), &err);
            speak_as_on_cpu(e, "before sleep");
            rig_settle(e);
            rig_moves awake = rig_count_moves(e);
            assert_ok(s2_engine_sleep(e, level, &err), &err);
            sl_place_status asleep = rig_place_status(e, 1);
            assert_int_equal(asleep.used[SL_MEM_KV], 0);
            assert_int_equal(asleep.used[SL_MEM_COMPUTE], 0);
            if (level == 1) {
                assert_int_equal(rig_count_moves(e).n_resident, awake.n_resident);
            } else {
                assert_nothing_held(e, 1, "asleep");
            }
            assert_ok(s2_engine_sleep(e, level, &err), &err);
            speak_as_on_cpu(e, "after sleep");
            speak_as_on_cpu(e, "after sleep, again");
        }
        s2_engine_close(&e);
    }
}

static void test_G3_27_pieces_of_a_text_bring_each_unit_once(void **state)
{
    (void)state;
    static const char text[] = "Ab cd ef. Gh ij kl. Mn op qr. St uv wx.";
    const s2_place_opts cpu = {.device = "cpu"};
    s2_engine *e = rig_open(rig_model, &cpu, N_FRAMES);
    spoken whole;
    sl_error err = {0};
    s2_speak_opts opts = s2_speak_defaults();
    opts.text = text;
    opts.text_bytes = strlen(text);
    opts.temperature = 0;
    opts.top_k = 1;
    opts.max_frames = N_FRAMES;
    opts.min_frames = N_FRAMES;
    opts.segment_bytes = 12;
    opts.pause_ms = 30;
    assert_ok(rig_try_opts(e, &opts, &whole, &err), &err);
    assert_true(whole.n_segments >= 3);
    s2_engine_info info = s2_engine_get_info(e);
    size_t n_silent = (size_t)opts.pause_ms * info.sample_rate / 1000;
    assert_int_equal(whole.n_samples,
            (size_t)whole.n_frames * info.frame_samples + (whole.n_segments - 1) * n_silent);
    s2_engine_close(&e);
    for (int k = 0; k < SL_POLICY_COUNT * S2_DECODE_COUNT * 2; k++) {
        s2_decode_when decode = (s2_decode_when)(k / 2 % S2_DECODE_COUNT);
        s2_place_opts place = device_place((sl_policy)(k / 2 / S2_DECODE_COUNT), decode, 0);
        spoken s;
        e = rig_open(rig_model, &place, N_FRAMES);
        opts.wants_sound_early = k % 2 != 0;
        assert_ok(rig_try_opts(e, &opts, &s, &err), &err);
        assert_same_sound(&whole, &s, "pieces");
        static const char *const once[] = {"embed", "slow", "fast", "codec.decoder"};
        for (size_t i = 0; i < 4; i++) {
            assert_int_equal(rig_unit_status(e, once[i]).n_loads, 1);
        }
        s2_engine_close(&e);
    }
}

static s2_voice some_voice(void)
{
    enum {
        N = 12
    };
    s2_voice v = {.n_codebooks = 3, .n_frames = N, .sample_rate = 44100, .codebook_size = 16};
    v.codes = malloc(sizeof(int32_t) * 3 * N);
    v.text = strdup("xyz");
    assert_non_null(v.codes);
    assert_non_null(v.text);
    for (int i = 0; i < 3 * N; i++) {
        v.codes[i] = i % 8;
    }
    return v;
}

static void test_a_voice_from_a_profile_never_brings_the_encoder(void **state)
{
    (void)state;
    s2_voice voice = some_voice();
    s2_speak_opts opts = s2_speak_defaults();
    opts.text = RIG_TEXT;
    opts.text_bytes = strlen(RIG_TEXT);
    opts.max_frames = N_FRAMES;
    opts.min_frames = N_FRAMES;
    opts.voices = &voice;
    opts.n_voices = 1;
    for (int policy = 0; policy < SL_POLICY_COUNT; policy++) {
        s2_place_opts place = device_place((sl_policy)policy, S2_DECODE_AUTO, 0);
        s2_engine *e = rig_open(rig_model, &place, N_FRAMES);
        sl_error err = {0};
        spoken s;
        voice.sample_rate = s2_engine_get_info(e).sample_rate;
        assert_ok(rig_try_opts(e, &opts, &s, &err), &err);
        assert_int_equal(rig_unit_status(e, "codec.encoder").n_loads, 0);
        assert_int_equal(rig_unit_status(e, "codec.decoder").n_loads, 1);
        s2_engine_close(&e);
    }
    s2_voice_done(&voice);
}

/* A recording becomes the same voice everywhere, and its encoder leaves with its phase. */
static void test_a_voice_is_made_on_a_device(void **state)
{
    (void)state;
    float samples[40];
    s2_voice on_host = {0};
    sl_error err = {0};
    for (int i = 0; i < 40; i++) {
        samples[i] = (float)(i % 7) / 8 - 0.3F;
    }
    const s2_place_opts cpu = {.device = "cpu"};
    s2_engine *e = rig_open(rig_model, &cpu, N_FRAMES);
    assert_ok(s2_engine_make_voice(e, samples, 40, "xy", &on_host, &err), &err);
    s2_engine_close(&e);
    for (int policy = 0; policy < SL_POLICY_COUNT; policy++) {
        s2_place_opts place = device_place((sl_policy)policy, S2_DECODE_AUTO, 0);
        e = rig_open(rig_model, &place, N_FRAMES);
        for (int i = 0; i < 2; i++) {
            s2_voice v = {0};
            assert_ok(s2_engine_make_voice(e, samples, 40, "xy", &v, &err), &err);
            assert_int_equal(v.n_frames, on_host.n_frames);
            assert_memory_equal(
                    v.codes, on_host.codes, sizeof(int32_t) * v.n_codebooks * v.n_frames);
            s2_voice_done(&v);
            assert_as_planned(e, "encode");
            speak_as_on_cpu(e, "after a voice");
            assert_true(policy == SL_POLICY_KEEP || policy == SL_POLICY_AUTO ||
                        rig_unit_status(e, "codec.encoder").state == SL_UNIT_ABSENT);
            assert_ok(s2_engine_sleep(e, 2, &err), &err);
            sl_residency_reset_peaks(s2_engine_residency(e));
        }
        s2_engine_close(&e);
    }
    s2_voice_done(&on_host);
}

static void test_codes_are_decoded_on_a_device(void **state)
{
    (void)state;
    static const int32_t codes[] = {1, 2, 3, 4, 5, 6, 7, 0, 1};
    sl_error err = {0};
    s2_stats stats;
    for (int policy = 0; policy < SL_POLICY_COUNT; policy++) {
        s2_place_opts place = device_place((sl_policy)policy, S2_DECODE_AUTO, 0);
        s2_engine *e = rig_open(rig_model, &place, N_FRAMES);
        assert_ok(s2_engine_decode(e, codes, 3, NULL, NULL, &stats, &err), &err);
        assert_int_equal(stats.n_frames, 3);
        assert_as_planned(e, "decode");
        assert_int_equal(rig_count_moves(e).n_loads, 1);
        assert_int_equal(rig_unit_status(e, "codec.decoder").n_loads, 1);
        speak_as_on_cpu(e, "after decoding");
        s2_engine_close(&e);
    }
}

/* Wanted and actual placement are both told, at every time. */
static void test_G3_23_wanted_and_actual_places_are_told(void **state)
{
    (void)state;
    s2_place_opts place = device_place(SL_POLICY_KEEP, S2_DECODE_AUTO, 0);
    place.fast_on_cpu = true;
    s2_engine *e = rig_open(rig_model, &place, N_FRAMES);
    sl_unit_status slow = rig_unit_status(e, "slow");
    assert_int_equal(slow.wanted_place, 1);
    assert_true(slow.actual_place == SL_PLAN_NONE);
    assert_int_equal(rig_unit_status(e, "fast").wanted_place, 0);
    speak_as_on_cpu(e, "places");
    slow = rig_unit_status(e, "slow");
    assert_int_equal(slow.wanted_place, 1);
    assert_int_equal(slow.actual_place, 1);
    assert_true(slow.n_bytes > 0);
    assert_int_equal(rig_unit_status(e, "fast").actual_place, 0);
    assert_int_equal(rig_unit_status(e, "fast").n_bytes, 0);
    assert_int_equal(rig_unit_status(e, "codec.quantizer").actual_place, 0);
    assert_int_equal(rig_unit_status(e, "embed").actual_place, 0);
    assert_int_equal(rig_unit_status(e, "embed").n_bytes, 0);
    assert_string_equal(s2_placement_place(s2_engine_placement(e), 1)->name, "sim");
    s2_engine_close(&e);
}

/* What speaking needs is there, or on its way, before anybody speaks. */
static void test_weights_are_fetched_ahead_of_speech(void **state)
{
    (void)state;
    s2_place_opts place = device_place(SL_POLICY_SWAP, S2_DECODE_AUTO, 0);
    s2_engine_opts opts = rig_opts(rig_model, &place, N_FRAMES);
    s2_engine *e = NULL;
    sl_error err = {0};
    opts.expects_speech = true;
    assert_ok(s2_engine_open(&opts, &e, &err), &err);
    assert_ok(sl_residency_settle(s2_engine_residency(e), NULL, &err), &err);
    assert_int_equal(rig_unit_status(e, "slow").state, SL_UNIT_RESIDENT);
    assert_int_equal(rig_unit_status(e, "fast").state, SL_UNIT_RESIDENT);
    assert_int_equal(rig_unit_status(e, "codec.decoder").n_loads, 0);
    speak_as_on_cpu(e, "fetched ahead");
    assert_int_equal(rig_unit_status(e, "slow").n_loads, 1);
    s2_engine_close(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_every_policy_decoding_and_budget_sounds_the_same),
            cmocka_unit_test(test_floors_are_in_order),
            cmocka_unit_test(test_every_place_sounds_the_same),
            cmocka_unit_test(test_shorthands_and_layers_sound_the_same),
            cmocka_unit_test(test_G3_25_the_cache_is_booked_where_it_is),
            cmocka_unit_test(test_a_request_that_does_not_fit_is_refused_before_anything_is_loaded),
            cmocka_unit_test(test_nothing_is_held_between_requests_under_hot),
            cmocka_unit_test(test_keep_moves_nothing_again),
            cmocka_unit_test(test_auto_keeps_what_fits_between_requests),
            cmocka_unit_test(test_G3_20_swap_moves_the_same_in_every_request),
            cmocka_unit_test(test_sleep_gives_back_and_waking_sounds_the_same),
            cmocka_unit_test(test_G3_27_pieces_of_a_text_bring_each_unit_once),
            cmocka_unit_test(test_a_voice_from_a_profile_never_brings_the_encoder),
            cmocka_unit_test(test_a_voice_is_made_on_a_device),
            cmocka_unit_test(test_codes_are_decoded_on_a_device),
            cmocka_unit_test(test_G3_23_wanted_and_actual_places_are_told),
            cmocka_unit_test(test_weights_are_fetched_ahead_of_speech),
    };
    return cmocka_run_group_tests(tests, set_up, rig_tear_down);
}
