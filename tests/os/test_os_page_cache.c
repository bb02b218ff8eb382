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

static void test_both_ways_count_the_same(void **state)
{
    page_file *f = *state;
    const sl__os_map *map = sl__map_os(f->map);
    uint64_t by_stat = 1;
    uint64_t by_mincore = 1;
    assert_int_equal(sl__os_cached(map, 0, f->size, &by_stat), 0);
    assert_int_equal(by_stat, 0);
    sl__os_touch(map, 0, f->size);
    assert_int_equal(sl__os_cached(map, 0, f->size, &by_stat), 0);
    assert_int_equal(sl__os_cached_mincore(map, 0, f->size, &by_mincore), 0);
    assert_int_equal(by_stat, N_PAGES);
    assert_int_equal(by_mincore, N_PAGES);
    assert_int_equal(sl__os_cached(map, 3 * f->page, 5 * f->page, &by_stat), 0);
    assert_int_equal(by_stat, 2);
    assert_int_equal(sl__os_cached(map, 3 * f->page, 3 * f->page, &by_stat), 0);
    assert_int_equal(by_stat, 0);
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

/* What another user's file has in the cache is a secret of the kernel's: no answer must not look like "all". */
static int ask_as_nobody(void *arg)
{
    page_file *f = arg;
    uint64_t n = 77;
    int r = sl__os_cached_mincore(sl__map_os(f->map), 0, f->size, &n);
    return r == -ENOTSUP && n == 77 ? 0 : 1;
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
            CASE(test_both_ways_count_the_same),
            CASE(test_drop_and_read_ahead),
            CASE(test_G2_26_populate_of_a_file_that_was_cut),
            CASE(test_mincore_of_a_strangers_file),
    };
    if (!page_files_can_be_dropped()) {
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
