/* Which files and tensors are populated, and what they cost. */
#define _DEFAULT_SOURCE /* setenv */

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fake_machine.h"
#include "gguf_bytes.h"
#include "page_fixture.h"
#include "test_support.h"

#include "base/mem.h"
#include "os/os_process.h"
#include "sluice/page_cache.h"
#include "sluice/populate.h"

#define N_FILES 3
#define F32     0

/* Three files of 1, 2 and 1 MiB, all of each wanted. */
typedef struct fixture {
    page_file f[N_FILES];
    sl_ranges all[N_FILES];
    sl_populate_file files[N_FILES];
    sl_populate_opts opts;
    sl_populate_result res;
    sl_error err;
} fixture;

static int set_up(void **state)
{
    static const uint64_t sizes[N_FILES] = {MIB, 2 * MIB, MIB};
    fixture *x = calloc(1, sizeof *x);
    assert_non_null(x);
    for (size_t i = 0; i < N_FILES; i++) {
        page_file_open(&x->f[i], sizes[i]);
        assert_int_equal(sl_ranges_add(&x->all[i], 0, sizes[i]), 0);
        x->files[i] = (sl_populate_file){.map = x->f[i].map, .ranges = &x->all[i]};
    }
    x->opts.n_threads = 1;
    *state = x;
    return 0;
}

static int tear_down(void **state)
{
    fixture *x = *state;
    for (size_t i = 0; i < N_FILES; i++) {
        sl_ranges_done(&x->all[i]);
        page_file_close(&x->f[i]);
    }
    free(x);
    return 0;
}

static int populate(fixture *x)
{
    return sl_populate(x->files, N_FILES, &x->opts, &x->res, &x->err);
}

static uint64_t cached_of(const fixture *x, size_t i)
{
    sl_error err = {0};
    uint64_t n = 0;
    assert_ok(sl_page_cache_cached(x->f[i].map, 0, x->f[i].size, &n, &err), &err);
    return n;
}

static void test_everything_fits(void **state)
{
    fixture *x = *state;
    x->opts.budget_bytes = 4 * MIB;
    assert_ok(populate(x), &x->err);
    assert_int_equal(x->res.end, SL_POPULATE_DONE);
    assert_int_equal(x->res.wanted_bytes, 4 * MIB);
    assert_int_equal(x->res.charged_bytes, 4 * MIB);
    assert_int_equal(x->res.populated_bytes, 4 * MIB);
    for (size_t i = 0; i < N_FILES; i++) {
        assert_int_equal(cached_of(x, i), x->f[i].size);
    }
}

/* A file goes whole or not at all; one that does not fit does not stop the next. */
static void test_a_file_that_does_not_fit(void **state)
{
    fixture *x = *state;
    x->opts.budget_bytes = 3 * MIB - 1;
    assert_ok(populate(x), &x->err);
    assert_int_equal(x->res.end, SL_POPULATE_SKIPPED);
    assert_int_equal(x->res.n_files_skipped, 1);
    assert_int_equal(x->res.skipped_bytes, 2 * MIB);
    assert_int_equal(x->res.populated_bytes, 2 * MIB);
    assert_int_equal(cached_of(x, 0), MIB);
    assert_int_equal(cached_of(x, 1), 0);
    assert_int_equal(cached_of(x, 2), MIB);
}

static void test_no_budget_at_all(void **state)
{
    fixture *x = *state;
    assert_ok(populate(x), &x->err);
    assert_int_equal(x->res.end, SL_POPULATE_SKIPPED);
    assert_int_equal(x->res.n_files_skipped, N_FILES);
    assert_int_equal(x->res.populated_bytes, 0);
    for (size_t i = 0; i < N_FILES; i++) {
        assert_int_equal(cached_of(x, i), 0);
    }
}

/* G2-19: what is cached already is populated again (the page table is empty) but costs nothing. */
static void test_G2_19_cached_pages_are_not_charged(void **state)
{
    fixture *x = *state;
    size_t n = 0;
    sl_ranges half = {0};
    assert_int_equal(sl_ranges_add(&half, 0, MIB), 0);
    assert_ok(sl_page_cache_warm(x->f[0].map, &x->all[0], (sl_progress){0}, &x->err), &x->err);
    assert_ok(sl_page_cache_warm(x->f[1].map, &half, (sl_progress){0}, &x->err), &x->err);
    sl_ranges_done(&half);
    x->opts.budget_bytes = MIB;
    assert_ok(populate(x), &x->err);
    assert_int_equal(x->res.cached_bytes, 2 * MIB);
    assert_int_equal(x->res.charged_bytes, MIB);
    assert_int_equal(x->res.n_files_skipped, 1);
    assert_int_equal(cached_of(x, 1), 2 * MIB);
    assert_int_equal(cached_of(x, 2), 0);
    unsigned char *present = page_file_present(&x->f[0], &n);
    page_expect(&x->f[0], present, &x->all[0]);
    free(present);
}

