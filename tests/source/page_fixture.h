/* A mapped file of whole pages, clean on disk, and the truth about its pages. */
#ifndef TEST_PAGE_FIXTURE_H
#define TEST_PAGE_FIXTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sluice/map.h"
#include "sluice/ranges.h"

typedef struct page_file {
    char *dir;
    char path[4200];
    uint64_t page;
    uint64_t size;
    sl_map *map;
} page_file;

/* False where temporary files have no disk behind them (tmpfs): nothing can be dropped there. */
bool page_files_can_be_dropped(void);

/* Writes a file of n_bytes, syncs, maps it and drops what is cached of it. */
void page_file_open(page_file *f, uint64_t n_bytes);
void page_file_close(page_file *f);

/* Maps the file again (the identity of the file may have changed). */
void page_file_reopen(page_file *f);

/* Drops the whole of a mapped file; fails the test if anything stays. */
void page_drop(const sl_map *map);

/* One byte a page by mincore: 1 = in the page cache. Of the caller; free() it. */
unsigned char *page_file_cached(const page_file *f, size_t *ret_n_pages);

/* One byte a page by /proc/self/pagemap: 1 = in this process's page table. */
unsigned char *page_file_present(const page_file *f, size_t *ret_n_pages);

/* Fails unless exactly the pages that the set touches are marked. */
void page_expect(const page_file *f, const unsigned char *marks, const sl_ranges *set);

#endif
