#include "rig.h"

#include <stdlib.h>
#include <string.h>

#include "gguf_bytes.h"
#include "test_support.h"

typedef struct tensor_row {
    size_t i_unit;
    const char *name;
    uint64_t n_floats;
} tensor_row;

/* b is cut into several slots, c has a tensor without bytes. */
static const tensor_row rows[] = {
        {0, "a.0", 16},
        {0, "a.1", 4},
        {0, "a.2", 9},
        {1, "b.0", 21},
        {2, "c.0", 2},
        {2, "c.none", 0},
        {2, "c.1", 3},
};
#define N_ROWS (sizeof rows / sizeof rows[0])

void rig_model_open(rig_model *m)
{
    memset(m, 0, sizeof *m);
    gguf_bytes g = gb_start(3, N_ROWS, 1);
    gb_key_str(&g, "general.architecture", "toy");
    uint64_t at = 0;
    for (size_t i = 0; i < N_ROWS; i++) {
        gb_tensor(&g, rows[i].name, 1, &rows[i].n_floats, 0, at);
        at = (at + rows[i].n_floats * 4 + 31) / 32 * 32;
    }
    gb_pad(&g, 32);
    for (size_t i = 0; i < N_ROWS; i++) {
        for (uint64_t k = 0; k < rows[i].n_floats * 4; k++) {
            gb_u8(&g, (unsigned)(i * 37 + k * 11 + 1) & 0xFF);
        }
        gb_pad(&g, 32);
    }
    m->dir = test_dir_create();
    test_path(m->path, sizeof m->path, m->dir, "toy.gguf");
    test_write_file(m->path, g.p, g.n);
    gb_done(&g);
    sl_error err = {0};
    assert_ok(sl_model_open(m->path, &m->model, &err), &err);
    for (size_t i = 0; i < N_ROWS; i++) {
        size_t u = rows[i].i_unit;
        m->tensors[u][m->n_tensors[u]] = sl_model_find(m->model, rows[i].name);
        assert_non_null(m->tensors[u][m->n_tensors[u]]);
        m->n_tensors[u]++;
    }
}

void rig_model_close(rig_model *m)
{
    sl_model_close(&m->model);
    test_dir_remove(m->dir);
}

rig_model rig_toy;

int rig_set_up(void **state)
{
    (void)state;
    rig_model_open(&rig_toy);
    return 0;
}

int rig_tear_down(void **state)
{
    (void)state;
    rig_model_close(&rig_toy);
    return 0;
}

void rig_open(rig *g, const rig_model *m, const rig_opts *opts)
{
    static const char *const names[RIG_N_UNITS] = {"a", "b", "c"};
    sl_error err = {0};
    sl__sim_spec spec = {.n_bytes = opts->device_bytes ? opts->device_bytes : 4096,
            .link_bytes_s = opts->link_bytes_s,
            .max_alloc_bytes = opts->max_alloc_bytes,
            .alignment = 32,
            .has_pinned = true,
            .has_virtual_clock = !opts->has_threads,
            .is_stepped = !opts->has_threads,
            .poisons = true};
    memset(g, 0, sizeof *g);
    g->m = m;
    assert_ok(sl__sim_create(&spec, &g->devices[RIG_GPU], &err), &err);
    assert_ok(sl_device_create_host(&g->devices[RIG_CPU], &err), &err);
    sl__sim_set_faults(g->devices[RIG_GPU], opts->faults, opts->n_faults);
    sl_residency_place places[2] = {
            {g->devices[RIG_GPU], opts->budget_bytes ? opts->budget_bytes : 1024},
            {g->devices[RIG_CPU], 1024}};
    sl_residency_opts ropts = {.places = places,
            .n_places = 2,
            .policy = opts->policy,
            .slice_bytes = opts->slice_bytes ? opts->slice_bytes : 64,
            .ring_bytes = 512,
            .n_trace = 64,
            .is_stepped = !opts->has_threads,
            .log = opts->log};
    assert_ok(sl_residency_open(&ropts, &g->r, &err), &err);
    for (size_t i = 0; i < RIG_N_UNITS; i++) {
        sl_unit_spec unit = {.name = names[i],
                .model = m->model,
                .tensors = m->tensors[i],
                .n_tensors = m->n_tensors[i],
                .i_second = i == 1 && opts->b_has_second ? RIG_CPU : SL_PLAN_NONE};
        size_t index = 0;
        assert_ok(sl_residency_add_unit(g->r, &unit, &index, &err), &err);
        assert_int_equal(index, i);
    }
    /* Two slots are used again within a load, and each load of the rig stays cheap. */
    g->r->movers[RIG_GPU].loader.opts.n_slots = 2;
    g->r->movers[RIG_GPU].loader.opts.slot_bytes = 48;
    g->r->movers[RIG_GPU].loader.opts.n_threads = 1;
    g->r->movers[RIG_GPU].loader.opts.read = sl__sim_read;
    g->r->movers[RIG_GPU].loader.opts.read_ud = g->devices[RIG_GPU];
}

