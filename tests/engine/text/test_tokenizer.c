#include "engine/text/tokenizer.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "random_text.h"
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

/* The ids of single characters, for texts that no merge of the tiny vocabulary touches. */
static void test_G4_12_control_tokens_are_characters(void **state)
{
    (void)state;
    s2_tokenizer *tk = open_data("tiny/tokenizer.json");
    /* < | i m _ e n d | > in GPT-2 order: byte - 0x21 */
    static const int32_t im_end[] = {27, 91, 72, 76, 62, 68, 77, 67, 91, 29};
    static const int32_t speaker[] = {27, 91, 82, 79, 68, 64, 74, 68, 81, 25, 15, 91, 29, 39, 72};
    static const int32_t semantic[] = {27, 91, 82, 68, 76, 64, 77, 83, 72, 66, 25, 15, 91, 29};
    static const int32_t voice[] = {27, 91, 85, 78, 72, 66, 68, 91, 29};
    static const int32_t parsed[] = {258, 272, 335};
    check_ids(tk, "<|im_end|>", 10, S2_CONTROL_AS_TEXT, im_end, 10);
    check_ids(tk, "<|semantic:0|>", 14, S2_CONTROL_AS_TEXT, semantic, 14);
    check_ids(tk, "<|voice|>", 9, S2_CONTROL_AS_TEXT, voice, 9);
    /* A speaker tag is no token at all. */
    check_ids(tk, "<|speaker:0|>Hi", 15, S2_CONTROL_AS_TEXT, speaker, 15);
    check_ids(tk, "<|speaker:0|>Hi", 15, S2_CONTROL_PARSE, speaker, 15);
    check_ids(tk, "<|im_end|><|semantic:0|><|semantic:63|>", 39, S2_CONTROL_PARSE, parsed, 3);
    assert_int_equal(s2_tokenizer_find(tk, "<|im_end|>"), 258);
    assert_int_equal(s2_tokenizer_find(tk, "<|im_end"), -1);
    assert_int_equal(s2_tokenizer_find(tk, "a"), -1);
    assert_int_equal(s2_tokenizer_n_ids(tk), 336);
    s2_tokenizer_close(&tk);
}

static void test_added_tokens_are_cut_before_normalisation(void **state)
{
    (void)state;
    s2_tokenizer *tk = open_data("tiny/tokenizer.json");
    /* The combining stroke would join the last byte of the token. */
    static const int32_t ids[] = {258, 136, 116};
    check_ids(tk, "<|im_end|>\xcc\xb8", 12, S2_CONTROL_PARSE, ids, 3);
    s2_tokenizer_close(&tk);
}

static void test_ids_are_appended(void **state)
{
    (void)state;
    s2_tokenizer *tk = open_data("tiny/tokenizer.json");
    s2_tokens tokens = {0};
    sl_error err = {0};
    assert_ok(s2_tokenizer_encode(tk, "a", 1, S2_CONTROL_AS_TEXT, &tokens, &err), &err);
    assert_ok(s2_tokenizer_encode(tk, "", 0, S2_CONTROL_AS_TEXT, &tokens, &err), &err);
    assert_ok(s2_tokenizer_encode(tk, "b\0c", 3, S2_CONTROL_PARSE, &tokens, &err), &err);
    assert_int_equal(tokens.n, 4);
    assert_int_equal(tokens.ids[1], 65);
    assert_int_equal(tokens.ids[2], 188); /* NUL is the first of the bytes that are renamed */
    /* A failed call leaves the list alone. */
    assert_int_equal(s2_tokenizer_encode(tk, "ab\xed\xa0\x80", 5, S2_CONTROL_PARSE, &tokens, &err),
            SL_EINVAL);
    assert_int_equal(err.offset, 2);
    assert_int_equal(tokens.n, 4);
    assert_int_equal(
            s2_tokenizer_encode(tk, "a", ((size_t)64 << 20) + 1, S2_CONTROL_PARSE, &tokens, &err),
            SL_ELIMIT);
    assert_int_equal(tokens.n, 4);
    s2_tokens_done(&tokens);
    s2_tokenizer_close(&tk);
}

/* A megabyte of what a regex engine or a quadratic merge would choke on. */
static void test_hostile_megabytes(void **state)
{
    (void)state;
    static const char *const parts[] = {
            " ", " \n", "a", "<|semantic:1", "'", "\xcc\x81\xcc\xa3", "\xe4\xbd\xa0"};
    size_t n = (size_t)1 << 20;
    char *text = malloc(n + 16);
    s2_tokenizer *tk = open_data("golden/tokenizer.json");
    assert_non_null(text);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        size_t n_text = repeat_text(text, n, parts[i]);
        s2_tokens tokens = {0};
        sl_error err = {0};
        assert_ok(s2_tokenizer_encode(tk, text, n_text, S2_CONTROL_PARSE, &tokens, &err), &err);
        assert_in_range(tokens.n, n_text / 16, n_text);
        s2_tokens_done(&tokens);
    }
    s2_tokenizer_close(&tk);
    free(text);
}

