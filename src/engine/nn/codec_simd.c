/*
 * Plain C over the compilers' vector types; the body is compiled once for each instruction set. Built with
 * -ffp-contract=fast so that products and sums become one instruction, always in the same places.
 */
#include "engine/nn/codec_simd.h"

#include <math.h>
#include <string.h>

#include "ggml.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

/* Larger arguments lose bits in the reduction below and go through the library's sine. */
#define SNAKE_LIMIT 16384.0F
#define PI          3.14159265358979F
/* Adding and taking it away rounds to the nearest integer. */
#define ROUNDER 12582912.0F
/* pi in three parts; the first two have few bits, so that their products with small integers are exact. */
#define PI_HIGH   3.140625F
#define PI_MIDDLE 9.67502593994140625e-4F
#define PI_LOW    1.509957990978376e-7F
/* sin(r) / r on [-pi/2, pi/2] as a polynomial in r^2. */
#define SIN_3  (-0.16666667F)
#define SIN_5  0.0083333310F
#define SIN_7  (-0.00019840874F)
#define SIN_9  2.7525562e-06F
#define SIN_11 (-2.3889859e-08F)

static void snake_slowly(float *x, size_t n, float alpha, float inverse)
{
    for (size_t i = 0; i < n; i++) {
        float s = sinf(alpha * x[i]);
        x[i] += s * s * inverse;
    }
}

/* Sums stay in registers only where the loops over them are unrolled. */
#if defined(__clang__)
#define UNROLL _Pragma("unroll")
#else
#define UNROLL _Pragma("GCC unroll 8")
#endif

/* Weights of a Q8_0 block, and columns of its register tile. */
#define Q8_BLOCK ((size_t)32)
#define Q8_COLS  ((size_t)4)
#define Q8_AHEAD 4096

/* A half that may lie at any address. */
static inline uint16_t load_half(const char *p)
{
    uint16_t half;
    memcpy(&half, p, sizeof half);
    return half;
}

#define LANES 4
#define TARGET
#define ROWS     6
#define DOT_ROWS 4
#define DOT_COLS 2
#define DOT_SUMS 8
#define Q8_ROWS  2
#define NAME(f)  f##_plain
#define SCALE(p) (ggml_fp16_to_fp32(load_half(p)) - (vec_plain){0})
#define WIDEN_I8(p)                                                                                \
    (vec_plain)                                                                                    \
    {                                                                                              \
        (float)(int8_t)(p)[0], (float)(int8_t)(p)[1], (float)(int8_t)(p)[2], (float)(int8_t)(p)[3] \
    }
#define WIDEN(p)                                                                                   \
    (vec_plain)                                                                                    \
    {                                                                                              \
        ggml_fp16_to_fp32((p)[0]), ggml_fp16_to_fp32((p)[1]), ggml_fp16_to_fp32((p)[2]),           \
                ggml_fp16_to_fp32((p)[3])                                                          \
    }
#define TABLE_NAME "plain"
#include "engine/nn/codec_simd_body.inc"

#if defined(__x86_64__)
#define LANES    8
#define TARGET   __attribute__((target("avx2,fma,f16c")))
#define ROWS     6
#define DOT_ROWS 4
#define DOT_COLS 2
#define DOT_SUMS 8
#define Q8_ROWS  2
#define NAME(f)  f##_avx2
#define SCALE(p) (vec_avx2) _mm256_cvtph_ps(_mm_set1_epi16((short)load_half(p)))
#define WIDEN_I8(p)                                                                                \
    (vec_avx2) _mm256_cvtepi32_ps(                                                                 \
            _mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)(p))))
#define WIDEN(p)   (vec_avx2) _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(p)))
#define TABLE_NAME "avx2"
#include "engine/nn/codec_simd_body.inc"

#define LANES    16
#define TARGET   __attribute__((target("avx512f,avx2,fma,f16c")))
#define ROWS     12
#define DOT_ROWS 4
#define DOT_COLS 4
#define DOT_SUMS 16
#define Q8_ROWS  4
#define NAME(f)  f##_avx512
#define SCALE(p) (vec_avx512) _mm512_cvtph_ps(_mm256_set1_epi16((short)load_half(p)))
#define WIDEN_I8(p)                                                                                \
    (vec_avx512) _mm512_cvtepi32_ps(                                                               \
            _mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)(const void *)(p))))
#define WIDEN(p)                                                                                   \
    (vec_avx512) _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)(p)))
#define TABLE_NAME "avx512"
#include "engine/nn/codec_simd_body.inc"
#endif

const s2_simd *s2_simd_at(size_t i)
{
    const s2_simd *found[4] = {NULL};
    size_t n = 0;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("fma")) {
        found[n++] = &table_avx512;
    }
    /* Every processor with AVX2 has F16C. */
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        found[n++] = &table_avx2;
    }
#endif
    found[n++] = &table_plain;
    return i < n ? found[i] : NULL;
}

const s2_simd *s2_simd_best(void)
{
    return s2_simd_at(0);
}
