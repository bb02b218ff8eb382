/*
 * Writes a synthetic model's file: keys that were put before, and tensors of seeded noise.
 *
 * The noise of a tensor is one tile of about a million values, repeated from a place that depends on the seed and the
 * tensor, so that gigabytes are written at the speed of the disk.
 *
 * Threads: any, one call at a time for a path.
 */
#ifndef S2_MODEL_SYNTH_NOISE_H
#define S2_MODEL_SYNTH_NOISE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "engine/model/synth_list.h"
#include "source/gguf_write.h"

typedef struct s2_synth_noise {
    uint64_t seed;
    bool (*should_stop)(void); /* asked before each tensor; true ends it. NULL = never */
} s2_synth_noise;

/*
 * Puts the list's tensors and writes everything, atomically. Errors: SL_EINVAL (a type that does not fit the row
 * length, or what a put found), SL_ECANCELLED, those of files; `path` is as it was then.
 */
int s2_synth_noise_write(const s2_synth_noise *noise, sl__gguf_writer *w, const s2_synth_list *list,
        const char *path, sl_error *reterr) SL_MUST_CHECK;

#endif
