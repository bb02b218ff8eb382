/*
 * Which pages of a model with the names of S2 are made present when it is opened, and what the log says. The
 * pages are counted, so nothing here depends on how fast they came.
 */
#define _DEFAULT_SOURCE /* setenv */

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gguf_bytes.h"
#include "page_fixture.h"
#include "test_support.h"

#include "base/mem.h"
#include "engine/host_pages.h"
#include "os/os_process.h"

#define MIB       (UINT64_C(1) << 20)
#define N_TENSORS 9
#define ALL_UNITS (S2_HOST_UNITS_OPEN | S2_HOST_UNITS_VOICE)

/* 1 MiB each, but for the one that is large. */
typedef struct part {
    const char *name;
    unsigned i_shard;
    unsigned mib;
} part;
static const part parts[N_TENSORS] = {
        {"embeddings.weight", 0, 1}, /* gathered */
        {"layers.0.a", 0, 1},
        {"stranger", 0, 1}, /* of no unit */
        {"layers.1.a", 0, 3},
        {"norm.weight", 0, 1},
        {"fast_layers.0.a", 1, 1},
        {"c.encoder.a", 1, 1},
        {"c.quantizer.a", 1, 1},
        {"c.decoder.a", 1, 1},
};

typedef struct fixture {
    char *dir;
    char path[4200];
    unsigned n_shards;
    sl_model *model;
    s2_host_pages pages;
    s2_memory_opts opts;
    char log[1024]; /* "level: line" of the last one */
    size_t n_lines;
    unsigned on_gpu;  /* mask */
    uint64_t stop_at; /* bytes; 0 = never */
    sl_error err;
} fixture;

static void log_line(void *ud, sl_log_level level, const char *msg)
{
    fixture *x = ud;
    x->n_lines++;
    snprintf(x->log, sizeof x->log, "%s: %s", sl_log_level_name(level), msg);
}

static void write_shard(fixture *x, unsigned i_shard)
{
    char name[64];
    uint64_t offset = 0;
    unsigned n_tensors = 0;
    for (size_t i = 0; i < N_TENSORS; i++) {
        n_tensors += x->n_shards == 1 || parts[i].i_shard == i_shard;
    }
    gguf_bytes g = gb_start(3, n_tensors, x->n_shards > 1 ? 4 : 1);
    gb_key_str(&g, "general.architecture", "fish-speech");
    if (x->n_shards > 1) {
        gb_key(&g, "split.no", SL_GGUF_U16);
        gb_u16(&g, i_shard);
        gb_key(&g, "split.count", SL_GGUF_U16);
        gb_u16(&g, x->n_shards);
        gb_key(&g, "split.tensors.count", SL_GGUF_I32);
        gb_u32(&g, N_TENSORS);
    }
    for (size_t i = 0; i < N_TENSORS; i++) {
        uint64_t ne[1] = {parts[i].mib * MIB / 4};
        if (x->n_shards == 1 || parts[i].i_shard == i_shard) {
            gb_tensor(&g, parts[i].name, 1, ne, 0, offset);
            offset += ne[0] * 4;
        }
    }
    gb_pad(&g, 32);
    gb_fill(&g, 1, (size_t)offset);
    snprintf(name, sizeof name, x->n_shards > 1 ? "m-%05u-of-%05u.gguf" : "m.gguf", i_shard + 1,
            x->n_shards);
    test_path(x->path, sizeof x->path, x->dir, name);
    test_write_file(x->path, g.p, g.n);
    gb_done(&g);
    int fd = open(x->path, O_RDONLY);
    assert_true(fd >= 0);
    assert_int_equal(fsync(fd), 0);
    close(fd);
}

/*
 * Drops everything, then reads the first page of each file, by itself: whoever reads names there through the
 * mapping would bring its neighbours in too.
 */
static void drop_all(const sl_model *model)
{
    for (uint32_t i = 0; i < sl_model_n_files(model); i++) {
        page_drop(sl_model_map(model, i));
        char byte;
        int fd = open(sl_map_path(sl_model_map(model, i)), O_RDONLY);
        assert_true(fd >= 0);
        assert_int_equal(posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM), 0);
        assert_int_equal(read(fd, &byte, 1), 1);
        close(fd);
    }
}

static void open_model(fixture *x, unsigned n_shards)
{
    x->n_shards = n_shards;
    x->dir = test_dir_create();
    for (unsigned i = 0; i < n_shards; i++) {
        write_shard(x, i);
    }
    assert_ok(sl_model_open(x->path, &x->model, &x->err), &x->err);
    drop_all(x->model);
    x->opts = (s2_memory_opts){.has_ram = true, .ram_bytes = 64 * MIB, .lazy_over_bytes = 2 * MIB};
}

static int set_up(void **state)
{
    fixture *x = calloc(1, sizeof *x);
    assert_non_null(x);
    unsetenv("SLUICE_POPULATE");
    unsetenv("LLAMA_MMAP_POPULATE");
    *state = x;
    return 0;
}

