/*
 * The buffer is one block that grows to its bound and is moved together when its end is reached: answers are
 * short, and a stream's reader is usually close behind its maker.
 *
 * Progress of a reader is counted in steps. One that takes a byte now and then makes none, and is dropped like one
 * that takes nothing: it would hold the engine for hours.
 */
#include "reply.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "os/os_clock.h"
#include "os/os_thread.h"

#define FIRST_BYTES    4096u
#define STEP_BYTES     16384u /* of progress: two seconds of Opus, a third of PCM */
#define LOOK_NS        UINT64_C(100000000)
#define HURRIED_FACTOR 6u

typedef enum state {
    MAKING,
    COMPLETE,
    CUT
} state;

struct reply {
    atomic_uint n_refs;
    sl__mutex lock;
    sl__cond has_room;
    atomic_bool is_cancelled;
    bool is_stalled;
    bool has_left;
    bool is_endless;
    state state;
    reply_head head;
    size_t hold_bytes;
    unsigned char *buf;
    size_t begin; /* of what is not read yet */
    size_t end;
    size_t allocated;
    size_t cap;
    uint64_t n_read;
    uint64_t id;
    void (*wake)(void *ud, uint64_t id);
    void *wake_ud;
    uint64_t wake_id;
};

int reply_create(size_t cap, reply **ret_reply, sl_error *reterr)
{
    reply *r = sl__alloc(1, sizeof *r);
    if (!r) {
        return sl__fail_nomem(reterr, sizeof *r, "an answer");
    }
    int result = sl__mutex_init(&r->lock, reterr);
    if (result < 0) {
        sl__free(r);
        return result;
    }
    result = sl__cond_init(&r->has_room, reterr);
    if (result < 0) {
        sl__mutex_done(&r->lock);
        sl__free(r);
        return result;
    }
    atomic_init(&r->n_refs, 1);
    atomic_init(&r->is_cancelled, false);
    r->cap = cap;
    *ret_reply = r;
    return SL_OK;
}

reply *reply_ref(reply *r)
{
    atomic_fetch_add(&r->n_refs, 1);
    return r;
}

void reply_unref(reply **r)
{
    reply *gone = r ? *r : NULL;
    if (gone && atomic_fetch_sub(&gone->n_refs, 1) == 1) {
        sl__cond_done(&gone->has_room);
        sl__mutex_done(&gone->lock);
        sl__free(gone->buf);
        sl__free(gone);
    }
    if (r) {
        *r = NULL;
    }
}

void reply_set_id(reply *r, uint64_t id)
{
    r->id = id;
}

uint64_t reply_id(const reply *r)
{
    return r->id;
}

/* Unlocks, then tells the reader. */
static void unlock_and_wake(reply *r)
{
    void (*wake)(void *, uint64_t) = r->wake;
    void *ud = r->wake_ud;
    uint64_t id = r->wake_id;
    sl__mutex_unlock(&r->lock);
    if (wake) {
        wake(ud, id);
    }
}

void reply_begin(reply *r, int status, const char *content_type)
{
    sl__mutex_lock(&r->lock);
    if (!r->has_left) {
        r->head.status = status;
        r->head.content_type = content_type;
    }
    sl__mutex_unlock(&r->lock);
}

void reply_add_header(reply *r, const char *name, const char *fmt, ...)
{
    va_list ap;
    sl__mutex_lock(&r->lock);
    if (!r->has_left && r->head.n_headers < REPLY_MAX_HEADERS) {
        reply_header *h = &r->head.headers[r->head.n_headers++];
        h->name = name;
        va_start(ap, fmt);
        vsnprintf(h->value, sizeof h->value, fmt, ap);
        va_end(ap);
    }
    sl__mutex_unlock(&r->lock);
}

void reply_set_endless(reply *r)
{
    sl__mutex_lock(&r->lock);
    r->is_endless = true;
    sl__mutex_unlock(&r->lock);
}

void reply_hold(reply *r, size_t n_bytes)
{
    sl__mutex_lock(&r->lock);
    r->hold_bytes = n_bytes < r->cap || n_bytes == SIZE_MAX ? n_bytes : r->cap;
    sl__mutex_unlock(&r->lock);
}

