#include "engine/text/segment.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "engine/text/grapheme.h"
#include "engine/text/sentence.h"
#include "random_text.h"
#include "test_support.h"

/* True if text + at is a border between graphemes. */
static bool is_grapheme_border(const char *text, size_t n_bytes, size_t at)
{
    size_t i = 0;
    uint32_t cp = 0;
    while (i < at) {
        i += s2_grapheme_len(text + i, n_bytes - i, &cp);
    }
    return i == at;
}

/* Everything that is promised of any text: only blanks between the pieces, none at their ends, no piece too
 * long, no grapheme cut. */
static void check_promises(
        const char *text, size_t n_bytes, size_t max_bytes, const s2_segments *segments)
{
    size_t at = 0;
    for (size_t i = 0; i < segments->n; i++) {
        sl_span piece = segments->items[i];
        size_t begin = (size_t)(piece.p - text);
        uint32_t cp = 0;
        assert_true(begin >= at && piece.n > 0 && begin + piece.n <= n_bytes);
        assert_int_equal(at + s2_skip_blanks(text + at, n_bytes - at), begin);
        assert_int_equal(s2_skip_blanks(piece.p, piece.n), 0);
        if (max_bytes > 0 && piece.n > max_bytes) {
            assert_int_equal(s2_grapheme_len(piece.p, piece.n, &cp), piece.n);
        }
        at = begin + piece.n;
        assert_true(n_bytes > 4096 || is_grapheme_border(text, n_bytes, begin));
        assert_true(n_bytes > 4096 || is_grapheme_border(text, n_bytes, at));
    }
    assert_int_equal(at + s2_skip_blanks(text + at, n_bytes - at), n_bytes);
}

static s2_segments segment(const char *text, size_t n_bytes, size_t min_bytes, size_t max_bytes)
{
    s2_segments segments = {0};
    sl_error err = {0};
    assert_ok(s2_text_segment(text, n_bytes, min_bytes, max_bytes, &segments, &err), &err);
    check_promises(text, n_bytes, max_bytes, &segments);
    return segments;
}

/* Compares the pieces, joined by a bar. */
static void check_sized(const char *text, size_t min_bytes, size_t max_bytes, const char *want)
{
    char got[2048] = "";
    size_t n = 0;
    s2_segments segments = segment(text, strlen(text), min_bytes, max_bytes);
    for (size_t i = 0; i < segments.n; i++) {
        n += (size_t)snprintf(got + n, sizeof got - n, "%s%.*s", i > 0 ? "|" : "",
                (int)segments.items[i].n, segments.items[i].p);
    }
    assert_string_equal(got, want);
    s2_segments_done(&segments);
}

static void check(const char *text, const char *want)
{
    check_sized(text, 0, 0, want);
}

static void test_G4_07_numbers_versions_domains(void **state)
{
    (void)state;
    check("Pi is 3.14. OK?", "Pi is 3.14.|OK?");
    check("Dr. Smith lives at example.com, v2.0.1.", "Dr. Smith lives at example.com, v2.0.1.");
    check("It costs $1,234.56! Really?", "It costs $1,234.56!|Really?");
    check("See https://a.b/c?d=1!e.f. Then go.", "See https://a.b/c?d=1!e.f.|Then go.");
    check("Mail me@x.org. Thanks.", "Mail me@x.org.|Thanks.");
    check("At 10.30 on 24.12.2024 it began. Yes.", "At 10.30 on 24.12.2024 it began.|Yes.");
    check("Use .NET or node.js. Both work.", "Use .NET or node.js.|Both work.");
    check("\xef\xbc\x93\xef\xbc\x8e\xef\xbc\x91\xef\xbc\x94\xe3\x80\x82"
          "A",
            "\xef\xbc\x93\xef\xbc\x8e\xef\xbc\x91\xef\xbc\x94\xe3\x80\x82|A");
}

