/*
 * The vocabulary itself is needed only here: encoding starts from the ids of bytes and goes on by merges,
 * which are pairs of ids. So the strings of 150,000 tokens are looked up once and not kept.
 */
#include "engine/text/vocab.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "engine/text/json_doc.h"
#include "engine/text/nfc.h"
#include "engine/text/split.h"
#include "engine/text/strmap.h"

/* A hundred times the ids of S2; bounds the memory that a file can ask for. */
#define MAX_IDS (1 << 24)

typedef struct reader {
    const s2_json_doc *doc;
    s2_vocab *vocab;
    s2_strmap ids;       /* token -> id */
    size_t longest;      /* bytes of the longest token */
    unsigned char *seen; /* one bit an id */
    sl_error *reterr;
} reader;

/* What was found at a node, for messages: a string or number itself, else its kind. */
static const char *describe(
        const s2_json_doc *doc, const s2_json_node *node, char *buf, size_t buf_bytes)
{
    char text[96];
    if (!node || (node->kind != S2_JSON_STRING && node->kind != S2_JSON_NUMBER)) {
        snprintf(buf, buf_bytes, "%s",
                node && node->kind == S2_JSON_TRUE    ? "true"
                : node && node->kind == S2_JSON_FALSE ? "false"
                                                      : s2_json_kind_name(node));
        return buf;
    }
    sl_span span = s2_json_span(doc, node);
    sl__quote(text, sizeof text, span.p, span.n);
    snprintf(buf, buf_bytes, node->kind == S2_JSON_STRING ? "\"%s\"" : "%s", text);
    return buf;
}

static int unsupported(
        const reader *rd, const s2_json_node *node, const char *field, const char *needed)
{
    char found[128];
    return s2_json_fail(rd->doc, node, SL_EUNSUPPORTED, rd->reterr,
            "%s is %s, needed %s (the tokenizer of Qwen3 or S2)", field,
            describe(rd->doc, node, found, sizeof found), needed);
}

static bool is_absent(const s2_json_node *node)
{
    return !node || node->kind == S2_JSON_NULL;
}

static bool is_off(const s2_json_node *node)
{
    return is_absent(node) || node->kind == S2_JSON_FALSE;
}

/* null, absent, or a number that is zero */
static bool is_zero(const s2_json_doc *doc, const s2_json_node *node)
{
    return is_absent(node) ||
           (node->kind == S2_JSON_NUMBER && strspn(s2_json_span(doc, node).p, "0.") >= node->n);
}

static int check_model(const reader *rd, const s2_json_node *model)
{
    const s2_json_doc *doc = rd->doc;
    static const char *const affixes[] = {"continuing_subword_prefix", "end_of_word_suffix"};
    const s2_json_node *type = s2_json_get(doc, model, "type");
    if (!s2_json_is_str(doc, type, "BPE")) {
        return unsupported(rd, type, "model.type", "\"BPE\"");
    }
    const s2_json_node *dropout = s2_json_get(doc, model, "dropout");
    if (!is_zero(doc, dropout)) {
        return unsupported(rd, dropout, "model.dropout", "null");
    }
    const s2_json_node *fallback = s2_json_get(doc, model, "byte_fallback");
    if (!is_off(fallback)) {
        return unsupported(rd, fallback, "model.byte_fallback", "false");
    }
    const s2_json_node *ignore = s2_json_get(doc, model, "ignore_merges");
    if (!is_off(ignore)) {
        return unsupported(rd, ignore, "model.ignore_merges", "false");
    }
    for (size_t k = 0; k < sizeof affixes / sizeof affixes[0]; k++) {
        const s2_json_node *affix = s2_json_get(doc, model, affixes[k]);
        if (!is_absent(affix) && !s2_json_is_str(doc, affix, "")) {
            return unsupported(rd, affix, affixes[k], "an empty string");
        }
    }
    return 0;
}

static int check_normalizer(const reader *rd, const s2_json_node *root)
{
    const s2_json_doc *doc = rd->doc;
    const s2_json_node *normalizer = s2_json_get(doc, root, "normalizer");
    if (is_absent(normalizer)) {
        return 0;
    }
    const s2_json_node *type = s2_json_get(doc, normalizer, "type");
    if (!s2_json_is_str(doc, type, "NFC")) {
        return unsupported(rd, type ? type : normalizer, "normalizer", "\"NFC\" or null");
    }
    rd->vocab->has_nfc = true;
    return 0;
}

