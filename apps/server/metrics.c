#include "metrics.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/mem.h"

static const double bounds_s[METRICS_BUCKETS] = {
        0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0};

void metrics_time(metrics_times *times, uint64_t ns)
{
    double s = (double)ns * 1e-9;
    size_t i = 0;
    while (i < METRICS_BUCKETS && s > bounds_s[i]) {
        i++;
    }
    atomic_fetch_add(&times->buckets[i], 1);
    atomic_fetch_add(&times->sum_us, ns / 1000);
}

void metrics_text_done(metrics_text *text)
{
    sl__free(text->buf);
    *text = (metrics_text){0};
}

void metrics_put(metrics_text *text, const char *fmt, ...)
{
    va_list ap;
    char line[256];
    va_start(ap, fmt);
    int n = vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    if (n < 0 || (size_t)n >= sizeof line || text->is_dead ||
            !sl__grow((void **)&text->buf, &text->cap, text->n + (size_t)n + 1, 1)) {
        text->is_dead = 1;
        return;
    }
    for (int i = 0; i <= n; i++) {
        text->buf[text->n + (size_t)i] = line[i];
    }
    text->n += (size_t)n;
}

static void put_head(metrics_text *text, const char *name, const char *type, const char *help)
{
    metrics_put(text, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void put_value(
        metrics_text *text, const char *name, const char *type, const char *help, double value)
{
    put_head(text, name, type, help);
    metrics_put(text, "%s %.17g\n", name, value);
}

static void put_count(
        metrics_text *text, const char *name, const char *help, const atomic_uint_fast64_t *count)
{
    put_head(text, name, "counter", help);
    metrics_put(text, "%s %" PRIu64 "\n", name, (uint64_t)atomic_load(count));
}

static void put_times(
        metrics_text *text, const char *name, const char *help, const metrics_times *times)
{
    uint64_t n = 0;
    put_head(text, name, "histogram", help);
    for (size_t i = 0; i < METRICS_BUCKETS; i++) {
        n += atomic_load(&times->buckets[i]);
        metrics_put(text, "%s_bucket{le=\"%g\"} %" PRIu64 "\n", name, bounds_s[i], n);
    }
    n += atomic_load(&times->buckets[METRICS_BUCKETS]);
    metrics_put(text, "%s_bucket{le=\"+Inf\"} %" PRIu64 "\n", name, n);
    metrics_put(text, "%s_sum %.6f\n%s_count %" PRIu64 "\n", name,
            (double)atomic_load(&times->sum_us) * 1e-6, name, n);
}

static void put_answers(const metrics *m, metrics_text *text)
{
    static const char name[] = "sluice_http_requests_total";
    put_head(text, name, "counter", "Requests by the hundred of their status; 0 = cut before one.");
    for (unsigned i = 0; i < 6; i++) {
        metrics_put(text, "%s{status=\"%s%s\"} %" PRIu64 "\n", name,
                (const char *[]){"0", "1", "2", "3", "4", "5"}[i], i > 0 ? "xx" : "",
                (uint64_t)atomic_load(&m->answers[i]));
    }
}

static void put_now(const metrics_now *now, metrics_text *text)
{
    put_value(text, "sluice_ready", "gauge", "1 when the model is open.", now->is_ready);
    put_value(text, "sluice_busy", "gauge", "1 while the engine works.", now->is_busy);
    put_value(text, "sluice_queue_waiting", "gauge", "Requests that wait.", (double)now->n_waiting);
    put_value(text, "sluice_queue_limit", "gauge", "Requests that may wait.",
            (double)now->n_waiting_most);
    put_value(text, "sluice_sleep_level", "gauge", "0 awake, 1 to 3 ever deeper asleep.",
            now->sleep_level);
    put_value(text, "sluice_requests_open", "gauge", "Requests in work, waiting ones too.",
            (double)now->n_connections);
    put_value(text, "sluice_uptime_seconds", "gauge", "Since the start.",
            (double)now->uptime_ns * 1e-9);
    put_head(text, "sluice_memory_bytes", "gauge", "Memory of the process.");
    metrics_put(text, "sluice_memory_bytes{kind=\"private\"} %" PRIu64 "\n", now->anon_bytes);
    metrics_put(text, "sluice_memory_bytes{kind=\"file\"} %" PRIu64 "\n", now->file_bytes);
}

void metrics_write(const metrics *m, const metrics_now *now, metrics_text *text)
{
    put_now(now, text);
    put_answers(m, text);
    put_count(text, "sluice_spoken_total", "Requests spoken to the end.", &m->n_spoken);
    put_count(text, "sluice_cancelled_total", "Requests whose client went away.", &m->n_cancelled);
    put_count(text, "sluice_stalled_total", "Clients dropped because they did not read.",
            &m->n_stalled);
    put_count(text, "sluice_failed_total", "Requests that the engine refused or failed at.",
            &m->n_failed);
    put_count(text, "sluice_refused_total", "Requests refused by a full queue.", &m->n_refused);
    put_count(text, "sluice_expired_total", "Requests that waited too long.", &m->n_expired);
    put_count(text, "sluice_voices_made_total", "Voices made of recordings.", &m->n_voices_made);
    put_count(text, "sluice_frames_total", "Frames generated.", &m->n_frames);
    put_count(text, "sluice_sleeps_total", "Times that the engine went to sleep.", &m->n_sleeps);
    put_value(text, "sluice_audio_seconds_total", "counter", "Speech made.",
            (double)atomic_load(&m->audio_ms) * 1e-3);
    put_value(text, "sluice_busy_seconds_total", "counter", "Time that the engine worked.",
            (double)atomic_load(&m->busy_us) * 1e-6);
    put_times(text, "sluice_queue_seconds", "Time in the queue.", &m->wait);
    put_times(text, "sluice_first_audio_seconds", "From the queue to the first samples.",
            &m->first_audio);
}