static void test_G4_07_abbreviations(void **state)
{
    (void)state;
    check("Mr. A. B. Jones met Mrs. Lee. They spoke.", "Mr. A. B. Jones met Mrs. Lee.|They spoke.");
    check("Fruit, e.g. Apples, i.e. Food.", "Fruit, e.g. Apples, i.e. Food.");
    check("The U.S. Senate met. It voted.", "The U.S. Senate met.|It voted.");
    check("No. 5 is alive. No. I won't.", "No. 5 is alive.|No.|I won't.");
    check("See Fig. 3 on p. 12. Good.", "See Fig. 3 on p. 12.|Good.");
    check("apples, pears etc. are fruit. Yes.", "apples, pears etc. are fruit.|Yes.");
    check("1. First do this. 2. Then that.", "1. First do this.|2. Then that.");
    check("It was 1999. Then 2000 came.", "It was 1999.|Then 2000 came.");
    check("Am 3. Mai z.B. Regen. Gut.", "Am 3.|Mai z.B. Regen.|Gut.");
    check("This is it. i think so. Yes.", "This is it. i think so.|Yes.");
}

static void test_G4_07_ellipsis_and_quotes(void **state)
{
    (void)state;
    check("\xe2\x80\xa6", "\xe2\x80\xa6");
    check("...", "...");
    check("Well\xe2\x80\xa6 maybe. Or\xe2\x80\xa6not.",
            "Well\xe2\x80\xa6 maybe.|Or\xe2\x80\xa6not.");
    check("Wait... What?!?! No!", "Wait...|What?!?!|No!");
    check("Wait...... what?!?!", "Wait...... what?!?!");
    check("\"Stop!\" he said.", "\"Stop!\" he said.");
    check("\"Stop!\" He ran.", "\"Stop!\"|He ran.");
    check("\xe2\x80\x9cStop.\xe2\x80\x9d \xe2\x80\x98Go.\xe2\x80\x99 End",
            "\xe2\x80\x9cStop.\xe2\x80\x9d|\xe2\x80\x98Go.\xe2\x80\x99|End");
    check("(He left.) [She stayed.] So.", "(He left.)|[She stayed.] So.");
    check("\xe2\x80\x9eHalt!\xe2\x80\x9c Er ging.", "\xe2\x80\x9eHalt!\xe2\x80\x9c|Er ging.");
    check("Hi. ...", "Hi. ...");
    check("\xc2\xbfQu\xc3\xa9? \xc2\xa1No!", "\xc2\xbfQu\xc3\xa9?|\xc2\xa1No!");
}

