/* What requests share is computed once, whatever leaves the device between them, and sounds the same. */
#include "engine/prefix.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "engine/engine_impl.h"
#include "engine/stage.h"
#include "speak_rig.h"
#include "test_support.h"

#define N_FRAMES 3

static spoken on_cpu;

static int set_up(void **state)
{
    rig_set_up(state);
    on_cpu = rig_speak_on_cpu(N_FRAMES);
    return 0;
}

static s2_engine *open_with(sl_policy policy)
{
    s2_place_opts place = rig_place(RIG_DEVICE, policy, S2_DECODE_AUTO, 0);
    return rig_open(rig_model, &place, N_FRAMES);
}

/* Speaks; whether the shared beginning was evaluated for it. */
static bool speak_evaluates(s2_engine *e, const char *what)
{
    spoken s = rig_speak(e, RIG_TEXT, N_FRAMES);
    assert_same_sound(&on_cpu, &s, what);
    assert_true(e->prefix.n > 0 && e->prefix.n < on_cpu.n_prompt_columns);
    bool is_whole = s.n_prompt_columns == on_cpu.n_prompt_columns;
    assert_true(is_whole || s.n_prompt_columns == on_cpu.n_prompt_columns - e->prefix.n);
    return is_whole;
}

static uint64_t host_kv(s2_engine *e)
{
    return rig_place_status(e, 0).used[SL_MEM_KV];
}

static void test_it_outlives_the_phase_in_host_memory(void **state)
{
    (void)state;
    static const sl_policy policies[] = {SL_POLICY_SWAP, SL_POLICY_AUTO};
    for (size_t i = 0; i < 2; i++) {
        s2_engine *e = open_with(policies[i]);
        assert_true(speak_evaluates(e, "first"));
        assert_int_equal(rig_place_status(e, 1).used[SL_MEM_KV], 0);
        uint64_t n_kept = host_kv(e);
        assert_true(n_kept > 0 && n_kept % e->prefix.n == 0);
        for (int k = 0; k < 3; k++) {
            assert_false(speak_evaluates(e, "again"));
            assert_int_equal(host_kv(e), n_kept);
        }
        s2_engine_close(&e);
    }
}

static void test_nothing_is_copied_where_it_stays_or_all_is_given_back(void **state)
{
    (void)state;
    s2_engine *e = open_with(SL_POLICY_KEEP);
    assert_true(speak_evaluates(e, "keep"));
    assert_int_equal(host_kv(e), 0);
    assert_false(speak_evaluates(e, "keep, again"));
    s2_engine_close(&e);
    e = open_with(SL_POLICY_HOT);
    for (int k = 0; k < 2; k++) {
        assert_true(speak_evaluates(e, "hot"));
        assert_int_equal(host_kv(e), 0);
        assert_null(e->prefix.copy);
    }
    s2_engine_close(&e);
}

static void test_light_sleep_keeps_it_and_deep_sleep_gives_it_back(void **state)
{
    (void)state;
    static const sl_policy policies[] = {SL_POLICY_SWAP, SL_POLICY_KEEP};
    for (size_t i = 0; i < 2; i++) {
        sl_error err = {0};
        s2_engine *e = open_with(policies[i]);
        assert_true(speak_evaluates(e, "awake"));
        assert_ok(s2_engine_sleep(e, 1, &err), &err);
        assert_int_equal(rig_place_status(e, 1).used[SL_MEM_KV], 0);
        assert_true(host_kv(e) > 0);
        assert_false(speak_evaluates(e, "after level 1"));
        for (unsigned level = 2; level <= 3; level++) {
            assert_ok(s2_engine_sleep(e, level, &err), &err);
            assert_nothing_held(e, 0, "asleep");
            assert_true(speak_evaluates(e, "after level 2 or 3"));
        }
        s2_engine_close(&e);
    }
}

/* Another voice is another beginning, and only one is kept. */
static void test_another_voice_takes_its_place(void **state)
{
    (void)state;
    s2_engine *e = open_with(SL_POLICY_SWAP);
    int32_t codes[64] = {0};
    s2_voice voice = {.n_codebooks = e->hp.n_codebooks,
            .codebook_size = e->hp.codebook_size,
            .sample_rate = e->hp.codec.sample_rate,
            .n_frames = 4,
            .codes = codes,
            .text = (char[]){"ab"}};
    s2_speak_opts opts = s2_speak_defaults();
    assert_true(4 * e->hp.n_codebooks <= 64);
    opts.text = RIG_TEXT;
    opts.text_bytes = strlen(RIG_TEXT);
    opts.max_frames = N_FRAMES;
    opts.min_frames = N_FRAMES;
    opts.temperature = 0;
    opts.top_k = 1;
    opts.voices = &voice;
    opts.n_voices = 1;
    assert_true(speak_evaluates(e, "no voice"));
    uint64_t n_plain = host_kv(e);
    spoken first;
    spoken again;
    sl_error err = {0};
    assert_ok(rig_try_opts(e, &opts, &first, &err), &err);
    assert_true(host_kv(e) > n_plain);
    assert_ok(rig_try_opts(e, &opts, &again, &err), &err);
    assert_same_sound(&first, &again, "the voice again");
    assert_int_equal(again.n_prompt_columns, first.n_prompt_columns - e->prefix.n);
    assert_true(speak_evaluates(e, "no voice again"));
    assert_int_equal(host_kv(e), n_plain);
    codes[5] = 1; /* the same length, another recording */
    assert_ok(rig_try_opts(e, &opts, &again, &err), &err);
    assert_int_equal(again.n_prompt_columns, first.n_prompt_columns);
    s2_engine_close(&e);
}

/* Without memory for the copy the next request computes it, and nothing is lost. */
static void test_without_memory_it_is_computed_again(void **state)
{
    (void)state;
    s2_engine *e = open_with(SL_POLICY_KEEP);
    assert_true(speak_evaluates(e, "first"));
    for (long n = 0; !e->prefix.copy; n++) {
        assert_int_equal(host_kv(e), 0);
        assert_true(n < 10);
        sl__mem_fail_after(n);
        s2_prefix_keep(&e->prefix, e->slow, e->residency);
        sl__mem_fail_after(-1);
        assert_true(n > 0 || !e->prefix.copy);
    }
    assert_int_equal(host_kv(e), e->prefix.n * s2_slow_ar_row_bytes(e->slow));
    s2_prefix_drop(&e->prefix);
    assert_int_equal(host_kv(e), 0);
    s2_slow_ar_release(e->slow);
    assert_true(speak_evaluates(e, "computed again"));
    s2_engine_close(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_it_outlives_the_phase_in_host_memory),
            cmocka_unit_test(test_nothing_is_copied_where_it_stays_or_all_is_given_back),
            cmocka_unit_test(test_light_sleep_keeps_it_and_deep_sleep_gives_it_back),
            cmocka_unit_test(test_another_voice_takes_its_place),
            cmocka_unit_test(test_without_memory_it_is_computed_again),
    };
    return cmocka_run_group_tests(tests, set_up, rig_tear_down);
}
