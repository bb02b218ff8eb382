/* The ring keeps the latest events; the JSON is what Chrome's trace viewer reads. */
#include <jansson.h>
#include <string.h>

#include "test_support.h"

#include "base/mem.h"
#include "residency/trace.h"

static sl__trace_event load_at(const char *name, uint64_t begin_ns, uint64_t end_ns)
{
    return (sl__trace_event){SL__TRACE_LOAD, name, 1, 4096, begin_ns, end_ns, "memcpy", 2};
}

static void test_the_latest_events_are_kept_in_order(void **state)
{
    (void)state;
    sl__trace trace;
    sl_error err = {0};
    assert_ok(sl__trace_init(&trace, 4, 2, &err), &err);
    for (uint64_t i = 0; i < 11; i++) {
        sl__trace_add(&trace, load_at("u", i, i + 1));
        assert_int_equal(sl__trace_n(&trace), i < 4 ? i + 1 : 4);
        assert_int_equal(sl__trace_at(&trace, sl__trace_n(&trace) - 1)->begin_ns, i);
    }
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(sl__trace_at(&trace, i)->begin_ns, 7 + i);
    }
    sl__trace_done(&trace);
}

static sl__account accounts[2] = {
        {.name = "cpu", .budget_bytes = 100},
        {.name = "gpu \"0\"", .budget_bytes = 200},
};
static const sl__ledger ledger = {accounts, 2};

static json_t *parse(const sl__trace *trace)
{
    sl__json j = {0};
    json_error_t why;
    sl__trace_json(trace, &ledger, SL_POLICY_HOT, &j);
    json_t *root = json_loads(sl__json_text(&j, NULL), 0, &why);
    if (!root) {
        fail_msg("no JSON: %s", why.text);
    }
    sl__json_done(&j);
    return root;
}

static const json_t *last_of(const json_t *root)
{
    const json_t *events = json_object_get(root, "traceEvents");
    return json_array_get(events, json_array_size(events) - 1);
}

static void test_times_are_microseconds_from_the_first_event(void **state)
{
    (void)state;
    sl__trace trace;
    sl_error err = {0};
    assert_ok(sl__trace_init(&trace, 8, 2, &err), &err);
    sl__trace_add(&trace, load_at("slow", 5000000, 5000500));
    sl__trace_add(&trace, load_at("fast", 5001000, 5004500));
    json_t *root = parse(&trace);
    const json_t *e = last_of(root);
    assert_string_equal(json_string_value(json_object_get(e, "name")), "fast");
    assert_string_equal(json_string_value(json_object_get(e, "ph")), "X");
    assert_string_equal(json_string_value(json_object_get(e, "cat")), "load");
    assert_true(json_number_value(json_object_get(e, "ts")) == 1.0);
    assert_true(json_number_value(json_object_get(e, "dur")) == 3.5);
    assert_int_equal(
            json_integer_value(json_object_get(json_object_get(e, "args"), "bytes")), 4096);
    json_decref(root);
    sl__trace_done(&trace);
}

static void test_moves_have_bytes_and_loads_their_route(void **state)
{
    (void)state;
    sl__trace trace;
    sl_error err = {0};
    assert_ok(sl__trace_init(&trace, 8, 2, &err), &err);
    for (int has_route = 1; has_route >= 0; has_route--) {
        sl__trace_event event = load_at("slow", 1, 2);
        event.route = has_route ? event.route : NULL;
        sl__trace_add(&trace, event);
        json_t *root = parse(&trace);
        const json_t *args = json_object_get(last_of(root), "args");
        const char *route = json_string_value(json_object_get(args, "route"));
        assert_int_equal(json_object_size(args), has_route ? 3 : 1);
        assert_int_equal(json_integer_value(json_object_get(args, "bytes")), 4096);
        if (has_route) {
            assert_string_equal(route, "memcpy");
            assert_int_equal(json_integer_value(json_object_get(args, "stalls")), 2);
        }
        json_decref(root);
    }
    sl__trace_done(&trace);
}

static void test_an_empty_trace_names_its_tracks(void **state)
{
    (void)state;
    sl__trace trace;
    sl_error err = {0};
    assert_ok(sl__trace_init(&trace, 8, 2, &err), &err);
    json_t *root = parse(&trace);
    assert_int_equal(json_array_size(json_object_get(root, "traceEvents")), 5);
    const json_t *name = json_object_get(json_object_get(last_of(root), "args"), "name");
    assert_string_equal(json_string_value(name), "gpu \"0\"");
    json_decref(root);
    sl__trace_done(&trace);
}

static void test_every_kind_has_a_name_and_a_track(void **state)
{
    (void)state;
    sl__trace trace;
    sl_error err = {0};
    assert_ok(sl__trace_init(&trace, 8, 2, &err), &err);
    for (int k = 0; k < SL__TRACE_KIND_COUNT; k++) {
        assert_string_not_equal(sl__trace_kind_name((sl__trace_kind)k), "unknown");
        sl__trace_add(&trace, (sl__trace_event){(sl__trace_kind)k, "x", 1, 0, 1, 2, NULL, 0});
        json_t *root = parse(&trace);
        bool is_move = k == SL__TRACE_LOAD || k == SL__TRACE_EVICT || k == SL__TRACE_FAIL ||
                       k == SL__TRACE_MEMORY;
        json_int_t track = json_integer_value(json_object_get(last_of(root), "tid"));
        assert_int_equal(track == 4, is_move);
        json_decref(root);
    }
    assert_string_equal(sl__trace_kind_name(SL__TRACE_KIND_COUNT), "unknown");
    sl__trace_done(&trace);
}

