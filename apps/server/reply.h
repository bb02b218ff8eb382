/*
 * One answer on its way: whoever makes it writes, the connection reads. In between is a bounded buffer.
 *
 * The head (status, type, headers) is seen by the reader when the first byte of the body is there, or the end:
 * until then the maker may still say that it failed. An answer that is complete when its head is first looked
 * at has a known length.
 *
 * Threads: one maker and one reader, each on a thread of its own; cancel, ref and unref from any. The waker is
 * called without a lock, from the maker's calls and from cancel.
 * Lifetime: counted; created with one reference.
 */
#ifndef SERVER_REPLY_H
#define SERVER_REPLY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

#define REPLY_MAX_HEADERS 20

typedef struct reply reply;

typedef struct reply_header {
    const char *name; /* static */
    char value[160];
} reply_header;

typedef struct reply_head {
    int status;               /* HTTP status; 0 = not known yet */
    const char *content_type; /* static; NULL = no body */
    reply_header headers[REPLY_MAX_HEADERS];
    size_t n_headers;
} reply_head;

/* How long a maker waits for a reader. */
typedef struct reply_patience {
    uint64_t stall_ns;              /* without a step of progress; then the reply is dropped */
    const atomic_size_t *n_waiting; /* while others wait, a sixth of it; may be NULL */
} reply_patience;

/* cap: bytes of the buffer. Errors: SL_ENOMEM. */
int reply_create(size_t cap, reply **ret_reply, sl_error *reterr) SL_MUST_CHECK;
reply *reply_ref(reply *r);
void reply_unref(reply **r); /* accepts NULL; sets *r to NULL */

/* For logs and X-Request-Id. */
void reply_set_id(reply *r, uint64_t id);
uint64_t reply_id(const reply *r);

/* ---- the maker ---- */

/* Status and type; content_type is static. May be called again until the head is seen. */
void reply_begin(reply *r, int status, const char *content_type);

/* Adds a header before the head is seen; name is static, the value is cut to what fits. */
void reply_add_header(reply *r, const char *name, const char *fmt, ...) SL_PRINTF(3, 4);

/* The answer has no length, however soon it is complete. */
void reply_set_endless(reply *r);

/* The head waits until so many bytes are there, at most the bound, or the end; SIZE_MAX = always for the end. */
void reply_hold(reply *r, size_t n_bytes);

/* True once the reader may have seen the head: it is too late for another status. */
bool reply_has_left(reply *r);

/*
 * Appends n bytes; waits while the buffer is full.
 * Errors: SL_ECANCELLED (the reader is gone, or was dropped because it did not read).
 */
int reply_write(reply *r, const void *data, size_t n, const reply_patience *patience) SL_MUST_CHECK;

/* Appends all or nothing without waiting. 1 = done, 0 = no room, SL_ECANCELLED. */
int reply_try_write(reply *r, const void *data, size_t n) SL_MUST_CHECK;

/* Appends n bytes beyond the bound, for an answer that is made whole. Errors: SL_ECANCELLED, SL_ENOMEM. */
int reply_append(reply *r, const void *data, size_t n) SL_MUST_CHECK;

/* Overwrites bytes of an answer that nobody has begun to read. */
void reply_patch(reply *r, size_t at, const void *data, size_t n);

/* The end: complete, or cut (the reader's connection is then closed without a proper end). */
void reply_end(reply *r, bool is_complete);

/* A whole answer at once. Memory that is missing makes it an empty 503. */
void reply_whole(reply *r, int status, const char *content_type, const void *body, size_t n_body);

/* Asks often: is there still a reader? */
bool reply_is_cancelled(reply *r);
bool reply_was_stalled(reply *r); /* cancelled because the reader did not read */

/* ---- the reader ---- */

enum {
    REPLY_NOT_YET = 0,
    REPLY_END = -1,
    REPLY_CUT = -2,
};

/* The head, or NULL while there is none. ret_n_body: bytes of the whole body, or UINT64_MAX. */
const reply_head *reply_look(reply *r, uint64_t *ret_n_body);

/* Takes up to n bytes; their number, or REPLY_NOT_YET, REPLY_END, REPLY_CUT. */
int64_t reply_read(reply *r, void *data, size_t n);

/* Called when the reader may find something new. NULL removes it. */
void reply_set_waker(reply *r, void (*fn)(void *ud, uint64_t id), void *ud, uint64_t id);

/* The reader is gone: the maker's calls fail from now on. Does nothing to an answer that is complete. */
void reply_cancel(reply *r);

/* True if the maker has dropped the reader for not reading: its connection must be closed now. */
bool reply_is_dropped(reply *r);

/* Bytes read so far. */
uint64_t reply_n_read(reply *r);

#endif
