#include <stdbool.h>
#include <string.h>

#include "test_support.h"

#include "base/utf8.h"

/* Writes a code point as UTF-8 would if it were one; returns its bytes. */
static size_t encode(uint32_t cp, char *out)
{
    if (cp < 0x80) {
        out[0] = (char)cp;
        return 1;
    }
    if (cp < 0x800) {
        out[0] = (char)(0xC0 | cp >> 6);
        out[1] = (char)(0x80 | (cp & 0x3F));
        return 2;
    }
    if (cp < 0x10000) {
        out[0] = (char)(0xE0 | cp >> 12);
        out[1] = (char)(0x80 | (cp >> 6 & 0x3F));
        out[2] = (char)(0x80 | (cp & 0x3F));
        return 3;
    }
    out[0] = (char)(0xF0 | cp >> 18);
    out[1] = (char)(0x80 | (cp >> 12 & 0x3F));
    out[2] = (char)(0x80 | (cp >> 6 & 0x3F));
    out[3] = (char)(0x80 | (cp & 0x3F));
    return 4;
}

static void test_every_code_point(void **state)
{
    (void)state;
    for (uint32_t cp = 0; cp < 0x120000; cp++) {
        char text[4];
        uint32_t found = UINT32_MAX;
        size_t n = encode(cp, text);
        bool is_valid = cp <= 0x10FFFF && (cp < 0xD800 || cp > 0xDFFF);
        size_t got = sl__utf8_decode(text, n, &found);
        if (got != (is_valid ? n : 0) || found != (is_valid ? cp : UINT32_MAX)) {
            fail_msg("U+%04X decodes to %zu bytes", cp, got);
        }
        if (is_valid && (sl__utf8_char_len(text, n) != n || sl__utf8_char_len(text, n - 1) != 0)) {
            fail_msg("U+%04X has a wrong length", cp);
        }
    }
}

static void test_malformed_sequences(void **state)
{
    static const char *const bad[] = {"\x80", "\xBF", "\xC0\x80", "\xC1\xBF", "\xE0\x80\x80",
            "\xE0\x9F\xBF", "\xF0\x80\x80\x80", "\xF0\x8F\xBF\xBF", "\xF5\x80\x80\x80", "\xFE",
            "\xFF", "\xC3(", "\xE2\x82(", "\xE2(\xA1", "\xF0\x90\x80(", "\xF8\x88\x80\x80\x80"};
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        uint32_t cp = 7;
        assert_int_equal(sl__utf8_decode(bad[i], strlen(bad[i]), &cp), 0);
        assert_int_equal(cp, 7);
        assert_int_equal(sl__utf8_valid_prefix(bad[i], strlen(bad[i])), 0);
    }
    assert_int_equal(sl__utf8_char_len("", 0), 0);
}

static void test_valid_prefix(void **state)
{
    (void)state;
    assert_int_equal(sl__utf8_valid_prefix("", 0), 0);
    assert_int_equal(sl__utf8_valid_prefix("abc", 3), 3);
    assert_int_equal(sl__utf8_valid_prefix("a\0c", 3), 3);
    assert_int_equal(sl__utf8_valid_prefix("ab\xFFz", 4), 2);
    assert_int_equal(sl__utf8_valid_prefix("ab\xE2\x82", 4), 2);
    assert_int_equal(sl__utf8_valid_prefix("ab\xE2\x82\xAC", 5), 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_every_code_point),
            cmocka_unit_test(test_malformed_sequences),
            cmocka_unit_test(test_valid_prefix),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
