/*
 * What the operations of an AR layer cost on a device, each by itself: the shapes of S2 Pro at Q8_0, one column and more.
 *
 *   bench_ops [DEVICE [MIB [N_COLUMNS...]]]      cuda0, vulkan0, ... or cpu (default); weights of each row (default 600 MiB)
 *
 * One CSV line an operation: microseconds of one in a graph of many, the best of several runs, and the weights' bytes over
 * that time. Each has weights of its own, more of them than a cache holds. A product's time has in it what makes of its
 * column what it multiplies with.
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "ggml-alloc.h"
#include "ggml-backend.h"
#include "ggml.h"

#include "base/status.h"
#include "bench_support.h"
#include "engine/nn/compute.h"
#include "os/os_clock.h"
#include "os/os_process.h"
#include "sluice/ggml_device.h"

#define N_EMBD    2560
#define N_FF      9728
#define N_HEAD    INT64_C(32)
#define N_HEAD_KV INT64_C(8)
#define HEAD_DIM  INT64_C(128)
#define N_QKV     ((N_HEAD + 2 * N_HEAD_KV) * HEAD_DIM)
#define N_CODES   4096
#define N_KV      INT64_C(256)

#define N_SMALL   64 /* operations of a graph that read no weights */
#define N_RUNS    5
#define N_COMPUTE 10 /* graphs of a run */
#define MAX_OPS   ((size_t)4096)

typedef struct rig {
    ggml_backend_t backend;
    size_t weight_bytes; /* of a graph */
    unsigned n_columns;
    struct ggml_context *ctx;
    struct ggml_cgraph *graph;
} rig;

static void begin(rig *r)
{
    struct ggml_init_params params = {.mem_size = 16 * MAX_OPS * ggml_tensor_overhead() +
                                                  ggml_graph_overhead_custom(4 * MAX_OPS, false),
            .no_alloc = true};
    r->ctx = ggml_init(params);
    r->graph = ggml_new_graph_custom(r->ctx, 4 * MAX_OPS, false);
}

static struct ggml_tensor *floats(rig *r, int64_t ne0, int64_t ne1)
{
    return ggml_new_tensor_2d(r->ctx, GGML_TYPE_F32, ne0, ne1);
}

static struct ggml_tensor *halves(rig *r, int64_t ne0, int64_t ne1)
{
    return ggml_new_tensor_2d(r->ctx, GGML_TYPE_F16, ne0, ne1);
}

static void add(rig *r, struct ggml_tensor *t)
{
    ggml_build_forward_expand(r->graph, t);
}

/* Computes what was added, n_ops operations, and says what one takes. */
static void end(rig *r, const char *what, size_t n_ops, size_t op_bytes)
{
    sl_error err = {0};
    ggml_backend_buffer_t buffer = ggml_backend_alloc_ctx_tensors(r->ctx, r->backend);
    bench_ok(buffer ? SL_OK : sl__fail(&err, SL_ENOMEM, "no memory for %s", what), &err);
    ggml_backend_buffer_clear(buffer, 0);
    uint64_t best = UINT64_MAX;
    for (int run = 0; run <= N_RUNS; run++) {
        uint64_t begin_ns = sl__now_ns();
        for (int i = 0; i < N_COMPUTE; i++) {
            bool is_done = ggml_backend_graph_compute(r->backend, r->graph) == GGML_STATUS_SUCCESS;
            bench_ok(is_done ? SL_OK : sl__fail(&err, SL_EDEVICE, "cannot compute %s", what), &err);
        }
        uint64_t ns = sl__now_ns() - begin_ns;
        best = run > 0 && ns < best ? ns : best;
    }
    double us = (double)best / 1e3 / N_COMPUTE / (double)n_ops;
    printf("%s,%u,%.2f,%.0f\n", what, r->n_columns, us, (double)op_bytes / us / 1e3);
    ggml_backend_buffer_free(buffer);
    ggml_free(r->ctx);
}

static size_t n_fitting(const rig *r, size_t op_bytes)
{
    size_t n = r->weight_bytes / op_bytes + 1;
    return n < MAX_OPS ? n : MAX_OPS;
}

static void product(rig *r, const char *what, enum ggml_type type, int64_t n_in, int64_t n_out)
{
    size_t op_bytes = ggml_row_size(type, n_in) * (size_t)n_out;
    size_t n = n_fitting(r, op_bytes);
    begin(r);
    struct ggml_tensor *x = floats(r, n_in, r->n_columns);
    for (size_t i = 0; i < n; i++) {
        add(r, ggml_mul_mat(r->ctx, ggml_new_tensor_2d(r->ctx, type, n_in, n_out), x));
    }
    end(r, what, n, op_bytes);
}

static void gated(rig *r, const char *what, enum ggml_type type)
{
    size_t op_bytes = 2 * ggml_row_size(type, N_EMBD) * N_FF;
    size_t n = n_fitting(r, op_bytes);
    begin(r);
    struct ggml_tensor *x = floats(r, N_EMBD, r->n_columns);
    for (size_t i = 0; i < n; i++) {
        struct ggml_tensor *w1 = ggml_new_tensor_2d(r->ctx, type, N_EMBD, N_FF);
        struct ggml_tensor *w3 = ggml_new_tensor_2d(r->ctx, type, N_EMBD, N_FF);
        struct ggml_tensor *gate = ggml_mul_mat(r->ctx, w1, x);
        add(r, ggml_swiglu_split(r->ctx, gate, ggml_mul_mat(r->ctx, w3, x)));
    }
    end(r, what, n, op_bytes);
}

