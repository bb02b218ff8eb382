/*
 * ggml's back ends as devices. The CPU's is always there; every other device that this ggml has passes through the
 * same checks, and a test says so if there is none.
 */
#include "test_support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ggml-backend.h"

#include "base/mem.h"
#include "device/transfer.h"
#include "sluice/ggml_device.h"

static sl_device *open_cpu(void)
{
    sl_device *device = NULL;
    sl_error err = {0};
    assert_ok(sl_ggml_open("cpu", &device, &err), &err);
    return device;
}

static sl_device_info info_of(sl_device *device)
{
    sl_device_info info;
    sl_error err = {0};
    assert_ok(sl_device_describe(device, &info, &err), &err);
    return info;
}

static void fill(unsigned char *bytes, size_t n_bytes, unsigned seed)
{
    for (size_t i = 0; i < n_bytes; i++) {
        bytes[i] = (unsigned char)(i * 31 + i / 251 + seed);
    }
}

static void check_copies(sl_device *device)
{
    enum {
        N = 100000
    };
    sl_buffer *buffer = NULL;
    sl_event *event = NULL;
    sl_pinned pinned = {0};
    sl_error err = {0};
    unsigned char *back = malloc(N);
    unsigned char *plain = malloc(N);
    assert_ok(sl_buffer_alloc(device, 2 * N, &buffer, &err), &err);
    assert_ok(sl_event_create(device, &event, &err), &err);
    assert_ok(sl_pinned_alloc(device, N, &pinned, &err), &err);
    assert_int_equal(pinned.is_pinned, info_of(device).has_pinned);
    assert_int_equal((uintptr_t)pinned.data % 32, 0);
    assert_int_equal(sl_event_wait(event, &err), 0);
    fill(pinned.data, N, 1);
    fill(plain, N, 2);
    assert_int_equal(sl_buffer_upload(buffer, 3, pinned.data, N, &err), 0);
    assert_int_equal(sl_buffer_upload(buffer, N, plain, N, &err), 0);
    assert_int_equal(sl_event_record(event, &err), 0);
    assert_int_equal(sl_event_query(event, &err), 1);
    assert_int_equal(sl_event_wait(event, &err), 0);
    assert_int_equal(sl_buffer_download(buffer, N, back, N, &err), 0);
    assert_memory_equal(back, plain, N);
    assert_int_equal(sl_buffer_download(buffer, 3, back, N - 3, &err), 0);
    assert_memory_equal(back, pinned.data, N - 3);
    assert_int_equal(sl_device_synchronize(device, &err), 0);
    sl_event_free(&event);
    sl_pinned_free(&pinned);
    assert_int_equal(sl_buffer_free(&buffer, &err), 0);
    free(back);
    free(plain);
}

/* Tensors of the engine's own in a buffer that was uploaded to: 3 * x, computed by `dev`. */
static void check_compute(sl_device *device, ggml_backend_dev_t dev)
{
    enum {
        N = 64
    };
    float values[N];
    float back[N];
    sl_buffer *buffer = NULL;
    sl_event *event = NULL;
    sl_error err = {0};
    for (int i = 0; i < N; i++) {
        values[i] = (float)i;
    }
    assert_ok(sl_buffer_alloc(device, 4096, &buffer, &err), &err);
    assert_ok(sl_event_create(device, &event, &err), &err);
    const struct ggml_init_params params = {
            .mem_size = 16 * ggml_tensor_overhead() + ggml_graph_overhead(), .no_alloc = true};
    struct ggml_context *ctx = ggml_init(params);
    struct ggml_tensor *x = ggml_new_tensor_1d(ctx, GGML_TYPE_F32, N);
    struct ggml_tensor *y = ggml_scale(ctx, x, 3.0F);
    struct ggml_cgraph *graph = ggml_new_graph(ctx);
    sl_ggml_view view = {0};
    assert_ok(sl_ggml_view_init(buffer, &view, &err), &err);
    char *base = view.base;
    assert_int_equal(ggml_backend_tensor_alloc(view.buffer, x, base + 1024), GGML_STATUS_SUCCESS);
    assert_int_equal(ggml_backend_tensor_alloc(view.buffer, y, base + 2048), GGML_STATUS_SUCCESS);
    ggml_build_forward_expand(graph, y);
    ggml_backend_t compute = ggml_backend_dev_init(dev, NULL);
    assert_int_equal(sl_buffer_upload(buffer, 1024, values, sizeof values, &err), 0);
    assert_int_equal(sl_event_record(event, &err), 0);
    if (sl_ggml_is(device)) {
        sl_ggml_queue_wait(compute, event);
    } else {
        assert_int_equal(sl_event_wait(event, &err), 0);
    }
    assert_int_equal(ggml_backend_graph_compute(compute, graph), GGML_STATUS_SUCCESS);
    ggml_backend_synchronize(compute);
    assert_int_equal(sl_buffer_download(buffer, 2048, back, sizeof back, &err), 0);
    for (int i = 0; i < N; i++) {
        assert_true(back[i] == 3 * values[i]);
    }
    ggml_backend_free(compute);
    ggml_free(ctx);
    sl_ggml_view_done(&view);
    sl_ggml_view_done(&view);
    sl_event_free(&event);
    assert_int_equal(sl_buffer_free(&buffer, &err), 0);
}

