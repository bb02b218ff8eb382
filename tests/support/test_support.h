/*
 * What every test program needs: cmocka, temporary folders, whole files, golden tensors.
 * Failures inside are cmocka failures of the calling test.
 */
#ifndef TEST_SUPPORT_H
#define TEST_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sluice/error.h"

/* Fails the test with the error's message unless r >= 0. */
#define assert_ok(r, err)                                                                          \
    do {                                                                                           \
        int assert_ok_r = (r);                                                                     \
        if (assert_ok_r < 0) {                                                                     \
            fail_msg("%s: %s", sl_err_name(assert_ok_r), (err)->msg);                              \
        }                                                                                          \
    } while (0)

/* A new folder below the system's temporary folder; test_dir_remove removes it with all it holds. */
char *test_dir_create(void);
void test_dir_remove(char *dir);

/* "DIR/NAME" in a buffer of the caller; returns it. */
const char *test_path(char *buf, size_t buf_bytes, const char *dir, const char *name);

/* Path of a file under tests/data. */
const char *test_data(char *buf, size_t buf_bytes, const char *name);

void test_write_file(const char *path, const void *data, size_t n_bytes);

/* Whole file with a NUL behind it; free() it. */
char *test_read_file(const char *path, size_t *ret_bytes);

/* Bytes of a hex string; free() them. */
unsigned char *test_from_hex(const char *hex, size_t *ret_bytes);

#endif
