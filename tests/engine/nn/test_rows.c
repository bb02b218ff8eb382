/* Rows of a table as a tensor: where they lie, and what is refused. */
#include "engine/nn/rows.h"

#include <string.h>

#include "broken_model.h"
#include "small_synth.h"
#include "test_support.h"

#define TABLE "embeddings.weight"

static char *dir;

static int set_up(void **state)
{
    s2_synth_opts opts = small_synth_opts(8); /* Q8_0: rows of whole blocks */
    char path[512];
    sl_error err = {0};
    sl_model *model = NULL;
    dir = test_dir_create();
    small_synth_write(&opts, dir, "rows");
    assert_ok(sl_model_open(test_path(path, sizeof path, dir, "rows.gguf"), &model, &err), &err);
    *state = model;
    return 0;
}

static int tear_down(void **state)
{
    sl_model *model = *state;
    sl_model_close(&model);
    test_dir_remove(dir);
    return 0;
}

static void test_rows_lie_within_their_table(void **state)
{
    const sl_model *model = *state;
    const sl_tensor *table = sl_model_find(model, TABLE);
    assert_non_null(table);
    uint64_t n_rows = table->info->ne[1];
    uint64_t row_bytes = table->info->n_bytes / n_rows;
    for (uint64_t first = 0; first < n_rows; first += 7) {
        uint64_t n = n_rows - first < 5 ? n_rows - first : 5;
        s2_rows rows;
        sl_error err = {0};
        assert_ok(s2_rows_init(&rows, model, TABLE, first, n, "some.rows", &err), &err);
        const sl_gguf_tensor *info = rows.tensor.info;
        assert_int_equal(rows.tensor.i_file, table->i_file);
        assert_int_equal(info->type, table->info->type);
        assert_int_equal(info->ne[0], table->info->ne[0]);
        assert_int_equal(info->ne[1], n);
        assert_int_equal(info->n_bytes, n * row_bytes);
        assert_int_equal(info->name.n, strlen("some.rows"));
        const char *begin = sl_model_data(model, table);
        assert_ptr_equal(sl_model_data(model, &rows.tensor), begin + first * row_bytes);
    }
}

static void expect_refused(
        const sl_model *model, const char *table, uint64_t first, uint64_t n, const char *needle)
{
    s2_rows rows;
    sl_error err = {0};
    assert_int_equal(s2_rows_init(&rows, model, table, first, n, "a", &err), SL_EFORMAT);
    assert_non_null(strstr(err.msg, needle));
}

static void test_rows_that_are_not_there_are_refused(void **state)
{
    const sl_model *model = *state;
    uint64_t n_rows = sl_model_find(model, TABLE)->info->ne[1];
    expect_refused(model, TABLE, 1, n_rows, "need rows 1 to");
    expect_refused(model, TABLE, n_rows, 1, "rows, need rows");
    expect_refused(model, TABLE, 0, n_rows + 1, "rows, need rows 0 to");
    expect_refused(model, TABLE, UINT64_MAX, 2, "rows, need rows");
    expect_refused(model, TABLE, 0, UINT64_MAX, "rows, need rows 0");
    expect_refused(model, "nothing.weight", 0, 1, "nothing.weight is missing");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_rows_lie_within_their_table),
            cmocka_unit_test(test_rows_that_are_not_there_are_refused),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
