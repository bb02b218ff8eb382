/*
 * From words to places: what may be said, what contradicts itself, and what would have no effect and is therefore refused.
 */
#include "s2/placement.h"

#include <stdio.h>
#include <string.h>

#include "test_support.h"

static const sl_logger quiet = {0};

static s2_placement *open_places(const s2_place_opts *opts, bool is_planning)
{
    s2_placement *p = NULL;
    sl_error err = {0};
    assert_ok(s2_placement_open(opts, is_planning, &quiet, &p, &err), &err);
    return p;
}

static void expect_refused(
        const s2_place_opts *opts, bool is_planning, int code, const char *needle)
{
    s2_placement *p = NULL;
    sl_error err = {0};
    int r = s2_placement_open(opts, is_planning, &quiet, &p, &err);
    if (r != code || !strstr(err.msg, needle) || strchr(err.msg, '\n')) {
        fail_msg("want %s with \"%s\", got %s: %s", sl_err_name(code), needle, sl_err_name(r),
                err.msg);
    }
    assert_null(p);
}

static const s2_unit_id movable[] = {
        S2_UNIT_SLOW, S2_UNIT_FAST, S2_UNIT_CODEC_ENCODER, S2_UNIT_CODEC_DECODER};
#define N_MOVABLE (sizeof movable / sizeof movable[0])

static void test_all_is_on_the_cpu(void **state)
{
    (void)state;
    const s2_place_opts opts = {.device = "cpu"};
    s2_placement *p = open_places(&opts, false);
    assert_int_equal(s2_placement_n_places(p), 1);
    assert_string_equal(s2_placement_place(p, 0)->name, "cpu");
    assert_true(s2_placement_place(p, 0)->budget_bytes == UINT64_MAX);
    for (int u = 0; u < S2_UNIT_COUNT; u++) {
        assert_int_equal(s2_placement_wanted(p, (s2_unit_id)u), 0);
        assert_true(s2_placement_second(p, (s2_unit_id)u) == SL_PLAN_NONE);
    }
    assert_int_equal(s2_placement_slow_layers(p, 36), 36);
    s2_placement_close(&p);
    assert_null(p);
    s2_placement_close(&p);
    s2_placement_close(NULL);
}

static void test_a_named_device_takes_all_but_the_tables(void **state)
{
    (void)state;
    const s2_place_opts opts = {.device = "sim:8M,link=1G"};
    s2_placement *p = open_places(&opts, false);
    assert_int_equal(s2_placement_n_places(p), 2);
    const s2_place *place = s2_placement_place(p, 1);
    assert_string_equal(place->name, "sim");
    assert_int_equal(place->budget_bytes, 8 << 20);
    assert_string_equal(place->budget_source, "size of the simulation");
    assert_false(place->is_stand_in);
    for (size_t i = 0; i < N_MOVABLE; i++) {
        assert_int_equal(s2_placement_wanted(p, movable[i]), 1);
        /* It was named: nothing goes elsewhere by itself. */
        assert_true(s2_placement_second(p, movable[i]) == SL_PLAN_NONE);
    }
    assert_int_equal(s2_placement_wanted(p, S2_UNIT_CODEC_QUANTIZER), 0);
    assert_int_equal(s2_placement_wanted(p, S2_UNIT_EMBED), 0);
    s2_placement_give_up(p, S2_UNIT_FAST);
    assert_int_equal(s2_placement_wanted(p, S2_UNIT_FAST), 0);
    assert_int_equal(s2_placement_wanted(p, S2_UNIT_SLOW), 1);
    s2_placement_close(&p);
}

static void test_a_budget_replaces_the_devices_own(void **state)
{
    (void)state;
    s2_place_opts opts = {.device = "sim:8M", .vram_bytes = 8 << 20};
    s2_placement *p = open_places(&opts, false);
    assert_int_equal(s2_placement_place(p, 1)->budget_bytes, 8 << 20);
    assert_string_equal(s2_placement_place(p, 1)->budget_source, "--vram");
    s2_placement_close(&p);
    opts.vram_bytes = 1;
    p = open_places(&opts, false);
    assert_int_equal(s2_placement_place(p, 1)->budget_bytes, 1);
    s2_placement_close(&p);
    opts.vram_bytes = (8 << 20) + 1;
    expect_refused(&opts, false, SL_EINVAL, "--vram: 8388609 bytes, but sim has 8388608");
}

