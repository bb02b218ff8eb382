#include "engine/text/prompt.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "engine/text/split.h"

static const char system_plain[] = "convert the provided text to speech";
static const char system_cloning[] =
        "convert the provided text to speech reference to the following:\n\nText:\n";
static const char before_audio[] = "\n\nSpeech:\n";

static int find_token(
        const s2_tokenizer *tokenizer, const char *name, int32_t *ret_id, sl_error *reterr)
{
    int32_t id = s2_tokenizer_find(tokenizer, name);
    if (id < 0) {
        return sl__fail(reterr, SL_EFORMAT,
                "the tokenizer has no token %s; use the tokenizer.json of the model", name);
    }
    *ret_id = id;
    return 0;
}

/* A semantic token that the tokenizer names must have the id that the model gives it. */
static int check_semantic(const s2_prompt_layout *layout, uint32_t code, sl_error *reterr)
{
    char name[40];
    int64_t want = (int64_t)layout->semantic_begin + code;
    snprintf(name, sizeof name, "<|semantic:%u|>", (unsigned)code);
    int32_t id = s2_tokenizer_find(layout->tokenizer, name);
    if (id >= 0 && id != want) {
        return sl__fail(reterr, SL_EFORMAT,
                "the token %s is %d in the tokenizer and %lld in the model; use the tokenizer.json "
                "of the model",
                name, (int)id, (long long)want);
    }
    return 0;
}

int s2_prompt_layout_init(s2_prompt_layout *layout, const s2_tokenizer *tokenizer,
        uint32_t n_codebooks, uint32_t codebook_size, int32_t semantic_begin, uint32_t n_vocab,
        sl_error *reterr)
{
    s2_prompt_layout found = {.tokenizer = tokenizer,
            .n_codebooks = n_codebooks,
            .codebook_size = codebook_size,
            .semantic_begin = semantic_begin,
            .n_vocab = (int32_t)n_vocab};
    if (n_codebooks == 0 || codebook_size == 0 || n_vocab > INT32_MAX || semantic_begin < 0 ||
            (uint64_t)semantic_begin + codebook_size > n_vocab) {
        return sl__fail(reterr, SL_EFORMAT,
                "semantic tokens %d..+%u do not fit a vocabulary of %u (%u codebooks)",
                (int)semantic_begin, (unsigned)codebook_size, (unsigned)n_vocab,
                (unsigned)n_codebooks);
    }
    if ((int64_t)s2_tokenizer_n_ids(tokenizer) > (int64_t)n_vocab) {
        return sl__fail(reterr, SL_EFORMAT,
                "the tokenizer has ids up to %d, the model only up to %u; use the tokenizer.json "
                "of the model",
                (int)s2_tokenizer_n_ids(tokenizer) - 1, (unsigned)n_vocab - 1);
    }
    int r = find_token(tokenizer, "<|im_start|>", &found.im_start, reterr);
    r = r < 0 ? r : find_token(tokenizer, "<|im_end|>", &found.im_end, reterr);
    r = r < 0 ? r : find_token(tokenizer, "<|voice|>", &found.voice, reterr);
    r = r < 0 ? r : check_semantic(&found, 0, reterr);
    r = r < 0 ? r : check_semantic(&found, codebook_size - 1, reterr);
    if (r < 0) {
        return r;
    }
    *layout = found;
    return 0;
}

/* Room for n more columns; returns the first of them, zeroed, or NULL. */
static int32_t *grow_columns(
        const s2_prompt_layout *layout, s2_prompt *prompt, size_t n, sl_error *reterr)
{
    size_t n_rows = 1 + (size_t)layout->n_codebooks;
    void *columns = prompt->columns;
    if (n > SIZE_MAX / sizeof(int32_t) / n_rows - prompt->n_columns ||
            !sl__grow(&columns, &prompt->cap, (prompt->n_columns + n) * n_rows, sizeof(int32_t))) {
        sl__fail_nomem(reterr, (prompt->n_columns + n) * n_rows * sizeof(int32_t), "a prompt");
        return NULL;
    }
    prompt->columns = columns;
    int32_t *first = prompt->columns + prompt->n_columns * n_rows;
    memset(first, 0, n * n_rows * sizeof *first);
    prompt->n_columns += n;
    return first;
}