static int tear_down(void **state)
{
    fixture *x = *state;
    s2_host_pages_done(&x->pages);
    sl_model_close(&x->model);
    if (x->dir) {
        test_dir_remove(x->dir);
    }
    unsetenv("SLUICE_POPULATE");
    free(x);
    return 0;
}

static bool is_on_host(void *ud, s2_unit_id unit)
{
    return (((const fixture *)ud)->on_gpu & (1u << unit)) == 0;
}

static bool stop_now(void *ud)
{
    (void)ud;
    return true;
}

static int init(fixture *x)
{
    sl_logger log = {log_line, x};
    return s2_host_pages_init(&x->opts, &log, &x->pages, &x->err);
}

static int populate(fixture *x, unsigned mask)
{
    s2_host_units units = {.mask = mask, .is_on_host = is_on_host, .ud = x};
    return s2_host_pages_populate(&x->pages, x->model, &units, &x->err);
}

/* Fails unless exactly the pages of the named tensors (separated by blanks) are cached. */
static void expect_pages(const fixture *x, const char *names)
{
    for (uint32_t k = 0; k < sl_model_n_files(x->model); k++) {
        page_file view = {.page = sl__page_bytes()};
        sl_ranges want = {0};
        size_t n = 0;
        view.map = (sl_map *)(uintptr_t)sl_model_map(x->model, k);
        view.size = sl_map_size(view.map);
        unsigned char *marks = page_file_cached(&view, &n);
        for (uint64_t i = 0; i < sl_model_n_tensors(x->model); i++) {
            const sl_tensor *t = sl_model_tensor_at(x->model, i);
            char name[64];
            snprintf(name, sizeof name, " %.*s ", (int)t->info->name.n, t->info->name.p);
            if (t->i_file == k && strstr(names, name)) {
                sl_ranges_add(&want, t->info->offset, t->info->offset + t->info->n_bytes);
            }
        }
        sl_ranges_add(&want, 0, 1); /* where the names are */
        page_expect(&view, marks, &want);
        free(marks);
        sl_ranges_done(&want);
    }
}

#define AT_OPEN " layers.0.a norm.weight fast_layers.0.a c.quantizer.a c.decoder.a "

static void test_what_is_computed_on_and_nothing_else(void **state)
{
    fixture *x = *state;
    open_model(x, 1);
    assert_ok(init(x), &x->err);
    assert_ok(populate(x, S2_HOST_UNITS_OPEN), &x->err);
    expect_pages(x, AT_OPEN);
    assert_int_equal(x->n_lines, 1);
    assert_non_null(strstr(x->log, "info: populate: 5.0 MiB present"));
    assert_non_null(strstr(x->log, "budget 64.0 MiB, decided by given (--ram)"));
    /* Asked again, it has nothing to do and nothing to say. */
    assert_ok(populate(x, S2_HOST_UNITS_OPEN), &x->err);
    assert_int_equal(x->n_lines, 1);
}

static void test_the_encoder_follows_when_it_is_needed(void **state)
{
    fixture *x = *state;
    open_model(x, 2);
    assert_ok(init(x), &x->err);
    assert_ok(populate(x, S2_HOST_UNITS_OPEN), &x->err);
    expect_pages(x, AT_OPEN);
    assert_ok(populate(x, S2_HOST_UNITS_VOICE), &x->err);
    expect_pages(x, AT_OPEN "c.encoder.a ");
    assert_int_equal(x->n_lines, 2);
}

static void test_units_of_a_device_are_left_to_it(void **state)
{
    fixture *x = *state;
    open_model(x, 1);
    x->on_gpu = 1u << S2_UNIT_SLOW | 1u << S2_UNIT_CODEC_ENCODER;
    assert_ok(init(x), &x->err);
    assert_ok(populate(x, S2_HOST_UNITS_OPEN), &x->err);
    assert_ok(populate(x, S2_HOST_UNITS_VOICE), &x->err);
    expect_pages(x, " fast_layers.0.a c.quantizer.a c.decoder.a ");
    assert_int_equal(x->n_lines, 1);
}

static void test_all_of_them(void **state)
{
    fixture *x = *state;
    open_model(x, 1);
    x->opts.populate = S2_POPULATE_ALL;
    assert_ok(init(x), &x->err);
    assert_ok(populate(x, S2_HOST_UNITS_OPEN), &x->err);
    expect_pages(x, AT_OPEN "embeddings.weight layers.1.a c.encoder.a ");
}

static void test_a_file_goes_whole_or_not_at_all(void **state)
{
    fixture *x = *state;
    open_model(x, 2);
    x->opts.ram_bytes = 3 * MIB; /* the first file takes a little over 2, the second 3 */
    assert_ok(init(x), &x->err);
    assert_ok(populate(x, S2_HOST_UNITS_OPEN), &x->err);
    expect_pages(x, " layers.0.a norm.weight ");
    assert_non_null(strstr(x->log, "3.0 MiB skipped; budget 3.0 MiB"));
}

