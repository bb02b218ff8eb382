/*
 * Inputs: what is filled in host memory is what graphs read, whatever the types beside each other, run after run.
 */
#include "engine/nn/inputs.h"

#include <string.h>

#include "engine/nn/graph.h"
#include "test_support.h"

#define N 5

/* y = x + widened(i), where i is read by a second graph too. */
typedef struct rig {
    s2_compute compute;
    s2_inputs inputs;
    struct ggml_tensor *x;    /* F32 [N] */
    struct ggml_tensor *half; /* F16 [N] */
    struct ggml_tensor *row;  /* I32 [1] */
} rig;

static void open_rig(rig *r)
{
    sl_error err = {0};
    *r = (rig){0};
    assert_ok(s2_compute_init(&r->compute, 1, &err), &err);
    assert_ok(s2_inputs_init(&r->inputs, 3, &err), &err);
    r->row = s2_inputs_add(&r->inputs, GGML_TYPE_I32, 1, 1);
    r->half = s2_inputs_add(&r->inputs, GGML_TYPE_F16, N, 1);
    r->x = s2_inputs_add(&r->inputs, GGML_TYPE_F32, N, 1);
    assert_int_equal(s2_inputs_bytes(&r->inputs), 0);
    assert_ok(s2_inputs_alloc(&r->inputs, &r->compute, &err), &err);
}

static void close_rig(rig *r)
{
    s2_inputs_done(&r->inputs);
    s2_inputs_done(&r->inputs);
    s2_compute_done(&r->compute);
}

static void fill(const rig *r, float base, int32_t row)
{
    float *x = s2_inputs_host(&r->inputs, r->x);
    ggml_fp16_t *half = s2_inputs_host(&r->inputs, r->half);
    int32_t *i = s2_inputs_host(&r->inputs, r->row);
    for (int k = 0; k < N; k++) {
        x[k] = base + (float)k;
        half[k] = ggml_fp32_to_fp16((float)(8 * k));
    }
    *i = row;
}

/* The sum of x and half, and the element of it that `row` names. */
static void test_graphs_read_what_was_filled_in(void **state)
{
    (void)state;
    rig r;
    s2_graph sum = {0};
    s2_graph pick = {0};
    sl_error err = {0};
    open_rig(&r);
    assert_ok(s2_graph_init(&sum, &r.compute, 8, &err), &err);
    assert_ok(s2_graph_init(&pick, &r.compute, 8, &err), &err);
    struct ggml_tensor *y = ggml_add(sum.ctx, r.x, ggml_cast(sum.ctx, r.half, GGML_TYPE_F32));
    struct ggml_tensor *one = ggml_get_rows(pick.ctx, ggml_reshape_2d(pick.ctx, r.x, 1, N), r.row);
    ggml_set_output(y);
    ggml_set_output(one);
    ggml_build_forward_expand(sum.cgraph, y);
    ggml_build_forward_expand(pick.cgraph, one);
    assert_ok(s2_graph_alloc(&sum, &err), &err);
    assert_ok(s2_graph_alloc(&pick, &err), &err);
    for (int run = 0; run < 4; run++) {
        float got[N];
        float picked = 0;
        float again[N];
        const s2_graph_read reads[] = {{y, got}, {y, again}};
        const s2_graph_read read = {one, &picked};
        fill(&r, (float)run, run % N);
        assert_ok(s2_graph_run(&sum, &r.inputs, reads, 2, &err), &err);
        /* They were sent before: the second graph finds them there. */
        fill(&r, -1.0F, 0);
        assert_ok(s2_graph_run(&pick, NULL, &read, 1, &err), &err);
        for (int k = 0; k < N; k++) {
            assert_float_equal(got[k], (float)(run + 9 * k), 0);
        }
        assert_memory_equal(again, got, sizeof again);
        assert_float_equal(picked, (float)(run + run % N), 0);
    }
    s2_graph_done(&sum);
    s2_graph_done(&pick);
    close_rig(&r);
}

static void test_inputs_are_measured_without_memory(void **state)
{
    (void)state;
    rig r;
    s2_compute measure;
    s2_inputs measured;
    sl_error err = {0};
    open_rig(&r);
    s2_compute_init_measure(&measure, &r.compute, true);
    assert_ok(s2_inputs_init(&measured, 3, &err), &err);
    (void)s2_inputs_add(&measured, GGML_TYPE_I32, 1, 1);
    (void)s2_inputs_add(&measured, GGML_TYPE_F16, N, 1);
    (void)s2_inputs_add(&measured, GGML_TYPE_F32, N, 1);
    assert_ok(s2_inputs_alloc(&measured, &measure, &err), &err);
    assert_int_equal(s2_inputs_bytes(&measured), s2_inputs_bytes(&r.inputs));
    assert_true(s2_inputs_bytes(&measured) >= 4 + 2 * N + 4 * N);
    assert_null(measured.host);
    s2_inputs_done(&measured);
    close_rig(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_graphs_read_what_was_filled_in),
            cmocka_unit_test(test_inputs_are_measured_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
