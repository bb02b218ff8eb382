/*
 * What the server needs of an engine, as a table: the S2 engine (engine_state.h), or a made-up one in tests that is
 * slow, fast or fails on order.
 *
 * Threads: open, close, speak, make_voice, sleep and set_stop by the worker alone; status and describe by any thread
 * between a successful open and close, one at a time, also while the others work.
 */
#ifndef SERVER_SPEAKER_H
#define SERVER_SPEAKER_H

#include "base/json_writer.h"
#include "base/status.h"
#include "s2/engine.h"

/* Memory and moves as numbers, for metrics. */
typedef struct speaker_place {
    const char *name;
    uint64_t budget_bytes; /* 0 = none */
    uint64_t used_bytes;
    uint64_t peak_bytes;
} speaker_place;

typedef struct speaker_unit {
    const char *name;
    const char *state;
    const char *wanted; /* names of places */
    const char *actual; /* "" while absent */
    uint64_t n_bytes;
    uint64_t n_loads;
    /* Of the latest load; NULL and 0 before it, and 0 if it moved nothing. */
    const char *route;
    double load_bytes_per_s;
    uint64_t load_stalls;
} speaker_unit;

#define SPEAKER_MAX_UNITS 16u

typedef struct speaker_status {
    size_t n_units;
    speaker_unit units[SPEAKER_MAX_UNITS];
    size_t n_places;
    speaker_place places[S2_MAX_PLACES];
} speaker_status;

typedef struct speaker_ops {
    int (*open)(void *ud, sl_error *reterr);
    void (*close)(void *ud);
    s2_engine_info (*info)(void *ud);
    /* Before open. Asked in the middle of the work, opening too. */
    void (*set_stop)(void *ud, bool (*should_stop)(void *stop_ud), void *stop_ud);
    int (*speak)(void *ud, const s2_speak_opts *opts, s2_stats *ret_stats, sl_error *reterr);
    int (*make_voice)(void *ud, const float *samples, size_t n_samples, const char *text,
            s2_voice *ret_voice, sl_error *reterr);
    /* 0 = awake and ready at once, 1..3 = ever less memory. */
    int (*sleep)(void *ud, unsigned level, sl_error *reterr);
    /* Strings live as long as the engine. */
    void (*status)(void *ud, speaker_status *ret_status);
    /* Members of an object about units, places and the plan, for /residency. */
    void (*describe)(void *ud, sl__json *json);
} speaker_ops;

typedef struct speaker {
    const speaker_ops *ops;
    void *ud;
} speaker;

#endif
