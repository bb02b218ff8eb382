/*
 * What a tokenizer.json says, checked and made ready for encoding.
 *
 * Accepted is what Qwen2, Qwen3 and S2 use, and nothing that would silently encode differently:
 *
 *   {"normalizer": {"type": "NFC"} or null,
 *    "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
 *        {"type": "Split", "pattern": {"Regex": (the pattern of split.h)}, "behavior": "Isolated", "invert": false},
 *        {"type": "ByteLevel", "add_prefix_space": false, "use_regex": false}]},
 *    "model": {"type": "BPE", "vocab": {"!": 0, ...}, "merges": ["a b", ...] or [["a", "b"], ...]},
 *    "added_tokens": [{"id": 151643, "content": "<|endoftext|>", ...}, ...]}
 *
 * Added tokens may be special or not, "normalized" or not; single_word, lstrip and rstrip must be false.
 * Truncation, padding, post-processor and decoder are not used.
 *
 * Pure function; any thread.
 */
#ifndef S2_TEXT_VOCAB_H
#define S2_TEXT_VOCAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "engine/text/added_tokens.h"
#include "engine/text/bpe.h"

/* Zeroed memory is empty. */
typedef struct s2_vocab {
    s2_bpe bpe;
    s2_added_tokens raw;        /* cut out of the text as it is */
    s2_added_tokens normalized; /* cut out after normalisation */
    char *spellings;            /* of the added tokens */
    bool has_nfc;
    int32_t n_ids; /* largest id + 1 */
} s2_vocab;

/*
 * Reads text[0..n_bytes-1]; `name` (of the file, for messages) begins every message.
 * Errors: SL_EFORMAT with line and column, SL_EUNSUPPORTED naming what was found and what is needed,
 * SL_ELIMIT, SL_ENOMEM.
 */
int s2_vocab_parse(const char *text, size_t n_bytes, const char *name, s2_vocab *ret_vocab,
        sl_error *reterr) SL_MUST_CHECK;
void s2_vocab_done(s2_vocab *vocab);

#endif
