/*
 * What does opening cost? Our sl_model_open (map, index, check) against ggml's gguf_init_from_file, metadata
 * only, on the same files in the same process: the best of several runs each, taken in turns, and the heap
 * that each holds while the file is open.
 *
 * bench_open [FILE...]: without files, the five largest vocabularies in SLUICE_VOCAB_DIR.
 */
#include <glob.h>
#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <gguf.h>

#include "bench_support.h"

#include "os/os_clock.h"

#include "sluice/model.h"

#define N_ROUNDS 7
#define N_OURS                                                                                     \
    7 /* runs of ours in a round: they are short, and a busy machine disturbs them more */
#define N_LARGEST 5

typedef struct cost {
    uint64_t best_ns;
    uint64_t heap_bytes;
} cost;

typedef struct sized_file {
    char *path;
    uint64_t n_bytes;
} sized_file;

static uint64_t heap_in_use(void)
{
    struct mallinfo2 m = mallinfo2();
    return (uint64_t)m.uordblks + (uint64_t)m.hblkhd;
}

static void keep_best(cost *c, uint64_t start_ns, uint64_t heap_before)
{
    uint64_t ns = sl__now_ns() - start_ns;
    c->best_ns = c->best_ns == 0 || ns < c->best_ns ? ns : c->best_ns;
    c->heap_bytes = heap_in_use() - heap_before;
}

static void run_ggml(const char *path, cost *c)
{
    struct gguf_init_params params = {.no_alloc = true, .ctx = NULL};
    uint64_t heap = heap_in_use();
    uint64_t start = sl__now_ns();
    struct gguf_context *g = gguf_init_from_file(path, params);
    keep_best(c, start, heap);
    if (!g) {
        fprintf(stderr, "bench: ggml refuses %s\n", path);
        _Exit(1);
    }
    gguf_free(g);
}

/* Returns the bytes that the index says it takes. */
static uint64_t run_ours(const char *path, cost *c)
{
    sl_model *m = NULL;
    sl_error err = {0};
    uint64_t heap = heap_in_use();
    uint64_t start = sl__now_ns();
    int r = sl_model_open(path, &m, &err);
    keep_best(c, start, heap);
    bench_ok(r, &err);
    uint64_t n = sl_gguf_index_bytes(sl_model_gguf(m, 0));
    sl_model_close(&m);
    return n;
}

static void print_row(const char *name, uint64_t n_bytes, const cost *ggml, const cost *ours,
        uint64_t index_bytes)
{
    printf("%s,%" PRIu64 ",%.3f,%.3f,%.1f,%" PRIu64 ",%" PRIu64 ",%" PRIu64 "\n", name, n_bytes,
            (double)ggml->best_ns / 1e6, (double)ours->best_ns / 1e6,
            (double)ggml->best_ns / (double)ours->best_ns, ggml->heap_bytes, ours->heap_bytes,
            index_bytes);
}

static uint64_t file_bytes(const char *path)
{
    sl_map *map = NULL;
    sl_error err = {0};
    bench_ok(sl_map_open(path, &map, &err), &err);
    uint64_t n = sl_map_size(map);
    sl_map_close(&map);
    return n;
}

static void bench_files(const sized_file *files, size_t n_files)
{
    cost total_ggml = {0};
    cost total_ours = {0};
    uint64_t total_bytes = 0;
    uint64_t total_index = 0;
    printf("file,bytes,ggml_ms,sluice_ms,ratio,ggml_heap_bytes,sluice_heap_bytes,index_bytes\n");
    for (size_t i = 0; i < n_files; i++) {
        cost ggml = {0};
        cost ours = {0};
        uint64_t index_bytes = 0;
        for (int run = 0; run < N_ROUNDS; run++) {
            run_ggml(files[i].path, &ggml);
            for (int k = 0; k < N_OURS; k++) {
                index_bytes = run_ours(files[i].path, &ours);
            }
        }
        const char *slash = strrchr(files[i].path, '/');
        print_row(slash ? slash + 1 : files[i].path, files[i].n_bytes, &ggml, &ours, index_bytes);
        total_ggml.best_ns += ggml.best_ns;
        total_ggml.heap_bytes += ggml.heap_bytes;
        total_ours.best_ns += ours.best_ns;
        total_ours.heap_bytes += ours.heap_bytes;
        total_bytes += files[i].n_bytes;
        total_index += index_bytes;
    }
    print_row("total", total_bytes, &total_ggml, &total_ours, total_index);
}

static int by_size_down(const void *a, const void *b)
{
    const sized_file *x = a;
    const sized_file *y = b;
    return (x->n_bytes < y->n_bytes) - (x->n_bytes > y->n_bytes);
}

static void silent(enum ggml_log_level level, const char *text, void *ud)
{
    (void)level;
    (void)text;
    (void)ud;
}

int main(int argc, char **argv)
{
    char pattern[4096];
    glob_t found = {0};
    char **paths = argv + 1;
    size_t n = (size_t)argc - 1;
    const char *dir = getenv("SLUICE_VOCAB_DIR"); /* NOLINT(concurrency-mt-unsafe): one thread */
    if (n == 0) {
        snprintf(pattern, sizeof pattern, "%s/ggml-vocab-*.gguf", dir && *dir ? dir : ".");
        /* NOLINTNEXTLINE(concurrency-mt-unsafe): one thread */
        if (glob(pattern, 0, NULL, &found) != 0) {
            printf("# skipped: no %s; give files, or set SLUICE_VOCAB_DIR\n", pattern);
            return 0;
        }
        paths = found.gl_pathv;
        n = found.gl_pathc;
    }
    ggml_log_set(silent, NULL);
    sized_file *files = bench_alloc(n * sizeof *files);
    for (size_t i = 0; i < n; i++) {
        files[i] = (sized_file){paths[i], file_bytes(paths[i])};
    }
    if (found.gl_pathc > 0) {
        qsort(files, n, sizeof *files, by_size_down);
        n = n < N_LARGEST ? n : N_LARGEST;
    }
    bench_print_machine();
    bench_files(files, n);
    free(files);
    globfree(&found);
    return 0;
}
