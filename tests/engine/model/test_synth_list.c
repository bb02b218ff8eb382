/* The tensors of the S2 Pro preset are those of a full-size export, name by name and shape by shape. */
#include "engine/model/synth_list.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ggml.h"

#include "base/mem.h"
#include "test_support.h"

static int by_name(const void *a, const void *b)
{
    const s2_synth_tensor *x = a;
    const s2_synth_tensor *y = b;
    return strcmp(x->name, y->name);
}

/* "NAME\tNE0,NE1" as in s2pro-tensors.tsv. */
static void describe(const s2_synth_tensor *t, char line[192])
{
    int n = snprintf(line, 192, "%s\t", t->name);
    for (uint32_t d = 0; d < t->n_dims; d++) {
        n += snprintf(
                line + n, 192 - (size_t)n, "%s%llu", d ? "," : "", (unsigned long long)t->ne[d]);
    }
}

static void test_the_preset_is_a_full_export(void **state)
{
    (void)state;
    char path[512];
    char line[192];
    char want[192];
    sl_error err;
    s2_synth_opts opts = s2_synth_s2_pro();
    s2_synth_list list = {0};
    uint64_t n_ar = 0;
    uint64_t n_codec = 0;
    assert_ok(s2_synth_complete(&opts, &err), &err);
    assert_ok(s2_synth_list_fill(&opts, &list, &err), &err);
    qsort(list.items, list.n, sizeof *list.items, by_name);
    FILE *f = fopen(test_data(path, sizeof path, "golden/s2pro-tensors.tsv"), "rb");
    assert_non_null(f);
    size_t n = 0;
    while (fgets(want, sizeof want, f)) {
        want[strcspn(want, "\r\n")] = '\0';
        assert_true(n < list.n);
        const s2_synth_tensor *t = &list.items[n++];
        describe(t, line);
        assert_string_equal(line, want);
        bool is_codec = strncmp(t->name, "c.", 2) == 0;
        *(is_codec ? &n_codec : &n_ar) += t->ne[0] * t->ne[1] * t->ne[2];
        assert_int_equal(is_codec && t->type != GGML_TYPE_F16, 0);
    }
    assert_int_equal(fclose(f), 0);
    assert_int_equal(n, list.n);
    assert_int_equal(n, 813);
    /* Parameters as golden/README.md counts them. */
    assert_int_equal(n_ar, 4561852416);
    assert_int_equal(n_codec, 391398385);
    s2_synth_list_done(&list);
    assert_null(list.items);
}

static void test_matrices_have_the_type_and_vectors_are_floats(void **state)
{
    (void)state;
    sl_error err;
    s2_synth_opts opts = s2_synth_tiny();
    assert_ok(s2_synth_complete(&opts, &err), &err);
    static const uint32_t types[] = {GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_Q4_K};
    for (size_t k = 0; k < 3; k++) {
        s2_synth_list list = {0};
        opts.ar_type = types[k];
        assert_ok(s2_synth_list_fill(&opts, &list, &err), &err);
        for (size_t i = 0; i < list.n; i++) {
            const s2_synth_tensor *t = &list.items[i];
            uint32_t vector = types[k] == GGML_TYPE_F32 ? GGML_TYPE_F32 : GGML_TYPE_F16;
            bool is_codec = strncmp(t->name, "c.", 2) == 0;
            assert_int_equal(t->type, is_codec        ? opts.codec_type
                                      : t->n_dims > 1 ? types[k]
                                                      : vector);
        }
        s2_synth_list_done(&list);
    }
}

static void test_every_allocation_may_fail(void **state)
{
    (void)state;
    sl_error err;
    s2_synth_opts opts = s2_synth_tiny();
    assert_ok(s2_synth_complete(&opts, &err), &err);
    long n = 0;
    for (int r = SL_ENOMEM; r < 0; n++) {
        s2_synth_list list = {0};
        assert_true(n < 100);
        sl__mem_fail_after(n);
        r = s2_synth_list_fill(&opts, &list, &err);
        sl__mem_fail_after(-1);
        s2_synth_list_done(&list);
        assert_true(r == SL_OK || r == SL_ENOMEM);
    }
    assert_true(n > 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_the_preset_is_a_full_export),
            cmocka_unit_test(test_matrices_have_the_type_and_vectors_are_floats),
            cmocka_unit_test(test_every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