static void test_G4_07_other_scripts(void **state)
{
    (void)state;
    check("\xe4\xbb\x8a\xe5\xa4\xa9\xe5\xbe\x88\xe5\xa5\xbd\xe3\x80\x82\xe6\x98\x8e\xe5\xa4\xa9\xe5"
          "\x91\xa2\xef\xbc\x9f",
            "\xe4\xbb\x8a\xe5\xa4\xa9\xe5\xbe\x88\xe5\xa5\xbd\xe3\x80\x82|\xe6\x98\x8e\xe5\xa4\xa9"
            "\xe5\x91\xa2\xef\xbc\x9f");
    /* two letters, ?, danda, two letters */
    check("\xe0\xa4\x95\xe0\xa5\x8d\xe0\xa4\xaf\xe0\xa4\xbe?\xe0\xa5\xa4 "
          "\xe0\xa4\xa0\xe0\xa5\x80\xe0"
          "\xa4\x95",
            "\xe0\xa4\x95\xe0\xa5\x8d\xe0\xa4\xaf\xe0\xa4\xbe?\xe0\xa5\xa4|\xe0\xa4\xa0\xe0\xa5\x80"
            "\xe0\xa4\x95");
    /* Arabic question mark, with and without a blank; Urdu full stop */
    check("\xd9\x83\xd9\x8a\xd9\x81\xd8\x9f \xd8\xa7", "\xd9\x83\xd9\x8a\xd9\x81\xd8\x9f|\xd8\xa7");
    check("\xd9\x83\xd9\x8a\xd9\x81\xd8\x9f\xd8\xa7", "\xd9\x83\xd9\x8a\xd9\x81\xd8\x9f|\xd8\xa7");
    check("\xd8\xa7\xdb\x94 \xd8\xa8\xdb\x94", "\xd8\xa7\xdb\x94|\xd8\xa8\xdb\x94");
    /* a closing quote stays with its sentence, an opening one goes with the next */
    check("\xe3\x80\x8c\xe5\xa5\xbd\xe3\x80\x82\xe3\x80\x8d\xe3\x80\x8c\xe5\xa5\xbd\xe3\x80\x82\xe3"
          "\x80\x8d",
            "\xe3\x80\x8c\xe5\xa5\xbd\xe3\x80\x82\xe3\x80\x8d|\xe3\x80\x8c\xe5\xa5\xbd\xe3\x80\x82"
            "\xe3\x80\x8d");
    check("\xe5\xa5\xbd\xe3\x80\x82\"\xe5\xa5\xbd\xe3\x80\x82\"\xe5\xa5\xbd\xe3\x80\x82\"\xe5\xa5"
          "\xbd\"",
            "\xe5\xa5\xbd\xe3\x80\x82|\"\xe5\xa5\xbd\xe3\x80\x82\"\xe5\xa5\xbd\xe3\x80\x82|\"\xe5"
            "\xa5\xbd\"");
    check("\"\xe5\xa5\xbd\xe3\x80\x82\"\"\xe5\xa5\xbd\xe3\x80\x82\"",
            "\"\xe5\xa5\xbd\xe3\x80\x82\"|\"\xe5\xa5\xbd\xe3\x80\x82\"");
}

static void test_G4_07_tags(void **state)
{
    (void)state;
    check("[laugh] Hi. [sad] No.", "[laugh] Hi.|[sad] No.");
    check("Hi.[sad] No.", "Hi.|[sad] No.");
    check("[loud! very. loud?] Hi.", "[loud! very. loud?] Hi.");
    check("[sad]\nNo. Yes.", "[sad]\nNo.|Yes.");
    check("Hi. [laugh]", "Hi. [laugh]");
    check("[laugh]", "[laugh]");
    check("Really? [a] [b] Yes.", "Really?|[a] [b] Yes.");
    check("A [not closed. B", "A [not closed.|B");
    check("Hello [short pause], you. There.", "Hello [short pause], you.|There.");
    check_sized("one two [soft voice] three", 0, 14, "one two|[soft voice]|three");
    check_sized("one [soft voice] three", 0, 7, "one|[soft|voice]|three");
    check_sized("aaaa[soft]", 0, 7, "aaaa|[soft]");
}

static void test_lines(void **state)
{
    (void)state;
    check("", "");
    check(" \n\t ", "");
    check("one\ntwo\r\nthree\n", "one|two|three");
    check("  one \n\n two  ", "one|two");
    check("one\xe2\x80\xa9two", "one|two");
    check("no stop at the end", "no stop at the end");
    check("A! \n B", "A!|B");
}

static void test_G4_07_long_sentences(void **state)
{
    (void)state;
    check_sized("aa bb, cc dd ee", 0, 12, "aa bb,|cc dd ee");
    check_sized("aa bb cc dd", 0, 8, "aa bb cc|dd");
    check_sized("aa bb cc dd", 0, 7, "aa bb|cc dd");
    check_sized("aa bb cc dd", 0, 1, "a|a|b|b|c|c|d|d");
    check_sized("it costs 1,000,000 and more", 0, 20, "it costs 1,000,000|and more");
    check_sized("it costs 1 000 000 and more", 0, 12, "it costs|1 000 000|and more");
    check_sized("7 7 7 7 7 7 7", 0, 6, "7 7 7|7 7 7|7");
    check_sized("we met Dr. Smith, and then all went home", 0, 24,
            "we met Dr. Smith,|and then all went home");
    check_sized("x. y z w", 0, 4, "x.|y z|w");
    check_sized("\xe5\xa5\xbd\xe5\xa5\xbd\xef\xbc\x8c\xe5\xa5\xbd\xe5\xa5\xbd", 0, 12,
            "\xe5\xa5\xbd\xe5\xa5\xbd\xef\xbc\x8c|\xe5\xa5\xbd\xe5\xa5\xbd");
    /* not inside 3.14, although nothing else is there to cut at */
    check_sized("\xe5\xa5\xbd\xe5\xa5\xbd"
                "3.14\xe5\xa5\xbd",
            0, 8, "\xe5\xa5\xbd\xe5\xa5\xbd|3.14\xe5\xa5\xbd");
}

