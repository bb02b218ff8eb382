#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "page_fixture.h"
#include "process_state.h"
#include "test_support.h"

#include "os/os_page_cache.h"
#include "source/map_os.h"

#define N_PAGES 64

static int set_up(void **state)
{
    page_file *f = calloc(1, sizeof *f);
    assert_non_null(f);
    page_file_open(f, (uint64_t)N_PAGES * 4096 - 100);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    page_file *f = *state;
    page_file_close(f);
    free(f);
    return 0;
}

static void expect_marks(const unsigned char *marks, size_t first, size_t behind)
{
    for (size_t i = 0; i < N_PAGES; i++) {
        assert_int_equal(marks[i], i >= first && i < behind);
    }
}

static void test_both_ways_say_the_same(void **state)
{
    page_file *f = *state;
    const sl__os_map *map = sl__map_os(f->map);
    unsigned char marks[N_PAGES];
    uint64_t n = 1;
    assert_int_equal(sl__os_cached(map, 0, f->size, &n), 0);
    assert_int_equal(n, 0);
    assert_int_equal(sl__os_cached_marks(map, 0, f->size, marks), 0);
    expect_marks(marks, 0, 0);
    sl__os_read_ahead(map, 7 * f->page, f->size);
    sl__os_touch(map, 7 * f->page, f->size);
    assert_int_equal(sl__os_cached(map, 0, f->size, &n), 0);
    assert_int_equal(n, N_PAGES - 7);
    assert_int_equal(sl__os_cached_marks(map, 0, f->size, marks), 0);
    expect_marks(marks, 7, N_PAGES);
    memset(marks, 9, sizeof marks);
    int r = sl__os_cached_marks_by_stat(map, 0, f->size, marks);
    if (r == -ENOSYS) {
        skip();
    }
    assert_int_equal(r, 0);
    expect_marks(marks, 7, N_PAGES);
    assert_int_equal(sl__os_cached(map, 6 * f->page, 9 * f->page, &n), 0);
    assert_int_equal(n, 2);
    assert_int_equal(sl__os_cached(map, 8 * f->page, 8 * f->page, &n), 0);
    assert_int_equal(n, 0);
}

static void test_drop_and_read_ahead(void **state)
{
    page_file *f = *state;
    const sl__os_map *map = sl__map_os(f->map);
    uint64_t n = 0;
    sl__os_touch(map, 0, f->size);
    assert_int_equal(sl__os_drop(map, 0, f->size), 0);
    assert_int_equal(sl__os_cached(map, 0, f->size, &n), 0);
    assert_int_equal(n, 0);
    assert_int_equal(sl__os_drop(map, 0, 0), 0);
    assert_int_equal(sl__os_sync(map), 0);
    /* Exactly these pages, however far the kernel would read on. */
    sl__os_read_ahead(map, 10 * f->page, 50 * f->page);
    sl__os_touch(map, 10 * f->page, 50 * f->page);
    assert_int_equal(sl__os_cached(map, 0, f->size, &n), 0);
    assert_int_equal(n, 40);
}

static void test_G2_26_populate_of_a_file_that_was_cut(void **state)
{
    page_file *f = *state;
    const sl__os_map *map = sl__map_os(f->map);
    int r = sl__os_populate(map, 0, f->size);
    if (r == -EINVAL || r == -ENOSYS) {
        skip();
    }
    assert_int_equal(r, 0);
    assert_int_equal(truncate(f->path, 4196), 0);
    assert_int_equal(sl__os_populate(map, 0, 8 * f->page), -EFAULT);
    assert_int_equal(sl__os_populate(map, 0, 2 * f->page), 0);
}

/* What another user's file has in the cache mincore keeps to itself: its answer must not look like "all". */
static int ask_as_nobody(void *arg)
{
    page_file *f = arg;
    unsigned char marks[N_PAGES];
    uint64_t n = 0;
    int r = sl__os_cached(sl__map_os(f->map), 0, f->size, &n);
    int r_marks = sl__os_cached_marks(sl__map_os(f->map), 0, f->size, marks);
    bool is_right = r == -ENOTSUP || (r == 0 && n == 0);
    bool is_right_marks = r_marks == -ENOTSUP || (r_marks == 0 && marks[0] == 0);
    return is_right && is_right_marks ? 0 : 1;
}

static void test_mincore_of_a_strangers_file(void **state)
{
    page_file *f = *state;
    if (geteuid() != 0) {
        skip();
    }
    int status = process_in_child(ask_as_nobody, f, true);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77) {
        skip();
    }
    assert_int_equal(WEXITSTATUS(status), 0);
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
            CASE(test_both_ways_say_the_same),
            CASE(test_drop_and_read_ahead),
            CASE(test_G2_26_populate_of_a_file_that_was_cut),
            CASE(test_mincore_of_a_strangers_file),
    };
    if (!page_files_can_be_dropped()) {
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
