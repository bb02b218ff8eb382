#define _XOPEN_SOURCE 700 /* nftw; the usual feature level is below */

#include "test_support.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

char *test_dir_create(void)
{
    const char *tmp = getenv("TMPDIR");
    char *dir = malloc(4096);
    assert_non_null(dir);
    snprintf(dir, 4096, "%s/sluice-test-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    assert_non_null(mkdtemp(dir));
    return dir;
}

static int remove_entry(const char *path, const struct stat *st, int kind, struct FTW *where)
{
    (void)st;
    (void)kind;
    (void)where;
    return remove(path);
}

void test_dir_remove(char *dir)
{
    if (dir) {
        nftw(dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
        free(dir);
    }
}

const char *test_path(char *buf, size_t buf_bytes, const char *dir, const char *name)
{
    int n = snprintf(buf, buf_bytes, "%s/%s", dir, name);
    assert_true(n > 0 && (size_t)n < buf_bytes);
    return buf;
}

const char *test_data(char *buf, size_t buf_bytes, const char *name)
{
    return test_path(buf, buf_bytes, SLUICE_TEST_DATA, name);
}

void test_write_file(const char *path, const void *data, size_t n_bytes)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    if (n_bytes > 0) {
        assert_int_equal(fwrite(data, 1, n_bytes, f), n_bytes);
    }
    assert_int_equal(fclose(f), 0);
}

char *test_read_file(const char *path, size_t *ret_bytes)
{
    FILE *f = fopen(path, "rb");
    if (!f) {
        fail_msg("cannot open %s", path);
    }
    assert_int_equal(fseek(f, 0, SEEK_END), 0);
    long size = ftell(f);
    assert_true(size >= 0);
    rewind(f);
    char *data = malloc((size_t)size + 1);
    assert_non_null(data);
    assert_int_equal(fread(data, 1, (size_t)size, f), (size_t)size);
    data[size] = '\0';
    fclose(f);
    *ret_bytes = (size_t)size;
    return data;
}

static unsigned nibble(char c)
{
    const char *digits = "0123456789abcdef";
    const char *at = c ? strchr(digits, c) : NULL;
    assert_non_null(at);
    return (unsigned)(at - digits);
}

unsigned char *test_from_hex(const char *hex, size_t *ret_bytes)
{
    size_t n = strlen(hex);
    assert_true(n % 2 == 0);
    unsigned char *bytes = malloc(n / 2 + 1);
    assert_non_null(bytes);
    for (size_t i = 0; i < n / 2; i++) {
        bytes[i] = (unsigned char)((nibble(hex[2 * i]) << 4) | nibble(hex[2 * i + 1]));
    }
    *ret_bytes = n / 2;
    return bytes;
}
