/* The header and the keys: groups G1-01 to G1-12 and G1-25, and their neighbours. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gguf_bytes.h"

#include "base/mem.h"
#include "os/os_process.h"

static void cut_to(gguf_bytes *g, size_t n)
{
    gguf_bytes cut = {0};
    gb_raw(&cut, g->p, n);
    gb_done(g);
    *g = cut;
}

static void test_G1_01_every_length_below_the_header(void **state)
{
    (void)state;
    for (size_t n = 0; n < 24; n++) {
        char needle[64];
        gguf_bytes g = gb_start(3, 0, 0);
        cut_to(&g, n);
        snprintf(needle, sizeof needle, "file too short: have %zu bytes, need 24", n);
        gb_expect_refused(&g, needle);
    }
    gguf_bytes whole = gb_start(3, 0, 0);
    gb_expect_accepted(&whole);
}

static void test_G1_02_foreign_files_get_a_hint(void **state)
{
    static const struct {
        const char *start;
        size_t n_zeros;
        const char *needle;
    } rows[] = {
            {"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 123\n", 0, "Git LFS"},
            {"<!DOCTYPE html><html>", 48098, "HTML"},
            {"<!doctype html>", 0, "HTML"},
            {"<html><body>", 0, "HTML"},
            {"tjgg", 1024, "legacy GGML"},
            {"lmgg", 0, "legacy GGML"},
            {"\x1b[2J", 60, "'\\x1b[2J'"},
            {"\x40", 3, "'@\\x00\\x00\\x00'"},
            {"PK\x03\x04", 100, "convert it"},
            {"ggml", 9, "legacy GGML"},
            {"\xEF\xBB\xBF\r\n <!DOCTYPE html>", 0, "HTML"},
            {"{\"error\":\"Repository not found\"}", 0, "JSON"},
            {"\x1f\x8b\x08", 20, "unpack"},
            {"    ", 0, "'    '"},
            {"GGU", 1, "not a GGUF file"},
            {"\n\n", 0, "'\\x0a\\x0a'"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        gguf_bytes g = {0};
        gb_raw(&g, rows[i].start, strlen(rows[i].start));
        gb_fill(&g, 0, rows[i].n_zeros);
        gb_expect_refused(&g, rows[i].needle);
    }
    gguf_bytes g = {0};
    gb_u64(&g, 64);
    gb_raw(&g, "{\"__metadata__\":{}}", 19);
    gb_fill(&g, ' ', 45);
    gb_expect_refused(&g, "safetensors");
}

static void test_G1_03_versions(void **state)
{
    static const struct {
        uint32_t version;
        const char *needle; /* NULL = accepted */
    } rows[] = {
            {0, "GGUF version 0, supported are 2 and 3"},
            {1, "GGUF version 1, supported are 2 and 3"},
            {2, NULL},
            {3, NULL},
            {4, "GGUF version 4, supported are 2 and 3"},
            {0x03000000, "big-endian"},
            {0x02000000, "big-endian"},
            {0x00010000, "big-endian"},
            {0x00010003, "GGUF version 65539"},
            {0xFFFFFFFF, "GGUF version 4294967295"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        gguf_bytes g = gb_start(rows[i].version, 0, 0);
        if (rows[i].needle) {
            /* Counts that lie too: the version is refused before they are looked at. */
            memset(g.p + 8, 0xFF, 16);
            gb_expect_refused(&g, rows[i].needle);
        } else {
            gb_expect_accepted(&g);
        }
    }
    gguf_bytes swapped = gb_start(0x03000000, 0, 0);
    memcpy(swapped.p, "FUGG", 4);
    gb_expect_refused(&swapped, "big-endian");
}

static void test_G1_04_v1_with_an_empty_string(void **state)
{
    (void)state;
    gguf_bytes g = {0};
    gb_raw(&g, "GGUF", 4);
    gb_u32(&g, 1);
    gb_u32(&g, 0);
    gb_u32(&g, 1);
    gb_u64(&g, 0);
    gb_expect_refused(&g, "GGUF version 1");
}

