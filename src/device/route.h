/*
 * The routes of a transfer, and the choice among them. Pure.
 */
#ifndef SL_DEVICE_ROUTE_H
#define SL_DEVICE_ROUTE_H

#include <stdbool.h>
#include <stdint.h>

typedef enum sl__route {
    SL__ROUTE_AUTO, /* not chosen yet */
    SL__ROUTE_PLAIN,
    SL__ROUTE_PREAD,
    SL__ROUTE_MEMCPY,
    SL__ROUTE_REGISTERED,
    SL__ROUTE_COUNT,
} sl__route;

/* "auto", "plain", "pread", "memcpy", "registered"; "unknown" for anything else. Static string. */
const char *sl__route_name(sl__route route);

/* Measured speeds and what is left to measure. Zeroed memory = nothing measured. */
typedef struct sl__route_choice {
    double bytes_per_s[SL__ROUTE_COUNT]; /* the best so far; 0 = not measured */
    unsigned n_tries[SL__ROUTE_COUNT];
} sl__route_choice;

/*
 * The route to try next, of those that are possible (indexed by route); SL__ROUTE_AUTO if enough was measured.
 * Each is tried twice, in turns, so that one disturbance does not decide; but not again if another one was more than
 * four times as fast.
 */
sl__route sl__route_to_try(const sl__route_choice *choice, const bool possible[SL__ROUTE_COUNT]);

/* Notes that n_bytes took ns. */
void sl__route_measured(sl__route_choice *choice, sl__route route, uint64_t n_bytes, uint64_t ns);

/*
 * The fastest of the possible routes by what was measured; a route must be a twentieth faster to be preferred to
 * one that is safer or lighter (pread, then memcpy, plain, registered). pread if nothing was measured.
 */
sl__route sl__route_best(const sl__route_choice *choice, const bool possible[SL__ROUTE_COUNT]);

#endif
