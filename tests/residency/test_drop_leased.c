/* Pages of one unit are dropped while another one of the same file is leased and used where it lies. */
#include <stdlib.h>
#include <string.h>

#include "os/os_out_file.h"
#include "page_fixture.h"
#include "sluice/page_cache.h"
#include "sluice/residency.h"
#include "source/gguf_write.h"
#include "test_support.h"

#define KEPT_BYTES    ((size_t)8 << 20)
#define DROPPED_BYTES ((size_t)24 << 20)

typedef struct fixture {
    char *dir;
    sl_model *model;
    const sl_tensor *tensors[2];
    sl_device *host;
    sl_residency *residency;
    sl_lease *leases[2];
} fixture;

static unsigned char byte_of(size_t i_tensor, size_t k)
{
    return (unsigned char)(k * 5 + (k >> 12) + 17 * i_tensor + 1);
}

static void write_model(const char *path)
{
    static const char *const names[] = {"kept", "dropped"};
    const uint64_t sizes[] = {KEPT_BYTES, DROPPED_BYTES};
    sl__gguf_writer *w = NULL;
    sl__out_file *file = NULL;
    sl_error err;
    unsigned char *bytes = malloc(DROPPED_BYTES);
    assert_non_null(bytes);
    assert_ok(sl__gguf_writer_create(32, &w, &err), &err);
    for (size_t i = 0; i < 2; i++) {
        const uint64_t n_floats = sizes[i] / 4;
        sl__gguf_put_tensor(w, names[i], 0, 1, &n_floats);
    }
    assert_ok(sl__out_file_open(path, 0600, &file, &err), &err);
    assert_ok(sl__gguf_writer_begin(w, file, &err), &err);
    for (size_t i = 0; i < 2; i++) {
        for (size_t k = 0; k < sizes[i]; k++) {
            bytes[k] = byte_of(i, k);
        }
        assert_ok(sl__gguf_writer_data(w, bytes, (size_t)sizes[i], &err), &err);
    }
    assert_ok(sl__gguf_writer_finish(w, &err), &err);
    assert_ok(sl__out_file_commit(&file, &err), &err);
    sl__gguf_writer_free(&w);
    free(bytes);
}

static int set_up(void **state)
{
    static const char *const names[] = {"kept", "dropped"};
    static fixture f;
    char path[512];
    sl_error err = {0};
    f = (fixture){.dir = test_dir_create()};
    write_model(test_path(path, sizeof path, f.dir, "model.gguf"));
    assert_ok(sl_model_open(path, &f.model, &err), &err);
    assert_ok(sl_device_create_host(&f.host, &err), &err);
    const sl_residency_place place = {f.host, UINT64_MAX};
    const sl_residency_opts opts = {.places = &place, .n_places = 1, .is_stepped = true};
    assert_ok(sl_residency_open(&opts, &f.residency, &err), &err);
    for (size_t i = 0; i < 2; i++) {
        f.tensors[i] = sl_model_find(f.model, names[i]);
        const sl_unit_spec unit = {.name = names[i],
                .model = f.model,
                .tensors = &f.tensors[i],
                .n_tensors = 1,
                .i_second = SL_PLAN_NONE};
        size_t index = 9;
        assert_ok(sl_residency_add_unit(f.residency, &unit, &index, &err), &err);
        assert_int_equal(index, i);
        assert_ok(sl_lease_acquire(f.residency, &i, 1, false, NULL, &f.leases[i], &err), &err);
    }
    *state = &f;
    return 0;
}

static int tear_down(void **state)
{
    fixture *f = *state;
    for (size_t i = 0; i < 2; i++) {
        sl_lease_release(&f->leases[i]);
    }
    sl_residency_close(&f->residency);
    sl_device_free(&f->host);
    sl_model_close(&f->model);
    test_dir_remove(f->dir);
    return 0;
}

/* Reads every byte of a leased unit through the pointer of the lease. */
static void expect_bytes(const fixture *f, size_t i_unit)
{
    sl_tensor_at at;
    sl_error err = {0};
    assert_ok(sl_lease_tensor(f->leases[i_unit], i_unit, f->tensors[i_unit], &at, &err), &err);
    const unsigned char *there = sl_buffer_host_data(at.buffer);
    size_t n = (size_t)f->tensors[i_unit]->info->n_bytes;
    for (size_t k = 0; k < n; k++) {
        if (there[at.offset + k] != byte_of(i_unit, k)) {
            fail_msg("byte %zu of unit %zu is another one", k, i_unit);
        }
    }
}

static uint64_t cached(const fixture *f, size_t i_unit)
{
    uint64_t n = 0;
    sl_error err = {0};
    const sl_gguf_tensor *t = f->tensors[i_unit]->info;
    assert_ok(sl_page_cache_cached(
                      sl_model_map(f->model, 0), t->offset, t->offset + t->n_bytes, &n, &err),
            &err);
    return n;
}

static uint64_t drop(const fixture *f, uint64_t begin, uint64_t end)
{
    sl_ranges ranges = {0};
    sl_error err = {0};
    uint64_t left = UINT64_MAX;
    assert_int_equal(sl_ranges_add(&ranges, begin, end), 0);
    assert_ok(sl_page_cache_drop(sl_model_map(f->model, 0), &ranges, &left, &err), &err);
    sl_ranges_done(&ranges);
    return left;
}

static void test_other_ranges_than_the_leased_ones(void **state)
{
    const fixture *f = *state;
    const sl_gguf_tensor *t = f->tensors[1]->info;
    expect_bytes(f, 0);
    expect_bytes(f, 1);
    sl_lease_release(&((fixture *)*state)->leases[1]);
    assert_true(drop(f, t->offset, t->offset + t->n_bytes) <= DROPPED_BYTES / 100);
    assert_true(cached(f, 1) <= DROPPED_BYTES / 100);
    /* What is leased was left alone; the kernel may take some of it at any time. */
    assert_true(cached(f, 0) >= KEPT_BYTES / 2);
    expect_bytes(f, 0);
}

/* Leased or not, the pages of a file go; the pointer stays good, since the file is behind it. */
static void test_leased_ranges_too(void **state)
{
    const fixture *f = *state;
    expect_bytes(f, 0);
    expect_bytes(f, 1);
    assert_true(drop(f, 0, sl_map_size(sl_model_map(f->model, 0))) <=
                (KEPT_BYTES + DROPPED_BYTES) / 100);
    assert_true(cached(f, 0) + cached(f, 1) <= (KEPT_BYTES + DROPPED_BYTES) / 100);
    expect_bytes(f, 0);
    expect_bytes(f, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test_setup_teardown(
                    test_other_ranges_than_the_leased_ones, set_up, tear_down),
            cmocka_unit_test_setup_teardown(test_leased_ranges_too, set_up, tear_down),
    };
    if (!page_files_can_be_dropped()) {
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
