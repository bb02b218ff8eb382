/*
 * HTTP/1.1 on a listening socket: requests come in whole, answers go out as they are made (reply.h).
 *
 * This is the only part that knows sockets and the HTTP library. It keeps the rules of the wire: body limits while
 * a body arrives, deadlines for heads and bodies that trickle in, and it notices at once when a client goes
 * away, which cancels the answer.
 *
 * Threads: one for the connections, on which the handler's begin, handle and done run and must not block; one
 * that watches, on which tick runs. http_stop_listening and http_close: the thread that opened.
 */
#ifndef SERVER_HTTP_H
#define SERVER_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "reply.h"
#include "sluice/log.h"

typedef struct http_request {
    const char *method;
    const char *path;  /* decoded; "" if it could not be */
    const char *query; /* as it came, without the question mark; "" if there is none */
    const char *(*header)(void *ud, const char *name); /* NULL if there is none */
    void *ud;
    const char *body; /* with a NUL behind it */
    size_t n_body;
} http_request;

/* What became of a request, for the log. */
typedef struct http_outcome {
    const char *method;
    const char *path;
    int status;       /* 0 = none was sent */
    uint64_t n_bytes; /* of the body that were handed to the connection */
    uint64_t n_ns;    /* from the head to the end */
    uint64_t id;      /* of the answer */
    bool is_complete;
} http_outcome;

typedef struct http_handler {
    /* Once for each request: an empty answer, or NULL without memory. done follows for each that was made. */
    reply *(*open)(void *ud);
    /* When the head is there. True if the answer is made already; else the most bytes that the body may have. */
    bool (*begin)(void *ud, const http_request *request, reply *answer, size_t *ret_max_body);
    /* When the body is there: makes the answer, now or later. */
    void (*handle)(void *ud, const http_request *request, reply *answer);
    void (*done)(void *ud, const http_outcome *outcome);
    /* About ten times a second. */
    void (*tick)(void *ud);
    void *ud;
} http_handler;

typedef struct http_opts {
    int listen_fd;           /* taken over, also on error */
    bool is_listener_shared; /* somebody else holds the socket too, and goes on listening */
    unsigned max_connections;
    unsigned idle_seconds; /* a connection without traffic is closed */
    uint64_t head_ns;      /* a request's head must be there within, and bodies get a bit more */
    size_t max_body_bytes_total; /* of all bodies that are arriving */
    http_handler handler;
    sl_logger log;
} http_opts;

typedef struct http http;

/* Errors: SL_ENOMEM, SL_EIO. */
int http_open(const http_opts *opts, http **ret_http, sl_error *reterr) SL_MUST_CHECK;

/* New connections are refused; those that are open go on. */
void http_stop_listening(http *h);

/* Cuts what is left, ends the threads, frees and sets *h to NULL. Accepts NULL. */
void http_close(http **h);

#endif