static void check_transfer(sl_device *device)
{
    enum {
        N = 3000000
    };
    char *dir = test_dir_create();
    char path[4200];
    unsigned char *bytes = malloc(N);
    unsigned char *back = malloc(N);
    sl_map *map = NULL;
    sl_buffer *buffer = NULL;
    sl_error err = {0};
    fill(bytes, N, 3);
    test_write_file(test_path(path, sizeof path, dir, "file"), bytes, N);
    assert_ok(sl_map_open(path, &map, &err), &err);
    assert_ok(sl_buffer_alloc(device, N, &buffer, &err), &err);
    static const sl__route routes[] = {
            SL__ROUTE_PLAIN, SL__ROUTE_PREAD, SL__ROUTE_MEMCPY, SL__ROUTE_AUTO};
    for (size_t i = 0; i < 4; i++) {
        const sl__transfer_opts opts = {
                .route = routes[i], .n_slots = 4, .slot_bytes = 1 << 17, .n_threads = 2};
        const sl__piece pieces[] = {{.map = map, .offset = 0, .n_bytes = 1000, .buffer = buffer},
                {.map = map,
                        .offset = 1000,
                        .n_bytes = N - 1000,
                        .buffer = buffer,
                        .buffer_offset = 1000}};
        const sl__slice slices[] = {
                {.pieces = &pieces[0], .n_pieces = 1}, {.pieces = &pieces[1], .n_pieces = 1}};
        sl__transfer *transfer = NULL;
        memset(back, 0, N);
        assert_int_equal(sl_buffer_upload(buffer, 0, back, N, &err), 0);
        assert_int_equal(sl_device_synchronize(device, &err), 0);
        assert_ok(sl__transfer_create(device, &opts, &transfer, &err), &err);
        assert_ok(sl__transfer_run(transfer, slices, 2, NULL, &err), &err);
        assert_int_equal(sl_buffer_download(buffer, 0, back, N, &err), 0);
        assert_memory_equal(back, bytes, N);
        sl__transfer_free(&transfer);
    }
    assert_int_equal(sl_buffer_free(&buffer, &err), 0);
    sl_map_close(&map);
    test_dir_remove(dir);
    free(bytes);
    free(back);
}

static void test_the_cpu_describes_itself(void **state)
{
    (void)state;
    sl_device *device = open_cpu();
    sl_device_info info = info_of(device);
    assert_true(sl_ggml_is(device));
    assert_string_equal(info.name, "cpu");
    assert_true(info.description[0] != '\0');
    assert_int_equal(info.kind, SL_DEVICE_HOST);
    assert_true(info.is_unified && info.can_wrap);
    assert_int_equal(info.max_alloc_bytes, 0);
    assert_int_equal(info.total_bytes, 0);
    assert_int_equal(info.alignment % 16, 0);
    assert_ptr_equal(ggml_backend_get_device(sl_ggml_queue(device)), sl_ggml_dev(device));
    sl_device_free(&device);
}

