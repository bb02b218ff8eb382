#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "process_state.h"
#include "test_support.h"

#include "os/os_map.h"

#define N_BYTES 10000

static void test_open_read_close(void **state)
{
    char path[4200];
    static const char content[N_BYTES] = "first";
    char buf[64];
    char *dir = test_dir_create();
    sl__os_map map = {0};
    sl_file_id id;
    sl_error err = {0};
    (void)state;
    test_write_file(test_path(path, sizeof path, dir, "file"), content, N_BYTES);
    assert_ok(sl__os_map_open(path, &map, &err), &err);
    assert_memory_equal(map.data, content, N_BYTES);
    assert_int_equal(sl__os_map_read(&map, buf, 0, 5), 5);
    assert_memory_equal(buf, "first", 5);
    assert_int_equal(sl__os_map_read(&map, buf, N_BYTES - 3, sizeof buf), 3);
    assert_int_equal(sl__os_map_read(&map, buf, N_BYTES, sizeof buf), 0);
    assert_int_equal(sl__os_map_read(&map, buf, UINT64_MAX, sizeof buf), -EINVAL);
    assert_int_equal(sl__os_map_id(&map, &id), 0);
    assert_memory_equal(&id, &map.id, sizeof id);
    sl__os_map_close(&map);
    assert_null(map.data);
    sl__os_map_close(&map);
    test_dir_remove(dir);
}

/* No address space for the mapping: refused as out of memory, nothing left open. */
static int open_without_room(void *arg)
{
    struct rlimit none = {.rlim_cur = 64u << 20, .rlim_max = 64u << 20};
    sl__os_map map = {0};
    sl_error err = {0};
    size_t n_fds = process_n_fds();
    if (setrlimit(RLIMIT_AS, &none) != 0) {
        return 2;
    }
    int r = sl__os_map_open(arg, &map, &err);
    bool is_clear = strstr(err.msg, arg) && strstr(err.msg, "'ulimit -v'") &&
                    strstr(err.msg, "67108864 bytes of addresses");
    return r == SL_ENOMEM && is_clear && process_n_fds() == n_fds ? 0 : 1;
}

/* A sparse file of 1 GiB: it maps like any other where there is room, and reads as zeros. */
static void test_G2_32_no_room_for_the_mapping(void **state)
{
    char path[4200];
    char *dir = test_dir_create();
    sl__os_map map = {0};
    sl_error err = {0};
    (void)state;
    test_write_file(test_path(path, sizeof path, dir, "file"), "x", 1);
    assert_int_equal(truncate(path, 1 << 30), 0);
    assert_int_equal(process_in_child(open_without_room, path, false), 0);
    assert_ok(sl__os_map_open(path, &map, &err), &err);
    assert_int_equal(((const char *)map.data)[(1 << 30) - 1], 0);
    sl__os_map_close(&map);
    test_dir_remove(dir);
}

static void test_a_descriptor_that_is_taken_over(void **state)
{
    char path[4200];
    char *dir = test_dir_create();
    sl__os_map map = {0};
    sl_error err = {0};
    (void)state;
    test_write_file(test_path(path, sizeof path, dir, "empty"), "", 0);
    size_t n_fds = process_n_fds();
    int fd = open(path, O_RDONLY);
    assert_int_equal(sl__os_map_adopt(fd, path, &map, &err), SL_EFORMAT);
    assert_non_null(strstr(err.msg, "empty"));
    assert_int_equal(process_n_fds(), n_fds + 1);
    close(fd);
    test_write_file(test_path(path, sizeof path, dir, "full"), "abc", 3);
    fd = open(path, O_RDONLY);
    assert_ok(sl__os_map_adopt(fd, "a name", &map, &err), &err);
    assert_int_equal(map.fd, fd);
    assert_null(map.guard);
    assert_memory_equal(map.data, "abc", 3);
    sl__os_map_close(&map);
    assert_int_equal(process_n_fds(), n_fds);
    assert_int_equal(sl__os_map_adopt(-1, "a name", &map, &err), SL_EIO);
    assert_non_null(strstr(err.msg, "a name"));
    test_dir_remove(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_open_read_close),
            cmocka_unit_test(test_G2_32_no_room_for_the_mapping),
            cmocka_unit_test(test_a_descriptor_that_is_taken_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
