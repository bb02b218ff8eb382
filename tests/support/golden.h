/*
 * The expected tensors of tests/data/golden: looked up by name in golden.tsv, read from golden.bin.
 *
 * Each call opens and closes both files; a missing name, another type or a short file fails the test.
 * Arrays are the caller's: free() them. Last dimension contiguous; names and meaning in golden/README.md.
 */
#ifndef TEST_GOLDEN_H
#define TEST_GOLDEN_H

#include <stddef.h>
#include <stdint.h>

#define GOLDEN_MAX_DIMS 4

/* All elements of a tensor and their number (ret_n may be NULL). */
float *golden_f32(const char *name, size_t *ret_n);
int32_t *golden_i32(const char *name, size_t *ret_n);

/* Dimensions of a tensor, row-major as in the file; returns how many there are. */
size_t golden_dims(const char *name, size_t ret_dims[GOLDEN_MAX_DIMS]);

/* A matrix [height][n] as n columns of height values, one after the other, as prompts and frames are given. */
int32_t *golden_columns(const char *name, uint32_t *ret_n);

#endif
