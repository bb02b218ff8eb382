/*
 * How fast bytes of files get to a device, by every route there is, against the limits of the link and of the disk.
 *
 * The limits are measured in the same call: that of the link by uploads from pinned memory that nobody fills, that of
 * the disk, if the page cache is dropped before each run, by reads that no device waits for (bench_disk.h). What is
 * moved is what a load moves: pieces of at most 64 MiB into buffers made before, from files that are mapped. After
 * each run bytes at many places are read back and compared.
 *
 * Threads: one call at a time; the device's queue is its own meanwhile.
 */
#ifndef CLI_BENCH_TRANSFER_H
#define CLI_BENCH_TRANSFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "device/route.h"
#include "sluice/device.h"
#include "sluice/map.h"

/* Bytes that belong together: a tensor. */
typedef struct bench_range {
    const sl_map *map;
    uint64_t offset;
    uint64_t n_bytes; /* at least 1 */
} bench_range;

#define BENCH_MAX_THREADS 16 /* entries of a list of numbers of threads */
#define BENCH_MAX_ROWS    (5 * BENCH_MAX_THREADS + 16)

typedef struct bench_transfer_opts {
    sl_device *device;
    const bench_range *ranges;
    size_t n_ranges;
    size_t n_threads[BENCH_MAX_THREADS];
    size_t n_thread_counts; /* at least 1 */
    unsigned n_runs;        /* of each row, at least 1 */
    size_t n_slots;         /* 0 = the transfer's own, as slot_bytes */
    size_t slot_bytes;
    bool tries_rings; /* rows with other rings, for the last number of threads */
    /* NULL, or called before each run: drops the files from the page cache, and makes rows "disk". */
    int (*before_run)(void *ud, sl_error *reterr);
    /* NULL, or called before each row with its name. */
    void (*on_row)(void *ud, const char *name);
    bool (*is_cancelled)(void *ud); /* not NULL */
    void *ud;
} bench_transfer_opts;

/* One way to move the bytes. Counts are those of the best run. */
typedef struct bench_row {
    const char *name;  /* static: "link", "set", "pread", ... */
    const char *about; /* static: what it is */
    sl__route route;   /* what moved most bytes; SL__ROUTE_AUTO for "link", "set" and "disk" */
    size_t n_threads;  /* that fill slots or read; 0 = none */
    size_t n_slots;    /* 0 = the transfer's own, as slot_bytes */
    size_t slot_bytes;
    double best_bytes_per_s;
    double median_bytes_per_s;
    double setup_s; /* made once before: ring and threads */
    double cpu_s;   /* of all threads of this process */
    uint64_t n_uploads;
    uint64_t n_waits;
    uint64_t n_stalls; /* times that the link had nothing to do while slots were being filled */
    sl_error failure;  /* why it cannot be taken here; code 0 = it can */
} bench_row;

typedef struct bench_transfer_result {
    uint64_t n_bytes;
    bool has_pinned;                /* the limit was measured from pinned memory */
    double disk_bytes_per_s;        /* of the best row "disk"; 0 = there is none */
    bench_row rows[BENCH_MAX_ROWS]; /* "link", then "set", then "disk" and the others */
    size_t n_rows;
} bench_transfer_result;

/*
 * Measures everything. Rows that the device cannot take say why; everything else ends it.
 * Errors: SL_EINVAL (more bytes than the device has), SL_ECANCELLED, SL_EIO with the place whose bytes are wrong, and
 * those of the device and the transfer.
 */
int bench_transfer(const bench_transfer_opts *opts, bench_transfer_result *ret,
        sl_error *reterr) SL_MUST_CHECK;

#endif