static void test_G4_07_texts_without_a_border(void **state)
{
    (void)state;
    char text[5001];
    assert_int_equal(repeat_text(text, 4000, "\xc3\xa9"), 4000);
    s2_segments segments = segment(text, 4000, 0, 101);
    assert_int_equal(segments.n, 40);
    assert_int_equal(segments.items[0].n, 100);
    s2_segments_done(&segments);
    memset(text, 'a', 5000);
    segments = segment(text, 5000, 0, 400);
    assert_int_equal(segments.n, 13);
    assert_int_equal(segments.items[12].n, 200);
    s2_segments_done(&segments);
    segments = segment(text, 5000, 0, 0);
    assert_int_equal(segments.n, 1);
    s2_segments_done(&segments);
}

#define WOMAN  "\xf0\x9f\x91\xa9"
#define GIRL   "\xf0\x9f\x91\xa7"
#define JOINER "\xe2\x80\x8d"
#define FAMILY WOMAN JOINER WOMAN JOINER GIRL

static void test_G4_07_graphemes_stay_whole(void **state)
{
    (void)state;
    check_sized(FAMILY FAMILY, 0, 20, FAMILY "|" FAMILY);
    check_sized(FAMILY FAMILY, 0, 1, FAMILY "|" FAMILY);
    check_sized("ab" FAMILY "c", 0, 3, "ab|" FAMILY "|c");
    check_sized("e\xcc\x81\xcc\xa3"
                "e\xcc\x81",
            0, 4, "e\xcc\x81\xcc\xa3|e\xcc\x81");
    /* a blank that carries a mark is none */
    check_sized("a \xcc\x81 b", 0, 0, "a \xcc\x81 b");
    check_sized("\xf0\x9f\x87\xa9\xf0\x9f\x87\xaa\xf0\x9f\x87\xab\xf0\x9f\x87\xb7", 0, 9,
            "\xf0\x9f\x87\xa9\xf0\x9f\x87\xaa|\xf0\x9f\x87\xab\xf0\x9f\x87\xb7");
}

static void test_short_sentences_are_joined(void **state)
{
    (void)state;
    check_sized("A. B! C? D.", 5, 0, "A. B!|C? D.");
    check_sized("Ab. B! C? D.", 100, 0, "Ab. B! C? D.");
    check_sized("Ab. B! C? D.", 100, 7, "Ab. B!|C? D.");
    check_sized("A long sentence. B! C?", 6, 0, "A long sentence.|B! C?");
}

static void test_G4_06_nothing_is_dropped(void **state)
{
    (void)state;
    static const size_t sizes[] = {300, 800, 3000, 20000};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        char *text = malloc(sizes[i] + 64);
        size_t n = 0;
        size_t n_sentences = 0;
        assert_non_null(text);
        while (n < sizes[i]) {
            n += (size_t)snprintf(text + n, 64, "%sThis is sentence number %zu.",
                    n_sentences > 0 ? " " : "", n_sentences);
            n_sentences++;
        }
        s2_segments segments = segment(text, n, 0, 200);
        assert_int_equal(segments.n, n_sentences);
        s2_segments_done(&segments);
        segments = segment(text, n, 150, 200);
        assert_in_range(segments.n, n / 200, n / 100 + 1);
        s2_segments_done(&segments);
        free(text);
    }
}

