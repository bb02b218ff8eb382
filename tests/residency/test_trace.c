/* The ring keeps the latest events; the JSON is what Chrome's trace viewer reads. */
#include <jansson.h>
#include <string.h>

#include "test_support.h"

#include "residency/trace.h"

static sl__trace_event load_at(const char *name, uint64_t begin_ns, uint64_t end_ns)
{
    return (sl__trace_event){SL__TRACE_LOAD, name, 1, 4096, begin_ns, end_ns};
}

static void test_the_latest_events_are_kept_in_order(void **state)
{
    (void)state;
    sl__trace trace;
    sl_error err = {0};
    assert_ok(sl__trace_init(&trace, 4, &err), &err);
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

static json_t *parse(const sl__trace *trace)
{
    static const char *const places[] = {"cpu", "gpu \"0\""};
    sl__json j = {0};
    json_error_t why;
    sl__trace_json(trace, places, 2, &j);
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
    assert_ok(sl__trace_init(&trace, 8, &err), &err);
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

static void test_an_empty_trace_names_its_tracks(void **state)
{
    (void)state;
    sl__trace trace;
    sl_error err = {0};
    assert_ok(sl__trace_init(&trace, 8, &err), &err);
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
    assert_ok(sl__trace_init(&trace, 8, &err), &err);
    for (int k = 0; k < SL__TRACE_KIND_COUNT; k++) {
        assert_string_not_equal(sl__trace_kind_name((sl__trace_kind)k), "unknown");
        sl__trace_add(&trace, (sl__trace_event){(sl__trace_kind)k, "x", 1, 0, 1, 2});
        json_t *root = parse(&trace);
        bool is_move = k == SL__TRACE_LOAD || k == SL__TRACE_EVICT || k == SL__TRACE_FAIL;
        json_int_t track = json_integer_value(json_object_get(last_of(root), "tid"));
        assert_int_equal(track == 4, is_move);
        json_decref(root);
    }
    assert_string_equal(sl__trace_kind_name(SL__TRACE_KIND_COUNT), "unknown");
    sl__trace_done(&trace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_the_latest_events_are_kept_in_order),
            cmocka_unit_test(test_times_are_microseconds_from_the_first_event),
            cmocka_unit_test(test_an_empty_trace_names_its_tracks),
            cmocka_unit_test(test_every_kind_has_a_name_and_a_track),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
