#include "engine/text/json_doc.h"

#include <string.h>

#include "test_support.h"

static const char text[] =
        "{\"a\": [1, [2, 3], \"x\\ty\"],\n \"\\u00e9\": {\"b\": null},\n \"n\": -42}";

static int set_up(void **state)
{
    static s2_json_doc doc;
    sl_error err = {0};
    assert_ok(s2_json_parse(text, sizeof text - 1, "file", &doc, &err), &err);
    *state = &doc;
    return 0;
}

static int tear_down(void **state)
{
    s2_json_done(*state);
    return 0;
}

static void test_members_are_found(void **state)
{
    const s2_json_doc *doc = *state;
    const s2_json_node *root = &doc->nodes[0];
    assert_int_equal(root->n, 3);
    assert_non_null(s2_json_get(doc, root, "a"));
    const s2_json_node *inner = s2_json_get(doc, root, "\xc3\xa9");
    assert_non_null(inner);
    assert_int_equal(s2_json_get(doc, inner, "b")->kind, S2_JSON_NULL);
    assert_null(s2_json_get(doc, root, "b"));
    assert_null(s2_json_get(doc, inner, "a"));
    assert_null(s2_json_get(doc, NULL, "a"));
    assert_null(s2_json_get(doc, s2_json_get(doc, root, "a"), "a"));
}

static void test_items_are_walked(void **state)
{
    const s2_json_doc *doc = *state;
    const s2_json_node *array = s2_json_get(doc, &doc->nodes[0], "a");
    assert_int_equal(array->n, 3);
    const s2_json_node *item = s2_json_first(array);
    int64_t v = 0;
    assert_true(s2_json_int(doc, item, &v));
    assert_int_equal(v, 1);
    item = s2_json_next(doc, item);
    assert_int_equal(item->kind, S2_JSON_ARRAY);
    item = s2_json_next(doc, item);
    assert_true(s2_json_is_str(doc, item, "x\ty"));
    sl_span span = s2_json_span(doc, item);
    assert_int_equal(span.n, 3);
    assert_memory_equal(span.p, "x\ty", 3);
    assert_false(s2_json_is_str(doc, item, "x"));
    assert_false(s2_json_is_str(doc, NULL, "x"));
}

static void test_integers(void **state)
{
    (void)state;
    static const struct {
        const char *number;
        bool is_int;
        int64_t v;
    } rows[] = {
            {"0", true, 0},
            {"-42", true, -42},
            {"999999999999999999", true, 999999999999999999},
            {"1000000000000000000", false, 0},
            {"1.0", false, 0},
            {"1e3", false, 0},
            {"\"1\"", false, 0},
            {"true", false, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        s2_json_doc doc = {0};
        sl_error err = {0};
        int64_t v = 0;
        assert_ok(s2_json_parse(rows[i].number, strlen(rows[i].number), "file", &doc, &err), &err);
        assert_int_equal(s2_json_int(&doc, &doc.nodes[0], &v), rows[i].is_int);
        assert_int_equal(v, rows[i].v);
        s2_json_done(&doc);
    }
    int64_t v = 7;
    s2_json_doc none = {0};
    assert_false(s2_json_int(&none, NULL, &v));
}

static void test_messages_point_at_a_node(void **state)
{
    const s2_json_doc *doc = *state;
    sl_error err = {0};
    const s2_json_node *node = s2_json_get(doc, &doc->nodes[0], "n");
    assert_int_equal(s2_json_fail(doc, node, SL_EFORMAT, &err, "%s %d", "bad", 7), SL_EFORMAT);
    assert_string_equal(err.msg, "file: line 3, column 7: bad 7");
    assert_int_equal(err.offset, strstr(text, "-42") - text);
    assert_int_equal(s2_json_fail(doc, NULL, SL_ELIMIT, &err, "bad"), SL_ELIMIT);
    assert_string_equal(err.msg, "file: line 1, column 1: bad");
}

static void test_names_of_kinds(void **state)
{
    const s2_json_doc *doc = *state;
    assert_string_equal(s2_json_kind_name(&doc->nodes[0]), "an object");
    assert_string_equal(s2_json_kind_name(&doc->nodes[1]), "a string");
    assert_string_equal(s2_json_kind_name(NULL), "nothing");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_members_are_found),
            cmocka_unit_test(test_items_are_walked),
            cmocka_unit_test(test_integers),
            cmocka_unit_test(test_messages_point_at_a_node),
            cmocka_unit_test(test_names_of_kinds),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
