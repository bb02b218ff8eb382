#include "engine/text/normalize.h"

#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "test_support.h"

static void check(const char *text, size_t n_bytes, const char *want)
{
    char *got = NULL;
    size_t n = 0;
    sl_error err = {0};
    assert_ok(s2_text_normalize(text, n_bytes, &got, &n, &err), &err);
    assert_string_equal(got, want);
    assert_int_equal(n, strlen(want));
    sl__free(got);
}

static void check_str(const char *text, const char *want)
{
    check(text, strlen(text), want);
}

static void test_G4_10_punctuation_stays(void **state)
{
    (void)state;
    static const char *const texts[] = {"one; two; three", "Digital Human / Meta Human",
            "\xe2\x80\x98x\xe2\x80\x99 \xe2\x80\x99y\xe2\x80\x99", "a,,,b", "Wait...... what?!?!",
            "tab\there", "\xc2\xbfqu\xc3\xa9?", "\xef\xbf\xbd", ""};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        check_str(texts[i], texts[i]);
    }
}

static void test_G4_10_invisible_characters(void **state)
{
    (void)state;
    check_str("\xef\xbb\xbfHi", "Hi"); /* byte order mark at the start */
    check_str("a\xef\xbb\xbf"
              "b",
            "ab");                 /* and inside */
    check_str("\xef\xbb\xbf", ""); /* nothing else */
    check_str("a\xc2\xa0"
              "b\xe2\x80\xaf"
              "c\xe2\x80\x87"
              "d",
            "a b c d");                /* no-break spaces */
    check_str("co\xc2\xadop", "coop"); /* soft hyphen */
    check_str("a\xe2\x80\x8b"
              "b\xe2\x81\xa0"
              "c",
            "abc");                                            /* zero-width space, word joiner */
    check_str("\xe2\x80\x8f\xd8\xa7\xe2\x80\xac", "\xd8\xa7"); /* direction marks */
    /* The joiners stay: a family of emoji, and Persian. */
    check_str("\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x91\xa7",
            "\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x91\xa7");
    check_str("\xd9\x85\xdb\x8c\xe2\x80\x8c\xd8\xae", "\xd9\x85\xdb\x8c\xe2\x80\x8c\xd8\xae");
}

static void test_G4_10_line_ends_and_controls(void **state)
{
    (void)state;
    check_str("a\r\nb\rc\nx\r\r\ny", "a\nb\nc\nx\n\ny");
    check_str("a\vb\fc\xc2\x85"
              "x\xe2\x80\xa8"
              "y\xe2\x80\xa9"
              "z",
            "a\nb\nc\nx\ny\nz");
    check("a\0b\x01\x1b[31m\x7f\xc2\x9b", 12, "ab[31m");
    check("\0\0\0", 3, "");
    check_str("\r", "\n");
    check_str("\r\n", "\n");
}

static void test_G4_14_bytes_that_are_not_UTF_8(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t n;
        size_t offset;
    } rows[] = {
            {"\xc4\xe3\xba\xc3", 4, 0},     /* GBK */
            {"ab\xc4\xe3\xba\xc3", 6, 2},   /* the same inside */
            {"\xe6\xad", 2, 0},             /* cut */
            {"\xe6\xad\x8c\xe6\xad", 5, 3}, /* cut at the end */
            {"\xc0\x80", 2, 0},             /* overlong NUL */
            {"\xed\xa0\x80", 3, 0},         /* surrogate */
            {"\xf4\x90\x80\x80", 4, 0},     /* above U+10FFFF */
            {"\x80", 1, 0},                 /* lone continuation */
            {"x\xff", 2, 1},
            {"\xe0\x80\xaf", 3, 0},
            {"\xf0\x8f\xbf\xbf", 4, 0},
            {"\xc3", 1, 0},
            {"a\xf8\x88\x80\x80\x80", 6, 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char *got = NULL;
        size_t n = 0;
        sl_error err = {0};
        assert_int_equal(s2_text_normalize(rows[i].bytes, rows[i].n, &got, &n, &err), SL_EINVAL);
        assert_int_equal(err.offset, rows[i].offset);
        assert_non_null(strstr(err.msg, "not UTF-8"));
        assert_null(got);
        assert_int_equal(s2_text_check_utf8(rows[i].bytes, rows[i].n, NULL), SL_EINVAL);
    }
}

static void test_the_result_of_any_text_is_stable(void **state)
{
    (void)state;
    char text[8];
    for (uint32_t cp = 1; cp < 0x3100; cp++) {
        text[0] = 'a';
        size_t n = 1 +
                   (size_t)utf8proc_encode_char((utf8proc_int32_t)cp, (utf8proc_uint8_t *)text + 1);
        char *once = NULL;
        char *twice = NULL;
        size_t n_once = 0;
        size_t n_twice = 0;
        sl_error err = {0};
        assert_ok(s2_text_normalize(text, n, &once, &n_once, &err), &err);
        assert_ok(s2_text_normalize(once, n_once, &twice, &n_twice, &err), &err);
        assert_string_equal(once, twice);
        assert_true(n_once >= 1 && n_once <= n && n_once == strlen(once));
        assert_int_equal(sl__utf8_valid_prefix(once, n_once), n_once);
        sl__free(once);
        sl__free(twice);
    }
}

static void test_no_memory(void **state)
{
    (void)state;
    char *got = NULL;
    size_t n = 0;
    sl_error err = {0};
    sl__mem_fail_after(0);
    int r = s2_text_normalize("abc", 3, &got, &n, &err);
    sl__mem_fail_after(-1);
    assert_int_equal(r, SL_ENOMEM);
    assert_null(got);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_G4_10_punctuation_stays),
            cmocka_unit_test(test_G4_10_invisible_characters),
            cmocka_unit_test(test_G4_10_line_ends_and_controls),
            cmocka_unit_test(test_G4_14_bytes_that_are_not_UTF_8),
            cmocka_unit_test(test_the_result_of_any_text_is_stable),
            cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
