#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conv_fixture.h"
#include "engine/nn/codec_simd.h"
#include "test_support.h"

#define WIDE   100 /* frame_columns that choose tiles */
#define NARROW 1   /* and dot products */

static float worst_difference(const float *a, const float *b, size_t n)
{
    float worst = 0.0F;
    for (size_t i = 0; i < n; i++) {
        assert_true(isfinite(a[i]) && isfinite(b[i]));
        worst = fmaxf(worst, fabsf(a[i] - b[i]));
    }
    return worst;
}

/* The graphs' results against the definition, at once and in pieces of each step; pieces bit for bit. */
static void check_case(const conv_case *c, size_t n_time, const size_t *steps, size_t n_steps)
{
    conv_fixture f;
    conv_fixture_open(&f, c, 1);
    size_t n = c->shape.n_out * conv_fixture_n_out(&f, n_time);
    float *x = made_up(c->shape.n_in * n_time, 7);
    float *residual = c->has_residual ? made_up(n, 8) : NULL;
    float *want = conv_fixture_expect(&f, x, n_time, residual);
    float *whole = conv_fixture_run(&f, x, n_time, n_time, residual, false);
    float tolerance = 4e-6F * sqrtf((float)(c->shape.n_in * c->shape.kernel) + 4.0F);
    float worst = worst_difference(whole, want, n);
    if (worst > tolerance) {
        fail_msg("kind %d, %u to %u, kernel %u, stride %u, dilation %u: off by %g", c->kind,
                c->shape.n_in, c->shape.n_out, c->shape.kernel, c->shape.stride, c->shape.dilation,
                (double)worst);
    }
    for (size_t i = 0; i < n_steps; i++) {
        float *pieces = conv_fixture_run(&f, x, n_time, steps[i], residual, false);
        assert_memory_equal(pieces, whole, n * sizeof *pieces);
        free(pieces);
        float *standard = conv_fixture_run(&f, x, n_time, steps[i], residual, true);
        /* Standard products round activations to F16 if the weights are. */
        float allowed = c->type == GGML_TYPE_F16 ? 200.0F * tolerance : 2.0F * tolerance;
        worst = worst_difference(standard, want, n);
        if (worst > allowed) {
            fail_msg("standard, type %d, %u to %u, kernel %u: off by %g, allowed %g", c->type,
                    c->shape.n_in, c->shape.n_out, c->shape.kernel, (double)worst, (double)allowed);
        }
        free(standard);
    }
    free(whole);
    free(want);
    free(residual);
    free(x);
    conv_fixture_close(&f);
}

static void test_plain(void **state)
{
    (void)state;
    static const uint32_t columns[] = {WIDE, NARROW};
    static const struct {
        uint32_t n_in, n_out, kernel, dilation;
    } shapes[] = {{1, 5, 7, 1}, {5, 1, 7, 3}, {13, 13, 7, 9}, {24, 12, 1, 1}, {19, 30, 3, 1},
            {150, 13, 1, 1}, {3, 8, 128, 1}};
    static const enum ggml_type types[] = {GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_BF16};
    static const size_t steps[] = {1, 24, 33};
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        for (size_t k = 0; k < 6; k++) {
            conv_case c = {.kind = CONV_PLAIN,
                    .shape = {.n_in = shapes[i].n_in,
                            .n_out = shapes[i].n_out,
                            .kernel = shapes[i].kernel,
                            .stride = 1,
                            .dilation = shapes[i].dilation,
                            .frame_columns = columns[k % 2]},
                    .type = types[k / 2],
                    .has_alpha = i % 2 == 0,
                    .has_residual = i % 3 == 0};
            check_case(&c, 70, steps, 3);
        }
    }
}

