/*
 * What it costs until the weights of a file have been read once: nothing done before, MAP_POPULATE, one
 * MADV_WILLNEED, and Sluice with one and four threads; cold and warm, and with a lazy tensor of half the file.
 *
 *   bench_populate DIR [MIB [ROUNDS]]   writes two files of MIB (1024) into DIR, and removes them at the end
 *
 * Each case runs in a process of its own, in turn; the best round of each is printed, as a table in Markdown. Cold
 * means that not a page is in the page cache; the disk of the host may still have them.
 */
#define _GNU_SOURCE

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench_support.h"
#include "os/os_clock.h"
#include "os/os_out_file.h"
#include "sluice/model.h"
#include "sluice/page_cache.h"
#include "sluice/populate.h"
#include "source/gguf_write.h"

#define MIB        (UINT64_C(1) << 20)
#define N_PARTS    8 /* tensors; the lazy file has half of them and a large one */
#define TYPE_F32   0
#define LAZY_FIRST (N_PARTS / 4)

typedef enum way {
    WAY_NOTHING,
    WAY_MAP_POPULATE,
    WAY_WILLNEED,
    WAY_ONE,
    WAY_FOUR,
    WAY_COUNT
} way;

static const char *const way_names[WAY_COUNT] = {
        [WAY_NOTHING] = "nothing",
        [WAY_MAP_POPULATE] = "MAP_POPULATE",
        [WAY_WILLNEED] = "MADV_WILLNEED once",
        [WAY_ONE] = "Sluice, 1 thread",
        [WAY_FOUR] = "Sluice, 4 threads",
};

/* What one process measured. */
typedef struct figures {
    uint64_t map_ns; /* until the mapping is there and populated */
    uint64_t pass_ns;
    long map_major; /* page faults */
    long map_minor;
    long pass_major;
    long pass_minor;
    uint64_t cached_bytes; /* of the file, at the end */
    uint64_t sum;          /* so that the pass is not left out */
} figures;

/* A file of the benchmark: which of its bytes a pass reads. */
typedef struct subject {
    const char *name;
    char path[4096];
    bool has_lazy;
} subject;

static void die(const char *what)
{
    fprintf(stderr, "bench_populate: %s: errno %d\n", what, errno);
    _Exit(1);
}

static void write_data(sl__gguf_writer *w, uint64_t n_bytes, const uint64_t *tile)
{
    sl_error err = {0};
    for (uint64_t at = 0; at < n_bytes; at += MIB) {
        size_t n = n_bytes - at < MIB ? (size_t)(n_bytes - at) : (size_t)MIB;
        bench_ok(sl__gguf_writer_data(w, tile, n, &err), &err);
    }
}

/* Writes the file and waits until it is on the disk. */
static void write_file(const subject *s, uint64_t n_bytes)
{
    sl_error err = {0};
    sl__gguf_writer *w = NULL;
    sl__out_file *file = NULL;
    uint64_t part = n_bytes / N_PARTS / MIB * MIB;
    uint64_t lazy = s->has_lazy ? part * N_PARTS / 2 : 0;
    unsigned n_parts = s->has_lazy ? N_PARTS / 2 : N_PARTS;
    uint64_t *tile = bench_alloc(MIB);
    for (size_t i = 0; i < MIB / sizeof *tile; i++) {
        tile[i] = i * UINT64_C(0x9e3779b97f4a7c15);
    }
    bench_ok(sl__gguf_writer_create(32, &w, &err), &err);
    for (unsigned i = 0; i < n_parts; i++) {
        char name[16];
        if (s->has_lazy && i == LAZY_FIRST) {
            sl__gguf_put_tensor(w, "lazy", TYPE_F32, 1, &(uint64_t){lazy / 4});
        }
        snprintf(name, sizeof name, "part%u", i);
        sl__gguf_put_tensor(w, name, TYPE_F32, 1, &(uint64_t){part / 4});
    }
    bench_ok(sl__out_file_open(s->path, 0600, &file, &err), &err);
    bench_ok(sl__gguf_writer_begin(w, file, &err), &err);
    for (unsigned i = 0; i < n_parts; i++) {
        if (s->has_lazy && i == LAZY_FIRST) {
            write_data(w, lazy, tile);
        }
        write_data(w, part, tile);
    }
    bench_ok(sl__gguf_writer_finish(w, &err), &err);
    bench_ok(sl__out_file_commit(&file, &err), &err);
    sl__gguf_writer_free(&w);
    free(tile);
}