static void test_G1_05_counts_that_lie(void **state)
{
    const uint64_t counts[] = {UINT64_MAX, 1ull << 63, 1ull << 40, 1ull << 32, 1,
            UINT64_MAX / sizeof(sl_gguf_kv) + 2, UINT64_MAX / sizeof(sl_gguf_tensor) + 2,
            UINT64_MAX / 14 + 1, UINT64_MAX / 24 + 1};
    (void)state;
    uint64_t before = sl__process_rss().peak_bytes;
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        gguf_bytes keys = gb_start(3, 0, counts[i]);
        gb_expect_refused(&keys, "keys");
        gguf_bytes tensors = gb_start(3, counts[i], 0);
        gb_expect_refused(&tensors, "tensors");
        gguf_bytes both = gb_start(3, counts[i], counts[i]);
        gb_expect_refused(&both, "keys");
    }
    assert_true(sl__process_rss().peak_bytes - before < 1u << 20);
}

/* A count that the file's size allows, but its bytes do not hold. */
static void test_G1_05_count_within_the_size_takes_no_memory(void **state)
{
    (void)state;
    const size_t n_junk = 8u << 20;
    gguf_bytes g = gb_start(3, n_junk / 48, n_junk / 28);
    gb_fill(&g, 0xFF, n_junk);
    uint64_t before = sl__process_rss().peak_bytes;
    sl_gguf *gguf = NULL;
    sl_error err = {0};
    assert_int_equal(gb_open(&g, &gguf, &err), SL_EFORMAT);
    assert_true(sl__process_rss().peak_bytes - before < 1u << 20);
    gb_done(&g);
}

static void test_G1_06_string_lengths_that_lie(void **state)
{
    const uint64_t lengths[] = {UINT64_MAX, UINT64_MAX - 7, 1ull << 63, 0x3fffffff, 4};
    (void)state;
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        gguf_bytes value = gb_start(3, 0, 1);
        gb_key(&value, "k", SL_GGUF_STR);
        gb_u64(&value, lengths[i]);
        gb_raw(&value, "abc", 3);
        gb_expect_refused(&value, "string");

        gguf_bytes key = gb_start(3, 0, 1);
        gb_u64(&key, lengths[i]);
        gb_raw(&key, "abcdef", lengths[i] == 4 ? 3 : 6);
        gb_expect_refused(&key, "");

        gguf_bytes name = gb_start(3, 1, 0);
        gb_u64(&name, lengths[i]);
        gb_raw(&name, "abcdefghijklmnop", lengths[i] == 4 ? 3 : 16);
        gb_expect_refused(&name, "");
    }
    gguf_bytes exact = gb_start(3, 0, 1);
    gb_key_str(&exact, "k", "abc");
    gb_expect_accepted(&exact);
}

static void test_G1_06_last_string_of_an_array_leaves_the_file(void **state)
{
    (void)state;
    for (uint64_t n_more = 1; n_more < 20; n_more++) {
        gguf_bytes g = gb_start(3, 0, 1);
        gb_key_array(&g, "tokens", SL_GGUF_STR, 3);
        gb_str(&g, "a");
        gb_str(&g, "");
        gb_u64(&g, 5 + n_more);
        gb_raw(&g, "abcde", 5);
        gb_expect_refused(&g, "string");
    }
    gguf_bytes no_length = gb_start(3, 0, 1);
    gb_key_array(&no_length, "tokens", SL_GGUF_STR, 3);
    gb_str(&no_length, "a long enough string for three lengths");
    gb_str(&no_length, "b");
    gb_raw(&no_length, "\0\0\0\0\0\0\0", 7);
    gb_expect_refused(&no_length, "length of a string");
}

static void test_G1_08_unknown_types(void **state)
{
    const uint32_t unknown[] = {13, 14, 255, 256, 0x100, 0x80000000, 0xFFFFFFFF};
    (void)state;
    for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; i++) {
        char needle[64];
        snprintf(needle, sizeof needle, "'k' has the unknown value type %u", unknown[i]);
        gguf_bytes scalar = gb_start(3, 0, 1);
        gb_key(&scalar, "k", unknown[i]);
        gb_fill(&scalar, 0, 16);
        gb_expect_refused(&scalar, needle);
        for (uint64_t n = 0; n < 2; n++) {
            gguf_bytes array = gb_start(3, 0, 1);
            gb_key_array(&array, "k", unknown[i], n);
            gb_fill(&array, 0, 16);
            gb_expect_refused(&array, "'k' is an array of the unknown type");
        }
    }
}

