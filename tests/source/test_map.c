#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "process_state.h"
#include "test_support.h"

#include "base/mem.h"
#include "os/os_process.h"

#include "sluice/map.h"

typedef struct fixture {
    char *dir;
    char path[4200];
    size_t page;
    unsigned char *content; /* 8 pages and 100 bytes */
    size_t n;
    sl_map *map;
} fixture;

/* Our handler of SIGBUS. cmocka puts its own over it at the start of each test. */
static struct sigaction guard_action;

static int set_up(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    f->page = sl__page_bytes();
    f->n = 8 * f->page + 100;
    f->content = malloc(f->n);
    for (size_t i = 0; i < f->n; i++) {
        f->content[i] = (unsigned char)(i % 251 + 1);
    }
    f->dir = test_dir_create();
    test_path(f->path, sizeof f->path, f->dir, "file");
    test_write_file(f->path, f->content, f->n);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    fixture *f = *state;
    sl_map_close(&f->map);
    test_dir_remove(f->dir);
    free(f->content);
    free(f);
    return 0;
}

static void open_map(fixture *f)
{
    sl_error err = {0};
    assert_int_equal(sigaction(SIGBUS, &guard_action, NULL), 0);
    assert_ok(sl_map_open(f->path, &f->map, &err), &err);
}

static void test_a_map_holds_the_bytes_of_the_file(void **state)
{
    fixture *f = *state;
    sl_error err = {0};
    struct stat st;
    open_map(f);
    assert_int_equal(sl_map_size(f->map), f->n);
    assert_memory_equal(sl_map_data(f->map), f->content, f->n);
    assert_string_equal(sl_map_path(f->map), f->path);
    assert_int_equal((uintptr_t)sl_map_data(f->map) % f->page, 0);
    assert_int_equal(stat(f->path, &st), 0);
    sl_file_id id = sl_map_id(f->map);
    assert_int_equal(id.size_bytes, f->n);
    assert_int_equal(id.inode, st.st_ino);
    assert_int_equal(id.device, st.st_dev);
    assert_int_equal(id.mtime_ns, (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec);
    assert_ok(sl_map_check(f->map, &err), &err);
}

static void test_closing_leaves_nothing(void **state)
{
    fixture *f = *state;
    size_t n_fds = process_n_fds();
    open_map(f);
    assert_true(process_maps(f->dir));
    sl_map_close(&f->map);
    assert_null(f->map);
    assert_int_equal(process_n_fds(), n_fds);
    assert_false(process_maps(f->dir));
    sl_map_close(&f->map);
    sl_map_close(NULL);
}

static void test_pread(void **state)
{
    fixture *f = *state;
    unsigned char *buf = malloc(f->n);
    sl_error err = {0};
    open_map(f);
    assert_ok(sl_map_pread(f->map, buf, 0, f->n, &err), &err);
    assert_memory_equal(buf, f->content, f->n);
    assert_ok(sl_map_pread(f->map, buf, 5, 100, &err), &err);
    assert_memory_equal(buf, f->content + 5, 100);
    assert_ok(sl_map_pread(f->map, buf, f->n, 0, &err), &err);
    assert_int_equal(sl_map_pread(f->map, buf, f->n, 1, &err), SL_EINVAL);
    assert_int_equal(sl_map_pread(f->map, buf, UINT64_MAX, 2, &err), SL_EINVAL);
    assert_int_equal(sl_map_pread(f->map, buf, 1, SIZE_MAX, &err), SL_EINVAL);
    assert_int_equal(truncate(f->path, 50), 0);
    assert_int_equal(sl_map_pread(f->map, buf, 10, 100, &err), SL_ECHANGED);
    assert_int_equal(err.offset, 50);
    assert_non_null(strstr(err.msg, f->path));
    free(buf);
}

static unsigned sum_pages(const fixture *f, size_t first)
{
    const volatile unsigned char *data = sl_map_data(f->map);
    unsigned sum = 0;
    for (size_t i = first; i < f->n; i += 64) {
        sum += data[i];
    }
    return sum;
}

static void test_G1_22_pages_that_vanish_read_as_zeros_and_are_reported(void **state)
{
    fixture *f = *state;
    sl_error err = {0};
    open_map(f);
    assert_int_equal(truncate(f->path, (off_t)(2 * f->page + 10)), 0);
    assert_int_equal(sum_pages(f, 3 * f->page), 0);
    assert_memory_equal(sl_map_data(f->map), f->content, 2 * f->page);
    assert_int_equal(sl_map_check(f->map, &err), SL_ECHANGED);
    assert_int_equal(err.offset, 2 * f->page + 10);
    assert_non_null(strstr(err.msg, f->path));
    /* The file grows back: what readers saw is not forgotten. */
    test_write_file(f->path, f->content, f->n);
    assert_int_equal(sum_pages(f, 3 * f->page), 0);
    assert_int_equal(sl_map_check(f->map, &err), SL_ECHANGED);
    assert_int_equal(err.offset, 3 * f->page);
}

/* Cut inside a page, no fault ever happens: the size alone tells. */
static void test_G1_22_a_file_cut_in_its_last_page(void **state)
{
    fixture *f = *state;
    sl_error err = {0};
    open_map(f);
    assert_int_equal(truncate(f->path, (off_t)f->n - 1), 0);
    assert_int_equal(sl_map_check(f->map, &err), SL_ECHANGED);
    assert_int_equal(err.offset, f->n - 1);
}

static void *read_all_pages(void *arg)
{
    return (void *)(uintptr_t)sum_pages(arg, 0);
}

static void test_G1_22_two_threads_meet_the_missing_pages(void **state)
{
    fixture *f = *state;
    pthread_t threads[2];
    sl_error err = {0};
    for (int round = 0; round < 20; round++) {
        test_write_file(f->path, f->content, f->n);
        open_map(f);
        assert_int_equal(truncate(f->path, 0), 0);
        for (int i = 0; i < 2; i++) {
            assert_int_equal(pthread_create(&threads[i], NULL, read_all_pages, f), 0);
        }
        for (int i = 0; i < 2; i++) {
            void *sum = NULL;
            assert_int_equal(pthread_join(threads[i], &sum), 0);
            assert_null(sum);
        }
        assert_int_equal(sl_map_check(f->map, &err), SL_ECHANGED);
        assert_int_equal(err.offset, 0);
        sl_map_close(&f->map);
    }
}

static void test_a_file_that_was_written_to(void **state)
{
    fixture *f = *state;
    sl_error err = {0};
    struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = 1000}};
    open_map(f);
    assert_int_equal(utimensat(AT_FDCWD, f->path, times, 0), 0);
    assert_int_equal(sl_map_check(f->map, &err), SL_ECHANGED);
    sl_map_close(&f->map);
    open_map(f);
    assert_int_equal(truncate(f->path, (off_t)f->n + 1), 0);
    assert_int_equal(sl_map_check(f->map, &err), SL_ECHANGED);
}

