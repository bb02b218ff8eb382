/*
 * Every vector of tests/data/gguf-vectors.json is a test of its own, named after its case: from memory of
 * exactly its size, and from a file.
 *
 * Two rulings of ours: a bool byte of 2 is accepted (it reads as true), a key of 65536 bytes is refused
 * (gguf.h caps keys at 65535).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "gguf_bytes.h"
#include "sluice/model.h"

typedef struct vector {
    char test_name[128];
    bool must_accept;
    gguf_bytes bytes;
} vector;

static const char *text_of(json_t *v, const char *key)
{
    const char *text = json_string_value(json_object_get(v, key));
    return text ? text : "";
}

/* The bytes as the file gives them: hex, hex and zeros, or the one that is described in words. */
static gguf_bytes make_bytes(json_t *v)
{
    gguf_bytes g = {0};
    size_t n = (size_t)json_integer_value(json_object_get(v, "bytes"));
    if (strcmp(text_of(v, "name"), "key_65536") == 0) {
        g = gb_start(3, 0, 1);
        gb_u64(&g, 65536);
        gb_fill(&g, 'k', 65536);
        gb_u32(&g, SL_GGUF_U8);
        gb_u8(&g, 1);
    } else {
        size_t n_hex = 0;
        const char *hex = text_of(v, "hex");
        unsigned char *raw = test_from_hex(*hex ? hex : text_of(v, "hex_head"), &n_hex);
        gb_raw(&g, raw, n_hex);
        free(raw);
        assert_true(n_hex <= n);
        gb_fill(&g, 0, n - n_hex);
    }
    assert_int_equal(g.n, n);
    return g;
}

static bool rules_accept(json_t *v)
{
    const char *name = text_of(v, "name");
    return strcmp(text_of(v, "expected_ours"), "accept") == 0 || strcmp(name, "bool_2") == 0;
}

static void test_vector_in_memory(void **state)
{
    const vector *v = *state;
    gguf_bytes copy = {0};
    gb_raw(&copy, v->bytes.p, v->bytes.n);
    if (v->must_accept) {
        gb_expect_accepted(&copy);
    } else {
        gb_expect_refused(&copy, "");
    }
}

static void test_vector_in_file(void **state)
{
    const vector *v = *state;
    char path[4200];
    sl_model *model = NULL;
    sl_error err = {0};
    char *dir = test_dir_create();
    test_path(path, sizeof path, dir, "vector.gguf");
    test_write_file(path, v->bytes.p, v->bytes.n);
    int r = sl_model_open(path, &model, &err);
    if (v->must_accept) {
        assert_ok(r, &err);
        assert_int_equal(sl_model_n_files(model), 1);
        sl_model_close(&model);
    } else {
        assert_true(r == SL_EFORMAT || r == SL_EUNSUPPORTED);
        assert_null(model);
        expect_good_message(&err, "vector.gguf", "");
    }
    test_dir_remove(dir);
}

/* "test_G1_05_nkv_max_in_memory" */
static void name_test(char *name, size_t n, json_t *v, const char *where)
{
    char id[16];
    snprintf(id, sizeof id, "%s", text_of(v, "case"));
    id[2] = '_';
    snprintf(name, n, "test_%s_%s_%s", id, text_of(v, "name"), where);
}

int main(void)
{
    char path[4200];
    json_error_t why;
    snprintf(path, sizeof path, "%s/gguf-vectors.json", SLUICE_TEST_DATA);
    json_t *list = json_load_file(path, 0, &why);
    size_t n = json_array_size(list);
    vector *vectors = calloc(2 * n + 1, sizeof *vectors);
    struct CMUnitTest *tests = calloc(2 * n + 1, sizeof *tests);
    if (n == 0 || !vectors || !tests) {
        fprintf(stderr, "%s: %s\n", path, list ? "no vectors" : why.text);
        return 1;
    }
    for (size_t i = 0; i < 2 * n; i++) {
        json_t *v = json_array_get(list, i / 2);
        bool in_file = i % 2 == 1;
        name_test(vectors[i].test_name, sizeof vectors[i].test_name, v,
                in_file ? "in_file" : "in_memory");
        vectors[i].must_accept = rules_accept(v);
        vectors[i].bytes = make_bytes(v);
        tests[i].name = vectors[i].test_name;
        tests[i].test_func = in_file ? test_vector_in_file : test_vector_in_memory;
        tests[i].initial_state = &vectors[i];
    }
    int n_failed = _cmocka_run_group_tests("gguf_vectors", tests, 2 * n, NULL, NULL);
    for (size_t i = 0; i < 2 * n; i++) {
        gb_done(&vectors[i].bytes);
    }
    free(vectors);
    free(tests);
    json_decref(list);
    return n_failed;
}
