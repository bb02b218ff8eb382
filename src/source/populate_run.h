/*
 * Populating the ranges of one file: windows, threads and what the kernel can do.
 *
 * The calls of the system are a table, so that tests stand in for kernels that lack or fail them.
 */
#ifndef SL_SOURCE_POPULATE_RUN_H
#define SL_SOURCE_POPULATE_RUN_H

#include <stdatomic.h>

#include "os/os_map.h"
#include "sluice/populate.h"
#include "source/pressure.h"

typedef struct sl__populate_calls {
    int (*populate)(const sl__os_map *map, uint64_t begin, uint64_t end); /* as sl__os_populate */
    void (*read_ahead)(const sl__os_map *map, uint64_t begin, uint64_t end);
    void (*touch)(const sl__os_map *map, uint64_t begin, uint64_t end);
    uint64_t (*read_ahead_bytes)(const sl__os_map *map); /* as sl__os_read_ahead_bytes */
    /* After a window is in the page cache, on the thread that brought it there; may be NULL. */
    void (*present)(void *ud, const sl__os_map *map, uint64_t begin, uint64_t end);
    void *ud;
} sl__populate_calls;

extern const sl__populate_calls sl__populate_system;

/* What all files of one call share. */
typedef struct sl__populate_run {
    const sl__populate_calls *calls;
    const sl_populate_opts *opts;
    unsigned n_threads;
    uint64_t window_bytes;
    uint64_t total_bytes;            /* of all files that fit */
    _Atomic uint64_t done_bytes;     /* of them */
    atomic_bool is_unknown_call;     /* the kernel lacks the call: remembered for all windows */
    sl__pressure *pressure;          /* watched while it runs; NULL = nobody watches */
    bool is_pressed;                 /* stopped because the machine ran short */
    char why[SL_POPULATE_WHY_BYTES]; /* then */
} sl__populate_run;

/*
 * Populates the page-aligned ranges of one file. Returns 0, SL_ECANCELLED, or the error of the window that
 * failed; 0 with is_pressed set if the machine ran short.
 */
int sl__populate_one(sl__populate_run *run, const sl_map *map, const sl_ranges *pages,
        sl_error *reterr) SL_MUST_CHECK;

/* sl_populate with other calls. */
int sl__populate_with(const sl__populate_calls *calls, const sl_populate_file *files,
        size_t n_files, const sl_populate_opts *opts, sl_populate_result *ret_result,
        sl_error *reterr);

#endif