static void test_strided(void **state)
{
    (void)state;
    static const uint32_t columns[] = {WIDE, NARROW};
    static const struct {
        uint32_t kernel, stride;
        size_t n_time, steps[2];
    } shapes[] = {{4, 2, 140, {2, 66}}, {16, 8, 320, {8, 264}}, {2, 2, 40, {2, 6}},
            {5, 3, 99, {3, 30}}, {12, 6, 72, {6, 24}}};
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        for (size_t k = 0; k < 2; k++) {
            conv_case c = {.kind = CONV_PLAIN,
                    .shape = {.n_in = 6,
                            .n_out = 14,
                            .kernel = shapes[i].kernel,
                            .stride = shapes[i].stride,
                            .dilation = 1,
                            .frame_columns = columns[k]},
                    .type = i % 2 ? GGML_TYPE_F16 : GGML_TYPE_F32,
                    .has_alpha = true};
            check_case(&c, shapes[i].n_time, shapes[i].steps, 2);
        }
    }
}

static void test_depthwise(void **state)
{
    (void)state;
    static const size_t steps[] = {1, 2, 9};
    for (int i = 0; i < 2; i++) {
        conv_case c = {.kind = CONV_DEPTHWISE,
                .shape = {.n_in = 21, .n_out = 21, .kernel = 7, .stride = 1, .dilation = 1},
                .type = i ? GGML_TYPE_F16 : GGML_TYPE_F32};
        check_case(&c, 40, steps, 3);
    }
}

static void test_transposed(void **state)
{
    (void)state;
    static const size_t steps[] = {1, 4, 100};
    static const struct {
        uint32_t n_in, n_out, kernel, stride;
    } shapes[] = {{20, 10, 16, 8}, {5, 3, 4, 2}, {9, 9, 2, 2}, {200, 30, 12, 6}, {3, 40, 3, 3}};
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        for (int k = 0; k < 2; k++) {
            conv_case c = {.kind = CONV_UP,
                    .shape = {.n_in = shapes[i].n_in,
                            .n_out = shapes[i].n_out,
                            .kernel = shapes[i].kernel,
                            .stride = shapes[i].stride,
                            .dilation = 1},
                    .type = k ? GGML_TYPE_F16 : GGML_TYPE_F32,
                    .has_alpha = i % 2 == 0};
            check_case(&c, 110, steps, 3);
        }
    }
}

static void test_threads_do_not_matter(void **state)
{
    (void)state;
    static const conv_kind kinds[] = {CONV_PLAIN, CONV_DEPTHWISE, CONV_UP};
    for (size_t i = 0; i < 3; i++) {
        conv_case c = {.kind = kinds[i],
                .shape = {.n_in = 29,
                        .n_out = 29,
                        .kernel = 4,
                        .stride = kinds[i] == CONV_UP ? 2 : 1,
                        .dilation = 1,
                        .frame_columns = WIDE},
                .type = GGML_TYPE_F16};
        float *x = made_up((size_t)29 * 300, 7);
        float *want = NULL;
        for (int n_threads = 1; n_threads <= 3; n_threads++) {
            conv_fixture f;
            conv_fixture_open(&f, &c, n_threads);
            float *y = conv_fixture_run(&f, x, 300, 300, NULL, false);
            if (want) {
                assert_memory_equal(y, want, 29 * conv_fixture_n_out(&f, 300) * sizeof *y);
                free(y);
            } else {
                want = y;
            }
            conv_fixture_close(&f);
        }
        free(want);
        free(x);
    }
}

/* sin(z)^2 over the whole range, beyond the polynomial's too. */
static void check_snake(const s2_simd *simd)
{
    static const float scales[] = {1e-6F, 0.3F, 1.0F, 20.0F, 900.0F, 15000.0F, 3e6F};
    for (size_t k = 0; k < sizeof scales / sizeof scales[0]; k++) {
        float *x = made_up(64, 11);
        float *y = made_up(64, 11);
        simd->snake(y, 64, scales[k], 0.5F);
        for (size_t i = 0; i < 64; i++) {
            float z = scales[k] * x[i];
            double s = sin((double)z);
            double want = (double)x[i] + s * s * 0.5;
            /* The rounding of z itself is the argument's, not the sine's. */
            assert_true(fabs((double)y[i] - want) <= 3e-7 + 2e-7 * fabs((double)z));
        }
        free(x);
        free(y);
    }
    float *x = made_up(16, 1);
    x[3] = NAN;
    x[5] = INFINITY;
    simd->snake(x, 16, 2.0F, 0.5F);
    assert_true(isnan(x[3]) && isnan(x[5]) && isfinite(x[4]));
    free(x);
}

