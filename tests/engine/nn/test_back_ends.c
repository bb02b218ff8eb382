/* ggml's back ends as this process knows them. */
#include "engine/nn/back_ends.h"

#include <stdbool.h>
#include <stdlib.h>

#include "ggml-backend.h"

#include "test_support.h"

static void test_the_cpu_is_there_and_loading_again_changes_nothing(void **state)
{
    (void)state;
    s2_back_ends_load();
    size_t n = s2_back_ends_count();
    assert_true(n >= 1);
    size_t n_cpu = 0;
    for (size_t i = 0; i < n; i++) {
        ggml_backend_dev_t dev = s2_back_ends_device(i);
        assert_non_null(dev);
        n_cpu += ggml_backend_dev_type(dev) == GGML_BACKEND_DEVICE_TYPE_CPU;
    }
    assert_int_equal(n_cpu, 1);
    ggml_backend_dev_t first = s2_back_ends_device(0);
    /* Nor does a folder that is named when the CPU is known. */
    assert_int_equal(setenv("SLUICE_GGML_BACKENDS", "/nowhere", 1), 0);
    s2_back_ends_load();
    assert_int_equal(s2_back_ends_count(), n);
    assert_ptr_equal(s2_back_ends_device(0), first);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_the_cpu_is_there_and_loading_again_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
