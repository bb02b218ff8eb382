/* s2_json_parse: what is JSON, what is not, and where a message points. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "engine/text/json_doc.h"
#include "test_support.h"

static void check_good(const char *text, size_t n_bytes, size_t n_nodes)
{
    s2_json_doc doc = {0};
    sl_error err = {0};
    assert_ok(s2_json_parse(text, n_bytes, "file", &doc, &err), &err);
    assert_int_equal(doc.n_nodes, n_nodes);
    s2_json_done(&doc);
}

static void check_bad(const char *text, size_t n_bytes, const char *says)
{
    s2_json_doc doc = {0};
    sl_error err = {0};
    int r = s2_json_parse(text, n_bytes, "file", &doc, &err);
    if (r != SL_EFORMAT || !strstr(err.msg, says)) {
        fail_msg("\"%s\": %d, %s; needed: %s", text, r, err.msg, says);
    }
    assert_null(doc.nodes);
}

static void test_values(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t n_nodes;
    } rows[] = {
            {"null", 1},
            {" true ", 1},
            {"\t\r\nfalse\n", 1},
            {"0", 1},
            {"-0.5e+10", 1},
            {"1E9", 1},
            {"\"\"", 1},
            {"[]", 1},
            {"{}", 1},
            {"[1, [2], {\"a\": [3]}]", 8},
            {"{\"a\": 1, \"\": 2}", 5},
            {"\"\\u00e9\\ud83d\\ude00\\n\\/\\\"\"", 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        check_good(rows[i].text, strlen(rows[i].text), rows[i].n_nodes);
    }
}

static void test_text_that_is_no_JSON(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *says;
    } rows[] = {
            {"", "file: line 1, column 1: found the end of the file, needed a value"},
            {"  ", "column 3: found the end"},
            {"nul", "found 'n', needed a value"},
            {"[1,]", "column 4: found ']'"},
            {"[1 2]", "column 4: found '2', needed ',' or ']'"},
            {"[1", "found the end of the file, needed ',' or ']'"},
            {"{\"a\" 1}", "needed ':'"},
            {"{a: 1}", "needed a key in quotes"},
            {"{\"a\": 1,}", "needed a key in quotes"},
            {"{\"a\": 1", "needed ',' or '}'"},
            {"1 2", "behind the end of the JSON"},
            {"01", "this is no number"},
            {"-", "this is no number"},
            {"1.", "this is no number"},
            {"1e", "this is no number"},
            {"+1", "found '+'"},
            {".5", "found '.'"},
            {"NaN", "found 'N'"},
            {"\"abc", "a string does not end"},
            {"\"abc\\", "the end of the file is no escape"},
            {"\"a\nb\"", "a control character inside a string"},
            {"\"\\x\"", "'x' is no escape"},
            {"\"\\u12g4\"", "four hex digits"},
            {"\"\\u12", "four hex digits"},
            {"\"\\ud83d\"", "half a surrogate pair"},
            {"\"\\ud83d\\u0041\"", "half a surrogate pair"},
            {"\"\\ude00\"", "half a surrogate pair"},
            {"{\n \"a\": 1,\n \"a\": 2}", "line 3, column 2: the key \"a\" is there twice"},
            {"{\"a\": 1, \"\\u0061\": 2}", "the key \"a\" is there twice"},
            {"[\n\"\xc3\x28\"]", "line 2, column 2: byte 0xc3 is not UTF-8"},
            {"\xef\xbb\xbf{}", "line 1, column 1"},
            {"/* */ 1", "found '/'"},
            {"'a'", "found '''"},
            {"[[[[\x01", "found '\\x01'"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        check_bad(rows[i].text, strlen(rows[i].text), rows[i].says);
    }
    check_bad("[\0]", 3, "found '\\x00'");
}

/* Every cut of a good text is no JSON, and nothing is read behind its end. */
static void test_every_prefix_is_refused(void **state)
{
    (void)state;
    static const char text[] =
            "{\"key\\u0041\": [1.5e3, true, null, {\"x\": \"\\ud83d\\ude00\"}], \"b\": {}}";
    size_t n = sizeof text - 1;
    check_good(text, n, 11);
    for (size_t i = 0; i < n; i++) {
        char *copy = malloc(i + 1);
        assert_non_null(copy);
        memcpy(copy, text, i);
        copy = realloc(copy, i > 0 ? i : 1);
        assert_non_null(copy);
        s2_json_doc doc = {0};
        sl_error err = {0};
        assert_int_equal(s2_json_parse(copy, i, "file", &doc, &err), SL_EFORMAT);
        free(copy);
    }
}

static void test_depth(void **state)
{
    (void)state;
    char text[4096];
    memset(text, '[', 64);
    memset(text + 64, ']', 64);
    check_good(text, 128, 64);
    memset(text, '[', sizeof text);
    text[sizeof text - 1] = '\0';
    check_bad(text, sizeof text - 1, "column 65: nested deeper than 64 levels");
}

static void test_twice_in_a_large_object(void **state)
{
    (void)state;
    char text[8192];
    size_t n = (size_t)snprintf(text, sizeof text, "{");
    for (int i = 0; i < 400; i++) {
        n += (size_t)snprintf(text + n, sizeof text - n, "\"k%d\": %d,\n", i, i);
    }
    size_t n_good = n + (size_t)snprintf(text + n, sizeof text - n, "\"k400\": 0}");
    check_good(text, n_good, 803);
    snprintf(text + n, sizeof text - n, "\"k7\": 0}");
    check_bad(text, strlen(text), "line 401, column 1: the key \"k7\" is there twice");
}

static void test_a_text_that_is_too_long(void **state)
{
    (void)state;
    s2_json_doc doc = {0};
    sl_error err = {0};
    assert_int_equal(s2_json_parse("1", ((size_t)1 << 30) + 1, "file", &doc, &err), SL_ELIMIT);
}

static void test_every_failing_allocation_is_an_error(void **state)
{
    (void)state;
    static const char text[] =
            "{\"a\": \"\\n\", \"b\": 1, \"c\": 1, \"d\": 1, \"e\": 1, \"f\": 1, "
            "\"g\": 1, \"h\": 1, \"i\": 1, \"j\": 1, \"k\": 1, \"l\": 1, \"m\": 1}";
    int r = SL_ENOMEM;
    long n = 0;
    for (; r == SL_ENOMEM && n < 50; n++) {
        s2_json_doc doc = {0};
        sl_error err = {0};
        sl__mem_fail_after(n);
        r = s2_json_parse(text, sizeof text - 1, "file", &doc, &err);
        sl__mem_fail_after(-1);
        s2_json_done(&doc);
    }
    assert_int_equal(r, 0);
    assert_in_range(n, 4, 49);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_values),
            cmocka_unit_test(test_text_that_is_no_JSON),
            cmocka_unit_test(test_every_prefix_is_refused),
            cmocka_unit_test(test_depth),
            cmocka_unit_test(test_twice_in_a_large_object),
            cmocka_unit_test(test_a_text_that_is_too_long),
            cmocka_unit_test(test_every_failing_allocation_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
