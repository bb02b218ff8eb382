/*
 * From a request to the function that answers it: who may ask (key, host, origin), what there is, how much may
 * come. What holds for all answers, their headers and the log, is here too.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "app.h"
#include "base/log.h"
#include "origin.h"
#include "os/os_clock.h"
#include "web_files.h"

#define SMALL_BODY ((size_t)64 << 10)

typedef enum body_kind {
    NO_BODY,
    SMALL,
    TEXT,
    UPLOAD
} body_kind;

typedef struct route {
    const char *method;
    const char *path;
    app_route *run;
    body_kind body;
    bool is_prefix; /* path ends before a name */
    bool is_open;   /* needs no key: it tells nothing that is worth one */
} route;

static const route routes[] = {
        {"POST", "/v1/audio/speech", api_speech, TEXT, false, false},
        {"GET", "/v1/models", api_models, NO_BODY, false, false},
        {"GET", "/v1/models/", api_model, NO_BODY, true, false},
        {"GET", "/v1/audio/voices", api_voices_list, NO_BODY, false, false},
        {"POST", "/v1/audio/voices", api_voices_add, UPLOAD, false, false},
        {"DELETE", "/v1/audio/voices/", api_voices_remove, SMALL, true, false},
        {"POST", "/generate", api_generate, UPLOAD, false, false},
        {"GET", "/health", api_health, NO_BODY, false, true},
        {"GET", "/metrics", api_metrics, NO_BODY, false, false},
        {"GET", "/residency", api_residency, NO_BODY, false, false},
        {"POST", "/sleep", api_sleep, SMALL, false, false},
        {"POST", "/wake", api_wake, SMALL, false, false},
};
#define N_ROUTES (sizeof routes / sizeof routes[0])

static bool matches_path(const route *r, const char *path)
{
    size_t n = strlen(r->path);
    return r->is_prefix ? strncmp(path, r->path, n) == 0 && path[n] != '\0'
                        : strcmp(path, r->path) == 0;
}

static bool matches_method(const route *r, const char *method)
{
    bool is_head = strcmp(method, "HEAD") == 0 && strcmp(r->method, "GET") == 0;
    return is_head || strcmp(r->method, method) == 0;
}

static const route *find_route(const http_request *request)
{
    for (size_t i = 0; i < N_ROUTES; i++) {
        if (matches_path(&routes[i], request->path) &&
                matches_method(&routes[i], request->method)) {
            return &routes[i];
        }
    }
    return NULL;
}

static const web_file *find_file(const char *path)
{
    for (size_t i = 0; i < web_n_files; i++) {
        if (strcmp(web_files[i].path, path) == 0) {
            return &web_files[i];
        }
    }
    return NULL;
}

/* The methods that a path has, as a list; empty if there is no such path. */
static void list_methods(const char *path, char *buf, size_t buf_bytes)
{
    size_t n = 0;
    buf[0] = '\0';
    for (size_t i = 0; i < N_ROUTES; i++) {
        if (matches_path(&routes[i], path) && n < buf_bytes) {
            bool is_get = strcmp(routes[i].method, "GET") == 0;
            n += (size_t)snprintf(buf + n, buf_bytes - n, "%s%s%s", n > 0 ? ", " : "",
                    routes[i].method, is_get ? ", HEAD" : "");
        }
    }
    if (find_file(path)) {
        snprintf(buf, buf_bytes, "GET, HEAD");
    }
}

static const char *header(const http_request *request, const char *name)
{
    const char *value = request->header(request->ud, name);
    return value ? value : "";
}

/* ---- all answers ---- */

static void add_cors(const app *a, reply *answer)
{
    const char *origin = a->opts.cors_origin;
    if (!origin) {
        reply_add_header(answer, "Cross-Origin-Resource-Policy", "same-origin");
        return;
    }
    reply_add_header(answer, "Access-Control-Allow-Origin", "%s", origin);
    if (strcmp(origin, "*") != 0) {
        reply_add_header(answer, "Vary", "Origin");
    }
    reply_add_header(answer, "Access-Control-Expose-Headers", "*");
}