/* "normalized" added tokens are cut out after NFC: the tiny file, with one of its tokens changed. */
static void test_normalized_added_tokens(void **state)
{
    (void)state;
    char path[4096];
    size_t n = 0;
    sl_error err = {0};
    s2_tokenizer *tk = NULL;
    char *text = test_read_file(test_data(path, sizeof path, "golden/tokenizer.json"), &n);
    char *token = strstr(text, "<think>");
    assert_non_null(token);
    char *flag = strstr(token, "\"normalized\": false");
    assert_non_null(flag);
    (void)put_text(flag, "\"normalized\": true ");
    assert_ok(s2_tokenizer_open_text(text, n, "file", &tk, &err), &err);
    free(text);
    static const int32_t both[] = {536, 513};
    check_ids(tk, "<think><|im_start|>", 19, S2_CONTROL_PARSE, both, 2);
    assert_int_equal(s2_tokenizer_find(tk, "<think>"), 536);
    s2_tokens tokens = {0};
    assert_ok(s2_tokenizer_encode(tk, "<think>", 7, S2_CONTROL_AS_TEXT, &tokens, &err), &err);
    assert_true(tokens.n > 1);
    tokens.n = 0;
    /* U+226F: the stroke has joined the last byte, so that no token is left. */
    assert_ok(s2_tokenizer_encode(tk, "<think>\xcc\xb8", 9, S2_CONTROL_PARSE, &tokens, &err), &err);
    assert_true(tokens.n > 1 && tokens.ids[0] != 536);
    s2_tokens_done(&tokens);
    s2_tokenizer_close(&tk);
}

static void test_files_that_cannot_be_opened(void **state)
{
    (void)state;
    char path[4096];
    sl_error err = {0};
    s2_tokenizer *tk = NULL;
    char *dir = test_dir_create();
    assert_int_equal(s2_tokenizer_open(test_path(path, sizeof path, dir, "none.json"), &tk, &err),
            SL_ENOENT);
    assert_true(s2_tokenizer_open(dir, &tk, &err) < 0);
    test_path(path, sizeof path, dir, "bad\nname.json");
    test_write_file(path, "", 0);
    assert_int_equal(s2_tokenizer_open(path, &tk, &err), SL_EFORMAT);
    assert_null(strchr(err.msg, '\n'));
    test_write_file(path, "GGUF\3\0\0\0", 8);
    assert_int_equal(s2_tokenizer_open(path, &tk, &err), SL_EFORMAT);
    assert_non_null(strstr(err.msg, "line 1, column 1"));
    assert_null(tk);
    test_dir_remove(dir);
}

static int encode_once(const s2_tokenizer *tk, sl_error *err)
{
    static const char text[] = "Hello e\xcc\x81 <|im_end|> world";
    s2_tokens tokens = {0};
    int r = s2_tokenizer_encode(tk, text, sizeof text - 1, S2_CONTROL_PARSE, &tokens, err);
    assert_true(r == 0 || tokens.n == 0);
    s2_tokens_done(&tokens);
    return r;
}

static void test_every_failing_allocation_is_an_error(void **state)
{
    (void)state;
    s2_tokenizer *tk = open_data("golden/tokenizer.json");
    int r = SL_ENOMEM;
    long n = 0;
    for (; r == SL_ENOMEM && n < 100; n++) {
        sl_error err = {0};
        sl__mem_fail_after(n);
        r = encode_once(tk, &err);
        sl__mem_fail_after(-1);
    }
    assert_int_equal(r, 0);
    assert_in_range(n, 5, 99);
    s2_tokenizer_close(&tk);
    s2_tokenizer_close(&tk);
    s2_tokenizer_close(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_golden_vectors_of_the_tiny_vocabulary),
            cmocka_unit_test(test_G4_12_control_tokens_are_characters),
            cmocka_unit_test(test_added_tokens_are_cut_before_normalisation),
            cmocka_unit_test(test_ids_are_appended),
            cmocka_unit_test(test_hostile_megabytes),
            cmocka_unit_test(test_normalized_added_tokens),
            cmocka_unit_test(test_files_that_cannot_be_opened),
            cmocka_unit_test(test_every_failing_allocation_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
