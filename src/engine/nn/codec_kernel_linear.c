/*
 * Fused linear layers: dot products along the weights' rows, which are read once for up to S2_DOT_COLS
 * columns. F32, F16 and Q8_0 are multiplied in place; other types are widened a few rows at a time.
 */
#include "engine/nn/codec_kernel_parts.h"

/* How the products read a weight; rows that are not read in place are widened to floats first. */
typedef struct row_format {
    s2_dot_type type;
    bool is_in_place;
} row_format;

static row_format choose_format(enum ggml_type type)
{
    if (type == GGML_TYPE_Q8_0) {
        return (row_format){S2_DOT_Q8_0, true};
    }
    if (type == GGML_TYPE_F16) {
        return (row_format){S2_DOT_F16, true};
    }
    return (row_format){S2_DOT_F32, type == GGML_TYPE_F32};
}

static size_t scratch_floats(row_format format, size_t n_terms)
{
    return format.is_in_place ? 0 : S2_DOT_ROWS * n_terms;
}

/* The rows of a weight from `row` on; those beyond the last repeat it, and their sums go nowhere. */
static void find_rows(const s2_simd *simd, const struct ggml_tensor *weight, row_format format,
        size_t n_terms, size_t row, size_t n_rows, float *scratch, const void *rows[S2_DOT_ROWS])
{
    for (size_t r = 0; r < S2_DOT_ROWS; r++) {
        size_t i = r < n_rows ? r : n_rows - 1;
        if (format.is_in_place) {
            rows[r] = (const char *)weight->data +
                      (row + i) * ggml_row_size(weight->type, (int64_t)n_terms);
        } else {
            rows[r] = scratch + i * n_terms;
        }
    }
    if (!format.is_in_place) {
        s2_kernel_widen(simd, weight, row * n_terms, n_rows * n_terms, scratch);
    }
}

/* Outputs `row` to row + n_rows for all columns. */
static void run_rows(const s2_simd *simd, struct ggml_tensor *dst, s2_dot_type type, size_t row,
        size_t n_rows, const void *const rows[S2_DOT_ROWS])
{
    float sums[S2_DOT_ROWS * S2_DOT_COLS];
    const struct ggml_tensor *x = dst->src[0];
    const struct ggml_tensor *weight = dst->src[1];
    size_t n_terms = (size_t)x->ne[0];
    size_t n_out = (size_t)ggml_nelements(weight) / n_terms;
    size_t n_time = (size_t)x->ne[1];
    for (size_t t = 0; t < n_time; t += S2_DOT_COLS) {
        size_t n_cols = s2_min(S2_DOT_COLS, n_time - t);
        const float *right = (const float *)x->data + t * n_terms;
        simd->dots(sums, rows, type, right, n_terms, n_terms, n_cols);
        for (size_t r = 0; r < n_rows; r++) {
            float bias = dst->src[2] ? s2_kernel_element(dst->src[2], row + r) : 0.0F;
            for (size_t c = 0; c < n_cols; c++) {
                ((float *)dst->data)[(t + c) * n_out + row + r] = sums[r * S2_DOT_COLS + c] + bias;
            }
        }
    }
}

/* Sources: x, weight, bias. */
static void run_linear(struct ggml_tensor *dst, int ith, int nth, void *user)
{
    (void)user;
    const s2_simd *simd = s2_simd_best();
    const struct ggml_tensor *weight = dst->src[1];
    size_t n_terms = (size_t)dst->src[0]->ne[0];
    size_t n_out = (size_t)ggml_nelements(weight) / n_terms;
    row_format format = choose_format(weight->type);
    float *scratch = s2_kernel_scratch(dst, scratch_floats(format, n_terms), ith, nth);
    s2_range groups = s2_share((n_out + S2_DOT_ROWS - 1) / S2_DOT_ROWS, ith, nth);
    for (size_t i = groups.begin; i < groups.end; i++) {
        const void *rows[S2_DOT_ROWS];
        size_t n_rows = s2_min(S2_DOT_ROWS, n_out - i * S2_DOT_ROWS);
        find_rows(simd, weight, format, n_terms, i * S2_DOT_ROWS, n_rows, scratch, rows);
        run_rows(simd, dst, format.type, i * S2_DOT_ROWS, n_rows, rows);
    }
}

struct ggml_tensor *s2_kernel_linear(const s2_build *b, struct ggml_tensor *weight,
        struct ggml_tensor *bias, struct ggml_tensor *x)
{
    struct ggml_tensor *args[] = {x, weight, bias};
    row_format format = choose_format(weight->type);
    size_t n_scratch = scratch_floats(format, (size_t)x->ne[0]);
    return s2_kernel_custom_scratch(
            b, ggml_nelements(weight) / x->ne[0], x->ne[1], n_scratch, args, 3, run_linear, NULL);
}
