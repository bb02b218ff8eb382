/*
 * Layout: "\x93NUMPY" | u8 major | u8 minor | u16 (2.0: u32) header bytes | header | data. The header is a
 * Python dictionary as NumPy prints it, for example
 *   {'descr': '<i4', 'fortran_order': False, 'shape': (10, 58), }
 * padded with blanks and a line end so that the data begins at a multiple of 64.
 */
#include "npy.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "os/os_file.h"
#include "os/os_out_file.h"

#define MAGIC          "\x93NUMPY"
#define MAGIC_BYTES    6
#define PREFIX_BYTES   10 /* magic, version and length of version 1.0 */
#define ALIGN_BYTES    64
#define MAX_FILE_BYTES (UINT64_C(256) << 20)

static void put_u32(unsigned char *p, uint32_t v)
{
    p[0] = (unsigned char)(v & 0xFF);
    p[1] = (unsigned char)((v >> 8) & 0xFF);
    p[2] = (unsigned char)((v >> 16) & 0xFF);
    p[3] = (unsigned char)(v >> 24);
}

static uint32_t get_u32(const char *s)
{
    const unsigned char *p = (const unsigned char *)s;
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

int npy_write_codes(const char *path, const int32_t *codes, uint32_t n_frames, uint32_t n_codebooks,
        sl_error *reterr)
{
    char header[2 * ALIGN_BYTES];
    sl__out_file *file = NULL;
    size_t n_values = (size_t)n_frames * n_codebooks;
    int n = snprintf(header + PREFIX_BYTES, sizeof header - PREFIX_BYTES,
            "{'descr': '<i4', 'fortran_order': False, 'shape': (%u, %u), }", n_codebooks, n_frames);
    size_t used = PREFIX_BYTES + (size_t)n;
    size_t total = (used + 1 + ALIGN_BYTES - 1) / ALIGN_BYTES * ALIGN_BYTES;
    memset(header + used, ' ', total - used);
    header[total - 1] = '\n';
    memcpy(header, MAGIC "\x01\x00", MAGIC_BYTES + 2);
    header[8] = (char)(unsigned char)(total - PREFIX_BYTES);
    header[9] = 0;

    unsigned char *data = sl__alloc(n_values, 4);
    if (!data) {
        return sl__fail_nomem(reterr, n_values * 4, "codes");
    }
    for (uint32_t j = 0; j < n_codebooks; j++) {
        for (uint32_t t = 0; t < n_frames; t++) {
            put_u32(data + ((size_t)j * n_frames + t) * 4,
                    (uint32_t)codes[(size_t)t * n_codebooks + j]);
        }
    }
    int r = sl__out_file_open(path, 0666, &file, reterr);
    if (r == 0) {
        r = sl__out_file_write(file, header, total, reterr);
    }
    if (r == 0) {
        r = sl__out_file_write(file, data, n_values * 4, reterr);
    }
    if (r == 0) {
        r = sl__out_file_commit(&file, reterr);
    }
    sl__out_file_discard(&file);
    sl__free(data);
    return r;
}

/* What the header says; n_bytes of text at p, not NUL-terminated. */
typedef struct npy_header {
    const char *text;
    size_t n;
} npy_header;

/* Position behind `'key':` and blanks, or NULL. */
static const char *value_of(const npy_header *h, const char *key)
{
    size_t n_key = strlen(key);
    for (size_t i = 0; i + n_key + 2 < h->n; i++) {
        const char *p = h->text + i;
        if (p[0] == '\'' && memcmp(p + 1, key, n_key) == 0 && p[1 + n_key] == '\'') {
            p += n_key + 2;
            while (p < h->text + h->n && (*p == ' ' || *p == ':')) {
                p++;
            }
            return p;
        }
    }
    return NULL;
}

static bool value_begins(const npy_header *h, const char *key, const char *want)
{
    const char *p = value_of(h, key);
    size_t n = strlen(want);
    return p && (size_t)(h->text + h->n - p) >= n && memcmp(p, want, n) == 0;
}

/* Reads "(rows, columns)"; false for anything else. */
static bool read_shape(const npy_header *h, uint64_t ret_dims[2])
{
    const char *p = value_of(h, "shape");
    const char *end = h->text + h->n;
    if (!p || p >= end || *p++ != '(') {
        return false;
    }
    for (int d = 0; d < 2; d++) {
        uint64_t v = 0;
        const char *first = p;
        for (; p < end && *p >= '0' && *p <= '9'; p++) {
            v = v * 10 + (uint64_t)(*p - '0');
            if (v > UINT32_MAX) {
                return false;
            }
        }
        if (p == first) {
            return false;
        }
        ret_dims[d] = v;
        while (p < end && (*p == ' ' || *p == ',')) {
            p++;
        }
    }
    return p < end && *p == ')';
}

static int check_values(const char *data, const char *name, uint32_t n_codebooks, uint32_t n_frames,
        int32_t max_code, int32_t *codes, sl_error *reterr)
{
    for (uint32_t j = 0; j < n_codebooks; j++) {
        for (uint32_t t = 0; t < n_frames; t++) {
            uint32_t v = get_u32(data + ((size_t)j * n_frames + t) * 4);
            if (v > (uint32_t)max_code) {
                return sl__fail(reterr, SL_EINVAL,
                        "%s: code %d of book %u in frame %u, need 0 to %d", name, (int)v, j, t,
                        max_code);
            }
            codes[(size_t)t * n_codebooks + j] = (int32_t)v;
        }
    }
    return SL_OK;
}

static int parse_header(const char *data, size_t n_bytes, const char *name, npy_header *ret_header,
        const char **ret_data, sl_error *reterr)
{
    bool is_v2 = n_bytes > MAGIC_BYTES && data[MAGIC_BYTES] == 2;
    size_t prefix = is_v2 ? PREFIX_BYTES + 2 : PREFIX_BYTES;
    if (n_bytes < prefix || memcmp(data, MAGIC, MAGIC_BYTES) != 0 ||
            (!is_v2 && data[MAGIC_BYTES] != 1)) {
        return sl__fail(reterr, SL_EFORMAT, "%s: not a .npy file of version 1 or 2", name);
    }
    const unsigned char *p = (const unsigned char *)data;
    size_t n_header = is_v2 ? get_u32(data + 8) : (size_t)p[8] + ((size_t)p[9] << 8);
    if (n_header > n_bytes - prefix) {
        return sl__fail(reterr, SL_EFORMAT, "%s: header of %zu bytes, the file has %zu", name,
                n_header, n_bytes);
    }
    *ret_header = (npy_header){data + prefix, n_header};
    *ret_data = data + prefix + n_header;
    return SL_OK;
}

int npy_parse_codes(const char *data, size_t n_bytes, const char *name, uint32_t n_codebooks,
        int32_t max_code, int32_t **ret_codes, uint32_t *ret_n_frames, sl_error *reterr)
{
    npy_header header = {NULL, 0};
    const char *values = NULL;
    uint64_t dims[2] = {0, 0};
    int r = parse_header(data, n_bytes, name, &header, &values, reterr);
    if (r < 0) {
        return r;
    }
    if (!value_begins(&header, "descr", "'<i4'") ||
            !value_begins(&header, "fortran_order", "False") || !read_shape(&header, dims)) {
        return sl__fail(reterr, SL_EFORMAT,
                "%s: need a two-dimensional little-endian int32 array in C order", name);
    }
    if (dims[0] != n_codebooks || dims[1] == 0) {
        return sl__fail(reterr, SL_EFORMAT,
                "%s: array of shape (%llu, %llu), need (%u, frames) with at least one frame", name,
                (unsigned long long)dims[0], (unsigned long long)dims[1], n_codebooks);
    }
    uint64_t n_values = dims[0] * dims[1];
    uint64_t n_left = (uint64_t)(data + n_bytes - values);
    if (n_left / 4 < n_values || n_left != n_values * 4) {
        return sl__fail(reterr, SL_EFORMAT, "%s: %llu bytes of codes, its shape needs %llu", name,
                (unsigned long long)n_left, (unsigned long long)n_values * 4);
    }
    int32_t *codes = sl__alloc((size_t)n_values, sizeof *codes);
    if (!codes) {
        return sl__fail_nomem(reterr, (size_t)n_values * sizeof *codes, "codes");
    }
    r = check_values(values, name, n_codebooks, (uint32_t)dims[1], max_code, codes, reterr);
    if (r < 0) {
        sl__free(codes);
        return r;
    }
    *ret_codes = codes;
    *ret_n_frames = (uint32_t)dims[1];
    return SL_OK;
}

int npy_read_codes(const char *path, uint32_t n_codebooks, int32_t max_code, int32_t **ret_codes,
        uint32_t *ret_n_frames, sl_error *reterr)
{
    char name[256];
    char *data = NULL;
    size_t n_bytes = 0;
    int r = sl__read_file(path, "codes", MAX_FILE_BYTES, &data, &n_bytes, reterr);
    if (r < 0) {
        return r;
    }
    sl__quote(name, sizeof name, path, strlen(path));
    r = npy_parse_codes(
            data, n_bytes, name, n_codebooks, max_code, ret_codes, ret_n_frames, reterr);
    sl__free(data);
    return r;
}
