/* The splitter by hand against PCRE2 with the pattern as tokenizer.json spells it. */
#define PCRE2_CODE_UNIT_WIDTH 8

#include "engine/text/split.h"

#include <pcre2.h>
#include <stdio.h>
#include <string.h>
#include <utf8proc.h>

#include "random_text.h"
#include "test_support.h"

static pcre2_code *compile(const char *pattern)
{
    int code = 0;
    PCRE2_SIZE at = 0;
    pcre2_code *re = pcre2_compile(
            (PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED, PCRE2_UTF | PCRE2_UCP, &code, &at, NULL);
    assert_non_null(re);
    (void)pcre2_jit_compile(re, PCRE2_JIT_COMPLETE); /* slower without, not wrong */
    return re;
}

/* Which group of the pattern matched: 1 letter, 2 number, 3 blank, 4 not assigned, 0 none of them. */
static int group_of(const pcre2_code *re, pcre2_match_data *match, const char *text, size_t n)
{
    int n_groups = pcre2_match(re, (PCRE2_SPTR)text, n, 0, PCRE2_NO_UTF_CHECK, match, NULL);
    assert_true(n_groups > 0);
    return n_groups - 1;
}

static int class_of(uint32_t cp)
{
    switch (s2_char_class_of(cp)) {
    case S2_CHAR_LETTER:
        return 1;
    case S2_CHAR_NUMBER:
        return 2;
    case S2_CHAR_BLANK:
    case S2_CHAR_LINE:
        return 3;
    case S2_CHAR_OTHER:
        break;
    }
    return 0;
}

static void test_classes_of_every_character(void **state)
{
    (void)state;
    pcre2_code *re = compile("(\\p{L})|(\\p{N})|(\\s)|(\\p{Cn})|(?s:.)");
    pcre2_match_data *match = pcre2_match_data_create_from_pattern(re, NULL);
    uint32_t n_different = 0;
    for (uint32_t cp = 0; cp <= 0x10FFFF; cp++) {
        char text[4];
        if (cp >= 0xD800 && cp <= 0xDFFF) {
            continue;
        }
        size_t n = (size_t)utf8proc_encode_char((utf8proc_int32_t)cp, (utf8proc_uint8_t *)text);
        int group = group_of(re, match, text, n);
        bool is_blank = s2_is_blank(cp);
        /* Not assigned in the Unicode of PCRE2: that of utf8proc may know more. */
        if (group != 4 && group != class_of(cp)) {
            n_different++;
            assert_int_equal(
                    cp, 0x180E); /* PCRE2 counts it as a blank, Unicode does not any more */
        }
        assert_int_equal(is_blank, class_of(cp) == 3);
    }
    assert_int_equal(n_different, 1);
    pcre2_match_data_free(match);
    pcre2_code_free(re);
}

static void compare(const pcre2_code *re, pcre2_match_data *match, const char *text, size_t n_bytes)
{
    size_t at = 0;
    while (at < n_bytes) {
        size_t got = s2_split_piece(text + at, n_bytes - at);
        int r = pcre2_match(re, (PCRE2_SPTR)text, n_bytes, at, PCRE2_NO_UTF_CHECK, match, NULL);
        assert_true(r > 0);
        const PCRE2_SIZE *range = pcre2_get_ovector_pointer(match);
        assert_int_equal(range[0], at);
        if (range[1] - at != got) {
            fail_msg("a piece of %zu bytes, needed %zu, at %zu of \"%.*s\"", got, range[1] - at, at,
                    (int)n_bytes, text);
        }
        at += got;
    }
}

static void test_random_texts_are_split_as_the_pattern_does(void **state)
{
    (void)state;
    static const char *const parts[] = {" ", " ", "  ", "\n", "\r", "\r\n", "\t", "\v", "\xc2\xa0",
            "\xe3\x80\x80", "\xc2\x85", "\xe2\x80\xa8", "'", "'", "s", "S", "\xc5\xbf", "t", "T",
            "r", "e", "E", "v", "m", "M", "l", "L", "d", "D", "a", "Z", "1", "42", "\xd9\xa3",
            "\xc2\xbd", "\xe2\x85\xa8", ".", ",", "!", "-", "_", "\xe2\x80\x99", "\xc3\xa9",
            "\xcc\x81", "\xe4\xbd\xa0", "\xe0\xa4\x95", "\xe0\xa5\x8d", "\xf0\x9f\x91\xa9",
            "\xe2\x80\x8d", "\xf0\x90\x90\x80", "\xf0\x9d\x9f\x98", "\xc2\xad", "\xef\xbb\xbf"};
    pcre2_code *re = compile(s2_split_pattern);
    pcre2_match_data *match = pcre2_match_data_create_from_pattern(re, NULL);
    uint64_t seed = 7;
    char text[256];
    for (int i = 0; i < 100000; i++) {
        size_t n = random_text(&seed, parts, sizeof parts / sizeof parts[0], 23, text, sizeof text);
        compare(re, match, text, n);
    }
    pcre2_match_data_free(match);
    pcre2_code_free(re);
}

static void test_nothing_has_no_piece(void **state)
{
    (void)state;
    assert_int_equal(s2_split_piece("abc", 0), 0);
    assert_int_equal(s2_split_piece("'", 1), 1);
    assert_int_equal(s2_split_piece("'r", 2), 2);
    assert_int_equal(s2_split_piece("'re", 2), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_classes_of_every_character),
            cmocka_unit_test(test_random_texts_are_split_as_the_pattern_does),
            cmocka_unit_test(test_nothing_has_no_piece),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
