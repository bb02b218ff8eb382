/* What the server says about itself: /health, /metrics, /residency; and /sleep, /wake. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "app.h"
#include "base/mem.h"
#include "os/os_clock.h"
#include "os/os_process.h"
#include "url.h"

static bool is_ready(app *a)
{
    return worker_get_state(a->worker) == WORKER_READY && !atomic_load(&a->is_stopping);
}

static const char *state_of(app *a)
{
    return atomic_load(&a->is_stopping) ? "stopping"
                                        : worker_state_name(worker_get_state(a->worker));
}

static void put_queue(app *a, sl__json *json)
{
    sl__json_key(json, "queue");
    sl__json_object(json);
    sl__json_put_u64(json, "running", worker_is_busy(a->worker) ? 1 : 0);
    sl__json_put_u64(json, "waiting", atomic_load(job_queue_n_waiting(a->queue)));
    sl__json_put_u64(json, "limit", job_queue_most(a->queue));
    sl__json_end(json);
}

/* Wanted and actual place of each unit: compute never moves without a word. */
static void put_placement(app *a, sl__json *json)
{
    speaker_status status;
    worker_get_status(a->worker, &status);
    sl__json_key(json, "placement");
    sl__json_array(json);
    for (size_t i = 0; i < status.n_units; i++) {
        const speaker_unit *u = &status.units[i];
        sl__json_object(json);
        sl__json_put_cstr(json, "unit", u->name);
        sl__json_put_cstr(json, "state", u->state);
        sl__json_put_cstr(json, "wanted", u->wanted);
        sl__json_put_cstr(json, "actual", *u->actual ? u->actual : NULL);
        sl__json_end(json);
    }
    sl__json_end(json);
}

static void put_engine(app *a, sl__json *json)
{
    s2_engine_info info = worker_get_info(a->worker);
    sl__json_put_u64(json, "sample_rate", info.sample_rate);
    sl__json_put_u64(json, "frame_samples", info.frame_samples);
    sl__json_put_u64(json, "threads", info.n_threads);
}

void api_health(app *a, const http_request *request, reply *answer)
{
    sl__json json = {0};
    sl_error err = {0};
    (void)request;
    sl__json_object(&json);
    sl__json_put_cstr(&json, "status", is_ready(a) ? "ok" : state_of(a));
    sl__json_put_bool(&json, "live", true);
    sl__json_put_bool(&json, "ready", is_ready(a));
    sl__json_put_cstr(&json, "model", a->opts.model_name);
    sl__json_put_cstr(&json, "version", a->opts.version);
    sl__json_put_u64(&json, "uptime_seconds", (sl__now_ns() - a->begin_ns) / 1000000000u);
    sl__json_put_u64(&json, "sleep_level", worker_sleep_level(a->worker));
    put_queue(a, &json);
    put_engine(a, &json);
    put_placement(a, &json);
    if (worker_get_state(a->worker) == WORKER_FAILED) {
        worker_get_error(a->worker, &err);
        sl__json_put_cstr(&json, "error", err.msg);
    }
    sl__json_end(&json);
    if (!is_ready(a)) {
        reply_add_header(answer, "Retry-After", "1");
    }
    api_send_json(answer, is_ready(a) ? 200 : 503, &json);
}

/* Of the units that moved: what is used in the file has neither speed nor stalls. */
static void put_load_metrics(const speaker_status *status, metrics_text *text)
{
    metrics_put(text, "# HELP sluice_unit_load_bytes_per_second Speed of the latest load.\n"
                      "# TYPE sluice_unit_load_bytes_per_second gauge\n");
    for (size_t i = 0; i < status->n_units; i++) {
        const speaker_unit *u = &status->units[i];
        if (u->load_bytes_per_s > 0) {
            metrics_put(text, "sluice_unit_load_bytes_per_second{unit=\"%s\",route=\"%s\"} %.0f\n",
                    u->name, u->route, u->load_bytes_per_s);
        }
    }
    metrics_put(text, "# HELP sluice_unit_load_stalls Times that the link waited for the files in "
                      "the latest load.\n# TYPE sluice_unit_load_stalls gauge\n");
    for (size_t i = 0; i < status->n_units; i++) {
        const speaker_unit *u = &status->units[i];
        if (u->load_bytes_per_s > 0) {
            metrics_put(text, "sluice_unit_load_stalls{unit=\"%s\",route=\"%s\"} %" PRIu64 "\n",
                    u->name, u->route, u->load_stalls);
        }
    }
}

