/* Our table of tensor types against ggml's own. */
#include <string.h>

#include <ggml.h>

#include "test_support.h"

#include "source/gguf_index.h"

static void test_types_are_those_of_ggml(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 64; i++) {
        sl_tensor_type_info info = {0};
        bool in_ggml = i < GGML_TYPE_COUNT && ggml_blck_size((enum ggml_type)i) > 0;
        assert_int_equal(sl_tensor_type(i, &info), in_ggml);
        if (in_ggml) {
            assert_string_equal(info.name, ggml_type_name((enum ggml_type)i));
            assert_int_equal(info.block_elems, ggml_blck_size((enum ggml_type)i));
            assert_int_equal(info.block_bytes, ggml_type_size((enum ggml_type)i));
        }
    }
}

static void test_no_type_leaves_the_result_alone(void **state)
{
    sl_tensor_type_info info = {"mine", 1, 2};
    (void)state;
    assert_false(sl_tensor_type(4, &info));
    assert_false(sl_tensor_type(UINT32_MAX, &info));
    assert_string_equal(info.name, "mine");
}

static void test_value_types(void **state)
{
    (void)state;
    for (unsigned i = 0; i < SL_GGUF_TYPE_COUNT; i++) {
        assert_string_not_equal(sl_gguf_type_name((sl_gguf_type)i), "unknown");
    }
    assert_string_equal(sl_gguf_type_name(SL_GGUF_TYPE_COUNT), "unknown");
    assert_string_equal(sl_gguf_type_name(SL_GGUF_STR), "string");
    assert_int_equal(sl__gguf_type_bytes(SL_GGUF_F64), 8);
    assert_int_equal(sl__gguf_type_bytes(SL_GGUF_STR), 0);
    assert_int_equal(sl__gguf_type_bytes(SL_GGUF_TYPE_COUNT), 0);
}

static void test_bytes_of_tensors(void **state)
{
    static const struct {
        uint64_t ne[4];
        uint64_t n_bytes;
        bool fits;
    } rows[] = {
            {{32, 1, 1, 1}, 34, true},
            {{64, 3, 2, 1}, 408, true},
            {{32, 0, 1, 1}, 0, true},
            {{32, 1ull << 58, 1, 1}, 0, false},
            {{32, UINT64_MAX, 1, 1}, 0, false},
            {{0, UINT64_MAX, 1, 1}, 0, false},
    };
    sl_tensor_type_info q8_0;
    (void)state;
    assert_true(sl_tensor_type(GGML_TYPE_Q8_0, &q8_0));
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint64_t n_bytes = 0;
        assert_int_equal(sl__tensor_bytes(&q8_0, rows[i].ne, &n_bytes), rows[i].fits);
        assert_int_equal(n_bytes, rows[i].n_bytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_types_are_those_of_ggml),
            cmocka_unit_test(test_no_type_leaves_the_result_alone),
            cmocka_unit_test(test_value_types),
            cmocka_unit_test(test_bytes_of_tensors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
