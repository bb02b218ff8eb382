/*
 * The engine on a real back end of ggml's, one process for all of it: the software device of Mesa compiles its shaders once.
 * Without a device (real_device.h) everything is skipped; with SLUICE_NEED_VULKAN set that is a failure.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/stage.h"
#include "real_device.h"
#include "speak_rig.h"
#include "test_support.h"

#define MODEL    "tests/data/tiny/tiny-q8_0.gguf"
#define TEXT     "Hi there."
#define N_FRAMES 3

static const char *device;
static spoken with_keep; /* what all runs on it must sound like */

static s2_place_opts place_on(sl_policy policy, s2_decode_when decode, uint64_t vram_bytes)
{
    return rig_place(device, policy, decode, vram_bytes);
}

static int set_up(void **state)
{
    (void)state;
    s2_place_opts place = place_on(SL_POLICY_KEEP, S2_DECODE_TOGETHER, 0);
    s2_engine *e = rig_open(MODEL, &place, N_FRAMES);
    with_keep = rig_speak(e, TEXT, N_FRAMES);
    s2_engine_close(&e);
    return 0;
}

static void check_budget(const s2_place_opts *place, int n_requests)
{
    char what[96];
    snprintf(what, sizeof what, "%s, decode %d, %" PRIu64 " bytes", sl_policy_name(place->policy),
            (int)place->decode, place->vram_bytes);
    s2_engine *e = rig_open(MODEL, place, N_FRAMES);
    for (int i = 0; i < n_requests; i++) {
        spoken s = rig_speak(e, TEXT, N_FRAMES);
        assert_same_sound(&with_keep, &s, what);
    }
    uint64_t planned = sl_plan_peak_of_run(e->planned.plan, 1).total;
    sl_place_status held = rig_place_status(e, 1);
    print_message("%s: planned %" PRIu64 ", held %" PRIu64 ", now %" PRIu64
                  ", by the back end's figure %" PRIu64 "\n",
            what, planned, held.peak_total, held.used_total, held.device_bytes);
    assert_true(held.peak_total <= planned && held.peak_total >= planned - planned / 20);
    assert_true(held.peak_total <= held.budget_bytes);
    if (place->policy == SL_POLICY_HOT) {
        assert_nothing_held(e, 1, what);
    }
    s2_engine_close(&e);
}

/* From all that fits down to the floor, and one byte less. */
static void test_every_policy_and_budget_sounds_the_same(void **state)
{
    (void)state;
    for (int policy = 0; policy < SL_POLICY_COUNT; policy++) {
        s2_place_opts after = place_on((sl_policy)policy, S2_DECODE_AFTER, 0);
        uint64_t floor = rig_floor(MODEL, &after, N_FRAMES);
        after.vram_bytes = floor - 1;
        rig_expect_refused(MODEL, &after, N_FRAMES, floor);
        after.vram_bytes = floor;
        check_budget(&after, 2);
        s2_place_opts together = place_on((sl_policy)policy, S2_DECODE_TOGETHER, 2 * floor);
        check_budget(&together, 1);
    }
}

/*
 * What another order of sums, half precision of the cache and activations that are rounded to eight bits (CUDA, with Q8_0
 * weights) may do, as a part of the largest number.
 */
#define LOGITS_BOUND  0.05F
#define SAMPLES_BOUND 0.005F

#define MAX_NUMBERS 20000

/* Numbers of one place: logits of both ARs for a fixed prompt, and samples of fixed codes. */
typedef struct numbers {
    float logits[MAX_NUMBERS];
    float hidden[MAX_NUMBERS];
    float fast_logits[MAX_NUMBERS];
    float samples[MAX_NUMBERS];
    size_t n_samples;
} numbers;

static int on_samples(void *ud, const float *samples, size_t n)
{
    numbers *all = ud;
    assert_true(all->n_samples + n <= MAX_NUMBERS);
    memcpy(all->samples + all->n_samples, samples, n * sizeof *samples);
    all->n_samples += n;
    return 0;
}

static void compute_numbers(const s2_place_opts *place, numbers *ret)
{
    enum {
        N_COLUMNS = 11,
        N_CODES = 2
    };
    sl_error err = {0};
    s2_stats stats;
    s2_engine *e = rig_open(MODEL, place, N_FRAMES);
    s2_engine_info info = s2_engine_get_info(e);
    uint32_t height = 1 + info.n_codebooks;
    int32_t *columns = calloc((size_t)N_COLUMNS * height, sizeof *columns);
    int32_t *codes = calloc((size_t)N_CODES * info.n_codebooks, sizeof *codes);
    assert_non_null(columns);
    assert_non_null(codes);
    for (uint32_t i = 0; i < N_COLUMNS * height; i++) {
        columns[i] = i % height == 0 ? (int32_t)(40 + 3 * i / height) : 0;
    }
    for (uint32_t i = 0; i < N_CODES * info.n_codebooks; i++) {
        codes[i] = (int32_t)(i % 5);
    }
    const s2_extent extent = {N_COLUMNS, N_COLUMNS + N_FRAMES, N_FRAMES};
    assert_true(info.codebook_size < MAX_NUMBERS && e->hp.slow.n_embd <= MAX_NUMBERS);
    assert_ok(s2_stage_plan_speech(e, &extent, false, &err), &err);
    assert_ok(s2_stage_begin(e, 0, false, &err), &err);
    assert_ok(
            s2_slow_ar_eval(e->slow, columns, N_COLUMNS, 0, ret->logits, ret->hidden, &err), &err);
    assert_ok(s2_fast_ar_begin(e->fast, ret->hidden, 3, ret->fast_logits, &err), &err);
    s2_stage_end(e);
    ret->n_samples = 0;
    assert_ok(s2_engine_decode(e, codes, N_CODES, on_samples, ret, &stats, &err), &err);
    s2_engine_close(&e);
    free(columns);
    free(codes);
}

