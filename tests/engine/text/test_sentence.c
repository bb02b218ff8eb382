#include "engine/text/sentence.h"

#include <string.h>

#include "test_support.h"

static void test_kinds_of_parts(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        s2_part_kind kind;
        size_t n;
    } rows[] = {
            {"a", S2_PART_LETTER, 1},
            {"7", S2_PART_LETTER, 1},
            {"e\xcc\x81", S2_PART_LETTER, 3},
            {" ", S2_PART_BLANK, 1},
            {" \xcc\x81", S2_PART_OTHER, 3}, /* a blank that carries a mark */
            {"\r\n", S2_PART_LINE, 2},
            {"\xe2\x80\xa9", S2_PART_LINE, 3},
            {".", S2_PART_STOP, 1},
            {"\xe2\x80\xa6", S2_PART_STOP, 3},
            {"?", S2_PART_END, 1},
            {"\xe3\x80\x82", S2_PART_END_WIDE, 3},
            {"\xe0\xa5\xa4", S2_PART_END_WIDE, 3},
            {"\xd8\x9f", S2_PART_END_WIDE, 2},
            {",", S2_PART_CLAUSE, 1},
            {"\xe3\x80\x81", S2_PART_CLAUSE_WIDE, 3},
            {"\"", S2_PART_QUOTE, 1},
            {"(", S2_PART_OPENER, 1},
            {"\xe2\x80\x9d", S2_PART_CLOSER, 3},
            {"[a b]", S2_PART_TAG, 5},
            {"[]", S2_PART_OPENER, 1},
            {"[a[b]", S2_PART_OPENER, 1},
            {"[a\nb]", S2_PART_OPENER, 1},
            {"[a", S2_PART_OPENER, 1},
            {"\xf0\x9f\x98\x80", S2_PART_OTHER, 4},
            {"", S2_PART_OTHER, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        s2_part part = s2_part_at(rows[i].text, strlen(rows[i].text), SIZE_MAX);
        assert_int_equal(part.kind, rows[i].kind);
        assert_int_equal(part.n, rows[i].n);
    }
    assert_int_equal(s2_part_at("[abc]", 5, 5).kind, S2_PART_TAG);
    assert_int_equal(s2_part_at("[abc]", 5, 4).kind, S2_PART_OPENER);
}

static void test_length_of_the_first_sentence(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t n;
        bool has_speech;
    } rows[] = {
            {"One. Two.", 4, true},
            {"One . Two.", 5, true},
            {"One \n Two.", 3, true},
            {"... One. Two", 8, true},
            {"[a]\n[b] One. Two", 12, true},
            {"\"One.\" Two", 6, true},
            {"One.Two. Three", 8, true},
            {"One! two", 4, true},
            {"One. two", 8, true},
            {"Ms. One", 7, true},
            {"Ms.", 3, true},
            {"!?  ", 2, false},
            {"[tag] ", 5, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        bool has_speech = !rows[i].has_speech;
        assert_int_equal(s2_sentence_len(rows[i].text, strlen(rows[i].text), SIZE_MAX, &has_speech),
                rows[i].n);
        assert_int_equal(has_speech, rows[i].has_speech);
    }
}

static bool ends_clause(const char *text, size_t at)
{
    size_t n = strlen(text);
    return s2_ends_clause(text, n, at, s2_part_at(text + at, n - at, SIZE_MAX));
}

static void test_ends_of_clauses(void **state)
{
    (void)state;
    assert_true(ends_clause("a, b", 1));
    assert_true(ends_clause("a,", 1));
    assert_true(ends_clause("a. b", 1));
    assert_false(ends_clause("1,000", 1));
    assert_false(ends_clause("a,b", 1));
    assert_false(ends_clause("Dr. B", 2));
    assert_false(ends_clause("a b", 1));
    assert_true(ends_clause("a\xef\xbc\x8c"
                            "b",
            1));
    assert_false(ends_clause("1\xef\xbc\x8c"
                             "2",
            1));
}

static void test_blanks_and_digits(void **state)
{
    (void)state;
    assert_int_equal(s2_skip_blanks(" \t\r\n\xc2\xa0\xe3\x80\x80x", 10), 9);
    assert_int_equal(s2_skip_blanks("  \xcc\x81", 4), 1);
    assert_int_equal(s2_skip_blanks("", 0), 0);
    assert_true(s2_is_between_digits("1 2", 3, 1, 2));
    assert_false(s2_is_between_digits("1 a", 3, 1, 2));
    assert_false(s2_is_between_digits("1", 1, 1, 1));
    assert_false(s2_is_between_digits("1", 1, 0, 0));
    assert_true(s2_is_terminator(S2_PART_END_WIDE));
    assert_false(s2_is_terminator(S2_PART_CLAUSE));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_kinds_of_parts),
            cmocka_unit_test(test_length_of_the_first_sentence),
            cmocka_unit_test(test_ends_of_clauses),
            cmocka_unit_test(test_blanks_and_digits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
