#include "engine/text/strmap.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "test_support.h"

#define N_KEYS 5000

static sl_span key_of(char *buf, size_t buf_bytes, unsigned i)
{
    int n = snprintf(buf, buf_bytes, "key %u", i);
    return (sl_span){buf, (size_t)n};
}

static void test_keys_are_found_and_others_are_not(void **state)
{
    (void)state;
    static char names[N_KEYS][16];
    s2_strmap map = {0};
    sl_error err = {0};
    char buf[16];
    uint32_t value = 0;
    assert_false(s2_strmap_find(&map, (sl_span){"a", 1}, &value));
    assert_ok(s2_strmap_init(&map, N_KEYS, &err), &err);
    for (unsigned i = 0; i < N_KEYS; i++) {
        assert_ok(s2_strmap_add(&map, key_of(names[i], 16, i), i, &err), &err);
    }
    assert_int_equal(map.n, N_KEYS);
    for (unsigned i = 0; i < N_KEYS; i++) {
        assert_true(s2_strmap_find(&map, key_of(buf, sizeof buf, i), &value));
        assert_int_equal(value, i);
        assert_false(s2_strmap_find(&map, key_of(buf, sizeof buf, i + N_KEYS), &value));
    }
    assert_int_equal(s2_strmap_add(&map, key_of(buf, sizeof buf, 7), 1, &err), SL_EEXIST);
    s2_strmap_done(&map);
}

static void test_empty_keys_and_keys_with_any_byte(void **state)
{
    (void)state;
    s2_strmap map = {0};
    sl_error err = {0};
    uint32_t value = 0;
    assert_ok(s2_strmap_init(&map, 4, &err), &err);
    assert_ok(s2_strmap_add(&map, (sl_span){"", 0}, 1, &err), &err);
    assert_ok(s2_strmap_add(&map, (sl_span){"\0", 1}, 2, &err), &err);
    assert_ok(s2_strmap_add(&map, (sl_span){"\0\0", 2}, 3, &err), &err);
    assert_true(s2_strmap_find(&map, (sl_span){"\0x", 1}, &value));
    assert_int_equal(value, 2);
    assert_true(s2_strmap_find(&map, (sl_span){"x", 0}, &value));
    assert_int_equal(value, 1);
    s2_strmap_done(&map);
}

/* Keys that share the low bits of their hash, found by search. */
static void test_many_collisions_are_an_error_and_not_slow(void **state)
{
    (void)state;
    enum {
        N = 1100
    };
    static uint64_t keys[N];
    s2_strmap map = {0};
    sl_error err = {0};
    int r = 0;
    size_t n = 0;
    assert_ok(s2_strmap_init(&map, 3000, &err), &err);
    for (uint64_t v = 0; n < N; v++) {
        if ((s2_hash_bytes((const char *)&v, 8) & (map.n_slots - 1)) == 5) {
            keys[n++] = v;
        }
    }
    for (size_t i = 0; r == 0 && i < N; i++) {
        r = s2_strmap_add(&map, (sl_span){(const char *)&keys[i], 8}, 0, &err);
    }
    assert_int_equal(r, SL_ELIMIT);
    assert_int_equal(map.n, 1024);
    s2_strmap_done(&map);
}

static void test_no_memory(void **state)
{
    (void)state;
    s2_strmap map = {0};
    sl_error err = {0};
    sl__mem_fail_after(0);
    int r = s2_strmap_init(&map, 4, &err);
    sl__mem_fail_after(-1);
    assert_int_equal(r, SL_ENOMEM);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_keys_are_found_and_others_are_not),
            cmocka_unit_test(test_empty_keys_and_keys_with_any_byte),
            cmocka_unit_test(test_many_collisions_are_an_error_and_not_slow),
            cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
