#include "feed.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "os/os_thread.h"

#define ALIVE_NS UINT64_C(15000000000)

typedef struct listener {
    reply *answer;
    uint64_t sent_ns;
    bool is_current; /* has the latest text */
} listener;

struct feed {
    sl__mutex lock;
    listener listeners[FEED_MOST];
    size_t n;
    bool is_closed;
    char *latest;
    size_t n_latest;
};

int feed_create(feed **ret_feed, sl_error *reterr)
{
    feed *f = sl__alloc(1, sizeof *f);
    if (!f) {
        return sl__fail_nomem(reterr, sizeof *f, "a feed");
    }
    int r = sl__mutex_init(&f->lock, reterr);
    if (r < 0) {
        sl__free(f);
        return r;
    }
    *ret_feed = f;
    return SL_OK;
}

void feed_free(feed **f)
{
    if (f && *f) {
        feed_close(*f);
        sl__mutex_done(&(*f)->lock);
        sl__free((*f)->latest);
        sl__free(*f);
        *f = NULL;
    }
}

bool feed_add(feed *f, reply *answer)
{
    sl__mutex_lock(&f->lock);
    bool may = f->n < FEED_MOST && !f->is_closed;
    if (may) {
        f->listeners[f->n++] = (listener){.answer = reply_ref(answer)};
    }
    sl__mutex_unlock(&f->lock);
    return may;
}

size_t feed_n(feed *f)
{
    sl__mutex_lock(&f->lock);
    size_t n = f->n;
    sl__mutex_unlock(&f->lock);
    return n;
}

/* Remembers the text; everybody is behind if it is another one. The lock is held. */
static bool set_latest(feed *f, const char *text, size_t n)
{
    static const char head[] = "event: residency\ndata: ";
    size_t n_head = sizeof head - 1;
    if (f->latest && f->n_latest == n_head + n + 2 && memcmp(f->latest + n_head, text, n) == 0) {
        return true;
    }
    char *latest = sl__alloc(n_head + n + 3, 1);
    if (!latest) {
        return false;
    }
    memcpy(latest, head, n_head);
    memcpy(latest + n_head, text, n);
    memcpy(latest + n_head + n, "\n\n", 3);
    sl__free(f->latest);
    f->latest = latest;
    f->n_latest = n_head + n + 2;
    for (size_t i = 0; i < f->n; i++) {
        f->listeners[i].is_current = false;
    }
    return true;
}

/* False if the listener is gone. One that has no room for the event gets a later one. */
static bool send_to(feed *f, listener *l, uint64_t now_ns)
{
    int r = 1;
    if (!l->is_current) {
        r = reply_try_write(l->answer, f->latest, f->n_latest);
        l->is_current = r > 0;
        l->sent_ns = r > 0 ? now_ns : l->sent_ns;
    } else if (now_ns - l->sent_ns > ALIVE_NS) {
        r = reply_try_write(l->answer, ": alive\n\n", 9);
        l->sent_ns = now_ns;
    }
    return r >= 0;
}

void feed_send(feed *f, const char *text, size_t n, uint64_t now_ns)
{
    sl__mutex_lock(&f->lock);
    bool is_set = set_latest(f, text, n);
    for (size_t i = 0; i < f->n && is_set;) {
        if (send_to(f, &f->listeners[i], now_ns)) {
            i++;
        } else {
            reply_unref(&f->listeners[i].answer);
            f->listeners[i] = f->listeners[--f->n];
        }
    }
    sl__mutex_unlock(&f->lock);
}

void feed_close(feed *f)
{
    sl__mutex_lock(&f->lock);
    f->is_closed = true;
    for (size_t i = 0; i < f->n; i++) {
        reply_end(f->listeners[i].answer, true);
        reply_unref(&f->listeners[i].answer);
    }
    f->n = 0;
    sl__mutex_unlock(&f->lock);
}