static void test_a_path_that_is_removed_or_replaced(void **state)
{
    fixture *f = *state;
    sl_error err = {0};
    char other[4200];
    open_map(f);
    test_path(other, sizeof other, f->dir, "other");
    test_write_file(other, "x", 1);
    assert_int_equal(rename(other, f->path), 0);
    assert_ok(sl_map_check(f->map, &err), &err);
    assert_memory_equal(sl_map_data(f->map), f->content, f->n);
    assert_int_equal(unlink(f->path), 0);
    assert_ok(sl_map_check(f->map, &err), &err);
}

static void expect_refused(const char *path, int code, const char *needle)
{
    sl_map *map = NULL;
    sl_error err = {0};
    size_t n_fds = process_n_fds();
    assert_int_equal(sl_map_open(path, &map, &err), code);
    assert_int_equal(err.code, code);
    assert_null(map);
    if (!strstr(err.msg, needle)) {
        fail_msg("'%s' does not say '%s'", err.msg, needle);
    }
    assert_int_equal(process_n_fds(), n_fds);
}

static void test_what_is_no_regular_file_is_refused_without_blocking(void **state)
{
    fixture *f = *state;
    char path[4200];
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    expect_refused(f->dir, SL_EINVAL, "a directory");
    expect_refused(test_path(path, sizeof path, f->dir, "file/"), SL_ENOENT, "file/");
    test_path(path, sizeof path, f->dir, "fifo");
    assert_int_equal(mkfifo(path, 0600), 0);
    expect_refused(path, SL_EINVAL, "a FIFO");
    expect_refused("/dev/null", SL_EINVAL, "a device");
    expect_refused("/dev/zero", SL_EINVAL, "a device");
    test_path(path, sizeof path, f->dir, "socket");
    assert_true(strlen(path) < sizeof address.sun_path);
    memcpy(address.sun_path, path, strlen(path) + 1);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    expect_refused(path, SL_EINVAL, "a socket");
    close(fd);
}

