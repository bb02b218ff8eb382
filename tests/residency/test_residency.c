/* The rules of residency, one at a time, and the public cases. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test_support.h"

#include "base/mem.h"
#include "rig.h"

static void expect_acquired(rig *g, size_t i_unit)
{
    sl_error err = {0};
    assert_ok(rig_acquire(g, i_unit, false, &err), &err);
    rig_expect_bytes(g, i_unit);
}

static void test_a_unit_is_loaded_leased_and_evicted(void **state)
{
    (void)state;
    rig g;
    rig_open(&g, &rig_toy, &(rig_opts){0});
    assert_int_equal(rig_state(&g, 0), SL_UNIT_ABSENT);
    expect_acquired(&g, 0);
    assert_int_equal(rig_state(&g, 0), SL_UNIT_RESIDENT);
    assert_int_equal(rig_used(&g), RIG_A_BYTES);
    assert_int_equal(rig_live(&g), RIG_A_BYTES);
    sl_unit_status status;
    sl_residency_unit_status(g.r, 0, &status);
    assert_int_equal(status.epoch, 1);
    assert_int_equal(status.n_leases, 1);
    assert_int_equal(status.actual_place, RIG_GPU);
    assert_true(status.n_slices > 1);
    rig_release(&g, 0);
    assert_int_equal(rig_state(&g, 0), SL_UNIT_RESIDENT);
    sl_residency_evict(g.r, 0);
    assert_int_equal(rig_state(&g, 0), SL_UNIT_EVICTING);
    assert_int_equal(rig_settle(&g), 0);
    assert_int_equal(rig_state(&g, 0), SL_UNIT_ABSENT);
    assert_int_equal(rig_live(&g), 0);
    sl_residency_unit_status(g.r, 0, &status);
    assert_int_equal(status.actual_place, SL_PLAN_NONE);
    rig_expect_rules(&g, true);
    rig_close(&g);
}

static void test_eviction_waits_for_the_last_lease(void **state)
{
    (void)state;
    rig g;
    sl_error err = {0};
    sl_lease *second = NULL;
    size_t unit = 0;
    rig_open(&g, &rig_toy, &(rig_opts){0});
    expect_acquired(&g, 0);
    assert_ok(sl_lease_acquire(g.r, &unit, 1, false, NULL, &second, &err), &err);
    sl_residency_evict(g.r, 0);
    assert_int_equal(rig_settle(&g), 0);
    rig_release(&g, 0);
    assert_int_equal(rig_settle(&g), 0);
    assert_int_equal(rig_state(&g, 0), SL_UNIT_RESIDENT);
    sl_lease_release(&second);
    assert_int_equal(rig_settle(&g), 0);
    assert_int_equal(rig_state(&g, 0), SL_UNIT_ABSENT);
    rig_close(&g);
}

static void test_a_request_takes_an_order_to_leave_back(void **state)
{
    (void)state;
    rig g;
    sl_error err = {0};
    sl_lease *second = NULL;
    size_t unit = 0;
    rig_open(&g, &rig_toy, &(rig_opts){0});
    expect_acquired(&g, 0);
    sl_residency_evict(g.r, 0);
    assert_ok(sl_lease_acquire(g.r, &unit, 1, false, NULL, &second, &err), &err);
    sl_lease_release(&second);
    rig_release(&g, 0);
    assert_int_equal(rig_settle(&g), 0);
    assert_int_equal(rig_state(&g, 0), SL_UNIT_RESIDENT);
    rig_close(&g);
}

static void test_G3_02_only_a_lease_gives_a_pointer_and_each_load_an_epoch(void **state)
{
    (void)state;
    rig g;
    sl_error err = {0};
    sl_tensor_at at;
    rig_open(&g, &rig_toy, &(rig_opts){0});
    for (uint64_t k = 1; k <= 3; k++) {
        expect_acquired(&g, 0);
        assert_ok(sl_lease_tensor(g.leases[0], 0, rig_toy.tensors[0][0], &at, &err), &err);
        assert_int_equal(at.epoch, k);
        /* Another unit, or a tensor of another unit, is not in this lease. */
        assert_int_equal(
                sl_lease_tensor(g.leases[0], 1, rig_toy.tensors[1][0], &at, &err), SL_EINVAL);
        assert_int_equal(
                sl_lease_tensor(g.leases[0], 0, rig_toy.tensors[1][0], &at, &err), SL_EINVAL);
        assert_non_null(strstr(err.msg, "has no tensor b.0"));
        rig_release(&g, 0);
        sl_residency_evict(g.r, 0);
        assert_int_equal(rig_settle(&g), 0);
    }
    rig_close(&g);
}

