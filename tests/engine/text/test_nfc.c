#include "engine/text/nfc.h"

#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "base/mem.h"
#include "random_text.h"
#include "test_support.h"

static void check(const char *text, const char *want)
{
    char *got = NULL;
    size_t n = 0;
    sl_error err = {0};
    assert_ok(s2_nfc(text, strlen(text), &got, &n, &err), &err);
    assert_int_equal(n, strlen(want));
    assert_string_equal(got, want);
    sl__free(got);
}

static void test_composition(void **state)
{
    (void)state;
    check("cafe\xcc\x81", "caf\xc3\xa9");
    check("a\xcc\x81\xcc\xa3", "\xe1\xba\xa1\xcc\x81"); /* the dot below comes first */
    check("\xe2\x84\xab", "\xc3\x85");                  /* the sign of the unit is the letter */
    check("\xe1\x84\x80\xe1\x85\xa1\xe1\x86\xa8", "\xea\xb0\x81"); /* Hangul */
    check("\xe0\xa5\x98", "\xe0\xa4\x95\xe0\xa4\xbc");             /* excluded from composition */
    check("\xef\xac\x81", "\xef\xac\x81"); /* a ligature is no canonical one */
    check("\xcd\xbe", ";");
    check("", "");
    check("\xcc\x81", "\xcc\x81");
}

static void test_the_quick_look_says_yes_only_for_what_stays(void **state)
{
    (void)state;
    assert_true(s2_nfc_is_plain("plain \xc3\xa9 \xcb\xbf", 11));
    assert_false(s2_nfc_is_plain("e\xcc\x81", 3));
    for (uint32_t cp = 1; cp < 0x300; cp++) {
        utf8proc_uint8_t text[3] = {0};
        size_t n = 0;
        char *got = NULL;
        sl_error err = {0};
        (void)utf8proc_encode_char((utf8proc_int32_t)cp, text);
        size_t n_bytes = strlen((const char *)text);
        assert_true(s2_nfc_is_plain((const char *)text, n_bytes));
        assert_ok(s2_nfc((const char *)text, n_bytes, &got, &n, &err), &err);
        assert_string_equal(got, (const char *)text);
        sl__free(got);
    }
}

/* utf8proc's own normalisation orders marks another way, which is fine for short texts. */
static void test_random_texts_equal_those_of_utf8proc(void **state)
{
    (void)state;
    static const utf8proc_int32_t bases[] = {'a', 'o', 0xE9, 0x1EA1, 0x41B, 0x915, 0x1100, 0x1161,
            0x11A8, 0xAC00, 0x4F60, 0x212B, 0x1F469, 0x200D, 0x1D15F, 0x958, 0x2126, 0x9C7};
    static const utf8proc_int32_t combining[] = {0x300, 0x301, 0x323, 0x327, 0x345, 0x591, 0x5B0,
            0x93C, 0x94D, 0x9BE, 0x302A, 0x1D165, 0x34F, 0x3099, 0xE0100};
    uint64_t seed = 11;
    for (int i = 0; i < 20000; i++) {
        char text[256];
        char *got = NULL;
        size_t n_got = 0;
        size_t n = 0;
        sl_error err = {0};
        size_t n_chars = random_next(&seed) % 20;
        for (size_t k = 0; k < n_chars; k++) {
            bool is_base = random_next(&seed) % 3 == 0;
            utf8proc_int32_t cp =
                    is_base ? bases[random_next(&seed) % 18] : combining[random_next(&seed) % 15];
            n += (size_t)utf8proc_encode_char(cp, (utf8proc_uint8_t *)text + n);
        }
        utf8proc_uint8_t *want = NULL;
        utf8proc_ssize_t n_want = utf8proc_map((const utf8proc_uint8_t *)text, (utf8proc_ssize_t)n,
                &want, UTF8PROC_COMPOSE | UTF8PROC_STABLE);
        assert_true(n_want >= 0);
        assert_ok(s2_nfc(text, n, &got, &n_got, &err), &err);
        assert_int_equal(n_got, n_want);
        assert_memory_equal(got, want, n_got);
        sl__free(got);
        free(want);
    }
}

/* Sorting marks one by one would take hours here. */
static void test_a_megabyte_of_marks_in_the_wrong_order(void **state)
{
    (void)state;
    size_t n = (size_t)1 << 20;
    char *text = malloc(n);
    char *got = NULL;
    size_t n_got = 0;
    sl_error err = {0};
    assert_non_null(text);
    (void)repeat_text(text, n / 2, "\xcc\x81");
    (void)repeat_text(text + n / 2, n / 2, "\xcc\xa3");
    assert_ok(s2_nfc(text, n, &got, &n_got, &err), &err);
    assert_int_equal(n_got, n);
    assert_memory_equal(got, "\xcc\xa3", 2);
    assert_memory_equal(got + n - 2, "\xcc\x81", 2);
    sl__free(got);
    free(text);
}

static void test_every_failing_allocation_is_an_error(void **state)
{
    (void)state;
    for (long n = 0; n < 3; n++) {
        char *got = NULL;
        size_t n_got = 0;
        sl_error err = {0};
        sl__mem_fail_after(n);
        int r = s2_nfc("e\xcc\x81", 3, &got, &n_got, &err);
        sl__mem_fail_after(-1);
        assert_int_equal(r, SL_ENOMEM);
        assert_null(got);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_composition),
            cmocka_unit_test(test_the_quick_look_says_yes_only_for_what_stays),
            cmocka_unit_test(test_random_texts_equal_those_of_utf8proc),
            cmocka_unit_test(test_a_megabyte_of_marks_in_the_wrong_order),
            cmocka_unit_test(test_every_failing_allocation_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
