/* Devices as people and programs read of them. */
#include "devices_report.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "test_support.h"

#define GIB (UINT64_C(1) << 30)

static const sl_device_info infos[] = {
        {.name = "cpu",
                .description = "the computer's memory",
                .kind = SL_DEVICE_HOST,
                .alignment = 64,
                .can_wrap = true,
                .is_unified = true},
        {.name = "vulkan0",
                .description = "A card \x1B[31m",
                .kind = SL_DEVICE_GPU,
                .total_bytes = 8 * GIB,
                .free_bytes = 7 * GIB,
                .max_alloc_bytes = 4 * GIB,
                .alignment = 256,
                .is_async = true,
                .has_pinned = true},
        {.name = "vulkan1",
                .kind = SL_DEVICE_INTEGRATED,
                .total_bytes = 16 * GIB,
                .alignment = 256,
                .is_unified = true},
};

static char *print(size_t n, const char *best)
{
    char *text = NULL;
    size_t n_bytes = 0;
    FILE *f = open_memstream(&text, &n_bytes);
    assert_non_null(f);
    devices_print_text(infos, n, best, f);
    assert_int_equal(fclose(f), 0);
    return text;
}

static void expect(const char *text, const char *needle)
{
    if (!strstr(text, needle)) {
        fail_msg("'%s' is not in:\n%s", needle, text);
    }
}

static void test_G3_08_the_table_and_the_reason(void **state)
{
    (void)state;
    char *text = print(3, "vulkan0");
    expect(text, "  cpu          host           unknown    unknown   no limit  weights in place, "
                 "shares RAM\n");
    expect(text, "  vulkan0      gpu            8.0 GiB    7.0 GiB    4.0 GiB  copies while it "
                 "computes, pinned memory\n");
    expect(text, "               A card \\x1b[31m\n");
    /* Nothing free is not the same as unknown. */
    expect(text, "  vulkan1      integrated    16.0 GiB        0 B   no limit  shares RAM\n");
    expect(text, "--device auto is vulkan0, the GPU with the most free memory\n");
    free(text);
}

static void test_other_choices(void **state)
{
    (void)state;
    char *text = print(1, "cpu");
    expect(text, "--device auto is cpu, since there is no GPU\n");
    free(text);
    text = print(3, "vulkan1");
    expect(text, "vulkan1's memory is the computer's: it is not there twice\n");
    free(text);
    text = print(3, "none of them");
    assert_null(strstr(text, "auto"));
    free(text);
    text = print(0, NULL);
    expect(text, "  none\n");
    free(text);
}

static void test_json_has_every_field(void **state)
{
    (void)state;
    sl__json j = {0};
    json_error_t why;
    devices_put_json(infos, 3, "vulkan0", &j);
    json_t *root = json_loads(sl__json_text(&j, NULL), JSON_REJECT_DUPLICATES, &why);
    assert_int_equal(json_array_size(root), 3);
    const json_t *cpu = json_array_get(root, 0);
    const json_t *gpu = json_array_get(root, 1);
    assert_true(json_is_null(json_object_get(cpu, "total_bytes")));
    assert_true(json_is_null(json_object_get(cpu, "free_bytes")));
    assert_true(json_is_true(json_object_get(cpu, "unified")));
    assert_true(json_is_false(json_object_get(cpu, "auto")));
    assert_string_equal(json_string_value(json_object_get(gpu, "kind")), "gpu");
    assert_string_equal(json_string_value(json_object_get(gpu, "description")), "A card \x1B[31m");
    assert_int_equal(json_integer_value(json_object_get(gpu, "free_bytes")), 7 * GIB);
    assert_int_equal(json_integer_value(json_object_get(gpu, "max_alloc_bytes")), 4 * GIB);
    assert_int_equal(json_integer_value(json_object_get(gpu, "alignment")), 256);
    assert_true(json_is_true(json_object_get(gpu, "auto")));
    assert_int_equal(json_integer_value(json_object_get(json_array_get(root, 2), "free_bytes")), 0);
    json_decref(root);
    sl__json_done(&j);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_G3_08_the_table_and_the_reason),
            cmocka_unit_test(test_other_choices),
            cmocka_unit_test(test_json_has_every_field),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
