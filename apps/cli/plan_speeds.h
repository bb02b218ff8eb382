/*
 * Speeds for predicted times, and where they come from: given, of a simulation, or measured in a trace. Pure.
 */
#ifndef CLI_PLAN_SPEEDS_H
#define CLI_PLAN_SPEEDS_H

#include "plan_actual.h"

typedef struct plan_speeds {
    double link_bytes_per_s; /* 0 = not known */
    const char *link_from;   /* static */
    double frame_seconds;    /* of generating and decoding a frame; 0 = not known */
    const char *frame_from;
} plan_speeds;

/* The link that the text of a simulated device says ("sim:4G,link=12G"), 0 for any other text and for none. */
double plan_speeds_of_sim(const char *device);

/*
 * Fills what is not known from a trace of a request of n_frames: bytes by the time of their loads, and the time of the
 * phases without waits by the frames.
 */
void plan_speeds_measure(plan_speeds *speeds, const plan_actual *actual, uint64_t n_frames);

#endif