reply *app_open(void *ud)
{
    app *a = ud;
    reply *answer = NULL;
    if (reply_create(a->opts.limits.buffer_bytes, &answer, NULL) < 0) {
        return NULL;
    }
    atomic_fetch_add(&a->n_open, 1);
    uint64_t id = atomic_fetch_add(&a->next_id, 1) + 1;
    reply_set_id(answer, id);
    reply_add_header(answer, "X-Request-Id", "%" PRIu64, id);
    reply_add_header(answer, "X-Content-Type-Options", "nosniff");
    reply_add_header(answer, "Referrer-Policy", "no-referrer");
    add_cors(a, answer);
    return answer;
}

static void send_file(const http_request *request, const web_file *file, reply *answer)
{
    reply_add_header(answer, "Cache-Control", "no-cache");
    reply_add_header(answer, "ETag", "%s", file->etag);
    reply_add_header(answer, "X-Frame-Options", "DENY");
    reply_add_header(answer, "Permissions-Policy", "microphone=(self), camera=(), geolocation=()");
    reply_add_header(answer, "Content-Security-Policy",
            "default-src 'self'; media-src 'self' blob:; img-src 'self' data: blob:; "
            "worker-src 'self' blob:; base-uri 'none'; frame-ancestors 'none'");
    if (strcmp(header(request, "If-None-Match"), file->etag) == 0) {
        reply_whole(answer, 304, NULL, "", 0);
    } else {
        reply_whole(answer, 200, file->type, file->bytes, file->n);
    }
}

/* ---- who may ask ---- */

static bool may_use(const char *allowed, const char *origin)
{
    return allowed && (strcmp(allowed, "*") == 0 || strcmp(allowed, origin) == 0);
}

/* An answer if the request may not be served at all. */
static bool refuse_stranger(const app *a, const http_request *request, reply *answer)
{
    const char *host = header(request, "Host");
    const char *origin = header(request, "Origin");
    char quoted[128];
    if (a->opts.is_loopback && !a->opts.api_key && !host_is_local(host) &&
            !(a->opts.allow_host && host_is(host, a->opts.allow_host))) {
        api_fail(answer, 403, NULL, "host_not_allowed",
                "Host is '%s', which is not a name of this machine; if it should be, start with "
                "--allow-host NAME",
                sl__quote(quoted, sizeof quoted, host, strlen(host)));
        return true;
    }
    if (*origin && !may_use(a->opts.cors_origin, origin) && !origin_is_host(origin, host)) {
        api_fail(answer, 403, NULL, "origin_not_allowed",
                "a page of %s may not use this server; allow it with --cors ORIGIN",
                sl__quote(quoted, sizeof quoted, origin, strlen(origin)));
        return true;
    }
    return false;
}

static bool has_key(const app *a, const http_request *request)
{
    static const char bearer[] = "Bearer ";
    const char *key = header(request, "X-API-Key");
    const char *authorization = header(request, "Authorization");
    if (!a->opts.api_key) {
        return true;
    }
    if (strncmp(authorization, bearer, sizeof bearer - 1) == 0) {
        key = authorization + sizeof bearer - 1;
    }
    return key_is_equal(key, a->opts.api_key);
}

static void answer_options(const app *a, const http_request *request, reply *answer)
{
    char methods[64];
    list_methods(request->path, methods, sizeof methods);
    reply_add_header(answer, "Allow", "%s%sOPTIONS", methods, *methods ? ", " : "");
    if (a->opts.cors_origin) {
        reply_add_header(answer, "Access-Control-Allow-Methods", "%s", methods);
        reply_add_header(
                answer, "Access-Control-Allow-Headers", "authorization, content-type, x-api-key");
        reply_add_header(answer, "Access-Control-Max-Age", "600");
    }
    reply_whole(answer, 204, NULL, "", 0);
}

static void answer_unknown(const http_request *request, reply *answer)
{
    char methods[64];
    char quoted[96];
    list_methods(request->path, methods, sizeof methods);
    if (*methods) {
        reply_add_header(answer, "Allow", "%s", methods);
        api_fail(answer, 405, NULL, "method_not_allowed", "%s has %s, not %s", request->path,
                methods, request->method);
    } else {
        api_fail(answer, 404, NULL, "not_found", "there is no '%s' here",
                sl__quote(quoted, sizeof quoted, request->path, strlen(request->path)));
    }
}

