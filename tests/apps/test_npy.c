/* Codes as NumPy arrays: written and read back, and everything that is no such array. */
#include "npy.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "test_support.h"

#define FRAMES 3
#define BOOKS  2

static const int32_t sample[FRAMES * BOOKS] = {1, 10, 2, 20, 3, 30};

static char *dir;
static char path[512];

static int set_up(void **state)
{
    (void)state;
    dir = test_dir_create();
    test_path(path, sizeof path, dir, "codes.npy");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    test_dir_remove(dir);
    return 0;
}

static char *write_sample(size_t *ret_n)
{
    sl_error err;
    assert_ok(npy_write_codes(path, sample, FRAMES, BOOKS, &err), &err);
    return test_read_file(path, ret_n);
}

static void test_round_trip(void **state)
{
    (void)state;
    static const uint32_t frames[] = {1, 2, 77, 100000};
    for (size_t i = 0; i < 4; i++) {
        for (uint32_t books = 1; books <= 32; books += 31) {
            size_t n = (size_t)frames[i] * books;
            int32_t *codes = malloc(n * sizeof *codes);
            int32_t *back = NULL;
            uint32_t n_frames = 0;
            sl_error err;
            for (size_t k = 0; k < n; k++) {
                codes[k] = (int32_t)(k * 7919 % 4096);
            }
            assert_ok(npy_write_codes(path, codes, frames[i], books, &err), &err);
            assert_ok(npy_read_codes(path, books, 4095, &back, &n_frames, &err), &err);
            assert_int_equal(n_frames, frames[i]);
            assert_memory_equal(back, codes, n * sizeof *codes);
            sl__free(back);
            free(codes);
        }
    }
}

/* The bytes that NumPy itself writes for this array. */
static void test_the_file_is_numpy_s(void **state)
{
    (void)state;
    size_t n = 0;
    char *data = write_sample(&n);
    static const char header[] =
            "\x93NUMPY\x01\x00v\x00{'descr': '<i4', 'fortran_order': False, 'shape': (2, 3), }";
    assert_int_equal(n, 128 + sizeof sample);
    assert_memory_equal(data, header, sizeof header - 1);
    for (size_t i = sizeof header - 1; i < 127; i++) {
        assert_int_equal(data[i], ' ');
    }
    assert_int_equal(data[127], '\n');
    static const unsigned char values[] = {
            1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 10, 0, 0, 0, 20, 0, 0, 0, 30, 0, 0, 0};
    assert_memory_equal(data + 128, values, sizeof values);
    free(data);
}

/* Bytes of exactly their size, so that a sanitizer sees a read behind them. */
static int parse(const void *data, size_t n, int32_t max_code, sl_error *err)
{
    char *exact = malloc(n ? n : 1);
    int32_t *codes = NULL;
    uint32_t n_frames = 0;
    assert_non_null(exact);
    memcpy(exact, data, n);
    int r = npy_parse_codes(exact, n, "x.npy", BOOKS, max_code, &codes, &n_frames, err);
    if (r == 0) {
        assert_int_equal(n_frames, FRAMES);
        assert_memory_equal(codes, sample, sizeof sample);
    } else {
        assert_null(codes);
        assert_non_null(strstr(err->msg, "x.npy"));
    }
    sl__free(codes);
    free(exact);
    return r;
}

static void test_every_truncation_and_any_byte_more_is_refused(void **state)
{
    (void)state;
    size_t n = 0;
    sl_error err;
    char *data = write_sample(&n);
    for (size_t cut = 0; cut < n; cut++) {
        assert_int_equal(parse(data, cut, 100, &err), SL_EFORMAT);
    }
    assert_int_equal(parse(data, n, 100, &err), SL_OK);
    /* The byte behind the file that test_read_file adds. */
    assert_int_equal(parse(data, n + 1, 100, &err), SL_EFORMAT);
    free(data);
}

