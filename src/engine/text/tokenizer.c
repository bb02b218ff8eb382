#include "engine/text/tokenizer.h"

#include <string.h>

#include "base/mem.h"
#include "engine/text/nfc.h"
#include "engine/text/normalize.h"
#include "engine/text/split.h"
#include "engine/text/vocab.h"
#include "os/os_file.h"

#define MAX_FILE_BYTES ((uint64_t)64 << 20)
#define MAX_TEXT_BYTES ((size_t)64 << 20)

struct s2_tokenizer {
    s2_vocab vocab;
};

/* One call of encode. */
typedef struct encoder {
    const s2_vocab *vocab;
    s2_control control;
    s2_bpe_scratch scratch;
    s2_tokens *tokens;
    sl_error *reterr;
} encoder;

int s2_tokenizer_open_text(const char *text, size_t n_bytes, const char *name,
        s2_tokenizer **ret_tokenizer, sl_error *reterr)
{
    s2_tokenizer *tokenizer = sl__alloc(1, sizeof *tokenizer);
    if (!tokenizer) {
        return sl__fail_nomem(reterr, sizeof *tokenizer, "a tokenizer");
    }
    int r = s2_vocab_parse(text, n_bytes, name, &tokenizer->vocab, reterr);
    if (r < 0) {
        s2_tokenizer_close(&tokenizer);
        return r;
    }
    *ret_tokenizer = tokenizer;
    return 0;
}

int s2_tokenizer_open(const char *path, s2_tokenizer **ret_tokenizer, sl_error *reterr)
{
    char name[256];
    char *text = NULL;
    size_t n_bytes = 0;
    int r = sl__read_file(path, "tokenizer", MAX_FILE_BYTES, &text, &n_bytes, reterr);
    if (r < 0) {
        return r;
    }
    sl__quote(name, sizeof name, path, strlen(path));
    r = s2_tokenizer_open_text(text, n_bytes, name, ret_tokenizer, reterr);
    sl__free(text);
    return r;
}

void s2_tokenizer_close(s2_tokenizer **tokenizer)
{
    if (tokenizer && *tokenizer) {
        s2_vocab_done(&(*tokenizer)->vocab);
        sl__free(*tokenizer);
        *tokenizer = NULL;
    }
}

int32_t s2_tokenizer_n_ids(const s2_tokenizer *tokenizer)
{
    return tokenizer->vocab.n_ids;
}

int32_t s2_tokenizer_find(const s2_tokenizer *tokenizer, const char *token)
{
    sl_span text = {token, strlen(token)};
    int32_t id = s2_added_find(&tokenizer->vocab.raw, text);
    return id >= 0 ? id : s2_added_find(&tokenizer->vocab.normalized, text);
}

/* Text without added tokens: pieces of the pattern, each by itself. */
static int encode_pieces(encoder *enc, const char *text, size_t n_bytes)
{
    int r = 0;
    size_t at = 0;
    while (r == 0 && at < n_bytes) {
        size_t n = s2_split_piece(text + at, n_bytes - at);
        r = s2_bpe_encode(&enc->vocab->bpe, text + at, n, &enc->scratch, enc->tokens, enc->reterr);
        at += n;
    }
    return r;
}

/* Cuts the tokens of a list out of the text and encodes what is between them. */
static int encode_around(encoder *enc, const s2_added_tokens *list, const char *text,
        size_t n_bytes, int (*encode_between)(encoder *, const char *, size_t))
{
    int r = 0;
    size_t at = 0;
    while (r == 0 && at < n_bytes) {
        size_t gap = n_bytes - at;
        int32_t id = -1;
        size_t n = s2_added_next(list, text + at, n_bytes - at, &gap, &id);
        r = encode_between(enc, text + at, gap);
        if (r == 0 && n > 0) {
            r = s2_tokens_push(enc->tokens, id, enc->reterr);
        }
        at += gap + n;
    }
    return r;
}

static int encode_normalized(encoder *enc, const char *text, size_t n_bytes)
{
    if (enc->control == S2_CONTROL_AS_TEXT || enc->vocab->normalized.n == 0) {
        return encode_pieces(enc, text, n_bytes);
    }
    return encode_around(enc, &enc->vocab->normalized, text, n_bytes, encode_pieces);
}

static int encode_raw(encoder *enc, const char *text, size_t n_bytes)
{
    char *composed = NULL;
    size_t n_composed = 0;
    if (!enc->vocab->has_nfc || s2_nfc_is_plain(text, n_bytes)) {
        return encode_normalized(enc, text, n_bytes);
    }
    int r = s2_nfc(text, n_bytes, &composed, &n_composed, enc->reterr);
    if (r == 0) {
        r = encode_normalized(enc, composed, n_composed);
    }
    sl__free(composed);
    return r;
}

int s2_tokenizer_encode(const s2_tokenizer *tokenizer, const char *text, size_t n_bytes,
        s2_control control, s2_tokens *tokens, sl_error *reterr)
{
    encoder enc = {
            .vocab = &tokenizer->vocab, .control = control, .tokens = tokens, .reterr = reterr};
    size_t n_before = tokens->n;
    if (n_bytes > MAX_TEXT_BYTES) {
        return sl__fail(reterr, SL_ELIMIT, "the text has %zu bytes; at most %zu are encoded",
                n_bytes, MAX_TEXT_BYTES);
    }
    int r = s2_text_check_utf8(text, n_bytes, reterr);
    if (r < 0) {
        return r;
    }
    r = control == S2_CONTROL_AS_TEXT
                ? encode_raw(&enc, text, n_bytes)
                : encode_around(&enc, &tokenizer->vocab.raw, text, n_bytes, encode_raw);
    s2_bpe_scratch_done(&enc.scratch);
    if (r < 0) {
        tokens->n = n_before;
    }
    return r;
}
