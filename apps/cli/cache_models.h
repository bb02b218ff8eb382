/* What warm, drop and cached share: the models of a command line, and the ranges of chosen units. */
#ifndef CLI_CACHE_MODELS_H
#define CLI_CACHE_MODELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "inspect_units.h"
#include "sluice/model.h"
#include "sluice/ranges.h"

#define CACHE_UNITS_HELP                                                                           \
    "Units, separated by commas: embed, slow, fast, codec.encoder, codec.quantizer, "              \
    "codec.decoder, codec (all three), none (tensors of no unit)"

/* A set of units: bit 1 << s2_unit_id. */
typedef unsigned unit_mask;

/* Reads a list of units; false after one line about what is wrong. */
bool cache_units_parse(const char *command, const char *list, unit_mask *ret_mask);

typedef struct cache_models {
    sl_model **items;
    size_t n;
} cache_models;

/*
 * Opens every model of the line once, however many of its shards are named.
 * Errors: those of sl_model_open; nothing is left open.
 */
int cache_models_open(char **paths, size_t n, cache_models *ret_models, sl_error *reterr);
void cache_models_close(cache_models *models);

/* Which tensors a command means. */
typedef struct cache_choice {
    unit_mask mask;           /* 0 = every unit, or everything if the model has no units */
    bool has_lazy;            /* tables that are gathered, and large tensors, too */
    uint64_t lazy_over_bytes; /* what is large */
} cache_choice;

/* True if a model has tensors of a unit of S2. */
bool cache_has_units(const sl_model *model);

/* The bytes of one file of a model that are meant. Errors: SL_ENOMEM. */
int cache_ranges(const sl_model *model, uint32_t i_file, const cache_choice *choice,
        sl_ranges *ret_ranges, sl_error *reterr);

#endif
