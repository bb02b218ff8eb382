#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <gguf.h>

#include "test_support.h"

#include "base/mem.h"
#include "source/gguf_write.h"

#include "sluice/model.h"

typedef struct fixture {
    char *dir;
    char path[4200];
    sl__gguf_writer *w;
    sl__out_file *file;
} fixture;

static int set_up(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    f->dir = test_dir_create();
    test_path(f->path, sizeof f->path, f->dir, "made.gguf");
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    fixture *f = *state;
    sl__gguf_writer_free(&f->w);
    sl__out_file_discard(&f->file);
    test_dir_remove(f->dir);
    free(f);
    return 0;
}

static void start(fixture *f, uint32_t alignment)
{
    sl_error err = {0};
    assert_ok(sl__gguf_writer_create(alignment, &f->w, &err), &err);
    assert_ok(sl__out_file_open(f->path, 0644, &f->file, &err), &err);
}

static void commit(fixture *f)
{
    sl_error err = {0};
    assert_ok(sl__gguf_writer_finish(f->w, &err), &err);
    assert_ok(sl__out_file_commit(&f->file, &err), &err);
}

static void put_all_kinds(sl__gguf_writer *w)
{
    const int16_t ints[] = {1, -2, 3};
    const float reals[] = {0.5f, -1.25f};
    const sl_span strs[] = {{"a", 1}, {"", 0}, {"\0\xFF", 2}};
    sl__gguf_put_u64(w, "u8", SL_GGUF_U8, 255);
    sl__gguf_put_i64(w, "i8", SL_GGUF_I8, -128);
    sl__gguf_put_u64(w, "u16", SL_GGUF_U16, 65535);
    sl__gguf_put_i64(w, "i16", SL_GGUF_I16, -32768);
    sl__gguf_put_u64(w, "u32", SL_GGUF_U32, UINT32_MAX);
    sl__gguf_put_i64(w, "i32", SL_GGUF_I32, INT32_MIN);
    sl__gguf_put_u64(w, "u64", SL_GGUF_U64, UINT64_MAX);
    sl__gguf_put_i64(w, "i64", SL_GGUF_I64, INT64_MIN);
    sl__gguf_put_f64(w, "f32", SL_GGUF_F32, 0.5);
    sl__gguf_put_f64(w, "f64", SL_GGUF_F64, 0.1);
    sl__gguf_put_u64(w, "bool", SL_GGUF_BOOL, 1);
    sl__gguf_put_str(w, "str", (sl_span){"text", 4});
    sl__gguf_put_array(w, "ints", SL_GGUF_I16, ints, 3);
    sl__gguf_put_array(w, "reals", SL_GGUF_F32, reals, 2);
    sl__gguf_put_array(w, "none", SL_GGUF_F64, NULL, 0);
    sl__gguf_put_strs(w, "strs", strs, 3);
}

static void expect_all_kinds(const sl_gguf *g)
{
    uint64_t u = 0;
    int64_t i = 0;
    double d = 0;
    bool b = false;
    sl_span s = {0};
    sl_error err = {0};
    assert_int_equal(sl_gguf_n_kv(g), 17); /* 16 and the alignment */
    assert_ok(sl_gguf_get_u64(g, "u64", &u, &err), &err);
    assert_true(u == UINT64_MAX);
    assert_ok(sl_gguf_get_i64(g, "i64", &i, &err), &err);
    assert_true(i == INT64_MIN);
    assert_ok(sl_gguf_get_i64(g, "i8", &i, &err), &err);
    assert_int_equal(i, -128);
    assert_ok(sl_gguf_get_f64(g, "f32", &d, &err), &err);
    assert_true(d == 0.5);
    assert_ok(sl_gguf_get_f64(g, "f64", &d, &err), &err);
    assert_true(d == 0.1);
    assert_ok(sl_gguf_get_bool(g, "bool", &b, &err), &err);
    assert_true(b);
    assert_ok(sl_gguf_get_str(g, "str", &s, &err), &err);
    assert_memory_equal(s.p, "text", 4);
    assert_ok(sl_gguf_elem_i64(sl_gguf_find(g, "ints"), 1, &i, &err), &err);
    assert_int_equal(i, -2);
    assert_ok(sl_gguf_elem_f64(sl_gguf_find(g, "reals"), 1, &d, &err), &err);
    assert_true(d == -1.25);
    assert_int_equal(sl_gguf_find(g, "none")->n, 0);
    assert_int_equal(sl_gguf_find(g, "strs")->n, 3);
    assert_int_equal(sl_gguf_find(g, "strs")->n_bytes, 27);
}

