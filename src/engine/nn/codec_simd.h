/*
 * The inner loops of the codec's CPU kernels, compiled for several instruction sets and chosen at run time.
 *
 * Each sum runs in one fixed order for a given processor: tiles never change a result's bits.
 */
#ifndef S2_NN_CODEC_SIMD_H
#define S2_NN_CODEC_SIMD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define S2_TILE_ROWS ((size_t)12)
#define S2_TILE_COLS ((size_t)32)
/* Floats between the rows of a tile's left factor, and so the most terms of one call. */
#define S2_TILE_TERMS ((size_t)128)

#define S2_DOT_ROWS  ((size_t)8)
#define S2_DOT_COLS  ((size_t)24)
#define S2_MAX_LANES ((size_t)16)

/* A product to add to a block of sums. */
typedef struct s2_tile {
    float *sums; /* row r at r * sums_stride, S2_TILE_COLS columns */
    size_t sums_stride;
    size_t n_rows;      /* at most S2_TILE_ROWS */
    size_t n_cols;      /* for s2_kernel_tile; the loops below go through all S2_TILE_COLS */
    const float *left;  /* [S2_TILE_ROWS][S2_TILE_TERMS] */
    const float *right; /* input i, tap j, column c at i * right_stride + offset[j] + c */
    size_t right_stride;
    const size_t *offset;
    size_t n_in;
    size_t n_tap; /* n_in * n_tap <= S2_TILE_TERMS */
} s2_tile;

/* How the weights of a dot product are stored. */
typedef enum s2_dot_type {
    S2_DOT_F32,
    S2_DOT_F16,
    S2_DOT_Q8_0, /* ggml's blocks of 32, one after the other */
} s2_dot_type;

typedef struct s2_simd {
    const char *name;

    /*
     * sums[r][c] += sum over inputs i and taps j of left[r][i * n_tap + j] * right[i][j][c], for n_rows rows
     * and all columns. All S2_TILE_ROWS rows of sums and left must exist: some beyond n_rows may be touched.
     */
    void (*tile)(const s2_tile *tile);

    /*
     * sums[r * S2_DOT_COLS + c] = dot product of rows[r] with column c at right + c * stride, for all
     * S2_DOT_ROWS rows of a type and n_cols <= S2_DOT_COLS columns of floats.
     */
    void (*dots)(float *sums, const void *const rows[S2_DOT_ROWS], s2_dot_type type,
            const float *right, size_t stride, size_t n_terms, size_t n_cols);

    /* x[i] += sin(alpha x[i])^2 * inverse, n a multiple of S2_MAX_LANES. */
    void (*snake)(float *x, size_t n, float alpha, float inverse);

    /* IEEE half to single precision. */
    void (*widen)(const uint16_t *src, float *dst, size_t n);

    /* Dot product of k with q after a rotation by an angle for each pair; halves: [even | odd]. */
    float (*rotated_dot)(
            const float *q, const float *k, const float *cosine, const float *sine, size_t half);

    /* y += a * x */
    void (*add_scaled)(float *y, const float *x, float a, size_t n);
} s2_simd;

/* The widest that this processor runs. */
const s2_simd *s2_simd_best(void);

/* All that this processor runs, widest first; NULL behind the last. For tests. */
const s2_simd *s2_simd_at(size_t i);

#endif
