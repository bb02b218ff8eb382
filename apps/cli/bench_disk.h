/*
 * How fast the disk gives the bytes of files to threads that read side by side: what is read is thrown away.
 *
 * Nothing of a transfer is in it, neither the order of its ring nor the device, so that a route can be set against it.
 *
 * Threads: one call at a time.
 */
#ifndef CLI_BENCH_DISK_H
#define CLI_BENCH_DISK_H

#include "device/transfer.h"

typedef struct bench_disk bench_disk;

/*
 * Makes the memory of n_threads (at least 1) readers, with its pages.
 * Errors: SL_ENOMEM.
 */
int bench_disk_create(size_t n_threads, bench_disk **ret_disk, sl_error *reterr) SL_MUST_CHECK;

/* Sets *disk to NULL. Accepts NULL. */
void bench_disk_free(bench_disk **disk);

/*
 * Reads all bytes of the slices once; their buffers are not touched. The calling thread is one of the readers, and
 * asks hooks->is_cancelled (NULL = nothing) before each of its reads; of the hooks it takes no other.
 * Errors: SL_ECANCELLED, SL_ENOMEM (no more threads), those of sl_map_pread. Of several, the one that came first.
 */
int bench_disk_run(bench_disk *disk, const sl__slice *slices, size_t n_slices,
        const sl__transfer_hooks *hooks, sl_error *reterr) SL_MUST_CHECK;

#endif
