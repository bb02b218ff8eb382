/*
 * libmicrohttpd in one thread on epoll. A connection whose answer has nothing to send is suspended, and resumed by
 * the answer's waker. Suspended connections see no time-outs and no closed sockets, so a second thread watches
 * the sockets for hang-ups, resumes everything once a second, and closes connections that trickle.
 *
 * Locks: h->lock guards the list of connections and their flags. It is taken before the library's own and before an
 * answer's, and no handler is called under it.
 */
#define _GNU_SOURCE /* EPOLLRDHUP */

#include "http.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <microhttpd.h>

#include "base/log.h"
#include "base/mem.h"
#include "os/os_clock.h"
#include "os/os_thread.h"
#include "url.h"

#define TICK_MS          100
#define RESUME_NS        UINT64_C(1000000000)
#define BODY_BYTES_PER_S 16384u /* a slower upload is cut */
#define MEMORY_LIMIT     65536u
#define BLOCK_BYTES      16384u
#define DISCARD_MOST                                                                               \
    (UINT64_C(64) << 20) /* of a body that is too large, so that the client reads why */
#define MAX_EVENTS 32

typedef struct exchange exchange;

/* A connection of a client; requests follow each other on it. */
typedef struct conn {
    struct conn *next;
    struct conn *prev;
    struct http *http_of;
    uint64_t id;
    int fd;
    struct MHD_Connection *mhd;
    uint64_t since_ns; /* when it began to wait for a head, or for a body */
    uint64_t n_body;   /* of the body that is arriving */
    bool is_reading;   /* a head or body is arriving */
    bool is_suspended;
    bool is_woken;
    bool is_gone; /* the client has hung up */
    reply *answer;
} conn;

/* A request and its answer. */
struct exchange {
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
};

struct http {
    struct MHD_Daemon *daemon;
    int listen_fd;
    int epoll_fd;
    sl__mutex lock;
    sl__thread watcher;
    conn *conns;
    uint64_t next_id;
    uint64_t head_ns;
    uint64_t resumed_ns;
    size_t n_body_total; /* only the connections' thread */
    size_t max_body_total;
    atomic_bool is_closing;
    http_handler handler;
    sl_logger log;
};

/* ---- connections ---- */

static conn *find_conn(http *h, uint64_t id)
{
    conn *c = h->conns;
    while (c && c->id != id) {
        c = c->next;
    }
    return c;
}

/* Lets a suspended connection go on; the lock is held. */
static void wake_conn(conn *c)
{
    c->is_woken = true;
    if (c->is_suspended) {
        c->is_suspended = false;
        MHD_resume_connection(c->mhd);
    }
}

/* The waker of answers. */
static void on_wake(void *ud, uint64_t id)
{
    http *h = ud;
    sl__mutex_lock(&h->lock);
    conn *c = find_conn(h, id);
    if (c) {
        wake_conn(c);
    }
    sl__mutex_unlock(&h->lock);
}

/* Suspends the connection unless it was woken since it last looked. False: look again. */
static bool suspend_conn(http *h, conn *c)
{
    sl__mutex_lock(&h->lock);
    bool may = !c->is_woken && !atomic_load(&h->is_closing);
    c->is_woken = false;
    if (may) {
        c->is_suspended = true;
        MHD_suspend_connection(c->mhd);
    }
    sl__mutex_unlock(&h->lock);
    return may;
}

static void set_reading(http *h, conn *c, bool is_reading)
{
    sl__mutex_lock(&h->lock);
    c->is_reading = is_reading;
    c->since_ns = sl__now_ns();
    c->n_body = 0;
    sl__mutex_unlock(&h->lock);
}

static void add_conn(http *h, struct MHD_Connection *mhd, void **socket_context)
{
    static const int on = 1;
    conn *c = sl__alloc(1, sizeof *c);
    *socket_context = c;
    if (!c) {
        return;
    }
    const union MHD_ConnectionInfo *info =
            MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD);
    c->fd = info ? (int)info->connect_fd : -1;
    c->http_of = h;
    c->mhd = mhd;
    c->is_reading = true;
    c->since_ns = sl__now_ns();
    sl__mutex_lock(&h->lock);
    c->id = ++h->next_id;
    c->next = h->conns;
    if (c->next) {
        c->next->prev = c;
    }
    h->conns = c;
    sl__mutex_unlock(&h->lock);
    struct epoll_event event = {.events = EPOLLRDHUP | EPOLLET, .data.u64 = c->id};
    (void)epoll_ctl(h->epoll_fd, EPOLL_CTL_ADD, c->fd, &event);
    (void)setsockopt(c->fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
}

