#include "http_client.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "os/os_clock.h"
#include "test_support.h"

#define WAIT_MS 30000

int http_connect(uint16_t port, int rcvbuf)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    if (rcvbuf > 0) {
        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &rcvbuf, sizeof rcvbuf);
    }
    if (connect(fd, (struct sockaddr *)&address, sizeof address) != 0) {
        fail_msg("connect to port %u: errno %d", (unsigned)port, errno);
    }
    return fd;
}

bool http_send(int fd, const void *data, size_t n)
{
    const char *at = data;
    while (n > 0) {
        ssize_t done = send(fd, at, n, MSG_NOSIGNAL);
        if (done <= 0) {
            return false;
        }
        at += done;
        n -= (size_t)done;
    }
    return true;
}

/* What comes next, at most n bytes; 0 = the peer closed, or nothing came for very long. */
static size_t receive_some(int fd, void *buf, size_t n)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    if (poll(&p, 1, WAIT_MS) <= 0) {
        return 0;
    }
    ssize_t got = recv(fd, buf, n, 0);
    return got > 0 ? (size_t)got : 0;
}

size_t http_receive(int fd, void *buf, size_t n)
{
    size_t done = 0;
    while (done < n) {
        size_t got = receive_some(fd, (char *)buf + done, n - done);
        if (got == 0) {
            break;
        }
        done += got;
    }
    return done;
}

/* A number at the start of a text, in the base 10 or 16. */
static size_t number(const char *text, unsigned base)
{
    static const char digits[] = "0123456789abcdef";
    size_t v = 0;
    for (; *text; text++) {
        char c = *text >= 'A' && *text <= 'F' ? (char)(*text - 'A' + 'a') : *text;
        const char *at = strchr(digits, c);
        if (!at || (size_t)(at - digits) >= base) {
            break;
        }
        v = base * v + (size_t)(at - digits);
    }
    return v;
}

const char *http_header(const http_response *r, const char *name, char *buf, size_t buf_bytes)
{
    size_t n_name = strlen(name);
    const char *at = strchr(r->head, '\n');
    while (at) {
        at++;
        if (strncasecmp(at, name, n_name) == 0 && at[n_name] == ':') {
            at += n_name + 1;
            at += strspn(at, " ");
            snprintf(buf, buf_bytes, "%.*s", (int)strcspn(at, "\r\n"), at);
            return buf;
        }
        at = strchr(at, '\n');
    }
    return NULL;
}

static void append(http_response *r, const void *data, size_t n)
{
    r->body = realloc(r->body, r->n_body + n + 1);
    assert_non_null(r->body);
    memcpy(r->body + r->n_body, data, n);
    r->n_body += n;
    r->body[r->n_body] = '\0';
}

/* A line of a chunked body, without its end. False at the end of the connection. */
static bool read_line(int fd, char *line, size_t line_bytes)
{
    size_t n = 0;
    char c = 0;
    while (n + 1 < line_bytes && http_receive(fd, &c, 1) == 1 && c != '\n') {
        line[n++] = c;
    }
    line[n] = '\0';
    line[strcspn(line, "\r")] = '\0';
    return c == '\n';
}

static void read_chunks(int fd, http_response *r)
{
    char line[64];
    char buf[8192];
    while (read_line(fd, line, sizeof line)) {
        size_t n = number(line, 16);
        if (n == 0) {
            r->is_complete = read_line(fd, line, sizeof line);
            return;
        }
        while (n > 0) {
            size_t got = receive_some(fd, buf, n < sizeof buf ? n : sizeof buf);
            if (got == 0) {
                return;
            }
            r->first_ns = r->first_ns ? r->first_ns : sl__now_ns();
            append(r, buf, got);
            n -= got;
        }
        if (!read_line(fd, line, sizeof line)) {
            return;
        }
    }
}

size_t http_read_chunk(int fd, void *buf, size_t buf_bytes)
{
    char line[64];
    size_t n = read_line(fd, line, sizeof line) ? number(line, 16) : 0;
    assert_true(n <= buf_bytes);
    size_t got = http_receive(fd, buf, n);
    (void)read_line(fd, line, sizeof line);
    return got == n ? n : 0;
}

