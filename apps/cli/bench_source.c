#include "bench_source.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "sluice/page_cache.h"
#include "sluice/ranges.h"

#define TENSOR_BYTES (UINT64_C(64) << 20)

enum {
    BLOCK_BYTES = 1 << 20
};

int bench_source_model(const char *path, bench_source *ret, sl_error *reterr)
{
    *ret = (bench_source){.fd = -1};
    int r = sl_model_open(path, &ret->model, reterr);
    if (r < 0) {
        return r;
    }
    uint64_t n = sl_model_n_tensors(ret->model);
    ret->ranges = sl__alloc((size_t)n, sizeof *ret->ranges);
    if (!ret->ranges) {
        r = sl__fail_nomem(reterr, (size_t)n * sizeof *ret->ranges, "the tensors");
    }
    for (uint64_t i = 0; i < n && r == 0; i++) {
        const sl_tensor *t = sl_model_tensor_at(ret->model, i);
        ret->ranges[ret->n_ranges] = (bench_range){.map = sl_model_map(ret->model, t->i_file),
                .offset = t->info->offset,
                .n_bytes = t->info->n_bytes};
        ret->n_ranges += t->info->n_bytes > 0;
    }
    if (r == 0 && ret->n_ranges == 0) {
        r = sl__fail(reterr, SL_EINVAL, "%s: it has no tensor, so there is nothing to move",
                sl_model_path(ret->model));
    }
    if (r < 0) {
        bench_source_done(ret);
    }
    return r;
}

/* A file without a name, in the first folder that takes one. */
static int open_nameless(char ret_dir[200], sl_error *reterr)
{
    char path[256];
    const char *wish = getenv("TMPDIR"); /* NOLINT(concurrency-mt-unsafe): before any thread */
    const char *const dirs[] = {wish, "/var/tmp", "/tmp"};
    int fd = -1;
    int err = ENOENT;
    for (size_t i = 0; i < 3 && fd < 0; i++) {
        if (!dirs[i] || !dirs[i][0]) {
            continue;
        }
        sl__quote(ret_dir, 200, dirs[i], strlen(dirs[i]));
        int n = snprintf(path, sizeof path, "%s/sluice-bench-XXXXXX", dirs[i]);
        fd = n > 0 && (size_t)n < sizeof path ? mkstemp(path) : -1;
        err = errno;
    }
    if (fd < 0) {
        return sl__fail_os(reterr, err,
                "no file to measure with can be made in $TMPDIR, /var/tmp or /tmp; set TMPDIR");
    }
    (void)unlink(path);
    return fd;
}

/* Numbers that no drive compresses and no page is like another. */
static void make_noise(uint64_t *words, size_t n, uint64_t *state)
{
    uint64_t x = *state;
    for (size_t i = 0; i < n; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        words[i] = x;
    }
    *state = x;
}

static int write_all(int fd, const char *dir, const char *data, size_t n, sl_error *reterr)
{
    while (n > 0) {
        ssize_t done = write(fd, data, n);
        if (done < 0 && errno == EINTR) {
            continue;
        }
        if (done <= 0) {
            return sl__fail_os(reterr, done < 0 ? errno : ENOSPC,
                    "a file to measure with cannot be written in %s; set TMPDIR or give a smaller "
                    "--size",
                    dir);
        }
        data += done;
        n -= (size_t)done;
    }
    return 0;
}

static int write_noise(int fd, const char *dir, uint64_t n_bytes, bool (*is_cancelled)(void *ud),
        void *ud, sl_error *reterr)
{
    uint64_t state = UINT64_C(0x9E3779B97F4A7C15);
    uint64_t *block = sl__alloc(BLOCK_BYTES, 1);
    if (!block) {
        return sl__fail_nomem(reterr, BLOCK_BYTES, "noise");
    }
    int r = 0;
    for (uint64_t at = 0; at < n_bytes && r == 0; at += BLOCK_BYTES) {
        uint64_t n = n_bytes - at < BLOCK_BYTES ? n_bytes - at : BLOCK_BYTES;
        make_noise(block, BLOCK_BYTES / sizeof *block, &state);
        r = is_cancelled(ud) ? sl__fail(reterr, SL_ECANCELLED, "interrupted")
                             : write_all(fd, dir, (const char *)block, (size_t)n, reterr);
    }
    sl__free(block);
    return r;
}

/* The file as ranges of TENSOR_BYTES. */
static int cut_file(bench_source *s, uint64_t n_bytes, sl_error *reterr)
{
    size_t n = (size_t)((n_bytes - 1) / TENSOR_BYTES + 1);
    s->ranges = sl__alloc(n, sizeof *s->ranges);
    if (!s->ranges) {
        return sl__fail_nomem(reterr, n * sizeof *s->ranges, "the tensors");
    }
    for (size_t i = 0; i < n; i++) {
        uint64_t at = i * TENSOR_BYTES;
        uint64_t left = n_bytes - at;
        s->ranges[i] = (bench_range){s->file, at, left < TENSOR_BYTES ? left : TENSOR_BYTES};
    }
    s->n_ranges = n;
    return 0;
}

int bench_source_noise(uint64_t n_bytes, bool (*is_cancelled)(void *ud), void *ud,
        bench_source *ret, sl_error *reterr)
{
    char dir[200] = "";
    char path[64];
    *ret = (bench_source){.fd = -1};
    int fd = open_nameless(dir, reterr);
    if (fd < 0) {
        return fd;
    }
    ret->fd = fd;
    int r = write_noise(fd, dir, n_bytes, is_cancelled, ud, reterr);
    if (r == 0) {
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        r = sl_map_open(path, &ret->file, reterr);
    }
    if (r == 0) {
        r = cut_file(ret, n_bytes, reterr);
    }
    if (r < 0) {
        bench_source_done(ret);
    }
    return r;
}

/* The ranges that lie in the same file as ranges[first], from it on; *ret_n = how many. */
static int same_file(
        const bench_source *s, size_t first, sl_ranges *ret_set, size_t *ret_n, sl_error *reterr)
{
    size_t i = first;
    int r = 0;
    while (i < s->n_ranges && s->ranges[i].map == s->ranges[first].map && r == 0) {
        r = sl_ranges_add(ret_set, s->ranges[i].offset, s->ranges[i].offset + s->ranges[i].n_bytes);
        i++;
    }
    *ret_n = i - first;
    return r < 0 ? sl__fail_nomem(reterr, sizeof(sl_range), "ranges") : 0;
}

static int for_files(const bench_source *s, bool is_drop, sl_error *reterr)
{
    int r = 0;
    for (size_t i = 0; i < s->n_ranges && r == 0;) {
        sl_ranges set = {0};
        uint64_t n_left;
        size_t n = 0;
        const sl_map *map = s->ranges[i].map;
        r = same_file(s, i, &set, &n, reterr);
        if (r == 0) {
            r = is_drop ? sl_page_cache_drop(map, &set, &n_left, reterr)
                        : sl_page_cache_warm(map, &set, (sl_progress){0}, reterr);
        }
        sl_ranges_done(&set);
        i += n;
    }
    return r;
}

int bench_source_warm(const bench_source *source, sl_error *reterr)
{
    return for_files(source, false, reterr);
}

int bench_source_drop(const bench_source *source, sl_error *reterr)
{
    return for_files(source, true, reterr);
}

void bench_source_done(bench_source *source)
{
    sl_map_close(&source->file);
    sl_model_close(&source->model);
    if (source->fd >= 0) {
        (void)close(source->fd);
    }
    sl__free(source->ranges);
    *source = (bench_source){.fd = -1};
}