static int check_split(const reader *rd, const s2_json_node *split)
{
    const s2_json_doc *doc = rd->doc;
    const s2_json_node *type = s2_json_get(doc, split, "type");
    const s2_json_node *pattern = s2_json_get(doc, split, "pattern");
    const s2_json_node *regex = s2_json_get(doc, pattern, "Regex");
    const s2_json_node *behavior = s2_json_get(doc, split, "behavior");
    const s2_json_node *invert = s2_json_get(doc, split, "invert");
    if (!s2_json_is_str(doc, type, "Split")) {
        return unsupported(rd, type ? type : split, "the first pre-tokenizer", "\"Split\"");
    }
    if (!s2_json_is_str(doc, regex, s2_split_pattern)) {
        return unsupported(
                rd, regex ? regex : split, "the split pattern", "that of Qwen2 and Qwen3");
    }
    if (!s2_json_is_str(doc, behavior, "Isolated")) {
        return unsupported(rd, behavior, "the split behavior", "\"Isolated\"");
    }
    return is_off(invert) ? 0 : unsupported(rd, invert, "invert of the split", "false");
}

static int check_byte_level(const reader *rd, const s2_json_node *level)
{
    static const char *const flags[] = {"add_prefix_space", "use_regex"};
    const s2_json_doc *doc = rd->doc;
    const s2_json_node *type = s2_json_get(doc, level, "type");
    if (!s2_json_is_str(doc, type, "ByteLevel")) {
        return unsupported(rd, type ? type : level, "the second pre-tokenizer", "\"ByteLevel\"");
    }
    for (size_t k = 0; k < sizeof flags / sizeof flags[0]; k++) {
        const s2_json_node *flag = s2_json_get(doc, level, flags[k]);
        /* Both are true when they are absent. */
        if (!flag || flag->kind != S2_JSON_FALSE) {
            return unsupported(rd, flag ? flag : level, flags[k], "false");
        }
    }
    return 0;
}

static int check_pre_tokenizer(const reader *rd, const s2_json_node *root)
{
    const s2_json_doc *doc = rd->doc;
    const s2_json_node *pre = s2_json_get(doc, root, "pre_tokenizer");
    const s2_json_node *type = s2_json_get(doc, pre, "type");
    const s2_json_node *list = s2_json_get(doc, pre, "pretokenizers");
    if (!s2_json_is_str(doc, type, "Sequence")) {
        return unsupported(rd, type ? type : pre, "pre_tokenizer", "\"Sequence\"");
    }
    if (!list || list->kind != S2_JSON_ARRAY || list->n != 2) {
        return unsupported(rd, list, "pre_tokenizer.pretokenizers", "Split and ByteLevel");
    }
    const s2_json_node *split = s2_json_first(list);
    int r = check_split(rd, split);
    return r < 0 ? r : check_byte_level(rd, s2_json_next(doc, split));
}

/* An id that no other token has; marks it. */
static int take_id(reader *rd, const s2_json_node *node, int32_t *ret_id)
{
    int64_t id = 0;
    char found[128];
    if (!s2_json_int(rd->doc, node, &id) || id < 0 || id >= MAX_IDS) {
        return s2_json_fail(rd->doc, node, SL_EFORMAT, rd->reterr,
                "a token id is %s, needed a whole number from 0 to %d",
                describe(rd->doc, node, found, sizeof found), MAX_IDS - 1);
    }
    unsigned bit = 1u << (id % 8);
    if (rd->seen[id / 8] & bit) {
        return s2_json_fail(
                rd->doc, node, SL_EFORMAT, rd->reterr, "the token id %d is there twice", (int)id);
    }
    rd->seen[id / 8] = (unsigned char)(rd->seen[id / 8] | bit);
    if (id >= rd->vocab->n_ids) {
        rd->vocab->n_ids = (int32_t)id + 1;
    }
    *ret_id = (int32_t)id;
    return 0;
}