static void test_units_are_placed_by_name(void **state)
{
    (void)state;
    const char *words[] = {
            "slow=sim:8M", "codec=cpu", "codec.decoder=cpu", "codec.quantizer=cpu", "embed=cpu"};
    const s2_place_opts opts = {.device = "cpu", .places = words, .n_places = 5};
    s2_placement *p = open_places(&opts, false);
    assert_int_equal(s2_placement_n_places(p), 2);
    assert_int_equal(s2_placement_wanted(p, S2_UNIT_SLOW), 1);
    assert_int_equal(s2_placement_wanted(p, S2_UNIT_EMBED), 0);
    assert_int_equal(s2_placement_wanted(p, S2_UNIT_FAST), 0);
    assert_int_equal(s2_placement_wanted(p, S2_UNIT_CODEC_DECODER), 0);
    assert_true(s2_placement_second(p, S2_UNIT_SLOW) == SL_PLAN_NONE);
    s2_placement_close(&p);
    const char *both[] = {"codec=sim:8M"};
    const s2_place_opts codec = {.device = "cpu", .places = both, .n_places = 1};
    p = open_places(&codec, false);
    assert_int_equal(s2_placement_wanted(p, S2_UNIT_CODEC_ENCODER), 1);
    assert_int_equal(s2_placement_wanted(p, S2_UNIT_CODEC_DECODER), 1);
    assert_int_equal(s2_placement_wanted(p, S2_UNIT_SLOW), 0);
    s2_placement_close(&p);
}

static void expect_word_refused(const char *word, int code, const char *needle)
{
    const s2_place_opts opts = {.device = "sim:8M", .places = &word, .n_places = 1};
    expect_refused(&opts, false, code, needle);
}

static void test_words_that_are_none_are_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {"", "=", "slow", "slow=", "=cpu", "Slow=cpu", "slo=cpu",
            "slow.rest=cpu", "codec.=cpu", "codecs=cpu", "slow =cpu", "a\nb=cpu", "all=cpu"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        expect_word_refused(bad[i], SL_EINVAL, "is not UNIT=DEVICE");
    }
    expect_word_refused("slow=cuda77", SL_ENOENT, "cuda77");
    expect_word_refused("slow=auto", SL_ENOENT, "auto");
    expect_word_refused("slow=sim:9M", SL_EINVAL, "a second simulated device");
    expect_word_refused(
            "codec.quantizer=sim:8M", SL_EINVAL, "the quantizer is computed on the host");
    const char *empty = "slow=sim:";
    const s2_place_opts no_size = {.device = "cpu", .places = &empty, .n_places = 1};
    expect_refused(&no_size, false, SL_EINVAL, "sim");
    const s2_place_opts unknown = {.device = "cuda77"};
    expect_refused(&unknown, false, SL_ENOENT, "cuda77");
    const s2_place_opts nothing = {.device = ""};
    expect_refused(&nothing, false, SL_ENOENT, "device");
}

static void note(void *ud, sl_log_level level, const char *msg)
{
    char *said = ud;
    size_t n = strlen(said);
    snprintf(said + n, 512 - n, "%s: %s\n", sl_log_level_name(level), msg);
}

/* The tables stay on the host whatever is asked for, which is said. */
static void test_words_about_the_tables_are_answered(void **state)
{
    (void)state;
    char said[512] = "";
    const sl_logger log = {note, said};
    const char *words[] = {"embed=sim"};
    const s2_place_opts opts = {
            .device = "sim:8M", .places = words, .n_places = 1, .embed_on_cpu = true};
    s2_placement *p = NULL;
    sl_error err = {0};
    assert_ok(s2_placement_open(&opts, false, &log, &p, &err), &err);
    assert_int_equal(s2_placement_wanted(p, S2_UNIT_EMBED), 0);
    assert_non_null(strstr(said, "warn: --place embed=sim: the tables of embeddings"));
    assert_non_null(strstr(said, "info: --codebook-cpu: the tables of embeddings"));
    s2_placement_close(&p);
    expect_word_refused("embed=cuda77", SL_ENOENT, "cuda77");
}

