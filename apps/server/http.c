/*
 * libmicrohttpd in one thread on epoll: from its calls to whole requests, and from answers to its responses.
 * http_conns.c keeps what it does not: deadlines, hang-ups, and who is suspended.
 */
#include "http.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <microhttpd.h>

#include "base/log.h"
#include "base/mem.h"
#include "http_conns.h"
#include "os/os_clock.h"
#include "url.h"

#define MEMORY_LIMIT 65536u
#define BLOCK_BYTES  16384u
#define DISCARD_MOST                                                                               \
    (UINT64_C(64) << 20) /* of a body that is too large, so that the client reads why */

/* A request and its answer. */
typedef struct exchange {
    http *h;
    conn *c;
    char *uri;
    char *path;
    const char *query;
    char method[16];
    enum {
        HEAD,
        BODY,
        ANSWER,
        TOO_LARGE
    } stage;
    char *body;
    size_t n_body;
    size_t cap_body;
    size_t max_body;
    uint64_t n_discarded;
    reply *answer;
    uint64_t begin_ns;
    int status;
} exchange;

struct http {
    struct MHD_Daemon *daemon;
    int listen_fd;
    bool is_listener_shared;
    bool is_quiet; /* nobody new gets in */
    conns *conns;
    size_t n_body_total; /* of bodies that are arriving; only the connections' thread */
    size_t max_body_total;
    http_handler handler;
    sl_logger log;
};

/* ---- connections ---- */

static void suspend(void *handle)
{
    MHD_suspend_connection(handle);
}

static void resume(void *handle)
{
    MHD_resume_connection(handle);
}

static void on_connection(void *ud, struct MHD_Connection *mhd, void **socket_context,
        enum MHD_ConnectionNotificationCode code)
{
    http *h = ud;
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        const union MHD_ConnectionInfo *info =
                MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD);
        *socket_context = info ? conns_add(h->conns, mhd, (int)info->connect_fd) : NULL;
    } else {
        conns_remove(h->conns, *socket_context);
        *socket_context = NULL;
    }
}

static conn *conn_of(struct MHD_Connection *mhd)
{
    const union MHD_ConnectionInfo *info =
            MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info ? info->socket_context : NULL;
}

/* ---- requests ---- */

static const char *get_header(void *ud, const char *name)
{
    return MHD_lookup_connection_value(ud, MHD_HEADER_KIND, name);
}

static http_request request_of(const exchange *x)
{
    http_request request = {
            .method = x->method,
            .path = x->path,
            .query = x->query,
            .header = get_header,
            .ud = conn_handle(x->c),
            .body = x->body ? x->body : "",
            .n_body = x->n_body,
    };
    return request;
}

/* Splits the target of the request line: "http://host/path?query" or "/path?query". */
static bool split_uri(exchange *x)
{
    const char *at = x->uri;
    if (strncmp(at, "http://", 7) == 0) {
        at += 7;
        at += strcspn(at, "/?");
    }
    size_t n_path = strcspn(at, "?");
    x->query = at[n_path] == '?' ? at + n_path + 1 : "";
    x->path = sl__alloc(n_path + 1, 1);
    if (!x->path) {
        return false;
    }
    if (!url_decode(at, n_path, x->path, n_path + 1)) {
        x->path[0] = '\0';
    }
    return true;
}

/* Called first for each request; what it returns is handed on as the request's own. */
static void *on_uri(void *ud, const char *uri, struct MHD_Connection *mhd)
{
    exchange *x = sl__alloc(1, sizeof *x);
    if (!x) {
        return NULL;
    }
    x->h = ud;
    x->c = conn_of(mhd);
    x->begin_ns = sl__now_ns();
    x->uri = sl__strndup(uri, strlen(uri));
    if (!x->c || !x->uri || !split_uri(x)) {
        sl__free(x->uri);
        sl__free(x->path);
        sl__free(x);
        return NULL;
    }
    return x;
}

static void free_body(http *h, exchange *x)
{
    h->n_body_total -= x->cap_body;
    sl__free(x->body);
    x->body = NULL;
    x->cap_body = 0;
}

/* From now on the connection serves its answer. */
static void begin_answer(http *h, exchange *x)
{
    x->stage = ANSWER;
    conn_set_answer(h->conns, x->c, x->answer);
    free_body(h, x);
}

static ssize_t read_answer(void *ud, uint64_t pos, char *buf, size_t max)
{
    exchange *x = ud;
    (void)pos;
    conns *cs = x->h->conns;
    int64_t n = reply_read(x->answer, buf, max);
    while (n == REPLY_NOT_YET) {
        if (conn_suspend(cs, x->c)) {
            return 0;
        }
        n = conns_is_stopping(cs) ? REPLY_CUT : reply_read(x->answer, buf, max);
    }
    if (n == REPLY_END) {
        return MHD_CONTENT_READER_END_OF_STREAM;
    }
    return n == REPLY_CUT ? MHD_CONTENT_READER_END_WITH_ERROR : (ssize_t)n;
}

