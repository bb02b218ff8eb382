/* An HTTP client for tests that sees everything: raw bytes out, raw bytes in, and how the connection ended. */
#ifndef HTTP_CLIENT_H
#define HTTP_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "os/os_thread.h"

typedef struct http_response {
    int status;      /* 0 = none came */
    char head[4096]; /* with the status line */
    char *body;      /* decoded from chunks; a NUL behind it */
    size_t n_body;
    bool is_chunked;
    bool is_complete;  /* the last chunk, or all of Content-Length */
    uint64_t first_ns; /* sl__now_ns() at the first byte of the body */
} http_response;

/* A connection to 127.0.0.1; fails the test if there is none. rcvbuf: bytes, 0 = the system's. */
int http_connect(uint16_t port, int rcvbuf);

/* Sends all bytes; false if the peer closed. */
bool http_send(int fd, const void *data, size_t n);

/* Reads until `n` bytes came or the peer closed; returns how many did. */
size_t http_receive(int fd, void *buf, size_t n);

/* Reads a whole response, for at most 30 s. */
void http_read_response(int fd, http_response *ret);

/* Reads a head; false if none came. Then the chunks of its body one by one: their bytes, 0 for the last one or the end. */
bool http_read_head(int fd, http_response *r);
size_t http_read_chunk(int fd, void *buf, size_t buf_bytes);

void http_response_done(http_response *r);

/* Value of a header, without blanks around it; NULL if there is none. `buf` takes it. */
const char *http_header(const http_response *r, const char *name, char *buf, size_t buf_bytes);

/* Fails the test unless the header is there with this value. */
void http_expect_header(const http_response *r, const char *name, const char *value);

/* Four bytes of a body, little endian. */
uint32_t http_le32(const char *at);

/* One request on a connection of its own; body may be NULL. `headers` is lines that end with CRLF, or "". */
void http_ask(uint16_t port, const char *method, const char *path, const char *headers,
        const void *body, size_t n_body, http_response *ret);

/* POST of JSON. */
void http_post_json(uint16_t port, const char *path, const char *json, http_response *ret);

/* Sends the request of http_post_json and returns the connection. */
int http_begin_json(uint16_t port, const char *path, const char *json, int rcvbuf);

/* A client with a thread of its own: http_post_json of `path` and `json`. */
typedef struct http_asker {
    sl__thread thread;
    uint16_t port;
    const char *path;
    char json[240];
    http_response response;
} http_asker;

void http_asker_start(http_asker *a, uint16_t port, const char *path);
void http_asker_join(http_asker *a); /* the response is there */

/* Closes with a reset instead of an orderly end. */
void http_reset(int fd);

#endif
