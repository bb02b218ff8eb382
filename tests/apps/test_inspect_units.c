/* What units hold, on small files made here. */
#include "inspect_units.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/le_bytes.h"
#include "inspect.h"
#include "test_support.h"

static sl_span span(const char *s)
{
    return (sl_span){s, strlen(s)};
}

static void test_gathered_and_huge_tensors_are_lazy(void **state)
{
    sl_gguf_tensor t = {.name = span("embeddings.weight"), .n_bytes = 10};
    (void)state;
    assert_true(unit_tensor_is_lazy(&t));
    t.name = span("embeddings.weight2");
    assert_false(unit_tensor_is_lazy(&t));
    t.n_bytes = UINT64_C(4) << 30;
    assert_false(unit_tensor_is_lazy(&t));
    t.n_bytes++;
    assert_true(unit_tensor_is_lazy(&t));
}

/* A tensor of one block row for the file below. */
typedef struct made_tensor {
    const char *name;
    uint32_t type;
    uint64_t ne0;
    uint64_t n_bytes; /* a multiple of 32 */
} made_tensor;

enum {
    TYPE_F32 = 0,
    TYPE_F16 = 1,
    TYPE_Q8_0 = 8,
    TYPE_Q4_K = 12
};

static void put(FILE *f, uint64_t v, unsigned n_bytes)
{
    unsigned char b[8];
    sl__store_le(b, v, n_bytes);
    assert_int_equal(fwrite(b, 1, n_bytes, f), n_bytes);
}

static void put_str(FILE *f, const char *s)
{
    put(f, strlen(s), 8);
    assert_int_equal(fwrite(s, 1, strlen(s), f), strlen(s));
}

static void write_gguf(const char *path, const made_tensor *tensors, size_t n)
{
    uint64_t offset = 0;
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    put(f, UINT64_C(0x46554747), 4);
    put(f, 3, 4);
    put(f, n, 8);
    put(f, 0, 8);
    for (size_t i = 0; i < n; i++) {
        put_str(f, tensors[i].name);
        put(f, 1, 4);
        put(f, tensors[i].ne0, 8);
        put(f, tensors[i].type, 4);
        put(f, offset, 8);
        offset += tensors[i].n_bytes;
    }
    while (ftell(f) % 32 != 0) {
        put(f, 0, 1);
    }
    for (uint64_t i = 0; i < offset; i++) {
        put(f, 0, 1);
    }
    assert_int_equal(fclose(f), 0);
}

static void summarize(const made_tensor *tensors, size_t n, model_summary *ret)
{
    char path[4200];
    sl_error err = {0};
    sl_model *model = NULL;
    char *dir = test_dir_create();
    write_gguf(test_path(path, sizeof path, dir, "x.gguf"), tensors, n);
    assert_ok(sl_model_open(path, &model, &err), &err);
    unit_summarize(model, ret);
    for (int id = 0; id < S2_UNIT_COUNT; id++) {
        ret->units[id].coarse.first = NULL; /* of a model that is closed below */
    }
    sl_model_close(&model);
    test_dir_remove(dir);
}

static void test_G4_24_coarse_fast_ar_and_codec_are_told(void **state)
{
    static const made_tensor tensors[] = {
            {"layers.0.attention.wo.weight", TYPE_Q4_K, 512, 288},
            {"fast_layers.0.attention.wo.weight", TYPE_Q4_K, 512, 288},
            {"fast_layers.0.ffn_norm.weight", TYPE_F32, 8, 32},
            {"fast_output.weight", TYPE_Q8_0, 1024, 1088},
            {"c.quantizer.pre_module.norm.weight", TYPE_F16, 16, 32},
            {"c.decoder.model.0.conv.weight", TYPE_Q8_0, 1024, 1088},
            {"unknown.weight", TYPE_F32, 0, 0},
    };
    model_summary s;
    (void)state;
    summarize(tensors, sizeof tensors / sizeof tensors[0], &s);
    assert_int_equal(s.units[S2_UNIT_SLOW].coarse.n, 0);
    assert_int_equal(s.units[S2_UNIT_FAST].coarse.n, 1);
    assert_int_equal(s.units[S2_UNIT_CODEC_QUANTIZER].coarse.n, 0);
    assert_int_equal(s.units[S2_UNIT_CODEC_DECODER].coarse.n, 1);
    assert_int_equal(s.units[S2_UNIT_FAST].n_tensors, 3);
    assert_int_equal(s.units[S2_UNIT_FAST].n_bytes, 288 + 32 + 1088);
    assert_int_equal(s.units[S2_UNIT_FAST].n_of_type[TYPE_Q4_K], 1);
    assert_int_equal(s.units[S2_UNIT_NONE].n_zero_size, 1);
    assert_int_equal(s.n_bytes, 2 * 288 + 32 + 32 + 2 * 1088);
}

static void test_a_fine_unit_has_no_warning(void **state)
{
    static const unit_summary fine = {.n_tensors = 3};
    char buf[64];
    (void)state;
    assert_null(inspect_unit_warning(S2_UNIT_FAST, &fine, buf, sizeof buf));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_gathered_and_huge_tensors_are_lazy),
            cmocka_unit_test(test_G4_24_coarse_fast_ar_and_codec_are_told),
            cmocka_unit_test(test_a_fine_unit_has_no_warning),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
