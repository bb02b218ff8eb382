#include <string.h>

#include "test_support.h"

#include "base/mem.h"

static void test_memory_is_zeroed(void **state)
{
    (void)state;
    unsigned char *p = sl__alloc(100, 3);
    assert_non_null(p);
    for (int i = 0; i < 300; i++) {
        assert_int_equal(p[i], 0);
    }
    sl__free(p);
    p = sl__alloc(0, 8);
    assert_non_null(p);
    sl__free(p);
    sl__free(NULL);
}

static void test_products_that_wrap(void **state)
{
    (void)state;
    assert_null(sl__alloc(SIZE_MAX / 2 + 1, 2));
    assert_null(sl__realloc(NULL, SIZE_MAX / 2 + 1, 2));
    assert_null(sl__strndup("x", SIZE_MAX));
}

static void test_failing_realloc_keeps_the_block(void **state)
{
    (void)state;
    char *p = sl__realloc(NULL, 4, 1);
    assert_non_null(p);
    memcpy(p, "abc", 4);
    sl__mem_fail_after(0);
    assert_null(sl__realloc(p, 100, 1));
    sl__mem_fail_after(-1);
    assert_string_equal(p, "abc");
    char *q = sl__realloc(p, 0, 1);
    assert_non_null(q);
    sl__free(q);
}

static void test_the_nth_allocation_fails_once(void **state)
{
    (void)state;
    sl__mem_fail_after(2);
    void *a = sl__alloc(1, 1);
    char *b = sl__strndup("b", 1);
    void *c = sl__alloc(1, 1);
    void *d = sl__alloc(1, 1);
    sl__mem_fail_after(-1);
    assert_true(a && b && !c && d);
    sl__free(a);
    sl__free(b);
    sl__free(d);
}

static void test_copies_of_text(void **state)
{
    (void)state;
    char *s = sl__strndup("a\0b", 3);
    assert_memory_equal(s, "a\0b", 4);
    sl__free(s);
    s = sl__strndup(NULL, 0);
    assert_string_equal(s, "");
    sl__free(s);
}

static void test_arrays_grow(void **state)
{
    int *p = NULL;
    size_t cap = 0;
    size_t n_steps = 0;
    (void)state;
    for (size_t i = 0; i < 100000; i++) {
        size_t before = cap;
        assert_true(sl__grow((void **)&p, &cap, i + 1, sizeof *p));
        n_steps += cap != before;
        p[i] = (int)i;
    }
    for (size_t i = 0; i < 100000; i++) {
        assert_int_equal(p[i], i);
    }
    assert_true(n_steps < 40);
    size_t before = cap;
    int *same = p;
    sl__mem_fail_after(0);
    assert_false(sl__grow((void **)&p, &cap, cap + 1, sizeof *p));
    sl__mem_fail_after(-1);
    assert_false(sl__grow((void **)&p, &cap, SIZE_MAX / 2, sizeof *p));
    assert_ptr_equal(p, same);
    assert_int_equal(cap, before);
    sl__free(p);
}

static void test_checked_arithmetic(void **state)
{
    uint64_t v = 7;
    (void)state;
    assert_true(sl__add_u64(UINT64_MAX - 1, 1, &v) && v == UINT64_MAX);
    assert_false(sl__add_u64(UINT64_MAX, 1, &v));
    assert_true(sl__mul_u64(UINT32_MAX, UINT32_MAX, &v));
    assert_true(v == 18446744065119617025u);
    assert_false(sl__mul_u64(1ull << 32, 1ull << 32, &v));
    assert_true(sl__mul_u64(UINT64_MAX, 1, &v) && v == UINT64_MAX);
    assert_true(sl__mul_u64(UINT64_MAX, 0, &v) && v == 0);
    assert_true(sl__align_up_u64(0, 32, &v) && v == 0);
    assert_true(sl__align_up_u64(33, 32, &v) && v == 64);
    assert_true(sl__align_up_u64(64, 32, &v) && v == 64);
    assert_true(sl__align_up_u64(5, 1, &v) && v == 5);
    assert_true(sl__align_up_u64(UINT64_MAX - 31, 32, &v) && v == UINT64_MAX - 31);
    assert_false(sl__align_up_u64(UINT64_MAX - 30, 32, &v));
    assert_true(v == UINT64_MAX - 31);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_memory_is_zeroed),
            cmocka_unit_test(test_products_that_wrap),
            cmocka_unit_test(test_failing_realloc_keeps_the_block),
            cmocka_unit_test(test_the_nth_allocation_fails_once),
            cmocka_unit_test(test_copies_of_text),
            cmocka_unit_test(test_arrays_grow),
            cmocka_unit_test(test_checked_arithmetic),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