static void test_what_is_written_is_read(void **state)
{
    fixture *f = *state;
    const uint64_t ne[] = {32, 3};
    const uint64_t empty[] = {4, 0};
    char data[200];
    sl_error err = {0};
    for (size_t i = 0; i < sizeof data; i++) {
        data[i] = (char)(i + 1);
    }
    start(f, 64);
    put_all_kinds(f->w);
    sl__gguf_put_tensor(f->w, "first", 8, 2, ne); /* q8_0: 102 bytes */
    sl__gguf_put_tensor(f->w, "nothing", 0, 2, empty);
    sl__gguf_put_tensor(f->w, "scalar", 0, 0, NULL);
    sl__gguf_put_tensor(f->w, "last", 24, 1, ne);
    uint64_t total = sl__gguf_writer_total_bytes(f->w);
    assert_ok(sl__gguf_writer_begin(f->w, f->file, &err), &err);
    assert_ok(sl__gguf_writer_data(f->w, data, 100, &err), &err);
    assert_ok(sl__gguf_writer_data(f->w, data, 0, &err), &err);
    assert_ok(sl__gguf_writer_data(f->w, data + 100, 2, &err), &err);
    assert_ok(sl__gguf_writer_data(f->w, data, 4, &err), &err);
    assert_ok(sl__gguf_writer_data(f->w, data, 32, &err), &err);
    commit(f);

    sl_model *m = NULL;
    assert_ok(sl_model_open(f->path, &m, &err), &err);
    assert_int_equal(sl_map_size(sl_model_map(m, 0)), total);
    expect_all_kinds(sl_model_gguf(m, 0));
    assert_int_equal(sl_model_n_tensors(m), 4);
    assert_memory_equal(sl_model_data(m, sl_model_find(m, "first")), data, 102);
    assert_null(sl_model_data(m, sl_model_find(m, "nothing")));
    assert_memory_equal(sl_model_data(m, sl_model_find(m, "last")), data, 32);
    sl_model_close(&m);

    /* ggml's own reader agrees, data and all. */
    struct ggml_context *ctx = NULL;
    struct gguf_init_params params = {.no_alloc = false, .ctx = &ctx};
    struct gguf_context *ggml_view = gguf_init_from_file(f->path, params);
    assert_non_null(ggml_view);
    assert_int_equal(gguf_get_n_tensors(ggml_view), 4);
    assert_int_equal(gguf_get_alignment(ggml_view), 64);
    gguf_free(ggml_view);
    ggml_free(ctx);
}

static void test_no_keys_and_no_tensors(void **state)
{
    fixture *f = *state;
    sl_error err = {0};
    sl_model *m = NULL;
    start(f, 32);
    assert_ok(sl__gguf_writer_begin(f->w, f->file, &err), &err);
    commit(f);
    assert_ok(sl_model_open(f->path, &m, &err), &err);
    assert_int_equal(sl_model_n_tensors(m), 0);
    sl_model_close(&m);
}

static void test_values_that_do_not_fit_are_refused(void **state)
{
    static const struct {
        sl_gguf_type type;
        int64_t v;
        bool fits;
    } rows[] = {{SL_GGUF_U8, 255, true}, {SL_GGUF_U8, 256, false}, {SL_GGUF_U8, -1, false},
            {SL_GGUF_I8, 127, true}, {SL_GGUF_I8, 128, false}, {SL_GGUF_I8, -128, true},
            {SL_GGUF_I8, -129, false}, {SL_GGUF_I64, INT64_MIN, true}, {SL_GGUF_U64, -1, false},
            {SL_GGUF_BOOL, 1, true}, {SL_GGUF_BOOL, 2, false}, {SL_GGUF_F32, 1, false},
            {SL_GGUF_STR, 1, false}, {SL_GGUF_ARRAY, 1, false}};
    fixture *f = *state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        sl_error err = {0};
        start(f, 32);
        sl__gguf_put_i64(f->w, "key", rows[i].type, rows[i].v);
        sl__gguf_put_u64(f->w, "later", SL_GGUF_U8, 1);
        int r = sl__gguf_writer_begin(f->w, f->file, &err);
        assert_int_equal(r, rows[i].fits ? 0 : SL_EINVAL);
        if (!rows[i].fits) {
            assert_non_null(strstr(err.msg, "'key'"));
        }
        sl__gguf_writer_free(&f->w);
        sl__out_file_discard(&f->file);
    }
}

