#include "engine/text/speaker_tags.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "test_support.h"

static void test_tags_are_found(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t at;
        size_t len;
    } rows[] = {
            {"<|speaker:0|>", 0, 13},
            {"a <|speaker:12|> b", 2, 14},
            {"<|speaker:|><|speaker:7|>", 12, 13},
            {"<|speaker:1<|speaker:2|>", 11, 13},
            {"<|speaker:\xd9\xa3|>", 0, 14}, /* U+0663, a decimal digit */
            {"<|speaker:1|", 0, 0},
            {"<|speaker:x|>", 0, 0},
            {"<|speaker:-1|>", 0, 0},
            {"<|speaker:1 |>", 0, 0},
            {"<|Speaker:1|>", 0, 0},
            {"< |speaker:1|>", 0, 0},
            {"<|speaker:\xff|>", 0, 0},
            {"", 0, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        size_t at = 0;
        assert_int_equal(s2_find_speaker_tag(rows[i].text, strlen(rows[i].text), &at), rows[i].len);
        assert_int_equal(at, rows[i].at);
    }
}

/* Joins the batches with '~' and compares. */
static void check(const char *text, size_t max_bytes, const char *want)
{
    char **batches = NULL;
    size_t n = 0;
    sl_error err = {0};
    char got[1024] = "";
    size_t used = 0;
    assert_ok(s2_text_batches(text, strlen(text), max_bytes, &batches, &n, &err), &err);
    for (size_t i = 0; i < n; i++) {
        used += (size_t)snprintf(
                got + used, sizeof got - used, "%s%s", i > 0 ? "~" : "", batches[i]);
    }
    assert_string_equal(got, want);
    s2_batches_free(batches, n);
}

#define T0 "<|speaker:0|>"
#define T1 "<|speaker:1|>"

static void test_turns_are_grouped_as_the_original_does(void **state)
{
    (void)state;
    check("", 10, "");
    check(" plain text, as it is \n", 3, " plain text, as it is \n");
    check("dropped " T0 "Hello, world! " T1 "  Yes.\n", 512, T0 "Hello, world!\n" T1 "  Yes.");
    check(T0 "aaaa" T1 "bbbb", 33, T0 "aaaa~" T1 "bbbb");
    /* 17 + 17 bytes; the line end between them does not count */
    check(T0 "aaaa" T1 "bbbb", 34, T0 "aaaa\n" T1 "bbbb");
    check(T0 "aaaa" T1 "bbbb", 1, T0 "aaaa~" T1 "bbbb");
    check(T0 "aaaa" T1 "bbbb", 0, T0 "aaaa\n" T1 "bbbb");
    check(T0 "1" T0 "2" T0 "3" T0 "4" T0 "5" T0 "6", 0,
            T0 "1\n" T0 "2\n" T0 "3\n" T0 "4\n" T0 "5~" T0 "6");
    check(T0 " \t\xc2\xa0" T1, 0, T0 "\n" T1);
}

static void test_a_NUL_is_refused(void **state)
{
    (void)state;
    char **batches = NULL;
    size_t n = 0;
    sl_error err = {0};
    assert_int_equal(s2_text_batches("ab\0c", 4, 10, &batches, &n, &err), SL_EINVAL);
    assert_int_equal(err.offset, 2);
}

static void test_every_failing_allocation_is_an_error(void **state)
{
    (void)state;
    static const char text[] = T0 "a" T0 "b" T1 "c" T1 "d" T0 "e" T1 "f" T0 "g";
    int r = SL_ENOMEM;
    long n_tries = 0;
    for (; r == SL_ENOMEM && n_tries < 100; n_tries++) {
        char **batches = NULL;
        size_t n = 0;
        sl_error err = {0};
        sl__mem_fail_after(n_tries);
        r = s2_text_batches(text, sizeof text - 1, 20, &batches, &n, &err);
        sl__mem_fail_after(-1);
        s2_batches_free(batches, n);
    }
    assert_int_equal(r, 0);
    assert_in_range(n_tries, 5, 99);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_tags_are_found),
            cmocka_unit_test(test_turns_are_grouped_as_the_original_does),
            cmocka_unit_test(test_a_NUL_is_refused),
            cmocka_unit_test(test_every_failing_allocation_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
