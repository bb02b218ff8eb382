/* sluice synth: a model of noise, of any size and type, for tests and benchmarks. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/status.h"
#include "commands.h"
#include "engine/model/synth.h"
#include "engine/model/synth_llama.h"
#include "file_roles.h"
#include "interrupt.h"
#include "os/os_clock.h"
#include "report.h"

typedef struct synth_opts {
    const char *output;
    const char *tokenizer_out;
    const char *type;
    const char *codec_type;
    const char *embedding_type;
    uint64_t seed;
    int preset;
    int32_t dim;
    int32_t layers;
    int32_t heads;
    int32_t kv_heads;
    int32_t head_dim;
    int32_t ffn;
    int32_t fast_dim;
    int32_t fast_layers;
    int32_t fast_ffn;
    int32_t vocab;
    int32_t codebooks;
    int32_t codebook_size;
    int32_t context;
    int32_t experts;
    int32_t experts_used;
    int32_t latent;
    int32_t encoder_dim;
    int32_t decoder_dim;
    int32_t codec_layers;
    int32_t window;
    int32_t sample_rate;
} synth_opts;

enum {
    PRESET_S2_PRO,
    PRESET_TINY,
    PRESET_LLAMA_DENSE,
    PRESET_LLAMA_MOE
};
static const char *const preset_names[] = {"s2-pro", "tiny", "llama-dense", "llama-moe", NULL};

#define TEXT(n, s, field, a, h, d)                                                                 \
    {                                                                                              \
        .name = (n), .short_name = (s), .kind = OPT_STR, .offset = offsetof(synth_opts, field),    \
        .arg = (a), .help = (h), .def = (d)                                                        \
    }
#define SIZE(n, field, h, lo, hi)                                                                  \
    {                                                                                              \
        .name = (n), .kind = OPT_I32, .offset = offsetof(synth_opts, field), .arg = "N",           \
        .help = (h), .min = (lo), .max = (hi)                                                      \
    }

static const opt_def defs[] = {
        TEXT("output", 'o', output, "FILE", "Where the model goes.", NULL),
        TEXT("tokenizer-out", 0, tokenizer_out, "FILE",
                "Where an S2 model's tokenizer goes; default: the output's name with "
                ".tokenizer.json "
                "for .gguf.",
                NULL),
        {.name = "preset",
                .kind = OPT_CHOICE,
                .offset = offsetof(synth_opts, preset),
                .arg = "NAME",
                .help = "Which model, and its sizes to begin with.",
                .def = "s2-pro",
                .choices = preset_names},
        TEXT("type", 0, type, "TYPE",
                "Type of the AR's matrices: f32, f16, bf16, q8_0, q4_0, q4_1, q5_0, q5_1, q2_k, "
                "q3_k, "
                "q4_k, q5_k, q6_k.",
                "q8_0"),
        TEXT("codec-type", 0, codec_type, "TYPE", "Type of S2's codec: f16 or f32.", "f16"),
        TEXT("embedding-type", 0, embedding_type, "TYPE",
                "Type of a llama's token table, which is looked up row by row; default: --type.",
                NULL),
        {.name = "seed",
                .kind = OPT_U64,
                .offset = offsetof(synth_opts, seed),
                .arg = "N",
                .help = "Seed of the noise.",
                .def = "1"},
        SIZE("dim", dim, "Width of the (slow) AR.", 1, 65536),
        SIZE("layers", layers, "Layers of the (slow) AR.", 1, 512),
        SIZE("heads", heads, "Query heads of all ARs.", 1, 1024),
        SIZE("kv-heads", kv_heads, "KV heads of all ARs.", 1, 1024),
        SIZE("head-dim", head_dim, "Width of a head of all ARs.", 1, 1024),
        SIZE("ffn", ffn, "Width of the (slow) AR's feed-forward, or of one expert's.", 1, 262144),
        SIZE("fast-dim", fast_dim, "Width of the fast AR.", 1, 65536),
        SIZE("fast-layers", fast_layers, "Layers of the fast AR.", 1, 512),
        SIZE("fast-ffn", fast_ffn, "Width of the fast AR's feed-forward.", 1, 262144),
        SIZE("vocab", vocab, "All tokens together.", 1, 1 << 22),
        SIZE("codebooks", codebooks, "Codes of a frame.", 2, S2_MAX_CODEBOOKS),
        SIZE("codebook-size", codebook_size, "Entries of an AR codebook.", 2, 1 << 18),
        SIZE("context", context, "Positions that fit.", 16, 1 << 22),
        SIZE("experts", experts, "Experts of a layer of llama-moe.", 1, 512),
        SIZE("experts-used", experts_used,
                "How many of them compute a token; default: 8, or all if there are fewer.", 1, 512),
        SIZE("latent", latent, "Width of the codec's latents.", 1, 8192),
        SIZE("encoder-dim", encoder_dim, "Channels of the first encoder stage.", 1, 1024),
        SIZE("decoder-dim", decoder_dim, "Channels of the first decoder stage.", 1, 8192),
        SIZE("codec-layers", codec_layers, "Layers of the codec's transformers.", 1, 64),
        SIZE("window", window, "Window of the quantizer's transformers, in frames.", 1, 2048),
        SIZE("sample-rate", sample_rate, "Sample rate in Hz.", 1000, 384000),
};

const opt_command cmd_synth_table = {
        .name = "synth",
        .summary = "write a synthetic model",
        .synopsis = "-o FILE.gguf [OPTIONS]",
        .about = "Writes a model with the structure of S2 Pro and noise for weights, and a "
                 "tokenizer "
                 "for it. The preset s2-pro has the real sizes: 5.6 GB at q8_0. The presets "
                 "llama-dense and llama-moe are models that llama.cpp loads and runs, with a "
                 "tokenizer inside: 1.6 and 7.4 GB.",
        .opts = defs,
        .n_opts = sizeof defs / sizeof defs[0],
};

/* An option that was given replaces the preset's size. */
static void set_size(uint32_t *size, int32_t given)
{
    if (given > 0) {
        *size = (uint32_t)given;
    }
}