static void test_G1_08_nested_arrays(void **state)
{
    (void)state;
    gguf_bytes two = gb_start(3, 0, 1);
    gb_key_array(&two, "k", SL_GGUF_ARRAY, 1);
    gb_u32(&two, SL_GGUF_U8);
    gb_u64(&two, 1);
    gb_u8(&two, 1);
    gb_expect_refused(&two, "array of arrays");

    gguf_bytes deep = gb_start(3, 0, 1);
    gb_key(&deep, "k", SL_GGUF_ARRAY);
    for (int i = 0; i < 3000; i++) {
        gb_u32(&deep, SL_GGUF_ARRAY);
        gb_u64(&deep, 1);
    }
    gb_expect_refused(&deep, "array of arrays");

    gguf_bytes empty = gb_start(3, 0, 1);
    gb_key_array(&empty, "k", SL_GGUF_ARRAY, 0);
    gb_expect_refused(&empty, "array of arrays");
}

/* Numeric arrays whose count lies: one element too many, products that wrap, the last byte missing. */
static void test_G1_08_array_counts_that_lie(void **state)
{
    static const unsigned sizes[SL_GGUF_TYPE_COUNT] = {1, 1, 2, 2, 4, 4, 4, 1, 8, 0, 8, 8, 8};
    (void)state;
    for (uint32_t type = 0; type < SL_GGUF_TYPE_COUNT; type++) {
        if (type == SL_GGUF_ARRAY) {
            continue;
        }
        const uint64_t counts[] = {UINT64_MAX, UINT64_MAX / sizes[type] + (sizes[type] > 1 ? 2 : 0),
                1ull << 61, 1ull << 62, 1ull << 63, 5};
        for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
            gguf_bytes g = gb_start(3, 0, 1);
            gb_key_array(&g, "k", type, counts[i]);
            gb_fill(&g, 0, 5 * (size_t)sizes[type] - 1);
            gb_expect_refused(&g, type == SL_GGUF_STR ? "" : "'k' has");
        }
        gguf_bytes g = gb_start(3, 0, 1);
        gb_key_array(&g, "k", type, 5);
        gb_fill(&g, 0, 5 * (size_t)sizes[type]);
        gb_expect_accepted(&g);
    }
}

static void test_G1_08_values_cut_at_every_byte(void **state)
{
    (void)state;
    gguf_bytes whole = gb_start(3, 0, 3);
    gb_key(&whole, "u64", SL_GGUF_U64);
    gb_u64(&whole, 7);
    gb_key_array(&whole, "list", SL_GGUF_U64, 3);
    gb_fill(&whole, 1, 24);
    gb_key_str(&whole, "text", "hello");
    for (size_t n = 24; n < whole.n; n++) {
        gguf_bytes cut = {0};
        gb_raw(&cut, whole.p, n);
        gb_expect_refused(&cut, "");
    }
    gb_expect_accepted(&whole);
}

static void test_G1_09_empty_and_duplicate_keys(void **state)
{
    (void)state;
    gguf_bytes empty = gb_start(3, 0, 1);
    gb_key_u32(&empty, "", 1);
    gb_expect_refused(&empty, "empty");

    gguf_bytes twice = gb_start(3, 0, 3);
    gb_key_u32(&twice, "a", 1);
    gb_key_u32(&twice, "b", 1);
    gb_key_str(&twice, "a", "x");
    gb_expect_refused(&twice, "key 'a' is there twice");

    gguf_bytes alike = gb_start(3, 0, 3);
    gb_key_u32(&alike, "a", 1);
    gb_key_u32(&alike, "A", 1);
    gb_key_u32(&alike, "a ", 1);
    gb_expect_accepted(&alike);
}

