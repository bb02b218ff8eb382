#include "engine/text/vocab.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "test_support.h"

typedef struct fixture {
    char *text; /* golden/tokenizer.json */
    size_t n;
} fixture;

static int set_up(void **state)
{
    static fixture fx;
    char path[4096];
    fx.text = test_read_file(test_data(path, sizeof path, "golden/tokenizer.json"), &fx.n);
    *state = &fx;
    return 0;
}

static int tear_down(void **state)
{
    const fixture *fx = *state;
    free(fx->text);
    return 0;
}

/* The text with the first `from` replaced by `to`; free() it. */
static char *replaced(const fixture *fx, const char *from, const char *to)
{
    const char *at = strstr(fx->text, from);
    if (!at) {
        fail_msg("the file has no %s", from);
    }
    size_t n_before = (size_t)(at - fx->text);
    char *copy = malloc(fx->n + strlen(to) + 1);
    assert_non_null(copy);
    memcpy(copy, fx->text, n_before);
    snprintf(copy + n_before, fx->n + strlen(to) + 1 - n_before, "%s%s", to, at + strlen(from));
    return copy;
}

static int parse(const char *text, sl_error *err)
{
    s2_vocab vocab = {0};
    int r = s2_vocab_parse(text, strlen(text), "file", &vocab, err);
    s2_vocab_done(&vocab);
    return r;
}

typedef struct change {
    const char *from;
    const char *to;
    const char *says;
} change;

static void check_changes(const fixture *fx, const change *rows, size_t n_rows, int code)
{
    for (size_t i = 0; i < n_rows; i++) {
        sl_error err = {0};
        char *text = replaced(fx, rows[i].from, rows[i].to);
        int r = parse(text, &err);
        if (r != code || !strstr(err.msg, rows[i].says) || !strstr(err.msg, "file: line ")) {
            fail_msg("%s -> %s: %s, \"%s\"; needed: %s", rows[i].from, rows[i].to, sl_err_name(r),
                    err.msg, rows[i].says);
        }
        free(text);
    }
}

#define REGEX "\"Regex\": \"(?i:"

static void test_other_kinds_are_named(void **state)
{
    static const change rows[] = {
            {"\"BPE\"", "\"Unigram\"", "model.type is \"Unigram\", needed \"BPE\""},
            {"\"dropout\": null", "\"dropout\": 0.1", "model.dropout is 0.1"},
            {"\"byte_fallback\": false", "\"byte_fallback\": true", "model.byte_fallback is true"},
            {"\"ignore_merges\": false", "\"ignore_merges\": true", "model.ignore_merges is true"},
            {"\"end_of_word_suffix\": \"\"", "\"end_of_word_suffix\": \"</w>\"",
                    "end_of_word_suffix is \"</w>\""},
            {"\"NFC\"", "\"NFKC\"", "normalizer is \"NFKC\", needed \"NFC\" or null"},
            {"\"normalizer\": {", "\"normalizer\": [], \"x\": {", "normalizer is an array"},
            {"\"Sequence\"", "\"ByteLevel\"",
                    "pre_tokenizer is \"ByteLevel\", needed \"Sequence\""},
            {"\"Split\"", "\"Digits\"", "first pre-tokenizer is \"Digits\""},
            {REGEX, "\"Regex\": \"(?i:'x|", "the split pattern is \"(?i:'x|"},
            {"\"Regex\"", "\"String\"", "the split pattern is an object"},
            {"\"Isolated\"", "\"Removed\"", "split behavior is \"Removed\""},
            {"\"invert\": false", "\"invert\": true", "invert of the split is true"},
            {"\"add_prefix_space\": false", "\"add_prefix_space\": true",
                    "add_prefix_space is true, needed false"},
            {"\"use_regex\": false", "\"use_regex\": true", "use_regex is true"},
            {"\"use_regex\": false", "\"x\": false", "use_regex is"},
            {"\"lstrip\": false", "\"lstrip\": true", "lstrip is true"},
            {"\"single_word\": false", "\"single_word\": true", "single_word is true"},
    };
    check_changes(*state, rows, sizeof rows / sizeof rows[0], SL_EUNSUPPORTED);
}

static void test_broken_files_are_refused(void **state)
{
    static const change rows[] = {
            {"\"model\"", "\"Model\"", "this is no tokenizer.json"},
            {"\"vocab\"", "\"vocabulary\"", "model.vocab is nothing"},
            {"\"merges\"", "\"merge\"", "model.merges is nothing"},
            {"\"!\": 0", "\"!\": -1", "a token id is -1"},
            {"\"!\": 0", "\"!\": 16777216", "a token id is 16777216"},
            {"\"!\": 0", "\"!\": 1.5", "a token id is 1.5"},
            {"\"!\": 0", "\"!\": \"0\"", "a token id is \"0\""},
            {"\"!\": 0", "\"!\": 1", "the token id 1 is there twice"},
            {"\"!\": 0", "\"!!\": 0", "no token for the byte 0x21"},
            {"\"!\": 0", "\"!\": 0, \"!\": 700", "the key \"!\" is there twice"},
            {"\"id\": 513", "\"id\": 512", "the token id 512 is there twice"},
            {"\"id\": 513", "\"id\": 3", "the token id 3 is there twice"},
            {"\"id\": 513", "\"id\": null", "a token id is null"},
            {"\"id\": 513,", "", "a token id is an object"},
            {"\"<|im_start|>\"", "\"<|im_end|>\"", "an added token is there twice"},
            {"\"<|im_start|>\"", "\"\"", "content of an added token"},
            {"\"<|im_start|>\"", "5", "content of an added token is a number"},
            {"\"<|im_start|>\"", "\"!\"",
                    "the id of an added token is 513, but model.vocab says 0"},
            {"\"added_tokens\": [", "\"added_tokens\": {}, \"x\": [", "added_tokens is an object"},
    };
    check_changes(*state, rows, sizeof rows / sizeof rows[0], SL_EFORMAT);
}

