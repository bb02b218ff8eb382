/*
 * What the shim is told, through the environment: it lives in a program that knows nothing of it, and in that
 * program's children.
 *
 *   SLUICE_POPULATE       auto (default), all (very large tensors too), off (MAP_POPULATE is still taken off)
 *   LLAMA_MMAP_POPULATE   0 is off, where SLUICE_POPULATE is not set
 *   SLUICE_RUN_RAM        bytes, instead of the budget derived from the machine
 *   SLUICE_RUN_LAZY_OVER  bytes; larger tensors are left out
 *   SLUICE_RUN_WAIT       1: populate before the program gets its mapping; else beside it
 *   SLUICE_RUN_QUIET      1: only what went wrong is said
 */
#ifndef PRELOAD_SETTINGS_H
#define PRELOAD_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "sluice/ram.h"

#define SHIM_ENV_POPULATE  "SLUICE_POPULATE"
#define SHIM_ENV_RAM       "SLUICE_RUN_RAM"
#define SHIM_ENV_LAZY_OVER "SLUICE_RUN_LAZY_OVER"
#define SHIM_ENV_WAIT      "SLUICE_RUN_WAIT"
#define SHIM_ENV_QUIET     "SLUICE_RUN_QUIET"

typedef struct shim_settings {
    sl_ram_opts ram;
    uint64_t lazy_over_bytes;
    bool is_off;
    bool is_waiting;
    bool is_quiet;
    const char *bad; /* a variable whose value is no number and was left out; NULL = none */
} shim_settings;

/* Reads the environment. */
shim_settings shim_settings_read(void);

#endif
