/* When an idle server sleeps how deeply: "60s:1,300s:2,900s:3". Pure. */
#ifndef SERVER_SLEEP_PLAN_H
#define SERVER_SLEEP_PLAN_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

#define SLEEP_LEVEL_MOST 3u

typedef struct sleep_plan {
    uint64_t after_ns[SLEEP_LEVEL_MOST +
                      1]; /* idle time before level i; 0 = never. [0] is not used */
} sleep_plan;

/*
 * Reads a list of TIME:LEVEL; TIME is a number with ms, s (also without a unit), m or h, and longer for deeper levels;
 * "never" is a list of none.
 * Errors: SL_EINVAL names what is wrong.
 */
int sleep_plan_parse(const char *text, sleep_plan *ret_plan, sl_error *reterr) SL_MUST_CHECK;

/* Reads one TIME, which may be 0. Errors: SL_EINVAL; `what` names the option. */
int duration_parse(
        const char *text, const char *what, uint64_t *ret_ns, sl_error *reterr) SL_MUST_CHECK;

/* The deepest level that idle_ns asks for, or 0. */
unsigned sleep_plan_level(const sleep_plan *plan, uint64_t idle_ns);

/* Idle time at which a level above `level` is due next, or UINT64_MAX. */
uint64_t sleep_plan_next_ns(const sleep_plan *plan, unsigned level);

#endif