static void test_short_memory_evicts_what_nobody_holds(void **state)
{
    (void)state;
    rig g;
    sl_error err = {0};
    rig_open(&g, &rig_toy, &(rig_opts){.budget_bytes = RIG_A_BYTES + RIG_C_BYTES});
    expect_acquired(&g, 0);
    expect_acquired(&g, 2);
    assert_int_equal(rig_acquire(&g, 1, false, &err), SL_EBUDGET);
    assert_non_null(strstr(err.msg, "96 bytes for weights do not fit"));
    assert_null(g.leases[1]);
    rig_release(&g, 0);
    expect_acquired(&g, 1);
    assert_int_equal(rig_state(&g, 0), SL_UNIT_ABSENT);
    assert_int_equal(rig_state(&g, 2), SL_UNIT_RESIDENT);
    rig_expect_rules(&g, true);
    rig_close(&g);
}

static void test_a_request_gets_all_units_or_none(void **state)
{
    (void)state;
    static const size_t all[] = {0, 1, 2};
    rig g;
    sl_error err = {0};
    sl_lease *lease = NULL;
    rig_open(&g, &rig_toy, &(rig_opts){.budget_bytes = RIG_A_BYTES + RIG_B_BYTES});
    assert_int_equal(sl_lease_acquire(g.r, all, 3, false, NULL, &lease, &err), SL_EBUDGET);
    assert_null(lease);
    assert_int_equal(rig_settle(&g), 0);
    for (size_t i = 0; i < 3; i++) {
        sl_unit_status status;
        sl_residency_unit_status(g.r, i, &status);
        assert_int_equal(status.n_leases, 0);
        assert_true(status.state == SL_UNIT_ABSENT || status.state == SL_UNIT_RESIDENT);
    }
    assert_ok(sl_lease_acquire(g.r, all, 2, false, NULL, &lease, &err), &err);
    sl_lease_release(&lease);
    rig_expect_usable(&g);
    rig_close(&g);
}

/* Fails the k-th allocation of a unit of several buffers, for all k: all or nothing, and then it works. */
static void test_G3_01_a_load_that_fails_half_way_leaves_nothing(void **state)
{
    (void)state;
    rig_model small = rig_toy;
    small.n_tensors[1] = 0; /* b has a tensor that is too large */
    for (uint64_t k = 1; k <= 4; k++) {
        rig g;
        sl_error err = {0};
        sl__sim_fault fault = {SL__SIM_FAIL, SL__SIM_ALLOC, k};
        rig_open(&g, &small, &(rig_opts){.max_alloc_bytes = 64, .faults = &fault, .n_faults = 1});
        int r = rig_acquire(&g, 0, false, &err);
        assert_int_equal(r, k <= 3 ? SL_ENOMEM : 0);
        if (r < 0) {
            sl_unit_status status;
            sl_residency_unit_status(g.r, 0, &status);
            assert_int_equal(status.state, SL_UNIT_ABSENT);
            assert_int_equal(status.last_error.code, SL_ENOMEM);
            assert_int_equal(rig_live(&g), 0);
            assert_int_equal(rig_used(&g), 0);
            assert_true(strlen(err.msg) > 0);
            expect_acquired(&g, 0);
            sl_residency_unit_status(g.r, 0, &status);
            assert_int_equal(status.last_error.code, 0);
        }
        rig_close(&g);
    }
}

