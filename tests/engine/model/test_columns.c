/*
 * Columns as vectors, against the formula in double over the tables' values, for each type that tables come in; and the rows
 * of the head, which are the table's.
 */
#include "engine/model/columns.h"

#include <math.h>
#include <string.h>

#include "engine/model/slow_ar.h"
#include "model_fixture.h"
#include "small_synth.h"
#include "test_support.h"

#define MAX_EMBD 512
#define N        4

static char *dir;

static int set_up(void **state)
{
    (void)state;
    dir = test_dir_create();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    test_dir_remove(dir);
    return 0;
}

static void open_model(model_fixture *m, uint32_t type)
{
    char path[512];
    s2_synth_opts opts = small_synth_opts(type);
    small_synth_write(&opts, dir, "columns");
    model_fixture_open_path(m, test_path(path, sizeof path, dir, "columns.gguf"), 1);
}

static s2_tables tables_of(const model_fixture *m)
{
    return (s2_tables){s2_weights_find(m->weights, "%s", "embeddings.weight"),
            s2_weights_find(m->weights, "%s", "codebook_embeddings.weight")};
}

/* Element k of row i, by ggml's own reading of one block. */
static double element(const struct ggml_tensor *t, int64_t i, int64_t k)
{
    int64_t block = ggml_blck_size(t->type);
    const char *at = (const char *)t->data + (size_t)i * t->nb[1] +
                     (size_t)(k / block) * ggml_type_size(t->type);
    float values[256];
    if (t->type == GGML_TYPE_F32) {
        memcpy(values, at, sizeof values[0]);
    } else {
        ggml_get_type_traits(t->type)->to_float(at, values, block);
    }
    return (double)values[k % block];
}

static void check_columns(model_fixture *m, bool is_scaled)
{
    static float x[N * MAX_EMBD];
    static float rows[2 * MAX_EMBD];
    const s2_hparams *hp = &m->hp;
    s2_tables t = tables_of(m);
    uint32_t height = 1 + hp->n_codebooks;
    int32_t columns[N * (1 + S2_MAX_CODEBOOKS)] = {0};
    assert_true(hp->slow.n_embd <= MAX_EMBD);
    m->hp.scale_codebook_embeddings = is_scaled;
    /* The first and the last of the codes, text before and behind; codes of text columns count for nothing. */
    columns[0] = 1;
    columns[height] = hp->semantic_begin;
    columns[2 * height] = hp->semantic_end;
    columns[3 * height] = hp->semantic_begin - 1;
    for (uint32_t j = 0; j < hp->n_codebooks; j++) {
        columns[height + 1 + j] = (int32_t)(j % hp->codebook_size);
        columns[2 * height + 1 + j] = (int32_t)hp->codebook_size - 1;
        columns[3 * height + 1 + j] = 1;
    }
    s2_columns_embed(hp, &t, columns, N, rows, x);
    double scale = is_scaled ? 1.0 / sqrt((double)hp->n_codebooks + 1.0) : 1.0;
    for (uint32_t i = 0; i < N; i++) {
        const int32_t *c = columns + i * height;
        bool is_audio = i == 1 || i == 2;
        for (uint32_t k = 0; k < hp->slow.n_embd; k++) {
            double want = element(t.embeddings, c[0], k);
            for (uint32_t j = 0; j < hp->n_codebooks && is_audio; j++) {
                want += element(
                        t.codebook_embeddings, (int64_t)(j * hp->codebook_size) + c[1 + j], k);
            }
            want *= is_audio ? scale : 1.0;
            double off = fabs((double)x[i * hp->slow.n_embd + k] - want);
            assert_true(off <= 1e-6 * (1.0 + fabs(want)));
        }
    }
}

static const uint32_t types[] = {GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_BF16, GGML_TYPE_Q8_0};
#define N_TYPES (sizeof types / sizeof types[0])

static void test_columns_are_sums_of_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_TYPES; i++) {
        model_fixture m;
        open_model(&m, types[i]);
        check_columns(&m, true);
        check_columns(&m, false);
        model_fixture_close(&m);
    }
}

static void test_the_head_is_rows_of_the_table(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_TYPES; i++) {
        model_fixture m;
        static float row[MAX_EMBD];
        static float want[MAX_EMBD];
        open_model(&m, types[i]);
        const struct ggml_tensor *table = tables_of(&m).embeddings;
        const struct ggml_tensor *head = s2_weights_rows(m.weights);
        size_t n_bytes = m.hp.slow.n_embd * sizeof row[0];
        assert_non_null(head);
        assert_int_equal(head->ne[0], m.hp.slow.n_embd);
        assert_int_equal(head->ne[1], m.hp.codebook_size);
        assert_int_equal(head->type, table->type);
        for (uint32_t k = 0; k < m.hp.codebook_size; k++) {
            s2_columns_row(head, k, row);
            s2_columns_row(table, m.hp.semantic_begin + (int64_t)k, want);
            assert_memory_equal(row, want, n_bytes);
        }
        model_fixture_close(&m);
    }
}

/* It moves with the last layers, behind everything else that they need. */
static void test_the_head_is_last_of_its_slot(void **state)
{
    (void)state;
    const sl_tensor *list[256];
    model_fixture m;
    open_model(&m, GGML_TYPE_Q8_0);
    assert_true(sl_model_n_tensors(m.model) < 256);
    size_t n = s2_weights_list(m.weights, S2_SLOT_SLOW, list);
    assert_ptr_equal(list[n - 1], &m.head.tensor);
    s2_weights_split_slow(m.weights, 1);
    n = s2_weights_list(m.weights, S2_SLOT_SLOW, list);
    for (size_t i = 0; i < n; i++) {
        assert_ptr_not_equal(list[i], &m.head.tensor);
    }
    n = s2_weights_list(m.weights, S2_SLOT_SLOW_REST, list);
    assert_ptr_equal(list[n - 1], &m.head.tensor);
    model_fixture_close(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_columns_are_sums_of_rows),
            cmocka_unit_test(test_the_head_is_rows_of_the_table),
            cmocka_unit_test(test_the_head_is_last_of_its_slot),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