static bool is_lazy(const sl_tensor *t)
{
    return t->info->name.n == strlen("lazy") && memcmp(t->info->name.p, "lazy", 4) == 0;
}

static bool wants(void *ud, const sl_tensor *tensor)
{
    (void)ud;
    return !is_lazy(tensor);
}

static void faults(long *ret_major, long *ret_minor)
{
    struct rusage now;
    getrusage(RUSAGE_SELF, &now);
    *ret_major = now.ru_majflt - *ret_major;
    *ret_minor = now.ru_minflt - *ret_minor;
}

/* The mapping that a pass reads: Sluice's own, or one by hand. */
static const unsigned char *bring_in(way w, const sl_model *model)
{
    sl_error err = {0};
    const sl_map *map = sl_model_map(model, 0);
    size_t n = (size_t)sl_map_size(map);
    if (w == WAY_ONE || w == WAY_FOUR) {
        sl_ranges ranges = {0};
        sl_populate_result res;
        const sl_ram_opts machine = {.root = NULL};
        const sl_populate_file file = {.map = map, .ranges = &ranges};
        const sl_populate_opts opts = {.budget_bytes = UINT64_MAX,
                .n_threads = w == WAY_FOUR ? 4 : 1,
                .recheck = &machine};
        bench_ok(sl_populate_ranges(model, 0, UINT64_MAX, wants, NULL, &ranges, &err), &err);
        bench_ok(sl_populate(&file, 1, &opts, &res, &err), &err);
        sl_ranges_done(&ranges);
        return sl_map_data(map);
    }
    int fd = open(sl_map_path(map), O_RDONLY | O_CLOEXEC);
    void *p = mmap(
            NULL, n, PROT_READ, MAP_SHARED | (w == WAY_MAP_POPULATE ? MAP_POPULATE : 0), fd, 0);
    close(fd);
    if (p == MAP_FAILED || (w == WAY_WILLNEED && madvise(p, n, MADV_WILLNEED) != 0)) {
        die("mmap");
    }
    return p;
}

static uint64_t pass(const unsigned char *data, const sl_model *model)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i < sl_model_n_tensors(model); i++) {
        const sl_tensor *t = sl_model_tensor_at(model, i);
        const unsigned char *at = data + t->info->offset;
        for (uint64_t k = 0; !is_lazy(t) && k + 8 <= t->info->n_bytes; k += 8) {
            uint64_t v;
            memcpy(&v, at + k, sizeof v);
            sum += v;
        }
    }
    return sum;
}

static void measure(way w, const subject *s, figures *f)
{
    sl_error err = {0};
    sl_model *model = NULL;
    uint64_t begin_ns = sl__now_ns();
    faults(&f->map_major, &f->map_minor);
    bench_ok(sl_model_open(s->path, &model, &err), &err);
    const unsigned char *data = bring_in(w, model);
    faults(&f->map_major, &f->map_minor);
    f->map_ns = sl__now_ns() - begin_ns;
    begin_ns = sl__now_ns();
    faults(&f->pass_major, &f->pass_minor);
    f->sum = pass(data, model);
    faults(&f->pass_major, &f->pass_minor);
    f->pass_ns = sl__now_ns() - begin_ns;
    bench_ok(sl_page_cache_cached(sl_model_map(model, 0), 0, sl_map_size(sl_model_map(model, 0)),
                     &f->cached_bytes, &err),
            &err);
    sl_model_close(&model);
}

