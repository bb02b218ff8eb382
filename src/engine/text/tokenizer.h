/*
 * The model's tokenizer, from a HuggingFace tokenizer.json: added tokens cut out of the raw text, NFC, the
 * Qwen split pattern, byte-level BPE. vocab.h says which files are accepted.
 *
 * Does not promise: the ids of the reference for characters that are newer than Unicode 14; the reference
 * libraries themselves differ there (split.h, nfc.h).
 *
 * Threads: immutable once open; any thread.
 */
#ifndef S2_TEXT_TOKENIZER_H
#define S2_TEXT_TOKENIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "engine/text/bpe.h" /* s2_tokens */

typedef struct s2_tokenizer s2_tokenizer;

/* What the added tokens of the file mean inside a text. */
typedef enum s2_control {
    S2_CONTROL_AS_TEXT, /* their characters are ordinary text: what users type */
    S2_CONTROL_PARSE,   /* they are cut out as the tokens they name */
} s2_control;

/*
 * Opens a file of at most 64 MiB; one of 150,000 tokens takes about a quarter of a second.
 * Errors: those of reading; SL_EFORMAT with line and column; SL_EUNSUPPORTED (another kind of tokenizer);
 * SL_ELIMIT.
 */
int s2_tokenizer_open(
        const char *path, s2_tokenizer **ret_tokenizer, sl_error *reterr) SL_MUST_CHECK;

/* The same from memory; `name` begins every message. The text is not needed afterwards. */
int s2_tokenizer_open_text(const char *text, size_t n_bytes, const char *name,
        s2_tokenizer **ret_tokenizer, sl_error *reterr) SL_MUST_CHECK;

/* Frees it and sets *tokenizer to NULL. Accepts NULL and a pointer to NULL. */
void s2_tokenizer_close(s2_tokenizer **tokenizer);

/* Largest id + 1 of all tokens. */
int32_t s2_tokenizer_n_ids(const s2_tokenizer *tokenizer);

/* Id of an added token by its exact spelling ("<|im_end|>"), or -1. */
int32_t s2_tokenizer_find(const s2_tokenizer *tokenizer, const char *token);

/*
 * Appends the ids of text[0..n_bytes-1]. On error the list is what it was.
 * Errors: SL_EINVAL (not UTF-8: offset of the bad byte), SL_ELIMIT (more than 64 MiB), SL_ENOMEM.
 */
int s2_tokenizer_encode(const s2_tokenizer *tokenizer, const char *text, size_t n_bytes,
        s2_control control, s2_tokens *tokens, sl_error *reterr) SL_MUST_CHECK;

#endif
