/*
 * Whether memory has become short since one began to look: what the kernel tells of stalls (PSI), and of groups
 * that ran into their limits.
 *
 *   /proc/pressure/memory, GROUP/memory.pressure   some task stood still for memory 30% of the time since the last
 *                                                  look, or all of them 10%
 *   GROUP/memory.events        high, oom or oom_kill was counted up (version 2)
 *   GROUP/memory.oom_control   under_oom, or oom_kill was counted up (version 1)
 *
 * Events named max do not count: a group full of clean cache has them all the time. Files that are not there say
 * nothing. GROUP is the folder of each limit that bounds the budget.
 *
 * Threads: one at a time.
 */
#ifndef SL_SOURCE_PRESSURE_H
#define SL_SOURCE_PRESSURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "sluice/ram.h"

/* Shares of time are taken over at least this long. */
#define SL_PRESSURE_MIN_NS UINT64_C(250000000)

typedef struct sl__pressure_place sl__pressure_place;

/* Zeroed memory watches nothing. */
typedef struct sl__pressure {
    const char *root;
    sl__pressure_place *places;
    size_t n;
    size_t cap;
    uint64_t since_ns; /* of the last look at stalls */
} sl__pressure;

/*
 * Begins to look. `root` stands for the machine, NULL or "" = this one, and is not copied; `ram` is a budget that
 * was derived there; now_ns is a monotonic clock.
 * Errors: SL_ENOMEM.
 */
int sl__pressure_begin(const char *root, const sl_ram_budget *ram, uint64_t now_ns,
        sl__pressure *ret_pressure, sl_error *reterr) SL_MUST_CHECK;
void sl__pressure_done(sl__pressure *pressure);

/* True if memory has become short; `why` then has the file and what it says. */
bool sl__pressure_rose(sl__pressure *pressure, uint64_t now_ns, char *why, size_t why_bytes);

#endif
