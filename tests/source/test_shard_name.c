#include <string.h>

#include "test_support.h"

#include "base/mem.h"
#include "source/shard_name.h"

static void test_names_of_shards(void **state)
{
    static const struct {
        const char *path;
        uint32_t no; /* 0 = no shard's name */
        uint32_t count;
    } rows[] = {
            {"m-00001-of-00003.gguf", 1, 3},
            {"/a/b/m-00003-of-00003.gguf", 3, 3},
            {"m-with-00001-of-00002-00002-of-00002.gguf", 2, 2},
            {"m-99999-of-99999.gguf", 99999, 99999},
            {"m-00001-of-00001.gguf", 1, 1},
            {"-00001-of-00001.gguf", 0, 0},
            {"m-00000-of-00003.gguf", 0, 0},
            {"m-00004-of-00003.gguf", 0, 0},
            {"m-00000-of-00000.gguf", 0, 0},
            {"m-00001-of-00003.GGUF", 0, 0},
            {"m-00001-of-00003.gguf.part", 0, 0},
            {"m-0001-of-0003.gguf", 0, 0},
            {"m_00001-of-00003.gguf", 0, 0},
            {"m-0000a-of-00003.gguf", 0, 0},
            {"m-00001-of-000 3.gguf", 0, 0},
            {"m-00001_of-00003.gguf", 0, 0},
            {"m.gguf", 0, 0},
            {"", 0, 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        sl__shard_name name = {0};
        assert_int_equal(sl__shard_name_parse(rows[i].path, &name), rows[i].no != 0);
        assert_int_equal(name.no, rows[i].no);
        assert_int_equal(name.count, rows[i].count);
    }
}

static void test_paths_of_siblings(void **state)
{
    (void)state;
    char *path = sl__shard_path("/x-00009-of-00010.gguf/m-00009-of-00010.gguf", 10);
    assert_string_equal(path, "/x-00009-of-00010.gguf/m-00010-of-00010.gguf");
    sl__free(path);
    path = sl__shard_path("m-00001-of-99999.gguf", 54321);
    assert_string_equal(path, "m-54321-of-99999.gguf");
    sl__free(path);
    sl__mem_fail_after(0);
    assert_null(sl__shard_path("m-00001-of-99999.gguf", 2));
    sl__mem_fail_after(-1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_names_of_shards),
            cmocka_unit_test(test_paths_of_siblings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
