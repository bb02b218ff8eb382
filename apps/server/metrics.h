/*
 * Counters of the server and their Prometheus text.
 *
 * Threads: any; counters are atomic. Zeroed memory is a valid start.
 */
#ifndef SERVER_METRICS_H
#define SERVER_METRICS_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define METRICS_BUCKETS 10

/* Times in seconds up to a bound, counted by bucket. */
typedef struct metrics_times {
    atomic_uint_fast64_t buckets[METRICS_BUCKETS + 1]; /* the last one is beyond all bounds */
    atomic_uint_fast64_t sum_us;
} metrics_times;

typedef struct metrics {
    atomic_uint_fast64_t answers[6]; /* by hundred of the HTTP status; [0] = none was sent */
    atomic_uint_fast64_t n_spoken;   /* requests that ended with their last sample */
    atomic_uint_fast64_t n_cancelled;
    atomic_uint_fast64_t n_stalled; /* clients dropped for not reading */
    atomic_uint_fast64_t n_failed;
    atomic_uint_fast64_t n_refused; /* queue full */
    atomic_uint_fast64_t n_expired; /* waited too long */
    atomic_uint_fast64_t n_voices_made;
    atomic_uint_fast64_t n_frames;
    atomic_uint_fast64_t audio_ms;
    atomic_uint_fast64_t busy_us; /* of the worker */
    atomic_uint_fast64_t n_sleeps;
    metrics_times wait;        /* in the queue */
    metrics_times first_audio; /* from the queue's end to the first samples */
} metrics;

void metrics_time(metrics_times *times, uint64_t ns);

/* What is true now rather than counted. */
typedef struct metrics_now {
    size_t n_waiting;
    size_t n_waiting_most;
    int is_busy;
    int is_ready;
    unsigned sleep_level;
    size_t n_connections;
    uint64_t uptime_ns;
    uint64_t anon_bytes;
    uint64_t file_bytes;
} metrics_now;

/* A growing text. Zeroed memory is empty; dead after a failed allocation. */
typedef struct metrics_text {
    char *buf;
    size_t n;
    size_t cap;
    int is_dead;
} metrics_text;

void metrics_put(metrics_text *text, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void metrics_write(const metrics *m, const metrics_now *now, metrics_text *text);
void metrics_text_done(metrics_text *text);

#endif