static void test_G1_11_empty_arrays(void **state)
{
    (void)state;
    for (uint32_t type = 0; type < SL_GGUF_TYPE_COUNT; type++) {
        for (int is_last = 0; is_last < 2 && type != SL_GGUF_ARRAY; is_last++) {
            gguf_bytes g = gb_start(3, 0, is_last ? 1 : 2);
            sl_gguf *gguf = NULL;
            sl_error err = {0};
            gb_key_array(&g, "general.tags", type, 0);
            if (!is_last) {
                gb_key_u32(&g, "next", 1);
            }
            assert_ok(gb_open(&g, &gguf, &err), &err);
            const sl_gguf_kv *kv = sl_gguf_find(gguf, "general.tags");
            assert_non_null(kv);
            assert_int_equal(kv->n, 0);
            assert_int_equal(kv->n_bytes, 0);
            assert_int_equal(kv->elem_type, type);
            assert_non_null(kv->data);
            sl_gguf_close(&gguf);
            gb_expect_accepted(&g);
        }
    }
}

static void test_G1_12_alignment(void **state)
{
    static const struct {
        uint32_t value;
        bool is_good;
    } rows[] = {{0, false}, {3, false}, {13, false}, {33, false}, {1, true}, {2, true}, {8, true},
            {32, true}, {64, true}, {4096, true}, {1u << 20, true}, {1u << 21, false},
            {1u << 30, false}, {1u << 31, false}, {UINT32_MAX, false}};
    const uint64_t ne[] = {4};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        for (unsigned n_tensors = 0; n_tensors < 2; n_tensors++) {
            gguf_bytes g = gb_start(3, n_tensors, 1);
            gb_key_u32(&g, "general.alignment", rows[i].value);
            if (n_tensors > 0) {
                gb_tensor(&g, "t", 1, ne, 0, 0);
                gb_pad(&g, rows[i].is_good ? rows[i].value : 32);
                gb_fill(&g, 1, 16);
            }
            if (!rows[i].is_good) {
                gb_expect_refused(&g, "general.alignment is");
                continue;
            }
            sl_gguf *gguf = NULL;
            sl_error err = {0};
            assert_ok(gb_open(&g, &gguf, &err), &err);
            assert_int_equal(sl_gguf_alignment(gguf), rows[i].value);
            assert_int_equal(n_tensors ? sl_gguf_data_offset(gguf) % rows[i].value : 0, 0);
            sl_gguf_close(&gguf);
            gb_expect_accepted(&g);
        }
    }
}

static void test_G1_12_alignment_of_a_wrong_type(void **state)
{
    (void)state;
    for (uint32_t type = 0; type < SL_GGUF_TYPE_COUNT; type++) {
        if (type == SL_GGUF_U32) {
            continue;
        }
        gguf_bytes g = gb_start(3, 0, 1);
        gb_key(&g, "general.alignment", type);
        if (type == SL_GGUF_ARRAY) {
            gb_u32(&g, SL_GGUF_U32);
            gb_u64(&g, 1);
            gb_u32(&g, 32);
        } else if (type == SL_GGUF_STR) {
            gb_str(&g, "32");
        } else {
            gb_u64(&g, 32);
        }
        gb_expect_refused(&g, "general.alignment has type");
    }
}

static void test_G1_25_any_byte_in_values_but_no_nul_in_keys(void **state)
{
    static const unsigned char odd[] = {0xFF, 0xFE, 0, 'a', 0x1B};
    (void)state;
    gguf_bytes g = gb_start(3, 0, 2);
    sl_gguf *gguf = NULL;
    sl_error err = {0};
    gb_key(&g, "v", SL_GGUF_STR);
    gb_u64(&g, sizeof odd);
    gb_raw(&g, odd, sizeof odd);
    gb_key_array(&g, "tokens", SL_GGUF_STR, 3);
    gb_str(&g, "\xFF");
    gb_str(&g, "");
    gb_u64(&g, 1u << 20);
    gb_fill(&g, 'x', 1u << 20);
    assert_ok(gb_open(&g, &gguf, &err), &err);
    sl_span s = {0};
    assert_ok(sl_gguf_get_str(gguf, "v", &s, &err), &err);
    assert_int_equal(s.n, sizeof odd);
    assert_memory_equal(s.p, odd, sizeof odd);
    sl_gguf_close(&gguf);
    gb_expect_accepted(&g);

    gguf_bytes nul = gb_start(3, 0, 1);
    gb_u64(&nul, 3);
    gb_raw(&nul, "a\0b", 3);
    gb_u32(&nul, SL_GGUF_U8);
    gb_u8(&nul, 1);
    gb_expect_refused(&nul, "'a\\x00b' holds a NUL");
}