static void test_any_changed_byte_of_the_header_does_no_harm(void **state)
{
    (void)state;
    size_t n = 0;
    char *data = write_sample(&n);
    for (size_t i = 0; i < 128; i++) {
        static const char bytes[] = {0, (char)0xFF, '\'', '(', ')', ',', '9', ' ', ':', 2};
        for (size_t k = 0; k < sizeof bytes; k++) {
            sl_error err;
            int32_t *codes = NULL;
            uint32_t n_frames = 0;
            char kept = data[i];
            data[i] = bytes[k];
            int r = npy_parse_codes(data, n, "x.npy", BOOKS, 100, &codes, &n_frames, &err);
            assert_true(r == SL_OK || r == SL_EFORMAT || r == SL_EINVAL);
            assert_true(r < 0 || n_frames == FRAMES);
            sl__free(codes);
            data[i] = kept;
        }
    }
    free(data);
}

/* A file with that header and the sample's values behind it. */
static int parse_header(const char *prefix, size_t n_prefix, const char *text, sl_error *err)
{
    char file[512];
    size_t n_text = strlen(text);
    size_t at = n_prefix;
    memcpy(file, prefix, n_prefix);
    memcpy(file + at, text, n_text); /* NOLINT(bugprone-not-null-terminated-result) */
    at += n_text;
    for (size_t j = 0; j < BOOKS; j++) {
        for (size_t t = 0; t < FRAMES; t++) {
            memcpy(file + at, &sample[t * BOOKS + j], 4);
            at += 4;
        }
    }
    return parse(file, at, 100, err);
}

static int parse_v1(const char *text, sl_error *err)
{
    char prefix[10] = "\x93NUMPY\x01";
    prefix[8] = (char)strlen(text);
    return parse_header(prefix, sizeof prefix, text, err);
}

static void test_headers(void **state)
{
    (void)state;
    sl_error err;
    static const char *const good[] = {
            "{'descr': '<i4', 'fortran_order': False, 'shape': (2, 3), }\n",
            "{'shape': (2, 3), 'fortran_order': False, 'descr': '<i4'}",
            "{'descr':'<i4','fortran_order':False,'shape':(2,3)}",
    };
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        assert_ok(parse_v1(good[i], &err), &err);
    }
    static const char *const bad[] = {
            "",
            "{}",
            "{'descr': '<i8', 'fortran_order': False, 'shape': (2, 3), }",
            "{'descr': '>i4', 'fortran_order': False, 'shape': (2, 3), }",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }",
            "{'descr': '<u4', 'fortran_order': False, 'shape': (2, 3), }",
            "{'descr': '<i4', 'fortran_order': True, 'shape': (2, 3), }",
            "{'descr': '<i4', 'fortran_order': False}",
            "{'descr': '<i4', 'fortran_order': False, 'shape': (6,), }",
            "{'descr': '<i4', 'fortran_order': False, 'shape': (), }",
            "{'descr': '<i4', 'fortran_order': False, 'shape': 6}",
            "{'descr': '<i4', 'fortran_order': False, 'shape': (3, 2), }",
            "{'descr': '<i4', 'fortran_order': False, 'shape': (2, 4), }",
            "{'descr': '<i4', 'fortran_order': False, 'shape': (2, 0), }",
            "{'descr': '<i4', 'fortran_order': False, 'shape': (1, 2, 3), }",
            "{'descr': '<i4', 'fortran_order': False, 'shape': (-2, 3), }",
            "{'descr': '<i4', 'fortran_order': False, 'shape': (2, 4294967299), }",
            "{'descr': '<i4', 'fortran_order': False, 'shape': (2, 99999999999999999999999), }",
            "{'descr': '<i4', 'fortran_order': False, 'shape': (2, 3",
            "{'descr': '<i4', 'fortran_order': False, 'shape': ",
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        if (parse_v1(bad[i], &err) != SL_EFORMAT) {
            fail_msg("accepted: %s", bad[i]);
        }
    }
}