static int read_tokens(reader *rd, const s2_json_node *tokens)
{
    if (!tokens || tokens->kind != S2_JSON_OBJECT || tokens->n == 0) {
        return s2_json_fail(rd->doc, tokens, SL_EFORMAT, rd->reterr,
                "model.vocab is %s, needed an object with the tokens", s2_json_kind_name(tokens));
    }
    int r = s2_strmap_init(&rd->ids, tokens->n, rd->reterr);
    const s2_json_node *key = s2_json_first(tokens);
    for (uint32_t k = 0; r == 0 && k < tokens->n; k++) {
        const s2_json_node *value = s2_json_next(rd->doc, key);
        int32_t id = 0;
        r = take_id(rd, value, &id);
        if (r == 0) {
            r = s2_strmap_add(&rd->ids, s2_json_span(rd->doc, key), (uint32_t)id, rd->reterr);
        }
        rd->longest = key->n > rd->longest ? key->n : rd->longest;
        key = s2_json_next(rd->doc, value);
    }
    return r;
}

/* The character that stands for a byte in the vocabulary, in UTF-8: one or two bytes. */
static sl_span byte_char(unsigned byte, char buf[2])
{
    unsigned cp = byte;
    bool is_itself = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte != 0xAD);
    if (!is_itself) {
        /* The other 68 bytes in ascending order: 00..20, 7F..A0, AD. */
        cp = byte <= 0x20 ? 0x100 + byte : byte == 0xAD ? 0x143 : 0x121 + byte - 0x7F;
    }
    if (cp < 0x80) {
        buf[0] = (char)cp;
        return (sl_span){buf, 1};
    }
    buf[0] = (char)(0xC0 | cp >> 6);
    buf[1] = (char)(0x80 | (cp & 0x3F));
    return (sl_span){buf, 2};
}

static int read_bytes(const reader *rd, const s2_json_node *tokens)
{
    for (unsigned byte = 0; byte < 256; byte++) {
        char buf[2];
        uint32_t id = 0;
        if (!s2_strmap_find(&rd->ids, byte_char(byte, buf), &id)) {
            return s2_json_fail(rd->doc, tokens, SL_EFORMAT, rd->reterr,
                    "model.vocab has no token for the byte 0x%02x", byte);
        }
        rd->vocab->bpe.byte_ids[byte] = (int32_t)id;
    }
    return 0;
}

/* The two sides of "a b" or ["a", "b"]. */
static bool merge_sides(
        const s2_json_doc *doc, const s2_json_node *merge, sl_span *ret_left, sl_span *ret_right)
{
    if (merge->kind == S2_JSON_ARRAY && merge->n == 2) {
        const s2_json_node *a = s2_json_first(merge);
        const s2_json_node *b = s2_json_next(doc, a);
        *ret_left = s2_json_span(doc, a);
        *ret_right = s2_json_span(doc, b);
        return a->kind == S2_JSON_STRING && b->kind == S2_JSON_STRING;
    }
    sl_span both = s2_json_span(doc, merge);
    const char *blank = both.n > 0 ? memchr(both.p, ' ', both.n) : NULL;
    if (merge->kind != S2_JSON_STRING || !blank) {
        return false;
    }
    size_t n_left = (size_t)(blank - both.p);
    *ret_left = (sl_span){both.p, n_left};
    *ret_right = (sl_span){blank + 1, both.n - n_left - 1};
    return !memchr(blank + 1, ' ', both.n - n_left - 1);
}

/* Looks up a, b and ab; false if one is no token. buf has room for the longest token. */
static bool merge_ids(const reader *rd, sl_span left, sl_span right, char *buf, uint32_t ids[3])
{
    if (left.n == 0 || right.n == 0 || left.n + right.n > rd->longest) {
        return false;
    }
    memcpy(buf, left.p, left.n);
    memcpy(buf + left.n, right.p, right.n);
    return s2_strmap_find(&rd->ids, left, &ids[0]) && s2_strmap_find(&rd->ids, right, &ids[1]) &&
           s2_strmap_find(&rd->ids, (sl_span){buf, left.n + right.n}, &ids[2]);
}

static int read_merge(const reader *rd, const s2_json_node *merge, char *buf)
{
    sl_span left = {0};
    sl_span right = {0};
    uint32_t ids[3] = {0};
    if (!merge_sides(rd->doc, merge, &left, &right)) {
        return s2_json_fail(rd->doc, merge, SL_EFORMAT, rd->reterr,
                "a merge must be \"a b\" or [\"a\", \"b\"]");
    }
    if (!merge_ids(rd, left, right, buf, ids)) {
        char a[48];
        char b[48];
        return s2_json_fail(rd->doc, merge, SL_EFORMAT, rd->reterr,
                "the merge of \"%s\" and \"%s\" is not made of tokens and does not make one",
                sl__quote(a, sizeof a, left.p, left.n), sl__quote(b, sizeof b, right.p, right.n));
    }
    int r = s2_bpe_add(
            &rd->vocab->bpe, (int32_t)ids[0], (int32_t)ids[1], (int32_t)ids[2], rd->reterr);
    if (r < 0 && r != SL_ENOMEM) {
        return s2_json_fail(rd->doc, merge, SL_EFORMAT, rd->reterr, "%s",
                r == SL_EEXIST ? "the merge is there twice" : "too many merges collide");
    }
    return r;
}

