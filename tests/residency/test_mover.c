/*
 * Every failure at every point. Short sequences of operations on three units are enumerated; each is run once to
 * count the device's calls, and then once more for each call with that call failing. Long sequences are random.
 * After each operation the rules are checked; at the end every unit can be loaded again.
 */
#include <stdio.h>
#include <string.h>

#include "test_support.h"

#include "random_plan.h"
#include "rig.h"

/* AddressSanitizer looks at the same code paths in fewer runs: it takes ten times as long for each. */
#ifdef __SANITIZE_ADDRESS__
#define N_RANDOM  10000
#define N_LONGEST 3
#else
#define N_RANDOM  100000
#define N_LONGEST 4
#endif
#define N_RANDOM_OPS 20

/* Room for any two units and for what one failing free can lose. */
#define TIGHT_BYTES (RIG_A_BYTES + RIG_B_BYTES + 64)

typedef enum op_kind {
    OP_TOGGLE,
    OP_EVICT,
    OP_PREFETCH,
    OP_SCRATCH,
    OP_STREAM,
    OP_CANCEL,
    OP_SLEEP
} op_kind;

typedef struct op {
    op_kind kind;
    size_t i_unit;
} op;

/* What the short sequences are made of. The smallest unit is enough to be fetched ahead: it fits beside any other. */
static const op short_ops[] = {{OP_TOGGLE, 0}, {OP_TOGGLE, 1}, {OP_TOGGLE, 2}, {OP_EVICT, 0},
        {OP_EVICT, 1}, {OP_EVICT, 2}, {OP_PREFETCH, 2}, {OP_SCRATCH, 0}};
#define N_SHORT_OPS (sizeof short_ops / sizeof short_ops[0])

/* An error has a code, a line for people, and leaves nothing half done. */
static void expect_good_error(int r, const sl_error *err)
{
    if (r < 0) {
        assert_int_equal(err->code, r);
        assert_true(err->msg[0] != '\0');
        assert_null(strchr(err->msg, '\n'));
        assert_int_not_equal(r, SL_EINTERNAL);
        assert_int_not_equal(r, SL_EINVAL);
    }
}

static void toggle(rig *g, size_t i_unit, bool is_streaming)
{
    sl_error err = {0};
    if (g->leases[i_unit]) {
        rig_release(g, i_unit);
        return;
    }
    int r = rig_acquire(g, i_unit, is_streaming, &err);
    if (r >= 0 && is_streaming) {
        r = sl_lease_wait(g->leases[i_unit], i_unit, NULL, NULL, &err);
        if (r < 0) {
            rig_release(g, i_unit);
        }
    }
    expect_good_error(r, &err);
    assert_int_equal(g->leases[i_unit] == NULL, r < 0);
    if (r >= 0) {
        rig_expect_bytes(g, i_unit);
    }
}

static void toggle_scratch(rig *g)
{
    sl_error err = {0};
    if (g->scratch) {
        sl_scratch_release(&g->scratch);
        return;
    }
    expect_good_error(
            sl_scratch_acquire(g->r, RIG_GPU, SL_MEM_KV, 64, true, NULL, &g->scratch, &err), &err);
}

static bool cancel_at(void *ud)
{
    uint64_t *n = ud;
    return (*n)-- == 0;
}

static void acquire_and_cancel(rig *g, size_t i_unit, uint64_t after)
{
    sl_error err = {0};
    sl_wait wait = {cancel_at, &after};
    if (!g->leases[i_unit]) {
        int r = sl_lease_acquire(g->r, &i_unit, 1, false, &wait, &g->leases[i_unit], &err);
        expect_good_error(r, &err);
    }
}

static void run_op(rig *g, op o, uint64_t extra)
{
    sl_error err = {0};
    switch (o.kind) {
    case OP_TOGGLE:
        toggle(g, o.i_unit, false);
        break;
    case OP_STREAM:
        toggle(g, o.i_unit, true);
        break;
    case OP_EVICT:
        sl_residency_evict(g->r, o.i_unit);
        break;
    case OP_PREFETCH:
        sl_residency_prefetch(g->r, o.i_unit);
        break;
    case OP_SCRATCH:
        toggle_scratch(g);
        break;
    case OP_CANCEL:
        acquire_and_cancel(g, o.i_unit, extra);
        break;
    case OP_SLEEP:
        expect_good_error(sl_residency_sleep(g->r, 1 + (unsigned)(extra & 1), NULL, &err), &err);
        break;
    }
    rig_expect_rules(g, false);
}

static void run_short(rig *g, const size_t *sequence, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        run_op(g, short_ops[sequence[i]], 0);
    }
    assert_int_equal(rig_settle(g), 0);
    rig_expect_rules(g, true);
    for (size_t i = 0; i < RIG_N_UNITS; i++) {
        if (g->leases[i]) {
            rig_expect_bytes(g, i);
        }
    }
}

static void finish(rig *g)
{
    rig_expect_usable(g);
    rig_close(g);
}

/* Fails each call that the sequence makes. Returns how many runs that were. */
static size_t fail_everywhere(const size_t *sequence, size_t n, const rig_opts *base)
{
    rig g;
    sl__sim_stats stats;
    size_t n_runs = 0;
    rig_open(&g, &rig_toy, base);
    run_short(&g, sequence, n);
    sl__sim_get_stats(g.devices[RIG_GPU], &stats);
    finish(&g);
    for (int call = 0; call < SL__SIM_CALL_COUNT; call++) {
        for (uint64_t k = 1; k <= stats.n_calls[call]; k++) {
            sl__sim_fault fault = {SL__SIM_FAIL, (sl__sim_call)call, k};
            rig_opts opts = *base;
            opts.faults = &fault;
            opts.n_faults = 1;
            rig_open(&g, &rig_toy, &opts);
            run_short(&g, sequence, n);
            finish(&g);
            n_runs++;
        }
    }
    return n_runs;
}

