#include <errno.h>
#include <string.h>

#include "test_support.h"

#include "base/status.h"
#include "base/utf8.h"

static void test_each_code_has_a_name_and_a_text(void **state)
{
    (void)state;
    for (int code = SL_EINTERNAL; code < 0; code++) {
        assert_string_not_equal(sl_err_name(code), "UNKNOWN");
        assert_string_not_equal(sl_err_text(code), "unknown error");
        assert_true(sl_err_exit_status(code) > 0);
        assert_true(sl_err_http_status(code) >= 400);
    }
    assert_string_equal(sl_err_name(SL_EFORMAT), "EFORMAT");
    assert_string_equal(sl_err_name(SL_EINTERNAL - 1), "UNKNOWN");
    assert_string_equal(sl_err_text(-999), "unknown error");
    assert_int_equal(sl_err_exit_status(0), 0);
    assert_int_equal(sl_err_exit_status(3), 0);
    assert_int_equal(sl_err_exit_status(-999), 1);
    assert_int_equal(sl_err_exit_status(SL_EINVAL), 2);
    assert_int_equal(sl_err_exit_status(SL_ECANCELLED), 130);
    assert_int_equal(sl_err_http_status(0), 200);
    assert_int_equal(sl_err_http_status(-999), 500);
}

static void test_fail_fills_and_returns(void **state)
{
    sl_error err = {.offset = 7, .os_errno = 7};
    (void)state;
    assert_int_equal(sl__fail(&err, SL_EFORMAT, "%s: %d", "file", 5), SL_EFORMAT);
    assert_int_equal(err.code, SL_EFORMAT);
    assert_string_equal(err.msg, "file: 5");
    assert_int_equal(err.offset, 0);
    assert_int_equal(err.os_errno, 0);
    assert_int_equal(sl__fail_at(&err, SL_EIO, 99, "x"), SL_EIO);
    assert_int_equal(err.offset, 99);
    assert_int_equal(sl__fail(NULL, SL_EBUSY, "x"), SL_EBUSY);
    assert_int_equal(sl__fail_at(NULL, SL_EBUSY, 1, "x"), SL_EBUSY);
    assert_int_equal(sl__fail_os(NULL, ENOENT, "x"), SL_ENOENT);
}

static void test_system_errors(void **state)
{
    static const struct {
        int os_errno;
        int code;
    } rows[] = {{ENOENT, SL_ENOENT}, {ENOTDIR, SL_ENOENT}, {EACCES, SL_EACCES}, {EPERM, SL_EACCES},
            {EROFS, SL_EACCES}, {ENOMEM, SL_ENOMEM}, {ENOSPC, SL_ENOSPC}, {EDQUOT, SL_ENOSPC},
            {EEXIST, SL_EEXIST}, {EINVAL, SL_EINVAL}, {ELOOP, SL_EINVAL}, {EMFILE, SL_ELIMIT},
            {EFBIG, SL_ELIMIT}, {EIO, SL_EIO}, {EPIPE, SL_EIO}, {12345, SL_EIO}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        sl_error err = {0};
        assert_int_equal(sl__code_from_errno(rows[i].os_errno), rows[i].code);
        assert_int_equal(sl__fail_os(&err, rows[i].os_errno, "path"), rows[i].code);
        assert_int_equal(err.os_errno, rows[i].os_errno);
        assert_int_equal(strncmp(err.msg, "path: ", 6), 0);
        assert_true(strlen(err.msg) > 6);
    }
}

static void test_long_messages_end_at_a_character(void **state)
{
    char text[2000];
    (void)state;
    for (size_t shift = 0; shift < 4; shift++) {
        sl_error err = {0};
        memset(text, 'a', shift);
        for (size_t i = shift; i + 3 < sizeof text; i += 3) {
            memcpy(text + i, "\xE2\x82\xAC", 3);
            text[i + 3] = '\0';
        }
        sl__fail(&err, SL_EINVAL, "%s", text);
        size_t n = strlen(err.msg);
        assert_true(n < sizeof err.msg && n > sizeof err.msg - 5);
        assert_int_equal(sl__utf8_valid_prefix(err.msg, n), n);
        sl__fail_os(&err, ENOENT, "%s", text);
        n = strlen(err.msg);
        assert_int_equal(sl__utf8_valid_prefix(err.msg, n), n);
    }
}

static void test_out_of_memory_says_how_much(void **state)
{
    sl_error err = {0};
    (void)state;
    assert_int_equal(sl__fail_nomem(&err, 123, "a thing"), SL_ENOMEM);
    assert_non_null(strstr(err.msg, "123 bytes for a thing"));
}

static void test_quote(void **state)
{
    static const struct {
        const char *text;
        size_t n;
        size_t buf;
        const char *quoted;
    } rows[] = {
            {"plain", 5, 40, "plain"},
            {"", 0, 40, ""},
            {"a\0b", 3, 40, "a\\x00b"},
            {"\x1b[2J\n", 5, 40, "\\x1b[2J\\x0a"},
            {"back\\slash", 10, 40, "back\\x5cslash"},
            {"\xC3\xA9t\xC3\xA9", 5, 40, "\xC3\xA9t\xC3\xA9"},
            {"\xFF\xC3", 2, 40, "\\xff\\xc3"},
            {"\xC2\x9B", 2, 40, "\\xc2\\x9b"}, /* a control of C1 */
            {"0123456789", 10, 10, "012345..."},
            {"0123", 4, 1, ""},
            {"0123", 4, 3, ".."},
            {"\x7F", 1, 40, "\\x7f"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char buf[48];
        memset(buf, '#', sizeof buf);
        assert_ptr_equal(sl__quote(buf, rows[i].buf, rows[i].text, rows[i].n), buf);
        assert_string_equal(buf, rows[i].quoted);
        assert_int_equal(buf[rows[i].buf], '#');
    }
    assert_string_equal(sl__quote(NULL, 0, "x", 1), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_each_code_has_a_name_and_a_text),
            cmocka_unit_test(test_fail_fills_and_returns),
            cmocka_unit_test(test_system_errors),
            cmocka_unit_test(test_long_messages_end_at_a_character),
            cmocka_unit_test(test_out_of_memory_says_how_much),
            cmocka_unit_test(test_quote),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
