#define _GNU_SOURCE /* EPOLLRDHUP */

#include "http_conns.h"

#include <errno.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"
#include "os/os_clock.h"
#include "os/os_thread.h"

#define TICK_MS          100
#define TICK_NS          UINT64_C(100000000)
#define RESUME_NS        UINT64_C(1000000000)
#define BODY_BYTES_PER_S 16384u /* a slower upload is cut */
#define MAX_EVENTS       32

struct conn {
    conn *next;
    conn *prev;
    uint64_t id;
    int fd;
    void *handle;
    uint64_t since_ns; /* when it began to wait for a head */
    uint64_t n_body;   /* of the body that is arriving */
    bool is_reading;   /* a head or body is arriving */
    bool is_suspended;
    bool is_woken;
    bool is_gone; /* the client has hung up */
    reply *answer;
};

struct conns {
    conns_opts opts;
    int epoll_fd;
    sl__mutex lock;
    sl__thread watcher;
    conn *first;
    uint64_t next_id;
    uint64_t resumed_ns;
    atomic_bool is_stopping;
};

static conn *find(conns *cs, uint64_t id)
{
    conn *c = cs->first;
    while (c && c->id != id) {
        c = c->next;
    }
    return c;
}

/* Lets a suspended connection go on; the lock is held. */
static void wake(conns *cs, conn *c)
{
    c->is_woken = true;
    if (c->is_suspended) {
        c->is_suspended = false;
        cs->opts.resume(c->handle);
    }
}

void conns_wake(void *ud, uint64_t id)
{
    conns *cs = ud;
    sl__mutex_lock(&cs->lock);
    conn *c = find(cs, id);
    if (c) {
        wake(cs, c);
    }
    sl__mutex_unlock(&cs->lock);
}

bool conn_suspend(conns *cs, conn *c)
{
    sl__mutex_lock(&cs->lock);
    bool may = !c->is_woken && !atomic_load(&cs->is_stopping);
    c->is_woken = false;
    if (may) {
        c->is_suspended = true;
        cs->opts.suspend(c->handle);
    }
    sl__mutex_unlock(&cs->lock);
    return may;
}

uint64_t conn_id(const conn *c)
{
    return c->id;
}

int conn_fd(const conn *c)
{
    return c->fd;
}

void *conn_handle(const conn *c)
{
    return c->handle;
}

void conn_begin_reading(conns *cs, conn *c)
{
    sl__mutex_lock(&cs->lock);
    c->is_reading = true;
    c->since_ns = sl__now_ns();
    c->n_body = 0;
    sl__mutex_unlock(&cs->lock);
}

void conn_note_body(conns *cs, conn *c, uint64_t n_bytes)
{
    sl__mutex_lock(&cs->lock);
    c->n_body = n_bytes;
    sl__mutex_unlock(&cs->lock);
}

void conn_set_answer(conns *cs, conn *c, reply *answer)
{
    if (answer) {
        reply_set_waker(answer, conns_wake, cs, c->id);
    }
    sl__mutex_lock(&cs->lock);
    reply *old = c->answer;
    c->answer = answer ? reply_ref(answer) : NULL;
    c->is_reading = false;
    bool is_gone = c->is_gone;
    sl__mutex_unlock(&cs->lock);
    if (old) {
        reply_set_waker(old, NULL, NULL, 0);
        reply_unref(&old);
    }
    if (answer && is_gone) {
        reply_cancel(answer);
    }
}

conn *conns_add(conns *cs, void *handle, int fd)
{
    static const int on = 1;
    conn *c = sl__alloc(1, sizeof *c);
    if (!c) {
        return NULL;
    }
    c->fd = fd;
    c->handle = handle;
    c->is_reading = true;
    c->since_ns = sl__now_ns();
    sl__mutex_lock(&cs->lock);
    c->id = ++cs->next_id;
    c->next = cs->first;
    if (c->next) {
        c->next->prev = c;
    }
    cs->first = c;
    sl__mutex_unlock(&cs->lock);
    struct epoll_event event = {.events = EPOLLRDHUP | EPOLLET, .data.u64 = c->id};
    (void)epoll_ctl(cs->epoll_fd, EPOLL_CTL_ADD, fd, &event);
    /* A client whose machine is gone without a word is found out in the end. */
    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    return c;
}