static enum MHD_Result send_answer(exchange *x, const reply_head *head, uint64_t n_body)
{
    uint64_t size = n_body == UINT64_MAX ? MHD_SIZE_UNKNOWN : n_body;
    struct MHD_Response *response =
            MHD_create_response_from_callback(size, BLOCK_BYTES, read_answer, x, NULL);
    if (!response) {
        return MHD_NO;
    }
    bool is_ok = true;
    if (head->content_type) {
        is_ok = MHD_add_response_header(response, "Content-Type", head->content_type) == MHD_YES;
    }
    for (size_t i = 0; i < head->n_headers && is_ok; i++) {
        const reply_header *h = &head->headers[i];
        is_ok = MHD_add_response_header(response, h->name, h->value) == MHD_YES;
    }
    x->status = head->status;
    enum MHD_Result result =
            is_ok ? MHD_queue_response(conn_handle(x->c), (unsigned)head->status, response)
                  : MHD_NO;
    MHD_destroy_response(response);
    return result;
}

/* Sends the head when it is known; waits for it otherwise. */
static enum MHD_Result try_answer(http *h, exchange *x)
{
    for (;;) {
        uint64_t n_body = 0;
        const reply_head *head = reply_look(x->answer, &n_body);
        if (head) {
            return send_answer(x, head, n_body);
        }
        if (reply_is_dropped(x->answer) || conns_is_stopping(h->conns)) {
            return MHD_NO;
        }
        if (conn_suspend(h->conns, x->c)) {
            return MHD_YES;
        }
    }
}

/*
 * A body that turns out too large while it arrives: the library takes no answer then, so the answer is put on the
 * wire here, and the rest is read and forgotten for a while, so that the client gets to read it.
 */
static void refuse_body(http *h, exchange *x)
{
    static const char text[] = "HTTP/1.1 413 Content Too Large\r\n"
                               "Content-Type: text/plain; charset=utf-8\r\n"
                               "Content-Length: 26\r\n"
                               "Connection: close\r\n\r\n"
                               "the request is too large\r\n";
    x->stage = TOO_LARGE;
    x->status = 413;
    free_body(h, x);
    (void)send(conn_fd(x->c), text, sizeof text - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
    (void)shutdown(conn_fd(x->c), SHUT_WR);
}

/* False if the body is larger than it may be, or than memory allows. */
static bool append_body(http *h, exchange *x, const char *data, size_t n)
{
    size_t old_cap = x->cap_body;
    if (n > x->max_body - x->n_body) {
        return false;
    }
    size_t need = x->n_body + n + 1;
    if (need > x->cap_body) {
        size_t want = need < x->max_body / 2 ? 2 * need : x->max_body + 1;
        if (want > h->max_body_total || h->n_body_total - old_cap > h->max_body_total - want) {
            return false;
        }
        char *body = sl__realloc(x->body, want, 1);
        if (!body) {
            return false;
        }
        x->body = body;
        x->cap_body = want;
        h->n_body_total += want - old_cap;
    }
    memcpy(x->body + x->n_body, data, n);
    x->n_body += n;
    x->body[x->n_body] = '\0';
    conn_note_body(h->conns, x->c, x->n_body);
    return true;
}

static enum MHD_Result take_body(http *h, exchange *x, const char *data, size_t *size)
{
    size_t n = *size;
    *size = 0;
    if (x->stage == TOO_LARGE) {
        x->n_discarded += n;
        return x->n_discarded > DISCARD_MOST ? MHD_NO : MHD_YES;
    }
    if (!append_body(h, x, data, n)) {
        refuse_body(h, x);
    }
    return MHD_YES;
}

static bool has_body(const exchange *x)
{
    const char *length = get_header(conn_handle(x->c), MHD_HTTP_HEADER_CONTENT_LENGTH);
    return get_header(conn_handle(x->c), MHD_HTTP_HEADER_TRANSFER_ENCODING) ||
           (length && strcmp(length, "0") != 0);
}

static enum MHD_Result take_head(http *h, exchange *x, const char *method)
{
    size_t n = strnlen(method, sizeof x->method - 1);
    memcpy(x->method, method, n);
    x->stage = BODY;
    conn_begin_reading(h->conns, x->c);
    x->answer = h->handler.open(h->handler.ud);
    if (!x->answer) {
        return MHD_NO;
    }
    http_request request = request_of(x);
    if (h->handler.begin(h->handler.ud, &request, x->answer, &x->max_body)) {
        begin_answer(h, x);
    }
    /* An answer before the body ends the connection, so it is given only where there is a body to be refused. */
    return x->stage == ANSWER && has_body(x) ? try_answer(h, x) : MHD_YES;
}

static enum MHD_Result on_request(void *ud, struct MHD_Connection *mhd, const char *url,
        const char *method, const char *version, const char *data, size_t *size, void **req)
{
    http *h = ud;
    exchange *x = *req;
    (void)mhd;
    (void)url;
    (void)version;
    if (!x || conns_is_stopping(h->conns)) {
        return MHD_NO;
    }
    if (x->stage == HEAD) {
        return take_head(h, x, method);
    }
    if (*size > 0) {
        return take_body(h, x, data, size);
    }
    if (x->stage == TOO_LARGE) {
        return MHD_NO;
    }
    if (x->stage == BODY) {
        http_request request = request_of(x);
        h->handler.handle(h->handler.ud, &request, x->answer);
        begin_answer(h, x);
    }
    return try_answer(h, x);
}

static void on_completed(
        void *ud, struct MHD_Connection *mhd, void **req, enum MHD_RequestTerminationCode code)
{
    http *h = ud;
    exchange *x = *req;
    (void)mhd;
    if (!x) {
        return;
    }
    conn_set_answer(h->conns, x->c, NULL);
    conn_begin_reading(h->conns, x->c);
    if (x->answer) {
        reply_cancel(x->answer);
        const http_outcome outcome = {
                .method = x->method,
                .path = x->path,
                .status = x->status,
                .n_bytes = reply_n_read(x->answer),
                .n_ns = sl__now_ns() - x->begin_ns,
                .id = reply_id(x->answer),
                .is_complete = code == MHD_REQUEST_TERMINATED_COMPLETED_OK,
        };
        h->handler.done(h->handler.ud, &outcome);
    }
    reply_unref(&x->answer);
    free_body(h, x);
    sl__free(x->path);
    sl__free(x->uri);
    sl__free(x);
    *req = NULL;
}

/* Escapes are decoded in one place, url.c, and by its rules. */
static size_t keep_escapes(void *ud, struct MHD_Connection *mhd, char *text)
{
    (void)ud;
    (void)mhd;
    return strlen(text);
}

/* The library's own remarks: clients that speak no HTTP, mostly. */
static void on_library_log(void *ud, const char *fmt, va_list ap)
{
    http *h = ud;
    char line[256];
    vsnprintf(line, sizeof line, fmt, ap);
    line[strcspn(line, "\r\n")] = '\0';
    sl__log(&h->log, SL_LOG_DEBUG, "http: %s", line);
}

/* ---- life ---- */

static int start_daemon(http *h, const http_opts *opts, sl_error *reterr)
{
    const unsigned flags = MHD_USE_EPOLL | MHD_USE_INTERNAL_POLLING_THREAD |
                           MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ITC | MHD_USE_ERROR_LOG;
    h->daemon = MHD_start_daemon(flags, 0, NULL, NULL, on_request, h, MHD_OPTION_EXTERNAL_LOGGER,
            on_library_log, h, MHD_OPTION_LISTEN_SOCKET, (MHD_socket)opts->listen_fd,
            MHD_OPTION_CONNECTION_LIMIT, opts->max_connections, MHD_OPTION_CONNECTION_TIMEOUT,
            opts->idle_seconds, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)MEMORY_LIMIT,
            MHD_OPTION_NOTIFY_CONNECTION, on_connection, h, MHD_OPTION_NOTIFY_COMPLETED,
            on_completed, h, MHD_OPTION_URI_LOG_CALLBACK, on_uri, h, MHD_OPTION_UNESCAPE_CALLBACK,
            keep_escapes, h, MHD_OPTION_END);
    if (!h->daemon) {
        return sl__fail(reterr, SL_EIO, "the HTTP library could not start; see its message above");
    }
    return SL_OK;
}