static int push_ids(const s2_prompt_layout *layout, s2_prompt *prompt, const int32_t *ids, size_t n,
        sl_error *reterr)
{
    int32_t *column = grow_columns(layout, prompt, n, reterr);
    if (!column) {
        return SL_ENOMEM;
    }
    for (size_t t = 0; t < n; t++) {
        column[t * (1 + layout->n_codebooks)] = ids[t];
    }
    return 0;
}

static int push_text(const s2_prompt_layout *layout, s2_prompt *prompt, const char *text,
        size_t n_bytes, s2_control control, sl_error *reterr)
{
    s2_tokens tokens = {0};
    int r = s2_tokenizer_encode(layout->tokenizer, text, n_bytes, control, &tokens, reterr);
    if (r == 0) {
        r = push_ids(layout, prompt, tokens.ids, tokens.n, reterr);
    }
    s2_tokens_done(&tokens);
    return r;
}

static int push_literal(
        const s2_prompt_layout *layout, s2_prompt *prompt, const char *text, sl_error *reterr)
{
    return push_text(layout, prompt, text, strlen(text), S2_CONTROL_AS_TEXT, reterr);
}

static int push_codes(const s2_prompt_layout *layout, s2_prompt *prompt, const int32_t *codes,
        uint32_t n_frames, sl_error *reterr)
{
    size_t n_rows = 1 + (size_t)layout->n_codebooks;
    int32_t *column = grow_columns(layout, prompt, n_frames, reterr);
    if (!column) {
        return SL_ENOMEM;
    }
    for (size_t t = 0; t < n_frames; t++, column += n_rows) {
        column[0] = layout->semantic_begin + codes[t];
        for (size_t j = 0; j < layout->n_codebooks; j++) {
            column[1 + j] = codes[j * n_frames + t];
        }
    }
    return 0;
}

static int check_codes(
        const s2_prompt_layout *layout, const int32_t *codes, uint32_t n_frames, sl_error *reterr)
{
    for (size_t i = 0; i < (size_t)layout->n_codebooks * n_frames; i++) {
        if (codes[i] < 0 || (uint32_t)codes[i] >= layout->codebook_size) {
            return sl__fail(reterr, SL_EINVAL,
                    "code %d in book %zu, frame %zu; codes go from 0 to %u", (int)codes[i],
                    i / n_frames, i % n_frames, (unsigned)layout->codebook_size - 1);
        }
    }
    return 0;
}

static bool is_blank_text(const char *text, size_t n_bytes)
{
    size_t at = 0;
    while (at < n_bytes) {
        uint32_t cp = 0;
        size_t len = sl__utf8_decode(text + at, n_bytes - at, &cp);
        if (len == 0 || !s2_is_blank(cp)) {
            return false;
        }
        at += len;
    }
    return true;
}

static int check_references(
        const s2_prompt_layout *layout, const s2_reference *refs, size_t n_refs, sl_error *reterr)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < n_refs; i++) {
        if (is_blank_text(refs[i].text, refs[i].text_bytes)) {
            return sl__fail(reterr, SL_EINVAL,
                    "the transcript of reference %zu is empty; it must hold what is said", i + 1);
        }
        if (refs[i].n_frames == 0) {
            return sl__fail(reterr, SL_EINVAL, "reference %zu holds no audio", i + 1);
        }
        r = check_codes(layout, refs[i].codes, refs[i].n_frames, reterr);
    }
    return r;
}

/* The transcripts joined by line ends, each with a speaker tag; NULL if memory ran out. */
static char *join_transcripts(const s2_reference *refs, size_t n_refs, size_t *ret_n_bytes)
{
    char tag[48];
    size_t cap = 1;
    size_t n = 0;
    for (size_t i = 0; i < n_refs; i++) {
        if (refs[i].text_bytes > SIZE_MAX / 2 - cap) {
            return NULL;
        }
        cap += sizeof tag + refs[i].text_bytes;
    }
    char *text = sl__alloc(cap, 1);
    for (size_t i = 0; text && i < n_refs; i++) {
        size_t at = 0;
        bool has_tag = s2_find_speaker_tag(refs[i].text, refs[i].text_bytes, &at) > 0;
        n += (size_t)snprintf(text + n, cap - n, "%s", i > 0 ? "\n" : "");
        if (!has_tag) {
            snprintf(tag, sizeof tag, "<|speaker:%zu|>", i);
            n += (size_t)snprintf(text + n, cap - n, "%s", tag);
        }
        memcpy(text + n, refs[i].text, refs[i].text_bytes);
        n += refs[i].text_bytes;
    }
    *ret_n_bytes = n;
    return text;
}

