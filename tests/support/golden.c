#include "golden.h"

#include <inttypes.h>
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

/* "10,40" */
static void parse_dims(const char *text, entry *e)
{
    size_t i_dim = 0;
    e->n = 1;
    for (const char *p = text; *p; p++) {
        assert_true((*p >= '0' && *p <= '9') || *p == ',');
        if (*p == ',') {
            e->n *= e->dims[i_dim++];
            assert_true(i_dim < GOLDEN_MAX_DIMS);
        } else {
            e->dims[i_dim] = 10 * e->dims[i_dim] + (size_t)(*p - '0');
        }
    }
    e->n *= e->dims[i_dim];
    assert_int_equal(i_dim + 1, e->n_dims);
}

/* NAME TYPE N_DIMS DIMS OFFSET N_BYTES, tab separated. */
static bool parse_line(const char *line, entry *e)
{
    char dims[64];
    memset(e, 0, sizeof *e);
    int n = sscanf(line, "%63s\t%7s\t%zu\t%63s\t%" SCNu64 "\t%" SCNu64, e->name, e->type,
            &e->n_dims, dims, &e->offset, &e->n_bytes);
    if (n != 6) {
        return false;
    }
    parse_dims(dims, e);
    assert_int_equal(e->n_bytes, e->n * 4);
    return true;
}

static entry find(const char *name)
{
    char path[4096];
    char line[512];
    entry e;
    bool found = false;
    FILE *f = fopen(test_data(path, sizeof path, "golden/golden.tsv"), "rb");
    assert_non_null(f);
    while (!found && fgets(line, (int)sizeof line, f)) {
        found = parse_line(line, &e) && strcmp(e.name, name) == 0;
    }
    fclose(f);
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
    fclose(f);
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
