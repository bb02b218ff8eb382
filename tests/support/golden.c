#include "golden.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test_support.h"

typedef struct entry {
    char name[64];
    char type[8];
    size_t n_dims;
    size_t dims[GOLDEN_MAX_DIMS];
    size_t n; /* product of the dimensions */
    uint64_t offset;
    uint64_t n_bytes;
} entry;

/* Digits at *text, which is moved behind them. */
static uint64_t take_number(const char **text)
{
    uint64_t v = 0;
    assert_true(**text >= '0' && **text <= '9');
    while (**text >= '0' && **text <= '9') {
        v = 10 * v + (uint64_t)(**text - '0');
        (*text)++;
    }
    return v;
}

static void take_char(const char **text, char c)
{
    assert_int_equal(**text, c);
    (*text)++;
}

/* Bytes up to a tab, which is skipped. */
static void take_word(const char **text, char *word, size_t word_bytes)
{
    size_t n = strcspn(*text, "\t");
    assert_true(n < word_bytes);
    memcpy(word, *text, n);
    word[n] = '\0';
    *text += n;
    take_char(text, '\t');
}

/* NAME TYPE N_DIMS DIMS OFFSET N_BYTES, tab separated; DIMS like "10,40". */
static entry parse_line(const char *line)
{
    entry e = {.n = 1};
    take_word(&line, e.name, sizeof e.name);
    take_word(&line, e.type, sizeof e.type);
    e.n_dims = (size_t)take_number(&line);
    assert_in_range(e.n_dims, 1, GOLDEN_MAX_DIMS);
    for (size_t i = 0; i < e.n_dims; i++) {
        take_char(&line, i == 0 ? '\t' : ',');
        e.dims[i] = (size_t)take_number(&line);
        e.n *= e.dims[i];
    }
    take_char(&line, '\t');
    e.offset = take_number(&line);
    take_char(&line, '\t');
    e.n_bytes = take_number(&line);
    assert_int_equal(e.n_bytes, e.n * 4);
    return e;
}

static entry find(const char *name)
{
    char path[4096];
    char line[512];
    entry e = {0};
    bool found = false;
    FILE *f = fopen(test_data(path, sizeof path, "golden/golden.tsv"), "rb");
    assert_non_null(f);
    while (!found && fgets(line, (int)sizeof line, f)) {
        e = parse_line(line);
        found = strcmp(e.name, name) == 0;
    }
    assert_int_equal(fclose(f), 0);
    if (!found) {
        fail_msg("golden.tsv has no tensor %s", name);
    }
    return e;
}

/* Both element types take four little-endian bytes, like the hosts that run the tests. */
static void *load(const char *name, const char *type, size_t *ret_n)
{
    char path[4096];
    entry e = find(name);
    assert_string_equal(e.type, type);
    void *data = malloc(e.n_bytes + 1);
    assert_non_null(data);
    FILE *f = fopen(test_data(path, sizeof path, "golden/golden.bin"), "rb");
    assert_non_null(f);
    assert_int_equal(fseek(f, (long)e.offset, SEEK_SET), 0);
    assert_int_equal(fread(data, 4, e.n, f), e.n);
    assert_int_equal(fclose(f), 0);
    if (ret_n) {
        *ret_n = e.n;
    }
    return data;
}

float *golden_f32(const char *name, size_t *ret_n)
{
    return load(name, "f32", ret_n);
}

int32_t *golden_i32(const char *name, size_t *ret_n)
{
    return load(name, "i32", ret_n);
}

size_t golden_dims(const char *name, size_t ret_dims[GOLDEN_MAX_DIMS])
{
    entry e = find(name);
    memcpy(ret_dims, e.dims, sizeof e.dims);
    return e.n_dims;
}

int32_t *golden_columns(const char *name, uint32_t *ret_n)
{
    size_t dims[GOLDEN_MAX_DIMS];
    assert_int_equal(golden_dims(name, dims), 2);
    int32_t *matrix = golden_i32(name, NULL);
    int32_t *columns = malloc(dims[0] * dims[1] * sizeof *columns);
    assert_non_null(columns);
    for (size_t t = 0; t < dims[1]; t++) {
        for (size_t j = 0; j < dims[0]; j++) {
            columns[t * dims[0] + j] = matrix[j * dims[1] + t];
        }
    }
    free(matrix);
    *ret_n = (uint32_t)dims[1];
    return columns;
}
