/* Progress is for terminals; everything else must stay clean. */
#include "tty.h"

#include <string.h>

#include "test_support.h"

static void test_text_is_cut_between_characters(void **state)
{
    (void)state;
    assert_int_equal(tty_fit("abc", 80), 3);
    assert_int_equal(tty_fit("abc", 2), 2);
    assert_int_equal(tty_fit("", 5), 0);
    assert_int_equal(tty_fit("abc", 0), 0);
    assert_int_equal(tty_fit("\xC3\xA9\xC3\xA9\xC3\xA9", 2), 4);
    assert_int_equal(tty_fit("\xff\xff\xff", 2), 2);
}

static void test_nothing_is_written_to_a_file(void **state)
{
    tty_progress p;
    (void)state;
    FILE *f = tmpfile();
    assert_non_null(f);
    tty_progress_init(&p, f, false);
    assert_false(p.is_on);
    tty_progress_show(&p, "frame %d", 1);
    tty_progress_clear(&p);
    assert_int_equal(fflush(f), 0);
    assert_int_equal(ftell(f), 0);
    assert_int_equal(tty_columns(f), 80);
    fclose(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_text_is_cut_between_characters),
            cmocka_unit_test(test_nothing_is_written_to_a_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
