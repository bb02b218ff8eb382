#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test_support.h"

#include "base/mem.h"
#include "os/os_path.h"

static void test_a_file_is_opened_to_read(void **state)
{
    char path[4200];
    char *dir = test_dir_create();
    int fd = -1;
    char c = 0;
    sl_error err = {0};
    (void)state;
    test_write_file(test_path(path, sizeof path, dir, "file"), "x", 1);
    assert_ok(sl__open_regular(path, &fd, &err), &err);
    assert_int_equal(read(fd, &c, 1), 1);
    assert_int_equal(c, 'x');
    assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    close(fd);
    test_dir_remove(dir);
}

static void test_other_kinds_are_refused(void **state)
{
    char path[4200];
    char *dir = test_dir_create();
    int fd = -7;
    sl_error err = {0};
    (void)state;
    assert_int_equal(sl__open_regular(dir, &fd, &err), SL_EINVAL);
    test_path(path, sizeof path, dir, "fifo");
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(sl__open_regular(path, &fd, &err), SL_EINVAL);
    assert_non_null(strstr(err.msg, "a FIFO"));
    assert_int_equal(sl__open_regular("/dev/null", &fd, &err), SL_EINVAL);
    assert_int_equal(sl__open_regular("", &fd, &err), SL_ENOENT);
    assert_int_equal(fd, -7);
    test_dir_remove(dir);
}

static void test_links(void **state)
{
    char path[4200];
    char link[4200];
    char *dir = test_dir_create();
    char *found = NULL;
    char *expected = NULL;
    sl_error err = {0};
    (void)state;
    test_write_file(test_path(path, sizeof path, dir, "file"), "x", 1);
    assert_int_equal(symlink("file", test_path(link, sizeof link, dir, "link")), 0);
    assert_true(sl__is_symlink(link));
    assert_false(sl__is_symlink(path));
    assert_false(sl__is_symlink(""));
    assert_ok(sl__real_path(link, &found, &err), &err);
    assert_ok(sl__real_path(path, &expected, &err), &err);
    assert_string_equal(found, expected);
    sl__free(found);
    sl__free(expected);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(sl__real_path(link, &found, &err), SL_ENOENT);
    sl__mem_fail_after(0);
    assert_int_equal(sl__real_path(dir, &found, &err), SL_ENOMEM);
    sl__mem_fail_after(-1);
    test_dir_remove(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_a_file_is_opened_to_read),
            cmocka_unit_test(test_other_kinds_are_refused),
            cmocka_unit_test(test_links),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