static void test_files_that_somebody_else_populates(void **state)
{
    fixture *x = *state;
    x->files[1].is_charged_only = true;
    x->opts.budget_bytes = 3 * MIB;
    assert_ok(populate(x), &x->err);
    assert_int_equal(cached_of(x, 1), 0);
    assert_int_equal(x->res.charged_bytes, 3 * MIB);
    assert_int_equal(x->res.n_files_skipped, 1);
    assert_int_equal(cached_of(x, 2), 0);
}

/* A window that fails ends the budget: the files behind it are left alone. */
static void test_a_failure_ends_it(void **state)
{
    fixture *x = *state;
    x->opts.budget_bytes = 4 * MIB;
    assert_int_equal(truncate(x->f[1].path, 4096), 0);
    assert_int_equal(populate(x), SL_ECHANGED);
    assert_int_equal(x->err.offset, 4096);
    assert_non_null(strstr(x->err.msg, x->f[1].path));
    assert_int_equal(x->res.end, SL_POPULATE_FAILED);
    assert_int_equal(cached_of(x, 0), MIB);
    assert_int_equal(cached_of(x, 2), 0);
}

static void test_ranges_behind_the_file(void **state)
{
    fixture *x = *state;
    x->opts.budget_bytes = 4 * MIB;
    assert_int_equal(sl_ranges_add(&x->all[2], 0, MIB + 1), 0);
    assert_int_equal(populate(x), SL_EINVAL);
    assert_non_null(strstr(x->err.msg, x->f[2].path));
    assert_int_equal(cached_of(x, 0), 0);
}

/* Memory gets short on a machine that a folder plays. */
static void test_G2_29_pressure_stops_it(void **state)
{
    fixture *x = *state;
    void *fake = NULL;
    fake_set_up(&fake);
    fake_machine *m = fake;
    sl_ram_opts ram = {.root = m->root};
    x->opts.budget_bytes = 4 * MIB;
    x->opts.recheck = &ram;
    assert_ok(populate(x), &x->err);
    assert_int_equal(x->res.end, SL_POPULATE_DONE);
    fake_put(m, "/proc/meminfo", "MemTotal: 67108864 kB\nMemAvailable: 4194304 kB\n");
    assert_ok(populate(x), &x->err);
    assert_int_equal(x->res.end, SL_POPULATE_PRESSURE);
    assert_int_equal(x->res.populated_bytes, 0);
    assert_string_equal(x->res.why, "/proc/meminfo: nothing is left but the reserve");
    /* A given budget does not change, whatever the machine says. */
    ram.has_given = true;
    assert_ok(populate(x), &x->err);
    assert_int_equal(x->res.end, SL_POPULATE_DONE);
    assert_string_equal(x->res.why, "");
    fake_tear_down(&fake);
}

/* A group runs into its memory.high while it is populated. */
static int throttle(void *ud, uint64_t done_bytes, uint64_t total_bytes)
{
    (void)total_bytes;
    if (done_bytes > 0) {
        fake_put(ud, "/sys/fs/cgroup/a/memory.events", "high 1\noom 0\noom_kill 0\n");
    }
    return 0;
}

static void test_G2_24_a_throttled_group_stops_it(void **state)
{
    fixture *x = *state;
    void *fake = NULL;
    fake_set_up(&fake);
    fake_machine *m = fake;
    sl_ram_opts ram = {.root = m->root};
    fake_groups(m, "0::/a\n", CGROUP2_LINE);
    fake_put(m, "/sys/fs/cgroup/a/memory.high", "8589934592\n");
    fake_put(m, "/sys/fs/cgroup/a/memory.current", "1048576\n");
    fake_put(m, "/sys/fs/cgroup/a/memory.events", "high 0\noom 0\noom_kill 0\n");
    x->opts.budget_bytes = 4 * MIB;
    x->opts.recheck = &ram;
    x->opts.progress = (sl_progress){throttle, m};
    assert_ok(populate(x), &x->err);
    assert_int_equal(x->res.end, SL_POPULATE_PRESSURE);
    /* The window that was under way, and none after it: its size depends on the disk's read-ahead. */
    assert_in_range(x->res.populated_bytes, 1, MIB);
    assert_string_equal(x->res.why, "/sys/fs/cgroup/a/memory.events: high rose by 1");
    fake_tear_down(&fake);
}

static void test_memory_may_run_out(void **state)
{
    fixture *x = *state;
    x->opts.budget_bytes = 4 * MIB;
    for (long i = 0; i < 4; i++) {
        sl__mem_fail_after(i);
        assert_int_equal(populate(x), SL_ENOMEM);
        sl__mem_fail_after(-1);
        assert_int_equal(x->res.end, SL_POPULATE_FAILED);
    }
    assert_ok(populate(x), &x->err);
}