int http_open(const http_opts *opts, http **ret_http, sl_error *reterr)
{
    http *h = sl__alloc(1, sizeof *h);
    if (!h) {
        (void)close(opts->listen_fd);
        return sl__fail_nomem(reterr, sizeof *h, "a server");
    }
    h->listen_fd = opts->listen_fd;
    h->is_listener_shared = opts->is_listener_shared;
    h->handler = opts->handler;
    h->log = opts->log;
    h->max_body_total = opts->max_body_bytes_total;
    const conns_opts watched = {
            .head_ns = opts->head_ns,
            .suspend = suspend,
            .resume = resume,
            .tick = opts->handler.tick,
            .ud = opts->handler.ud,
    };
    int r = conns_create(&watched, &h->conns, reterr);
    if (r == 0) {
        r = start_daemon(h, opts, reterr);
    }
    if (r == 0) {
        r = conns_start(h->conns, reterr);
    }
    if (r < 0) {
        http_close(&h);
        return r;
    }
    *ret_http = h;
    return SL_OK;
}

void http_stop_listening(http *h)
{
    if (h->daemon && h->listen_fd >= 0 && !h->is_quiet) {
        /* The library's thread may still take the socket out of its set: it is closed when that thread has ended. */
        (void)MHD_quiesce_daemon(h->daemon);
        if (!h->is_listener_shared) {
            (void)shutdown(h->listen_fd, SHUT_RDWR);
        }
        h->is_quiet = true;
    }
}

void http_close(http **http_)
{
    http *h = http_ ? *http_ : NULL;
    if (!h) {
        return;
    }
    http_stop_listening(h);
    if (h->conns) {
        conns_stop(h->conns);
    }
    if (h->daemon) {
        MHD_stop_daemon(h->daemon);
    }
    if (h->listen_fd >= 0) {
        (void)close(h->listen_fd);
    }
    conns_free(&h->conns);
    sl__free(h);
    *http_ = NULL;
}
