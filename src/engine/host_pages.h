/*
 * Makes the weights that are computed on in the mapping present before they are computed on, within the RAM
 * budget: opening a model then costs one fast pass over what will be used, and no page fault waits for a disk
 * in the middle of a sentence.
 *
 * Only tensors of units that are used in host memory count; tables that are gathered by row, very large
 * tensors and tensors of no unit never do. A file goes whole or not at all.
 *
 * Does not promise: that anything is populated. Too little memory is no error; one line says what happened.
 *
 * Threads: one at a time.
 */
#ifndef S2_HOST_PAGES_H
#define S2_HOST_PAGES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "s2/engine.h"
#include "s2/units.h"
#include "sluice/log.h"
#include "sluice/model.h"
#include "sluice/populate.h"
#include "source/ram_purse.h"

typedef struct s2_host_pages {
    s2_memory_opts opts;
    sl_logger log;
    sl__ram_purse purse;
    unsigned done_units;           /* bit 1 << s2_unit_id: was asked for once */
    bool (*should_stop)(void *ud); /* may be NULL */
    void *stop_ud;
} s2_host_pages;

/* Which units are about to be used; a unit that is not on the host is left to its device. */
typedef struct s2_host_units {
    unsigned mask;                                 /* bit 1 << s2_unit_id */
    bool (*is_on_host)(void *ud, s2_unit_id unit); /* NULL: every unit is */
    void *ud;
} s2_host_units;

/* What computing needs from the start; the encoder follows when a voice is made. */
#define S2_HOST_UNITS_OPEN                                                                         \
    ((1u << S2_UNIT_EMBED) | (1u << S2_UNIT_SLOW) | (1u << S2_UNIT_FAST) |                         \
            (1u << S2_UNIT_CODEC_QUANTIZER) | (1u << S2_UNIT_CODEC_DECODER))
#define S2_HOST_UNITS_VOICE (1u << S2_UNIT_CODEC_ENCODER)

/*
 * Samples the budget. Call it before the model is mapped. Zeroed memory may be passed to done.
 * Errors: SL_ENOMEM.
 */
int s2_host_pages_init(const s2_memory_opts *opts, const sl_logger *log, s2_host_pages *ret_pages,
        sl_error *reterr) SL_MUST_CHECK;
void s2_host_pages_done(s2_host_pages *pages);

/*
 * Populates the units that were not asked for before.
 * Errors: SL_ECHANGED and SL_EIO (a page of the weights cannot be read), SL_ECANCELLED, SL_ENOMEM (no memory
 * for the list of ranges; a lack of pages is no error).
 */
int s2_host_pages_populate(s2_host_pages *pages, const sl_model *model, const s2_host_units *units,
        sl_error *reterr) SL_MUST_CHECK;

#endif
