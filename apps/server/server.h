/*
 * The speech server: HTTP in front of one engine.
 *
 *     connections (http.c) -> routes (routes.c, api_*.c) -> queue -> worker, the one thread that uses the engine
 *              ^                                                      |
 *              +------------------- answers (reply.c) <---------------+
 *
 * Does not promise: TLS; a reverse proxy does that.
 *
 * Threads: one thread opens, asks and closes.
 */
#ifndef SERVER_SERVER_H
#define SERVER_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "sleep_plan.h"
#include "sluice/log.h"
#include "speaker.h"

typedef struct server_limits {
    size_t text_bytes; /* of one request */
    size_t body_bytes; /* of an upload */
    size_t n_waiting;  /* requests in the queue */
    size_t n_connections;
    size_t n_voices;     /* saved */
    uint32_t max_frames; /* that a request may ask for, of one piece */
    double recording_seconds;
    size_t buffer_bytes;   /* of sound that a client has not read */
    uint64_t queue_ns;     /* a request waits at most; 0 = as long as its client does */
    uint64_t stall_ns;     /* a client that does not read is dropped after */
    uint64_t head_ns;      /* a request's head must arrive within */
    unsigned idle_seconds; /* a connection without traffic is closed after */
} server_limits;

server_limits server_default_limits(void);

typedef struct server_opts {
    int listen_fd;           /* taken over, also on error */
    bool is_listener_shared; /* somebody else holds the socket too, and goes on listening */
    speaker engine;
    const char *model_name; /* for /v1/models */
    const char *model_path;
    size_t n_model_dir; /* bytes of the path that are its folder, without the slash */
    const char *version;
    const char *voice_dir;
    const char *default_voice; /* NULL = none */
    const char *api_key;       /* NULL = none is asked for */
    const char *cors_origin;   /* "*", one origin, or NULL = no other site may use the server */
    const char *allow_host;    /* a host name besides localhost; NULL = none */
    bool is_loopback;          /* the socket is reached from this machine alone */
    uint32_t segment_bytes;
    sleep_plan sleep;
    uint64_t stop_ns; /* running requests may go on for so long after server_stop */
    server_limits limits;
    sl_logger log;
} server_opts;

typedef struct server server;

/*
 * Starts the threads and returns; requests are taken at once, and the model is opened meanwhile. Strings of the options
 * must live until close. Errors: SL_ENOMEM, SL_EIO.
 */
int server_open(const server_opts *opts, server **ret_server, sl_error *reterr) SL_MUST_CHECK;

/* True once the model is open, and until the server stops. */
bool server_is_ready(server *s);

/* True if the model could not be opened: the server can only be closed. *ret_error says why. */
bool server_has_failed(server *s, sl_error *ret_error);

/*
 * Ends in order: no new connections, waiting requests are told to come back, running ones go on until stop_ns has
 * passed, then are cut. Frees and sets *s to NULL. Accepts NULL.
 */
void server_close(server **s);

#endif
