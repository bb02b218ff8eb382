/* What each unit of an S2 model holds. Pure. */
#ifndef CLI_INSPECT_UNITS_H
#define CLI_INSPECT_UNITS_H

#include <stdbool.h>
#include <stdint.h>

#include "s2/units.h"
#include "sluice/model.h"

#define UNIT_MAX_TYPES 64 /* ggml type numbers are below */

/* Tensors coarser than they should be (type_floor_bits): how many, and one of them. */
typedef struct unit_coarse {
    uint64_t n;
    const sl_tensor *first;
} unit_coarse;

typedef struct unit_summary {
    uint64_t n_tensors;
    uint64_t n_bytes;
    uint64_t n_zero_size;
    uint64_t n_lazy;
    uint64_t lazy_bytes;
    uint64_t n_of_type[UNIT_MAX_TYPES];
    unit_coarse coarse;
} unit_summary;

typedef struct model_summary {
    unit_summary units[S2_UNIT_COUNT];
    uint64_t n_bytes;
} model_summary;

/* Name of a ggml type number, "unknown" for one that is none. */
const char *unit_type_name(uint32_t type);

/* True for tables that are gathered row by row and for tensors over 4 GiB: they are never populated. */
bool unit_tensor_is_lazy(const sl_gguf_tensor *tensor);

/*
 * Bits a weight that a unit should keep: below, speech suffers (a coarse fast AR no longer ends cleanly, a
 * coarse codec is noisy). 0 = any.
 */
unsigned unit_floor_bits(s2_unit_id id);

void unit_summarize(const sl_model *model, model_summary *ret);

#endif
