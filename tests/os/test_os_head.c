/* The beginning of a file in private memory, and what follows it. */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "os/os_head.h"
#include "os/os_process.h"
#include "test_support.h"

#define N_BYTES 20000

static char *dir;
static char path[512];
static int fd = -1;

static int set_up(void **state)
{
    static unsigned char data[N_BYTES];
    (void)state;
    memset(data, 0xab, sizeof data);
    dir = test_dir_create();
    test_path(path, sizeof path, dir, "file");
    test_write_file(path, data, sizeof data);
    fd = open(path, O_RDWR);
    return fd >= 0 ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    close(fd);
    test_dir_remove(dir);
    return 0;
}

static void test_a_part(void **state)
{
    (void)state;
    sl_error err = {0};
    sl__os_head head;
    assert_ok(sl__os_head_read(fd, path, N_BYTES, 100, &head, &err), &err);
    assert_int_equal(head.n_read, 100);
    assert_int_equal(head.n_bytes, N_BYTES);
    assert_int_equal((unsigned char)head.data[99], 0xab);
    for (size_t i = 100; i < N_BYTES; i++) {
        assert_int_equal(head.data[i], 0);
    }
    sl__os_head_done(&head);
    assert_null(head.data);
    sl__os_head_done(&head);
}

static void test_more_than_there_is(void **state)
{
    (void)state;
    sl_error err = {0};
    sl__os_head head;
    assert_ok(sl__os_head_read(fd, path, N_BYTES, UINT64_MAX, &head, &err), &err);
    assert_int_equal(head.n_read, N_BYTES);
    assert_int_equal((unsigned char)head.data[N_BYTES - 1], 0xab);
    sl__os_head_done(&head);
}

static void test_a_file_that_is_cut(void **state)
{
    (void)state;
    sl_error err = {0};
    sl__os_head head;
    assert_ok(sl__os_head_read(fd, path, N_BYTES, N_BYTES, &head, &err), &err);
    assert_int_equal(ftruncate(fd, 5000), 0);
    /* What was read stays readable: these are not the file's pages. */
    assert_int_equal((unsigned char)head.data[N_BYTES - 1], 0xab);
    sl__os_head_done(&head);
    assert_int_equal(sl__os_head_read(fd, path, N_BYTES, N_BYTES, &head, &err), SL_ECHANGED);
    assert_int_equal(err.offset, 5000);
    assert_non_null(strstr(err.msg, path));
}

static void test_G2_32_sizes_that_cannot_be(void **state)
{
    (void)state;
    sl_error err = {0};
    sl__os_head head;
    assert_int_equal(sl__os_head_read(fd, path, 0, 10, &head, &err), SL_EFORMAT);
    assert_int_equal(sl__os_head_read(fd, path, UINT64_MAX, 10, &head, &err), SL_ELIMIT);
    assert_int_equal(sl__os_head_read(fd, path, SIZE_MAX / 2, 10, &head, &err), SL_ENOMEM);
    assert_int_equal(sl__os_head_read(-1, path, 10, 10, &head, &err), SL_EIO);
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
            CASE(test_a_part),
            CASE(test_more_than_there_is),
            CASE(test_a_file_that_is_cut),
            CASE(test_G2_32_sizes_that_cannot_be),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
