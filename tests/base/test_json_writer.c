/* Texts are compared exactly, and read back by jansson. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <jansson.h>

#include "test_support.h"

#include "base/json_writer.h"
#include "base/mem.h"

static void expect_text(sl__json *j, const char *text)
{
    size_t n = 0;
    const char *found = sl__json_text(j, &n);
    assert_non_null(found);
    assert_string_equal(found, text);
    assert_int_equal(n, strlen(text));
    sl__json_done(j);
}

static void write_everything(sl__json *j)
{
    sl__json_object(j);
    sl__json_key(j, "list");
    sl__json_array(j);
    sl__json_u64(j, UINT64_MAX);
    sl__json_i64(j, INT64_MIN);
    sl__json_f64(j, 0.1);
    sl__json_bool(j, true);
    sl__json_bool(j, false);
    sl__json_null(j);
    sl__json_array(j);
    sl__json_end(j);
    sl__json_object(j);
    sl__json_end(j);
    sl__json_end(j);
    sl__json_key(j, "text");
    sl__json_cstr(j, "x");
    sl__json_key(j, "none");
    sl__json_cstr(j, NULL);
    sl__json_end(j);
}

static void test_every_kind_of_value(void **state)
{
    sl__json j = {0};
    (void)state;
    write_everything(&j);
    expect_text(&j,
            "{\"list\":[18446744073709551615,-9223372036854775808,0.1,true,false,null,[],{}],"
            "\"text\":\"x\",\"none\":null}");
}

static void test_keys_with_their_values(void **state)
{
    sl__json j = {0};
    (void)state;
    sl__json_object(&j);
    sl__json_put_str(&j, "str", "xyz", 2);
    sl__json_put_cstr(&j, "cstr", "z");
    sl__json_put_cstr(&j, "none", NULL);
    sl__json_put_u64(&j, "u64", 7);
    sl__json_put_u64_or_null(&j, "has", true, 8);
    sl__json_put_u64_or_null(&j, "has not", false, 9);
    sl__json_put_f64(&j, "f64", 0.5);
    sl__json_put_bool(&j, "bool", true);
    sl__json_end(&j);
    expect_text(&j, "{\"str\":\"xy\",\"cstr\":\"z\",\"none\":null,\"u64\":7,\"has\":8,"
                    "\"has not\":null,\"f64\":0.5,\"bool\":true}");
}

static void test_nothing_and_single_values(void **state)
{
    sl__json j = {0};
    (void)state;
    expect_text(&j, "");
    sl__json_u64(&j, 5);
    expect_text(&j, "5");
    sl__json_done(&j);
    sl__json_done(&j);
}

static void test_strings_are_escaped(void **state)
{
    static const struct {
        const char *s;
        size_t n;
        const char *text;
    } rows[] = {
            {"", 0, "\"\""},
            {"\"\\/", 3, "\"\\\"\\\\/\""},
            {"\n\r\t", 3, "\"\\n\\r\\t\""},
            {"\0\x01\x1f\x7f", 4, "\"\\u0000\\u0001\\u001f\x7f\""},
            {"\xC3\xA9\xF0\x9F\x98\x80", 6, "\"\xC3\xA9\xF0\x9F\x98\x80\""},
            {"a\xFF\xE2\x82", 4, "\"a\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\""},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        sl__json j = {0};
        sl__json_str(&j, rows[i].s, rows[i].n);
        expect_text(&j, rows[i].text);
    }
    sl__json j = {0};
    sl__json_object(&j);
    sl__json_key(&j, "a\"\n");
    sl__json_null(&j);
    sl__json_end(&j);
    expect_text(&j, "{\"a\\\"\\n\":null}");
}

static void test_numbers_read_back_equal(void **state)
{
    const double values[] = {0.0, -0.0, 1.0, -1.5, 0.1, 1.0 / 3, 1e300, 1e-300, DBL_MAX, DBL_MIN,
            5e-324, 123456789012345678.0, 3.0000000000000004};
    (void)state;
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        sl__json j = {0};
        size_t n = 0;
        sl__json_array(&j);
        sl__json_f64(&j, values[i]);
        sl__json_end(&j);
        json_t *back = json_loads(sl__json_text(&j, &n), 0, NULL);
        assert_non_null(back);
        double v = json_number_value(json_array_get(back, 0));
        assert_true(v == values[i]);
        json_decref(back);
        sl__json_done(&j);
    }
}

static void test_numbers_that_json_lacks(void **state)
{
    sl__json j = {0};
    (void)state;
    sl__json_array(&j);
    sl__json_f64(&j, (double)NAN);
    sl__json_f64(&j, (double)INFINITY);
    sl__json_f64(&j, -(double)INFINITY);
    sl__json_end(&j);
    expect_text(&j, "[null,null,null]");
}

static void test_any_bytes_make_valid_json(void **state)
{
    uint64_t seed = 12345;
    (void)state;
    for (int round = 0; round < 2000; round++) {
        char bytes[24];
        size_t n_text = 0;
        sl__json j = {0};
        for (size_t i = 0; i < sizeof bytes; i++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            bytes[i] = (char)(seed >> 56);
        }
        sl__json_array(&j);
        sl__json_str(&j, bytes, sizeof bytes);
        sl__json_end(&j);
        const char *text = sl__json_text(&j, &n_text);
        json_t *back = json_loadb(text, n_text, JSON_ALLOW_NUL, NULL);
        assert_non_null(back);
        json_decref(back);
        sl__json_done(&j);
    }
}

static void test_the_deepest_nesting(void **state)
{
    char text[2 * SL_JSON_MAX_DEPTH + 1] = {0};
    sl__json j = {0};
    (void)state;
    for (int i = 0; i < SL_JSON_MAX_DEPTH; i++) {
        sl__json_array(&j);
        text[i] = '[';
        text[2 * SL_JSON_MAX_DEPTH - 1 - i] = ']';
    }
    for (int i = 0; i < SL_JSON_MAX_DEPTH; i++) {
        sl__json_end(&j);
    }
    expect_text(&j, text);
}

static void test_out_of_memory_makes_it_dead(void **state)
{
    bool is_done = false;
    (void)state;
    for (long n = 0; !is_done; n++) {
        sl__json j = {0};
        sl__mem_fail_after(n);
        write_everything(&j);
        sl__json_f64(&j, 1.5);
        const char *text = sl__json_text(&j, NULL);
        sl__mem_fail_after(-1);
        is_done = text != NULL;
        assert_int_equal(text == NULL, j.is_dead);
        sl__json_null(&j);
        assert_int_equal(sl__json_text(&j, NULL) == NULL, !is_done);
        sl__json_done(&j);
        assert_true(is_done || n < 20);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_every_kind_of_value),
            cmocka_unit_test(test_keys_with_their_values),
            cmocka_unit_test(test_nothing_and_single_values),
            cmocka_unit_test(test_strings_are_escaped),
            cmocka_unit_test(test_numbers_read_back_equal),
            cmocka_unit_test(test_numbers_that_json_lacks),
            cmocka_unit_test(test_any_bytes_make_valid_json),
            cmocka_unit_test(test_the_deepest_nesting),
            cmocka_unit_test(test_out_of_memory_makes_it_dead),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