/* All sequences of n operations. */
static size_t enumerate(size_t n, const rig_opts *base)
{
    size_t sequence[4] = {0};
    size_t n_runs = 0;
    size_t n_sequences = 1;
    for (size_t i = 0; i < n; i++) {
        n_sequences *= N_SHORT_OPS;
    }
    for (size_t k = 0; k < n_sequences; k++) {
        size_t rest = k;
        for (size_t i = 0; i < n; i++) {
            sequence[i] = rest % N_SHORT_OPS;
            rest /= N_SHORT_OPS;
        }
        n_runs += fail_everywhere(sequence, n, base);
    }
    return n_runs;
}

static void test_G3_01_G3_05_every_failure_in_every_short_sequence(void **state)
{
    (void)state;
    size_t n_runs = 0;
    for (size_t n = 1; n <= N_LONGEST; n++) {
        n_runs += enumerate(n, &(rig_opts){.budget_bytes = TIGHT_BYTES});
    }
    for (size_t n = 1; n < N_LONGEST; n++) {
        n_runs += enumerate(n, &(rig_opts){.b_has_second = true});
    }
    printf("%zu runs with a failure\n", n_runs);
    assert_true(n_runs > (N_LONGEST == 4 ? 100000 : 10000));
}

static sl__sim_fault random_fault(uint64_t *s)
{
    static const sl__sim_fault_kind kinds[] = {
            SL__SIM_FAIL, SL__SIM_FAIL, SL__SIM_SLOW, SL__SIM_SHORT};
    sl__sim_fault fault = {kinds[rp_below(s, 4)], (sl__sim_call)rp_below(s, SL__SIM_CALL_COUNT), 0};
    fault.call = fault.kind == SL__SIM_SHORT ? SL__SIM_READ : fault.call;
    fault.n = 1 + rp_below(s, 20);
    return fault;
}

static void run_random(uint64_t seed)
{
    static const op_kind kinds[] = {OP_TOGGLE, OP_TOGGLE, OP_STREAM, OP_EVICT, OP_PREFETCH,
            OP_SCRATCH, OP_CANCEL, OP_SLEEP};
    static const uint64_t budgets[] = {TIGHT_BYTES, 2 * RIG_A_BYTES + 64, 1024};
    uint64_t s = seed * 0x9E3779B97F4A7C15u + 1;
    sl__sim_fault faults[2] = {random_fault(&s), random_fault(&s)};
    /* One memory that is lost leaves room; two may not. */
    faults[1].call = faults[1].call == SL__SIM_FREE ? SL__SIM_WAIT : faults[1].call;
    rig g;
    rig_opts opts = {.budget_bytes = budgets[rp_below(&s, 3)],
            .max_alloc_bytes = 128,
            .b_has_second = rp_below(&s, 2),
            .faults = faults,
            .n_faults = (size_t)rp_below(&s, 3)};
    rig_open(&g, &rig_toy, &opts);
    size_t n = 1 + (size_t)rp_below(&s, N_RANDOM_OPS);
    for (size_t i = 0; i < n; i++) {
        op o = {kinds[rp_below(&s, 8)], (size_t)rp_below(&s, RIG_N_UNITS)};
        run_op(&g, o, rp_below(&s, 6));
    }
    assert_int_equal(rig_settle(&g), 0);
    rig_expect_rules(&g, true);
    finish(&g);
}

static void test_random_sequences_with_failures(void **state)
{
    (void)state;
    printf("seeds 1 to %d\n", N_RANDOM);
    for (uint64_t seed = 1; seed <= N_RANDOM; seed++) {
        run_random(seed);
    }
}

static void test_G3_26_a_lost_device_fails_requests_and_nothing_else(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 2000; seed++) {
        uint64_t s = seed * 0x9E3779B97F4A7C15u + 1;
        rig g;
        sl_error err = {0};
        sl__sim_fault fault = {
                SL__SIM_LOST, (sl__sim_call)rp_below(&s, SL__SIM_CALL_COUNT), 1 + rp_below(&s, 12)};
        rig_open(&g, &rig_toy, &(rig_opts){.faults = &fault, .n_faults = 1});
        for (size_t i = 0; i < 12; i++) {
            size_t u = (size_t)rp_below(&s, RIG_N_UNITS);
            if (g.leases[u]) {
                rig_release(&g, u);
                sl_residency_evict(g.r, u);
            } else {
                expect_good_error(rig_acquire(&g, u, false, &err), &err);
            }
        }
        assert_int_equal(rig_settle(&g), 0);
        for (size_t i = 0; i < RIG_N_UNITS; i++) {
            rig_release(&g, i);
            assert_int_not_equal(rig_state(&g, i), SL_UNIT_LOADING);
        }
        rig_close(&g);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_G3_01_G3_05_every_failure_in_every_short_sequence),
            cmocka_unit_test(test_random_sequences_with_failures),
            cmocka_unit_test(test_G3_26_a_lost_device_fails_requests_and_nothing_else),
    };
    return cmocka_run_group_tests(tests, rig_set_up, rig_tear_down);
}
