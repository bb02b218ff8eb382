#include "server.h"

#include <unistd.h>

#include "app.h"
#include "base/log.h"
#include "base/mem.h"
#include "os/os_clock.h"
#include "os/os_thread.h"

#define LOOK_NS   UINT64_C(20000000)
#define FLUSH_NS  UINT64_C(500000000) /* for the last bytes of answers that are complete */
#define MIB       ((size_t)1 << 20)
#define SECOND_NS UINT64_C(1000000000)

struct server {
    app app;
};

server_limits server_default_limits(void)
{
    return (server_limits){
            .text_bytes = 65536,
            .body_bytes = 32 * MIB,
            .n_waiting = 32,
            .n_connections = 256,
            .n_voices = 1000,
            .max_frames = 8192,
            .recording_seconds = 120.0,
            .buffer_bytes = 4 * MIB,
            .queue_ns = 300 * SECOND_NS,
            .stall_ns = 30 * SECOND_NS,
            .head_ns = 30 * SECOND_NS,
            .idle_seconds = 60,
    };
}

static int open_http(app *a, int listen_fd, sl_error *reterr)
{
    const server_limits *limits = &a->opts.limits;
    const http_opts opts = {
            .listen_fd = listen_fd,
            .is_listener_shared = a->opts.is_listener_shared,
            .max_connections = (unsigned)limits->n_connections,
            .idle_seconds = limits->idle_seconds,
            .head_ns = limits->head_ns,
            .max_body_bytes_total = 4 * (limits->body_bytes + 8 * limits->text_bytes + MIB),
            .handler =
                    {
                            .open = app_open,
                            .begin = app_begin,
                            .handle = app_handle,
                            .done = app_done,
                            .tick = app_tick,
                            .ud = a,
                    },
            .log = a->opts.log,
    };
    return http_open(&opts, &a->http, reterr);
}

int server_open(const server_opts *opts, server **ret_server, sl_error *reterr)
{
    server *s = sl__alloc(1, sizeof *s);
    if (!s) {
        (void)close(opts->listen_fd);
        return sl__fail_nomem(reterr, sizeof *s, "a server");
    }
    app *a = &s->app;
    a->opts = *opts;
    a->begin_ns = sl__now_ns();
    atomic_init(&a->is_stopping, false);
    atomic_init(&a->next_id, 0);
    atomic_init(&a->n_open, 0);
    atomic_init(&a->n_held, 0);
    int r = job_queue_create(opts->limits.n_waiting, &a->queue, reterr);
    if (r == 0) {
        r = feed_create(&a->feed, reterr);
    }
    if (r == 0) {
        r = worker_create(&a->opts, a->queue, &a->metrics, &a->worker, reterr);
    }
    if (r < 0) {
        (void)close(opts->listen_fd);
    } else {
        r = open_http(a, opts->listen_fd, reterr);
    }
    if (r < 0) {
        server_close(&s);
        return r;
    }
    *ret_server = s;
    return SL_OK;
}

bool server_is_ready(server *s)
{
    return worker_get_state(s->app.worker) == WORKER_READY;
}

bool server_has_failed(server *s, sl_error *ret_error)
{
    bool has = worker_get_state(s->app.worker) == WORKER_FAILED;
    if (has) {
        worker_get_error(s->app.worker, ret_error);
    }
    return has;
}

void app_expire(app *a, uint64_t before_ns, const sl_error *err)
{
    for (;;) {
        job *j = job_queue_take_older(a->queue, before_ns);
        if (!j) {
            break;
        }
        atomic_fetch_add(&a->metrics.n_expired, 1);
        api_fail_error(&a->opts, j->answer, j->dialect, NULL, err);
        job_free(&j);
    }
}

/* Lets what runs go on until the deadline; true if it came to its end. */
static bool wait_until_idle(app *a, uint64_t deadline_ns)
{
    while (worker_is_busy(a->worker) && sl__now_ns() < deadline_ns) {
        sl__sleep_ns(LOOK_NS);
    }
    return !worker_is_busy(a->worker);
}

static void stop_in_order(app *a)
{
    sl_error err = {0};
    sl__fail(&err, SL_EDEVICE, "the server is stopping; send the request again");
    atomic_store(&a->is_stopping, true);
    if (a->http) {
        http_stop_listening(a->http);
    }
    job_queue_close(a->queue);
    app_expire(a, UINT64_MAX, &err);
    if (!wait_until_idle(a, sl__now_ns() + a->opts.stop_ns)) {
        sl__log(&a->opts.log, SL_LOG_WARN, "a request is cut: it did not end in time");
    }
    worker_cut(a->worker);
    feed_close(a->feed);
    /* What is complete is still read by its clients. */
    uint64_t flushed_ns = sl__now_ns() + FLUSH_NS;
    while (atomic_load(&a->n_open) > 0 && sl__now_ns() < flushed_ns) {
        sl__sleep_ns(LOOK_NS);
    }
}

void server_close(server **s)
{
    if (!s || !*s) {
        return;
    }
    app *a = &(*s)->app;
    if (a->worker) {
        stop_in_order(a);
    }
    http_close(&a->http);
    worker_free(&a->worker);
    feed_free(&a->feed);
    job_queue_free(&a->queue);
    sl__free(*s);
    *s = NULL;
}