static void test_the_cpu_copies_computes_and_takes_transfers(void **state)
{
    (void)state;
    sl_device *device = open_cpu();
    check_copies(device);
    check_compute(device, sl_ggml_dev(device));
    check_transfer(device);
    sl_device_free(&device);
}

/* The CPU computes on memory of the host and of the simulated device. */
static void test_ggml_computes_on_other_devices_in_host_memory(void **state)
{
    (void)state;
    sl_device *cpu = open_cpu();
    sl_device *device = NULL;
    sl_buffer *buffer = NULL;
    sl_ggml_view view = {0};
    sl_error err = {0};
    assert_ok(sl_device_create_sim("sim:1M,link=1G", &device, &err), &err);
    check_compute(device, sl_ggml_dev(cpu));
    sl_device_free(&device);
    assert_ok(sl_device_create_host(&device, &err), &err);
    check_compute(device, sl_ggml_dev(cpu));
    check_transfer(device);
    char *memory = aligned_alloc(64, 64);
    assert_ok(sl_buffer_wrap(device, memory + 4, 60, &buffer, &err), &err);
    assert_int_equal(sl_ggml_view_init(buffer, &view, &err), SL_EINVAL);
    assert_null(view.buffer);
    assert_int_equal(sl_buffer_free(&buffer, &err), 0);
    free(memory);
    sl_device_free(&device);
    sl_device_free(&cpu);
}

static void test_the_cpu_uses_a_mapping_in_place(void **state)
{
    (void)state;
    sl_device *device = open_cpu();
    sl_buffer *buffer = NULL;
    sl_error err = {0};
    char *memory = aligned_alloc(64, 4096);
    fill((unsigned char *)memory, 4096, 0);
    assert_int_equal(sl_buffer_wrap(device, memory + 1, 64, &buffer, &err), SL_EINVAL);
    assert_non_null(strstr(err.msg, "aligned to"));
    assert_null(buffer);
    assert_ok(sl_buffer_wrap(device, memory + 64, 4000, &buffer, &err), &err);
    assert_ptr_equal(sl_buffer_host_data(buffer), memory + 64);
    assert_ptr_equal(sl_ggml_base(buffer), memory + 64);
    assert_int_equal(sl_buffer_upload(buffer, 0, "x", 1, &err), SL_EINVAL);
    char back[100];
    assert_int_equal(sl_buffer_download(buffer, 36, back, 100, &err), 0);
    assert_memory_equal(back, memory + 100, 100);
    assert_int_equal(sl_buffer_free(&buffer, &err), 0);
    free(memory);
    sl_device_free(&device);
}

static void test_G3_05_what_cannot_be_had_is_an_error_and_no_abort(void **state)
{
    (void)state;
    sl_device *device = open_cpu();
    sl_buffer *buffer = NULL;
    sl_event *event = NULL;
    sl_error err = {0};
    assert_int_equal(sl_buffer_alloc(device, UINT64_MAX, &buffer, &err), SL_ENOMEM);
    assert_int_equal(sl_buffer_alloc(device, UINT64_C(1) << 60, &buffer, &err), SL_ENOMEM);
    assert_non_null(strstr(err.msg, "cpu: out of memory: needed 1152921504606846976 bytes"));
    for (long n = 0; n < 2; n++) {
        sl__mem_fail_after(n);
        assert_int_equal(sl_buffer_alloc(device, 64, &buffer, &err), SL_ENOMEM);
        sl__mem_fail_after(n);
        assert_int_equal(sl_event_create(device, &event, &err), SL_ENOMEM);
    }
    sl__mem_fail_after(-1);
    assert_null(buffer);
    assert_null(event);
    sl_device *other = NULL;
    for (long n = 0; n < 2; n++) {
        sl__mem_fail_after(n);
        assert_int_equal(sl_ggml_open("cpu", &other, &err), SL_ENOMEM);
        sl__mem_fail_after(-1);
        assert_null(other);
    }
    check_copies(device);
    sl_device_free(&device);
}