static void test_G3_05_the_device_is_short_of_memory(void **state)
{
    (void)state;
    rig g;
    sl_error err = {0};
    /* The budget says more than the device has. */
    rig_open(&g, &rig_toy, &(rig_opts){.device_bytes = RIG_A_BYTES + 32});
    expect_acquired(&g, 0);
    assert_int_equal(rig_acquire(&g, 1, false, &err), SL_ENOMEM);
    rig_expect_rules(&g, true);
    rig_expect_bytes(&g, 0);
    rig_release(&g, 0);
    /* Now unit a may leave: evicting it and trying once more is done by the request itself. */
    expect_acquired(&g, 1);
    assert_int_equal(rig_state(&g, 0), SL_UNIT_ABSENT);
    rig_release(&g, 1);
    rig_expect_usable(&g);
    rig_close(&g);
}

typedef struct log_lines {
    size_t n;
    char last[256];
} log_lines;

static void keep_line(void *ud, sl_log_level level, const char *msg)
{
    log_lines *lines = ud;
    (void)level;
    lines->n++;
    snprintf(lines->last, sizeof lines->last, "%s", msg);
}

static void test_G3_23_the_second_place_is_a_fact_not_a_wish(void **state)
{
    (void)state;
    rig g;
    log_lines lines = {0};
    sl_unit_status status;
    sl__sim_fault fault = {SL__SIM_FAIL, SL__SIM_ALLOC, 1};
    rig_open(&g, &rig_toy,
            &(rig_opts){.b_has_second = true,
                    .faults = &fault,
                    .n_faults = 1,
                    .log = {keep_line, &lines}});
    for (int k = 0; k < 3; k++) {
        expect_acquired(&g, 1);
        sl_residency_unit_status(g.r, 1, &status);
        assert_int_equal(status.wanted_place, RIG_GPU);
        assert_int_equal(status.actual_place, RIG_CPU);
        assert_int_equal(status.n_bytes, 0);
        assert_string_equal(status.route, "in place");
        assert_int_equal(status.load_bytes, 0);
        assert_int_equal(rig_used(&g), 0);
        rig_release(&g, 1);
    }
    assert_non_null(strstr(lines.last, "unit b goes to host instead"));
    /* A unit in place is usable again at once after it left, and goes where it is wanted when it can. */
    sl_residency_evict(g.r, 1);
    assert_int_equal(rig_settle(&g), 0);
    expect_acquired(&g, 1);
    sl_residency_unit_status(g.r, 1, &status);
    assert_int_equal(status.actual_place, RIG_GPU);
    assert_int_equal(rig_used(&g), RIG_B_BYTES);
    rig_close(&g);
}

static void test_G3_06_a_unit_too_large_for_one_allocation(void **state)
{
    (void)state;
    rig g;
    sl_error err = {0};
    size_t index = 0;
    /* Unit a of 64 + 16 + 36 bytes is split, the tensor of b of 84 bytes cannot be. */
    rig_model small = rig_toy;
    small.n_tensors[1] = 0;
    rig_open(&g, &small, &(rig_opts){.max_alloc_bytes = 64});
    expect_acquired(&g, 0);
    assert_true(g.r->units[0]->choices[0].layout.n_buffers > 1);
    sl_unit_spec spec = {.name = "big",
            .model = rig_toy.model,
            .tensors = rig_toy.tensors[1],
            .n_tensors = 1,
            .i_second = SL_PLAN_NONE};
    assert_int_equal(sl_residency_add_unit(g.r, &spec, &index, &err), SL_ELIMIT);
    assert_non_null(strstr(err.msg, "tensor b.0 of unit big"));
    spec.i_second = RIG_CPU;
    assert_ok(sl_residency_add_unit(g.r, &spec, &index, &err), &err);
    sl_lease *lease = NULL;
    assert_ok(sl_lease_acquire(g.r, &index, 1, false, NULL, &lease, &err), &err);
    sl_unit_status status;
    sl_residency_unit_status(g.r, index, &status);
    assert_int_equal(status.wanted_place, RIG_GPU);
    assert_int_equal(status.actual_place, RIG_CPU);
    sl_lease_release(&lease);
    rig_close(&g);
}