static void test_nothing_to_do(void **state)
{
    fixture *x = *state;
    sl_ranges none = {0};
    sl_populate_file file = {.map = x->f[0].map, .ranges = &none};
    assert_ok(sl_populate(&file, 1, &x->opts, &x->res, &x->err), &x->err);
    assert_int_equal(x->res.end, SL_POPULATE_DONE);
    assert_ok(sl_populate(NULL, 0, &x->opts, &x->res, &x->err), &x->err);
    assert_int_equal(x->res.end, SL_POPULATE_DONE);
}

/* A model of tensors of 1 MiB, and one of 3 MiB that is lazy. */
typedef struct model_case {
    const char *names[4]; /* "L..." is the lazy one */
    unsigned i_shard[4];
    unsigned n_shards;
} model_case;

static void write_shard(const char *dir, const model_case *c, unsigned i_shard, char *path)
{
    char name[64];
    unsigned n_tensors = 0;
    for (size_t i = 0; i < 4; i++) {
        n_tensors += c->i_shard[i] == i_shard;
    }
    gguf_bytes g = gb_start(3, n_tensors, c->n_shards > 1 ? 4 : 1);
    gb_key_str(&g, "general.architecture", "test");
    if (c->n_shards > 1) {
        gb_key(&g, "split.no", SL_GGUF_U16);
        gb_u16(&g, i_shard);
        gb_key(&g, "split.count", SL_GGUF_U16);
        gb_u16(&g, c->n_shards);
        gb_key(&g, "split.tensors.count", SL_GGUF_I32);
        gb_u32(&g, 4);
    }
    uint64_t offset = 0;
    for (size_t i = 0; i < 4; i++) {
        uint64_t ne[1] = {(c->names[i][0] == 'L' ? 3 : 1) * MIB / 4};
        if (c->i_shard[i] == i_shard) {
            gb_tensor(&g, c->names[i], 1, ne, F32, offset);
            offset += ne[0] * 4;
        }
    }
    gb_pad(&g, 32);
    gb_fill(&g, 1, (size_t)offset);
    snprintf(name, sizeof name, c->n_shards > 1 ? "m-%05u-of-%05u.gguf" : "m.gguf", i_shard + 1,
            c->n_shards);
    test_path(path, 4200, dir, name);
    test_write_file(path, g.p, g.n);
    gb_done(&g);
    int fd = open(path, O_RDONLY);
    assert_true(fd >= 0);
    assert_int_equal(fsync(fd), 0);
    close(fd);
}

/* The pages of a file of the model that ought to be cached, worked out anew. */
static void expect_pages(const sl_model *model, uint32_t i_file)
{
    page_file view = {.map = NULL, .page = sl__page_bytes()};
    const sl_map *map = sl_model_map(model, i_file);
    view.size = sl_map_size(map);
    view.map = (sl_map *)(uintptr_t)map;
    sl_ranges want = {0};
    size_t n = 0;
    /* First of all, since names are read from the mapping. */
    unsigned char *marks = page_file_cached(&view, &n);
    for (uint64_t i = 0; i < sl_model_n_tensors(model); i++) {
        const sl_tensor *t = sl_model_tensor_at(model, i);
        if (t->i_file == i_file && t->info->name.p[0] != 'L') {
            sl_ranges_add(&want, t->info->offset, t->info->offset + t->info->n_bytes);
        }
    }
    page_expect(&view, marks, &want);
    free(marks);
    sl_ranges_done(&want);
}

static void drop_all(const sl_model *model)
{
    for (uint32_t i = 0; i < sl_model_n_files(model); i++) {
        page_drop(sl_model_map(model, i));
    }
}

static void populate_model(const sl_model *model, unsigned n_threads)
{
    sl_ranges sets[4] = {{0}};
    sl_populate_file files[4];
    sl_populate_result res;
    sl_error err = {0};
    uint32_t n = sl_model_n_files(model);
    sl_populate_opts opts = {.budget_bytes = 3 * MIB + 8 * 4096, .n_threads = n_threads};
    for (uint32_t i = 0; i < n; i++) {
        assert_ok(sl_populate_ranges(model, i, 2 * MIB, NULL, NULL, &sets[i], &err), &err);
        files[i] = (sl_populate_file){.map = sl_model_map(model, i), .ranges = &sets[i]};
    }
    assert_ok(sl_populate(files, n, &opts, &res, &err), &err);
    assert_int_equal(res.end, SL_POPULATE_DONE);
    for (uint32_t i = 0; i < n; i++) {
        sl_ranges_done(&sets[i]);
    }
}