/* The first merge of the file is replaced. */
static void test_broken_merges_are_refused(void **state)
{
    const fixture *fx = *state;
    static const struct {
        const char *merges;
        const char *says;
    } rows[] = {
            {"[\"h e\", \"h e\"]", "the merge is there twice"},
            {"[\"h e\", [\"h\", \"e\"]]", "the merge is there twice"},
            {"[\"h\"]", "a merge must be"},
            {"[\"h e x\"]", "a merge must be"},
            {"[[\"h\"]]", "a merge must be"},
            {"[[\"h\", 1]]", "a merge must be"},
            {"[7]", "a merge must be"},
            {"[\"\"]", "a merge must be"},
            {"[\" h\"]", "not made of tokens"},
            {"[\"h \"]", "not made of tokens"},
            {"[\"! !\"]", "\"!\" and \"!\" is not made of tokens and does not make one"},
            {"[\"hehehehehehehehehehehehehehe e\"]", "not made of tokens"},
            {"{}", "model.merges is an object"},
    };
    const char *at = strstr(fx->text, "\"merges\": ");
    assert_non_null(at);
    size_t n_before = (size_t)(at - fx->text);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char *text = malloc(n_before + 256);
        sl_error err = {0};
        assert_non_null(text);
        memcpy(text, fx->text, n_before);
        snprintf(text + n_before, 256, "\"merges\": %s}}", rows[i].merges);
        int r = parse(text, &err);
        if (r != SL_EFORMAT || !strstr(err.msg, rows[i].says)) {
            fail_msg("%s: %s, \"%s\"", rows[i].merges, sl_err_name(r), err.msg);
        }
        free(text);
    }
}

static void test_harmless_variants_are_read(void **state)
{
    static const change rows[] = {
            {"\"dropout\": null", "\"dropout\": 0.0", ""},
            {"\"byte_fallback\": false", "\"byte_fallback\": null", ""},
            {"\"unk_token\": null", "\"unk_token\": \"!\"", ""},
            {"\"continuing_subword_prefix\": \"\"", "\"continuing_subword_prefix\": null", ""},
            {"\"NFC\"", "\"NFC\", \"extra\": 1", ""},
            {"\"truncation\": null", "\"truncation\": {\"max_length\": 3}", ""},
            {"\"special\": true", "\"special\": false", ""},
            {"\"normalized\": false", "\"normalized\": true", ""},
    };
    const fixture *fx = *state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        sl_error err = {0};
        char *text = replaced(fx, rows[i].from, rows[i].to);
        assert_ok(parse(text, &err), &err);
        free(text);
    }
}

static void test_what_is_read(void **state)
{
    const fixture *fx = *state;
    s2_vocab vocab = {0};
    sl_error err = {0};
    assert_ok(s2_vocab_parse(fx->text, fx->n, "file", &vocab, &err), &err);
    assert_int_equal(vocab.n_ids, 611);
    assert_int_equal(vocab.bpe.n_merges, 256);
    assert_int_equal(vocab.bpe.byte_ids['!'], 0);
    assert_int_equal(vocab.bpe.byte_ids['\n'], 198);
    assert_int_equal(vocab.bpe.byte_ids[0xAD], 255);
    assert_int_equal(vocab.raw.n, 26 + 9 + 64);
    assert_int_equal(vocab.normalized.n, 0);
    assert_true(vocab.has_nfc);
    s2_vocab_done(&vocab);
}

/* Bytes changed at random: an error or a vocabulary, nothing else. */
static void test_random_damage(void **state)
{
    const fixture *fx = *state;
    uint64_t seed = 3;
    char *text = malloc(fx->n + 1);
    assert_non_null(text);
    for (int i = 0; i < 400; i++) {
        sl_error err = {0};
        memcpy(text, fx->text, fx->n + 1);
        for (int k = 0; k < 3; k++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            text[(seed >> 33) % fx->n] = (char)(1 + (seed >> 20) % 255);
        }
        int r = parse(text, &err);
        assert_true(r == 0 || r == SL_EFORMAT || r == SL_EUNSUPPORTED);
        assert_true(r == 0 || strstr(err.msg, "file: line "));
    }
    free(text);
}

static void test_every_failing_allocation_is_an_error(void **state)
{
    const fixture *fx = *state;
    int r = SL_ENOMEM;
    long n = 0;
    for (; r == SL_ENOMEM && n < 200; n++) {
        sl_error err = {0};
        sl__mem_fail_after(n);
        r = parse(fx->text, &err);
        sl__mem_fail_after(-1);
    }
    assert_int_equal(r, 0);
    assert_in_range(n, 10, 199);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_other_kinds_are_named),
            cmocka_unit_test(test_broken_files_are_refused),
            cmocka_unit_test(test_broken_merges_are_refused),
            cmocka_unit_test(test_harmless_variants_are_read),
            cmocka_unit_test(test_what_is_read),
            cmocka_unit_test(test_random_damage),
            cmocka_unit_test(test_every_failing_allocation_is_an_error),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