static void remove_conn(http *h, void **socket_context)
{
    conn *c = *socket_context;
    if (!c) {
        return;
    }
    (void)epoll_ctl(h->epoll_fd, EPOLL_CTL_DEL, c->fd, NULL);
    sl__mutex_lock(&h->lock);
    if (c->next) {
        c->next->prev = c->prev;
    }
    if (c->prev) {
        c->prev->next = c->next;
    } else {
        h->conns = c->next;
    }
    sl__mutex_unlock(&h->lock);
    reply_unref(&c->answer);
    sl__free(c);
    *socket_context = NULL;
}

static void on_connection(void *ud, struct MHD_Connection *mhd, void **socket_context,
        enum MHD_ConnectionNotificationCode code)
{
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        add_conn(ud, mhd, socket_context);
    } else {
        remove_conn(ud, socket_context);
    }
}

static conn *conn_of(struct MHD_Connection *mhd)
{
    const union MHD_ConnectionInfo *info =
            MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info ? info->socket_context : NULL;
}

/* ---- the watcher ---- */

/* The client hung up: whoever makes its answer may stop. */
static void hang_up(http *h, uint64_t id)
{
    reply *answer = NULL;
    sl__mutex_lock(&h->lock);
    conn *c = find_conn(h, id);
    if (c) {
        c->is_gone = true;
        answer = c->answer ? reply_ref(c->answer) : NULL;
    }
    sl__mutex_unlock(&h->lock);
    if (answer) {
        reply_cancel(answer);
        reply_unref(&answer);
    }
}

static bool is_too_slow(const http *h, const conn *c, uint64_t now_ns)
{
    uint64_t extra_ns = c->n_body / BODY_BYTES_PER_S * RESUME_NS;
    return c->is_reading && now_ns - c->since_ns > h->head_ns + extra_ns;
}

/* Closes what trickles, and whose maker gave it up. The sockets are the library's: it sees them end. */
static void check_conns(http *h)
{
    uint64_t now_ns = sl__now_ns();
    sl__mutex_lock(&h->lock);
    bool is_time = now_ns - h->resumed_ns >= RESUME_NS;
    h->resumed_ns = is_time ? now_ns : h->resumed_ns;
    for (conn *c = h->conns; c; c = c->next) {
        if (is_too_slow(h, c, now_ns) || (c->answer && reply_is_dropped(c->answer))) {
            (void)shutdown(c->fd, SHUT_RDWR);
            wake_conn(c);
        } else if (is_time && c->is_suspended) {
            wake_conn(c);
        }
    }
    sl__mutex_unlock(&h->lock);
}

