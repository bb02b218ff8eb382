/* The parts of the server that the routes share. For apps/server alone. */
#ifndef SERVER_APP_H
#define SERVER_APP_H

#include <stdatomic.h>

#include "feed.h"
#include "http.h"
#include "job_queue.h"
#include "metrics.h"
#include "server.h"
#include "worker.h"

typedef struct app {
    server_opts opts;
    job_queue *queue;
    worker *worker;
    metrics metrics;
    feed *feed;
    http *http;           /* for the thread that opened alone */
    atomic_size_t n_open; /* requests in work */
    atomic_size_t n_held; /* bytes of recordings that wait */
    atomic_bool is_stopping;
    atomic_uint_fast64_t next_id;
    uint64_t begin_ns;
} app;

/* ---- routes.c ---- */

reply *app_open(void *ud);
bool app_begin(void *ud, const http_request *request, reply *answer, size_t *ret_max_body);
void app_handle(void *ud, const http_request *request, reply *answer);
void app_done(void *ud, const http_outcome *outcome);
void app_tick(void *ud);

/* Hands a job to the worker, or answers that it cannot be done now. Takes the job over. */
void app_submit(app *a, job *j);

/* ---- what the speaking routes share: api_speech.c, api_voices.c ---- */

uint64_t app_any_seed(void);
job_speech app_speech_defaults(const app *a);

/* Copies the text into the job; false after an answer. */
bool app_take_text(
        const app *a, const char *text, size_t n, const char *param, job *j, reply *answer);

/* Loads the voice of a name into the job; false after an answer. NULL is the default voice. */
bool app_take_voice(const app *a, const char *name, size_t n, job *j, reply *answer);

/* Hands a recording to the job; false after an answer, also when too many wait already. Takes `sound` over. */
bool app_take_sound(app *a, unsigned char *sound, size_t n, job *j, reply *answer);

/* A copy of n bytes for it; NULL after an answer. */
unsigned char *app_copy_sound(const char *bytes, size_t n, reply *answer);

/* Answers the waiting jobs that came before `before_ns` with an error; server.c. */
void app_expire(app *a, uint64_t before_ns, const sl_error *err);

/* ---- api_*.c: each fills `answer`, now or through a job ---- */

typedef void app_route(app *a, const http_request *request, reply *answer);

app_route api_speech;
app_route api_models;
app_route api_model;
app_route api_voices_list;
app_route api_voices_add;
app_route api_voices_remove;
app_route api_generate;
app_route api_health;
app_route api_metrics;
app_route api_residency;
app_route api_sleep;
app_route api_wake;

/* ---- api_error.c ---- */

/* {"error": {...}} with a status; param and code may be NULL. */
void api_fail(reply *answer, int status, const char *param, const char *code, const char *fmt, ...)
        SL_PRINTF(5, 6);

/*
 * The same from an error of the library, in the dialect of the job's API. Paths of the server are taken out of the
 * message; what is the server's own fault goes to the log as it is.
 */
void api_fail_error(const server_opts *opts, reply *answer, job_dialect dialect, const char *param,
        const sl_error *err);

/* Takes the server's folders out of a message. */
void api_hide_folders(const server_opts *opts, sl_error *err);

/* {"error": "..."}: the form API's other kind of error. */
void api_fail_form(reply *answer, int status, const char *fmt, ...) SL_PRINTF(3, 4);

/* One line of text, as the form API has it. */
void api_fail_text(reply *answer, int status, const char *fmt, ...) SL_PRINTF(3, 4);

/* Sends what is in the writer and frees it. */
void api_send_json(reply *answer, int status, sl__json *json);

#endif