static void put_unit_metrics(app *a, metrics_text *text)
{
    speaker_status status;
    worker_get_status(a->worker, &status);
    if (status.n_units + status.n_places == 0) {
        return;
    }
    metrics_put(text, "# HELP sluice_unit_resident 1 while the unit is on its device.\n"
                      "# TYPE sluice_unit_resident gauge\n");
    for (size_t i = 0; i < status.n_units; i++) {
        const speaker_unit *u = &status.units[i];
        metrics_put(text, "sluice_unit_resident{unit=\"%s\",wanted=\"%s\",actual=\"%s\"} %d\n",
                u->name, u->wanted, u->actual, strcmp(u->state, "resident") == 0);
    }
    metrics_put(text, "# HELP sluice_unit_loads_total Loads begun.\n"
                      "# TYPE sluice_unit_loads_total counter\n");
    for (size_t i = 0; i < status.n_units; i++) {
        metrics_put(text, "sluice_unit_loads_total{unit=\"%s\"} %" PRIu64 "\n",
                status.units[i].name, status.units[i].n_loads);
    }
    put_load_metrics(&status, text);
    metrics_put(text, "# HELP sluice_place_bytes Device memory by the ledger.\n"
                      "# TYPE sluice_place_bytes gauge\n");
    for (size_t i = 0; i < status.n_places; i++) {
        const speaker_place *p = &status.places[i];
        metrics_put(text,
                "sluice_place_bytes{place=\"%s\",kind=\"used\"} %" PRIu64
                "\nsluice_place_bytes{place=\"%s\",kind=\"peak\"} %" PRIu64
                "\nsluice_place_bytes{place=\"%s\",kind=\"budget\"} %" PRIu64 "\n",
                p->name, p->used_bytes, p->name, p->peak_bytes, p->name, p->budget_bytes);
    }
}

void api_metrics(app *a, const http_request *request, reply *answer)
{
    sl__rss rss = sl__process_rss();
    metrics_text text = {0};
    metrics_now now = {
            .n_waiting = atomic_load(job_queue_n_waiting(a->queue)),
            .n_waiting_most = job_queue_most(a->queue),
            .is_busy = worker_is_busy(a->worker),
            .is_ready = is_ready(a),
            .sleep_level = worker_sleep_level(a->worker),
            .n_connections = atomic_load(&a->n_open),
            .uptime_ns = sl__now_ns() - a->begin_ns,
            .anon_bytes = rss.anon_bytes,
            .file_bytes = rss.file_bytes,
    };
    (void)request;
    metrics_write(&a->metrics, &now, &text);
    put_unit_metrics(a, &text);
    if (text.is_dead) {
        api_fail(answer, 503, NULL, NULL, "out of memory");
    } else {
        reply_whole(answer, 200, "text/plain; version=0.0.4; charset=utf-8", text.buf, text.n);
    }
    metrics_text_done(&text);
}

static void write_residency(app *a, sl__json *json)
{
    sl__json_object(json);
    sl__json_put_cstr(json, "status", is_ready(a) ? "ok" : state_of(a));
    sl__json_put_u64(json, "sleep_level", worker_sleep_level(a->worker));
    put_queue(a, json);
    sl__json_put_cstr(json, "activity", worker_activity(a->worker));
    sl__json_put_u64(json, "frames_total", atomic_load(&a->metrics.n_frames));
    (void)worker_describe(a->worker, json);
    sl__json_end(json);
}

void api_residency(app *a, const http_request *request, reply *answer)
{
    sl__json json = {0};
    const char *accept = request->header(request->ud, "Accept");
    if (!accept || !strstr(accept, "text/event-stream")) {
        write_residency(a, &json);
        api_send_json(answer, 200, &json);
        return;
    }
    reply_add_header(answer, "X-Accel-Buffering", "no");
    reply_begin(answer, 200, "text/event-stream");
    if (!feed_add(a->feed, answer)) {
        reply_add_header(answer, "Retry-After", "10");
        api_fail(answer, 429, NULL, "too_many_listeners",
                "%u listeners are the limit; try again later", FEED_MOST);
    }
}

void app_tick(void *ud)
{
    app *a = ud;
    uint64_t now_ns = sl__now_ns();
    atomic_fetch_add(&a->metrics.n_cancelled, job_queue_sweep(a->queue));
    if (a->opts.limits.queue_ns > 0) {
        sl_error err = {0};
        sl__fail(&err, SL_EDEVICE, "the queue is too long: this request has waited for %.0f s",
                (double)a->opts.limits.queue_ns * 1e-9);
        app_expire(a, now_ns - a->opts.limits.queue_ns, &err);
    }
    if (feed_n(a->feed) > 0) {
        sl__json json = {0};
        size_t n = 0;
        write_residency(a, &json);
        const char *text = sl__json_text(&json, &n);
        if (text) {
            feed_send(a->feed, text, n, now_ns);
        }
        sl__json_done(&json);
    }
}

static void submit_sleep(app *a, unsigned level, reply *answer)
{
    job *j = NULL;
    if (job_create(JOB_SLEEP, answer, &j, NULL) < 0) {
        api_fail(answer, 503, NULL, NULL, "out of memory");
        return;
    }
    j->level = level;
    app_submit(a, j);
}

void api_sleep(app *a, const http_request *request, reply *answer)
{
    char level[8] = "1";
    bool is_given = url_query_get(request->query, "level", level, sizeof level);
    if ((!is_given && strstr(request->query, "level")) || strlen(level) != 1 || level[0] < '1' ||
            level[0] > '3') {
        api_fail(answer, 400, "level", "invalid_value",
                "level is 1 (scratch is given back), 2 (weights leave the devices) or 3 (the page "
                "cache is dropped too)");
        return;
    }
    submit_sleep(a, (unsigned)(level[0] - '0'), answer);
}

void api_wake(app *a, const http_request *request, reply *answer)
{
    (void)request;
    submit_sleep(a, 0, answer);
}
