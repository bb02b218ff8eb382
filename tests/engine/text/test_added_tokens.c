#include "engine/text/added_tokens.h"

#include <string.h>

#include "base/mem.h"
#include "test_support.h"

static sl_span span(const char *s)
{
    return (sl_span){s, strlen(s)};
}

static void make_list(s2_added_tokens *list)
{
    static const char *const texts[] = {"<a>", "<a>b", "<", "<abc>", "\xc3\xa9x", "<a>bcd"};
    sl_error err = {0};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        assert_ok(s2_added_push(list, span(texts[i]), (int32_t)i, &err), &err);
    }
    s2_added_sort(list);
}

static void test_the_leftmost_and_longest_is_found(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t at;
        size_t n;
        int32_t id;
    } rows[] = {
            {"xx<a>bc", 2, 4, 1},
            {"<a>bcd", 0, 6, 5},
            {"<a>bcx", 0, 4, 1},
            {"<a", 0, 1, 2},
            {"<<abc>", 0, 1, 2},
            {"<abc>", 0, 5, 3},
            {"a\xc3\xa9x", 1, 3, 4},
            {"a\xc3\xa9y", 0, 0, -1},
            {"", 0, 0, -1},
    };
    s2_added_tokens list = {0};
    make_list(&list);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        size_t at = 0;
        int32_t id = -1;
        assert_int_equal(
                s2_added_next(&list, rows[i].text, strlen(rows[i].text), &at, &id), rows[i].n);
        assert_int_equal(at, rows[i].at);
        assert_int_equal(id, rows[i].id);
    }
    s2_added_done(&list);
}

static void test_tokens_are_found_by_their_spelling(void **state)
{
    (void)state;
    s2_added_tokens list = {0};
    assert_int_equal(s2_added_find(&list, span("<a>")), -1);
    make_list(&list);
    assert_int_equal(s2_added_find(&list, span("<a>")), 0);
    assert_int_equal(s2_added_find(&list, span("<abc>")), 3);
    assert_int_equal(s2_added_find(&list, span("<a>bc")), -1);
    assert_int_equal(s2_added_find(&list, span("")), -1);
    assert_int_equal(s2_added_find(&list, span("zzz")), -1);
    s2_added_done(&list);
}

static void test_an_empty_list_finds_nothing(void **state)
{
    (void)state;
    s2_added_tokens list = {0};
    size_t at = 0;
    int32_t id = -1;
    s2_added_sort(&list);
    assert_int_equal(s2_added_next(&list, "<a>", 3, &at, &id), 0);
    s2_added_done(&list);
}

static void test_no_memory(void **state)
{
    (void)state;
    s2_added_tokens list = {0};
    sl_error err = {0};
    sl__mem_fail_after(0);
    int r = s2_added_push(&list, span("x"), 1, &err);
    sl__mem_fail_after(-1);
    assert_int_equal(r, SL_ENOMEM);
    assert_int_equal(list.n, 0);
    s2_added_done(&list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_the_leftmost_and_longest_is_found),
            cmocka_unit_test(test_tokens_are_found_by_their_spelling),
            cmocka_unit_test(test_an_empty_list_finds_nothing),
            cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