static void test_exactly_the_tensors_that_are_not_lazy(void **state)
{
    static const model_case cases[] = {
            {{"La", "b", "c", "d"}, {0, 0, 0, 0}, 1},
            {{"a", "b", "Lc", "d"}, {0, 0, 0, 0}, 1},
            {{"a", "b", "c", "Ld"}, {0, 0, 0, 0}, 1},
            {{"La", "b", "c", "d"}, {0, 0, 1, 1}, 2},
            {{"a", "Lb", "c", "d"}, {0, 0, 0, 1}, 2},
            {{"a", "b", "Lc", "d"}, {0, 0, 1, 2}, 3},
            {{"a", "b", "c", "Ld"}, {0, 1, 2, 2}, 3},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char *dir = test_dir_create();
        char path[4200];
        sl_model *model = NULL;
        sl_error err = {0};
        for (unsigned k = 0; k < cases[i].n_shards; k++) {
            write_shard(dir, &cases[i], k, path);
        }
        assert_ok(sl_model_open(path, &model, &err), &err);
        drop_all(model);
        populate_model(model, i % 2 ? 4 : 1);
        for (uint32_t k = 0; k < sl_model_n_files(model); k++) {
            expect_pages(model, k);
        }
        drop_all(model);
        sl_model_close(&model);
        test_dir_remove(dir);
    }
}

static bool is_b(void *ud, const sl_tensor *tensor)
{
    (*(int *)ud)++;
    return tensor->info->name.p[0] == 'b';
}

static void test_ranges_of_chosen_tensors(void **state)
{
    static const model_case c = {{"La", "b", "c", "d"}, {0, 0, 0, 0}, 1};
    char *dir = test_dir_create();
    char path[4200];
    sl_model *model = NULL;
    sl_error err = {0};
    sl_ranges set = {0};
    int n_asked = 0;
    (void)state;
    write_shard(dir, &c, 0, path);
    assert_ok(sl_model_open(path, &model, &err), &err);
    assert_ok(sl_populate_ranges(model, 0, 2 * MIB, is_b, &n_asked, &set, &err), &err);
    assert_int_equal(n_asked, 3);
    assert_int_equal(set.n, 1);
    assert_int_equal(set.items[0].begin, sl_model_find(model, "b")->info->offset);
    assert_int_equal(sl_ranges_bytes(&set), MIB);
    sl__mem_fail_after(0);
    assert_int_equal(sl_populate_ranges(model, 0, 2 * MIB, NULL, NULL, &set, &err), SL_ENOMEM);
    sl__mem_fail_after(-1);
    assert_int_equal(sl_ranges_bytes(&set), MIB);
    sl_ranges_done(&set);
    sl_model_close(&model);
    test_dir_remove(dir);
}

static void test_the_switch(void **state)
{
    static const struct {
        const char *ours;
        const char *llama;
        const char *want;
    } rows[] = {{NULL, NULL, NULL}, {"0", NULL, "SLUICE_POPULATE"},
            {NULL, "0", "LLAMA_MMAP_POPULATE"}, {"1", "0", NULL}, {"0", "1", "SLUICE_POPULATE"},
            {"", "0", "LLAMA_MMAP_POPULATE"}, {"off", NULL, "SLUICE_POPULATE"},
            {"False", NULL, "SLUICE_POPULATE"}, {"yes", NULL, NULL}, {"00", NULL, NULL}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        unsetenv("SLUICE_POPULATE");
        unsetenv("LLAMA_MMAP_POPULATE");
        if (rows[i].ours) {
            setenv("SLUICE_POPULATE", rows[i].ours, 1);
        }
        if (rows[i].llama) {
            setenv("LLAMA_MMAP_POPULATE", rows[i].llama, 1);
        }
        const char *got = sl_populate_switched_off();
        if (got != rows[i].want && (!got || !rows[i].want || strcmp(got, rows[i].want) != 0)) {
            fail_msg("row %zu gives %s", i, got ? got : "nothing");
        }
    }
    unsetenv("SLUICE_POPULATE");
    unsetenv("LLAMA_MMAP_POPULATE");
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
            CASE(test_everything_fits),
            CASE(test_a_file_that_does_not_fit),
            CASE(test_no_budget_at_all),
            CASE(test_G2_19_cached_pages_are_not_charged),
            CASE(test_files_that_somebody_else_populates),
            CASE(test_a_failure_ends_it),
            CASE(test_ranges_behind_the_file),
            CASE(test_G2_29_pressure_stops_it),
            CASE(test_G2_24_a_throttled_group_stops_it),
            CASE(test_memory_may_run_out),
            CASE(test_nothing_to_do),
            cmocka_unit_test(test_exactly_the_tensors_that_are_not_lazy),
            cmocka_unit_test(test_ranges_of_chosen_tensors),
            cmocka_unit_test(test_the_switch),
    };
    if (!page_files_can_be_dropped()) {
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
