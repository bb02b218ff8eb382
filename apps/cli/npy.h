/*
 * Codes as a NumPy array: `.npy` version 1.0 or 2.0, little-endian int32, C order, shape (n_codebooks,
 * n_frames): book major, one row a codebook.
 */
#ifndef CLI_NPY_H
#define CLI_NPY_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* Writes frame major codes[t * n_codebooks + j] atomically. */
int npy_write_codes(const char *path, const int32_t *codes, uint32_t n_frames, uint32_t n_codebooks,
        sl_error *reterr) SL_MUST_CHECK;

/*
 * Reads an array of n_codebooks rows as frame major codes (sl__free it); values must lie in 0..max_code.
 * Errors: those of reading; SL_EFORMAT (not such an array: what was found), SL_EINVAL (a code out of range).
 */
int npy_read_codes(const char *path, uint32_t n_codebooks, int32_t max_code, int32_t **ret_codes,
        uint32_t *ret_n_frames, sl_error *reterr) SL_MUST_CHECK;

/* The same on bytes in memory; `name` stands in messages. */
int npy_parse_codes(const char *data, size_t n_bytes, const char *name, uint32_t n_codebooks,
        int32_t max_code, int32_t **ret_codes, uint32_t *ret_n_frames,
        sl_error *reterr) SL_MUST_CHECK;

#endif