/* Every half, special ones included. */
static void check_widen(const s2_simd *simd)
{
    uint16_t halves[101];
    float floats[101];
    for (uint32_t h = 0; h < 65536; h += 101) {
        size_t n = 65536 - h < 101 ? 65536 - h : 101;
        for (size_t i = 0; i < n; i++) {
            halves[i] = (uint16_t)(h + i);
        }
        simd->widen(halves, floats, n);
        for (size_t i = 0; i < n; i++) {
            float want = ggml_fp16_to_fp32(halves[i]);
            assert_true(isnan(want) ? isnan(floats[i]) : floats[i] == want);
        }
    }
}

static void check_dots(const s2_simd *simd, size_t n_terms)
{
    float sums[S2_DOT_ROWS * S2_DOT_COLS];
    float *left = made_up(S2_DOT_ROWS * n_terms, 5);
    float *right = made_up(S2_DOT_COLS * n_terms, 6);
    uint16_t *halves = malloc((S2_DOT_ROWS * n_terms + 1) * sizeof *halves);
    const void *rows[S2_DOT_ROWS];
    assert_non_null(halves);
    ggml_fp32_to_fp16_row(left, halves, (int64_t)(S2_DOT_ROWS * n_terms));
    ggml_fp16_to_fp32_row(halves, left, (int64_t)(S2_DOT_ROWS * n_terms));
    for (int is_half = 0; is_half < 2; is_half++) {
        for (size_t r = 0; r < S2_DOT_ROWS; r++) {
            rows[r] = is_half ? (const void *)(halves + r * n_terms)
                              : (const void *)(left + r * n_terms);
        }
        for (size_t n_cols = 1; n_cols <= S2_DOT_COLS; n_cols++) {
            simd->dots(
                    sums, rows, is_half ? S2_DOT_F16 : S2_DOT_F32, right, n_terms, n_terms, n_cols);
            for (size_t i = 0; i < S2_DOT_ROWS * n_cols; i++) {
                size_t r = i / n_cols;
                size_t c = i % n_cols;
                double want = 0;
                for (size_t k = 0; k < n_terms; k++) {
                    want += (double)left[r * n_terms + k] * (double)right[c * n_terms + k];
                }
                assert_true(fabs((double)sums[r * S2_DOT_COLS + c] - want) <= 1e-4);
            }
        }
    }
    free(halves);
    free(left);
    free(right);
}

/* Q8_0 rows against their widened values. */
static void check_dots_q8_0(const s2_simd *simd, size_t n_terms)
{
    float sums[S2_DOT_ROWS * S2_DOT_COLS];
    size_t row_bytes = ggml_row_size(GGML_TYPE_Q8_0, (int64_t)n_terms);
    float *left = made_up(S2_DOT_ROWS * n_terms, 7);
    float *right = made_up(S2_DOT_COLS * n_terms, 8);
    char *blocks = malloc(S2_DOT_ROWS * row_bytes);
    const void *rows[S2_DOT_ROWS];
    assert_non_null(blocks);
    ggml_quantize_chunk(
            GGML_TYPE_Q8_0, left, blocks, 0, (int64_t)S2_DOT_ROWS, (int64_t)n_terms, NULL);
    ggml_get_type_traits(GGML_TYPE_Q8_0)->to_float(blocks, left, (int64_t)(S2_DOT_ROWS * n_terms));
    for (size_t r = 0; r < S2_DOT_ROWS; r++) {
        rows[r] = blocks + r * row_bytes;
    }
    for (size_t n_cols = 1; n_cols <= S2_DOT_COLS; n_cols++) {
        simd->dots(sums, rows, S2_DOT_Q8_0, right, n_terms, n_terms, n_cols);
        for (size_t i = 0; i < S2_DOT_ROWS * n_cols; i++) {
            size_t r = i / n_cols;
            size_t c = i % n_cols;
            double want = 0;
            for (size_t k = 0; k < n_terms; k++) {
                want += (double)left[r * n_terms + k] * (double)right[c * n_terms + k];
            }
            assert_true(fabs((double)sums[r * S2_DOT_COLS + c] - want) <= 1e-4);
        }
    }
    free(blocks);
    free(left);
    free(right);
}