static void test_versions(void **state)
{
    (void)state;
    static const char text[] = "{'descr': '<i4', 'fortran_order': False, 'shape': (2, 3), }";
    sl_error err;
    char v2[12] = "\x93NUMPY\x02";
    v2[8] = sizeof text - 1;
    assert_ok(parse_header(v2, sizeof v2, text, &err), &err);
    v2[11] = 1; /* a header of 16 MiB and more */
    assert_int_equal(parse_header(v2, sizeof v2, text, &err), SL_EFORMAT);
    memset(v2 + 8, 0xFF, 4);
    assert_int_equal(parse_header(v2, sizeof v2, text, &err), SL_EFORMAT);
    static const char versions[] = {0, 3, 4, (char)0xFF};
    for (size_t i = 0; i < sizeof versions; i++) {
        char prefix[10] = "\x93NUMPY\x01";
        prefix[6] = versions[i];
        prefix[8] = sizeof text - 1;
        assert_int_equal(parse_header(prefix, sizeof prefix, text, &err), SL_EFORMAT);
        assert_non_null(strstr(err.msg, "version 1 or 2"));
    }
}

static void test_codes_out_of_range_are_named(void **state)
{
    (void)state;
    size_t n = 0;
    sl_error err;
    char *data = write_sample(&n);
    assert_int_equal(parse(data, n, 30, &err), SL_OK);
    assert_int_equal(parse(data, n, 29, &err), SL_EINVAL);
    assert_non_null(strstr(err.msg, "code 30 of book 1 in frame 2, need 0 to 29"));
    data[n - 1] = (char)0xFF; /* a negative number */
    assert_int_equal(parse(data, n, 100, &err), SL_EINVAL);
    assert_non_null(strstr(err.msg, "code -16777186"));
    free(data);
}

static void test_files_that_are_none(void **state)
{
    (void)state;
    char other[512];
    int32_t *codes = NULL;
    uint32_t n_frames = 0;
    sl_error err = {0};
    test_path(other, sizeof other, dir, "none.npy");
    assert_int_equal(npy_read_codes(other, BOOKS, 9, &codes, &n_frames, &err), SL_ENOENT);
    assert_int_equal(npy_read_codes(dir, BOOKS, 9, &codes, &n_frames, &err), SL_EINVAL);
    test_write_file(other, "", 0);
    assert_int_equal(npy_read_codes(other, BOOKS, 9, &codes, &n_frames, &err), SL_EFORMAT);
    assert_non_null(strstr(err.msg, "none.npy"));
    test_path(other, sizeof other, dir, "nowhere/codes.npy");
    assert_int_equal(npy_write_codes(other, sample, FRAMES, BOOKS, &err), SL_ENOENT);
    assert_null(codes);
}

static void test_every_allocation_may_fail(void **state)
{
    (void)state;
    size_t n_bytes = 0;
    sl_error err;
    free(write_sample(&n_bytes));
    long n = 0;
    for (int r = SL_ENOMEM; r < 0; n++) {
        int32_t *codes = NULL;
        uint32_t n_frames = 0;
        assert_true(n < 100);
        sl__mem_fail_after(n);
        r = npy_write_codes(path, sample, FRAMES, BOOKS, &err);
        r = r == 0 ? npy_read_codes(path, BOOKS, 100, &codes, &n_frames, &err) : r;
        sl__mem_fail_after(-1);
        assert_true(r == SL_OK || r == SL_ENOMEM);
        sl__free(codes);
    }
    assert_true(n > 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_round_trip),
            cmocka_unit_test(test_the_file_is_numpy_s),
            cmocka_unit_test(test_every_truncation_and_any_byte_more_is_refused),
            cmocka_unit_test(test_any_changed_byte_of_the_header_does_no_harm),
            cmocka_unit_test(test_headers),
            cmocka_unit_test(test_versions),
            cmocka_unit_test(test_codes_out_of_range_are_named),
            cmocka_unit_test(test_files_that_are_none),
            cmocka_unit_test(test_every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