static void read_plain(int fd, http_response *r, size_t n)
{
    char buf[8192];
    while (r->n_body < n) {
        size_t left = n - r->n_body;
        size_t got = receive_some(fd, buf, left < sizeof buf ? left : sizeof buf);
        if (got == 0) {
            break;
        }
        r->first_ns = r->first_ns ? r->first_ns : sl__now_ns();
        append(r, buf, got);
    }
    r->is_complete = r->n_body == n;
}

bool http_read_head(int fd, http_response *r)
{
    size_t n = 0;
    while (n + 1 < sizeof r->head && !strstr(r->head, "\r\n\r\n")) {
        if (http_receive(fd, r->head + n, 1) != 1) {
            return false;
        }
        r->head[++n] = '\0';
    }
    r->status = (int)number(r->head + strcspn(r->head, " ") + (r->head[0] ? 1 : 0), 10);
    return true;
}

void http_read_response(int fd, http_response *ret)
{
    char value[64];
    memset(ret, 0, sizeof *ret);
    append(ret, "", 0);
    do {
        ret->head[0] = '\0';
        memset(ret->head, 0, sizeof ret->head);
        if (!http_read_head(fd, ret)) {
            ret->status = 0;
            return;
        }
    } while (ret->status == 100);
    if (http_header(ret, "Transfer-Encoding", value, sizeof value)) {
        ret->is_chunked = true;
        read_chunks(fd, ret);
    } else if (http_header(ret, "Content-Length", value, sizeof value)) {
        read_plain(fd, ret, number(value, 10));
    } else {
        ret->is_complete = true;
    }
}

void http_response_done(http_response *r)
{
    free(r->body);
    memset(r, 0, sizeof *r);
}

static void send_request(int fd, const char *method, const char *path, const char *headers,
        const void *body, size_t n_body)
{
    char head[2048];
    int n = snprintf(head, sizeof head,
            "%s %s HTTP/1.1\r\nHost: localhost\r\n%sContent-Length: %zu\r\n\r\n", method, path,
            headers, n_body);
    assert_true(n > 0 && (size_t)n < sizeof head);
    if (!body && n_body == 0 && strcmp(method, "GET") == 0) {
        n = snprintf(head, sizeof head, "%s %s HTTP/1.1\r\nHost: localhost\r\n%s\r\n", method, path,
                headers);
    }
    if (http_send(fd, head, (size_t)n) && n_body > 0) {
        (void)http_send(fd, body, n_body);
    }
}

void http_ask(uint16_t port, const char *method, const char *path, const char *headers,
        const void *body, size_t n_body, http_response *ret)
{
    int fd = http_connect(port, 0);
    send_request(fd, method, path, headers, body, n_body);
    http_read_response(fd, ret);
    close(fd);
}

void http_post_json(uint16_t port, const char *path, const char *json, http_response *ret)
{
    http_ask(port, "POST", path, "Content-Type: application/json\r\n", json, strlen(json), ret);
}

int http_begin_json(uint16_t port, const char *path, const char *json, int rcvbuf)
{
    int fd = http_connect(port, rcvbuf);
    send_request(fd, "POST", path, "Content-Type: application/json\r\n", json, strlen(json));
    return fd;
}

void http_reset(int fd)
{
    struct linger now = {.l_onoff = 1, .l_linger = 0};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    close(fd);
}

void http_expect_header(const http_response *r, const char *name, const char *value)
{
    char buf[256];
    const char *found = http_header(r, name, buf, sizeof buf);
    if (!found) {
        fail_msg("no header %s in\n%s", name, r->head);
    }
    assert_string_equal(found, value);
}

uint32_t http_le32(const char *at)
{
    const unsigned char *u = (const unsigned char *)at;
    return u[0] | (uint32_t)u[1] << 8 | (uint32_t)u[2] << 16 | (uint32_t)u[3] << 24;
}

static void ask(void *ud)
{
    http_asker *a = ud;
    http_post_json(a->port, a->path, a->json, &a->response);
}

void http_asker_start(http_asker *a, uint16_t port, const char *path)
{
    sl_error err;
    a->port = port;
    a->path = path;
    assert_ok(sl__thread_start(&a->thread, "asker", ask, a, &err), &err);
}

void http_asker_join(http_asker *a)
{
    sl__thread_join(&a->thread);
}