static void check_rotated_dot(const s2_simd *simd, size_t half)
{
    float *q = made_up(2 * half, 1);
    float *k = made_up(2 * half, 2);
    float *angles = made_up(half, 3);
    float *cosine = made_up(half, 0);
    float *sine = made_up(half, 0);
    double want = 0;
    for (size_t i = 0; i < half; i++) {
        cosine[i] = cosf(angles[i]);
        sine[i] = sinf(angles[i]);
        double re = (double)q[i] * (double)cosine[i] - (double)q[half + i] * (double)sine[i];
        double im = (double)q[i] * (double)sine[i] + (double)q[half + i] * (double)cosine[i];
        want += re * (double)k[i] + im * (double)k[half + i];
    }
    assert_true(fabs((double)simd->rotated_dot(q, k, cosine, sine, half) - want) <= 1e-5);
    simd->add_scaled(q, k, 2.0F, 2 * half);
    float *q_before = made_up(2 * half, 1);
    for (size_t i = 0; i < 2 * half; i++) {
        assert_true(fabsf(q[i] - (q_before[i] + 2.0F * k[i])) <= 1e-6F);
    }
    free(q_before);
    free(q);
    free(k);
    free(angles);
    free(cosine);
    free(sine);
}

static void check_tile(const s2_simd *simd, size_t n_in, size_t n_tap, size_t n_rows)
{
    const size_t offset[3] = {0, 9, 4};
    const size_t stride = S2_TILE_COLS + 9;
    float *left = made_up(S2_TILE_ROWS * S2_TILE_TERMS, 1);
    float *right = made_up(n_in * stride + S2_TILE_COLS, 2);
    float *sums = made_up(S2_TILE_ROWS * S2_TILE_COLS, 3);
    float *before = made_up(S2_TILE_ROWS * S2_TILE_COLS, 3);
    s2_tile tile = {.sums = sums,
            .sums_stride = S2_TILE_COLS,
            .n_rows = n_rows,
            .n_cols = S2_TILE_COLS,
            .left = left,
            .right = right,
            .right_stride = stride,
            .offset = offset,
            .n_in = n_in,
            .n_tap = n_tap};
    simd->tile(&tile);
    for (size_t r = 0; r < n_rows; r++) {
        for (size_t c = 0; c < S2_TILE_COLS; c++) {
            double want = (double)before[r * S2_TILE_COLS + c];
            for (size_t i = 0; i < n_in * n_tap; i++) {
                want += (double)left[r * S2_TILE_TERMS + i] *
                        (double)right[i / n_tap * stride + offset[i % n_tap] + c];
            }
            assert_true(fabs((double)sums[r * S2_TILE_COLS + c] - want) <= 2e-5);
        }
    }
    free(left);
    free(right);
    free(sums);
    free(before);
}

static void test_every_instruction_set(void **state)
{
    (void)state;
    size_t n = 0;
    for (; s2_simd_at(n); n++) {
        const s2_simd *simd = s2_simd_at(n);
        print_message("%s\n", simd->name);
        check_snake(simd);
        check_widen(simd);
        check_dots(simd, 1);
        check_dots(simd, 15);
        check_dots(simd, 96);
        check_dots(simd, 1037);
        check_dots_q8_0(simd, 32);
        check_dots_q8_0(simd, 96);
        check_dots_q8_0(simd, 128);
        check_dots_q8_0(simd, 1056);
        check_rotated_dot(simd, 32);
        check_rotated_dot(simd, 11);
        for (size_t n_rows = 1; n_rows <= S2_TILE_ROWS; n_rows++) {
            check_tile(simd, 40, 3, n_rows);
            check_tile(simd, S2_TILE_TERMS, 1, n_rows);
        }
    }
    assert_true(n >= 1);
    assert_ptr_equal(s2_simd_best(), s2_simd_at(0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_plain),
            cmocka_unit_test(test_strided),
            cmocka_unit_test(test_depthwise),
            cmocka_unit_test(test_transposed),
            cmocka_unit_test(test_threads_do_not_matter),
            cmocka_unit_test(test_every_instruction_set),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