static void attention(rig *r)
{
    size_t head_bytes = (size_t)HEAD_DIM * sizeof(ggml_fp16_t);
    int64_t n_row = N_HEAD_KV * HEAD_DIM;
    begin(r);
    struct ggml_tensor *q =
            ggml_new_tensor_3d(r->ctx, GGML_TYPE_F32, HEAD_DIM, r->n_columns, N_HEAD);
    struct ggml_tensor *mask = halves(r, N_KV, r->n_columns);
    for (size_t i = 0; i < N_SMALL; i++) {
        struct ggml_tensor *part[2];
        for (int k = 0; k < 2; k++) {
            struct ggml_tensor *cache = halves(r, n_row, N_KV);
            part[k] = ggml_view_3d(
                    r->ctx, cache, HEAD_DIM, N_KV, N_HEAD_KV, cache->nb[1], head_bytes, 0);
        }
        struct ggml_tensor *out =
                ggml_flash_attn_ext(r->ctx, q, part[0], part[1], mask, 0.1F, 0.0F, 0.0F);
        ggml_flash_attn_ext_set_prec(out, GGML_PREC_F32);
        add(r, out);
    }
    end(r, "attention over 256 positions", N_SMALL, 2 * head_bytes * (size_t)(N_KV * N_HEAD_KV));
}

static void norm(rig *r, const char *what, int64_t n_row, int64_t n_rows)
{
    begin(r);
    struct ggml_tensor *x = floats(r, n_row, n_rows * r->n_columns);
    struct ggml_tensor *w = floats(r, n_row, 1);
    for (size_t i = 0; i < N_SMALL; i++) {
        add(r, ggml_mul(r->ctx, ggml_rms_norm(r->ctx, x, 1e-6F), w));
    }
    end(r, what, N_SMALL, 0);
}

static void rotation(rig *r)
{
    begin(r);
    struct ggml_tensor *x =
            ggml_new_tensor_3d(r->ctx, GGML_TYPE_F32, HEAD_DIM, N_HEAD, r->n_columns);
    struct ggml_tensor *pos = ggml_new_tensor_1d(r->ctx, GGML_TYPE_I32, r->n_columns);
    for (size_t i = 0; i < N_SMALL; i++) {
        add(r, ggml_rope_ext(r->ctx, x, pos, NULL, (int)HEAD_DIM, GGML_ROPE_TYPE_NORMAL, 0, 1e6F,
                       1.0F, 0.0F, 1.0F, 0.0F, 0.0F));
    }
    end(r, "rotation of 32 heads", N_SMALL, 0);
}

static void cache_row(rig *r)
{
    int64_t n_row = N_HEAD_KV * HEAD_DIM;
    begin(r);
    struct ggml_tensor *x = floats(r, n_row, r->n_columns);
    struct ggml_tensor *rows = ggml_new_tensor_1d(r->ctx, GGML_TYPE_I64, r->n_columns);
    for (size_t i = 0; i < N_SMALL; i++) {
        add(r, ggml_set_rows(r->ctx, halves(r, n_row, N_KV), x, rows));
    }
    end(r, "row of the cache", N_SMALL, 0);
}

static void run(rig *r)
{
    product(r, "q8_0 2560 to 6144", GGML_TYPE_Q8_0, N_EMBD, N_QKV);
    product(r, "q8_0 4096 to 2560", GGML_TYPE_Q8_0, N_HEAD * HEAD_DIM, N_EMBD);
    gated(r, "q8_0 2560 to 2 x 9728 with swiglu", GGML_TYPE_Q8_0);
    product(r, "q8_0 9728 to 2560", GGML_TYPE_Q8_0, N_FF, N_EMBD);
    product(r, "q8_0 2560 to 4096", GGML_TYPE_Q8_0, N_EMBD, N_CODES);
    gated(r, "f16 2560 to 2 x 9728 with swiglu", GGML_TYPE_F16);
    attention(r);
    norm(r, "norm of 2560", N_EMBD, 1);
    norm(r, "norm of 32 heads", HEAD_DIM, N_HEAD);
    rotation(r);
    cache_row(r);
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "cpu";
    s2_compute cpu;
    s2_compute on_device = {0};
    sl_device *device = NULL;
    sl_error err = {0};
    rig r = {.weight_bytes = (size_t)bench_number(argc, argv, 2, 600) << 20};
    bench_ok(s2_compute_init(&cpu, (int)sl__n_cpus(), &err), &err);
    r.backend = cpu.backend;
    if (strcmp(name, "cpu") != 0) {
        bench_ok(sl_ggml_open(name, &device, &err), &err);
        bench_ok(s2_compute_init_device(&on_device, &cpu, device, &err), &err);
        r.backend = on_device.backend;
    }
    bench_print_machine();
    printf("# bench_ops %s\noperation,columns,us,weights_gb_per_s\n", name);
    for (int i = 3; i < argc || i == 3; i++) {
        r.n_columns = bench_number(argc, argv, i, 1);
        run(&r);
    }
    s2_compute_done(&on_device);
    sl_device_free(&device);
    s2_compute_done(&cpu);
    return 0;
}
