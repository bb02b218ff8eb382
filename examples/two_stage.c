/*
 * Two stages of a toy model that take turns on a device too small for both: y = tanh(B tanh(A x)).
 *
 *     two_stage [DEVICE]    DEVICE: cpu, cuda0, vulkan0, ... or sim:6M,link=1G (the default)
 *
 * Writes two_stage.gguf with 4 MiB for each stage, then runs both stages three times within 6 MiB: before a stage
 * computes, a lease brings its weights in; what must leave for that leaves. Link sluice_ggml, sluice and ggml.
 */
#include <stdio.h>
#include <string.h>

#include <ggml-backend.h>
#include <ggml.h>
#include <gguf.h>

#include <sluice/ggml_device.h>
#include <sluice/residency.h>

enum {
    N = 1024,
    N_ROUNDS = 3
};

static const char *const names[2] = {"a.weight", "b.weight"};
static const char file_name[] = "two_stage.gguf";

static int write_model(void)
{
    struct ggml_init_params params = {.mem_size = 16 << 20};
    struct ggml_context *ctx = ggml_init(params);
    struct gguf_context *gguf = gguf_init_empty();
    for (int s = 0; s < 2; s++) {
        struct ggml_tensor *w = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, N, N);
        ggml_set_name(w, names[s]);
        for (int i = 0; i < N * N; i++) {
            ((float *)w->data)[i] = (float)((i % 199 * 97 + s * 31) % 199 - 99) / 2048.0F;
        }
        gguf_add_tensor(gguf, w);
    }
    bool ok = gguf_write_to_file(gguf, file_name, false);
    gguf_free(gguf);
    ggml_free(ctx);
    return ok ? 0 : -1;
}

/* x = tanh(W x), with the weights where the lease says they are. */
static int compute(sl_buffer *buffer, uint64_t offset, float *x, sl_error *err)
{
    sl_device *device = sl_buffer_device(buffer);
    struct ggml_init_params params = {
            .mem_size = 16 * ggml_tensor_overhead() + ggml_graph_overhead(), .no_alloc = true};
    sl_ggml_view view = {0};
    int r = sl_ggml_view_init(buffer, &view, err);
    if (r < 0) {
        return r;
    }
    ggml_backend_t backend =
            sl_ggml_is(device) ? ggml_backend_dev_init(sl_ggml_dev(device), NULL)
                               : ggml_backend_init_by_type(GGML_BACKEND_DEVICE_TYPE_CPU, NULL);
    struct ggml_context *ctx = ggml_init(params);
    struct ggml_tensor *w = ggml_new_tensor_2d(ctx, GGML_TYPE_F32, N, N);
    ggml_backend_tensor_alloc(view.buffer, w, (char *)view.base + offset);
    struct ggml_tensor *in = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, N);
    struct ggml_tensor *out = ggml_tanh(ctx, ggml_mul_mat(ctx, w, in));
    struct ggml_cgraph *graph = ggml_new_graph(ctx);
    ggml_build_forward_expand(graph, out);
    ggml_backend_buffer_t scratch = ggml_backend_alloc_ctx_tensors(ctx, backend);
    ggml_backend_tensor_set(in, x, 0, N * sizeof *x);
    ggml_backend_graph_compute(backend, graph);
    ggml_backend_tensor_get(out, x, 0, N * sizeof *x);
    ggml_backend_buffer_free(scratch);
    ggml_free(ctx);
    ggml_backend_free(backend);
    sl_ggml_view_done(&view);
    return 0;
}

static int run_stage(
        sl_residency *residency, size_t unit, const sl_tensor *w, float *x, sl_error *err)
{
    sl_lease *lease = NULL;
    sl_tensor_at at = {0};
    int r = sl_lease_acquire(residency, &unit, 1, false, NULL, &lease, err);
    if (r >= 0) {
        r = sl_lease_tensor(lease, unit, w, &at, err);
    }
    if (r >= 0) {
        r = compute(at.buffer, at.offset, x, err);
    }
    sl_lease_release(&lease);
    return r;
}

static int run(sl_device *device, const sl_model *model, sl_error *err)
{
    const sl_residency_place place = {.device = device, .budget_bytes = 6 << 20};
    const sl_residency_opts opts = {.places = &place, .n_places = 1, .policy = SL_POLICY_SWAP};
    const sl_tensor *weights[2] = {sl_model_find(model, names[0]), sl_model_find(model, names[1])};
    float x[N];
    sl_residency *residency = NULL;
    int r = sl_residency_open(&opts, &residency, err);
    for (size_t s = 0; s < 2 && r >= 0; s++) {
        size_t unit;
        sl_unit_spec spec = {.name = names[s], .model = model, .i_second = SL_PLAN_NONE};
        spec.tensors = &weights[s];
        spec.n_tensors = 1;
        r = sl_residency_add_unit(residency, &spec, &unit, err);
    }
    for (int i = 0; i < N; i++) {
        x[i] = 1.0F;
    }
    for (int i = 0; i < 2 * N_ROUNDS && r >= 0; i++) {
        size_t unit = (size_t)i % 2;
        r = run_stage(residency, unit, weights[unit], x, err);
    }
    for (size_t unit = 0; unit < 2 && r >= 0; unit++) {
        sl_unit_status status;
        sl_residency_unit_status(residency, unit, &status);
        printf("%s: %llu bytes on the device, loaded %llu times\n", status.name,
                (unsigned long long)status.n_bytes, (unsigned long long)status.n_loads);
    }
    if (r >= 0) {
        printf("y[0] = %.6f, y[%d] = %.6f\n", (double)x[0], N - 1, (double)x[N - 1]);
    }
    sl_residency_close(&residency);
    return r;
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "sim:6M,link=1G";
    sl_device *device = NULL;
    sl_model *model = NULL;
    sl_error err = {0};
    int r = write_model();
    if (r == 0) {
        r = strncmp(name, "sim:", 4) == 0 ? sl_device_create_sim(name, &device, &err)
                                          : sl_ggml_open(name, &device, &err);
    }
    r = r == 0 ? sl_model_open(file_name, &model, &err) : r;
    r = r == 0 ? run(device, model, &err) : r;
    sl_model_close(&model);
    sl_device_free(&device);
    remove(file_name);
    if (r < 0) {
        fprintf(stderr, "two_stage: %s\n", err.msg);
    }
    return r < 0;
}
