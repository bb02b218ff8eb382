/*
 * The model's tokenizer, from a HuggingFace tokenizer.json: added tokens cut out of the raw text, NFC, the
 * Qwen split pattern, byte-level BPE.
 *
 * Threads: immutable once open, except that encode takes its scratch from the caller's list; any thread.
 */
#ifndef S2_TEXT_TOKENIZER_H
#define S2_TEXT_TOKENIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef struct s2_tokenizer s2_tokenizer;

/* A growing list of token ids. Zeroed memory is empty. */
typedef struct s2_tokens {
    int32_t *ids;
    size_t n;
    size_t cap;
} s2_tokens;

void s2_tokens_done(s2_tokens *tokens);
int s2_tokens_push(s2_tokens *tokens, int32_t id, sl_error *reterr) SL_MUST_CHECK;

/* What the added tokens of the file mean inside a text. */
typedef enum s2_control {
    S2_CONTROL_AS_TEXT, /* their characters are ordinary text: what users type */
    S2_CONTROL_PARSE,   /* they are cut out as the tokens they name */
} s2_control;

/* Errors: those of reading; SL_EFORMAT with line and column; SL_EUNSUPPORTED (another kind of tokenizer). */
int s2_tokenizer_open(
        const char *path, s2_tokenizer **ret_tokenizer, sl_error *reterr) SL_MUST_CHECK;
void s2_tokenizer_close(s2_tokenizer **tokenizer);

/* Largest id + 1 of all tokens. */
int32_t s2_tokenizer_n_ids(const s2_tokenizer *tokenizer);

/* Id of an added token by its exact spelling ("<|im_end|>"), or -1. */
int32_t s2_tokenizer_find(const s2_tokenizer *tokenizer, const char *token);

/* Appends the ids of text[0..n_bytes-1]. Errors: SL_EINVAL (not UTF-8: offset of the bad byte), SL_ENOMEM. */
int s2_tokenizer_encode(const s2_tokenizer *tokenizer, const char *text, size_t n_bytes,
        s2_control control, s2_tokens *tokens, sl_error *reterr) SL_MUST_CHECK;

#endif
