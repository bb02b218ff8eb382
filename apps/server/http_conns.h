/*
 * The connections of the HTTP server as the watcher sees them: sockets to watch for hang-ups and trickling, answers to
 * cancel, and which of them are suspended.
 *
 * A connection is suspended while its answer has nothing to send, and resumed by the answer's waker. A suspended
 * connection sees neither time-outs nor that its socket was closed; so a thread watches the sockets, cancels the
 * answers of clients that hung up, and resumes everything once a second.
 *
 * Threads: add, remove and the conn_ functions by the connections' thread; conns_wake by any.
 * Locks: one, over the list and the flags; taken before the HTTP library's own and before an answer's.
 */
#ifndef SERVER_HTTP_CONNS_H
#define SERVER_HTTP_CONNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "reply.h"

typedef struct conns conns;
typedef struct conn conn;

typedef struct conns_opts {
    uint64_t head_ns; /* a request must arrive within; a body gets more the longer it is */
    void (*suspend)(void *handle);
    void (*resume)(void *handle);
    void (*tick)(void *ud); /* ten times a second, without a lock */
    void *ud;
} conns_opts;

/* Errors: SL_ENOMEM, SL_EIO. */
int conns_create(const conns_opts *opts, conns **ret_conns, sl_error *reterr) SL_MUST_CHECK;

/* Begins to watch. Errors: SL_ENOMEM. */
int conns_start(conns *cs, sl_error *reterr) SL_MUST_CHECK;

/* Ends the watcher; from now on nothing is suspended, and what is, is resumed. */
void conns_stop(conns *cs);

/* All connections have been removed. Accepts NULL. */
void conns_free(conns **cs);

/* NULL without memory. */
conn *conns_add(conns *cs, void *handle, int fd);
void conns_remove(conns *cs, conn *c); /* accepts NULL */

/* Lets the connection look at its answer again; the waker of answers (ud: the conns). */
void conns_wake(void *ud, uint64_t id);

uint64_t conn_id(const conn *c);
int conn_fd(const conn *c);
void *conn_handle(const conn *c);

/* A head or body is arriving from now on. */
void conn_begin_reading(conns *cs, conn *c);
void conn_note_body(conns *cs, conn *c, uint64_t n_bytes); /* so far */

/* It serves this answer from now on, which is cancelled when the client hangs up; NULL = none. */
void conn_set_answer(conns *cs, conn *c, reply *answer);

/* Suspends unless it was woken since it last looked, or everything stops: false then, and it must look again. */
bool conn_suspend(conns *cs, conn *c);

bool conns_is_stopping(conns *cs);

#endif
