#include "engine/text/tokenizer.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "test_support.h"

static s2_tokenizer *open_data(const char *name)
{
    char path[4096];
    sl_error err = {0};
    s2_tokenizer *tk = NULL;
    assert_ok(s2_tokenizer_open(test_data(path, sizeof path, name), &tk, &err), &err);
    assert_non_null(tk);
    return tk;
}

static json_t *load_json(const char *name)
{
    char path[4096];
    json_error_t err;
    json_t *root = json_load_file(test_data(path, sizeof path, name), JSON_ALLOW_NUL, &err);
    if (!root) {
        fail_msg("%s: %s", name, err.text);
    }
    return root;
}

/* Fails unless the text has exactly these ids. */
static void check_ids(const s2_tokenizer *tk, const char *text, size_t n_bytes, s2_control control,
        const int32_t *ids, size_t n)
{
    s2_tokens tokens = {0};
    sl_error err = {0};
    assert_ok(s2_tokenizer_encode(tk, text, n_bytes, control, &tokens, &err), &err);
    if (tokens.n != n) {
        fail_msg("\"%s\": %zu ids, needed %zu", text, tokens.n, n);
    }
    for (size_t i = 0; i < n; i++) {
        if (tokens.ids[i] != ids[i]) {
            fail_msg("\"%s\": id %zu is %d, needed %d", text, i, (int)tokens.ids[i], (int)ids[i]);
        }
    }
    s2_tokens_done(&tokens);
}

static void test_golden_vectors_of_the_tiny_vocabulary(void **state)
{
    (void)state;
    s2_tokenizer *tk = open_data("golden/tokenizer.json");
    json_t *root = load_json("golden/tokenizer_vectors.json");
    json_t *vectors = json_object_get(root, "vectors");
    assert_int_equal(json_array_size(vectors), 95);
    for (size_t i = 0; i < 95; i++) {
        json_t *vector = json_array_get(vectors, i);
        json_t *text = json_object_get(vector, "text");
        json_t *want = json_object_get(vector, "tiny");
        int32_t ids[512];
        size_t n = json_array_size(want);
        assert_in_range(n, 0, 512);
        for (size_t k = 0; k < n; k++) {
            ids[k] = (int32_t)json_integer_value(json_array_get(want, k));
        }
        check_ids(tk, json_string_value(text), json_string_length(text), S2_CONTROL_PARSE, ids, n);
    }
    json_decref(root);
    s2_tokenizer_close(&tk);
    assert_null(tk);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_golden_vectors_of_the_tiny_vocabulary),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
