/*
 * What is planned is what is held: random plans are run on simulated devices, a phase right behind the other, and
 * the peaks that the ledger and the devices themselves measure are never above the plan and within 5% of it.
 */
#include <stdio.h>
#include <string.h>

#include "test_support.h"

#include "gguf_bytes.h"
#include "random_plan.h"
#include "rig.h"

/* A byte of a random plan becomes so many, the alignment of the devices. */
#define SCALE     UINT64_C(32)
#define UNIT_MAX  9 /* bytes of a unit of a random plan, at most */
#define N_SEEDS   1500
#define N_THREADS 25 /* seeds that run with movers as threads */

static char *dir;
static sl_model *model;
static const sl_tensor *tensors[UNIT_MAX + 1]; /* by scaled bytes */

/* One tensor for each size that a unit may have. */
static int open_model(void **state)
{
    (void)state;
    char path[4200];
    sl_error err = {0};
    gguf_bytes g = gb_start(3, UNIT_MAX, 1);
    gb_key_str(&g, "general.architecture", "toy");
    uint64_t at = 0;
    for (uint64_t i = 1; i <= UNIT_MAX; i++) {
        char name[8];
        uint64_t n_floats = i * SCALE / 4;
        snprintf(name, sizeof name, "t.%d", (int)i);
        gb_tensor(&g, name, 1, &n_floats, 0, at);
        at += i * SCALE;
    }
    gb_pad(&g, 32);
    for (uint64_t i = 0; i < at; i++) {
        gb_u8(&g, (unsigned)(i * 7 + i / 256) & 0xFF);
    }
    dir = test_dir_create();
    test_path(path, sizeof path, dir, "peaks.gguf");
    test_write_file(path, g.p, g.n);
    gb_done(&g);
    assert_ok(sl_model_open(path, &model, &err), &err);
    for (size_t i = 1; i <= UNIT_MAX; i++) {
        char name[8];
        snprintf(name, sizeof name, "t.%d", (int)i);
        tensors[i] = sl_model_find(model, name);
        assert_non_null(tensors[i]);
    }
    return 0;
}

static int close_model(void **state)
{
    (void)state;
    sl_model_close(&model);
    test_dir_remove(dir);
    return 0;
}

#define N_SCRATCH_MAX (RP_MAX * RP_MAX)

/* A plan, and devices that it runs on. */
typedef struct world {
    random_plan r;
    sl_plan *plan;
    sl_device *devices[RP_MAX];
    sl_residency *residency;
    bool keeps;
    bool was_run[RP_MAX];
    sl_scratch *scratch[N_SCRATCH_MAX];
    size_t n_scratch;
    uint64_t peaks[RP_MAX]; /* of the ledger, over the measured round */
} world;

static void scale(random_plan *r)
{
    for (size_t i = 0; i < r->q.n_units; i++) {
        r->units[i].n_bytes *= SCALE;
        r->units[i].i_second = SL_PLAN_NONE;
    }
    for (size_t i = 0; i < r->q.n_phases; i++) {
        for (size_t k = 0; k < r->phases[i].n_scratch; k++) {
            r->scratch[i][k].n_bytes *= SCALE;
        }
    }
}

static void open_devices(world *w, bool has_threads)
{
    sl_error err = {0};
    sl_residency_place places[RP_MAX];
    for (size_t i = 0; i < w->r.q.n_places; i++) {
        sl__sim_spec spec = {.n_bytes = 1 << 16,
                .alignment = (uint64_t)SCALE,
                .has_pinned = true,
                .has_virtual_clock = !has_threads,
                .is_stepped = !has_threads,
                .poisons = true};
        assert_ok(sl__sim_create(&spec, &w->devices[i], &err), &err);
        places[i] = (sl_residency_place){w->devices[i], w->r.places[i].budget_bytes};
    }
    sl_residency_opts opts = {.places = places,
            .n_places = w->r.q.n_places,
            .policy = w->r.q.policy,
            .ring_bytes = 512,
            .n_trace = 64,
            .is_stepped = !has_threads};
    assert_ok(sl_residency_open(&opts, &w->residency, &err), &err);
    for (size_t i = 0; i < w->r.q.n_places; i++) {
        w->residency->movers[i].loader.opts.n_slots = 2;
        w->residency->movers[i].loader.opts.slot_bytes = 64;
        w->residency->movers[i].loader.opts.n_threads = 1;
    }
    for (size_t u = 0; u < w->r.q.n_units; u++) {
        size_t index = 0;
        sl_unit_spec spec = {.name = w->r.units[u].name,
                .model = model,
                .tensors = &tensors[w->r.units[u].n_bytes / SCALE],
                .n_tensors = 1,
                .i_place = w->r.units[u].i_place,
                .i_second = SL_PLAN_NONE};
        assert_ok(sl_residency_add_unit(w->residency, &spec, &index, &err), &err);
        assert_int_equal(
                sl_residency_unit_bytes(w->residency, index, spec.i_place), w->r.units[u].n_bytes);
    }
}

