/* What a residency says of itself and of its devices, and its trace as a file. */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test_support.h"

#include "rig.h"

static void test_the_account_of_a_place_is_that_of_its_device(void **state)
{
    (void)state;
    rig g;
    sl_error err = {0};
    sl_place_status place;
    rig_open(&g, &rig_toy, &(rig_opts){0});
    assert_ok(rig_acquire(&g, 0, false, &err), &err);
    assert_ok(sl_scratch_acquire(g.r, RIG_GPU, SL_MEM_KV, 64, true, NULL, &g.scratch, &err), &err);
    assert_ok(sl_residency_place_status(g.r, RIG_GPU, &place, &err), &err);
    assert_string_equal(place.name, "sim");
    assert_int_equal(place.budget_bytes, 1024);
    assert_int_equal(place.used[SL_MEM_WEIGHTS], RIG_A_BYTES);
    assert_int_equal(place.used[SL_MEM_KV], 64);
    assert_int_equal(place.used_total, RIG_A_BYTES + 64);
    assert_int_equal(place.device_bytes, RIG_A_BYTES + 64);
    sl_scratch_release(&g.scratch);
    assert_ok(sl_residency_place_status(g.r, RIG_GPU, &place, &err), &err);
    assert_int_equal(place.peak_total, RIG_A_BYTES + 64);
    assert_int_equal(place.used_total, RIG_A_BYTES);
    sl_residency_reset_peaks(g.r);
    assert_ok(sl_residency_place_status(g.r, RIG_GPU, &place, &err), &err);
    assert_int_equal(place.peak_total, RIG_A_BYTES);
    rig_close(&g);
}

static void test_memory_that_a_device_keeps_stays_in_the_account(void **state)
{
    (void)state;
    rig g;
    sl_error err = {0};
    sl_place_status place;
    sl__sim_fault fault = {SL__SIM_FAIL, SL__SIM_FREE, 1};
    rig_open(&g, &rig_toy, &(rig_opts){.faults = &fault, .n_faults = 1});
    assert_ok(rig_acquire(&g, 0, false, &err), &err);
    rig_release(&g, 0);
    sl_residency_evict(g.r, 0);
    assert_int_equal(rig_settle(&g), 0);
    assert_int_equal(rig_state(&g, 0), SL_UNIT_ABSENT);
    assert_ok(sl_residency_place_status(g.r, RIG_GPU, &place, &err), &err);
    assert_int_equal(place.lost_bytes, RIG_A_BYTES);
    assert_int_equal(place.used_total, RIG_A_BYTES);
    rig_expect_rules(&g, true);
    rig_expect_usable(&g);
    rig_close(&g);
}

static void test_the_status_of_a_unit_follows_its_states(void **state)
{
    (void)state;
    rig g;
    sl_error err = {0};
    sl_unit_status status;
    rig_open(&g, &rig_toy, &(rig_opts){0});
    assert_int_equal(sl_residency_unit_bytes(g.r, 1, RIG_GPU), RIG_B_BYTES);
    assert_int_equal(sl_residency_unit_bytes(g.r, 1, RIG_CPU), 0);
    assert_ok(rig_acquire(&g, 1, true, &err), &err);
    sl_residency_unit_status(g.r, 1, &status);
    assert_string_equal(status.name, "b");
    assert_int_equal(status.state, SL_UNIT_LOADING);
    assert_int_equal(status.n_bytes, RIG_B_BYTES);
    assert_int_equal(status.n_loads, 1);
    assert_int_equal(status.epoch, 0);
    assert_int_equal(rig_settle(&g), 0);
    sl_residency_unit_status(g.r, 1, &status);
    assert_int_equal(status.state, SL_UNIT_RESIDENT);
    assert_int_equal(status.n_arrived, status.n_slices);
    assert_int_equal(status.epoch, 1);
    rig_release(&g, 1);
    rig_close(&g);
}

#define B_FILE_BYTES 84

static bool is_route(const char *name)
{
    bool is = false;
    for (int i = SL__ROUTE_PLAIN; i < SL__ROUTE_COUNT; i++) {
        is = is || strcmp(name, sl__route_name((sl__route)i)) == 0;
    }
    return is;
}

static void test_the_status_of_a_unit_has_its_latest_load(void **state)
{
    (void)state;
    rig g;
    sl_error err = {0};
    sl_unit_status status;
    sl__sim_fault fault = {SL__SIM_FAIL, SL__SIM_ALLOC, 2};
    rig_open(&g, &rig_toy, &(rig_opts){.faults = &fault, .n_faults = 1});
    assert_ok(rig_acquire(&g, 1, true, &err), &err);
    sl_residency_unit_status(g.r, 1, &status);
    assert_null(status.route);
    assert_int_equal(status.load_bytes, 0);
    assert_int_equal(rig_settle(&g), 0);
    sl_residency_unit_status(g.r, 1, &status);
    assert_true(is_route(status.route));
    assert_int_equal(status.load_bytes, B_FILE_BYTES);
    assert_true(status.load_ns > 0);
    /* A load that fails leaves the figures of the one before. */
    rig_release(&g, 1);
    sl_residency_evict(g.r, 1);
    assert_int_equal(rig_settle(&g), 0);
    assert_true(rig_acquire(&g, 1, false, &err) < 0);
    uint64_t load_ns = status.load_ns;
    sl_residency_unit_status(g.r, 1, &status);
    assert_true(status.last_error.code < 0);
    assert_true(is_route(status.route));
    assert_int_equal(status.load_bytes, B_FILE_BYTES);
    assert_int_equal(status.load_ns, load_ns);
    rig_close(&g);
}

