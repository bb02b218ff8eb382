#include "vocab_json.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "engine/text/split.h"
#include "sluice/model.h"
#include "test_support.h"

#define N_QWEN3_ADDED 26
#define N_FISH_ADDED  9
#define N_SEMANTIC    4096

static void write_string(FILE *f, const char *s, size_t n)
{
    fputc('"', f);
    for (size_t i = 0; i < n; i++) {
        if (s[i] == '"' || s[i] == '\\') {
            fputc('\\', f);
        }
        fputc(s[i], f);
    }
    fputc('"', f);
}

static const sl_gguf_kv *find_strings(const sl_model *model, const char *key)
{
    const sl_gguf_kv *kv = sl_gguf_find(sl_model_gguf(model, 0), key);
    if (!kv) {
        fail_msg("the vocabulary has no %s", key);
    }
    return kv;
}

static void write_base_tokens(FILE *f, const sl_model *model)
{
    const sl_gguf_kv *tokens = find_strings(model, "tokenizer.ggml.tokens");
    const char *cursor = tokens->data;
    sl_error err = {0};
    assert_true(tokens->n >= QWEN_N_BASE);
    for (int id = 0; id < QWEN_N_BASE; id++) {
        sl_span token;
        assert_ok(sl_gguf_next_str(tokens, &cursor, &token, &err), &err);
        fprintf(f, "%s", id > 0 ? ",\n" : "");
        write_string(f, token.p, token.n);
        fprintf(f, ": %d", id);
    }
}

static void write_merges(FILE *f, const sl_model *model, bool as_pairs)
{
    const sl_gguf_kv *merges = find_strings(model, "tokenizer.ggml.merges");
    const char *cursor = merges->data;
    sl_error err = {0};
    for (uint64_t i = 0; i < merges->n; i++) {
        sl_span merge;
        assert_ok(sl_gguf_next_str(merges, &cursor, &merge, &err), &err);
        fprintf(f, "%s", i > 0 ? ",\n" : "");
        if (!as_pairs) {
            write_string(f, merge.p, merge.n);
            continue;
        }
        const char *blank = memchr(merge.p, ' ', merge.n);
        assert_non_null(blank);
        size_t n_left = (size_t)(blank - merge.p);
        fputc('[', f);
        write_string(f, merge.p, n_left);
        fputc(',', f);
        write_string(f, blank + 1, merge.n - n_left - 1);
        fputc(']', f);
    }
}

static void write_one_added(FILE *f, int id, const char *content, bool is_special)
{
    fprintf(f,
            "%s{\"id\": %d, \"content\": \"%s\", \"single_word\": false, \"lstrip\": false, "
            "\"rstrip\": false, \"normalized\": false, \"special\": %s}",
            id > QWEN_N_BASE ? ",\n" : "", id, content, is_special ? "true" : "false");
}

/* The tiny tokenizer of golden/ has the same added tokens in the same order. */
static void write_added(FILE *f, vocab_added added)
{
    char path[4096];
    json_error_t err;
    json_t *root = json_load_file(
            test_data(path, sizeof path, "golden/tokenizer.json"), JSON_ALLOW_NUL, &err);
    assert_non_null(root);
    json_t *list = json_object_get(root, "added_tokens");
    int n = added == VOCAB_S2 ? N_QWEN3_ADDED + N_FISH_ADDED : N_QWEN3_ADDED;
    for (int i = 0; i < n; i++) {
        json_t *token = json_array_get(list, (size_t)i);
        write_one_added(f, QWEN_N_BASE + i, json_string_value(json_object_get(token, "content")),
                json_is_true(json_object_get(token, "special")));
    }
    for (int code = 0; added == VOCAB_S2 && code < N_SEMANTIC; code++) {
        char content[32];
        snprintf(content, sizeof content, "<|semantic:%d|>", code);
        write_one_added(f, QWEN_N_BASE + n + code, content, true);
    }
    json_decref(root);
}

static void write_kinds(FILE *f)
{
    fprintf(f, "{\"version\": \"1.0\", \"normalizer\": {\"type\": \"NFC\"},\n");
    fprintf(f, "\"pre_tokenizer\": {\"type\": \"Sequence\", \"pretokenizers\": [");
    fprintf(f, "{\"type\": \"Split\", \"pattern\": {\"Regex\": ");
    write_string(f, s2_split_pattern, strlen(s2_split_pattern));
    fprintf(f, "}, \"behavior\": \"Isolated\", \"invert\": false},\n");
    fprintf(f, "{\"type\": \"ByteLevel\", \"add_prefix_space\": false, \"use_regex\": false}]}");
}

void write_vocab_json(const char *gguf_path, vocab_added added, const char *json_path)
{
    sl_model *model = NULL;
    sl_error err = {0};
    assert_ok(sl_model_open(gguf_path, &model, &err), &err);
    FILE *f = fopen(json_path, "wb");
    assert_non_null(f);
    write_kinds(f);
    fprintf(f, ",\n\"added_tokens\": [");
    write_added(f, added);
    fprintf(f, "],\n\"model\": {\"type\": \"BPE\", \"dropout\": null, \"vocab\": {");
    write_base_tokens(f, model);
    fprintf(f, "},\n\"merges\": [");
    write_merges(f, model, added == VOCAB_S2);
    fprintf(f, "]}}\n");
    assert_int_equal(fclose(f), 0);
    sl_model_close(&model);
}
