/*
 * Makes pages of mapped files present in page cache and page table before they are used, within a budget.
 *
 * A file goes whole or not at all, in the order given (the order of first use): what of its ranges is cached
 * already costs nothing, the rest is charged against the budget, and a file that does not fit is skipped. Pages
 * are taken in windows of at most 64 MiB by one to four threads. Where the kernel lacks MADV_POPULATE_READ,
 * small pieces are read ahead and touched behind the guard of the map.
 *
 * Does not promise: that pages stay; nor that every file is populated. The result says what happened.
 *
 * Threads: any; one call works on its own threads, which are gone when it returns.
 */
#ifndef SLUICE_POPULATE_H
#define SLUICE_POPULATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sluice/api.h"
#include "sluice/error.h"
#include "sluice/map.h"
#include "sluice/model.h"
#include "sluice/page_cache.h"
#include "sluice/ram.h"
#include "sluice/ranges.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SL_POPULATE_MAX_THREADS 4

#define SL_POPULATE_WHY_BYTES 192

/* Tensors above this are gathered or too large to be worth it; the default of every --lazy-over. */
#define SL_LAZY_OVER_BYTES (UINT64_C(4) << 30)

typedef struct sl_populate_file {
    const sl_map *map;
    const sl_ranges *ranges; /* bytes of the file; whole pages around them are populated */
    bool is_charged_only; /* somebody else populates it (MAP_POPULATE): it costs budget and nothing else */
} sl_populate_file;

/* Zeroed memory is: no budget, one thread, windows of 64 MiB, nobody asks. */
typedef struct sl_populate_opts {
    uint64_t budget_bytes; /* sampled before the files were mapped (sl_ram_budget_read) */
    unsigned n_threads;    /* 1 to 4; 0 = 1, the fastest where a single disk was measured */
    uint64_t window_bytes; /* 0 = 64 MiB, which is also the most */
    /*
     * Not NULL: between windows, what the kernel says of memory pressure is looked at (PSI, events of the control
     * groups), and the budget of the machine is derived again unless it is a given one. Population stops when
     * memory stalls, when a group ran into a limit, or when nothing is left of the budget.
     */
    const sl_ram_opts *recheck;
    sl_progress progress; /* on the calling thread; bytes of all files that fit */
} sl_populate_opts;

typedef enum sl_populate_end {
    SL_POPULATE_DONE,      /* every file */
    SL_POPULATE_SKIPPED,   /* at least one file did not fit */
    SL_POPULATE_PRESSURE,  /* the machine ran short meanwhile */
    SL_POPULATE_CANCELLED, /* by the progress function */
    SL_POPULATE_FAILED,    /* a window failed */
    SL_POPULATE_END_COUNT
} sl_populate_end;

typedef struct sl_populate_result {
    sl_populate_end end;
    uint64_t wanted_bytes;    /* pages of all ranges */
    uint64_t cached_bytes;    /* of them, in the page cache before */
    uint64_t charged_bytes;   /* taken from the budget */
    uint64_t populated_bytes; /* present now */
    uint64_t skipped_bytes;   /* of files that did not fit */
    size_t n_files_skipped;
    bool is_fallback;                /* the kernel lacks MADV_POPULATE_READ */
    char why[SL_POPULATE_WHY_BYTES]; /* of SL_POPULATE_PRESSURE: which file of the machine says what; else "" */
} sl_populate_result;

/*
 * Populates the files. *ret_result is filled also on failure.
 * Errors: SL_ECHANGED (a page is gone; offset = its place), SL_EIO, SL_ENOMEM (the system gives no page),
 * SL_ECANCELLED, SL_EINVAL (ranges outside the file).
 */
SL_API int sl_populate(const sl_populate_file *files, size_t n_files, const sl_populate_opts *opts,
        sl_populate_result *ret_result, sl_error *reterr);

/*
 * The ranges of one file of a model that are worth populating: tensors for which `wants` is true, less those over
 * lazy_over bytes. A NULL `wants` takes every tensor.
 * Errors: SL_ENOMEM.
 */
SL_API int sl_populate_ranges(const sl_model *model, uint32_t i_file, uint64_t lazy_over_bytes,
        bool (*wants)(void *ud, const sl_tensor *tensor), void *ud, sl_ranges *ret_ranges,
        sl_error *reterr);

/*
 * The environment variable that turns population off (SLUICE_POPULATE=0 or LLAMA_MMAP_POPULATE=0; the first one
 * that is set counts), or NULL. Static string.
 */
SL_API const char *sl_populate_switched_off(void);

/* "done", "over budget", ... Static string. */
SL_API const char *sl_populate_end_name(sl_populate_end end);

/*
 * One line for people: what is present, what was skipped, the budget and the bound that decided. Cut to fit;
 * returns `buf`.
 */
SL_API const char *sl_populate_text(
        const sl_populate_result *result, const sl_ram_budget *ram, char *buf, size_t buf_bytes);

#ifdef __cplusplus
}
#endif

#endif
