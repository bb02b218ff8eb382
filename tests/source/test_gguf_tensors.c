/* Descriptions of tensors and where their bytes are: groups G1-13 to G1-22, and their neighbours. */
#include <stdio.h>
#include <string.h>

#include "gguf_bytes.h"

enum {
    F32 = 0,
    Q4_0 = 2,
    Q8_0 = 8,
    Q4_K = 12,
    I8 = 24
};

/* One tensor 't' and n_data bytes behind the padded header. */
static gguf_bytes one_tensor(
        uint32_t n_dims, const uint64_t *ne, uint32_t type, uint64_t offset, size_t n_data)
{
    gguf_bytes g = gb_start(3, 1, 0);
    gb_tensor(&g, "t", n_dims, ne, type, offset);
    gb_pad(&g, 32);
    gb_fill(&g, 1, n_data);
    return g;
}

static void test_G1_13_too_many_dimensions(void **state)
{
    const uint32_t n_dims[] = {5, 6, 1000000, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF};
    (void)state;
    for (size_t i = 0; i < sizeof n_dims / sizeof n_dims[0]; i++) {
        gguf_bytes g = gb_start(3, 1, 0);
        gb_str(&g, "t");
        gb_u32(&g, n_dims[i]);
        gb_fill(&g, 0, 64);
        gb_expect_refused(&g, "dimensions, at most 4");
    }
    const uint64_t ones[] = {1, 1, 1, 1};
    gguf_bytes four = one_tensor(4, ones, F32, 0, 4);
    gb_expect_accepted(&four);
}

static void expect_one(gguf_bytes *g, uint64_t n_bytes)
{
    sl_gguf *gguf = NULL;
    sl_error err = {0};
    assert_ok(gb_open(g, &gguf, &err), &err);
    assert_int_equal(sl_gguf_tensor_at(gguf, 0)->n_bytes, n_bytes);
    sl_gguf_close(&gguf);
    gb_expect_accepted(g);
}

static void test_G1_14_zero_dimensions_and_scalars(void **state)
{
    const uint64_t four_zero[] = {4, 0};
    const uint64_t one_zero[] = {1, 0};
    const uint64_t zero[] = {0, 0, 0, 0};
    const uint64_t zero_huge[] = {0, INT64_MAX};
    (void)state;
    gguf_bytes g = one_tensor(2, four_zero, F32, 0, 0);
    expect_one(&g, 0);
    g = one_tensor(2, one_zero, F32, 0, 0);
    expect_one(&g, 0);
    g = one_tensor(1, zero, F32, 0, 0);
    expect_one(&g, 0);
    g = one_tensor(4, zero, Q8_0, 0, 0);
    expect_one(&g, 0);
    g = one_tensor(2, zero_huge, I8, 0, 0);
    expect_one(&g, 0);
    g = one_tensor(0, NULL, F32, 0, 4);
    expect_one(&g, 4);
    g = one_tensor(0, NULL, Q8_0, 0, 34);
    gb_expect_refused(&g, "multiple of 32");
}

static void test_G1_14_tensors_around_an_empty_one(void **state)
{
    const uint64_t zero[] = {0};
    const uint64_t eight[] = {8};
    (void)state;
    gguf_bytes g = gb_start(3, 3, 0);
    gb_tensor(&g, "z", 1, zero, F32, 0);
    gb_tensor(&g, "t", 1, eight, F32, 0);
    gb_tensor(&g, "end", 1, zero, F32, 32);
    gb_pad(&g, 32);
    gb_fill(&g, 1, 32);
    sl_gguf *gguf = NULL;
    sl_error err = {0};
    assert_ok(gb_open(&g, &gguf, &err), &err);
    const sl_gguf_tensor *z = sl_gguf_find_tensor(gguf, (sl_span){"z", 1});
    const sl_gguf_tensor *t = sl_gguf_find_tensor(gguf, (sl_span){"t", 1});
    assert_int_equal(z->offset, t->offset);
    assert_int_equal(t->n_bytes, 32);
    assert_int_equal(t->ne[1], 1);
    sl_gguf_close(&gguf);
    gb_expect_accepted(&g);
}

