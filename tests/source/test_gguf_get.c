#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gguf_bytes.h"

typedef struct fixture {
    gguf_bytes bytes;
    sl_gguf *gguf;
} fixture;

static int set_up(void **state)
{
    sl_error err = {0};
    fixture *f = calloc(1, sizeof *f);
    f->bytes = gb_start(3, 0, 19);
    gguf_bytes *g = &f->bytes;
    gb_key(g, "u8", SL_GGUF_U8);
    gb_u8(g, 200);
    gb_key(g, "i8", SL_GGUF_I8);
    gb_u8(g, 0xFF);
    gb_key(g, "u16", SL_GGUF_U16);
    gb_u16(g, 65535);
    gb_key(g, "i16", SL_GGUF_I16);
    gb_u16(g, 0x8000);
    gb_key_u32(g, "u32", UINT32_MAX);
    gb_key(g, "i32", SL_GGUF_I32);
    gb_u32(g, 0x80000000);
    gb_key(g, "u64", SL_GGUF_U64);
    gb_u64(g, UINT64_MAX);
    gb_key(g, "u64max32", SL_GGUF_U64);
    gb_u64(g, UINT32_MAX);
    gb_key(g, "u64over32", SL_GGUF_U64);
    gb_u64(g, 1ull << 32);
    gb_key(g, "i64", SL_GGUF_I64);
    gb_u64(g, 1ull << 63);
    gb_key(g, "f32", SL_GGUF_F32);
    gb_u32(g, 0x3F800000); /* 1.0 */
    gb_key(g, "f64", SL_GGUF_F64);
    gb_u64(g, 0xBFE0000000000000); /* -0.5 */
    gb_key(g, "nan", SL_GGUF_F32);
    gb_u32(g, 0x7FC00000);
    gb_key(g, "true", SL_GGUF_BOOL);
    gb_u8(g, 2);
    gb_key(g, "false", SL_GGUF_BOOL);
    gb_u8(g, 0);
    gb_key_str(g, "str", "text");
    gb_key_str(g, "empty", "");
    gb_key_array(g, "ints", SL_GGUF_I16, 3);
    gb_u16(g, 1);
    gb_u16(g, 0xFFFF);
    gb_u16(g, 3);
    gb_key_array(g, "strs", SL_GGUF_STR, 2);
    gb_str(g, "one");
    gb_str(g, "");
    assert_ok(gb_open(g, &f->gguf, &err), &err);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    fixture *f = *state;
    sl_gguf_close(&f->gguf);
    gb_done(&f->bytes);
    free(f);
    return 0;
}

static void test_unsigned_integers_convert_when_they_fit(void **state)
{
    const fixture *f = *state;
    static const struct {
        const char *key;
        uint64_t value;
        bool fits_u32;
    } rows[] = {{"u8", 200, true}, {"u16", 65535, true}, {"u32", UINT32_MAX, true},
            {"u64max32", UINT32_MAX, true}, {"u64over32", 1ull << 32, false},
            {"u64", UINT64_MAX, false}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint64_t u64 = 0;
        uint32_t u32 = 77;
        sl_error err = {0};
        assert_ok(sl_gguf_get_u64(f->gguf, rows[i].key, &u64, &err), &err);
        assert_int_equal(u64, rows[i].value);
        int r = sl_gguf_get_u32(f->gguf, rows[i].key, &u32, &err);
        assert_int_equal(r, rows[i].fits_u32 ? 0 : SL_EFORMAT);
        assert_int_equal(u32, rows[i].fits_u32 ? rows[i].value : 77);
    }
}