static size_t most_body(const app *a, body_kind kind)
{
    switch (kind) {
    case TEXT: /* every byte may be escaped as six */
        return 6 * a->opts.limits.text_bytes + SMALL_BODY;
    case UPLOAD:
        return a->opts.limits.body_bytes + 6 * a->opts.limits.text_bytes + SMALL_BODY;
    case SMALL:
    case NO_BODY:
    default:
        return SMALL_BODY;
    }
}

/* True if Content-Length says more than `most`, or nonsense. */
static bool is_too_long(const http_request *request, size_t most)
{
    uint64_t n = 0;
    const char *text = header(request, "Content-Length");
    for (; *text >= '0' && *text <= '9'; text++) {
        n = 10 * n + (uint64_t)(*text - '0');
        if (n > most) {
            return true;
        }
    }
    return false;
}

bool app_begin(void *ud, const http_request *request, reply *answer, size_t *ret_max_body)
{
    app *a = ud;
    const web_file *file = find_file(request->path);
    const route *r = find_route(request);
    bool is_get = strcmp(request->method, "GET") == 0 || strcmp(request->method, "HEAD") == 0;
    *ret_max_body = 0;
    if (refuse_stranger(a, request, answer)) {
        return true;
    }
    if (file && is_get) {
        send_file(request, file, answer);
        return true;
    }
    reply_add_header(answer, "Cache-Control", "no-store");
    reply_add_header(answer, "Content-Security-Policy", "default-src 'none'");
    if (strcmp(request->method, "OPTIONS") == 0) {
        answer_options(a, request, answer);
    } else if (!r) {
        answer_unknown(request, answer);
    } else if (!r->is_open && !has_key(a, request)) {
        reply_add_header(answer, "WWW-Authenticate", "Bearer");
        api_fail(answer, 401, NULL, "invalid_api_key",
                "the API key is missing or wrong; send it as 'Authorization: Bearer KEY'");
    } else if (is_too_long(request, most_body(a, r->body))) {
        api_fail(answer, 413, NULL, "too_large", "the body may have at most %zu bytes",
                most_body(a, r->body));
    } else {
        *ret_max_body = most_body(a, r->body);
        return false;
    }
    return true;
}

void app_handle(void *ud, const http_request *request, reply *answer)
{
    app *a = ud;
    const route *r = find_route(request);
    if (r) {
        r->run(a, request, answer);
    } else {
        answer_unknown(request, answer);
    }
}

void app_submit(app *a, job *j)
{
    sl_error err = {0};
    reply *answer = reply_ref(j->answer);
    job_dialect dialect = j->dialect;
    if (worker_get_state(a->worker) == WORKER_FAILED) {
        job_free(&j);
        api_fail(answer, 503, NULL, "not_ready", "the model could not be opened");
    } else if (job_queue_push(a->queue, j, &err) < 0) {
        if (err.code == SL_EBUSY) {
            atomic_fetch_add(&a->metrics.n_refused, 1);
        } else {
            err.code = SL_EDEVICE; /* stopping: 503 */
        }
        api_fail_error(&a->opts, answer, dialect, NULL, &err);
    }
    reply_unref(&answer);
}

void app_done(void *ud, const http_outcome *outcome)
{
    app *a = ud;
    char path[80];
    int hundred = outcome->status / 100;
    atomic_fetch_sub(&a->n_open, 1);
    atomic_fetch_add(&a->metrics.answers[hundred >= 1 && hundred <= 5 ? hundred : 0], 1);
    bool is_probe = strcmp(outcome->path, "/health") == 0 || strcmp(outcome->path, "/metrics") == 0;
    sl__log(&a->opts.log, is_probe ? SL_LOG_DEBUG : SL_LOG_INFO,
            "request %" PRIu64 ": %s %s %d, %" PRIu64 " bytes in %.3f s%s", outcome->id,
            outcome->method, sl__quote(path, sizeof path, outcome->path, strlen(outcome->path)),
            outcome->status, outcome->n_bytes, (double)outcome->n_ns * 1e-9,
            outcome->is_complete ? "" : ", cut");
}
