/* A tokenizer.json of the structure that Qwen3's has, with the 256 bytes as its only text tokens. */
#include <stdio.h>

#include "base/json_writer.h"
#include "engine/model/synth.h"
#include "os/os_out_file.h"

/* The characters that stand for bytes in byte-level BPE, in GPT-2's order of token ids. */
static size_t byte_token(uint32_t id, char buf[4])
{
    /* Printable bytes come first, ids 0..187; the others are U+0100 and up. */
    uint32_t cp = id < 94    ? 0x21 + id
                  : id < 106 ? 0xA1 + id - 94
                  : id < 188 ? 0xAE + id - 106
                             : 0x100 + id - 188;
    if (cp < 0x80) {
        buf[0] = (char)cp;
        return 1;
    }
    buf[0] = (char)(0xC0 | (cp >> 6));
    buf[1] = (char)(0x80 | (cp & 0x3F));
    return 2;
}

static void put_added_token(sl__json *j, int32_t id, const char *content)
{
    static const char *const off[] = {"single_word", "lstrip", "rstrip", "normalized"};
    sl__json_object(j);
    sl__json_key(j, "id");
    sl__json_i64(j, id);
    sl__json_key(j, "content");
    sl__json_cstr(j, content);
    for (size_t i = 0; i < sizeof off / sizeof off[0]; i++) {
        sl__json_key(j, off[i]);
        sl__json_bool(j, false);
    }
    sl__json_key(j, "special");
    sl__json_bool(j, true);
    sl__json_end(j);
}

/* Distances before the first semantic id are those of S2 Pro. */
static void put_added_tokens(sl__json *j, const s2_hparams *hp)
{
    char name[32];
    sl__json_key(j, "added_tokens");
    sl__json_array(j);
    put_added_token(j, hp->semantic_begin - 34, "<|im_start|>");
    put_added_token(j, hp->semantic_begin - 33, "<|im_end|>");
    put_added_token(j, hp->semantic_begin - 5, "<|voice|>");
    for (uint32_t i = 0; i < hp->codebook_size; i++) {
        snprintf(name, sizeof name, "<|semantic:%u|>", i);
        put_added_token(j, hp->semantic_begin + (int32_t)i, name);
    }
    sl__json_end(j);
}

static void put_pre_tokenizer(sl__json *j)
{
    static const char pattern[] = "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{"
                                  "N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|"
                                  "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
    sl__json_key(j, "pre_tokenizer");
    sl__json_object(j);
    sl__json_key(j, "type");
    sl__json_cstr(j, "Sequence");
    sl__json_key(j, "pretokenizers");
    sl__json_array(j);
    sl__json_object(j);
    sl__json_key(j, "type");
    sl__json_cstr(j, "Split");
    sl__json_key(j, "pattern");
    sl__json_object(j);
    sl__json_key(j, "Regex");
    sl__json_cstr(j, pattern);
    sl__json_end(j);
    sl__json_key(j, "behavior");
    sl__json_cstr(j, "Isolated");
    sl__json_key(j, "invert");
    sl__json_bool(j, false);
    sl__json_end(j);
    sl__json_object(j);
    sl__json_key(j, "type");
    sl__json_cstr(j, "ByteLevel");
    sl__json_key(j, "add_prefix_space");
    sl__json_bool(j, false);
    sl__json_key(j, "trim_offsets");
    sl__json_bool(j, false);
    sl__json_key(j, "use_regex");
    sl__json_bool(j, false);
    sl__json_end(j);
    sl__json_end(j);
    sl__json_end(j);
}

static void put_tokenizer(sl__json *j, const s2_hparams *hp)
{
    sl__json_object(j);
    sl__json_key(j, "version");
    sl__json_cstr(j, "1.0");
    put_added_tokens(j, hp);
    sl__json_key(j, "normalizer");
    sl__json_object(j);
    sl__json_key(j, "type");
    sl__json_cstr(j, "NFC");
    sl__json_end(j);
    put_pre_tokenizer(j);
    sl__json_key(j, "model");
    sl__json_object(j);
    sl__json_key(j, "type");
    sl__json_cstr(j, "BPE");
    sl__json_key(j, "vocab");
    sl__json_object(j);
    for (uint32_t id = 0; id < 256; id++) {
        char token[8] = "";
        token[byte_token(id, token)] = '\0';
        sl__json_key(j, token);
        sl__json_u64(j, id);
    }
    sl__json_end(j);
    sl__json_key(j, "merges");
    sl__json_array(j);
    sl__json_end(j);
    sl__json_end(j);
    sl__json_end(j);
}

int s2_synth_write_tokenizer(const s2_synth_opts *opts, const char *path, sl_error *reterr)
{
    sl__json j = {0};
    sl__out_file *file = NULL;
    size_t n = 0;
    put_tokenizer(&j, &opts->hp);
    const char *text = sl__json_text(&j, &n);
    int r = text ? sl__out_file_open(path, 0666, &file, reterr)
                 : sl__fail(reterr, SL_ENOMEM, "out of memory while writing a tokenizer");
    if (r == 0) {
        r = sl__out_file_write(file, text, n, reterr);
    }
    if (r == 0) {
        r = sl__out_file_commit(&file, reterr);
    }
    sl__out_file_discard(&file);
    sl__json_done(&j);
    return r;
}