static void test_negative_integers_are_not_unsigned(void **state)
{
    const fixture *f = *state;
    const char *const keys[] = {"i8", "i16", "i32", "i64"};
    const int64_t values[] = {-1, INT16_MIN, INT32_MIN, INT64_MIN};
    for (size_t i = 0; i < 4; i++) {
        uint64_t u64 = 77;
        int64_t i64 = 0;
        sl_error err = {0};
        assert_int_equal(sl_gguf_get_u64(f->gguf, keys[i], &u64, &err), SL_EFORMAT);
        assert_int_equal(u64, 77);
        expect_good_message(&err, keys[i], "-");
        assert_ok(sl_gguf_get_i64(f->gguf, keys[i], &i64, &err), &err);
        assert_int_equal(i64, values[i]);
    }
}

static void test_signed_reads_of_unsigned_values(void **state)
{
    const fixture *f = *state;
    int64_t v = 0;
    sl_error err = {0};
    assert_ok(sl_gguf_get_i64(f->gguf, "u64over32", &v, &err), &err);
    assert_int_equal(v, 1ll << 32);
    assert_int_equal(sl_gguf_get_i64(f->gguf, "u64", &v, &err), SL_EFORMAT);
    expect_good_message(&err, "u64", "18446744073709551615");
}

static void test_floats_bools_and_strings(void **state)
{
    const fixture *f = *state;
    double d = 0;
    bool b = false;
    sl_span s = {0};
    sl_error err = {0};
    assert_ok(sl_gguf_get_f64(f->gguf, "f32", &d, &err), &err);
    assert_true(d == 1.0);
    assert_ok(sl_gguf_get_f64(f->gguf, "f64", &d, &err), &err);
    assert_true(d == -0.5);
    assert_ok(sl_gguf_get_f64(f->gguf, "nan", &d, &err), &err);
    assert_true(isnan(d));
    assert_ok(sl_gguf_get_bool(f->gguf, "true", &b, &err), &err);
    assert_true(b);
    assert_ok(sl_gguf_get_bool(f->gguf, "false", &b, &err), &err);
    assert_false(b);
    assert_ok(sl_gguf_get_str(f->gguf, "str", &s, &err), &err);
    assert_int_equal(s.n, 4);
    assert_memory_equal(s.p, "text", 4);
    assert_ok(sl_gguf_get_str(f->gguf, "empty", &s, &err), &err);
    assert_int_equal(s.n, 0);
}

/* Every getter on every key: it works or says the key, the type found and the type needed. */
static void test_wrong_types_are_named(void **state)
{
    const fixture *f = *state;
    for (uint64_t i = 0; i < sl_gguf_n_kv(f->gguf); i++) {
        const sl_gguf_kv *kv = sl_gguf_kv_at(f->gguf, i);
        char key[16] = {0};
        uint64_t u64 = 0;
        double d = 0;
        bool b = false;
        sl_span s = {0};
        sl_error err = {0};
        memcpy(key, kv->key.p, kv->key.n);
        const char *type = sl_gguf_type_name(kv->elem_type);
        bool is_single = kv->type != SL_GGUF_ARRAY;
        bool is_real = kv->type == SL_GGUF_F32 || kv->type == SL_GGUF_F64;
        bool is_whole =
                is_single && !is_real && kv->type != SL_GGUF_BOOL && kv->type != SL_GGUF_STR;
        int r = sl_gguf_get_str(f->gguf, key, &s, &err);
        assert_int_equal(r, kv->type == SL_GGUF_STR ? 0 : SL_EFORMAT);
        if (r < 0) {
            expect_good_message(&err, key, type);
            expect_good_message(&err, key, "need a string");
        }
        assert_int_equal(sl_gguf_get_bool(f->gguf, key, &b, &err),
                kv->type == SL_GGUF_BOOL ? 0 : SL_EFORMAT);
        assert_int_equal(sl_gguf_get_f64(f->gguf, key, &d, &err), is_real ? 0 : SL_EFORMAT);
        if (!is_whole) {
            assert_int_equal(sl_gguf_get_u64(f->gguf, key, &u64, &err), SL_EFORMAT);
            expect_good_message(&err, key, type);
        }
    }
}