static void watch(void *ud)
{
    http *h = ud;
    uint64_t ticked_ns = 0;
    while (!atomic_load(&h->is_closing)) {
        struct epoll_event events[MAX_EVENTS];
        int n = epoll_wait(h->epoll_fd, events, MAX_EVENTS, TICK_MS);
        for (int i = 0; i < n; i++) {
            hang_up(h, events[i].data.u64);
        }
        uint64_t now_ns = sl__now_ns();
        if (now_ns - ticked_ns >= (uint64_t)TICK_MS * 1000000u) {
            ticked_ns = now_ns;
            check_conns(h);
            h->handler.tick(h->handler.ud);
        }
    }
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
            .ud = x->c->mhd,
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
    (void)ud;
    exchange *x = sl__alloc(1, sizeof *x);
    if (!x) {
        return NULL;
    }
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

/* From now on the connection serves its answer. */
static void begin_answer(http *h, exchange *x)
{
    conn *c = x->c;
    x->stage = ANSWER;
    reply_set_waker(x->answer, on_wake, h, c->id);
    sl__mutex_lock(&h->lock);
    c->answer = reply_ref(x->answer);
    c->is_reading = false;
    bool is_gone = c->is_gone;
    sl__mutex_unlock(&h->lock);
    if (is_gone) {
        reply_cancel(x->answer);
    }
    h->n_body_total -= x->cap_body;
    sl__free(x->body);
    x->body = NULL;
    x->cap_body = 0;
}

static ssize_t read_answer(void *ud, uint64_t pos, char *buf, size_t max)
{
    exchange *x = ud;
    (void)pos;
    http *h = x->c->http_of;
    int64_t n = reply_read(x->answer, buf, max);
    while (n == REPLY_NOT_YET) {
        if (suspend_conn(h, x->c)) {
            return 0;
        }
        n = atomic_load(&h->is_closing) ? REPLY_CUT : reply_read(x->answer, buf, max);
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
            is_ok ? MHD_queue_response(x->c->mhd, (unsigned)head->status, response) : MHD_NO;
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
        if (reply_is_dropped(x->answer) || atomic_load(&h->is_closing)) {
            return MHD_NO;
        }
        if (suspend_conn(h, x->c)) {
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
    h->n_body_total -= x->cap_body;
    sl__free(x->body);
    x->body = NULL;
    x->cap_body = 0;
    (void)send(x->c->fd, text, sizeof text - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
    (void)shutdown(x->c->fd, SHUT_WR);
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
        if (h->n_body_total - old_cap > h->max_body_total - want) {
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
    sl__mutex_lock(&h->lock);
    x->c->n_body = x->n_body;
    sl__mutex_unlock(&h->lock);
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
    const char *length = get_header(x->c->mhd, MHD_HTTP_HEADER_CONTENT_LENGTH);
    return get_header(x->c->mhd, MHD_HTTP_HEADER_TRANSFER_ENCODING) ||
           (length && strcmp(length, "0") != 0);
}

static enum MHD_Result take_head(http *h, exchange *x, const char *method)
{
    size_t n = strnlen(method, sizeof x->method - 1);
    memcpy(x->method, method, n);
    x->stage = BODY;
    set_reading(h, x->c, true);
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
    if (!x || atomic_load(&h->is_closing)) {
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
    sl__mutex_lock(&h->lock);
    reply *answer = x->c->answer;
    x->c->answer = NULL;
    sl__mutex_unlock(&h->lock);
    set_reading(h, x->c, true);
    reply_unref(&answer);
    if (x->answer) {
        reply_set_waker(x->answer, NULL, NULL, 0);
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
    h->n_body_total -= x->cap_body;
    sl__free(x->body);
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
    h->handler = opts->handler;
    h->log = opts->log;
    h->head_ns = opts->head_ns;
    h->max_body_total = opts->max_body_bytes_total;
    h->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    atomic_init(&h->is_closing, false);
    int r = h->epoll_fd < 0 ? sl__fail_os(reterr, errno, "epoll") : SL_OK;
    if (r == 0) {
        r = sl__mutex_init(&h->lock, reterr);
    }
    if (r < 0) {
        (void)close(h->listen_fd);
        sl__free(h);
        return r;
    }
    r = start_daemon(h, opts, reterr);
    if (r == 0) {
        r = sl__thread_start(&h->watcher, "http-watch", watch, h, reterr);
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
    if (h->daemon && h->listen_fd >= 0) {
        MHD_socket fd = MHD_quiesce_daemon(h->daemon);
        if (fd != MHD_INVALID_SOCKET) {
            (void)close(fd);
        }
        h->listen_fd = -1;
    }
}

/* Nothing may be suspended when the library stops. */
static void resume_all(http *h)
{
    sl__mutex_lock(&h->lock);
    for (conn *c = h->conns; c; c = c->next) {
        wake_conn(c);
    }
    sl__mutex_unlock(&h->lock);
}

void http_close(http **http_)
{
    http *h = http_ ? *http_ : NULL;
    if (!h) {
        return;
    }
    http_stop_listening(h);
    atomic_store(&h->is_closing, true);
    sl__thread_join(&h->watcher);
    resume_all(h);
    if (h->daemon) {
        MHD_stop_daemon(h->daemon);
    }
    if (h->listen_fd >= 0) {
        (void)close(h->listen_fd);
    }
    (void)close(h->epoll_fd);
    sl__mutex_done(&h->lock);
    sl__free(h);
    *http_ = NULL;
}