static void apply_sizes(const synth_opts *o, s2_hparams *hp)
{
    s2_codec_hparams *c = &hp->codec;
    set_size(&hp->slow.n_embd, o->dim);
    set_size(&hp->slow.n_layer, o->layers);
    set_size(&hp->slow.n_ff, o->ffn);
    set_size(&hp->fast.n_embd, o->fast_dim);
    set_size(&hp->fast.n_layer, o->fast_layers);
    set_size(&hp->fast.n_ff, o->fast_ffn);
    s2_ar_hparams *ars[] = {&hp->slow, &hp->fast};
    for (size_t i = 0; i < 2; i++) {
        set_size(&ars[i]->n_head, o->heads);
        set_size(&ars[i]->n_head_kv, o->kv_heads);
        set_size(&ars[i]->head_dim, o->head_dim);
    }
    set_size(&hp->n_vocab, o->vocab);
    set_size(&hp->n_codebooks, o->codebooks);
    set_size(&hp->codebook_size, o->codebook_size);
    set_size(&hp->n_ctx, o->context);
    set_size(&c->semantic_size, o->codebook_size);
    set_size(&c->latent_dim, o->latent);
    set_size(&c->encoder_width[0], o->encoder_dim);
    set_size(&c->decoder_width[0], o->decoder_dim);
    set_size(&c->pre_tf.n_layer, o->codec_layers);
    set_size(&c->post_tf.n_layer, o->codec_layers);
    set_size(&c->pre_tf.window, o->window);
    set_size(&c->post_tf.window, o->window);
    set_size(&c->sample_rate, o->sample_rate);
}

/* OUTPUT without .gguf, with .tokenizer.json behind it. */
static char *tokenizer_path(const char *output)
{
    static const char suffix[] = ".tokenizer.json";
    size_t n = strlen(output);
    if (n > 5 && strcmp(output + n - 5, ".gguf") == 0) {
        n -= 5;
    }
    char *path = sl__alloc(n + sizeof suffix, 1);
    if (path) {
        snprintf(path, n + sizeof suffix, "%.*s%s", (int)n, output, suffix);
    }
    return path;
}

static void say_written(const char *path, uint64_t begin_ns)
{
    char quoted[256];
    fprintf(stderr, "wrote %s in %.1f s\n", sl__quote(quoted, sizeof quoted, path, strlen(path)),
            (double)(sl__now_ns() - begin_ns) * 1e-9);
}

/* *ret_status: OPT_RUN, or the status to exit with because the line was refused. */
static int write_both(
        const synth_opts *o, const s2_synth_opts *s, int *ret_status, sl_error *reterr)
{
    char *tokenizer = o->tokenizer_out ? sl__strndup(o->tokenizer_out, strlen(o->tokenizer_out))
                                       : tokenizer_path(o->output);
    if (!tokenizer) {
        return sl__fail_nomem(reterr, strlen(o->output), "a path");
    }
    const file_role roles[] = {{"--output", o->output, true}, {"--tokenizer-out", tokenizer, true}};
    *ret_status = file_roles_check(cmd_synth_table.name, roles, 2);
    if (*ret_status != OPT_RUN) {
        sl__free(tokenizer);
        return SL_OK;
    }
    uint64_t begin_ns = sl__now_ns();
    int r = s2_synth_write(s, o->output, reterr);
    if (r == 0) {
        say_written(o->output, begin_ns);
        begin_ns = sl__now_ns();
        r = s2_synth_write_tokenizer(s, tokenizer, reterr);
    }
    if (r == 0) {
        say_written(tokenizer, begin_ns);
    }
    sl__free(tokenizer);
    return r;
}