bool reply_has_left(reply *r)
{
    sl__mutex_lock(&r->lock);
    bool has_left = r->has_left;
    sl__mutex_unlock(&r->lock);
    return has_left;
}

/* Makes room for n more bytes within `most`; the lock is held. 1 = there is, 0 = not now, SL_ENOMEM. */
static int make_room(reply *r, size_t n, size_t most)
{
    size_t n_held = r->end - r->begin;
    if (n > most || n_held > most - n) {
        return 0;
    }
    if (r->end + n <= r->allocated) {
        return 1;
    }
    if (r->begin > 0) {
        memmove(r->buf, r->buf + r->begin, n_held);
        r->begin = 0;
        r->end = n_held;
    }
    if (n_held + n <= r->allocated) {
        return 1;
    }
    size_t want = r->allocated > FIRST_BYTES ? r->allocated : FIRST_BYTES;
    while (want < n_held + n) {
        want = want <= SIZE_MAX / 2 ? 2 * want : n_held + n;
    }
    unsigned char *buf = sl__realloc(r->buf, want, 1);
    if (!buf) {
        return SL_ENOMEM;
    }
    r->buf = buf;
    r->allocated = want;
    return 1;
}

static void append(reply *r, const void *data, size_t n)
{
    if (n > 0) {
        memcpy(r->buf + r->end, data, n);
        r->end += n;
    }
}

/* Nobody is to read this any more; the lock is held. */
static void drop(reply *r)
{
    atomic_store(&r->is_cancelled, true);
    r->state = CUT;
}

typedef struct stall {
    uint64_t since_ns;
    uint64_t n_read; /* when the reader last made a step */
} stall;

/* True if the reader has made no step for too long. */
static bool is_stalled(const reply *r, stall *s, const reply_patience *patience)
{
    uint64_t now_ns = sl__now_ns();
    uint64_t limit_ns = patience->stall_ns;
    if (patience->n_waiting && atomic_load(patience->n_waiting) > 0) {
        limit_ns /= HURRIED_FACTOR;
    }
    if (r->n_read - s->n_read >= STEP_BYTES) {
        s->n_read = r->n_read;
        s->since_ns = now_ns;
    }
    return now_ns - s->since_ns > limit_ns;
}

/* Appends a part that fits into the buffer; the lock is held at both ends. */
static int write_part(reply *r, const void *data, size_t n, const reply_patience *patience)
{
    stall s = {.since_ns = sl__now_ns(), .n_read = r->n_read};
    for (;;) {
        if (atomic_load(&r->is_cancelled)) {
            return SL_ECANCELLED;
        }
        int room = make_room(r, n, r->cap);
        if (room > 0) {
            append(r, data, n);
            return SL_OK;
        }
        if (room < 0 || is_stalled(r, &s, patience)) {
            r->is_stalled = room == 0;
            drop(r);
            return SL_ECANCELLED;
        }
        sl__cond_wait_until(&r->has_room, &r->lock, sl__now_ns() + LOOK_NS);
    }
}

int reply_write(reply *r, const void *data, size_t n, const reply_patience *patience)
{
    const unsigned char *at = data;
    int result = SL_OK;
    do {
        size_t part = n < r->cap ? n : r->cap;
        sl__mutex_lock(&r->lock);
        result = write_part(r, at, part, patience);
        unlock_and_wake(r);
        at += part;
        n -= part;
    } while (n > 0 && result == SL_OK);
    return result;
}

int reply_try_write(reply *r, const void *data, size_t n)
{
    sl__mutex_lock(&r->lock);
    int result = atomic_load(&r->is_cancelled) ? SL_ECANCELLED : make_room(r, n, r->cap);
    if (result > 0) {
        append(r, data, n);
    }
    unlock_and_wake(r);
    return result == SL_ENOMEM ? 0 : result;
}

