/* Convolutions with made-up weights, computed by graphs in pieces and by plain loops at once. */
#ifndef TEST_CONV_FIXTURE_H
#define TEST_CONV_FIXTURE_H

#include "engine/nn/conv.h"

typedef enum conv_kind {
    CONV_PLAIN,
    CONV_DEPTHWISE,
    CONV_UP
} conv_kind;

typedef struct conv_case {
    conv_kind kind;
    s2_conv_shape shape;
    enum ggml_type type; /* of the weights */
    bool has_alpha;
    bool has_residual;
} conv_case;

typedef struct conv_fixture {
    conv_case c;
    s2_compute compute;
    s2_state tensors; /* weights and state of conv, alpha */
    s2_conv conv;
    struct ggml_tensor *alpha;
} conv_fixture;

void conv_fixture_open(conv_fixture *f, const conv_case *c, int n_threads);
void conv_fixture_close(conv_fixture *f);

/* Outputs (in time) for n_time inputs. */
size_t conv_fixture_n_out(const conv_fixture *f, size_t n_time);

/* x: [n_in][n_time] in pieces of `step`; result: [n_out][time], the caller's to free. */
float *conv_fixture_run(conv_fixture *f, const float *x, size_t n_time, size_t step,
        const float *residual, bool is_standard);

/* The same in double precision from the definition. */
float *conv_fixture_expect(
        const conv_fixture *f, const float *x, size_t n_time, const float *residual);

/* n numbers within -1..1, the same for the same seed; free() them. */
float *made_up(size_t n, uint32_t seed);

#endif
