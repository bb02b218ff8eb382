#define _DEFAULT_SOURCE /* MAP_POPULATE */

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "page_fixture.h"
#include "test_support.h"

#include "base/mem.h"
#include "sluice/page_cache.h"

#define N_PAGES 4096 /* 16 MiB, as in the public case */

static int set_up(void **state)
{
    page_file *f = calloc(1, sizeof *f);
    assert_non_null(f);
    page_file_open(f, (uint64_t)N_PAGES * 4096);
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

static uint64_t cached(const page_file *f, uint64_t begin, uint64_t end)
{
    sl_error err = {0};
    uint64_t n = 0;
    assert_ok(sl_page_cache_cached(f->map, begin, end, &n, &err), &err);
    return n;
}

static void warm(const page_file *f, const sl_ranges *set)
{
    sl_error err = {0};
    assert_ok(sl_page_cache_warm(f->map, set, (sl_progress){0}, &err), &err);
}

static void test_warm_and_cached(void **state)
{
    page_file *f = *state;
    sl_ranges set = {0};
    size_t n = 0;
    assert_int_equal(cached(f, 0, f->size), 0);
    assert_int_equal(sl_ranges_add(&set, 0, f->size), 0);
    warm(f, &set);
    assert_int_equal(cached(f, 0, f->size), f->size);
    assert_int_equal(cached(f, 5, 6), 1);
    assert_int_equal(cached(f, 5, 5), 0);
    assert_int_equal(cached(f, f->size - 1, f->size), 1);
    unsigned char *marks = calloc(1, (size_t)sl_page_cache_n_pages(f->map));
    sl_error err = {0};
    assert_non_null(marks);
    assert_int_equal(sl_page_cache_n_pages(f->map), N_PAGES);
    assert_ok(sl_page_cache_marks(f->map, marks, &err), &err);
    page_expect(f, marks, &set);
    free(marks);
    /* The page table is left alone. */
    unsigned char *present = page_file_present(f, &n);
    page_expect(f, present, &(sl_ranges){0});
    free(present);
    sl_ranges_done(&set);
}

static void test_ranges_outside_the_file(void **state)
{
    page_file *f = *state;
    sl_error err = {0};
    uint64_t n = 7;
    sl_ranges set = {0};
    assert_int_equal(sl_page_cache_cached(f->map, 0, f->size + 1, &n, &err), SL_EINVAL);
    assert_int_equal(sl_page_cache_cached(f->map, 5, 4, &n, &err), SL_EINVAL);
    assert_int_equal(sl_ranges_add(&set, 0, UINT64_MAX), 0);
    assert_int_equal(sl_page_cache_warm(f->map, &set, (sl_progress){0}, &err), SL_EINVAL);
    assert_int_equal(sl_page_cache_drop(f->map, &set, &n, &err), SL_EINVAL);
    assert_int_equal(n, 7);
    assert_non_null(strstr(err.msg, f->path));
    sl_ranges_done(&set);
}

/* G2-38: populated through two mappings of one process, the cache empties only after both page tables do. */
static void test_G2_38_a_file_that_is_mapped_twice(void **state)
{
    page_file *f = *state;
    sl_error err = {0};
    sl_ranges all = {0};
    uint64_t left = 0;
    assert_int_equal(sl_ranges_add(&all, 0, f->size), 0);
    int fd = open(f->path, O_RDONLY);
    assert_true(fd >= 0);
    void *other = mmap(NULL, (size_t)f->size, PROT_READ, MAP_SHARED | MAP_POPULATE, fd, 0);
    assert_true(other != MAP_FAILED);
    /* What stays is said. */
    assert_ok(sl_page_cache_drop(f->map, &all, &left, &err), &err);
    assert_int_equal(left, f->size);
    munmap(other, (size_t)f->size);
    close(fd);
    assert_ok(sl_page_cache_drop(f->map, &all, &left, &err), &err);
    assert_int_equal(left, 0);
    assert_int_equal(cached(f, 0, f->size), 0);
    sl_ranges_done(&all);
}

static void test_G2_38_pages_that_were_just_written(void **state)
{
    page_file *f = *state;
    int fd = open(f->path, O_WRONLY);
    assert_true(fd >= 0);
    char *data = calloc(1, (size_t)f->size);
    assert_non_null(data);
    assert_int_equal(write(fd, data, (size_t)f->size), f->size);
    close(fd);
    free(data);
    page_drop(f->map);
    assert_int_equal(cached(f, 0, f->size), 0);
}

/* Read-ahead that was begun just before goes on by itself: its pages are waited for. */
static void test_pages_that_are_on_their_way_in(void **state)
{
    page_file *f = *state;
    int fd = open(f->path, O_RDONLY);
    assert_true(fd >= 0);
    for (int i = 0; i < 10; i++) {
        assert_int_equal(posix_fadvise(fd, 0, 0, POSIX_FADV_WILLNEED), 0);
        page_drop(f->map);
    }
    close(fd);
    assert_int_equal(cached(f, 0, f->size), 0);
}

static void test_G2_38_locked_pages(void **state)
{
    page_file *f = *state;
    sl_error err = {0};
    sl_ranges all = {0};
    uint64_t left = 7;
    const char *at = sl_map_data(f->map);
    /* The sanitizers turn the C function off. */
    if (syscall(SYS_mlock, at + 5 * f->page, (size_t)f->page) != 0) {
        skip();
    }
    assert_int_equal(sl_ranges_add(&all, 0, f->size), 0);
    assert_int_equal(sl_page_cache_drop(f->map, &all, &left, &err), SL_EBUSY);
    assert_int_equal(left, 7);
    assert_int_equal(syscall(SYS_munlock, at + 5 * f->page, (size_t)f->page), 0);
    sl_ranges_done(&all);
}

/* Only whole pages of the set go; padding between two of its ranges goes with them. */
static void test_drop_leaves_the_neighbours(void **state)
{
    page_file *f = *state;
    sl_error err = {0};
    sl_ranges all = {0};
    sl_ranges set = {0};
    sl_ranges kept = {0};
    uint64_t left = 1;
    size_t n = 0;
    uint64_t p = f->page;
    assert_int_equal(sl_ranges_add(&all, 0, f->size), 0);
    warm(f, &all);
    sl_ranges_add(&set, 100 * p + 10, 200 * p - 32);
    sl_ranges_add(&set, 200 * p, 300 * p + 1); /* 32 bytes of padding before */
    sl_ranges_add(&set, 400 * p, 500 * p);
    sl_ranges_add(&set, 501 * p, 600 * p); /* a page of somebody else's before */
    sl_ranges_add(&set, f->size - 3 * p, f->size);
    sl_ranges_add(&kept, 0, 101 * p);
    sl_ranges_add(&kept, 300 * p, 400 * p);
    sl_ranges_add(&kept, 500 * p, 501 * p);
    sl_ranges_add(&kept, 600 * p, f->size - 3 * p);
    assert_ok(sl_page_cache_drop(f->map, &set, &left, &err), &err);
    assert_int_equal(left, 0);
    unsigned char *marks = page_file_cached(f, &n);
    page_expect(f, marks, &kept);
    free(marks);
    sl_ranges_done(&all);
    sl_ranges_done(&set);
    sl_ranges_done(&kept);
}

typedef struct cancel {
    uint64_t at; /* bytes */
    uint64_t seen;
    uint64_t total;
} cancel;

static int cancel_at(void *ud, uint64_t done, uint64_t total)
{
    cancel *c = ud;
    assert_true(done >= c->seen);
    c->seen = done;
    c->total = total;
    return done >= c->at;
}

static void test_warm_can_be_cancelled(void **state)
{
    page_file *f = *state;
    sl_error err = {0};
    sl_ranges all = {0};
    cancel c = {.at = f->size / 4};
    sl_progress progress = {cancel_at, &c};
    assert_int_equal(sl_ranges_add(&all, 0, f->size), 0);
    assert_int_equal(sl_page_cache_warm(f->map, &all, progress, &err), SL_ECANCELLED);
    assert_true(c.seen < f->size / 2);
    assert_int_equal(c.total, f->size);
    c = (cancel){.at = UINT64_MAX};
    assert_ok(sl_page_cache_warm(f->map, &all, progress, &err), &err);
    assert_int_equal(c.seen, f->size);
    sl_ranges_done(&all);
}

static void test_warm_of_a_file_that_shrank(void **state)
{
    page_file *f = *state;
    sl_error err = {0};
    sl_ranges all = {0};
    assert_int_equal(sl_ranges_add(&all, 0, f->size), 0);
    assert_int_equal(truncate(f->path, 100), 0);
    assert_int_equal(sl_page_cache_warm(f->map, &all, (sl_progress){0}, &err), SL_ECHANGED);
    assert_int_equal(err.offset, 100);
    sl_ranges_done(&all);
}

static void test_memory_may_run_out(void **state)
{
    page_file *f = *state;
    sl_error err = {0};
    sl_ranges all = {0};
    uint64_t left = 7;
    assert_int_equal(sl_ranges_add(&all, 0, f->size), 0);
    sl__mem_fail_after(0);
    assert_int_equal(sl_page_cache_warm(f->map, &all, (sl_progress){0}, &err), SL_ENOMEM);
    sl__mem_fail_after(0);
    assert_int_equal(sl_page_cache_drop(f->map, &all, &left, &err), SL_ENOMEM);
    sl__mem_fail_after(-1);
    assert_int_equal(left, 7);
    sl_ranges_done(&all);
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
            CASE(test_warm_and_cached),
            CASE(test_ranges_outside_the_file),
            CASE(test_G2_38_a_file_that_is_mapped_twice),
            CASE(test_G2_38_pages_that_were_just_written),
            CASE(test_pages_that_are_on_their_way_in),
            CASE(test_G2_38_locked_pages),
            CASE(test_drop_leaves_the_neighbours),
            CASE(test_warm_can_be_cancelled),
            CASE(test_warm_of_a_file_that_shrank),
            CASE(test_memory_may_run_out),
    };
    if (!page_files_can_be_dropped()) {
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
