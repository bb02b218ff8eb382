#include "engine/text/grapheme.h"

#include <string.h>

#include "test_support.h"

static void test_clusters(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t n;
        uint32_t cp;
    } rows[] = {
            {"ab", 1, 'a'},
            {"e\xcc\x81\xcc\xa3x", 5, 'e'},
            {"\r\nx", 2, '\r'},
            {"\n\r", 1, '\n'},
            {" \xcc\x81", 3, ' '},
            /* woman, joiner, woman, joiner, girl */
            {"\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x91\xa7!", 18,
                    0x1F469},
            /* two flags */
            {"\xf0\x9f\x87\xa9\xf0\x9f\x87\xaa\xf0\x9f\x87\xab\xf0\x9f\x87\xb7", 8, 0x1F1E9},
            /* thumb with a skin tone */
            {"\xf0\x9f\x91\x8d\xf0\x9f\x8f\xbd.", 8, 0x1F44D},
            /* Hangul letters, Devanagari with a vowel sign */
            {"\xe1\x84\x80\xe1\x85\xa1\xe1\x86\xa8", 9, 0x1100},
            {"\xe0\xa4\xa0\xe0\xa5\x80\xe0\xa4\x95", 6, 0x920},
            {"\xff\xff", 1, 0xFFFD},
            {"a\xff", 1, 'a'},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint32_t cp = 0;
        assert_int_equal(s2_grapheme_len(rows[i].text, strlen(rows[i].text), &cp), rows[i].n);
        assert_int_equal(cp, rows[i].cp);
    }
}

static void test_the_end(void **state)
{
    (void)state;
    uint32_t cp = 0;
    assert_int_equal(s2_grapheme_len("abc", 0, &cp), 0);
    assert_int_equal(s2_grapheme_len("e\xcc\x81", 1, &cp), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_clusters),
            cmocka_unit_test(test_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
