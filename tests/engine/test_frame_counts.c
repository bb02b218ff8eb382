/*
 * What a frame costs in calls: graphs that are computed, copies to and from the device, waits, and nothing that is allocated
 * or built. The calls are counted by wrapping ggml's functions and ours when this program is linked. Two requests that differ
 * in their number of frames alone are compared, so that what a request costs once drops out.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "ggml-alloc.h"
#include "ggml-backend.h"
#include "ggml.h"

#include "base/mem.h"
#include "engine/engine_impl.h"
#include "engine/stage.h"
#include "speak_rig.h"
#include "test_support.h"

/* Both within one step of the cache: beyond it a graph is built, once for 64 positions. */
#define N_FEW  4
#define N_MANY 12

typedef struct counts {
    long n_computes; /* queued */
    long n_sets;     /* queued */
    long n_gets;     /* queued */
    long n_waits;    /* for all that is queued; and whatever waits for itself */
    long n_graphs;   /* that are built */
    long n_plans;    /* of a graph's memory */
    long n_buffers;  /* of tensors that outlive graphs */
    long n_allocs;   /* of ours */
} counts;

static counts now;
static pthread_t
        counted; /* the thread that asks for speech: what moves weights has its own rhythm */

static void add(long *count)
{
    if (pthread_equal(pthread_self(), counted)) {
        (*count)++;
    }
}

/* The linker sends each call of NAME to __wrap_NAME; __real_NAME is the function itself. Its names are not ours to choose. */
/* NOLINTBEGIN(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp,readability-identifier-naming) */
enum ggml_status __real_ggml_backend_graph_compute(
        ggml_backend_t backend, struct ggml_cgraph *cgraph);
enum ggml_status __wrap_ggml_backend_graph_compute(
        ggml_backend_t backend, struct ggml_cgraph *cgraph);
enum ggml_status __wrap_ggml_backend_graph_compute(
        ggml_backend_t backend, struct ggml_cgraph *cgraph)
{
    add(&now.n_waits);
    return __real_ggml_backend_graph_compute(backend, cgraph);
}

enum ggml_status __real_ggml_backend_graph_compute_async(
        ggml_backend_t backend, struct ggml_cgraph *cgraph);
enum ggml_status __wrap_ggml_backend_graph_compute_async(
        ggml_backend_t backend, struct ggml_cgraph *cgraph);
enum ggml_status __wrap_ggml_backend_graph_compute_async(
        ggml_backend_t backend, struct ggml_cgraph *cgraph)
{
    add(&now.n_computes);
    return __real_ggml_backend_graph_compute_async(backend, cgraph);
}

void __real_ggml_backend_synchronize(ggml_backend_t backend);
void __wrap_ggml_backend_synchronize(ggml_backend_t backend);
void __wrap_ggml_backend_synchronize(ggml_backend_t backend)
{
    add(&now.n_waits);
    __real_ggml_backend_synchronize(backend);
}

void __real_ggml_backend_tensor_set(
        struct ggml_tensor *tensor, const void *data, size_t offset, size_t size);
void __wrap_ggml_backend_tensor_set(
        struct ggml_tensor *tensor, const void *data, size_t offset, size_t size);
void __wrap_ggml_backend_tensor_set(
        struct ggml_tensor *tensor, const void *data, size_t offset, size_t size)
{
    add(&now.n_waits);
    __real_ggml_backend_tensor_set(tensor, data, offset, size);
}

void __real_ggml_backend_tensor_set_async(ggml_backend_t backend, struct ggml_tensor *tensor,
        const void *data, size_t offset, size_t size);
void __wrap_ggml_backend_tensor_set_async(ggml_backend_t backend, struct ggml_tensor *tensor,
        const void *data, size_t offset, size_t size);
void __wrap_ggml_backend_tensor_set_async(ggml_backend_t backend, struct ggml_tensor *tensor,
        const void *data, size_t offset, size_t size)
{
    add(&now.n_sets);
    __real_ggml_backend_tensor_set_async(backend, tensor, data, offset, size);
}

void __real_ggml_backend_tensor_get(
        const struct ggml_tensor *tensor, void *data, size_t offset, size_t size);
void __wrap_ggml_backend_tensor_get(
        const struct ggml_tensor *tensor, void *data, size_t offset, size_t size);
void __wrap_ggml_backend_tensor_get(
        const struct ggml_tensor *tensor, void *data, size_t offset, size_t size)
{
    add(&now.n_waits);
    __real_ggml_backend_tensor_get(tensor, data, offset, size);
}

void __real_ggml_backend_tensor_get_async(ggml_backend_t backend, const struct ggml_tensor *tensor,
        void *data, size_t offset, size_t size);
void __wrap_ggml_backend_tensor_get_async(ggml_backend_t backend, const struct ggml_tensor *tensor,
        void *data, size_t offset, size_t size);
void __wrap_ggml_backend_tensor_get_async(ggml_backend_t backend, const struct ggml_tensor *tensor,
        void *data, size_t offset, size_t size)
{
    add(&now.n_gets);
    __real_ggml_backend_tensor_get_async(backend, tensor, data, offset, size);
}

