/*
 * How near a frame comes to its bound: the weights that it must read, at the speed at which the same threads
 * read the same pages in the same run.
 *
 *   bench_frame MODEL.gguf [THREADS] [FRAMES]
 *
 * A frame is one step of the slow AR and n_codebooks - 1 passes of the fast AR, with the choice of the best
 * code between them. The bound counts the layers, the rows of the head that may be chosen, and the fast AR
 * once for each pass. Prints one CSV line; the ratio is the figure that means something on other machines.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_support.h"
#include "engine/model/fast_ar.h"
#include "engine/model/hparams.h"
#include "engine/model/slow_ar.h"
#include "os/os_clock.h"
#include "os/os_process.h"
#include "sluice/model.h"

typedef struct bench {
    sl_model *model;
    s2_hparams hp;
    s2_compute compute;
    s2_rows head;
    s2_weights *weights;
    s2_slow_ar *slow;
    s2_fast_ar *fast;
    float *logits;
    float *hidden;
    int32_t *column;
} bench;

static void open_model(bench *b, const char *path, int n_threads)
{
    sl_error err;
    bench_ok(sl_model_open(path, &b->model, &err), &err);
    bench_ok(s2_hparams_read(b->model, &b->hp, &err), &err);
    bench_ok(s2_compute_init(&b->compute, n_threads, &err), &err);
    bench_ok(s2_head_rows_init(&b->head, b->model, &b->hp, &err), &err);
    bench_ok(s2_weights_open(b->model, &b->head.tensor, &b->weights, &err), &err);
    bench_ok(s2_weights_use_mapping(b->weights, &err), &err);
    const s2_slow_places places = s2_slow_places_on(&b->compute);
    bench_ok(s2_slow_ar_create(
                     &b->hp, b->hp.semantic_begin - 33, b->weights, &places, &b->slow, &err),
            &err);
    bench_ok(s2_fast_ar_create(&b->hp, b->weights, &b->compute, &b->fast, &err), &err);
    b->logits = bench_alloc((b->hp.codebook_size + 1) * sizeof(float));
    b->hidden = bench_alloc(b->hp.slow.n_embd * sizeof(float));
    b->column = bench_alloc((1 + b->hp.n_codebooks) * sizeof(int32_t));
}

static void close_model(bench *b)
{
    s2_fast_ar_free(&b->fast);
    s2_slow_ar_free(&b->slow);
    s2_weights_close(&b->weights);
    s2_compute_done(&b->compute);
    sl_model_close(&b->model);
    free(b->logits);
    free(b->hidden);
    free(b->column);
}

static bool begins_with(sl_span name, const char *prefix)
{
    size_t n = strlen(prefix);
    return name.n >= n && memcmp(name.p, prefix, n) == 0;
}

/* Bytes of all tensors whose names begin so. */
static uint64_t bytes_of(const bench *b, const char *prefix)
{
    uint64_t n = 0;
    for (uint64_t i = 0; i < sl_model_n_tensors(b->model); i++) {
        const sl_gguf_tensor *t = sl_model_tensor_at(b->model, i)->info;
        n += begins_with(t->name, prefix) ? t->n_bytes : 0;
    }
    return n;
}

static uint64_t frame_bytes(const bench *b)
{
    const sl_gguf_tensor *e = sl_model_find(b->model, "embeddings.weight")->info;
    uint64_t head = e->n_bytes / e->ne[1] * (b->hp.codebook_size + 1);
    uint64_t fast = bytes_of(b, "fast_layers.") + bytes_of(b, "fast_output.");
    return bytes_of(b, "layers.") + head + (b->hp.n_codebooks - 1) * fast;
}

static int32_t best_of(const float *logits, uint32_t n)
{
    uint32_t best = 0;
    for (uint32_t i = 1; i < n; i++) {
        best = logits[i] > logits[best] ? i : best;
    }
    return (int32_t)best;
}

static void run_frame(bench *b, uint64_t *slow_ns, uint64_t *fast_ns)
{
    sl_error err;
    uint64_t begin = sl__now_ns();
    bench_ok(s2_slow_ar_eval(b->slow, b->column, 1, 0, b->logits, b->hidden, &err), &err);
    uint64_t middle = sl__now_ns();
    int32_t code = best_of(b->logits, b->hp.codebook_size);
    b->column[0] = b->hp.semantic_begin + code;
    b->column[1] = code;
    for (uint32_t j = 1; j < b->hp.n_codebooks; j++) {
        int r = j == 1 ? s2_fast_ar_begin(b->fast, b->hidden, code, b->logits, &err)
                       : s2_fast_ar_next(b->fast, code, b->logits, &err);
        bench_ok(r, &err);
        code = best_of(b->logits, b->hp.codebook_size);
        b->column[1 + j] = code;
    }
    *slow_ns += middle - begin;
    *fast_ns += sl__now_ns() - middle;
}

typedef struct figures {
    uint64_t frame_ns;
    uint64_t slow_ns;
    uint64_t fast_ns;
} figures;

static void keep_best(figures *best, uint64_t slow_ns, uint64_t fast_ns)
{
    if (slow_ns + fast_ns < best->frame_ns) {
        *best = (figures){slow_ns + fast_ns, slow_ns, fast_ns};
    }
}

int main(int argc, char **argv)
{
    bench b = {0};
    uint64_t slow_ns = 0;
    uint64_t fast_ns = 0;
    if (argc < 2) {
        fprintf(stderr, "usage: bench_frame MODEL.gguf [THREADS] [FRAMES]\n");
        return 2;
    }
    unsigned n_threads = bench_number(argc, argv, 2, sl__n_cpus());
    unsigned n_frames = bench_number(argc, argv, 3, 20);
    open_model(&b, argv[1], (int)n_threads);
    const sl_map *map = sl_model_map(b.model, 0);

    /* The first frames bring pages and buffers in; the column is a plain text token. */
    b.column[0] = 1;
    run_frame(&b, &slow_ns, &fast_ns);
    run_frame(&b, &slow_ns, &fast_ns);
    /* Frames and reads by turns, and the best of each: what else the machine does hits both alike. */
    double bandwidth = 0;
    figures best = {UINT64_MAX, UINT64_MAX, UINT64_MAX};
    for (unsigned i = 0; i < n_frames; i++) {
        double v = bench_read_bandwidth(sl_map_data(map), sl_map_size(map), n_threads);
        bandwidth = v > bandwidth ? v : bandwidth;
        slow_ns = 0;
        fast_ns = 0;
        run_frame(&b, &slow_ns, &fast_ns);
        keep_best(&best, slow_ns, fast_ns);
    }
    double frame_s = (double)best.frame_ns * 1e-9;
    double bound_s = (double)frame_bytes(&b) / bandwidth;

    bench_print_machine();
    printf("model,threads,frames,bytes_per_frame,read_GB_per_s,bound_ms,frame_ms,slow_ms,fast_ms,"
           "ratio\n");
    printf("%s,%u,%u,%" PRIu64 ",%.2f,%.2f,%.2f,%.2f,%.2f,%.3f\n", argv[1], n_threads, n_frames,
            frame_bytes(&b), bandwidth * 1e-9, bound_s * 1e3, frame_s * 1e3,
            (double)best.slow_ns * 1e-6, (double)best.fast_ns * 1e-6, frame_s / bound_s);
    close_model(&b);
    return 0;
}
