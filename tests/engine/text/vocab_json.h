/*
 * Writes a tokenizer.json from the tokens and merges of a GGUF vocabulary, so that the real vocabulary can be
 * tested where only its GGUF is at hand.
 */
#ifndef TEST_VOCAB_JSON_H
#define TEST_VOCAB_JSON_H

#include <stddef.h>

/* Tokens of Qwen2 and Qwen3 that are no added tokens. */
#define QWEN_N_BASE 151643

/* What the file gets on top of the base vocabulary. */
typedef enum vocab_added {
    VOCAB_QWEN3, /* the 26 added tokens of Qwen3 */
    VOCAB_S2,    /* and those of Fish Audio S2, with 4096 semantic tokens */
} vocab_added;

/* Merges are written as pairs for VOCAB_S2 and as "a b" for VOCAB_QWEN3. Failures fail the test. */
void write_vocab_json(const char *gguf_path, vocab_added added, const char *json_path);

#endif