static void test_missing_keys(void **state)
{
    const fixture *f = *state;
    uint64_t v = 77;
    sl_error err = {0};
    assert_null(sl_gguf_find(f->gguf, "none"));
    assert_null(sl_gguf_find(f->gguf, ""));
    assert_int_equal(sl_gguf_get_u64(f->gguf, "no\x1bne", &v, &err), SL_ENOENT);
    expect_good_message(&err, "no\\x1bne", "missing");
    assert_int_equal(v, 77);
    assert_int_equal(sl_gguf_get_u64(f->gguf, "none", &v, NULL), SL_ENOENT);
}

static void test_elements(void **state)
{
    const fixture *f = *state;
    const sl_gguf_kv *ints = sl_gguf_find(f->gguf, "ints");
    int64_t v = 0;
    double d = 0;
    sl_error err = {0};
    assert_ok(sl_gguf_elem_i64(ints, 1, &v, &err), &err);
    assert_int_equal(v, -1);
    assert_int_equal(sl_gguf_elem_i64(ints, 3, &v, &err), SL_EINVAL);
    assert_int_equal(sl_gguf_elem_f64(ints, 0, &d, &err), SL_EFORMAT);
    assert_int_equal(sl_gguf_elem_i64(sl_gguf_find(f->gguf, "strs"), 0, &v, &err), SL_EFORMAT);
    assert_ok(sl_gguf_elem_f64(sl_gguf_find(f->gguf, "f64"), 0, &d, &err), &err);
    assert_true(d == -0.5);
}

static void test_strings_of_an_array(void **state)
{
    const fixture *f = *state;
    const sl_gguf_kv *strs = sl_gguf_find(f->gguf, "strs");
    const char *cursor = strs->data;
    sl_span s = {0};
    sl_error err = {0};
    assert_ok(sl_gguf_next_str(strs, &cursor, &s, &err), &err);
    assert_int_equal(s.n, 3);
    assert_memory_equal(s.p, "one", 3);
    assert_ok(sl_gguf_next_str(strs, &cursor, &s, &err), &err);
    assert_int_equal(s.n, 0);
    assert_int_equal(sl_gguf_next_str(strs, &cursor, &s, &err), SL_EINVAL);
}

/* A file that is rewritten in place gives other values, never a read outside. */
static void test_a_length_that_changes_under_the_index(void **state)
{
    fixture *f = *state;
    const sl_gguf_kv *str = sl_gguf_find(f->gguf, "str");
    size_t at = (size_t)(str->data - (const char *)f->bytes.p);
    sl_span s = {0};
    sl_error err = {0};
    for (unsigned i = 0; i < 8; i++) {
        f->bytes.p[at + i] = 0xFF;
    }
    assert_int_equal(sl_gguf_get_str(f->gguf, "str", &s, &err), SL_ECHANGED);
    expect_good_message(&err, "str", "open the file again");
    f->bytes.p[at] = 5;
    memset(f->bytes.p + at + 1, 0, 7);
    assert_int_equal(sl_gguf_get_str(f->gguf, "str", &s, &err), SL_ECHANGED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test_setup_teardown(
                    test_unsigned_integers_convert_when_they_fit, set_up, tear_down),
            cmocka_unit_test_setup_teardown(
                    test_negative_integers_are_not_unsigned, set_up, tear_down),
            cmocka_unit_test_setup_teardown(
                    test_signed_reads_of_unsigned_values, set_up, tear_down),
            cmocka_unit_test_setup_teardown(test_floats_bools_and_strings, set_up, tear_down),
            cmocka_unit_test_setup_teardown(test_wrong_types_are_named, set_up, tear_down),
            cmocka_unit_test_setup_teardown(test_missing_keys, set_up, tear_down),
            cmocka_unit_test_setup_teardown(test_elements, set_up, tear_down),
            cmocka_unit_test_setup_teardown(test_strings_of_an_array, set_up, tear_down),
            cmocka_unit_test_setup_teardown(
                    test_a_length_that_changes_under_the_index, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