int reply_append(reply *r, const void *data, size_t n)
{
    sl__mutex_lock(&r->lock);
    int result = atomic_load(&r->is_cancelled) ? SL_ECANCELLED : make_room(r, n, SIZE_MAX);
    if (result > 0) {
        append(r, data, n);
    }
    sl__mutex_unlock(&r->lock);
    return result < 0 ? result : SL_OK;
}

void reply_patch(reply *r, size_t at, const void *data, size_t n)
{
    sl__mutex_lock(&r->lock);
    size_t n_held = r->end - r->begin;
    if (at <= n_held && n <= n_held - at) {
        memcpy(r->buf + r->begin + at, data, n);
    }
    sl__mutex_unlock(&r->lock);
}

void reply_end(reply *r, bool is_complete)
{
    sl__mutex_lock(&r->lock);
    if (r->state == MAKING) {
        r->state = is_complete ? COMPLETE : CUT;
    }
    unlock_and_wake(r);
}

void reply_whole(reply *r, int status, const char *content_type, const void *body, size_t n_body)
{
    sl__mutex_lock(&r->lock);
    if (!r->has_left && r->state == MAKING) {
        r->begin = 0;
        r->end = 0;
        r->head.status = status;
        r->head.content_type = content_type;
        r->is_endless = false;
        if (make_room(r, n_body, SIZE_MAX) > 0) {
            append(r, body, n_body);
        } else {
            r->head.status = 503;
        }
        r->state = COMPLETE;
    }
    unlock_and_wake(r);
}

bool reply_is_cancelled(reply *r)
{
    return atomic_load(&r->is_cancelled);
}

bool reply_was_stalled(reply *r)
{
    sl__mutex_lock(&r->lock);
    bool is = r->is_stalled;
    sl__mutex_unlock(&r->lock);
    return is;
}

const reply_head *reply_look(reply *r, uint64_t *ret_n_body)
{
    sl__mutex_lock(&r->lock);
    size_t n_held = r->end - r->begin;
    bool has_begun = n_held > 0 && (n_held >= r->hold_bytes || r->state == CUT);
    bool is_there = r->head.status != 0 && (r->has_left || has_begun || r->state == COMPLETE);
    r->has_left = r->has_left || is_there;
    *ret_n_body = r->state == COMPLETE && !r->is_endless ? n_held : UINT64_MAX;
    sl__mutex_unlock(&r->lock);
    return is_there ? &r->head : NULL;
}

int64_t reply_read(reply *r, void *data, size_t n)
{
    sl__mutex_lock(&r->lock);
    size_t n_held = r->end - r->begin;
    int64_t result = REPLY_NOT_YET;
    /* A cancelled answer is cut, whatever it still holds. */
    if (n_held > 0 && !atomic_load(&r->is_cancelled)) {
        size_t take = n < n_held ? n : n_held;
        memcpy(data, r->buf + r->begin, take);
        r->begin += take;
        r->n_read += take;
        result = (int64_t)take;
        sl__cond_signal(&r->has_room);
    } else if (r->state != MAKING) {
        result = r->state == COMPLETE ? REPLY_END : REPLY_CUT;
    }
    sl__mutex_unlock(&r->lock);
    return result;
}

void reply_set_waker(reply *r, void (*fn)(void *ud, uint64_t id), void *ud, uint64_t id)
{
    sl__mutex_lock(&r->lock);
    r->wake = fn;
    r->wake_ud = ud;
    r->wake_id = id;
    sl__mutex_unlock(&r->lock);
}

void reply_cancel(reply *r)
{
    sl__mutex_lock(&r->lock);
    if (r->state == MAKING) {
        drop(r);
    }
    sl__cond_signal(&r->has_room);
    unlock_and_wake(r);
}

bool reply_is_dropped(reply *r)
{
    sl__mutex_lock(&r->lock);
    bool has_nothing = r->state == CUT && !r->has_left && r->end == r->begin;
    bool is = atomic_load(&r->is_cancelled) || has_nothing;
    sl__mutex_unlock(&r->lock);
    return is;
}

uint64_t reply_n_read(reply *r)
{
    sl__mutex_lock(&r->lock);
    uint64_t n = r->n_read;
    sl__mutex_unlock(&r->lock);
    return n;
}