static void test_G3_04_a_unit_without_bytes_is_usable(void **state)
{
    (void)state;
    rig_model empty = rig_toy;
    rig g;
    sl_unit_status status;
    empty.n_tensors[0] = 0;                      /* no tensor */
    empty.tensors[1][0] = rig_toy.tensors[2][1]; /* one of no bytes */
    rig_open(&g, &empty, &(rig_opts){.budget_bytes = 1});
    expect_acquired(&g, 0);
    sl_residency_unit_status(g.r, 0, &status);
    assert_int_equal(status.epoch, 1);
    assert_null(status.route);
    expect_acquired(&g, 1);
    assert_int_equal(rig_state(&g, 0), SL_UNIT_RESIDENT);
    assert_int_equal(rig_state(&g, 1), SL_UNIT_RESIDENT);
    assert_int_equal(rig_used(&g), 0);
    rig_close(&g);
}

static void test_G3_17_a_unit_in_place_is_never_copied(void **state)
{
    (void)state;
    rig g;
    sl_error err = {0};
    size_t index = 0;
    rig_open(&g, &rig_toy, &(rig_opts){0});
    sl_unit_spec spec = {.name = "host",
            .model = rig_toy.model,
            .tensors = rig_toy.tensors[0],
            .n_tensors = rig_toy.n_tensors[0],
            .i_place = RIG_CPU,
            .i_second = SL_PLAN_NONE};
    assert_ok(sl_residency_add_unit(g.r, &spec, &index, &err), &err);
    assert_int_equal(sl_residency_unit_bytes(g.r, index, RIG_CPU), 0);
    sl_lease *lease = NULL;
    for (int k = 0; k < 10; k++) {
        sl_tensor_at at;
        assert_ok(sl_lease_acquire(g.r, &index, 1, false, NULL, &lease, &err), &err);
        assert_ok(sl_lease_tensor(lease, index, rig_toy.tensors[0][1], &at, &err), &err);
        const char *there = sl_buffer_host_data(at.buffer);
        assert_ptr_equal(there + at.offset, sl_model_data(rig_toy.model, rig_toy.tensors[0][1]));
        sl_lease_release(&lease);
        sl_residency_evict(g.r, index);
        assert_int_equal(rig_settle(&g), 0);
    }
    rig_close(&g);
}

static void test_G3_18_a_unit_that_is_there_is_not_loaded_again(void **state)
{
    (void)state;
    rig g;
    sl__sim_stats stats;
    rig_open(&g, &rig_toy, &(rig_opts){0});
    for (int k = 0; k < 5; k++) {
        sl_residency_prefetch(g.r, 0);
        expect_acquired(&g, 0);
        rig_release(&g, 0);
    }
    sl__sim_get_stats(g.devices[RIG_GPU], &stats);
    assert_true(stats.copied_bytes >= 64 + 16 + 36 && stats.copied_bytes <= RIG_A_BYTES);
    assert_int_equal(stats.peak_bytes, RIG_A_BYTES);
    rig_close(&g);
}

static void test_G3_20_a_thousand_cycles_are_like_the_first(void **state)
{
    (void)state;
    rig g;
    sl__sim_stats first;
    sl__sim_stats stats;
    rig_open(&g, &rig_toy, &(rig_opts){.budget_bytes = RIG_A_BYTES});
    for (int k = 0; k < 1000; k++) {
        for (size_t i = 0; i < RIG_N_UNITS; i++) {
            expect_acquired(&g, i);
            rig_release(&g, i);
        }
        sl__sim_get_stats(g.devices[RIG_GPU], k == 0 ? &first : &stats);
    }
    assert_int_equal(stats.live_bytes, first.live_bytes);
    assert_int_equal(stats.pinned_bytes, first.pinned_bytes);
    assert_int_equal(stats.n_events, first.n_events);
    assert_int_equal(stats.peak_bytes, first.peak_bytes);
    assert_int_equal(stats.n_calls[SL__SIM_PIN], first.n_calls[SL__SIM_PIN]);
    rig_close(&g);
}

