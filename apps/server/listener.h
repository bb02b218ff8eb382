/*
 * The socket that a server listens on: one of its own, or one that the service manager has opened already; and the
 * word to the manager that the service is ready.
 */
#ifndef SERVER_LISTENER_H
#define SERVER_LISTENER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

typedef struct listener {
    int fd;
    bool is_loopback; /* only this machine reaches it */
    char url[96];     /* "http://127.0.0.1:8080" */
} listener;

/*
 * host: a name or address; port 0 = any that is free.
 * Errors: SL_EINVAL (no such host), SL_EACCES, SL_EBUSY (somebody listens there), SL_EIO.
 */
int listener_open(const char *host, uint16_t port, listener *ret, sl_error *reterr) SL_MUST_CHECK;

/*
 * The first socket of LISTEN_FDS, if it is meant for this process. 1 = taken, 0 = there is none.
 * Errors: SL_EINVAL (it does not listen).
 */
int listener_inherit(listener *ret, sl_error *reterr) SL_MUST_CHECK;

/* Tells the service manager ("READY=1", "STOPPING=1"), if there is one. */
void listener_notify(const char *state);

#endif
