/* Graphs: made, run again and again, refused without memory, freed in every condition. */
#include "engine/nn/graph.h"

#include <string.h>

#include "test_support.h"

/* Elements whose bytes no address space holds. */
#define TOO_MANY (INT64_C(1) << 46)

static s2_compute compute;

static int set_up(void **state)
{
    (void)state;
    sl_error err;
    return s2_compute_init(&compute, 1, &err);
}

static int tear_down(void **state)
{
    (void)state;
    s2_compute_done(&compute);
    return 0;
}

static void test_done_accepts_every_condition(void **state)
{
    (void)state;
    s2_graph g = {0};
    sl_error err;
    s2_graph_done(NULL);
    s2_graph_done(&g);
    assert_ok(s2_graph_init(&g, &compute, 4, &err), &err);
    assert_int_equal(s2_graph_bytes(&g), 0);
    s2_graph_done(&g);
    assert_null(g.ctx);
}

static void test_a_graph_is_run_many_times(void **state)
{
    (void)state;
    s2_graph g;
    sl_error err;
    assert_ok(s2_graph_init(&g, &compute, 8, &err), &err);
    struct ggml_tensor *x = ggml_new_tensor_1d(g.ctx, GGML_TYPE_F32, 3);
    ggml_set_input(x);
    struct ggml_tensor *y = ggml_sqr(g.ctx, x);
    ggml_set_output(y);
    ggml_build_forward_expand(g.cgraph, y);
    assert_ok(s2_graph_alloc(&g, &err), &err);
    assert_true(s2_graph_bytes(&g) >= 2 * 3 * sizeof(float));
    for (int i = 0; i < 5; i++) {
        float in[3] = {(float)i, -2, 0.5F};
        float out[3];
        ggml_backend_tensor_set(x, in, 0, sizeof in);
        assert_ok(s2_graph_run(&g, NULL, NULL, 0, &err), &err);
        ggml_backend_tensor_get(y, out, 0, sizeof out);
        for (int k = 0; k < 3; k++) {
            assert_true(out[k] == in[k] * in[k]);
        }
    }
    s2_graph_done(&g);
}

static void test_room_is_for_as_many_nodes_as_asked(void **state)
{
    (void)state;
    s2_graph g;
    sl_error err;
    enum {
        N = 100
    };
    assert_ok(s2_graph_init(&g, &compute, N, &err), &err);
    struct ggml_tensor *y = ggml_new_tensor_1d(g.ctx, GGML_TYPE_F32, 1);
    ggml_set_input(y);
    for (int i = 0; i < N / 2; i++) {
        struct ggml_tensor *leaf = ggml_new_tensor_1d(g.ctx, GGML_TYPE_F32, 1);
        ggml_set_input(leaf);
        y = ggml_sqr(g.ctx, ggml_add(g.ctx, y, leaf));
    }
    ggml_build_forward_expand(g.cgraph, y);
    assert_int_equal(ggml_graph_n_nodes(g.cgraph), N);
    assert_ok(s2_graph_alloc(&g, &err), &err);
    s2_graph_done(&g);
}

static void test_a_graph_beyond_all_memory_is_an_error(void **state)
{
    (void)state;
    s2_graph g;
    sl_error err = {0};
    assert_ok(s2_graph_init(&g, &compute, 8, &err), &err);
    struct ggml_tensor *x = ggml_new_tensor_1d(g.ctx, GGML_TYPE_F32, TOO_MANY);
    ggml_set_input(x);
    ggml_build_forward_expand(g.cgraph, ggml_sqr(g.ctx, x));
    assert_int_equal(s2_graph_alloc(&g, &err), SL_ENOMEM);
    assert_non_null(strstr(err.msg, "out of memory"));
    s2_graph_done(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_done_accepts_every_condition),
            cmocka_unit_test(test_a_graph_is_run_many_times),
            cmocka_unit_test(test_room_is_for_as_many_nodes_as_asked),
            cmocka_unit_test(test_a_graph_beyond_all_memory_is_an_error),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