int __real_s2_graph_init(s2_graph *g, s2_compute *compute, size_t max_nodes, sl_error *reterr);
int __wrap_s2_graph_init(s2_graph *g, s2_compute *compute, size_t max_nodes, sl_error *reterr);
int __wrap_s2_graph_init(s2_graph *g, s2_compute *compute, size_t max_nodes, sl_error *reterr)
{
    add(&now.n_graphs);
    return __real_s2_graph_init(g, compute, max_nodes, reterr);
}

ggml_gallocr_t __real_ggml_gallocr_new(ggml_backend_buffer_type_t buft);
ggml_gallocr_t __wrap_ggml_gallocr_new(ggml_backend_buffer_type_t buft);
ggml_gallocr_t __wrap_ggml_gallocr_new(ggml_backend_buffer_type_t buft)
{
    add(&now.n_plans);
    return __real_ggml_gallocr_new(buft);
}

ggml_backend_buffer_t __real_ggml_backend_alloc_ctx_tensors_from_buft(
        struct ggml_context *ctx, ggml_backend_buffer_type_t buft);
ggml_backend_buffer_t __wrap_ggml_backend_alloc_ctx_tensors_from_buft(
        struct ggml_context *ctx, ggml_backend_buffer_type_t buft);
ggml_backend_buffer_t __wrap_ggml_backend_alloc_ctx_tensors_from_buft(
        struct ggml_context *ctx, ggml_backend_buffer_type_t buft)
{
    add(&now.n_buffers);
    return __real_ggml_backend_alloc_ctx_tensors_from_buft(ctx, buft);
}

void *__real_sl__alloc(size_t n, size_t size);
void *__wrap_sl__alloc(size_t n, size_t size);
void *__wrap_sl__alloc(size_t n, size_t size)
{
    add(&now.n_allocs);
    return __real_sl__alloc(n, size);
}

/* NOLINTEND(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp,readability-identifier-naming) */

static counts count(s2_engine *e, uint32_t n_frames)
{
    now = (counts){0};
    counted = pthread_self();
    rig_speak(e, RIG_TEXT, n_frames);
    return now;
}

/* Of one frame, beyond what a request costs; fails if it does not divide. */
static counts of_a_frame(s2_engine *e)
{
    const long n = N_MANY - N_FEW;
    long more[sizeof(counts) / sizeof(long)];
    counts result;
    rig_speak(e, RIG_TEXT, N_MANY); /* what is made once is there then */
    counts few = count(e, N_FEW);
    counts many = count(e, N_MANY);
    const long *a = (const long *)&few;
    const long *b = (const long *)&many;
    for (size_t i = 0; i < sizeof more / sizeof more[0]; i++) {
        if ((b[i] - a[i]) % n != 0) {
            fail_msg("count %zu: %ld for %d frames, %ld for %d", i, a[i], N_FEW, b[i], N_MANY);
        }
        more[i] = (b[i] - a[i]) / n;
    }
    memcpy(&result, more, sizeof result);
    print_message("a frame: %ld graphs computed, %ld copies there, %ld back, %ld waits; %ld graphs "
                  "built, %ld plans, %ld buffers, %ld allocations\n",
            result.n_computes, result.n_sets, result.n_gets, result.n_waits, result.n_graphs,
            result.n_plans, result.n_buffers, result.n_allocs);
    return result;
}

static void check_counts(const s2_place_opts *place)
{
    s2_engine *e = rig_open(rig_model, place, N_MANY);
    long n_books = e->hp.n_codebooks;
    counts frame = of_a_frame(e);
    long n_passes = n_books - 1;
    /* The slow AR, a pass of the fast AR for each code behind the first, the decoder: each is sent its inputs and waited
     * for once. */
    long n_runs = 1 + n_passes + 1;
    assert_int_equal(frame.n_computes, n_runs);
    assert_int_equal(frame.n_sets, n_runs);
    assert_int_equal(frame.n_waits, n_runs);
    /* Hidden state and logits; logits of each pass; samples. */
    assert_int_equal(frame.n_gets, 2 + n_passes + 1);
    assert_int_equal(frame.n_graphs, 0);
    assert_int_equal(frame.n_plans, 0);
    assert_int_equal(frame.n_buffers, 0);
    assert_int_equal(frame.n_allocs, 0);
    s2_engine_close(&e);
}

static void test_on_the_host(void **state)
{
    (void)state;
    const s2_place_opts place = {.device = "cpu"};
    check_counts(&place);
}

static void test_on_a_device_under_every_policy(void **state)
{
    (void)state;
    for (int policy = 0; policy < SL_POLICY_COUNT; policy++) {
        s2_place_opts place = rig_place(RIG_DEVICE, (sl_policy)policy, S2_DECODE_TOGETHER, 0);
        check_counts(&place);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_on_the_host),
            cmocka_unit_test(test_on_a_device_under_every_policy),
    };
    return cmocka_run_group_tests(tests, rig_set_up, rig_tear_down);
}