static void test_a_streaming_lease_has_tensors_as_they_arrive(void **state)
{
    (void)state;
    rig g;
    sl_error err = {0};
    sl_tensor_at at;
    rig_open(&g, &rig_toy, &(rig_opts){0});
    assert_ok(rig_acquire(&g, 0, true, &err), &err);
    assert_int_equal(rig_state(&g, 0), SL_UNIT_LOADING);
    assert_int_equal(sl_lease_tensor(g.leases[0], 0, rig_toy.tensors[0][0], &at, &err), SL_EBUSY);
    for (size_t i = 0; i < rig_toy.n_tensors[0]; i++) {
        const sl_tensor *t = rig_toy.tensors[0][i];
        assert_ok(sl_lease_wait(g.leases[0], 0, t, NULL, &err), &err);
        assert_ok(sl_lease_tensor(g.leases[0], 0, t, &at, &err), &err);
        assert_int_equal(at.epoch, 1);
    }
    assert_ok(sl_lease_wait(g.leases[0], 0, NULL, NULL, &err), &err);
    rig_expect_bytes(&g, 0);
    rig_close(&g);
}

static void test_a_streaming_load_that_fails_keeps_its_memory_for_the_lease(void **state)
{
    (void)state;
    rig g;
    sl_error err = {0};
    sl_tensor_at at;
    sl__sim_fault fault = {SL__SIM_FAIL, SL__SIM_READ, 3};
    rig_open(&g, &rig_toy, &(rig_opts){.faults = &fault, .n_faults = 1});
    assert_ok(rig_acquire(&g, 0, true, &err), &err);
    int r = sl_lease_wait(g.leases[0], 0, NULL, NULL, &err);
    assert_true(r < 0);
    assert_int_equal(err.code, r);
    assert_int_equal(rig_state(&g, 0), SL_UNIT_EVICTING);
    assert_int_equal(rig_live(&g), RIG_A_BYTES);
    assert_int_equal(sl_lease_tensor(g.leases[0], 0, rig_toy.tensors[0][0], &at, &err), r);
    /* Another request does not wait for this lease. */
    sl_lease *other = NULL;
    size_t unit = 0;
    assert_int_equal(sl_lease_acquire(g.r, &unit, 1, false, NULL, &other, &err), SL_EBUSY);
    rig_release(&g, 0);
    assert_int_equal(rig_settle(&g), 0);
    assert_int_equal(rig_live(&g), 0);
    rig_expect_usable(&g);
    rig_close(&g);
}

static void test_prefetch_takes_only_free_memory_and_gives_way(void **state)
{
    (void)state;
    rig g;
    rig_open(&g, &rig_toy, &(rig_opts){.budget_bytes = RIG_A_BYTES + RIG_B_BYTES});
    expect_acquired(&g, 0);
    sl_residency_prefetch(g.r, 1);
    assert_int_equal(rig_settle(&g), 0);
    assert_int_equal(rig_state(&g, 1), SL_UNIT_RESIDENT);
    sl_residency_prefetch(g.r, 2);
    assert_int_equal(rig_settle(&g), 0);
    assert_int_equal(rig_state(&g, 2), SL_UNIT_ABSENT);
    assert_int_equal(rig_state(&g, 1), SL_UNIT_RESIDENT);
    expect_acquired(&g, 2);
    assert_int_equal(rig_state(&g, 1), SL_UNIT_ABSENT);
    rig_expect_rules(&g, true);
    rig_close(&g);
}

static bool cancel_at(void *ud)
{
    int *n = ud;
    (*n)--;
    return *n < 0;
}

static void test_a_wait_is_cancelled_at_every_point(void **state)
{
    (void)state;
    int r = SL_ECANCELLED;
    int n = 0;
    for (; r == SL_ECANCELLED; n++) {
        rig g;
        sl_error err = {0};
        int left = n;
        sl_wait wait = {cancel_at, &left};
        size_t unit = 0;
        rig_open(&g, &rig_toy, &(rig_opts){.budget_bytes = RIG_A_BYTES + 32});
        expect_acquired(&g, 1);
        rig_release(&g, 1);
        r = sl_lease_acquire(g.r, &unit, 1, false, &wait, &g.leases[0], &err);
        assert_int_equal(g.leases[0] == NULL, r < 0);
        assert_int_equal(rig_settle(&g), 0);
        assert_true(r >= 0 || rig_state(&g, 0) == SL_UNIT_ABSENT);
        rig_expect_rules(&g, true);
        rig_expect_usable(&g);
        rig_close(&g);
    }
    assert_int_equal(r, 0);
    assert_true(n > 2);
}