static json_int_t int_at(const json_t *object, const char *key)
{
    const json_t *v = json_object_get(object, key);
    assert_true(json_is_integer(v));
    return json_integer_value(v);
}

static void test_memory_is_recorded_when_it_changes_and_not_otherwise(void **state)
{
    (void)state;
    sl__trace trace;
    sl__ledger real;
    sl_error err = {0};
    assert_ok(sl__ledger_init(&real, 2, &err), &err);
    assert_ok(sl__ledger_set_budget(&real, 0, "cpu", 50, &err), &err);
    assert_ok(sl__ledger_set_budget(&real, 1, "gpu", 100, &err), &err);
    assert_ok(sl__trace_init(&trace, 8, 2, &err), &err);
    sl__trace_memory(&trace, &real, 10);
    assert_int_equal(sl__trace_n(&trace), 0);
    assert_ok(sl__ledger_book(&real, 1, SL_MEM_WEIGHTS, 60, &err), &err);
    assert_ok(sl__ledger_book(&real, 1, SL_MEM_KV, 7, &err), &err);
    sl__trace_memory(&trace, &real, 1000);
    sl__trace_memory(&trace, &real, 2000);
    assert_int_equal(sl__trace_n(&trace), 1);
    assert_ok(sl__ledger_return(&real, 1, SL_MEM_WEIGHTS, 60, &err), &err);
    sl__trace_memory(&trace, &real, 3000);
    json_t *root = parse(&trace);
    const json_t *events = json_object_get(root, "traceEvents");
    const json_t *e = json_array_get(events, json_array_size(events) - 2);
    assert_string_equal(json_string_value(json_object_get(e, "ph")), "C");
    assert_string_equal(json_string_value(json_object_get(e, "name")), "gpu");
    assert_int_equal(int_at(e, "tid"), 4);
    assert_int_equal(int_at(json_object_get(e, "args"), "weights"), 60);
    assert_int_equal(int_at(json_object_get(e, "args"), "kv"), 7);
    assert_int_equal(int_at(json_object_get(last_of(root), "args"), "weights"), 0);
    json_decref(root);
    sl__trace_done(&trace);
    sl__ledger_done(&real);
}

static void test_what_the_events_lack_is_beside_them(void **state)
{
    (void)state;
    sl__trace trace;
    sl_error err = {0};
    assert_ok(sl__trace_init(&trace, 2, 2, &err), &err);
    for (uint64_t i = 0; i < 5; i++) {
        sl__trace_add(&trace, load_at("u", i, i + 1));
    }
    accounts[1].peak[SL_MEM_KV] = 9;
    accounts[1].peak_total = 11;
    json_t *root = parse(&trace);
    const json_t *other = json_object_get(root, "otherData");
    assert_string_equal(json_string_value(json_object_get(other, "format")), "sluice-trace");
    assert_string_equal(json_string_value(json_object_get(other, "policy")), "hot");
    assert_int_equal(int_at(other, "version"), 1);
    assert_int_equal(int_at(other, "dropped_events"), 3);
    const json_t *place = json_array_get(json_object_get(other, "places"), 1);
    assert_string_equal(json_string_value(json_object_get(place, "name")), "gpu \"0\"");
    assert_int_equal(int_at(place, "tid"), 4);
    assert_int_equal(int_at(place, "budget_bytes"), 200);
    assert_int_equal(int_at(json_object_get(place, "peak_bytes"), "kv"), 9);
    assert_int_equal(int_at(json_object_get(place, "peak_bytes"), "total"), 11);
    json_decref(root);
    sl__trace_done(&trace);
}

static void test_a_trace_without_memory_for_itself_is_an_error(void **state)
{
    (void)state;
    for (long n = 0; n < 3; n++) {
        sl__trace trace;
        sl_error err = {0};
        sl__mem_fail_after(n);
        int r = sl__trace_init(&trace, 8, 2, &err);
        sl__mem_fail_after(-1);
        assert_int_equal(r, SL_ENOMEM);
        assert_null(trace.events);
        assert_null(trace.used);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_the_latest_events_are_kept_in_order),
            cmocka_unit_test(test_times_are_microseconds_from_the_first_event),
            cmocka_unit_test(test_moves_have_bytes_and_loads_their_route),
            cmocka_unit_test(test_an_empty_trace_names_its_tracks),
            cmocka_unit_test(test_every_kind_has_a_name_and_a_track),
            cmocka_unit_test(test_memory_is_recorded_when_it_changes_and_not_otherwise),
            cmocka_unit_test(test_what_the_events_lack_is_beside_them),
            cmocka_unit_test(test_a_trace_without_memory_for_itself_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