static int read_merges(const reader *rd, const s2_json_node *merges)
{
    if (!merges || merges->kind != S2_JSON_ARRAY) {
        return s2_json_fail(rd->doc, merges, SL_EFORMAT, rd->reterr,
                "model.merges is %s, needed an array", s2_json_kind_name(merges));
    }
    char *buf = sl__alloc(rd->longest, 1);
    if (!buf) {
        return sl__fail_nomem(rd->reterr, rd->longest, "a token");
    }
    int r = s2_bpe_init(&rd->vocab->bpe, merges->n, rd->reterr);
    const s2_json_node *merge = s2_json_first(merges);
    for (uint32_t k = 0; r == 0 && k < merges->n; k++) {
        r = read_merge(rd, merge, buf);
        merge = s2_json_next(rd->doc, merge);
    }
    sl__free(buf);
    return r;
}

/* The id of an added token: a new one, or that of the same string in the vocabulary. */
static int added_id(
        reader *rd, const s2_json_node *token, const s2_json_node *content, int32_t *ret_id)
{
    const s2_json_node *node = s2_json_get(rd->doc, token, "id");
    uint32_t in_vocab = 0;
    int64_t id = 0;
    if (!s2_strmap_find(&rd->ids, s2_json_span(rd->doc, content), &in_vocab)) {
        return take_id(rd, node ? node : token, ret_id);
    }
    if (!s2_json_int(rd->doc, node, &id) || id != (int64_t)in_vocab) {
        char found[128];
        return s2_json_fail(rd->doc, node ? node : token, SL_EFORMAT, rd->reterr,
                "the id of an added token is %s, but model.vocab says %u",
                describe(rd->doc, node, found, sizeof found), (unsigned)in_vocab);
    }
    *ret_id = (int32_t)in_vocab;
    return 0;
}

static int check_added(const reader *rd, const s2_json_node *token)
{
    static const char *const flags[] = {"single_word", "lstrip", "rstrip"};
    const s2_json_node *content = s2_json_get(rd->doc, token, "content");
    if (!content || content->kind != S2_JSON_STRING || content->n == 0) {
        return s2_json_fail(rd->doc, content ? content : token, SL_EFORMAT, rd->reterr,
                "content of an added token is %s, needed a string that is not empty",
                s2_json_kind_name(content));
    }
    for (size_t k = 0; k < sizeof flags / sizeof flags[0]; k++) {
        const s2_json_node *flag = s2_json_get(rd->doc, token, flags[k]);
        if (!is_off(flag)) {
            return unsupported(rd, flag, flags[k], "false");
        }
    }
    return 0;
}

static int read_added(reader *rd, const s2_json_node *token, size_t *n_spelled)
{
    int32_t id = 0;
    int r = check_added(rd, token);
    if (r < 0) {
        return r;
    }
    const s2_json_node *content = s2_json_get(rd->doc, token, "content");
    const s2_json_node *normalized = s2_json_get(rd->doc, token, "normalized");
    bool is_raw = is_off(normalized) || !rd->vocab->has_nfc;
    sl_span text = s2_json_span(rd->doc, content);
    if (!is_raw && !s2_nfc_is_plain(text.p, text.n)) {
        return unsupported(rd, content, "a normalized added token", "one below U+0300");
    }
    r = added_id(rd, token, content, &id);
    if (r < 0) {
        return r;
    }
    char *spelling = rd->vocab->spellings + *n_spelled;
    memcpy(spelling, text.p, text.n);
    *n_spelled += text.n;
    return s2_added_push(is_raw ? &rd->vocab->raw : &rd->vocab->normalized,
            (sl_span){spelling, text.n}, id, rd->reterr);
}

