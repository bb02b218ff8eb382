#include "engine/model/synth_llama.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ggml.h"

#include "base/mem.h"

/* Unknown, beginning, end, one token a byte, and one for the sign that stands for a blank; what else the vocabulary
 * has is never written by a tokenizer. */
#define N_SPECIAL   3
#define BLANK       (N_SPECIAL + 256)
#define N_TOKENS    (BLANK + 1)
#define TOKEN_BYTES 16

/* Kinds of tokens, as llama.cpp numbers them. */
enum {
    TOKEN_NORMAL = 1,
    TOKEN_UNKNOWN = 2,
    TOKEN_CONTROL = 3,
    TOKEN_BYTE = 6
};

s2_synth_llama s2_synth_llama_dense(void)
{
    const s2_synth_llama model = {
            .n_layer = 16,
            .n_embd = 2048,
            .n_head = 32,
            .n_head_kv = 8,
            .head_dim = 64,
            .n_ff = 8192,
            .n_vocab = 128256,
            .n_ctx = 8192,
            .type = GGML_TYPE_Q8_0,
            .embedding_type = GGML_TYPE_Q8_0,
            .noise = {.seed = 1},
    };
    return model;
}

s2_synth_llama s2_synth_llama_moe(void)
{
    const s2_synth_llama model = {
            .n_layer = 16,
            .n_embd = 2048,
            .n_head = 16,
            .n_head_kv = 16,
            .head_dim = 128,
            .n_ff = 1024,
            .n_vocab = 50304,
            .n_ctx = 4096,
            .n_expert = 64,
            .n_expert_used = 8,
            .type = GGML_TYPE_Q8_0,
            .embedding_type = GGML_TYPE_Q8_0,
            .noise = {.seed = 1},
    };
    return model;
}

int s2_synth_llama_check(const s2_synth_llama *model, sl_error *reterr)
{
    if (model->n_vocab < N_TOKENS) {
        return sl__fail(reterr, SL_EINVAL,
                "vocabulary of %u, need at least %u: every byte is a token", model->n_vocab,
                N_TOKENS);
    }
    if (model->n_head_kv == 0 || model->n_head % model->n_head_kv != 0 ||
            model->head_dim % 2 != 0) {
        return sl__fail(reterr, SL_EINVAL,
                "%u heads of %u share %u KV heads, need a divisor and an even width", model->n_head,
                model->head_dim, model->n_head_kv);
    }
    if (model->n_expert_used > model->n_expert ||
            (model->n_expert > 0 && model->n_expert_used == 0)) {
        return sl__fail(reterr, SL_EINVAL, "%u of %u experts at a time, need 1 to %u",
                model->n_expert_used, model->n_expert, model->n_expert);
    }
    return SL_OK;
}

static void put_keys(const s2_synth_llama *model, sl__gguf_writer *w)
{
    static const char arch[] = "llama";
    static const char name[] = "Synthetic llama model: noise for weights";
    sl__gguf_put_str(w, "general.architecture", (sl_span){arch, sizeof arch - 1});
    sl__gguf_put_str(w, "general.name", (sl_span){name, sizeof name - 1});
    const s2_synth_u32 u32s[] = {
            {"llama.context_length", model->n_ctx},
            {"llama.embedding_length", model->n_embd},
            {"llama.block_count", model->n_layer},
            {"llama.feed_forward_length", model->n_ff},
            {"llama.attention.head_count", model->n_head},
            {"llama.attention.head_count_kv", model->n_head_kv},
            {"llama.attention.key_length", model->head_dim},
            {"llama.attention.value_length", model->head_dim},
            {"llama.rope.dimension_count", model->head_dim},
            {"llama.vocab_size", model->n_vocab},
    };
    const s2_synth_u32 experts[] = {
            {"llama.expert_count", model->n_expert},
            {"llama.expert_used_count", model->n_expert_used},
    };
    s2_synth_put_u32s(w, u32s, sizeof u32s / sizeof u32s[0]);
    s2_synth_put_u32s(w, experts, model->n_expert > 0 ? 2 : 0);
    sl__gguf_put_f64(w, "llama.rope.freq_base", SL_GGUF_F32, 1e6);
    sl__gguf_put_f64(w, "llama.attention.layer_norm_rms_epsilon", SL_GGUF_F32, 1e-5);
}

/* The text of a token, in TOKEN_BYTES of `text`, and its kind. */
static int32_t name_token(uint32_t id, char *text)
{
    static const char *const special[N_SPECIAL] = {"<unk>", "<s>", "</s>"};
    if (id < N_SPECIAL) {
        snprintf(text, TOKEN_BYTES, "%s", special[id]);
        return id == 0 ? TOKEN_UNKNOWN : TOKEN_CONTROL;
    }
    if (id < BLANK) {
        snprintf(text, TOKEN_BYTES, "<0x%02X>", id - N_SPECIAL);
        return TOKEN_BYTE;
    }
    if (id == BLANK) {
        snprintf(text, TOKEN_BYTES, "\xE2\x96\x81");
    } else {
        snprintf(text, TOKEN_BYTES, "[%u]", id);
    }
    return TOKEN_NORMAL;
}