static void test_real_values_that_do_not_fit(void **state)
{
    static const struct {
        sl_gguf_type type;
        double v;
        bool fits;
    } rows[] = {{SL_GGUF_F32, 1e300, false}, {SL_GGUF_F32, -1e39, false}, {SL_GGUF_F32, 3e38, true},
            {SL_GGUF_F32, (double)INFINITY, true}, {SL_GGUF_F64, 1e300, true},
            {SL_GGUF_U32, 1, false}};
    fixture *f = *state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        start(f, 32);
        sl__gguf_put_f64(f->w, "key", rows[i].type, rows[i].v);
        assert_int_equal(sl__gguf_writer_begin(f->w, f->file, NULL), rows[i].fits ? 0 : SL_EINVAL);
        sl__gguf_writer_free(&f->w);
        sl__out_file_discard(&f->file);
    }
}

static void test_tensors_out_of_range_are_refused(void **state)
{
    static const struct {
        const char *name;
        uint32_t type;
        uint32_t n_dims;
        uint64_t ne[4];
    } rows[] = {{"rows", 8, 1, {31}}, {"type", 4, 1, {32}}, {"dims", 0, 5, {1, 1, 1, 1}},
            {"huge", 0, 2, {1ull << 40, 1ull << 40}},
            {"a name of sixty-four bytes, one more than the readers of ggml keep", 0, 1, {1}}};
    fixture *f = *state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        start(f, 32);
        sl__gguf_put_tensor(f->w, rows[i].name, rows[i].type, rows[i].n_dims, rows[i].ne);
        assert_int_equal(sl__gguf_writer_begin(f->w, f->file, NULL), SL_EINVAL);
        sl__gguf_writer_free(&f->w);
        sl__out_file_discard(&f->file);
    }
}

static void test_too_much_and_too_little_data(void **state)
{
    fixture *f = *state;
    const uint64_t ne[] = {4};
    const char data[17] = {0};
    sl_error err = {0};
    start(f, 32);
    sl__gguf_put_tensor(f->w, "t", 0, 1, ne);
    assert_ok(sl__gguf_writer_begin(f->w, f->file, &err), &err);
    assert_int_equal(sl__gguf_writer_data(f->w, data, 17, &err), SL_EINVAL);
    assert_ok(sl__gguf_writer_data(f->w, data, 15, &err), &err);
    assert_int_equal(sl__gguf_writer_finish(f->w, &err), SL_EINVAL);
    assert_ok(sl__gguf_writer_data(f->w, data, 1, &err), &err);
    assert_int_equal(sl__gguf_writer_data(f->w, data, 1, &err), SL_EINVAL);
    assert_ok(sl__gguf_writer_finish(f->w, &err), &err);
}

static void test_alignments(void **state)
{
    const uint32_t bad[] = {0, 3, 33, 1u << 21, UINT32_MAX};
    sl__gguf_writer *w = NULL;
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(sl__gguf_writer_create(bad[i], &w, NULL), SL_EINVAL);
        assert_null(w);
    }
}

static void test_every_failing_allocation(void **state)
{
    fixture *f = *state;
    const uint64_t ne[] = {4};
    int r = SL_ENOMEM;
    long n = 0;
    for (; r == SL_ENOMEM; n++) {
        sl_error err = {0};
        assert_ok(sl__out_file_open(f->path, 0644, &f->file, &err), &err);
        sl__mem_fail_after(n);
        r = sl__gguf_writer_create(64, &f->w, &err);
        if (r >= 0) {
            put_all_kinds(f->w);
            sl__gguf_put_tensor(f->w, "t", 0, 1, ne);
            r = sl__gguf_writer_begin(f->w, f->file, &err);
        }
        sl__mem_fail_after(-1);
        assert_int_equal(err.code, r);
        sl__gguf_writer_free(&f->w);
        sl__out_file_discard(&f->file);
    }
    assert_int_equal(r, 0);
    assert_true(n > 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test_setup_teardown(test_what_is_written_is_read, set_up, tear_down),
            cmocka_unit_test_setup_teardown(test_no_keys_and_no_tensors, set_up, tear_down),
            cmocka_unit_test_setup_teardown(
                    test_values_that_do_not_fit_are_refused, set_up, tear_down),
            cmocka_unit_test_setup_teardown(test_real_values_that_do_not_fit, set_up, tear_down),
            cmocka_unit_test_setup_teardown(
                    test_tensors_out_of_range_are_refused, set_up, tear_down),
            cmocka_unit_test_setup_teardown(test_too_much_and_too_little_data, set_up, tear_down),
            cmocka_unit_test(test_alignments),
            cmocka_unit_test_setup_teardown(test_every_failing_allocation, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
