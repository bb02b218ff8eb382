/*
 * The prompt matrix of the slow AR.
 *
 * A prompt is a list of columns; column t holds 1 + n_codebooks int32, token major:
 *   columns[t * (1 + n_codebooks) + 0]     token id
 *   columns[t * (1 + n_codebooks) + 1 + j] code of book j, 0 in text columns
 * A column of audio has the token semantic_begin + code of book 0.
 *
 * The layout, where | separates what is tokenised by itself:
 *   <|im_start|>|system\n|SYSTEM TEXT|<|im_end|>|\n
 *   <|im_start|>|user\n|TEXT|<|im_end|>|\n<|im_start|>|assistant\n|<|voice|>
 * and with references, SYSTEM TEXT is
 *   ...\n\nText:\n|TRANSCRIPTS joined by \n|\n\nSpeech:\n|AUDIO COLUMNS
 * The control tokens of the layout are looked up by name; text of others never goes through that look-up
 * unless it is asked for (s2_control).
 *
 * Threads: one thread at a time for a prompt; the tokenizer is shared.
 */
#ifndef S2_TEXT_PROMPT_H
#define S2_TEXT_PROMPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "engine/text/speaker_tags.h" /* s2_text_batches */
#include "engine/text/tokenizer.h"

/* What the layout needs to know of the model; ids come from the tokenizer and the file, never from here. */
typedef struct s2_prompt_layout {
    const s2_tokenizer *tokenizer;
    uint32_t n_codebooks;
    uint32_t codebook_size; /* codes are 0..codebook_size-1 */
    int32_t semantic_begin;
    int32_t n_vocab;
    int32_t im_start; /* this and the next two are found by s2_prompt_layout_init */
    int32_t im_end;
    int32_t voice;
} s2_prompt_layout;

/* A recording that is to be imitated: its transcript and its codes. */
typedef struct s2_reference {
    const char *text;
    size_t text_bytes;
    const int32_t *codes; /* [n_codebooks][n_frames]: book major, as in voice files */
    uint32_t n_frames;
} s2_reference;

/* Zeroed memory is empty. */
typedef struct s2_prompt {
    int32_t *columns;
    size_t n_columns;
    size_t cap; /* int32 values allocated */
} s2_prompt;

/*
 * Looks up the tokens of the layout and checks that tokenizer and model belong together. The tokenizer must
 * outlive the layout.
 * Errors: SL_EFORMAT naming a token that the tokenizer lacks, or what does not fit the model.
 */
int s2_prompt_layout_init(s2_prompt_layout *layout, const s2_tokenizer *tokenizer,
        uint32_t n_codebooks, uint32_t codebook_size, int32_t semantic_begin, uint32_t n_vocab,
        sl_error *reterr) SL_MUST_CHECK;

/*
 * Begins a prompt (overwrites *prompt, which holds nothing before): the system message, with the references
 * (n_refs may be 0). A reference text without a speaker tag gets <|speaker:i|> in front.
 * Errors: SL_EINVAL (codes out of range, no frames, empty transcript, text not UTF-8), SL_ENOMEM; the prompt
 * is then empty.
 */
int s2_prompt_begin(const s2_prompt_layout *layout, const s2_reference *refs, size_t n_refs,
        s2_control control, s2_prompt *prompt, sl_error *reterr) SL_MUST_CHECK;

/* Appends one user message and the opening of the assistant's answer. On error the prompt is unchanged. */
int s2_prompt_add_user(const s2_prompt_layout *layout, const char *text, size_t n_bytes,
        s2_control control, s2_prompt *prompt, sl_error *reterr) SL_MUST_CHECK;

/* Appends the generated codes of that answer ([n_codebooks][n_frames]) and closes it. Likewise. */
int s2_prompt_add_answer(const s2_prompt_layout *layout, const int32_t *codes, uint32_t n_frames,
        s2_prompt *prompt, sl_error *reterr) SL_MUST_CHECK;

void s2_prompt_done(s2_prompt *prompt);

#endif
