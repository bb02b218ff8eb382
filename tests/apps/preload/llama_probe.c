/*
 * A program on llama.cpp's public API, with the weights mapped and left where they lie: loads a model, reads a prompt,
 * and goes on with the likeliest token. It knows nothing of Sluice and is built without sanitizers.
 *
 *   llama_probe BACKENDS MODEL N_PROMPT N_MORE N_THREADS
 *
 * BACKENDS: a folder with ggml's back ends of the processor. The prompt is N_PROMPT tokens (0 = the program ends when
 * the model is loaded). Prints the tokens, a hash of all logits, times, and pages that had to be read (major faults)
 * or entered (minor) meanwhile.
 */
#define _GNU_SOURCE

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "llama.h"

#define MAX_TOKENS 256

static const char prompt[] =
        "A sluice lets through what is wanted, when it is wanted, and no more.\n";

typedef struct moment {
    double ms;
    long major;
    long minor;
} moment;

static moment now(void)
{
    struct timespec t;
    struct rusage usage;
    clock_gettime(CLOCK_MONOTONIC, &t);
    getrusage(RUSAGE_SELF, &usage);
    return (moment){
            (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6, usage.ru_majflt, usage.ru_minflt};
}

static void print_since(const char *what, moment from, moment to)
{
    printf("%s %.0f ms, faults %ld major %ld minor\n", what, to.ms - from.ms, to.major - from.major,
            to.minor - from.minor);
}

static int die(const char *what)
{
    fprintf(stderr, "llama_probe: %s\n", what);
    return 1;
}

static void say_errors(enum ggml_log_level level, const char *text, void *ud)
{
    (void)ud;
    if (level == GGML_LOG_LEVEL_ERROR) {
        fputs(text, stderr);
    }
}

static int number(const char *text)
{
    int n = 0;
    for (; *text >= '0' && *text <= '9' && n < MAX_TOKENS; text++) {
        n = n * 10 + (*text - '0');
    }
    return n;
}

static uint64_t hash(uint64_t h, const void *data, size_t n)
{
    const unsigned char *p = data;
    for (size_t i = 0; i < n; i++) {
        h = (h ^ p[i]) * 0x100000001b3u;
    }
    return h;
}

static struct llama_model *load(const char *path)
{
    ggml_backend_dev_t none[] = {NULL};
    struct llama_model_params params = llama_model_default_params();
    params.devices = none;
    params.load_mode = LLAMA_LOAD_MODE_MMAP;
    params.use_extra_bufts = false; /* no copies in another order */
    return llama_model_load_from_file(path, params);
}

static struct llama_context *open_context(struct llama_model *model, int n_threads)
{
    struct llama_context_params params = llama_context_default_params();
    params.n_ctx = 2 * MAX_TOKENS;
    params.n_batch = MAX_TOKENS;
    params.n_threads = n_threads;
    params.n_threads_batch = n_threads;
    return llama_init_from_model(model, params);
}

/* The prompt as n tokens; there must be so many, and they must mean the prompt. */
static bool tokenize(const struct llama_vocab *vocab, llama_token *tokens, int n)
{
    char text[sizeof prompt + 8];
    int n_all =
            llama_tokenize(vocab, prompt, (int32_t)strlen(prompt), tokens, MAX_TOKENS, true, false);
    int n_text = llama_detokenize(vocab, tokens, n_all, text, (int32_t)sizeof text, true, false);
    return n_all >= n && n_text == (int)strlen(prompt) && memcmp(text, prompt, (size_t)n_text) == 0;
}

static llama_token likeliest(const float *logits, int n)
{
    int best = 0;
    for (int i = 1; i < n; i++) {
        best = logits[i] > logits[best] ? i : best;
    }
    return best;
}

static int compute(struct llama_model *model, int n_prompt, int n_more, int n_threads)
{
    llama_token tokens[MAX_TOKENS];
    uint64_t h = 0xcbf29ce484222325u;
    const struct llama_vocab *vocab = llama_model_get_vocab(model);
    int n_vocab = llama_vocab_n_tokens(vocab);
    struct llama_context *ctx = open_context(model, n_threads);
    if (!ctx || !tokenize(vocab, tokens, n_prompt)) {
        return die("no context, or no tokens");
    }
    moment begin = now();
    struct llama_batch batch = llama_batch_get_one(tokens, n_prompt);
    for (int i = 0; i <= n_more; i++) {
        if (llama_decode(ctx, batch) != 0) {
            return die("cannot compute");
        }
        const float *logits = llama_get_logits_ith(ctx, -1);
        h = hash(h, logits, (size_t)n_vocab * sizeof *logits);
        if (i == 0) {
            print_since("prompt", begin, now());
        }
        tokens[0] = likeliest(logits, n_vocab);
        printf("token %d\n", tokens[0]);
        batch = llama_batch_get_one(tokens, 1);
    }
    print_since("computed", begin, now());
    printf("logits %016llx\n", (unsigned long long)h);
    llama_free(ctx);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc != 6) {
        return die("needs BACKENDS MODEL N_PROMPT N_MORE N_THREADS");
    }
    llama_log_set(say_errors, NULL);
    ggml_backend_load_all_from_path(argv[1]);
    llama_backend_init();
    moment begin = now();
    struct llama_model *model = load(argv[2]);
    if (!model) {
        return die("cannot load");
    }
    print_since("loaded", begin, now());
    int n_prompt = number(argv[3]);
    int status = n_prompt > 0 ? compute(model, n_prompt, number(argv[4]), number(argv[5])) : 0;
    print_since("all", begin, now());
    llama_model_free(model);
    return status;
}