static figures run(way w, const subject *s)
{
    int ends[2];
    int status = 0;
    figures f = {0};
    if (pipe2(ends, O_CLOEXEC) != 0) {
        die("pipe");
    }
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        measure(w, s, &f);
        _exit(write(ends[1], &f, sizeof f) == sizeof f ? 0 : 1);
    }
    close(ends[1]);
    ssize_t n = read(ends[0], &f, sizeof f);
    close(ends[0]);
    if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0 || n != sizeof f) {
        die("a measurement failed");
    }
    return f;
}

static void make_cold(const subject *s)
{
    sl_error err = {0};
    sl_map *map = NULL;
    sl_ranges all = {0};
    uint64_t left = 0;
    bench_ok(sl_map_open(s->path, &map, &err), &err);
    bench_ok(sl_ranges_add(&all, 0, sl_map_size(map)), &err);
    bench_ok(sl_page_cache_drop(map, &all, &left, &err), &err);
    if (left != 0) {
        fprintf(stderr, "bench_populate: %" PRIu64 " bytes stay in the page cache\n", left);
        _Exit(1);
    }
    sl_ranges_done(&all);
    sl_map_close(&map);
}

static void print_row(const subject *s, const char *state, way w, const figures *f)
{
    printf("| %s, %s | %s | %.0f | %.0f | %.0f | %ld / %ld | %ld / %ld | %" PRIu64 " |\n", s->name,
            state, way_names[w], (double)f->map_ns * 1e-6, (double)f->pass_ns * 1e-6,
            (double)(f->map_ns + f->pass_ns) * 1e-6, f->map_major, f->map_minor, f->pass_major,
            f->pass_minor, f->cached_bytes / MIB);
}

/* The best of the rounds of every way, by the time to the end of the pass. */
static void compare(const subject *s, bool is_cold, unsigned n_rounds)
{
    figures best[WAY_COUNT] = {{0}};
    for (unsigned round = 0; round < n_rounds; round++) {
        for (unsigned i = 0; i < WAY_COUNT; i++) {
            /* Another one is first each time: a disk may be slower for whoever comes after much reading. */
            way w = (way)((i + round) % WAY_COUNT);
            if (is_cold) {
                make_cold(s);
            } else if (i == 0) {
                (void)run(WAY_ONE, s);
            }
            figures f = run(w, s);
            if (round == 0 || f.map_ns + f.pass_ns < best[w].map_ns + best[w].pass_ns) {
                best[w] = f;
            }
        }
    }
    for (int w = 0; w < WAY_COUNT; w++) {
        print_row(s, is_cold ? "cold" : "warm", (way)w, &best[w]);
    }
}

int main(int argc, char **argv)
{
    subject subjects[] = {{.name = "dense"}, {.name = "half lazy", .has_lazy = true}};
    if (argc < 2) {
        fprintf(stderr, "usage: bench_populate DIR [MIB [ROUNDS]]\n");
        return 2;
    }
    uint64_t n_bytes = bench_number(argc, argv, 2, 1024) * MIB;
    unsigned n_rounds = bench_number(argc, argv, 3, 5);
    bench_print_machine();
    printf("# files of %" PRIu64 " MiB, best of %u rounds\n", n_bytes / MIB, n_rounds);
    printf("| file, cache | way | map and populate ms | first pass ms | together ms | faults while "
           "mapping, major / minor | faults of the pass, major / minor | cached at the end MiB |\n"
           "|---|---|---|---|---|---|---|---|\n");
    for (size_t i = 0; i < sizeof subjects / sizeof subjects[0]; i++) {
        subject *s = &subjects[i];
        snprintf(s->path, sizeof s->path, "%s/bench-populate-%zu.gguf", argv[1], i);
        write_file(s, n_bytes);
        compare(s, true, n_rounds);
        if (!s->has_lazy) {
            compare(s, false, n_rounds);
        }
        unlink(s->path);
    }
    return 0;
}
