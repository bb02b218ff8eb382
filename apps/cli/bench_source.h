/* What `sluice bench` moves: the tensors of a model, or a file made for it that has no name in any folder. */
#ifndef CLI_BENCH_SOURCE_H
#define CLI_BENCH_SOURCE_H

#include "bench_transfer.h"
#include "sluice/model.h"

/* Zeroed memory is "none". */
typedef struct bench_source {
    sl_model *model;
    sl_map *file;
    int fd; /* of `file` */
    bench_range *ranges;
    size_t n_ranges;
} bench_source;

/* The tensors of a model in the order of the file. Errors: those of sl_model_open. */
int bench_source_model(const char *path, bench_source *ret, sl_error *reterr) SL_MUST_CHECK;

/*
 * Makes a file of n_bytes of noise in $TMPDIR or /var/tmp, as tensors of 64 MiB. Its name is removed before the first
 * byte is written, so that nothing is left behind however the program ends.
 * Errors: SL_ENOSPC, SL_EIO (with the folder), SL_ECANCELLED.
 */
int bench_source_noise(uint64_t n_bytes, bool (*is_cancelled)(void *ud), void *ud,
        bench_source *ret, sl_error *reterr) SL_MUST_CHECK;

/* Reads all of it into the page cache, or drops it from there. Errors: those of sl_page_cache_warm and _drop. */
int bench_source_warm(const bench_source *source, sl_error *reterr) SL_MUST_CHECK;
int bench_source_drop(const bench_source *source, sl_error *reterr) SL_MUST_CHECK;

/* Closes it; the file is gone then. */
void bench_source_done(bench_source *source);

#endif
