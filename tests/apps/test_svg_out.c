/* Text of any bytes becomes XML that every reader takes. */
#include "svg_out.h"

#include <string.h>

#include "base/mem.h"
#include "test_support.h"
#include "xml_check.h"

static const char *text_of(svg_out *o, const char *text)
{
    svg_done(o);
    svg_put(o, "%s", "");
    svg_text(o, text);
    return svg_result(o, NULL);
}

static void test_what_markup_means_is_escaped(void **state)
{
    (void)state;
    svg_out o = {0};
    assert_string_equal(text_of(&o, "a<b>&\"c'"), "a&lt;b&gt;&amp;&quot;c&#39;");
    assert_string_equal(text_of(&o, "</text><script>"), "&lt;/text&gt;&lt;script&gt;");
    assert_string_equal(text_of(&o, "100% %s %n"), "100% %s %n");
    svg_done(&o);
}

static void test_what_is_no_text_is_replaced(void **state)
{
    (void)state;
    svg_out o = {0};
    assert_string_equal(text_of(&o, "a\xFF"
                                    "b"),
            "a\xEF\xBF\xBD"
            "b");
    assert_string_equal(text_of(&o, "\x01\x1B[31m"), "\xEF\xBF\xBD\xEF\xBF\xBD[31m");
    assert_string_equal(text_of(&o, "\xE6\xA8"), "\xEF\xBF\xBD\xEF\xBF\xBD");
    assert_string_equal(text_of(&o, "\xEF\xBF\xBF"), "\xEF\xBF\xBD");
    assert_string_equal(text_of(&o, "\xE6\xA8\xA1"), "\xE6\xA8\xA1");
    svg_done(&o);
}

static void test_long_text_is_cut_at_a_character(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t n;
        const char *wanted;
    } cases[] = {
            {"slow", 4, "slow"},
            {"slow", 3, "sl\xE2\x80\xA6"},
            {"slow", 1, "\xE2\x80\xA6"},
            {"slow", 0, ""},
            {"", 3, ""},
            {"\xC3\xA4\xC3\xB6\xC3\xBC", 2, "\xC3\xA4\xE2\x80\xA6"},
            {"<<<<", 2, "&lt;\xE2\x80\xA6"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        svg_out o = {0};
        svg_put(&o, "%s", "");
        svg_text_cut(&o, cases[i].text, cases[i].n);
        assert_string_equal(svg_result(&o, NULL), cases[i].wanted);
        svg_done(&o);
    }
    assert_int_equal(svg_n_chars("\xC3\xA4x\xFF"), 3);
}

static void test_every_byte_gives_a_document(void **state)
{
    (void)state;
    for (int first = 1; first < 256; first++) {
        svg_out o = {0};
        char text[4] = {(char)first, 'x', (char)(first ^ 0x55), 0};
        svg_put(&o, "<t a=\"");
        svg_text(&o, text);
        svg_put(&o, "\">");
        svg_text_cut(&o, text, 2);
        svg_put(&o, "</t>\n");
        const char *fault = xml_find_fault(svg_result(&o, NULL));
        if (fault) {
            fail_msg("byte %d: %s", first, fault);
        }
        svg_done(&o);
    }
}

static void test_without_memory_there_is_no_result(void **state)
{
    (void)state;
    svg_out o = {0};
    assert_null(svg_result(&o, NULL));
    sl__mem_fail_after(0);
    svg_put(&o, "<t>");
    sl__mem_fail_after(-1);
    svg_text(&o, "later");
    assert_null(svg_result(&o, NULL));
    svg_done(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_what_markup_means_is_escaped),
            cmocka_unit_test(test_what_is_no_text_is_replaced),
            cmocka_unit_test(test_long_text_is_cut_at_a_character),
            cmocka_unit_test(test_every_byte_gives_a_document),
            cmocka_unit_test(test_without_memory_there_is_no_result),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