/* After sorting, equal spellings are neighbours. */
static bool has_twins(const s2_added_tokens *list)
{
    for (size_t k = 1; k < list->n; k++) {
        sl_span a = list->items[k - 1].text;
        sl_span b = list->items[k].text;
        if (a.n == b.n && memcmp(a.p, b.p, a.n) == 0) {
            return true;
        }
    }
    return false;
}

/* Bytes of all contents; those that are no strings are refused later. */
static size_t spelled_bytes(const reader *rd, const s2_json_node *list)
{
    size_t n_bytes = 0;
    const s2_json_node *token = s2_json_first(list);
    for (uint32_t k = 0; k < list->n; k++) {
        const s2_json_node *content = s2_json_get(rd->doc, token, "content");
        n_bytes += content ? content->n : 0;
        token = s2_json_next(rd->doc, token);
    }
    return n_bytes;
}

static int read_added_list(reader *rd, const s2_json_node *list)
{
    size_t n_spelled = 0;
    int r = 0;
    const s2_json_node *token = s2_json_first(list);
    for (uint32_t k = 0; r == 0 && k < list->n; k++) {
        r = read_added(rd, token, &n_spelled);
        token = s2_json_next(rd->doc, token);
    }
    s2_added_sort(&rd->vocab->raw);
    s2_added_sort(&rd->vocab->normalized);
    if (r == 0 && (has_twins(&rd->vocab->raw) || has_twins(&rd->vocab->normalized))) {
        r = s2_json_fail(rd->doc, list, SL_EFORMAT, rd->reterr, "an added token is there twice");
    }
    return r;
}

static int read_all_added(reader *rd, const s2_json_node *list)
{
    if (is_absent(list)) {
        return 0;
    }
    if (list->kind != S2_JSON_ARRAY) {
        return s2_json_fail(rd->doc, list, SL_EFORMAT, rd->reterr,
                "added_tokens is %s, needed an array", s2_json_kind_name(list));
    }
    size_t n_bytes = spelled_bytes(rd, list);
    rd->vocab->spellings = sl__alloc(n_bytes, 1);
    if (!rd->vocab->spellings) {
        return sl__fail_nomem(rd->reterr, n_bytes, "added tokens");
    }
    return read_added_list(rd, list);
}

static int read_document(reader *rd)
{
    const s2_json_node *root = &rd->doc->nodes[0];
    const s2_json_node *model = s2_json_get(rd->doc, root, "model");
    const s2_json_node *tokens = s2_json_get(rd->doc, model, "vocab");
    if (!model || model->kind != S2_JSON_OBJECT) {
        return s2_json_fail(rd->doc, model, SL_EFORMAT, rd->reterr,
                "this is no tokenizer.json: \"model\" is %s, needed an object",
                s2_json_kind_name(model));
    }
    int r = check_model(rd, model);
    r = r < 0 ? r : check_normalizer(rd, root);
    r = r < 0 ? r : check_pre_tokenizer(rd, root);
    r = r < 0 ? r : read_tokens(rd, tokens);
    r = r < 0 ? r : read_merges(rd, s2_json_get(rd->doc, model, "merges"));
    r = r < 0 ? r : read_bytes(rd, tokens);
    return r < 0 ? r : read_all_added(rd, s2_json_get(rd->doc, root, "added_tokens"));
}

int s2_vocab_parse(
        const char *text, size_t n_bytes, const char *name, s2_vocab *ret_vocab, sl_error *reterr)
{
    s2_json_doc doc = {0};
    s2_vocab vocab = {0};
    int r = s2_json_parse(text, n_bytes, name, &doc, reterr);
    if (r < 0) {
        return r;
    }
    reader rd = {.doc = &doc, .vocab = &vocab, .reterr = reterr};
    rd.seen = sl__alloc(MAX_IDS / 8, 1);
    r = rd.seen ? read_document(&rd) : sl__fail_nomem(reterr, MAX_IDS / 8, "token ids");
    sl__free(rd.seen);
    s2_strmap_done(&rd.ids);
    s2_json_done(&doc);
    if (r < 0) {
        s2_vocab_done(&vocab);
        return r;
    }
    *ret_vocab = vocab;
    return 0;
}

void s2_vocab_done(s2_vocab *vocab)
{
    s2_bpe_done(&vocab->bpe);
    s2_added_done(&vocab->raw);
    s2_added_done(&vocab->normalized);
    sl__free(vocab->spellings);
    memset(vocab, 0, sizeof *vocab);
}
