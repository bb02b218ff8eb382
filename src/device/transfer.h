/*
 * Moves tensors from files to a device at the speed of the link.
 *
 * What is moved is a list of slices: a slice is consecutive tensors that arrive together, with an event. Their
 * bytes take one of four routes:
 *
 *   plain        uploads straight from the mapping; the driver does what it likes
 *   pread        a ring of pinned slots, filled by a few threads with pread
 *   memcpy       the same, filled from the mapping
 *   registered   uploads straight from windows of the mapping that the threads register with the device ahead of
 *                the copies, a few at a time
 *
 * With SL__ROUTE_AUTO the first slices of at least four slots try the routes that are possible, each twice and in
 * turns; the fastest takes the rest and all later runs.
 *
 * Everything is made at creation: a run starts no thread and allocates nothing; only the registered route tells the
 * device of memory. When it returns,
 * nothing is in flight and no memory of the caller is used any more, whether it worked, failed or was
 * cancelled. Tensors do not get a copy and a wait each: neighbours share slots.
 *
 * Does not promise: a good choice of route from a cold page cache, where the disk decides.
 *
 * Threads: one run at a time, in the thread that owns the device's queue meanwhile.
 * Lifetime: free it before its device.
 */
#ifndef SL_DEVICE_TRANSFER_H
#define SL_DEVICE_TRANSFER_H

#include <stdbool.h>

#include "base/status.h"
#include "device/route.h"
#include "sluice/device.h"
#include "sluice/map.h"

/* Bytes of a file and where they go. */
typedef struct sl__piece {
    const sl_map *map;
    uint64_t offset; /* in the file */
    uint64_t n_bytes;
    sl_buffer *buffer;
    uint64_t buffer_offset;
} sl__piece;

/*
 * Pieces that arrive together. Between consecutive pieces of one buffer, a gap smaller than the device's
 * alignment is padding: it may be overwritten with zeros.
 */
typedef struct sl__slice {
    const sl__piece *pieces;
    size_t n_pieces;
    sl_event *arrived; /* recorded behind the last byte; may be NULL */
} sl__slice;

typedef struct sl__transfer sl__transfer;

typedef int (*sl__read_fn)(
        void *ud, const sl_map *map, void *buf, uint64_t offset, size_t n_bytes, sl_error *reterr);

typedef struct sl__transfer_opts {
    sl__route route;         /* 0 = SL__ROUTE_AUTO */
    size_t ring_bytes;       /* of all slots, unless slot_bytes says it; 0 = 64 MiB */
    size_t n_slots;          /* 0 = 8 more than threads, at least 16 */
    size_t slot_bytes;       /* 0 = what ring_bytes leaves to each */
    size_t n_threads;        /* 0 = one for every other processor, at most 8; none instead of one */
    uint64_t window_bytes;   /* 0 = 32 MiB; a multiple of the page */
    uint64_t register_bytes; /* at most registered, and so locked in memory, at once; 0 = 512 MiB */
    bool keeps_windows;      /* they stay registered after a run: see sl__transfer_unregister */
    bool is_threadless;      /* the thread of the run fills the slots itself */
    sl__read_fn read;        /* NULL = sl_map_pread */
    void *read_ud;
    uint64_t (*now_ns)(void *ud); /* NULL = sl__now_ns; measures the routes */
    void *now_ud;
} sl__transfer_opts;

/*
 * Makes the ring, its events and its threads. NULL opts = all defaults. If the device pins no memory the ring
 * is plain memory (stats say so).
 * Errors: SL_EINVAL (over 4096 slots or 256 threads), SL_ENOMEM, those of sl_event_create and sl_device_describe.
 */
int sl__transfer_create(sl_device *device, const sl__transfer_opts *opts,
        sl__transfer **ret_transfer, sl_error *reterr) SL_MUST_CHECK;

/* Unregisters, joins the threads, frees, and sets *transfer to NULL. Accepts NULL. No run is going on. */
void sl__transfer_free(sl__transfer **transfer);

/* Unregisters what keeps_windows left of a mapping, before it is closed. No run is going on. */
void sl__transfer_unregister(sl__transfer *transfer, const sl_map *map);

/* What a run asks and tells; zeroed = nothing. Called in the thread of the run, without a lock. */
typedef struct sl__transfer_hooks {
    bool (*is_cancelled)(void *ud); /* asked before each copy */
    /* Slice i has arrived: called in order, once each, only for slices whose bytes are on the device. */
    void (*arrived)(void *ud, size_t i_slice);
    void *ud;
} sl__transfer_hooks;

/*
 * Moves the slices in order and returns when all have arrived. At the end the files are checked once more, so
 * that bytes of a file that changed meanwhile are an error and not a result. On failure, slices that were
 * reported as arrived have arrived; the content of the others is undefined.
 * Errors: SL_ECANCELLED, SL_ECHANGED and SL_EIO (the file), SL_EINVAL (a piece outside its file or buffer), and those
 * of sl_buffer_upload and sl_event_wait. Of several errors, that of the earliest bytes.
 */
int sl__transfer_run(sl__transfer *transfer, const sl__slice *slices, size_t n_slices,
        const sl__transfer_hooks *hooks, sl_error *reterr) SL_MUST_CHECK;

typedef struct sl__transfer_stats {
    sl__route route; /* chosen, or asked for; SL__ROUTE_AUTO until it is chosen */
    double bytes_per_s[SL__ROUTE_COUNT]; /* measured; 0 = not yet */
    uint64_t n_runs;
    uint64_t n_bytes; /* that arrived, by all routes */
    uint64_t route_bytes[SL__ROUTE_COUNT];
    uint64_t n_uploads;
    uint64_t n_waits;   /* for events */
    uint64_t n_stalls;  /* times that nothing was in flight while slots were being filled */
    uint64_t n_fills;   /* of slots */
    uint64_t n_windows; /* registered */
    uint64_t ring_bytes;
    bool is_pinned; /* the ring */
} sl__transfer_stats;
void sl__transfer_get_stats(const sl__transfer *transfer, sl__transfer_stats *ret);

#endif
