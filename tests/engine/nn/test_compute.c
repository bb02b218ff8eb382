#include "engine/nn/compute.h"

#include <string.h>

#include "engine/nn/graph.h"
#include "test_support.h"

static void test_thread_counts_out_of_range_are_refused(void **state)
{
    (void)state;
    static const int counts[] = {0, -1, GGML_MAX_N_THREADS + 1, INT32_MAX};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        s2_compute c;
        sl_error err = {0};
        assert_int_equal(s2_compute_init(&c, counts[i], &err), SL_EINVAL);
        assert_non_null(strstr(err.msg, "threads"));
        s2_compute_done(&c);
    }
}

static void test_done_accepts_nothing(void **state)
{
    (void)state;
    s2_compute c = {0};
    s2_compute_done(NULL);
    s2_compute_done(&c);
    assert_null(c.backend);
}

static bool count_and_go_on(void *ud)
{
    (*(int *)ud)++;
    return false;
}

static bool count_and_stop(void *ud)
{
    (*(int *)ud)++;
    return true;
}

/* A graph of a few sums over `compute`; out holds 5 after a run. */
static struct ggml_tensor *build_sums(s2_graph *g, s2_compute *c)
{
    sl_error err;
    assert_ok(s2_graph_init(g, c, 16, &err), &err);
    struct ggml_tensor *x = ggml_new_tensor_1d(g->ctx, GGML_TYPE_F32, 1);
    ggml_set_input(x);
    struct ggml_tensor *y = x;
    for (int i = 0; i < 4; i++) {
        y = ggml_add(g->ctx, y, x);
    }
    ggml_set_output(y);
    ggml_build_forward_expand(g->cgraph, y);
    assert_ok(s2_graph_alloc(g, &err), &err);
    const float one = 1;
    ggml_backend_tensor_set(x, &one, 0, sizeof one);
    return y;
}

static void test_a_run_is_stopped_and_goes_on_later(void **state)
{
    (void)state;
    for (int n_threads = 1; n_threads <= 2; n_threads++) {
        s2_compute c;
        s2_graph g;
        sl_error err = {0};
        int n_asked = 0;
        float y = 0;
        assert_ok(s2_compute_init(&c, n_threads, &err), &err);
        assert_int_equal(c.n_threads, n_threads);
        struct ggml_tensor *out = build_sums(&g, &c);
        s2_compute_set_stop(&c, count_and_stop, &n_asked);
        assert_int_equal(s2_graph_run(&g, NULL, NULL, 0, &err), SL_ECANCELLED);
        assert_true(n_asked > 0);
        n_asked = 0;
        s2_compute_set_stop(&c, count_and_go_on, &n_asked);
        assert_ok(s2_graph_run(&g, NULL, NULL, 0, &err), &err);
        assert_true(n_asked > 0);
        n_asked = 0;
        s2_compute_set_stop(&c, NULL, NULL);
        assert_ok(s2_graph_run(&g, NULL, NULL, 0, &err), &err);
        assert_int_equal(n_asked, 0);
        ggml_backend_tensor_get(out, &y, 0, sizeof y);
        assert_true(y == 5.0F);
        s2_graph_done(&g);
        s2_compute_done(&c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_thread_counts_out_of_range_are_refused),
            cmocka_unit_test(test_done_accepts_nothing),
            cmocka_unit_test(test_a_run_is_stopped_and_goes_on_later),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