static void test_words_that_contradict_each_other_are_refused(void **state)
{
    (void)state;
    const char *twice[] = {"slow=cpu", "slow=sim:8M"};
    const char *halves[] = {"codec=sim:8M", "codec.encoder=cpu"};
    const char *slow[] = {"slow=sim:8M"};
    const char *fast[] = {"fast=sim:8M"};
    const char *decoder[] = {"codec.decoder=sim:8M"};
    const s2_place_opts all[] = {
            {.device = "cpu", .places = twice, .n_places = 2},
            {.device = "cpu", .places = halves, .n_places = 2},
            {.device = "cpu", .places = fast, .n_places = 1, .fast_on_cpu = true},
            {.device = "cpu", .places = decoder, .n_places = 1, .codec_on_cpu = true},
            {.device = "cpu", .places = slow, .n_places = 1, .has_gpu_layers = true},
    };
    static const char *const says[] = {"slow was placed on cpu before",
            "codec.encoder was placed on sim before",
            "--fast-decoder-cpu and --place fast=sim contradict",
            "--codec-cpu and --place codec.decoder=sim contradict",
            "--gpu-layers 0 and --place slow=sim contradict"};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        expect_refused(&all[i], false, SL_EINVAL, says[i]);
    }
    /* The same word twice is no contradiction. */
    const char *same[] = {"slow=cpu", "slow=cpu"};
    const s2_place_opts again = {.device = "sim:8M", .places = same, .n_places = 2};
    s2_placement *p = open_places(&again, false);
    s2_placement_close(&p);
}

static void test_words_without_effect_are_refused(void **state)
{
    (void)state;
    const char *slow[] = {"slow=cpu"};
    const s2_place_opts budget = {.device = "cpu", .vram_bytes = 1 << 20};
    const s2_place_opts layers = {.device = "cpu", .has_gpu_layers = true, .gpu_layers = 3};
    const s2_place_opts away = {.device = "sim:8M",
            .places = slow,
            .n_places = 1,
            .has_gpu_layers = true,
            .gpu_layers = 3};
    expect_refused(&budget, false, SL_EINVAL, "--vram: everything is on the cpu");
    expect_refused(&layers, false, SL_EINVAL, "--gpu-layers 3: slow is on the cpu");
    expect_refused(&away, false, SL_EINVAL, "--gpu-layers 3: slow is on the cpu");
}

static void test_layers(void **state)
{
    (void)state;
    static const uint32_t layers[] = {1, 35, 36, 37, UINT32_MAX};
    static const uint32_t want[] = {1, 35, 36, 36, 36};
    for (size_t i = 0; i < sizeof layers / sizeof layers[0]; i++) {
        const s2_place_opts opts = {
                .device = "sim:8M", .has_gpu_layers = true, .gpu_layers = layers[i]};
        s2_placement *p = open_places(&opts, false);
        assert_int_equal(s2_placement_slow_layers(p, 36), want[i]);
        assert_int_equal(s2_placement_wanted(p, S2_UNIT_SLOW), 1);
        s2_placement_close(&p);
    }
    const s2_place_opts none = {.device = "sim:8M", .has_gpu_layers = true};
    s2_placement *p = open_places(&none, false);
    assert_int_equal(s2_placement_wanted(p, S2_UNIT_SLOW), 0);
    assert_int_equal(s2_placement_wanted(p, S2_UNIT_FAST), 1);
    s2_placement_close(&p);
}

static void test_every_unit_may_have_a_device_of_its_own(void **state)
{
    (void)state;
    const char *words[] = {"slow=gpu1", "fast=gpu2", "codec.encoder=gpu3", "codec.decoder=gpu4"};
    const s2_place_opts opts = {
            .device = "cuda7", .places = words, .n_places = 4, .vram_bytes = 1 << 20};
    s2_placement *p = open_places(&opts, true);
    assert_int_equal(s2_placement_n_places(p), 6);
    assert_string_equal(s2_placement_place(p, 1)->name, "cuda7");
    for (size_t i = 0; i < N_MOVABLE; i++) {
        assert_int_equal(s2_placement_wanted(p, movable[i]), 2 + i);
        assert_int_equal(s2_placement_place(p, 2 + i)->budget_bytes, 1 << 20);
    }
    s2_placement_close(&p);
}

