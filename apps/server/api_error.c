#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "app.h"
#include "base/log.h"

#define JSON_TYPE "application/json"
#define TEXT_TYPE "text/plain; charset=utf-8"

void api_send_json(reply *answer, int status, sl__json *json)
{
    size_t n = 0;
    const char *text = sl__json_text(json, &n);
    if (text) {
        reply_whole(answer, status, JSON_TYPE, text, n);
    } else {
        reply_whole(answer, 503, TEXT_TYPE, "out of memory\n", 14);
    }
    sl__json_done(json);
}

static const char *type_of(int status)
{
    switch (status) {
    case 401:
        return "authentication_error";
    case 403:
        return "permission_error";
    case 429:
        return "rate_limit_error";
    default:
        return status >= 500 ? "server_error" : "invalid_request_error";
    }
}

static void send_error(
        reply *answer, int status, const char *param, const char *code, const char *message)
{
    sl__json json = {0};
    sl__json_object(&json);
    sl__json_key(&json, "error");
    sl__json_object(&json);
    sl__json_put_cstr(&json, "message", message);
    sl__json_put_cstr(&json, "type", type_of(status));
    sl__json_put_cstr(&json, "param", param);
    sl__json_put_cstr(&json, "code", code);
    sl__json_end(&json);
    sl__json_end(&json);
    api_send_json(answer, status, &json);
}

void api_fail(reply *answer, int status, const char *param, const char *code, const char *fmt, ...)
{
    char message[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(message, sizeof message, fmt, ap);
    va_end(ap);
    send_error(answer, status, param, code, message);
}

void api_fail_text(reply *answer, int status, const char *fmt, ...)
{
    char message[520];
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(message, sizeof message - 1, fmt, ap);
    va_end(ap);
    size_t n_message = n < 0 ? 0 : strnlen(message, sizeof message - 1);
    message[n_message] = '\n';
    reply_whole(answer, status, TEXT_TYPE, message, n_message + 1);
}

void api_fail_form(reply *answer, int status, const char *fmt, ...)
{
    char message[512];
    sl__json json = {0};
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(message, sizeof message, fmt, ap);
    va_end(ap);
    sl__json_object(&json);
    sl__json_put_cstr(&json, "error", message);
    sl__json_end(&json);
    api_send_json(answer, status, &json);
}

/* Takes every "DIR/" out of a message: where files are is nothing that a client needs to know. */
static void hide_folder(char *msg, const char *dir, size_t n_dir)
{
    char shown[256];
    sl__quote(shown, sizeof shown, dir, n_dir);
    size_t n = strlen(shown);
    for (char *at = n > 0 ? strstr(msg, shown) : NULL; at; at = strstr(at, shown)) {
        size_t n_cut = n + (at[n] == '/');
        memmove(at, at + n_cut, strlen(at + n_cut) + 1);
    }
}

void api_hide_folders(const server_opts *opts, sl_error *err)
{
    hide_folder(err->msg, opts->voice_dir, strlen(opts->voice_dir));
    hide_folder(err->msg, opts->model_path, opts->n_model_dir);
}

/* What went wrong here is not the client's to mend, whatever the library's table says. */
static int status_of(const sl_error *err, job_dialect dialect)
{
    switch (err->code) {
    case SL_EBUSY:
        return dialect == DIALECT_OPENAI ? 429 : 503;
    case SL_EACCES:
        return 500;
    case SL_ECANCELLED:
        return 503;
    default:
        return sl_err_http_status(err->code);
    }
}

void api_fail_error(const server_opts *opts, reply *answer, job_dialect dialect, const char *param,
        const sl_error *err)
{
    sl_error shown = *err;
    int status = status_of(err, dialect);
    api_hide_folders(opts, &shown);
    if (status == 429 || status == 503) {
        reply_add_header(answer, "Retry-After", "1");
    }
    if (status >= 500 && status != 503) {
        sl__log(&opts->log, SL_LOG_ERROR, "request %" PRIu64 ": %s", reply_id(answer), err->msg);
    }
    if (dialect == DIALECT_FORM) {
        api_fail_text(answer, status, "%s", shown.msg);
    } else {
        send_error(answer, status, param, NULL, shown.msg);
    }
}
