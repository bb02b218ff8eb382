#define _DEFAULT_SOURCE /* mincore */

#include "page_fixture.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "test_support.h"

#include "os/os_process.h"
#include "sluice/page_cache.h"

void page_file_reopen(page_file *f)
{
    sl_error err = {0};
    sl_map_close(&f->map);
    assert_ok(sl_map_open(f->path, &f->map, &err), &err);
}

void page_drop(const sl_map *map)
{
    sl_error err = {0};
    sl_ranges all = {0};
    uint64_t left = 1;
    assert_int_equal(sl_ranges_add(&all, 0, sl_map_size(map)), 0);
    assert_ok(sl_page_cache_drop(map, &all, &left, &err), &err);
    sl_ranges_done(&all);
    if (left != 0) {
        fail_msg("%zu bytes stay in the page cache", (size_t)left);
    }
}

#define MAGIC_TMPFS 0x01021994
#define MAGIC_RAMFS 0x858458f6u

bool page_files_can_be_dropped(void)
{
    struct statfs fs;
    const char *tmp = getenv("TMPDIR");
    bool is_known = statfs(tmp && *tmp ? tmp : "/tmp", &fs) == 0;
    unsigned magic = is_known ? (unsigned)fs.f_type : 0;
    return magic != MAGIC_TMPFS && magic != MAGIC_RAMFS;
}

void page_file_open(page_file *f, uint64_t n_bytes)
{
    unsigned char *data = malloc((size_t)n_bytes);
    assert_non_null(data);
    memset(f, 0, sizeof *f);
    for (size_t i = 0; i < n_bytes; i++) {
        data[i] = (unsigned char)(i % 251 + 1);
    }
    f->dir = test_dir_create();
    f->page = sl__page_bytes();
    f->size = n_bytes;
    test_path(f->path, sizeof f->path, f->dir, "weights");
    test_write_file(f->path, data, (size_t)n_bytes);
    free(data);
    int fd = open(f->path, O_RDONLY);
    assert_true(fd >= 0);
    assert_int_equal(fsync(fd), 0);
    close(fd);
    page_file_reopen(f);
    page_drop(f->map);
}

void page_file_close(page_file *f)
{
    sl_map_close(&f->map);
    test_dir_remove(f->dir);
    memset(f, 0, sizeof *f);
}

unsigned char *page_file_cached(const page_file *f, size_t *ret_n_pages)
{
    size_t n = (size_t)((f->size + f->page - 1) / f->page);
    unsigned char *marks = calloc(n, 1);
    assert_non_null(marks);
    void *data = (void *)(uintptr_t)sl_map_data(f->map);
    assert_int_equal(mincore(data, (size_t)f->size, marks), 0);
    for (size_t i = 0; i < n; i++) {
        marks[i] &= 1;
    }
    *ret_n_pages = n;
    return marks;
}

unsigned char *page_file_present(const page_file *f, size_t *ret_n_pages)
{
    size_t n = (size_t)((f->size + f->page - 1) / f->page);
    unsigned char *marks = calloc(n, 1);
    uint64_t *entries = calloc(n, sizeof *entries);
    assert_non_null(marks);
    assert_non_null(entries);
    int fd = open("/proc/self/pagemap", O_RDONLY);
    assert_true(fd >= 0);
    off_t at = (off_t)((uintptr_t)sl_map_data(f->map) / f->page * sizeof *entries);
    assert_int_equal(pread(fd, entries, n * sizeof *entries, at), n * sizeof *entries);
    close(fd);
    for (size_t i = 0; i < n; i++) {
        marks[i] = entries[i] >> 63 != 0;
    }
    free(entries);
    *ret_n_pages = n;
    return marks;
}

void page_expect(const page_file *f, const unsigned char *marks, const sl_ranges *set)
{
    size_t n = (size_t)((f->size + f->page - 1) / f->page);
    size_t at = 0;
    for (size_t i = 0; i < n; i++) {
        while (at < set->n && set->items[at].end <= i * f->page) {
            at++;
        }
        bool is_wanted = at < set->n && set->items[at].begin < (i + 1) * f->page;
        if (marks[i] != is_wanted) {
            fail_msg("page %zu is %s", i, is_wanted ? "missing" : "there, but was not asked for");
        }
    }
}
