/* Synthetic models: the same bytes for the same seed, refused sizes, and files that appear whole or not. */
#include "engine/model/synth.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ggml.h"

#include "base/mem.h"
#include "small_synth.h"
#include "test_support.h"

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

static char *write_and_read(const s2_synth_opts *opts, size_t *ret_n)
{
    char path[512];
    sl_error err;
    test_path(path, sizeof path, dir, "model.gguf");
    assert_ok(s2_synth_write(opts, path, &err), &err);
    return test_read_file(path, ret_n);
}

static void test_a_seed_means_the_same_bytes(void **state)
{
    (void)state;
    size_t sizes[3];
    s2_synth_opts opts = small_synth_opts(GGML_TYPE_Q8_0);
    char *first = write_and_read(&opts, &sizes[0]);
    char *again = write_and_read(&opts, &sizes[1]);
    opts.seed++;
    char *other = write_and_read(&opts, &sizes[2]);
    assert_int_equal(sizes[0], sizes[1]);
    assert_int_equal(sizes[0], sizes[2]);
    assert_memory_equal(first, again, sizes[0]);
    assert_int_not_equal(memcmp(first, other, sizes[0]), 0);
    free(first);
    free(again);
    free(other);
}

static void test_sizes_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    char path[512];
    sl_error err = {0};
    test_path(path, sizeof path, dir, "refused.gguf");
    s2_synth_opts opts = small_synth_opts(GGML_TYPE_Q4_K);
    assert_int_equal(s2_synth_write(&opts, path, &err), SL_EINVAL);
    assert_non_null(strstr(err.msg, "row length 32 of embeddings.weight"));
    assert_int_not_equal(access(path, F_OK), 0);

    opts = small_synth_opts(GGML_TYPE_F16);
    opts.hp.n_vocab = 256 + 34 + 16 + 1;
    assert_int_equal(s2_synth_complete(&opts, &err), SL_EINVAL);
    assert_non_null(strstr(err.msg, "vocabulary of 307"));
    opts = small_synth_opts(GGML_TYPE_F16);
    opts.hp.codec.pre_tf.head_dim = 12;
    assert_int_equal(s2_synth_complete(&opts, &err), SL_EINVAL);
    assert_non_null(strstr(err.msg, "head dimension"));
}

static void test_names_of_types(void **state)
{
    (void)state;
    uint32_t type = 99;
    assert_true(s2_synth_type("f16", &type));
    assert_int_equal(type, GGML_TYPE_F16);
    assert_true(s2_synth_type("q4_K", &type));
    assert_int_equal(type, GGML_TYPE_Q4_K);
    assert_true(s2_synth_type("q4_k", &type));
    assert_int_equal(type, GGML_TYPE_Q4_K);
    static const char *const others[] = {"", "i32", "q8_1", "f16 ", "F16", "iq4_nl", "q4"};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        assert_false(s2_synth_type(others[i], &type));
    }
}

/* Whatever allocation fails, there is an error and no file. */
static void test_every_allocation_may_fail(void **state)
{
    (void)state;
    char path[512];
    sl_error err;
    s2_synth_opts opts = small_synth_opts(GGML_TYPE_F32);
    test_path(path, sizeof path, dir, "starved.gguf");
    long n = 0;
    for (int r = SL_ENOMEM; r < 0; n++) {
        assert_true(n < 2000);
        sl__mem_fail_after(n);
        r = s2_synth_write(&opts, path, &err);
        sl__mem_fail_after(-1);
        assert_true(r == SL_OK || r == SL_ENOMEM);
        assert_int_equal(access(path, F_OK) == 0, r == SL_OK);
    }
    assert_true(n > 3);
}

static void test_a_folder_that_is_not_there(void **state)
{
    (void)state;
    char path[512];
    sl_error err = {0};
    s2_synth_opts opts = small_synth_opts(GGML_TYPE_F32);
    test_path(path, sizeof path, dir, "nowhere/model.gguf");
    assert_int_equal(s2_synth_write(&opts, path, &err), SL_ENOENT);
    assert_non_null(strstr(err.msg, "nowhere"));
    assert_int_equal(s2_synth_write_tokenizer(&opts, path, &err), SL_ENOENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_a_seed_means_the_same_bytes),
            cmocka_unit_test(test_sizes_that_do_not_fit_are_refused),
            cmocka_unit_test(test_names_of_types),
            cmocka_unit_test(test_every_allocation_may_fail),
            cmocka_unit_test(test_a_folder_that_is_not_there),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