void rig_close(rig *g)
{
    sl__sim_stats stats;
    for (size_t i = 0; i < RIG_N_UNITS; i++) {
        sl_lease_release(&g->leases[i]);
    }
    sl_scratch_release(&g->scratch);
    sl_residency_close(&g->r);
    sl__sim_get_stats(g->devices[RIG_GPU], &stats);
    assert_int_equal(stats.live_bytes, stats.lost_bytes);
    assert_int_equal(stats.pinned_bytes, 0);
    assert_int_equal(stats.n_events, 0);
    assert_int_equal(stats.n_misuses, 0);
    sl_device_free(&g->devices[RIG_GPU]);
    sl_device_free(&g->devices[RIG_CPU]);
}

int rig_acquire(rig *g, size_t i_unit, bool is_streaming, sl_error *err)
{
    return sl_lease_acquire(g->r, &i_unit, 1, is_streaming, NULL, &g->leases[i_unit], err);
}

void rig_release(rig *g, size_t i_unit)
{
    sl_lease_release(&g->leases[i_unit]);
}

int rig_settle(rig *g)
{
    sl_error err = {0};
    return sl_residency_settle(g->r, NULL, &err);
}

sl_unit_state rig_state(rig *g, size_t i_unit)
{
    sl_unit_status status;
    sl_residency_unit_status(g->r, i_unit, &status);
    return status.state;
}

uint64_t rig_used(rig *g)
{
    sl_place_status status;
    sl_error err = {0};
    assert_ok(sl_residency_place_status(g->r, RIG_GPU, &status, &err), &err);
    return status.used_total;
}

uint64_t rig_live(rig *g)
{
    sl__sim_stats stats;
    sl__sim_get_stats(g->devices[RIG_GPU], &stats);
    return stats.live_bytes;
}

void rig_no_faults(rig *g)
{
    sl__sim_set_faults(g->devices[RIG_GPU], NULL, 0);
}

void rig_expect_bytes(rig *g, size_t i_unit)
{
    sl_error err = {0};
    for (size_t i = 0; i < g->m->n_tensors[i_unit]; i++) {
        const sl_tensor *t = g->m->tensors[i_unit][i];
        sl_tensor_at at;
        assert_ok(sl_lease_tensor(g->leases[i_unit], i_unit, t, &at, &err), &err);
        if (t->info->n_bytes == 0) {
            assert_null(at.buffer);
            continue;
        }
        const unsigned char *there = sl_buffer_host_data(at.buffer);
        assert_non_null(there);
        assert_memory_equal(
                there + at.offset, sl_model_data(g->m->model, t), (size_t)t->info->n_bytes);
    }
}

static void expect_unit_whole(const sl__unit *u)
{
    size_t n_there = 0;
    size_t n_buffers = sl__choice_of(u)->layout.n_buffers;
    for (size_t i = 0; i < n_buffers; i++) {
        n_there += u->buffers[i] != NULL;
    }
    if (u->state == SL_UNIT_ABSENT) {
        assert_int_equal(n_there, 0);
        assert_int_equal(u->n_leases, 0);
    }
    if (u->state == SL_UNIT_RESIDENT) {
        assert_int_equal(n_there, n_buffers);
        assert_int_equal(u->last_error.code, 0);
    }
}

void rig_expect_rules(rig *g, bool is_settled)
{
    sl_place_status place;
    sl__sim_stats stats;
    sl_error err = {0};
    sl__sim_get_stats(g->devices[RIG_GPU], &stats);
    if (!stats.is_lost) {
        assert_ok(sl_residency_place_status(g->r, RIG_GPU, &place, &err), &err);
        assert_true(stats.live_bytes <= place.used_total);
        assert_true(stats.peak_bytes <= place.budget_bytes);
        assert_true(place.peak_total <= place.budget_bytes);
        assert_int_equal(stats.lost_bytes, place.lost_bytes);
        if (is_settled && !g->scratch) {
            assert_int_equal(stats.live_bytes, place.used_total);
            assert_ok(sl__ledger_compare(&g->r->ledger, RIG_GPU, stats.live_bytes, &err), &err);
        }
    }
    assert_int_equal(stats.n_misuses, 0);
    for (size_t i = 0; i < g->r->n_units; i++) {
        expect_unit_whole(g->r->units[i]);
    }
}

void rig_expect_usable(rig *g)
{
    sl_error err = {0};
    rig_no_faults(g);
    sl_scratch_release(&g->scratch);
    for (size_t i = 0; i < RIG_N_UNITS; i++) {
        rig_release(g, i);
    }
    assert_int_equal(sl_residency_sleep(g->r, 2, NULL, &err), 0);
    for (size_t i = 0; i < RIG_N_UNITS; i++) {
        assert_int_equal(rig_state(g, i), SL_UNIT_ABSENT);
    }
    rig_expect_rules(g, true);
    for (size_t i = 0; i < RIG_N_UNITS; i++) {
        assert_ok(rig_acquire(g, i, false, &err), &err);
        rig_expect_bytes(g, i);
        rig_release(g, i);
        rig_expect_rules(g, true);
    }
}