/* Strides of an empty tensor must not wrap either. */
static void test_G1_15_products_that_wrap(void **state)
{
    static const struct {
        uint32_t type;
        uint32_t n_dims;
        uint64_t ne[4];
    } rows[] = {
            {Q8_0, 2, {1152, (1ull << 42) + 1}},
            {F32, 4, {UINT64_MAX, 2, 1, 1}},
            {I8, 2, {1ull << 32, (1ull << 32) + 1}},
            {I8, 2, {1ull << 32, 1ull << 32}},
            {I8, 2, {1ull << 33, 1ull << 31}},
            {F32, 1, {1ull << 62}},
            {F32, 1, {(1ull << 62) + 4}},
            {I8, 1, {1ull << 63}},
            {I8, 1, {UINT64_MAX}},
            {I8, 1, {INT64_MAX}},
            {F32, 4, {1ull << 16, 1ull << 16, 1ull << 16, 1ull << 16}},
            {F32, 4, {3, 0x5555555555555556, 1, 1}},
            {Q4_K, 2, {256, 1ull << 57}},
            {I8, 3, {1ull << 40, 1ull << 40, 0}},
            {F32, 2, {0, UINT64_MAX}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        gguf_bytes g = one_tensor(rows[i].n_dims, rows[i].ne, rows[i].type, 0, 4096);
        gb_expect_refused(&g, "tensor 't'");
    }
}

static void test_G1_15_rows_of_broken_blocks(void **state)
{
    static const struct {
        uint32_t type;
        uint64_t n_row;
        const char *needle;
    } rows[] = {{Q8_0, 1, "multiple of 32"}, {Q8_0, 31, "multiple of 32"},
            {Q8_0, 33, "multiple of 32"}, {Q4_0, 16, "multiple of 32"},
            {Q4_K, 128, "multiple of 256"}, {40, 32, "multiple of 64"},
            {41, 64, "multiple of 128"}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const uint64_t ne[] = {rows[i].n_row, 256};
        gguf_bytes g = one_tensor(2, ne, rows[i].type, 0, 1u << 18);
        gb_expect_refused(&g, rows[i].needle);
    }
}

static void test_G1_15_type_numbers_that_are_no_type(void **state)
{
    const uint32_t types[] = {
            4, 5, 31, 32, 33, 36, 37, 38, 43, 44, 255, 256, 0x80000000, 0xFFFFFFFF};
    const uint64_t ne[] = {256};
    (void)state;
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        char needle[40];
        snprintf(needle, sizeof needle, "type number %u", types[i]);
        gguf_bytes g = one_tensor(1, ne, types[i], 0, 4096);
        gb_expect_refused(&g, needle);
    }
}

static void test_G1_18_sums_that_wrap(void **state)
{
    const uint64_t ne[] = {0x7FFFFFFFFFFFFFC0};
    (void)state;
    gguf_bytes g = gb_start(3, 2, 0);
    gb_tensor(&g, "a", 1, ne, I8, 0);
    gb_tensor(&g, "b", 1, ne, I8, 0x7FFFFFFFFFFFFFC0);
    gb_pad(&g, 32);
    gb_fill(&g, 0, 32);
    gb_expect_refused(&g, "tensor 'a'");
}

/* Two F32 [4] tensors over 96 data bytes. */
static void expect_offsets(uint64_t a, uint64_t b, const char *needle)
{
    const uint64_t ne[] = {4};
    gguf_bytes g = gb_start(3, 2, 0);
    gb_tensor(&g, "a", 1, ne, F32, a);
    gb_tensor(&g, "b", 1, ne, F32, b);
    gb_pad(&g, 32);
    gb_fill(&g, 1, 96);
    if (needle) {
        gb_expect_refused(&g, needle);
    } else {
        gb_expect_accepted(&g);
    }
}

static void test_G1_21_offsets(void **state)
{
    (void)state;
    expect_offsets(0, 32, NULL);
    expect_offsets(8, 32, "not aligned");
    expect_offsets(0, 16, "not aligned");
    expect_offsets(0, 33, "not aligned");
    expect_offsets(0, 64, "gap");
    expect_offsets(0, 0, "overlaps");
    expect_offsets(32, 0, "out of order");
    expect_offsets(0, UINT64_MAX, "not aligned");
    expect_offsets(0, UINT64_MAX - 31, "gap");
    expect_offsets(0, UINT64_MAX - 15, "not aligned");
    expect_offsets(UINT64_MAX - 31, 0, "out of order");
    expect_offsets(1ull << 63, 32, "out of order");
}

static void test_G1_22_every_length_of_the_data(void **state)
{
    const uint64_t ne[] = {4};
    (void)state;
    for (size_t n_data = 0; n_data <= 33; n_data++) {
        char needle[64];
        gguf_bytes g = one_tensor(1, ne, F32, 0, n_data);
        size_t n_header = g.n - n_data;
        snprintf(needle, sizeof needle, "ends at %zu, file has %zu", n_header + 16, g.n);
        if (n_data < 16) {
            gb_expect_refused(&g, needle);
        } else {
            gb_expect_accepted(&g);
        }
    }
}

static void test_G1_22_cut_before_the_data(void **state)
{
    const uint64_t ne[] = {4};
    const uint64_t zero[] = {0};
    (void)state;
    gguf_bytes no_padding = gb_start(3, 1, 0);
    gb_tensor(&no_padding, "t", 1, ne, F32, 0);
    gb_expect_refused(&no_padding, "truncated");
    gguf_bytes empty = gb_start(3, 1, 0);
    gb_tensor(&empty, "t", 1, zero, F32, 0);
    gb_expect_refused(&empty, "truncated");
}