static void test_sleep_gives_everything_back_and_a_request_wakes(void **state)
{
    (void)state;
    rig g;
    sl_error err = {0};
    rig_open(&g, &rig_toy, &(rig_opts){0});
    expect_acquired(&g, 0);
    assert_int_equal(sl_residency_sleep(g.r, 2, NULL, &err), SL_EBUSY);
    assert_non_null(strstr(err.msg, "unit a is in use"));
    rig_release(&g, 0);
    assert_int_equal(sl_residency_sleep(g.r, 3, NULL, &err), SL_EINVAL);
    assert_ok(sl_residency_sleep(g.r, 2, NULL, &err), &err);
    assert_int_equal(rig_live(&g), 0);
    assert_int_equal(rig_used(&g), 0);
    sl_residency_prefetch(g.r, 1);
    assert_int_equal(rig_settle(&g), 0);
    assert_int_equal(rig_state(&g, 1), SL_UNIT_ABSENT);
    expect_acquired(&g, 0);
    assert_int_equal(sl_residency_sleep_level(g.r), 0);
    rig_close(&g);
}

static void test_every_failing_allocation_of_the_heap_is_clean(void **state)
{
    (void)state;
    sl_device *device = NULL;
    sl_error err = {0};
    assert_ok(sl_device_create_sim("sim:4K", &device, &err), &err);
    sl_residency_place place = {device, 1024};
    sl_residency_opts opts = {.places = &place, .n_places = 1, .is_stepped = true};
    sl_unit_spec spec = {.name = "a",
            .model = rig_toy.model,
            .tensors = rig_toy.tensors[0],
            .n_tensors = rig_toy.n_tensors[0],
            .i_second = SL_PLAN_NONE};
    int r = SL_ENOMEM;
    long n = 0;
    for (; r == SL_ENOMEM; n++) {
        sl_residency *res = NULL;
        sl_lease *lease = NULL;
        size_t unit = 0;
        sl__mem_fail_after(n);
        r = sl_residency_open(&opts, &res, &err);
        r = r < 0 ? r : sl_residency_add_unit(res, &spec, &unit, &err);
        r = r < 0 ? r : sl_lease_acquire(res, &unit, 1, false, NULL, &lease, &err);
        sl__mem_fail_after(-1);
        sl_lease_release(&lease);
        sl_residency_close(&res);
    }
    assert_ok(r, &err);
    assert_true(n > 10);
    sl_device_free(&device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_a_unit_is_loaded_leased_and_evicted),
            cmocka_unit_test(test_eviction_waits_for_the_last_lease),
            cmocka_unit_test(test_a_request_takes_an_order_to_leave_back),
            cmocka_unit_test(test_G3_02_only_a_lease_gives_a_pointer_and_each_load_an_epoch),
            cmocka_unit_test(test_short_memory_evicts_what_nobody_holds),
            cmocka_unit_test(test_a_request_gets_all_units_or_none),
            cmocka_unit_test(test_G3_01_a_load_that_fails_half_way_leaves_nothing),
            cmocka_unit_test(test_G3_05_the_device_is_short_of_memory),
            cmocka_unit_test(test_G3_23_the_second_place_is_a_fact_not_a_wish),
            cmocka_unit_test(test_G3_06_a_unit_too_large_for_one_allocation),
            cmocka_unit_test(test_G3_04_a_unit_without_bytes_is_usable),
            cmocka_unit_test(test_G3_17_a_unit_in_place_is_never_copied),
            cmocka_unit_test(test_G3_18_a_unit_that_is_there_is_not_loaded_again),
            cmocka_unit_test(test_G3_20_a_thousand_cycles_are_like_the_first),
            cmocka_unit_test(test_a_streaming_lease_has_tensors_as_they_arrive),
            cmocka_unit_test(test_a_streaming_load_that_fails_keeps_its_memory_for_the_lease),
            cmocka_unit_test(test_prefetch_takes_only_free_memory_and_gives_way),
            cmocka_unit_test(test_a_wait_is_cancelled_at_every_point),
            cmocka_unit_test(test_sleep_gives_everything_back_and_a_request_wakes),
            cmocka_unit_test(test_every_failing_allocation_of_the_heap_is_clean),
    };
    return cmocka_run_group_tests(tests, rig_set_up, rig_tear_down);
}
