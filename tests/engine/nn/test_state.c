/* State tensors: zero at the start, cleared, refused without memory, freed in every condition. */
#include "engine/nn/state.h"

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
    s2_state s = {0};
    sl_error err;
    s2_state_done(NULL);
    s2_state_done(&s);
    s2_state_clear(&s);
    assert_int_equal(s2_state_bytes(&s), 0);
    assert_ok(s2_state_init(&s, 2, &err), &err);
    s2_state_done(&s);
    assert_null(s.ctx);
}

static void test_states_begin_at_zero_and_are_cleared(void **state)
{
    (void)state;
    s2_state s;
    sl_error err;
    float v[4] = {1, 2, 3, 4};
    assert_ok(s2_state_init(&s, 1, &err), &err);
    struct ggml_tensor *t = ggml_new_tensor_1d(s.ctx, GGML_TYPE_F32, 4);
    assert_ok(s2_state_alloc(&s, &compute, SL_MEM_COMPUTE, &err), &err);
    assert_true(s2_state_bytes(&s) >= sizeof v);
    ggml_backend_tensor_get(t, v, 0, sizeof v);
    for (int i = 0; i < 4; i++) {
        assert_true(v[i] == 0.0F);
        v[i] = 7;
    }
    ggml_backend_tensor_set(t, v, 0, sizeof v);
    s2_state_clear(&s);
    ggml_backend_tensor_get(t, v, 0, sizeof v);
    for (int i = 0; i < 4; i++) {
        assert_true(v[i] == 0.0F);
    }
    s2_state_done(&s);
}

static void test_a_state_beyond_all_memory_is_an_error(void **state)
{
    (void)state;
    s2_state s;
    sl_error err = {0};
    assert_ok(s2_state_init(&s, 1, &err), &err);
    assert_non_null(ggml_new_tensor_1d(s.ctx, GGML_TYPE_F32, TOO_MANY));
    assert_int_equal(s2_state_alloc(&s, &compute, SL_MEM_COMPUTE, &err), SL_ENOMEM);
    assert_int_equal(s2_state_bytes(&s), 0);
    s2_state_done(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_done_accepts_every_condition),
            cmocka_unit_test(test_states_begin_at_zero_and_are_cleared),
            cmocka_unit_test(test_a_state_beyond_all_memory_is_an_error),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