static void test_the_rest_of_the_budget_is_what_the_encoder_gets(void **state)
{
    fixture *x = *state;
    open_model(x, 1);
    x->opts.ram_bytes = 5 * MIB + 8 * sl__page_bytes();
    assert_ok(init(x), &x->err);
    assert_ok(populate(x, S2_HOST_UNITS_OPEN), &x->err);
    expect_pages(x, AT_OPEN);
    assert_ok(populate(x, S2_HOST_UNITS_VOICE), &x->err);
    expect_pages(x, AT_OPEN);
    assert_non_null(strstr(x->log, "1.0 MiB skipped"));
}

static void test_switched_off(void **state)
{
    fixture *x = *state;
    open_model(x, 1);
    x->opts.populate = S2_POPULATE_OFF;
    assert_ok(init(x), &x->err);
    assert_ok(populate(x, S2_HOST_UNITS_OPEN), &x->err);
    expect_pages(x, " ");
    assert_string_equal(x->log, "info: populate: off, as asked for");
    s2_host_pages_done(&x->pages);
    x->opts.populate = S2_POPULATE_ALL;
    setenv("SLUICE_POPULATE", "0", 1);
    assert_ok(init(x), &x->err);
    assert_ok(populate(x, ALL_UNITS), &x->err);
    expect_pages(x, " ");
    assert_string_equal(x->log, "info: populate: off, as SLUICE_POPULATE says");
}

static int count_progress(void *ud, uint64_t done_bytes, uint64_t total_bytes)
{
    (void)done_bytes;
    *(uint64_t *)ud = total_bytes;
    return 0;
}

static void test_progress_and_stop(void **state)
{
    fixture *x = *state;
    uint64_t total = 0;
    open_model(x, 1);
    x->opts.progress = (sl_progress){count_progress, &total};
    assert_ok(init(x), &x->err);
    x->pages.should_stop = stop_now;
    assert_int_equal(populate(x, S2_HOST_UNITS_OPEN), SL_ECANCELLED);
    expect_pages(x, " ");
    assert_int_equal(total, 0);
    x->pages.should_stop = NULL;
    assert_ok(populate(x, S2_HOST_UNITS_OPEN), &x->err);
    expect_pages(x, AT_OPEN);
    assert_in_range(total, 5 * MIB, 5 * MIB + 8 * sl__page_bytes());
}

static void test_G2_26_a_model_that_was_cut(void **state)
{
    fixture *x = *state;
    open_model(x, 1);
    assert_ok(init(x), &x->err);
    uint64_t size = sl_map_size(sl_model_map(x->model, 0));
    assert_int_equal(truncate(x->path, (off_t)(size - MIB / 2)), 0);
    assert_int_equal(populate(x, S2_HOST_UNITS_OPEN), SL_ECHANGED);
    assert_non_null(strstr(x->err.msg, "m.gguf"));
}

static void test_memory_may_run_out(void **state)
{
    fixture *x = *state;
    int n_failed = 0;
    int n_done = 0;
    open_model(x, 2);
    for (long n = 0; n < 400; n++) {
        s2_host_pages_done(&x->pages);
        sl__mem_fail_after(n);
        int r = init(x);
        if (r == 0) {
            r = populate(x, ALL_UNITS);
        }
        sl__mem_fail_after(-1);
        assert_true(r == 0 || r == SL_ENOMEM);
        n_failed += r != 0;
        n_done += r == 0;
    }
    assert_true(n_failed > 3);
    assert_true(n_done > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test_setup_teardown(
                    test_what_is_computed_on_and_nothing_else, set_up, tear_down),
            cmocka_unit_test_setup_teardown(
                    test_the_encoder_follows_when_it_is_needed, set_up, tear_down),
            cmocka_unit_test_setup_teardown(
                    test_units_of_a_device_are_left_to_it, set_up, tear_down),
            cmocka_unit_test_setup_teardown(test_all_of_them, set_up, tear_down),
            cmocka_unit_test_setup_teardown(
                    test_a_file_goes_whole_or_not_at_all, set_up, tear_down),
            cmocka_unit_test_setup_teardown(
                    test_the_rest_of_the_budget_is_what_the_encoder_gets, set_up, tear_down),
            cmocka_unit_test_setup_teardown(test_switched_off, set_up, tear_down),
            cmocka_unit_test_setup_teardown(test_progress_and_stop, set_up, tear_down),
            cmocka_unit_test_setup_teardown(test_G2_26_a_model_that_was_cut, set_up, tear_down),
            cmocka_unit_test_setup_teardown(test_memory_may_run_out, set_up, tear_down),
    };
    if (!page_files_can_be_dropped()) {
        print_message("skipped: temporary files have no disk behind them here\n");
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