typedef struct said {
    rig *g;
    size_t n;
    char line[256];
} said;

/* Asks the residency: no lock is held. */
static void keep_debug(void *ud, sl_log_level level, const char *msg)
{
    said *s = ud;
    if (level == SL_LOG_DEBUG) {
        assert_int_equal(rig_state(s->g, 1), SL_UNIT_RESIDENT);
        s->n++;
        snprintf(s->line, sizeof s->line, "%s", msg);
    }
}

static void test_a_load_that_moved_bytes_is_one_line_of_the_log(void **state)
{
    (void)state;
    rig g;
    sl_error err = {0};
    said s = {.g = &g};
    sl_unit_status status;
    static const char begin[] = "residency: unit b: 84 B to sim in ";
    char *at = s.line + sizeof begin - 1;
    char wanted[64];
    rig_open(&g, &rig_toy, &(rig_opts){.log = {keep_debug, &s}});
    assert_ok(rig_acquire(&g, 1, false, &err), &err);
    assert_int_equal(s.n, 1);
    assert_memory_equal(s.line, begin, sizeof begin - 1);
    assert_true(strtod(at, &at) >= 0);
    assert_memory_equal(at, " ms, ", 5);
    assert_true(strtod(at + 5, &at) >= 0);
    sl_residency_unit_status(g.r, 1, &status);
    snprintf(wanted, sizeof wanted, " GB/s by %s, %" PRIu64 " stall%s", status.route,
            status.load_stalls, status.load_stalls == 1 ? "" : "s");
    assert_string_equal(at, wanted);
    /* One that is there already moves nothing. */
    rig_release(&g, 1);
    assert_ok(rig_acquire(&g, 1, false, &err), &err);
    assert_int_equal(s.n, 1);
    rig_close(&g);
}

/* What the trace says of moves. */
static void expect_args(const json_t *event, const char *kind)
{
    const json_t *args = json_object_get(event, "args");
    const char *route = json_string_value(json_object_get(args, "route"));
    bool is_load = strcmp(kind, "load") == 0;
    assert_int_equal(route != NULL, is_load);
    assert_int_equal(json_is_integer(json_object_get(args, "stalls")), is_load);
    assert_true(!is_load || is_route(route));
}

static void test_the_trace_is_written_and_read_back(void **state)
{
    (void)state;
    rig g;
    sl_error err = {0};
    char path[512];
    json_error_t why;
    rig_open(&g, &rig_toy, &(rig_opts){0});
    assert_ok(rig_acquire(&g, 0, false, &err), &err);
    rig_release(&g, 0);
    sl_residency_evict(g.r, 0);
    assert_int_equal(rig_settle(&g), 0);
    test_path(path, sizeof path, rig_toy.dir, "trace.json");
    assert_ok(sl_residency_write_trace(g.r, path, &err), &err);
    json_t *root = json_load_file(path, 0, &why);
    assert_non_null(root);
    const json_t *events = json_object_get(root, "traceEvents");
    size_t n_seen[5] = {0};
    static const char *const kinds[5] = {"load", "stall", "lease", "evict", "memory"};
    static const size_t n_wanted[5] = {1, 1, 1, 1, 2};
    for (size_t i = 0; i < json_array_size(events); i++) {
        const char *kind = json_string_value(json_object_get(json_array_get(events, i), "cat"));
        for (size_t k = 0; kind && k < 5; k++) {
            n_seen[k] += strcmp(kind, kinds[k]) == 0;
        }
        if (kind) {
            expect_args(json_array_get(events, i), kind);
        }
    }
    for (size_t k = 0; k < 5; k++) {
        assert_int_equal(n_seen[k], n_wanted[k]);
    }
    json_decref(root);
    assert_int_equal(sl_residency_write_trace(g.r, "/nonexistent/t.json", &err), SL_ENOENT);
    rig_close(&g);
}

static void test_states_have_names(void **state)
{
    (void)state;
    for (int i = 0; i <= SL_UNIT_STATE_COUNT; i++) {
        bool is_unknown = strcmp(sl_unit_state_name((sl_unit_state)i), "unknown") == 0;
        assert_int_equal(is_unknown, i == SL_UNIT_STATE_COUNT);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_the_account_of_a_place_is_that_of_its_device),
            cmocka_unit_test(test_memory_that_a_device_keeps_stays_in_the_account),
            cmocka_unit_test(test_the_status_of_a_unit_follows_its_states),
            cmocka_unit_test(test_the_status_of_a_unit_has_its_latest_load),
            cmocka_unit_test(test_a_load_that_moved_bytes_is_one_line_of_the_log),
            cmocka_unit_test(test_the_trace_is_written_and_read_back),
            cmocka_unit_test(test_states_have_names),
    };
    return cmocka_run_group_tests(tests, rig_set_up, rig_tear_down);
}
