/* One-file models; split sets are in test_split_set.c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gguf_bytes.h"
#include "process_state.h"

#include "base/mem.h"
#include "os/os_process.h"

#include "sluice/model.h"

static const uint64_t four[] = {4};

static gguf_bytes small_model(void)
{
    const uint64_t none[] = {4, 0};
    gguf_bytes g = gb_start(3, 3, 1);
    gb_key_str(&g, "general.architecture", "test");
    gb_tensor(&g, "a", 1, four, 0, 0);
    gb_tensor(&g, "none", 2, none, 0, 32);
    gb_tensor(&g, "b", 1, four, 0, 32);
    gb_pad(&g, 32);
    gb_fill(&g, 1, 16);
    gb_pad(&g, 32);
    gb_fill(&g, 2, 16);
    return g;
}

typedef struct fixture {
    char *dir;
    char path[4200];
    gguf_bytes bytes;
    sl_model *model;
} fixture;

static int set_up(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    f->dir = test_dir_create();
    test_path(f->path, sizeof f->path, f->dir, "small.gguf");
    f->bytes = small_model();
    test_write_file(f->path, f->bytes.p, f->bytes.n);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    fixture *f = *state;
    sl_model_close(&f->model);
    test_dir_remove(f->dir);
    gb_done(&f->bytes);
    free(f);
    return 0;
}

static void expect_refused(const char *path, int code, const char *needle)
{
    sl_model *model = NULL;
    sl_error err = {0};
    size_t n_fds = process_n_fds();
    int r = sl_model_open(path, &model, &err);
    assert_int_equal(r, code);
    assert_null(model);
    expect_good_message(&err, "", needle);
    assert_int_equal(process_n_fds(), n_fds);
    assert_false(process_maps(path));
}

static void test_tensors_and_their_bytes(void **state)
{
    fixture *f = *state;
    sl_error err = {0};
    assert_ok(sl_model_open(f->path, &f->model, &err), &err);
    assert_int_equal(sl_model_n_files(f->model), 1);
    assert_int_equal(sl_model_n_tensors(f->model), 3);
    assert_string_equal(sl_model_path(f->model), f->path);
    assert_non_null(sl_model_map(f->model, 0));
    assert_null(sl_model_map(f->model, 1));
    assert_non_null(sl_model_gguf(f->model, 0));
    assert_null(sl_model_gguf(f->model, 1));
    const sl_tensor *b = sl_model_find(f->model, "b");
    assert_non_null(b);
    assert_ptr_equal(b, sl_model_tensor_at(f->model, 2));
    assert_int_equal(b->i_file, 0);
    assert_memory_equal(sl_model_data(f->model, b), f->bytes.p + f->bytes.n - 16, 16);
    assert_null(sl_model_data(f->model, sl_model_find(f->model, "none")));
    assert_null(sl_model_find(f->model, "c"));
    assert_null(sl_model_tensor_at(f->model, 3));
    assert_ok(sl_model_check(f->model, &err), &err);
    assert_int_equal(truncate(f->path, 10), 0);
    assert_int_equal(sl_model_check(f->model, &err), SL_ECHANGED);
}

static void test_G1_01_short_files_have_one_message(void **state)
{
    fixture *f = *state;
    for (size_t n = 0; n < 24; n++) {
        char needle[64];
        gguf_bytes g = gb_start(3, 0, 0);
        test_write_file(f->path, g.p, n);
        snprintf(needle, sizeof needle, "small.gguf: file too short: have %zu bytes, need 24", n);
        expect_refused(f->path, SL_EFORMAT, needle);
        gb_done(&g);
    }
}

static void test_G1_22_a_file_cut_at_every_length(void **state)
{
    fixture *f = *state;
    for (size_t n = 0; n < f->bytes.n; n++) {
        test_write_file(f->path, f->bytes.p, n);
        expect_refused(f->path, SL_EFORMAT, "small.gguf");
    }
}

static void test_G1_22_a_large_model_cut_in_half(void **state)
{
    fixture *f = *state;
    const uint64_t ne[] = {1u << 20, 256};
    gguf_bytes g = gb_start(3, 1, 0);
    gb_tensor(&g, "large", 2, ne, 0, 0);
    gb_pad(&g, 32);
    test_write_file(f->path, g.p, g.n);
    assert_int_equal(truncate(f->path, (off_t)(g.n + (1u << 29))), 0);
    expect_refused(f->path, SL_EFORMAT, "tensor 'large'");
    assert_int_equal(truncate(f->path, (off_t)(g.n + (1u << 30))), 0);
    sl_error err = {0};
    assert_ok(sl_model_open(f->path, &f->model, &err), &err);
    gb_done(&g);
}

/* Files of holes: as large as a header wants them, with nothing in them. */
static void make_sparse(const char *path, const gguf_bytes *g, uint64_t n_bytes)
{
    test_write_file(path, g->p, g->n);
    assert_int_equal(truncate(path, (off_t)n_bytes), 0);
}