/* Nobody named the device: what the plan cannot place there may go to the host, unless it was placed by name. */
static void test_second_places_are_for_what_nobody_named(void **state)
{
    (void)state;
    const char *words[] = {"fast=gpu"};
    s2_place_opts opts = {.device = "auto", .vram_bytes = 4 << 20, .places = words, .n_places = 1};
    s2_placement *p = open_places(&opts, true);
    bool has_gpu = strcmp(s2_placement_place(p, 1)->name, "gpu") != 0;
    if (has_gpu) {
        s2_placement_close(&p);
        print_message("skipped: this computer has a GPU, and auto means it\n");
        skip();
    }
    assert_int_equal(s2_placement_n_places(p), 2);
    assert_true(s2_placement_place(p, 1)->is_stand_in);
    assert_int_equal(s2_placement_place(p, 1)->budget_bytes, 4 << 20);
    assert_int_equal(s2_placement_second(p, S2_UNIT_SLOW), 0);
    assert_true(s2_placement_second(p, S2_UNIT_EMBED) == SL_PLAN_NONE);
    assert_int_equal(s2_placement_second(p, S2_UNIT_CODEC_DECODER), 0);
    assert_int_equal(s2_placement_wanted(p, S2_UNIT_FAST), 1);
    assert_true(s2_placement_second(p, S2_UNIT_FAST) == SL_PLAN_NONE);
    assert_true(s2_placement_second(p, S2_UNIT_CODEC_QUANTIZER) == SL_PLAN_NONE);
    s2_placement_give_up(p, S2_UNIT_SLOW);
    assert_true(s2_placement_second(p, S2_UNIT_SLOW) == SL_PLAN_NONE);
    s2_placement_close(&p);
    /* A person who wants to plan for a card by name gets it, but says how large it is. */
    opts = (s2_place_opts){.device = "cuda0", .vram_bytes = 4 << 20};
    p = open_places(&opts, true);
    assert_string_equal(s2_placement_place(p, 1)->name, "cuda0");
    assert_true(s2_placement_second(p, S2_UNIT_SLOW) == SL_PLAN_NONE);
    s2_placement_close(&p);
    opts.vram_bytes = 0;
    expect_refused(&opts, true, SL_ENOENT, "cuda0");
}

static sl_device_info device_of(const char *name, sl_device_kind kind, uint64_t free_bytes)
{
    sl_device_info info = {.kind = kind, .total_bytes = 1 << 30, .free_bytes = free_bytes};
    snprintf(info.name, sizeof info.name, "%s", name);
    return info;
}

/* A card of its own before one in the computer's memory, whatever that reports; then the most free memory. */
static void test_G3_08_the_best_device(void **state)
{
    (void)state;
    sl_device_info all[] = {
            device_of("cpu", SL_DEVICE_HOST, 1 << 30),
            device_of("igpu", SL_DEVICE_INTEGRATED, 1 << 30),
            device_of("small", SL_DEVICE_GPU, 1 << 20),
            device_of("large", SL_DEVICE_GPU, 1 << 21),
            device_of("odd", SL_DEVICE_OTHER, 1 << 30),
    };
    assert_string_equal(s2_devices_best(all, 0), "cpu");
    assert_string_equal(s2_devices_best(all, 1), "cpu");
    assert_string_equal(s2_devices_best(all, 2), "igpu");
    assert_string_equal(s2_devices_best(all, 3), "small");
    assert_string_equal(s2_devices_best(all, 5), "large");
    sl_device_info swapped = all[1];
    all[1] = all[3];
    all[3] = swapped;
    assert_string_equal(s2_devices_best(all, 5), "large");
    assert_string_equal(s2_devices_best(&all[4], 1), "cpu");
}

static void test_the_devices_of_this_computer(void **state)
{
    (void)state;
    sl_device_info *infos = NULL;
    size_t n = 0;
    sl_error err = {0};
    assert_ok(s2_devices_list(&quiet, &infos, &n, &err), &err);
    bool has_cpu = false;
    for (size_t i = 0; i < n; i++) {
        has_cpu |= strcmp(infos[i].name, "cpu") == 0;
    }
    assert_true(has_cpu);
    s2_devices_free(infos);
    s2_devices_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_all_is_on_the_cpu),
            cmocka_unit_test(test_a_named_device_takes_all_but_the_tables),
            cmocka_unit_test(test_a_budget_replaces_the_devices_own),
            cmocka_unit_test(test_units_are_placed_by_name),
            cmocka_unit_test(test_words_that_are_none_are_refused),
            cmocka_unit_test(test_words_about_the_tables_are_answered),
            cmocka_unit_test(test_words_that_contradict_each_other_are_refused),
            cmocka_unit_test(test_words_without_effect_are_refused),
            cmocka_unit_test(test_layers),
            cmocka_unit_test(test_every_unit_may_have_a_device_of_its_own),
            cmocka_unit_test(test_second_places_are_for_what_nobody_named),
            cmocka_unit_test(test_G3_08_the_best_device),
            cmocka_unit_test(test_the_devices_of_this_computer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