static void test_names_are_found_in_any_case_and_others_are_refused(void **state)
{
    (void)state;
    sl_device *device = NULL;
    sl_error err = {0};
    assert_ok(sl_ggml_open("CPU", &device, &err), &err);
    assert_string_equal(sl_device_name(device), "cpu");
    sl_device_free(&device);
    assert_int_equal(sl_ggml_open("cuda7\033", &device, &err), SL_ENOENT);
    assert_non_null(strstr(err.msg, "cuda7\\x1b"));
    assert_non_null(strstr(err.msg, "cpu"));
    assert_int_equal(sl_ggml_open("", &device, &err), SL_ENOENT);
    assert_null(device);
    assert_ok(sl_device_create_host(&device, &err), &err);
    assert_false(sl_ggml_is(device));
    sl_device_free(&device);
}

/* Free memory after each cycle is that after the first: nothing is kept behind. */
static void check_cycles(sl_device *device)
{
    uint64_t first = 0;
    for (int i = 0; i < 10; i++) {
        sl_buffer *buffer = NULL;
        sl_error err = {0};
        assert_ok(sl_buffer_alloc(device, 64 << 20, &buffer, &err), &err);
        assert_int_equal(sl_buffer_upload(buffer, 0, &err, sizeof err, &err), 0);
        assert_int_equal(sl_device_synchronize(device, &err), 0);
        assert_int_equal(sl_buffer_free(&buffer, &err), 0);
        uint64_t n_free = info_of(device).free_bytes;
        first = i == 0 ? n_free : first;
        uint64_t apart = n_free > first ? n_free - first : first - n_free;
        assert_true(apart <= 32 << 20);
    }
}

static void test_G3_10_every_other_device_of_this_ggml(void **state)
{
    (void)state;
    size_t n_checked = 0;
    for (size_t i = 0; i < ggml_backend_dev_count(); i++) {
        ggml_backend_dev_t dev = ggml_backend_dev_get(i);
        enum ggml_backend_dev_type type = ggml_backend_dev_type(dev);
        if (type != GGML_BACKEND_DEVICE_TYPE_GPU && type != GGML_BACKEND_DEVICE_TYPE_IGPU) {
            continue;
        }
        sl_device *device = NULL;
        sl_buffer *buffer = NULL;
        sl_error err = {0};
        assert_ok(sl_ggml_create(dev, &device, &err), &err);
        sl_device_info info = info_of(device);
        printf("%s: %s, %llu of %llu bytes free, largest allocation %llu\n", info.name,
                info.description, (unsigned long long)info.free_bytes,
                (unsigned long long)info.total_bytes, (unsigned long long)info.max_alloc_bytes);
        assert_true(info.total_bytes > 0 && info.free_bytes <= info.total_bytes);
        if (info.max_alloc_bytes > 0) {
            assert_int_equal(
                    sl_buffer_alloc(device, info.max_alloc_bytes + 1, &buffer, &err), SL_ELIMIT);
        }
        assert_true(sl_buffer_alloc(device, info.total_bytes * 2, &buffer, &err) < 0);
        check_copies(device);
        check_compute(device, sl_ggml_dev(device));
        check_transfer(device);
        check_cycles(device);
        sl_device_free(&device);
        n_checked++;
    }
    if (n_checked == 0) {
        print_message("skipped: this ggml has no GPU back end\n");
        skip();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_the_cpu_describes_itself),
            cmocka_unit_test(test_the_cpu_copies_computes_and_takes_transfers),
            cmocka_unit_test(test_ggml_computes_on_other_devices_in_host_memory),
            cmocka_unit_test(test_the_cpu_uses_a_mapping_in_place),
            cmocka_unit_test(test_G3_05_what_cannot_be_had_is_an_error_and_no_abort),
            cmocka_unit_test(test_names_are_found_in_any_case_and_others_are_refused),
            cmocka_unit_test(test_G3_10_every_other_device_of_this_ggml),
    };
    /* A ggml whose back ends are loaded at run time has none yet. */
    const char *dir = getenv("SLUICE_GGML_BACKENDS");
    if (ggml_backend_dev_count() == 0 && dir) {
        ggml_backend_load_all_from_path(dir);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
