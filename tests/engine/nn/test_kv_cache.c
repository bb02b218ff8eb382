/* The cache keeps what it holds while it grows, and when it cannot. */
#include "engine/nn/kv_cache.h"

#include <stdlib.h>

#include "base/mem.h"
#include "test_support.h"

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

/* A value for each element of each tensor; exact in halves. */
static float value_of(uint32_t i_layer, int which, size_t i)
{
    return (float)((i * 7 + i_layer * 31 + (size_t)which * 13) % 1000);
}

static void transfer(s2_kv_cache *kv, uint32_t n_positions, bool is_check)
{
    size_t n = (size_t)kv->row_elems * n_positions;
    float *v = malloc(n * sizeof *v);
    ggml_fp16_t *h = malloc(n * sizeof *h);
    for (uint32_t layer = 0; layer < kv->n_layer; layer++) {
        struct ggml_tensor *pair[2] = {kv->layers[layer].k, kv->layers[layer].v};
        for (int which = 0; which < 2; which++) {
            bool is_half = kv->layers[layer].k->type == GGML_TYPE_F16;
            void *data = is_half ? (void *)h : (void *)v;
            size_t bytes = n * (is_half ? sizeof *h : sizeof *v);
            for (size_t i = 0; i < n && !is_check; i++) {
                v[i] = value_of(layer, which, i);
                h[i] = ggml_fp32_to_fp16(v[i]);
            }
            if (!is_check) {
                ggml_backend_tensor_set(pair[which], data, 0, bytes);
                continue;
            }
            ggml_backend_tensor_get(pair[which], data, 0, bytes);
            for (size_t i = 0; i < n; i++) {
                float got = is_half ? ggml_fp16_to_fp32(h[i]) : v[i];
                assert_true(got == value_of(layer, which, i));
            }
        }
    }
    free(v);
    free(h);
}

/* Three layers with rows of 24: as on the CPU, or as on another device, with halves. */
static s2_kv_cache init_cache(bool is_cpu)
{
    s2_kv_cache kv;
    sl_error err;
    compute.is_cpu = is_cpu;
    assert_ok(s2_kv_cache_init(&kv, &compute, 3, 24, &err), &err);
    return kv;
}

static void test_growing_keeps_the_content(void **state)
{
    (void)state;
    for (int is_cpu = 0; is_cpu <= 1; is_cpu++) {
        sl_error err;
        s2_kv_cache kv = init_cache(is_cpu != 0);
        assert_int_equal(kv.capacity, 0);
        assert_int_equal(s2_kv_cache_bytes(&kv, NULL), 0);
        assert_ok(s2_kv_cache_reserve(&kv, 5, &err), &err);
        assert_int_equal(kv.capacity, 5);
        size_t bytes = s2_kv_cache_bytes(&kv, NULL);
        assert_true(bytes >= 2 * 3 * 5 * ggml_row_size(s2_kv_cache_type(&compute), 24));
        transfer(&kv, 5, false);
        assert_ok(s2_kv_cache_reserve(&kv, 3, &err), &err);
        assert_int_equal(kv.capacity, 5);
        assert_int_equal(s2_kv_cache_bytes(&kv, NULL), bytes);
        assert_ok(s2_kv_cache_reserve(&kv, 6, &err), &err);
        assert_ok(s2_kv_cache_reserve(&kv, 300, &err), &err);
        assert_int_equal(kv.capacity, 300);
        transfer(&kv, 5, true);
        s2_kv_cache_release(&kv);
        assert_int_equal(kv.capacity, 0);
        assert_int_equal(s2_kv_cache_bytes(&kv, NULL), 0);
        assert_ok(s2_kv_cache_reserve(&kv, 2, &err), &err);
        assert_int_equal(kv.capacity, 2);
        s2_kv_cache_done(&kv);
        assert_null(kv.layers);
    }
}

static void test_rows_go_to_the_host_and_come_back(void **state)
{
    (void)state;
    for (int is_cpu = 0; is_cpu <= 1; is_cpu++) {
        sl_error err;
        s2_kv_cache kv = init_cache(is_cpu != 0);
        assert_ok(s2_kv_cache_reserve(&kv, 9, &err), &err);
        size_t row_bytes = s2_kv_cache_row_bytes(&kv);
        assert_int_equal(row_bytes, 3 * 2 * ggml_row_size(s2_kv_cache_type(&compute), 24));
        transfer(&kv, 9, false);
        unsigned char *rows = malloc(5 * row_bytes + 1);
        rows[5 * row_bytes] = 0xa5;
        s2_kv_cache_read(&kv, 5, rows);
        assert_int_equal(rows[5 * row_bytes], 0xa5);
        /* Another capacity, and nothing in it. */
        s2_kv_cache_release(&kv);
        assert_ok(s2_kv_cache_reserve(&kv, 6, &err), &err);
        s2_kv_cache_write(&kv, rows, 5);
        transfer(&kv, 5, true);
        free(rows);
        s2_kv_cache_done(&kv);
    }
}

static void test_rows_beyond_the_content_are_zero(void **state)
{
    (void)state;
    s2_kv_cache kv;
    sl_error err;
    float row[8];
    assert_ok(s2_kv_cache_init(&kv, &compute, 1, 8, &err), &err);
    assert_ok(s2_kv_cache_reserve(&kv, 4, &err), &err);
    transfer(&kv, 4, false);
    assert_ok(s2_kv_cache_reserve(&kv, 9, &err), &err);
    ggml_backend_tensor_get(kv.layers[0].v, row, 8 * sizeof row, sizeof row);
    for (int i = 0; i < 8; i++) {
        assert_true(row[i] == 0.0F);
    }
    s2_kv_cache_done(&kv);
}

static void test_a_failed_growth_keeps_the_content(void **state)
{
    (void)state;
    s2_kv_cache kv;
    sl_error err = {0};
    assert_ok(s2_kv_cache_init(&kv, &compute, 2, 1u << 16, &err), &err);
    assert_ok(s2_kv_cache_reserve(&kv, 3, &err), &err);
    transfer(&kv, 3, false);
    assert_int_equal(s2_kv_cache_reserve(&kv, UINT32_MAX, &err), SL_ENOMEM);
    assert_int_equal(kv.capacity, 3);
    transfer(&kv, 3, true);
    assert_ok(s2_kv_cache_reserve(&kv, 4, &err), &err);
    transfer(&kv, 3, true);
    s2_kv_cache_done(&kv);
}

static void test_no_memory_for_the_layers(void **state)
{
    (void)state;
    s2_kv_cache kv;
    sl_error err = {0};
    sl__mem_fail_after(0);
    int r = s2_kv_cache_init(&kv, &compute, 2, 16, &err);
    sl__mem_fail_after(-1);
    assert_int_equal(r, SL_ENOMEM);
    s2_kv_cache_done(&kv);
    s2_kv_cache_done(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_growing_keeps_the_content),
            cmocka_unit_test(test_rows_go_to_the_host_and_come_back),
            cmocka_unit_test(test_rows_beyond_the_content_are_zero),
            cmocka_unit_test(test_a_failed_growth_keeps_the_content),
            cmocka_unit_test(test_no_memory_for_the_layers),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
