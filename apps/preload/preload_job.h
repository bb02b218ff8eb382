/*
 * Making pages of one mapping of the program present: read into the page cache through a mapping of our own, then
 * entered into the program's page table. The program may unmap any of it meanwhile.
 *
 * Does not touch a page itself and installs no handler: the process and its signals are the program's.
 */
#ifndef PRELOAD_PRELOAD_JOB_H
#define PRELOAD_PRELOAD_JOB_H

#include <stdbool.h>

#include "live_map.h"
#include "settings.h"
#include "sluice/map.h"
#include "sluice/ranges.h"
#include "source/ram_purse.h"

typedef struct shim_job {
    struct shim_job *next;      /* in a queue */
    struct shim_job *next_live; /* of all jobs */
    sl_map *map;                /* our own */
    sl_ranges want;
    live_map live; /* the program's; under the lock of live_jobs_* */
} shim_job;

/* Takes over map and ranges, which are emptied. NULL: out of memory, nothing was taken. */
shim_job *shim_job_create(sl_map **map, sl_ranges *want, const live_map *live);
void shim_job_free(shim_job *job);

/* Populates within the purse, and says how it went. One job at a time for a purse. */
void shim_job_run(shim_job *job, sl__ram_purse *purse, const shim_settings *settings);

/* Addresses that are about to be unmapped: no job touches them once this has returned. */
void shim_jobs_lose(live_part part);

/* Around a fork; in the child there are no jobs. */
void shim_jobs_lock(void);
void shim_jobs_unlock(void);
void shim_jobs_forget(void);

#endif
