#include "device/route.h"

#include <stddef.h>

enum {
    TRIES = 2,
    HOPE = 4 /* one that was so many times slower is not tried again; the first one also pays for fresh pages */
};

/* From the safest on: pread cannot fault, and costs neither a page table nor locked pages. */
static const sl__route by_preference[] = {
        SL__ROUTE_PREAD, SL__ROUTE_MEMCPY, SL__ROUTE_PLAIN, SL__ROUTE_REGISTERED};
static const size_t n_routes = sizeof by_preference / sizeof by_preference[0];

const char *sl__route_name(sl__route route)
{
    static const char *const names[SL__ROUTE_COUNT] = {
            [SL__ROUTE_AUTO] = "auto",
            [SL__ROUTE_PLAIN] = "plain",
            [SL__ROUTE_PREAD] = "pread",
            [SL__ROUTE_MEMCPY] = "memcpy",
            [SL__ROUTE_REGISTERED] = "registered",
    };
    return (unsigned)route < SL__ROUTE_COUNT ? names[route] : "unknown";
}

/* Whether a second try could make it the fastest. */
static bool is_hopeful(const sl__route_choice *choice, sl__route route)
{
    double best = 0;
    for (size_t i = 0; i < n_routes; i++) {
        double speed = choice->bytes_per_s[by_preference[i]];
        best = speed > best ? speed : best;
    }
    return choice->n_tries[route] == 0 || choice->bytes_per_s[route] * HOPE >= best;
}

sl__route sl__route_to_try(const sl__route_choice *choice, const bool possible[SL__ROUTE_COUNT])
{
    for (unsigned n = 0; n < TRIES; n++) {
        for (size_t i = 0; i < n_routes; i++) {
            sl__route route = by_preference[i];
            if (possible[route] && choice->n_tries[route] <= n && is_hopeful(choice, route)) {
                return route;
            }
        }
    }
    return SL__ROUTE_AUTO;
}

void sl__route_measured(sl__route_choice *choice, sl__route route, uint64_t n_bytes, uint64_t ns)
{
    /* Faster than the clock can tell: one tick. */
    double seconds = (double)(ns > 0 ? ns : 1) / 1e9;
    double speed = (double)n_bytes / seconds;
    choice->n_tries[route]++;
    if (speed > choice->bytes_per_s[route]) {
        choice->bytes_per_s[route] = speed;
    }
}

sl__route sl__route_best(const sl__route_choice *choice, const bool possible[SL__ROUTE_COUNT])
{
    sl__route best = SL__ROUTE_PREAD;
    double best_speed = possible[best] ? choice->bytes_per_s[best] : 0;
    for (size_t i = 0; i < n_routes; i++) {
        sl__route route = by_preference[i];
        if (possible[route] && choice->bytes_per_s[route] > 1.05 * best_speed) {
            best = route;
            best_speed = choice->bytes_per_s[route];
        }
    }
    return best;
}
