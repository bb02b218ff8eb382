/*
 * Requests, cancels, evictions, sleeps and shutdowns from several threads at once. What a lease gives is compared
 * with the file; memory that is freed too early holds the poison of the simulated device.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "test_support.h"

#include "os/os_clock.h"
#include "random_plan.h"
#include "rig.h"

#define N_RUNS    1000
#define N_WORKERS 3
#define N_OPS     12
#define MAX_NS    UINT64_C(60000000000) /* enough for all runs; a slow machine does fewer */

typedef struct worker {
    rig *g;
    uint64_t seed;
    sl__thread thread;
    size_t n_wrong; /* cmocka's assertions belong to the main thread */
    size_t n_given;
} worker;

static bool cancel_at(void *ud)
{
    uint64_t *n = ud;
    return (*n)-- == 0;
}

static bool has_bytes(const rig *g, sl_lease *lease, size_t i_unit)
{
    for (size_t i = 0; i < g->m->n_tensors[i_unit]; i++) {
        const sl_tensor *t = g->m->tensors[i_unit][i];
        sl_tensor_at at;
        sl_error err;
        if (sl_lease_wait(lease, i_unit, t, NULL, &err) < 0) {
            return true; /* an error is an answer */
        }
        int r = sl_lease_tensor(lease, i_unit, t, &at, &err);
        if (r < 0) {
            /* The load may fail behind what has arrived; but what has arrived is there. */
            return r != SL_EBUSY && r != SL_EINVAL;
        }
        const unsigned char *there = at.buffer ? sl_buffer_host_data(at.buffer) : NULL;
        if (at.buffer && memcmp(there + at.offset, sl_model_data(g->m->model, t),
                                 (size_t)t->info->n_bytes) != 0) {
            return false;
        }
    }
    return true;
}

static void request(worker *w, uint64_t *s)
{
    size_t units[2] = {(size_t)rp_below(s, 3), (size_t)rp_below(s, 3)};
    size_t n = 1 + (size_t)rp_below(s, 2);
    uint64_t left = rp_below(s, 8);
    sl_wait wait = {rp_below(s, 3) == 0 ? cancel_at : NULL, &left};
    sl_lease *lease = NULL;
    sl_error err = {0};
    int r = sl_lease_acquire(w->g->r, units, n, rp_below(s, 2), &wait, &lease, &err);
    for (size_t i = 0; r >= 0 && i < n; i++) {
        w->n_wrong += !has_bytes(w->g, lease, units[i]);
    }
    w->n_given += r >= 0;
    w->n_wrong += r < 0 && (err.code != r || r == SL_EINTERNAL);
    sl_lease_release(&lease);
}

static void take_scratch(worker *w, uint64_t *s)
{
    sl_scratch *scratch = NULL;
    sl_error err;
    (void)sl_scratch_acquire(
            w->g->r, RIG_GPU, SL_MEM_KV, 32 + rp_below(s, 64), true, NULL, &scratch, &err);
    sl_scratch_release(&scratch);
}

static void work(void *ud)
{
    worker *w = ud;
    uint64_t s = w->seed;
    sl_error err;
    for (size_t i = 0; i < N_OPS; i++) {
        switch (rp_below(&s, 8)) {
        case 0:
            sl_residency_evict(w->g->r, (size_t)rp_below(&s, 3));
            break;
        case 1:
            sl_residency_prefetch(w->g->r, (size_t)rp_below(&s, 3));
            break;
        case 2:
            (void)sl_residency_sleep(w->g->r, 1 + (unsigned)rp_below(&s, 2), NULL, &err);
            break;
        case 3:
            take_scratch(w, &s);
            break;
        default:
            request(w, &s);
            break;
        }
    }
}

/* Returns how many leases were given. */
static size_t run_concurrently(uint64_t seed, bool shuts_early)
{
    uint64_t s = seed * 0x9E3779B97F4A7C15u + 1;
    worker workers[N_WORKERS];
    rig g;
    sl_error err = {0};
    sl__sim_fault fault = {
            SL__SIM_FAIL, (sl__sim_call)rp_below(&s, SL__SIM_CALL_COUNT), 1 + rp_below(&s, 30)};
    bool is_lossy = fault.call == SL__SIM_FREE;
    rig_open(&g, &rig_toy,
            &(rig_opts){.budget_bytes = RIG_A_BYTES + RIG_B_BYTES + (is_lossy ? 160 : 64),
                    .has_threads = true,
                    .b_has_second = rp_below(&s, 2),
                    .faults = &fault,
                    .n_faults = (size_t)rp_below(&s, 2)});
    size_t n_given = 0;
    for (size_t i = 0; i < N_WORKERS; i++) {
        workers[i] = (worker){.g = &g, .seed = s + i * 77 + 1};
        assert_ok(sl__thread_start(&workers[i].thread, "test", work, &workers[i], &err), &err);
    }
    if (shuts_early) {
        sl_residency_shut(g.r);
    }
    for (size_t i = 0; i < N_WORKERS; i++) {
        sl__thread_join(&workers[i].thread);
        if (workers[i].n_wrong > 0) {
            fail_msg("seed %llu: wrong bytes or errors", (unsigned long long)seed);
        }
        n_given += workers[i].n_given;
    }
    if (!shuts_early) {
        assert_int_equal(rig_settle(&g), 0);
        rig_expect_rules(&g, true);
        rig_expect_usable(&g);
    }
    rig_close(&g);
    return n_given;
}

static void test_G3_29_concurrent_requests_cancels_sleeps_and_shutdowns(void **state)
{
    (void)state;
    uint64_t begin_ns = sl__now_ns();
    size_t n_given = 0;
    uint64_t seed = 1;
    for (; seed <= N_RUNS && sl__now_ns() - begin_ns < MAX_NS; seed++) {
        n_given += run_concurrently(seed, seed % 4 == 0);
    }
    printf("seeds 1 to %llu, %zu leases\n", (unsigned long long)seed - 1, n_given);
    assert_true(n_given > seed);
}

static void test_a_shut_residency_gives_no_leases(void **state)
{
    (void)state;
    rig g;
    sl_error err = {0};
    rig_open(&g, &rig_toy, &(rig_opts){.has_threads = true});
    assert_ok(rig_acquire(&g, 0, false, &err), &err);
    sl_residency_shut(g.r);
    assert_int_equal(rig_acquire(&g, 1, false, &err), SL_ECANCELLED);
    rig_expect_bytes(&g, 0);
    rig_close(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_G3_29_concurrent_requests_cancels_sleeps_and_shutdowns),
            cmocka_unit_test(test_a_shut_residency_gives_no_leases),
    };
    return cmocka_run_group_tests(tests, rig_set_up, rig_tear_down);
}
