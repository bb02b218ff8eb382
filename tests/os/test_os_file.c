#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "process_state.h"
#include "test_support.h"

#include "base/mem.h"
#include "os/os_file.h"

typedef struct fixture {
    char *dir;
    char path[4200];
} fixture;

static int set_up(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    f->dir = test_dir_create();
    test_path(f->path, sizeof f->path, f->dir, "file");
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    fixture *f = *state;
    test_dir_remove(f->dir);
    free(f);
    return 0;
}

static void expect_refused(const char *path, uint64_t max, int code, const char *needle)
{
    char *data = NULL;
    size_t n = 77;
    sl_error err = {0};
    size_t n_fds = process_n_fds();
    assert_int_equal(sl__read_file(path, "thing", max, &data, &n, &err), code);
    assert_null(data);
    assert_int_equal(n, 77);
    if (!strstr(err.msg, needle) || strncmp(err.msg, "thing ", 6) != 0) {
        fail_msg("'%s' does not say '%s'", err.msg, needle);
    }
    assert_int_equal(process_n_fds(), n_fds);
}

static void test_sizes_around_the_buffer_and_the_limit(void **state)
{
    const size_t sizes[] = {0, 1, 4095, 4096, 4097, 100000};
    const fixture *f = *state;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        char *made = malloc(sizes[i] + 1);
        char *data = NULL;
        size_t n = 0;
        sl_error err = {0};
        memset(made, 'a', sizes[i]);
        test_write_file(f->path, made, sizes[i]);
        assert_ok(sl__read_file(f->path, "thing", sizes[i], &data, &n, &err), &err);
        assert_int_equal(n, sizes[i]);
        assert_memory_equal(data, made, n);
        assert_int_equal(data[n], '\0');
        sl__free(data);
        free(made);
        if (sizes[i] > 0) {
            char needle[64];
            snprintf(needle, sizeof needle, "%zu bytes, at most %zu", sizes[i], sizes[i] - 1);
            expect_refused(f->path, sizes[i] - 1, SL_ELIMIT, needle);
        }
    }
}

static void test_a_file_that_claims_no_size(void **state)
{
    char *data = NULL;
    size_t n = 0;
    sl_error err = {0};
    (void)state;
    assert_ok(sl__read_file("/proc/self/status", "thing", 1u << 20, &data, &n, &err), &err);
    assert_true(n > 100);
    assert_non_null(strstr(data, "VmRSS"));
    sl__free(data);
    expect_refused("/proc/self/status", 50, SL_ELIMIT, "or more, at most 50");
}

static void test_what_is_no_file(void **state)
{
    const fixture *f = *state;
    expect_refused(f->dir, 10, SL_EINVAL, "a directory");
    expect_refused("/dev/zero", 10, SL_EINVAL, "a device");
    expect_refused(f->path, 10, SL_ENOENT, f->path);
    assert_int_equal(mkfifo(f->path, 0600), 0);
    expect_refused(f->path, 10, SL_EINVAL, "a FIFO");
}

/* Standard input through a pipe, in two pieces. */
static void read_piped(const char *a, const char *b, uint64_t max, int code)
{
    int ends[2];
    int saved = dup(STDIN_FILENO);
    char *data = NULL;
    size_t n = 0;
    sl_error err = {0};
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], a, strlen(a)), (ssize_t)strlen(a));
    assert_int_equal(write(ends[1], b, strlen(b)), (ssize_t)strlen(b));
    close(ends[1]);
    assert_int_equal(dup2(ends[0], STDIN_FILENO), STDIN_FILENO);
    close(ends[0]);
    int r = sl__read_file("-", "thing", max, &data, &n, &err);
    assert_int_equal(dup2(saved, STDIN_FILENO), STDIN_FILENO);
    close(saved);
    assert_int_equal(r, code);
    if (code == 0) {
        assert_int_equal(n, strlen(a) + strlen(b));
        assert_memory_equal(data, a, strlen(a));
        sl__free(data);
    } else {
        assert_non_null(strstr(err.msg, "standard input"));
    }
}

static void test_standard_input(void **state)
{
    (void)state;
    read_piped("", "", 0, 0);
    read_piped("hello ", "world", 11, 0);
    read_piped("hello ", "world", 10, SL_ELIMIT);
}

static void test_every_failing_allocation(void **state)
{
    const fixture *f = *state;
    int r = SL_ENOMEM;
    test_write_file(f->path, "data", 4);
    for (long n = 0; r == SL_ENOMEM; n++) {
        char *data = NULL;
        size_t n_data = 0;
        sl_error err = {0};
        sl__mem_fail_after(n);
        r = sl__read_file(f->path, "thing", 10, &data, &n_data, &err);
        sl__mem_fail_after(-1);
        assert_int_equal(err.code, r);
        sl__free(data);
    }
    assert_int_equal(r, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test_setup_teardown(
                    test_sizes_around_the_buffer_and_the_limit, set_up, tear_down),
            cmocka_unit_test(test_a_file_that_claims_no_size),
            cmocka_unit_test_setup_teardown(test_what_is_no_file, set_up, tear_down),
            cmocka_unit_test(test_standard_input),
            cmocka_unit_test_setup_teardown(test_every_failing_allocation, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
