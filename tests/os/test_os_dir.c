#include "os/os_dir.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "test_support.h"

static void test_create_makes_what_is_missing(void **state)
{
    char *dir = test_dir_create();
    char path[4096];
    struct stat st;
    sl_error err;
    (void)state;
    assert_int_equal(sl__dir_create(dir, &err), 0);
    assert_int_equal(sl__dir_create(test_path(path, sizeof path, dir, "a//b/c/"), &err), 1);
    assert_int_equal(stat(path, &st), 0);
    assert_true(S_ISDIR(st.st_mode));
    assert_int_equal(st.st_mode & 07777, 0700);
    assert_int_equal(sl__dir_create(path, &err), 0);
    assert_int_equal(sl__dir_create("/", &err), 0);
    test_write_file(test_path(path, sizeof path, dir, "file"), "x", 1);
    assert_int_equal(sl__dir_create(path, &err), SL_EINVAL);
    assert_non_null(strstr(err.msg, path));
    test_dir_remove(dir);
}

static void test_list_has_regular_files_only(void **state)
{
    char *dir = test_dir_create();
    char path[4096];
    char **names = NULL;
    size_t n = 0;
    sl_error err;
    (void)state;
    assert_int_equal(mkdir(test_path(path, sizeof path, dir, "folder"), 0700), 0);
    assert_int_equal(mkfifo(test_path(path, sizeof path, dir, "fifo"), 0600), 0);
    assert_int_equal(symlink("file", test_path(path, sizeof path, dir, "link")), 0);
    test_write_file(test_path(path, sizeof path, dir, "file"), "x", 1);
    assert_ok(sl__dir_list(dir, &names, &n, &err), &err);
    assert_int_equal(n, 1);
    assert_string_equal(names[0], "file");
    sl__dir_names_free(names, n);
    assert_int_equal(sl__dir_list(path, &names, &n, &err), SL_EINVAL);
    test_path(path, sizeof path, dir, "none");
    assert_int_equal(sl__dir_list(path, &names, &n, &err), SL_ENOENT);
    for (long i = 0; i < 2; i++) {
        sl__mem_fail_after(i);
        int r = sl__dir_list(dir, &names, &n, &err);
        sl__mem_fail_after(-1);
        assert_int_equal(r, SL_ENOMEM);
    }
    test_dir_remove(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_create_makes_what_is_missing),
            cmocka_unit_test(test_list_has_regular_files_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
