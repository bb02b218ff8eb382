#define _GNU_SOURCE /* SOCK_CLOEXEC */

#include "listener.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define BACKLOG         128
#define FIRST_INHERITED 3

static bool is_loopback(const struct sockaddr_storage *address)
{
    if (address->ss_family == AF_INET) {
        struct sockaddr_in v4;
        memcpy(&v4, address, sizeof v4);
        return ntohl(v4.sin_addr.s_addr) >> 24 == 127;
    }
    if (address->ss_family == AF_INET6) {
        struct sockaddr_in6 v6;
        memcpy(&v6, address, sizeof v6);
        return IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr);
    }
    return address->ss_family == AF_UNIX;
}

/* Fills what is known of a listening socket. */
static int describe(int fd, listener *ret, sl_error *reterr)
{
    struct sockaddr_storage address = {0};
    socklen_t n = sizeof address;
    char host[64] = "?";
    char port[8] = "?";
    if (getsockname(fd, (struct sockaddr *)&address, &n) != 0) {
        return sl__fail_os(reterr, errno, "the listening socket");
    }
    ret->fd = fd;
    ret->is_loopback = is_loopback(&address);
    if (address.ss_family == AF_UNIX) {
        snprintf(ret->url, sizeof ret->url, "a Unix socket");
        return SL_OK;
    }
    (void)getnameinfo((struct sockaddr *)&address, n, host, sizeof host, port, sizeof port,
            NI_NUMERICHOST | NI_NUMERICSERV);
    bool is_v6 = address.ss_family == AF_INET6;
    snprintf(ret->url, sizeof ret->url, "http://%s%s%s:%s", is_v6 ? "[" : "", host,
            is_v6 ? "]" : "", port);
    return SL_OK;
}

static int listen_on(const struct addrinfo *info)
{
    static const int on = 1;
    int fd = socket(
            info->ai_family, info->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, info->ai_protocol);
    if (fd < 0) {
        return -1;
    }
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(fd, info->ai_addr, info->ai_addrlen) != 0 || listen(fd, BACKLOG) != 0) {
        int os_errno = errno;
        (void)close(fd);
        errno = os_errno;
        return -1;
    }
    return fd;
}

int listener_open(const char *host, uint16_t port, listener *ret, sl_error *reterr)
{
    char service[8];
    char quoted[80];
    struct addrinfo *found = NULL;
    const struct addrinfo hints = {
            .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    sl__quote(quoted, sizeof quoted, host, strlen(host));
    snprintf(service, sizeof service, "%u", (unsigned)port);
    int code = getaddrinfo(host, service, &hints, &found);
    if (code != 0) {
        return sl__fail(reterr, SL_EINVAL, "--host %s: %s", quoted, gai_strerror(code));
    }
    int fd = -1;
    for (const struct addrinfo *at = found; at && fd < 0; at = at->ai_next) {
        fd = listen_on(at);
    }
    int os_errno = errno;
    freeaddrinfo(found);
    if (fd < 0 && os_errno == EADDRINUSE) {
        return sl__fail(reterr, SL_EBUSY,
                "%s port %u: another program listens there; choose another --port", quoted,
                (unsigned)port);
    }
    if (fd < 0) {
        return sl__fail_os(reterr, os_errno, "%s port %u: cannot listen", quoted, (unsigned)port);
    }
    int r = describe(fd, ret, reterr);
    if (r < 0) {
        (void)close(fd);
    }
    return r;
}

/* A number of the environment, or -1. */
static long env_number(const char *name)
{
    const char *text =
            getenv(name); /* NOLINT(concurrency-mt-unsafe): nothing here sets variables */
    long value = 0;
    if (!text || !*text) {
        return -1;
    }
    for (; *text; text++) {
        if (*text < '0' || *text > '9' || value > 100000000) {
            return -1;
        }
        value = 10 * value + (*text - '0');
    }
    return value;
}

int listener_inherit(listener *ret, sl_error *reterr)
{
    int is_listening = 0;
    socklen_t n = sizeof is_listening;
    if (env_number("LISTEN_PID") != (long)getpid() || env_number("LISTEN_FDS") < 1) {
        return 0;
    }
    const int fd = FIRST_INHERITED;
    if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &is_listening, &n) != 0 || !is_listening) {
        return sl__fail(reterr, SL_EINVAL,
                "LISTEN_FDS: descriptor %d does not listen; the unit needs a stream socket", fd);
    }
    (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
    (void)fcntl(fd, F_SETFL, O_NONBLOCK);
    int r = describe(fd, ret, reterr);
    return r < 0 ? r : 1;
}

void listener_notify(const char *state)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    /* Nothing here sets variables. */
    const char *path = getenv("NOTIFY_SOCKET"); /* NOLINT(concurrency-mt-unsafe) */
    size_t n = path ? strlen(path) : 0;
    if (n < 2 || n >= sizeof address.sun_path) {
        return;
    }
    memcpy(address.sun_path, path, n);
    if (address.sun_path[0] == '@') {
        address.sun_path[0] = '\0'; /* of the abstract name space */
    }
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd >= 0) {
        socklen_t n_address = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n);
        (void)sendto(
                fd, state, strlen(state), MSG_NOSIGNAL, (struct sockaddr *)&address, n_address);
        (void)close(fd);
    }
}