static int put_vocabulary(const s2_synth_llama *model, sl__gguf_writer *w, sl_error *reterr)
{
    static const char kind[] = "llama"; /* SentencePiece: bytes stand for what has no token */
    size_t n = model->n_vocab;
    char *texts = sl__alloc(n, TOKEN_BYTES);
    sl_span *spans = sl__alloc(n, sizeof *spans);
    int32_t *types = sl__alloc(n, sizeof *types);
    float *scores = sl__alloc(n, sizeof *scores);
    int r = SL_OK;
    if (!texts || !spans || !types || !scores) {
        r = sl__fail_nomem(reterr, n * TOKEN_BYTES, "a vocabulary");
        goto out;
    }
    for (uint32_t i = 0; i < n; i++) {
        char *text = texts + (size_t)i * TOKEN_BYTES;
        types[i] = name_token(i, text);
        spans[i] = (sl_span){text, strlen(text)};
        scores[i] = -(float)i;
    }
    sl__gguf_put_str(w, "tokenizer.ggml.model", (sl_span){kind, sizeof kind - 1});
    sl__gguf_put_strs(w, "tokenizer.ggml.tokens", spans, n);
    sl__gguf_put_array(w, "tokenizer.ggml.scores", SL_GGUF_F32, scores, n);
    sl__gguf_put_array(w, "tokenizer.ggml.token_type", SL_GGUF_I32, types, n);
    sl__gguf_put_u64(w, "tokenizer.ggml.add_space_prefix", SL_GGUF_BOOL, 0);
    sl__gguf_put_u64(w, "tokenizer.ggml.unknown_token_id", SL_GGUF_U32, 0);
    sl__gguf_put_u64(w, "tokenizer.ggml.bos_token_id", SL_GGUF_U32, 1);
    sl__gguf_put_u64(w, "tokenizer.ggml.eos_token_id", SL_GGUF_U32, 2);
out:
    sl__free(texts);
    sl__free(spans);
    sl__free(types);
    sl__free(scores);
    return r;
}

#define NE(...) ((const uint64_t[3]){__VA_ARGS__})

/* Scales keep activations near one: 1/sqrt(fan-in). */
static float fan_in(uint64_t n)
{
    return 1.0f / sqrtf((float)n);
}

static void add_feed_forward(const s2_synth_llama *m, uint32_t i, s2_synth_list *list)
{
    uint64_t d = m->n_embd;
    uint64_t ff = m->n_ff;
    uint64_t n = m->n_expert; /* 0: no such dimension */
    const char *suffix = n > 0 ? "_exps" : "";
    float down = fan_in(d);
    s2_synth_list_add(list, GGML_TYPE_F32, 1, 0.1f, NE(d), "blk.%u.ffn_norm.weight", i);
    if (n > 0) {
        s2_synth_list_add(list, GGML_TYPE_F32, 0, down, NE(d, n), "blk.%u.ffn_gate_inp.weight", i);
    }
    s2_synth_list_add(list, m->type, 0, down, NE(d, ff, n), "blk.%u.ffn_gate%s.weight", i, suffix);
    s2_synth_list_add(
            list, m->type, 0, fan_in(ff), NE(ff, d, n), "blk.%u.ffn_down%s.weight", i, suffix);
    s2_synth_list_add(list, m->type, 0, down, NE(d, ff, n), "blk.%u.ffn_up%s.weight", i, suffix);
}

static void add_layer(const s2_synth_llama *m, uint32_t i, s2_synth_list *list)
{
    uint64_t d = m->n_embd;
    uint64_t q = (uint64_t)m->n_head * m->head_dim;
    uint64_t kv = (uint64_t)m->n_head_kv * m->head_dim;
    float down = fan_in(d);
    s2_synth_list_add(list, GGML_TYPE_F32, 1, 0.1f, NE(d), "blk.%u.attn_norm.weight", i);
    s2_synth_list_add(list, m->type, 0, down, NE(d, q), "blk.%u.attn_q.weight", i);
    s2_synth_list_add(list, m->type, 0, down, NE(d, kv), "blk.%u.attn_k.weight", i);
    s2_synth_list_add(list, m->type, 0, down, NE(d, kv), "blk.%u.attn_v.weight", i);
    s2_synth_list_add(list, m->type, 0, fan_in(q), NE(q, d), "blk.%u.attn_output.weight", i);
    add_feed_forward(m, i, list);
}

static int fill(const s2_synth_llama *m, s2_synth_list *list, sl_error *reterr)
{
    uint64_t d = m->n_embd;
    s2_synth_list_add(list, m->embedding_type, 0, 1, NE(d, m->n_vocab), "token_embd.weight");
    for (uint32_t i = 0; i < m->n_layer; i++) {
        add_layer(m, i, list);
    }
    s2_synth_list_add(list, GGML_TYPE_F32, 1, 0.1f, NE(d), "output_norm.weight");
    s2_synth_list_add(list, m->type, 0, fan_in(d), NE(d, m->n_vocab), "output.weight");
    return list->is_out_of_memory
                   ? sl__fail_nomem(reterr, list->n * sizeof *list->items, "a list of tensors")
                   : SL_OK;
}

int s2_synth_llama_write(const s2_synth_llama *model, const char *path, sl_error *reterr)
{
    s2_synth_list list = {0};
    sl__gguf_writer *w = NULL;
    int r = s2_synth_llama_check(model, reterr);
    if (r == 0) {
        r = fill(model, &list, reterr);
    }
    if (r == 0) {
        r = sl__gguf_writer_create(32, &w, reterr);
    }
    if (r == 0) {
        put_keys(model, w);
        r = put_vocabulary(model, w, reterr);
    }
    if (r == 0) {
        r = s2_synth_noise_write(&model->noise, w, &list, path, reterr);
    }
    sl__gguf_writer_free(&w);
    s2_synth_list_done(&list);
    return r;
}
