/* The two ways in which `sluice inspect` shows a model. */
#ifndef CLI_INSPECT_H
#define CLI_INSPECT_H

#include <stdbool.h>
#include <stdio.h>

#include "inspect_units.h"
#include "sluice/model.h"

/* Sections of the text; without any wish the overview is files, metadata and units. */
typedef struct inspect_sections {
    bool has_metadata;
    bool has_tensors;
    bool has_units;
} inspect_sections;

void inspect_print_text(
        const sl_model *model, const model_summary *summary, inspect_sections sections, FILE *out);

/* Everything, as one JSON object. Errors: SL_ENOMEM. */
int inspect_print_json(
        const sl_model *model, const model_summary *summary, FILE *out, sl_error *reterr);

/* Text of a warning about a unit, or NULL if there is none. Writes into `buf`. */
const char *inspect_unit_warning(
        s2_unit_id id, const unit_summary *unit, char *buf, size_t buf_bytes);

#endif
