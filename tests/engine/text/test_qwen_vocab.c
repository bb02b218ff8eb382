/*
 * The tokenizer on the real vocabulary of Qwen2 and Qwen3 (ggml-vocab-qwen2.gguf in SLUICE_VOCAB_DIR), which
 * is too large for the repository: the pairs of texts and ids that ggml publishes beside it, and the vectors
 * of golden/ for Qwen3 and S2.
 */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/text/tokenizer.h"
#include "test_support.h"
#include "vocab_json.h"

#define SEPARATOR "\n__ggml_vocab_test__\n"

typedef struct fixture {
    char *dir;
    char gguf[4096];
    s2_tokenizer *qwen3;
    s2_tokenizer *s2;
} fixture;

/* Folder of the vocabularies, or NULL; ctest sets it to that of the ggml source. */
static const char *vocab_dir(void)
{
    const char *dir = getenv("SLUICE_VOCAB_DIR");
    return dir && *dir ? dir : NULL;
}

static s2_tokenizer *open_as(const fixture *fx, vocab_added added, const char *name)
{
    char path[4096];
    sl_error err = {0};
    s2_tokenizer *tk = NULL;
    write_vocab_json(fx->gguf, added, test_path(path, sizeof path, fx->dir, name));
    assert_ok(s2_tokenizer_open(path, &tk, &err), &err);
    return tk;
}

static int set_up(void **state)
{
    fixture *fx = calloc(1, sizeof *fx);
    assert_non_null(fx);
    fx->dir = test_dir_create();
    test_path(fx->gguf, sizeof fx->gguf, vocab_dir(), "ggml-vocab-qwen2.gguf");
    fx->qwen3 = open_as(fx, VOCAB_QWEN3, "qwen3.json");
    fx->s2 = open_as(fx, VOCAB_S2, "s2.json");
    *state = fx;
    return 0;
}

static int tear_down(void **state)
{
    fixture *fx = *state;
    s2_tokenizer_close(&fx->qwen3);
    s2_tokenizer_close(&fx->s2);
    test_dir_remove(fx->dir);
    free(fx);
    return 0;
}

static bool has_ids(const s2_tokenizer *tk, const char *text, size_t n_bytes, s2_control control,
        const int32_t *ids, size_t n)
{
    s2_tokens tokens = {0};
    sl_error err = {0};
    assert_ok(s2_tokenizer_encode(tk, text, n_bytes, control, &tokens, &err), &err);
    bool is_equal = tokens.n == n && (n == 0 || memcmp(tokens.ids, ids, n * sizeof *ids) == 0);
    if (!is_equal) {
        print_error("\"%.*s\" gives", (int)n_bytes, text);
        for (size_t i = 0; i < tokens.n; i++) {
            print_error(" %d", (int)tokens.ids[i]);
        }
        print_error("\n");
    }
    s2_tokens_done(&tokens);
    return is_equal;
}

/* Numbers of one line, with blanks between them; returns where the next line begins. */
static const char *read_ids(const char *line, int32_t *ids, size_t cap, size_t *ret_n)
{
    size_t n = 0;
    while (*line && *line != '\n') {
        bool is_first_digit = *line != ' ' && (n == 0 || line[-1] == ' ');
        if (is_first_digit) {
            assert_true(n < cap);
            ids[n++] = 0;
        }
        if (*line != ' ') {
            assert_true(*line >= '0' && *line <= '9');
            ids[n - 1] = 10 * ids[n - 1] + (*line - '0');
        }
        line++;
    }
    *ret_n = n;
    return *line ? line + 1 : line;
}

static void test_the_published_texts_and_ids(void **state)
{
    const fixture *fx = *state;
    char path[4200];
    size_t n_bytes = 0;
    int n_texts = 0;
    int n_wrong = 0;
    snprintf(path, sizeof path, "%s.inp", fx->gguf);
    char *inp = test_read_file(path, &n_bytes);
    snprintf(path, sizeof path, "%s.out", fx->gguf);
    char *out = test_read_file(path, &n_bytes);
    const char *text = inp;
    const char *line = out;
    for (const char *end = strstr(text, SEPARATOR); end; end = strstr(text, SEPARATOR)) {
        int32_t ids[1024];
        size_t n = 0;
        line = read_ids(line, ids, 1024, &n);
        n_wrong += !has_ids(fx->qwen3, text, (size_t)(end - text), S2_CONTROL_PARSE, ids, n);
        n_texts++;
        text = end + strlen(SEPARATOR);
    }
    assert_int_equal(*line, '\0');
    assert_int_equal(n_texts, 46);
    assert_int_equal(n_wrong, 0);
    free(inp);
    free(out);
}

static int count_wrong_vectors(const s2_tokenizer *tk, const char *column)
{
    char path[4096];
    json_error_t err;
    int n_wrong = 0;
    json_t *root = json_load_file(
            test_data(path, sizeof path, "golden/tokenizer_vectors.json"), JSON_ALLOW_NUL, &err);
    assert_non_null(root);
    json_t *vectors = json_object_get(root, "vectors");
    assert_int_equal(json_array_size(vectors), 95);
    for (size_t i = 0; i < 95; i++) {
        json_t *vector = json_array_get(vectors, i);
        json_t *text = json_object_get(vector, "text");
        json_t *want = json_object_get(vector, column);
        int32_t ids[1024];
        size_t n = json_array_size(want);
        assert_in_range(n, 0, 1024);
        for (size_t k = 0; k < n; k++) {
            ids[k] = (int32_t)json_integer_value(json_array_get(want, k));
        }
        n_wrong += !has_ids(
                tk, json_string_value(text), json_string_length(text), S2_CONTROL_PARSE, ids, n);
    }
    json_decref(root);
    return n_wrong;
}

static void test_golden_vectors_of_qwen3(void **state)
{
    const fixture *fx = *state;
    assert_int_equal(count_wrong_vectors(fx->qwen3, "qwen3"), 0);
}

static void test_golden_vectors_of_s2(void **state)
{
    const fixture *fx = *state;
    assert_int_equal(s2_tokenizer_find(fx->s2, "<|semantic:4095|>"), 155773);
    assert_int_equal(s2_tokenizer_n_ids(fx->s2), 155774);
    assert_int_equal(count_wrong_vectors(fx->s2, "s2"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_the_published_texts_and_ids),
            cmocka_unit_test(test_golden_vectors_of_qwen3),
            cmocka_unit_test(test_golden_vectors_of_s2),
    };
    char path[4096];
    const char *dir = vocab_dir();
    if (!dir) {
        puts("skipped: SLUICE_VOCAB_DIR is not set; it names the folder of ggml-vocab-qwen2.gguf");
        return 77;
    }
    FILE *f = fopen(test_path(path, sizeof path, dir, "ggml-vocab-qwen2.gguf"), "rb");
    if (!f) {
        printf("skipped: there is no %s\n", path);
        return 77;
    }
    (void)fclose(f);
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