static void close_world(world *w)
{
    for (size_t i = 0; i < w->n_scratch; i++) {
        sl_scratch_release(&w->scratch[i]);
    }
    sl_residency_close(&w->residency);
    for (size_t i = 0; i < w->r.q.n_places; i++) {
        sl__sim_stats stats;
        sl__sim_get_stats(w->devices[i], &stats);
        assert_int_equal(stats.live_bytes, 0);
        assert_int_equal(stats.n_misuses, 0);
        sl_device_free(&w->devices[i]);
    }
    sl_plan_free(&w->plan);
}

/* What the phase computes in. With keep it stays, and a phase that runs again uses it again. */
static void take_scratch(world *w, size_t i_phase)
{
    sl_error err = {0};
    const sl_plan_phase *phase = &w->r.phases[i_phase];
    for (size_t k = 0; k < phase->n_scratch && !(w->keeps && w->was_run[i_phase]); k++) {
        const sl_plan_scratch *s = &phase->scratch[k];
        assert_in_range(w->n_scratch, 0, N_SCRATCH_MAX - 1);
        assert_ok(sl_scratch_acquire(w->residency, s->i_place, s->kind, s->n_bytes, true, NULL,
                          &w->scratch[w->n_scratch], &err),
                &err);
        w->n_scratch++;
    }
    w->was_run[i_phase] = true;
}

static void give_scratch(world *w)
{
    while (!w->keeps && w->n_scratch > 0) {
        w->n_scratch--;
        sl_scratch_release(&w->scratch[w->n_scratch]);
    }
}

static void run_step(world *w, size_t i_step, bool is_measured)
{
    sl_error err = {0};
    sl_phase *phase = NULL;
    assert_ok(sl_phase_begin(w->residency, w->plan, i_step, "p", false, NULL, &phase, &err), &err);
    take_scratch(w, w->r.run[i_step]);
    assert_ok(sl_residency_settle(w->residency, NULL, &err), &err);
    for (size_t i = 0; i < w->r.q.n_places; i++) {
        sl_place_status place;
        sl_plan_bytes planned = sl_plan_peak(w->plan, i_step, i);
        assert_ok(sl_residency_place_status(w->residency, i, &place, &err), &err);
        assert_true(place.peak_total <= sl_plan_peak_of_run(w->plan, i).total);
        assert_true(place.used_total <= planned.total);
        if (is_measured) {
            assert_memory_equal(place.used, planned.kind, sizeof place.used);
            w->peaks[i] = place.used_total > w->peaks[i] ? place.used_total : w->peaks[i];
        }
    }
    give_scratch(w);
    sl_phase_end(&phase);
}

static void expect_peaks(const world *w)
{
    for (size_t i = 0; i < w->r.q.n_places; i++) {
        sl__sim_stats stats;
        uint64_t planned = sl_plan_peak_of_run(w->plan, i).total;
        sl__sim_get_stats(w->devices[i], &stats);
        assert_int_equal(w->peaks[i], planned);
        assert_true(stats.peak_bytes <= planned);
        assert_true(stats.peak_bytes * 100 >= planned * 95);
    }
}

/* Returns true if the plan fits and was run. */
static bool run_seed(uint64_t seed, bool has_threads)
{
    world w = {0};
    uint64_t s = seed;
    rp_make(seed, &w.r);
    scale(&w.r);
    rp_budget_at_floor(&w.r, &s, 20 * SCALE);
    w.plan = rp_solve(&w.r.q);
    w.keeps = w.r.q.policy == SL_POLICY_KEEP;
    open_devices(&w, has_threads);
    for (int round = 0; round < (w.r.q.is_cyclic ? 3 : 1); round++) {
        for (size_t i = 0; i < w.r.q.n_run; i++) {
            run_step(&w, i, !w.r.q.is_cyclic || round == 2);
        }
    }
    expect_peaks(&w);
    close_world(&w);
    return true;
}

static void test_random_plans_hold_their_peaks_to_the_byte(void **state)
{
    (void)state;
    printf("seeds 1 to %d\n", N_SEEDS);
    for (uint64_t seed = 1; seed <= N_SEEDS; seed++) {
        assert_true(run_seed(seed, false));
    }
}

static void test_movers_as_threads_hold_them_too(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= N_THREADS; seed++) {
        assert_true(run_seed(seed, true));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_random_plans_hold_their_peaks_to_the_byte),
            cmocka_unit_test(test_movers_as_threads_hold_them_too),
    };
    return cmocka_run_group_tests(tests, open_model, close_model);
}