static int push_references(const s2_prompt_layout *layout, const s2_reference *refs, size_t n_refs,
        s2_control control, s2_prompt *prompt, sl_error *reterr)
{
    size_t n_bytes = 0;
    char *transcripts = join_transcripts(refs, n_refs, &n_bytes);
    if (!transcripts) {
        return sl__fail_nomem(reterr, n_bytes, "the transcripts of the references");
    }
    int r = push_text(layout, prompt, transcripts, n_bytes, control, reterr);
    sl__free(transcripts);
    r = r < 0 ? r : push_literal(layout, prompt, before_audio, reterr);
    for (size_t i = 0; r == 0 && i < n_refs; i++) {
        r = push_codes(layout, prompt, refs[i].codes, refs[i].n_frames, reterr);
    }
    return r;
}

/* <|im_end|>\n */
static int close_message(const s2_prompt_layout *layout, s2_prompt *prompt, sl_error *reterr)
{
    int r = push_ids(layout, prompt, &layout->im_end, 1, reterr);
    return r < 0 ? r : push_literal(layout, prompt, "\n", reterr);
}

/* <|im_start|>ROLE\n */
static int open_message(
        const s2_prompt_layout *layout, const char *role, s2_prompt *prompt, sl_error *reterr)
{
    int r = push_ids(layout, prompt, &layout->im_start, 1, reterr);
    return r < 0 ? r : push_literal(layout, prompt, role, reterr);
}

int s2_prompt_begin(const s2_prompt_layout *layout, const s2_reference *refs, size_t n_refs,
        s2_control control, s2_prompt *prompt, sl_error *reterr)
{
    memset(prompt, 0, sizeof *prompt);
    int r = check_references(layout, refs, n_refs, reterr);
    r = r < 0 ? r : open_message(layout, "system\n", prompt, reterr);
    if (r == 0) {
        r = push_literal(layout, prompt, n_refs > 0 ? system_cloning : system_plain, reterr);
    }
    if (r == 0 && n_refs > 0) {
        r = push_references(layout, refs, n_refs, control, prompt, reterr);
    }
    r = r < 0 ? r : close_message(layout, prompt, reterr);
    if (r < 0) {
        s2_prompt_done(prompt);
    }
    return r;
}

int s2_prompt_add_user(const s2_prompt_layout *layout, const char *text, size_t n_bytes,
        s2_control control, s2_prompt *prompt, sl_error *reterr)
{
    size_t n_before = prompt->n_columns;
    int r = open_message(layout, "user\n", prompt, reterr);
    r = r < 0 ? r : push_text(layout, prompt, text, n_bytes, control, reterr);
    r = r < 0 ? r : close_message(layout, prompt, reterr);
    r = r < 0 ? r : open_message(layout, "assistant\n", prompt, reterr);
    r = r < 0 ? r : push_ids(layout, prompt, &layout->voice, 1, reterr);
    if (r < 0) {
        prompt->n_columns = n_before;
    }
    return r;
}

int s2_prompt_add_answer(const s2_prompt_layout *layout, const int32_t *codes, uint32_t n_frames,
        s2_prompt *prompt, sl_error *reterr)
{
    size_t n_before = prompt->n_columns;
    int r = check_codes(layout, codes, n_frames, reterr);
    r = r < 0 ? r : push_codes(layout, prompt, codes, n_frames, reterr);
    r = r < 0 ? r : close_message(layout, prompt, reterr);
    if (r < 0) {
        prompt->n_columns = n_before;
    }
    return r;
}

void s2_prompt_done(s2_prompt *prompt)
{
    sl__free(prompt->columns);
    memset(prompt, 0, sizeof *prompt);
}