static void test_paths_with_nothing_to_read(void **state)
{
    fixture *f = *state;
    char path[4200];
    expect_refused("", SL_ENOENT, "");
    expect_refused(test_path(path, sizeof path, f->dir, "none"), SL_ENOENT, path);
    expect_refused(test_path(path, sizeof path, f->dir, "no\nline"), SL_ENOENT, "no\\x0aline");
    test_path(path, sizeof path, f->dir, "empty");
    test_write_file(path, "", 0);
    expect_refused(path, SL_EFORMAT, "empty");
    expect_refused("/proc/self/status", SL_EFORMAT, "/proc/self/status");
    test_path(path, sizeof path, f->dir, "loop");
    assert_int_equal(symlink("loop", path), 0);
    expect_refused(path, SL_EINVAL, "loop");
    test_path(path, sizeof path, f->dir, "dangling");
    assert_int_equal(symlink("nowhere", path), 0);
    expect_refused(path, SL_ENOENT, "dangling");
    char *longest = calloc(1, 10001);
    memset(longest, 'a', 10000);
    expect_refused(longest, SL_EINVAL, "...");
    free(longest);
}

static int open_unreadable(void *path)
{
    sl_map *map = NULL;
    sl_error err = {0};
    return sl_map_open(path, &map, &err) == SL_EACCES && strstr(err.msg, path) ? 0 : 1;
}

static void test_an_unreadable_file(void **state)
{
    fixture *f = *state;
    assert_int_equal(chmod(f->dir, 0755), 0);
    assert_int_equal(chmod(f->path, 0), 0);
    assert_int_equal(process_in_child(open_unreadable, f->path, true), 0);
}

static void test_every_failing_allocation(void **state)
{
    fixture *f = *state;
    int r = SL_ENOMEM;
    size_t n_fds = process_n_fds();
    for (long n = 0; r == SL_ENOMEM; n++) {
        sl_error err = {0};
        sl__mem_fail_after(n);
        r = sl_map_open(f->path, &f->map, &err);
        sl__mem_fail_after(-1);
        assert_int_equal(err.code, r);
        assert_int_equal(process_n_fds(), n_fds + (r == 0));
    }
    assert_int_equal(r, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test_setup_teardown(
                    test_a_map_holds_the_bytes_of_the_file, set_up, tear_down),
            cmocka_unit_test_setup_teardown(test_closing_leaves_nothing, set_up, tear_down),
            cmocka_unit_test_setup_teardown(test_pread, set_up, tear_down),
            cmocka_unit_test_setup_teardown(
                    test_G1_22_pages_that_vanish_read_as_zeros_and_are_reported, set_up, tear_down),
            cmocka_unit_test_setup_teardown(
                    test_G1_22_a_file_cut_in_its_last_page, set_up, tear_down),
            cmocka_unit_test_setup_teardown(
                    test_G1_22_two_threads_meet_the_missing_pages, set_up, tear_down),
            cmocka_unit_test_setup_teardown(test_a_file_that_was_written_to, set_up, tear_down),
            cmocka_unit_test_setup_teardown(
                    test_a_path_that_is_removed_or_replaced, set_up, tear_down),
            cmocka_unit_test_setup_teardown(
                    test_what_is_no_regular_file_is_refused_without_blocking, set_up, tear_down),
            cmocka_unit_test_setup_teardown(test_paths_with_nothing_to_read, set_up, tear_down),
            cmocka_unit_test_setup_teardown(test_an_unreadable_file, set_up, tear_down),
            cmocka_unit_test_setup_teardown(test_every_failing_allocation, set_up, tear_down),
    };
    sl_map *first = NULL;
    if (sl_map_open("/proc/self/exe", &first, NULL) < 0 ||
            sigaction(SIGBUS, NULL, &guard_action) != 0) {
        return 1;
    }
    sl_map_close(&first);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