static void test_G1_05_counts_that_a_file_of_holes_allows(void **state)
{
    fixture *f = *state;
    const uint64_t n_bytes = 1ull << 40;
    gguf_bytes tensors = gb_start(3, n_bytes / 24 - 1, 0);
    gguf_bytes keys = gb_start(3, 0, n_bytes / 14 - 2);
    gguf_bytes strings = gb_start(3, 0, 1);
    gb_key_array(&strings, "k", SL_GGUF_STR, n_bytes / 8 - 10);
    uint64_t before = sl__process_rss().peak_bytes;
    make_sparse(f->path, &tensors, n_bytes);
    expect_refused(f->path, SL_EFORMAT, "tensor '' is there twice");
    make_sparse(f->path, &keys, n_bytes);
    expect_refused(f->path, SL_EFORMAT, "key number 0 is empty");
    make_sparse(f->path, &strings, n_bytes);
    expect_refused(f->path, SL_ELIMIT, "key 'k' brings the strings of arrays above 134217728");
    assert_true(sl__process_rss().peak_bytes - before < 1u << 20);
    gb_done(&tensors);
    gb_done(&keys);
    gb_done(&strings);
}

static void test_what_is_no_file(void **state)
{
    fixture *f = *state;
    char path[4200];
    expect_refused(f->dir, SL_EINVAL, "a directory");
    expect_refused("/dev/null", SL_EINVAL, "a device");
    expect_refused("/proc/self/status", SL_EFORMAT, "file too short");
    expect_refused(test_path(path, sizeof path, f->dir, "none.gguf"), SL_ENOENT, "none.gguf");
    test_path(path, sizeof path, f->dir, "fifo.gguf");
    assert_int_equal(mkfifo(path, 0600), 0);
    expect_refused(path, SL_EINVAL, "a FIFO");
}

static void test_through_a_link_of_another_name(void **state)
{
    fixture *f = *state;
    char path[4200];
    sl_error err = {0};
    test_path(path, sizeof path, f->dir, "link");
    assert_int_equal(symlink("small.gguf", path), 0);
    assert_ok(sl_model_open(path, &f->model, &err), &err);
    assert_string_equal(sl_model_path(f->model), path);
}

static void test_every_failing_allocation(void **state)
{
    fixture *f = *state;
    int r = SL_ENOMEM;
    long n = 0;
    size_t n_fds = process_n_fds();
    for (; r == SL_ENOMEM; n++) {
        sl_error err = {0};
        sl__mem_fail_after(n);
        r = sl_model_open(f->path, &f->model, &err);
        sl__mem_fail_after(-1);
        assert_int_equal(err.code, r);
        assert_int_equal(process_n_fds(), n_fds + (r == 0));
    }
    assert_int_equal(r, 0);
    assert_true(n > 6);
    sl_model_close(NULL);
}

/* Real files, one of each kind that the project has. */
static void test_models_of_the_repository(void **state)
{
    const char *const names[] = {"golden/tiny-s2-f32.gguf", "golden/tiny-s2-f16.gguf",
            "tiny/tiny-q8_0.gguf", "tiny/tiny-arf32.gguf"};
    fixture *f = *state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char path[4200];
        sl_span arch = {0};
        sl_error err = {0};
        test_data(path, sizeof path, names[i]);
        assert_ok(sl_model_open(path, &f->model, &err), &err);
        assert_ok(sl_gguf_get_str(sl_model_gguf(f->model, 0), "general.architecture", &arch, &err),
                &err);
        assert_int_equal(arch.n, 11);
        assert_memory_equal(arch.p, "fish-speech", 11);
        for (uint64_t k = 0; k < sl_model_n_tensors(f->model); k++) {
            char name[64] = {0};
            const sl_tensor *t = sl_model_tensor_at(f->model, k);
            memcpy(name, t->info->name.p, t->info->name.n);
            assert_ptr_equal(sl_model_find(f->model, name), t);
        }
        sl_model_close(&f->model);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test_setup_teardown(test_tensors_and_their_bytes, set_up, tear_down),
            cmocka_unit_test_setup_teardown(
                    test_G1_01_short_files_have_one_message, set_up, tear_down),
            cmocka_unit_test_setup_teardown(
                    test_G1_22_a_file_cut_at_every_length, set_up, tear_down),
            cmocka_unit_test_setup_teardown(
                    test_G1_22_a_large_model_cut_in_half, set_up, tear_down),
            cmocka_unit_test_setup_teardown(
                    test_G1_05_counts_that_a_file_of_holes_allows, set_up, tear_down),
            cmocka_unit_test_setup_teardown(test_what_is_no_file, set_up, tear_down),
            cmocka_unit_test_setup_teardown(test_through_a_link_of_another_name, set_up, tear_down),
            cmocka_unit_test_setup_teardown(test_every_failing_allocation, set_up, tear_down),
            cmocka_unit_test_setup_teardown(test_models_of_the_repository, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
