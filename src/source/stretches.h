/*
 * How the ranges of a file are read so that nothing outside them is: in the middle of a range the kernel reads
 * ahead by itself, fast and into large pieces of memory, but it also reads around the first page that is missing
 * and on behind the last. So the head and the tail of a range, longer than what it reads around and ahead, are
 * asked for exactly before anything of the range is touched, and the middle comes first, while they are read. A
 * range that has no middle is asked for exactly as a whole. Where the file begins or ends with the range there is nothing
 * beside it to read: a whole file is read in order, by the kernel's read-ahead alone.
 *
 * Pure functions.
 */
#ifndef SL_SOURCE_STRETCHES_H
#define SL_SOURCE_STRETCHES_H

#include "base/status.h"
#include "sluice/ranges.h"

typedef struct sl__stretch {
    sl_range bytes;  /* touched in order */
    sl_range ask[2]; /* asked for before; empty = nothing */
} sl__stretch;

/* Zeroed memory is empty. */
typedef struct sl__stretches {
    sl__stretch *items;
    size_t n;
} sl__stretches;

/* Cuts whole pages of a file into stretches; head and tail are whole pages too. Errors: SL_ENOMEM. */
int sl__stretches_make(const sl_ranges *pages, uint64_t file_bytes, uint64_t head_bytes,
        uint64_t tail_bytes, sl__stretches *ret_stretches, sl_error *reterr) SL_MUST_CHECK;
void sl__stretches_done(sl__stretches *stretches);

#endif