static void test_G1_25_length_of_keys(void **state)
{
    (void)state;
    for (uint64_t n = 65534; n <= 65537; n++) {
        gguf_bytes g = gb_start(3, 0, 1);
        gb_u64(&g, n);
        gb_fill(&g, 'k', (size_t)n);
        gb_u32(&g, SL_GGUF_U8);
        gb_u8(&g, 1);
        if (n <= 65535) {
            gb_expect_accepted(&g);
        } else {
            gb_expect_refused(&g, "at most 65535");
        }
    }
}

/* Whatever allocation fails, opening says so and leaves nothing: the leak check is the sanitizer's. */
static void test_every_failing_allocation(void **state)
{
    const uint64_t ne[] = {4};
    (void)state;
    gguf_bytes g = gb_start(3, 40, 40);
    for (unsigned i = 0; i < 40; i++) {
        char key[16];
        snprintf(key, sizeof key, "key%u", i);
        gb_key_u32(&g, key, i);
    }
    for (unsigned i = 0; i < 40; i++) {
        char name[16];
        snprintf(name, sizeof name, "t%u", i);
        gb_tensor(&g, name, 1, ne, 0, (uint64_t)i * 32);
    }
    gb_pad(&g, 32);
    gb_fill(&g, 0, (size_t)40 * 32);
    int r = SL_ENOMEM;
    long n = 0;
    for (; r == SL_ENOMEM; n++) {
        sl_gguf *gguf = NULL;
        sl_error err = {0};
        sl__mem_fail_after(n);
        r = gb_open(&g, &gguf, &err);
        sl__mem_fail_after(-1);
        assert_true(r == SL_ENOMEM || r == 0);
        assert_int_equal(err.code, r);
        assert_true((gguf != NULL) == (r == 0));
        sl_gguf_close(&gguf);
    }
    assert_true(n > 6);
    gb_expect_accepted(&g);
}

static void test_close_accepts_nothing(void **state)
{
    (void)state;
    sl_gguf *none = NULL;
    sl_gguf_close(&none);
    sl_gguf_close(NULL);
    assert_null(none);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_G1_01_every_length_below_the_header),
            cmocka_unit_test(test_G1_02_foreign_files_get_a_hint),
            cmocka_unit_test(test_G1_03_versions),
            cmocka_unit_test(test_G1_04_v1_with_an_empty_string),
            cmocka_unit_test(test_G1_05_counts_that_lie),
            cmocka_unit_test(test_G1_05_count_within_the_size_takes_no_memory),
            cmocka_unit_test(test_G1_06_string_lengths_that_lie),
            cmocka_unit_test(test_G1_06_last_string_of_an_array_leaves_the_file),
            cmocka_unit_test(test_G1_08_unknown_types),
            cmocka_unit_test(test_G1_08_nested_arrays),
            cmocka_unit_test(test_G1_08_array_counts_that_lie),
            cmocka_unit_test(test_G1_08_values_cut_at_every_byte),
            cmocka_unit_test(test_G1_09_empty_and_duplicate_keys),
            cmocka_unit_test(test_G1_11_empty_arrays),
            cmocka_unit_test(test_G1_12_alignment),
            cmocka_unit_test(test_G1_12_alignment_of_a_wrong_type),
            cmocka_unit_test(test_G1_25_any_byte_in_values_but_no_nul_in_keys),
            cmocka_unit_test(test_G1_25_length_of_keys),
            cmocka_unit_test(test_every_failing_allocation),
            cmocka_unit_test(test_close_accepts_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
