/* An index that is read: short and long ones, files that are none, and files that lie. */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "gguf_bytes.h"
#include "source/gguf_head.h"
#include "test_support.h"

#define MIB ((size_t)1 << 20)

static char *dir;
static char path[512];

static int set_up(void **state)
{
    (void)state;
    dir = test_dir_create();
    test_path(path, sizeof path, dir, "m.gguf");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    test_dir_remove(dir);
    return 0;
}

/* Writes the bytes with `more` bytes of nothing behind them, and opens the index. */
static int open_head(gguf_bytes *g, size_t more, sl__gguf_head *ret, sl_error *err)
{
    size_t n = g->n + more;
    test_write_file(path, g->p, g->n);
    gb_done(g);
    assert_int_equal(truncate(path, (off_t)n), 0);
    int fd = open(path, O_RDONLY);
    assert_true(fd >= 0);
    int r = sl__gguf_head_open(fd, path, n, ret, err);
    close(fd);
    return r;
}

/* A file with a vocabulary of n words, 8 bytes each in the file, and one tensor of 1 MiB. */
static gguf_bytes with_words(size_t n)
{
    uint64_t ne[1] = {MIB / 4};
    gguf_bytes g = gb_start(3, 1, 2);
    gb_key_str(&g, "general.architecture", "test");
    gb_key_array(&g, "words", SL_GGUF_STR, n);
    gb_fill(&g, 0, n * 8); /* words of no letters: their lengths alone */
    gb_tensor(&g, "weights", 1, ne, 0, 0);
    gb_pad(&g, 32);
    return g;
}

static void test_an_index_of_any_length(void **state)
{
    static const size_t n_words[] = {1, 1000, 200000, 2400000};
    (void)state;
    for (size_t i = 0; i < sizeof n_words / sizeof n_words[0]; i++) {
        sl__gguf_head head = {0};
        sl_error err = {0};
        gguf_bytes g = with_words(n_words[i]);
        size_t data_offset = g.n;
        assert_ok(open_head(&g, MIB, &head, &err), &err);
        assert_int_equal(sl_gguf_n_tensors(head.gguf), 1);
        assert_int_equal(sl_gguf_tensor_at(head.gguf, 0)->offset, data_offset);
        assert_int_equal(sl_gguf_tensor_at(head.gguf, 0)->n_bytes, MIB);
        assert_int_equal(sl_gguf_find(head.gguf, "words")->n, n_words[i]);
        sl__gguf_head_done(&head);
        assert_null(head.gguf);
    }
}

static void test_what_is_no_gguf(void **state)
{
    (void)state;
    sl__gguf_head head = {0};
    sl_error err = {0};
    gguf_bytes g = gb_start(1, 0, 0);
    assert_int_equal(open_head(&g, 8 * MIB, &head, &err), SL_EUNSUPPORTED);
    assert_non_null(strstr(err.msg, "version 1"));
    g = (gguf_bytes){0};
    gb_fill(&g, 'x', 100);
    assert_int_equal(open_head(&g, 8 * MIB, &head, &err), SL_EFORMAT);
    assert_non_null(strstr(err.msg, "not a GGUF file"));
}

static void test_G1_22_a_tensor_that_ends_behind_the_file(void **state)
{
    (void)state;
    sl__gguf_head head = {0};
    sl_error err = {0};
    gguf_bytes g = with_words(10);
    assert_int_equal(open_head(&g, MIB - 1, &head, &err), SL_EFORMAT);
    assert_null(head.gguf);
    /* The same with an index that takes more than one look. */
    g = with_words(200000);
    assert_int_equal(open_head(&g, MIB - 1, &head, &err), SL_EFORMAT);
    assert_non_null(strstr(err.msg, "weights"));
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
            CASE(test_an_index_of_any_length),
            CASE(test_what_is_no_gguf),
            CASE(test_G1_22_a_tensor_that_ends_behind_the_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