static int write_s2(const synth_opts *o, uint32_t type, int *ret_status, sl_error *reterr)
{
    s2_synth_opts s = o->preset == PRESET_TINY ? s2_synth_tiny() : s2_synth_s2_pro();
    s.seed = o->seed;
    s.should_stop = interrupt_seen;
    s.ar_type = type;
    if (!s2_synth_type(o->codec_type, &s.codec_type) || s.codec_type > 1) {
        *ret_status = report_usage(
                cmd_synth_table.name, "--codec-type '%s', need f16 or f32", o->codec_type);
        return SL_OK;
    }
    apply_sizes(o, &s.hp);
    int r = s2_synth_complete(&s, reterr);
    return r == 0 ? write_both(o, &s, ret_status, reterr) : r;
}

static int write_llama(const synth_opts *o, uint32_t type, int *ret_status, sl_error *reterr)
{
    const file_role output = {"--output", o->output, true};
    s2_synth_llama m =
            o->preset == PRESET_LLAMA_MOE ? s2_synth_llama_moe() : s2_synth_llama_dense();
    m.noise = (s2_synth_noise){o->seed, interrupt_seen};
    m.type = type;
    m.embedding_type = type;
    if (o->embedding_type && !s2_synth_type(o->embedding_type, &m.embedding_type)) {
        *ret_status = report_usage(cmd_synth_table.name,
                "--embedding-type '%s' is no type of a matrix; f16 is one", o->embedding_type);
        return SL_OK;
    }
    set_size(&m.n_layer, o->layers);
    set_size(&m.n_embd, o->dim);
    set_size(&m.n_head, o->heads);
    set_size(&m.n_head_kv, o->kv_heads);
    set_size(&m.head_dim, o->head_dim);
    set_size(&m.n_ff, o->ffn);
    set_size(&m.n_vocab, o->vocab);
    set_size(&m.n_ctx, o->context);
    set_size(&m.n_expert, o->experts);
    /* As many as the preset has, or all. */
    m.n_expert_used = m.n_expert_used < m.n_expert ? m.n_expert_used : m.n_expert;
    set_size(&m.n_expert_used, o->experts_used);
    *ret_status = file_roles_check(cmd_synth_table.name, &output, 1);
    if (*ret_status != OPT_RUN) {
        return SL_OK;
    }
    uint64_t begin_ns = sl__now_ns();
    int r = s2_synth_llama_write(&m, o->output, reterr);
    if (r == 0) {
        say_written(o->output, begin_ns);
    }
    return r;
}

static bool is_llama(const synth_opts *o)
{
    return o->preset == PRESET_LLAMA_DENSE || o->preset == PRESET_LLAMA_MOE;
}

/* Options that only some presets have a use for. */
static int check_preset(const synth_opts *o, const opt_result *line)
{
    static const char *const of_s2[] = {"tokenizer-out", "codec-type", "fast-dim", "fast-layers",
            "fast-ffn", "codebooks", "codebook-size", "latent", "encoder-dim", "decoder-dim",
            "codec-layers", "window", "sample-rate"};
    static const char *const of_llama[] = {"embedding-type"};
    static const char *const of_moe[] = {"experts", "experts-used"};
    const struct {
        const char *const *names;
        size_t n;
        bool is_used;
    } groups[] = {
            {of_s2, sizeof of_s2 / sizeof of_s2[0], !is_llama(o)},
            {of_llama, sizeof of_llama / sizeof of_llama[0], is_llama(o)},
            {of_moe, sizeof of_moe / sizeof of_moe[0], o->preset == PRESET_LLAMA_MOE},
    };
    const char *useless = NULL;
    for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++) {
        for (size_t k = 0; k < groups[i].n && !groups[i].is_used; k++) {
            useless = opt_given(line, groups[i].names[k]) ? groups[i].names[k] : useless;
        }
    }
    return useless ? report_usage(cmd_synth_table.name,
                             "--%s has no effect with --preset %s; leave it out", useless,
                             preset_names[o->preset])
                   : OPT_RUN;
}

int cmd_synth(int argc, char **argv)
{
    synth_opts o = {0};
    opt_result line;
    sl_error err = {0};
    uint32_t type;
    int status = opt_parse(&cmd_synth_table, argc, argv, &o, &line);
    if (status != OPT_RUN) {
        return status;
    }
    if (!o.output) {
        return report_usage(cmd_synth_table.name, "no output; name one with -o FILE.gguf");
    }
    if (!s2_synth_type(o.type, &type)) {
        return report_usage(
                cmd_synth_table.name, "--type '%s' is no type of a matrix; q8_0 is one", o.type);
    }
    status = check_preset(&o, &line);
    if (status != OPT_RUN) {
        return status;
    }
    interrupt_catch();
    int r = is_llama(&o) ? write_llama(&o, type, &status, &err) : write_s2(&o, type, &status, &err);
    if (r < 0) {
        return report_error(cmd_synth_table.name, &err);
    }
    return status == OPT_RUN ? 0 : status;
}