static float largest(const float *a, const float *b, size_t n)
{
    float d = 0;
    for (size_t i = 0; i < n; i++) {
        assert_true(isfinite(a[i]) && isfinite(b[i]));
        d = fabsf(a[i] - b[i]) > d ? fabsf(a[i] - b[i]) : d;
    }
    return d;
}

static float loudest(const float *a, size_t n)
{
    float d = 0;
    for (size_t i = 0; i < n; i++) {
        d = fabsf(a[i]) > d ? fabsf(a[i]) : d;
    }
    return d;
}

static void test_numbers_are_those_of_the_cpu(void **state)
{
    (void)state;
    static numbers host;
    static numbers there;
    const s2_place_opts cpu = {.device = "cpu"};
    const s2_place_opts others[] = {
            {.device = device},
            {.device = device, .has_gpu_layers = true, .gpu_layers = 1, .embed_on_cpu = true},
    };
    compute_numbers(&cpu, &host);
    assert_true(host.n_samples > 0);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        compute_numbers(&others[i], &there);
        s2_engine *e = rig_open(MODEL, &cpu, N_FRAMES);
        size_t n = e->hp.codebook_size;
        s2_engine_close(&e);
        float logits = largest(host.logits, there.logits, n + 1);
        float fast = largest(host.fast_logits, there.fast_logits, n);
        float samples = largest(host.samples, there.samples, host.n_samples);
        print_message("largest differences from the CPU: logits %.2e of %.2e, fast %.2e of %.2e, "
                      "samples %.2e of %.2e\n",
                (double)logits, (double)loudest(host.logits, n + 1), (double)fast,
                (double)loudest(host.fast_logits, n), (double)samples,
                (double)loudest(host.samples, host.n_samples));
        assert_int_equal(there.n_samples, host.n_samples);
        assert_true(logits > 0 && logits <= LOGITS_BOUND * loudest(host.logits, n + 1));
        assert_true(fast <= LOGITS_BOUND * loudest(host.fast_logits, n));
        assert_true(samples <= SAMPLES_BOUND * loudest(host.samples, host.n_samples));
    }
}

/* Log lines that say that a unit goes to the CPU. */
typedef struct notes {
    int n_moved;
    char last[256];
} notes;

static void take_note(void *ud, sl_log_level level, const char *msg)
{
    notes *n = ud;
    if (level == SL_LOG_WARN && strstr(msg, "goes to the cpu")) {
        n->n_moved++;
        snprintf(n->last, sizeof n->last, "%s", msg);
    }
}

/* Where nobody named the device, what the budget does not hold is computed by the CPU, and that is said. */
static void test_G3_23_what_does_not_fit_goes_to_the_cpu_unless_it_was_named(void **state)
{
    (void)state;
    s2_place_opts place = place_on(SL_POLICY_SWAP, S2_DECODE_AFTER, 0);
    uint64_t floor = rig_floor(MODEL, &place, N_FRAMES);
    place.vram_bytes = floor - 1;
    rig_expect_refused(MODEL, &place, N_FRAMES, floor);
    place.device = NULL;
    notes n = {0};
    s2_engine_opts opts = rig_opts(MODEL, &place, N_FRAMES);
    s2_engine *e = NULL;
    sl_error err = {0};
    opts.log = (sl_logger){.fn = take_note, .ud = &n};
    assert_ok(s2_engine_open(&opts, &e, &err), &err);
    int n_on_host = 0;
    static const char *const units[] = {"slow", "fast", "codec.decoder"};
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        n_on_host += rig_unit_status(e, units[i]).wanted_place == 0;
    }
    print_message("%d units went to the CPU, the last: %s\n", n_on_host, n.last);
    assert_in_range(n_on_host, 1, 2);
    assert_int_equal(n.n_moved, n_on_host);
    for (int i = 0; i < 2; i++) {
        rig_speak(e, TEXT, N_FRAMES);
        assert_true(rig_place_status(e, 1).peak_total <= place.vram_bytes);
    }
    assert_true(rig_count_moves(e).n_loads > 0);
    assert_int_equal(n.n_moved, n_on_host);
    s2_engine_close(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_every_policy_and_budget_sounds_the_same),
            cmocka_unit_test(test_numbers_are_those_of_the_cpu),
            cmocka_unit_test(test_G3_23_what_does_not_fit_goes_to_the_cpu_unless_it_was_named),
    };
    int status = 0;
    device = real_device_find(&status);
    return device ? cmocka_run_group_tests(tests, set_up, NULL) : status;
}