static void test_G1_22_missing_tail_padding_before_an_empty_tensor(void **state)
{
    const uint64_t ne[] = {4};
    const uint64_t zero[] = {0};
    (void)state;
    gguf_bytes g = gb_start(3, 2, 0);
    gb_tensor(&g, "t", 1, ne, F32, 0);
    gb_tensor(&g, "z", 1, zero, F32, 32);
    gb_pad(&g, 32);
    gb_fill(&g, 1, 16);
    gb_expect_accepted(&g);
}

static void test_G1_22_junk_behind_the_data(void **state)
{
    const uint64_t ne[] = {4};
    (void)state;
    gguf_bytes g = one_tensor(1, ne, F32, 0, 1000);
    gb_expect_accepted(&g);
    gguf_bytes keys_only = gb_start(3, 0, 1);
    gb_key_u32(&keys_only, "k", 1);
    gb_fill(&keys_only, 0xEE, 100);
    gb_expect_accepted(&keys_only);
}

static void test_G1_22_descriptions_cut_at_every_byte(void **state)
{
    const uint64_t ne[] = {2, 2, 2, 2};
    (void)state;
    gguf_bytes whole = gb_start(3, 1, 0);
    gb_tensor(&whole, "weight", 4, ne, F32, 0);
    gb_pad(&whole, 32);
    gb_fill(&whole, 1, 64);
    for (size_t n = 24; n < whole.n; n++) {
        gguf_bytes cut = {0};
        gb_raw(&cut, whole.p, n);
        gb_expect_refused(&cut, "");
    }
    gb_expect_accepted(&whole);
}

static void test_G1_25_names_of_tensors(void **state)
{
    const uint64_t ne[] = {4};
    (void)state;
    for (size_t n = 0; n <= 66; n++) {
        char name[80] = {0};
        memset(name, 'n', n);
        gguf_bytes g = gb_start(3, 1, 0);
        gb_tensor(&g, name, 1, ne, F32, 0);
        gb_pad(&g, 32);
        gb_fill(&g, 1, 16);
        if (n <= 63) {
            gb_expect_accepted(&g);
        } else {
            gb_expect_refused(&g, "at most 63");
        }
    }
    gguf_bytes nul = gb_start(3, 1, 0);
    gb_u64(&nul, 3);
    gb_raw(&nul, "a\0b", 3);
    gb_u32(&nul, 0);
    gb_u32(&nul, F32);
    gb_u64(&nul, 0);
    gb_fill(&nul, 1, 64);
    gb_expect_refused(&nul, "holds a NUL");
}

static void test_G1_09_tensor_names_twice(void **state)
{
    const uint64_t ne[] = {4};
    (void)state;
    gguf_bytes g = gb_start(3, 3, 0);
    gb_tensor(&g, "a", 1, ne, F32, 0);
    gb_tensor(&g, "b", 1, ne, F32, 32);
    gb_tensor(&g, "a", 1, ne, F32, 64);
    gb_pad(&g, 32);
    gb_fill(&g, 1, 96);
    gb_expect_refused(&g, "tensor 'a' is there twice");
}

static void test_v2_has_the_same_layout(void **state)
{
    const uint64_t ne[] = {4};
    (void)state;
    gguf_bytes g = gb_start(2, 1, 1);
    gb_key_u32(&g, "k", 5);
    gb_tensor(&g, "t", 1, ne, F32, 0);
    gb_pad(&g, 32);
    gb_fill(&g, 1, 16);
    sl_gguf *gguf = NULL;
    sl_error err = {0};
    assert_ok(gb_open(&g, &gguf, &err), &err);
    assert_int_equal(sl_gguf_version(gguf), 2);
    sl_gguf_close(&gguf);
    gb_expect_accepted(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_G1_13_too_many_dimensions),
            cmocka_unit_test(test_G1_14_zero_dimensions_and_scalars),
            cmocka_unit_test(test_G1_14_tensors_around_an_empty_one),
            cmocka_unit_test(test_G1_15_products_that_wrap),
            cmocka_unit_test(test_G1_15_rows_of_broken_blocks),
            cmocka_unit_test(test_G1_15_type_numbers_that_are_no_type),
            cmocka_unit_test(test_G1_18_sums_that_wrap),
            cmocka_unit_test(test_G1_21_offsets),
            cmocka_unit_test(test_G1_22_every_length_of_the_data),
            cmocka_unit_test(test_G1_22_cut_before_the_data),
            cmocka_unit_test(test_G1_22_missing_tail_padding_before_an_empty_tensor),
            cmocka_unit_test(test_G1_22_junk_behind_the_data),
            cmocka_unit_test(test_G1_22_descriptions_cut_at_every_byte),
            cmocka_unit_test(test_G1_25_names_of_tensors),
            cmocka_unit_test(test_G1_09_tensor_names_twice),
            cmocka_unit_test(test_v2_has_the_same_layout),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
