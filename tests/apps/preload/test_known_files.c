/* The files that a program has mapped, and what is still to be done for a mapping. */
#include "base/mem.h"
#include "known_files.h"
#include "test_support.h"

static const sl_file_id id = {.device = 1, .inode = 2, .size_bytes = 1000, .mtime_ns = 3};

static known_file *add(known_files *files, const sl_file_id *which)
{
    sl_error err = {0};
    known_file *file = NULL;
    assert_ok(known_files_add(files, which, &file, &err), &err);
    assert_int_equal(sl_ranges_add(&file->wanted, 100, 400), 0);
    assert_int_equal(sl_ranges_add(&file->wanted, 600, 900), 0);
    return file;
}

static uint64_t take(known_file *file, uint64_t begin, uint64_t end)
{
    sl_error err = {0};
    sl_ranges got = {0};
    assert_ok(known_file_take(file, begin, end, &got, &err), &err);
    uint64_t n = sl_ranges_bytes(&got);
    sl_ranges_done(&got);
    return n;
}

static void test_a_file_is_known_by_what_it_is(void **state)
{
    (void)state;
    known_files files = {0};
    assert_null(known_files_find(&files, &id));
    add(&files, &id);
    assert_non_null(known_files_find(&files, &id));
    for (int i = 0; i < 4; i++) {
        sl_file_id other = id;
        other.device += i == 0;
        other.inode += i == 1;
        other.size_bytes += i == 2;
        other.mtime_ns += i == 3;
        assert_null(known_files_find(&files, &other));
        add(&files, &other);
        assert_ptr_equal(known_files_find(&files, &other), &files.items[i + 1]);
    }
    assert_ptr_equal(known_files_find(&files, &id), &files.items[0]);
    known_files_done(&files);
}

static void test_nothing_is_done_twice(void **state)
{
    (void)state;
    known_files files = {0};
    known_file *file = add(&files, &id);
    assert_int_equal(take(file, 0, 300), 200);
    assert_int_equal(take(file, 0, 300), 0);
    assert_int_equal(take(file, 200, 700), 200);
    assert_int_equal(take(file, 0, 1000), 200);
    assert_int_equal(take(file, 0, 1000), 0);
    known_files_done(&files);
}

static void test_memory_may_run_out(void **state)
{
    (void)state;
    known_files files = {0};
    known_file *file = add(&files, &id);
    sl_ranges got = {0};
    sl_error err = {0};
    int n_failed = 0;
    for (long n = 0; n < 8; n++) {
        sl__mem_fail_after(n);
        int r = known_file_take(file, 0, 1000, &got, &err);
        sl__mem_fail_after(-1);
        if (r == 0) {
            break;
        }
        assert_int_equal(r, SL_ENOMEM);
        assert_int_equal(sl_ranges_bytes(&file->done), 0);
        assert_int_equal(got.n, 0);
        n_failed++;
    }
    assert_true(n_failed > 0);
    assert_int_equal(sl_ranges_bytes(&got), 600);
    sl_ranges_done(&got);
    sl__mem_fail_after(0);
    known_files none = {0};
    assert_int_equal(known_files_add(&none, &id, &file, &err), SL_ENOMEM);
    sl__mem_fail_after(-1);
    known_files_done(&none);
    known_files_done(&files);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_a_file_is_known_by_what_it_is),
            cmocka_unit_test(test_nothing_is_done_twice),
            cmocka_unit_test(test_memory_may_run_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