void conns_remove(conns *cs, conn *c)
{
    if (!c) {
        return;
    }
    (void)epoll_ctl(cs->epoll_fd, EPOLL_CTL_DEL, c->fd, NULL);
    sl__mutex_lock(&cs->lock);
    if (c->next) {
        c->next->prev = c->prev;
    }
    if (c->prev) {
        c->prev->next = c->next;
    } else {
        cs->first = c->next;
    }
    sl__mutex_unlock(&cs->lock);
    reply_unref(&c->answer);
    sl__free(c);
}

/* The client hung up: whoever makes its answer may stop. */
static void hang_up(conns *cs, uint64_t id)
{
    reply *answer = NULL;
    sl__mutex_lock(&cs->lock);
    conn *c = find(cs, id);
    if (c) {
        c->is_gone = true;
        answer = c->answer ? reply_ref(c->answer) : NULL;
    }
    sl__mutex_unlock(&cs->lock);
    if (answer) {
        reply_cancel(answer);
        reply_unref(&answer);
    }
}

static bool is_too_slow(const conns *cs, const conn *c, uint64_t now_ns)
{
    uint64_t extra_ns = c->n_body / BODY_BYTES_PER_S * RESUME_NS;
    return c->is_reading && now_ns - c->since_ns > cs->opts.head_ns + extra_ns;
}

/* Ends the sockets of what trickles and of answers that were given up; the library sees them end. */
static void check(conns *cs)
{
    uint64_t now_ns = sl__now_ns();
    sl__mutex_lock(&cs->lock);
    bool is_time = now_ns - cs->resumed_ns >= RESUME_NS;
    cs->resumed_ns = is_time ? now_ns : cs->resumed_ns;
    for (conn *c = cs->first; c; c = c->next) {
        if (is_too_slow(cs, c, now_ns) || (c->answer && reply_is_dropped(c->answer))) {
            (void)shutdown(c->fd, SHUT_RDWR);
            wake(cs, c);
        } else if (is_time && c->is_suspended) {
            wake(cs, c);
        }
    }
    sl__mutex_unlock(&cs->lock);
}

static void watch(void *ud)
{
    conns *cs = ud;
    uint64_t ticked_ns = 0;
    while (!atomic_load(&cs->is_stopping)) {
        struct epoll_event events[MAX_EVENTS];
        int n = epoll_wait(cs->epoll_fd, events, MAX_EVENTS, TICK_MS);
        for (int i = 0; i < n; i++) {
            hang_up(cs, events[i].data.u64);
        }
        uint64_t now_ns = sl__now_ns();
        if (now_ns - ticked_ns >= TICK_NS) {
            ticked_ns = now_ns;
            check(cs);
            cs->opts.tick(cs->opts.ud);
        }
    }
}

int conns_create(const conns_opts *opts, conns **ret_conns, sl_error *reterr)
{
    conns *cs = sl__alloc(1, sizeof *cs);
    if (!cs) {
        return sl__fail_nomem(reterr, sizeof *cs, "a list of connections");
    }
    cs->opts = *opts;
    atomic_init(&cs->is_stopping, false);
    cs->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    int r = cs->epoll_fd < 0 ? sl__fail_os(reterr, errno, "epoll") : SL_OK;
    if (r == 0) {
        r = sl__mutex_init(&cs->lock, reterr);
    }
    if (r < 0) {
        if (cs->epoll_fd >= 0) {
            (void)close(cs->epoll_fd);
        }
        sl__free(cs);
        return r;
    }
    *ret_conns = cs;
    return SL_OK;
}

int conns_start(conns *cs, sl_error *reterr)
{
    return sl__thread_start(&cs->watcher, "http-watch", watch, cs, reterr);
}

void conns_stop(conns *cs)
{
    atomic_store(&cs->is_stopping, true);
    sl__thread_join(&cs->watcher);
    sl__mutex_lock(&cs->lock);
    for (conn *c = cs->first; c; c = c->next) {
        wake(cs, c);
    }
    sl__mutex_unlock(&cs->lock);
}

void conns_free(conns **cs)
{
    if (cs && *cs) {
        (void)close((*cs)->epoll_fd);
        sl__mutex_done(&(*cs)->lock);
        sl__free(*cs);
        *cs = NULL;
    }
}

bool conns_is_stopping(conns *cs)
{
    return atomic_load(&cs->is_stopping);
}