static void test_bytes_that_are_not_UTF_8(void **state)
{
    (void)state;
    s2_segments segments = {0};
    sl_error err = {0};
    assert_int_equal(s2_text_segment("ab. \xe6\xad", 6, 0, 0, &segments, &err), SL_EINVAL);
    assert_int_equal(err.offset, 4);
    assert_int_equal(segments.n, 0);
    s2_segments_done(&segments);
}

static void test_every_failing_allocation_is_an_error(void **state)
{
    (void)state;
    char text[400];
    assert_int_equal(repeat_text(text, sizeof text, "Ab. "), sizeof text);
    int r = SL_ENOMEM;
    long n = 0;
    for (; r == SL_ENOMEM && n < 100; n++) {
        s2_segments segments = {0};
        sl_error err = {0};
        sl__mem_fail_after(n);
        r = s2_text_segment(text, sizeof text, 0, 10, &segments, &err);
        sl__mem_fail_after(-1);
        assert_int_equal(segments.n, r == 0 ? 100 : 0);
        s2_segments_done(&segments);
    }
    assert_int_equal(r, 0);
    assert_in_range(n, 2, 99);
}

/* Pieces of text that rules look at, put together at random. */
static size_t risky_text(uint64_t *state, char *text, size_t cap)
{
    static const char *const parts[] = {" ", " ", " ", "\n", "\r\n", "\t", ".", ".", "!", "?",
            "...", "\xe2\x80\xa6", ",", ";", ":", "\"", "'", "(", ")", "[", "]", "[laugh]",
            "[sad voice]", "a", "b", "Word", "Dr", "e.g.", "3.14", "1,000", "x.org", "No",
            "\xc3\xa9", "e\xcc\x81", "\xcc\x81", FAMILY, JOINER, "\xf0\x9f\x87\xa9", "\xe3\x80\x82",
            "\xef\xbc\x9f", "\xef\xbc\x8c", "\xe4\xbd\xa0", "\xe3\x80\x8c", "\xe3\x80\x8d",
            "\xe0\xa5\xa4", "\xe0\xa4\x95", "\xd8\x9f", "\xd8\xa7", "\xe2\x80\x9c", "\xe2\x80\x9d",
            "\xc2\xa0", "\xe3\x80\x80", "\xe1\x84\x80\xe1\x85\xa1", "\xef\xbc\x93", "\xef\xbc\x8e",
            "<|voice|>"};
    return random_text(state, parts, sizeof parts / sizeof parts[0], 60, text, cap);
}

static void test_promises_hold_for_random_texts(void **state)
{
    (void)state;
    static const size_t maxima[] = {0, 1, 2, 3, 5, 8, 13, 21, 40, 100};
    uint64_t seed = 20240601;
    char text[2048];
    for (int i = 0; i < 20000; i++) {
        size_t n = risky_text(&seed, text, sizeof text);
        size_t max_bytes = maxima[random_next(&seed) % 10];
        size_t min_bytes = random_next(&seed) % 30;
        s2_segments segments = segment(text, n, min_bytes, max_bytes);
        s2_segments_done(&segments);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_G4_07_numbers_versions_domains),
            cmocka_unit_test(test_G4_07_abbreviations),
            cmocka_unit_test(test_G4_07_ellipsis_and_quotes),
            cmocka_unit_test(test_G4_07_other_scripts),
            cmocka_unit_test(test_G4_07_tags),
            cmocka_unit_test(test_lines),
            cmocka_unit_test(test_G4_07_long_sentences),
            cmocka_unit_test(test_G4_07_texts_without_a_border),
            cmocka_unit_test(test_G4_07_graphemes_stay_whole),
            cmocka_unit_test(test_short_sentences_are_joined),
            cmocka_unit_test(test_G4_06_nothing_is_dropped),
            cmocka_unit_test(test_bytes_that_are_not_UTF_8),
            cmocka_unit_test(test_every_failing_allocation_is_an_error),
            cmocka_unit_test(test_promises_hold_for_random_texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
