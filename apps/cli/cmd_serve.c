/*
 * sluice serve: the speech server of apps/server until it is told to stop.
 *
 * The first interrupt ends it in order, a later one at once. A hang-up ends it only if it has a terminal that can
 * hang up: as a service there is nothing to read again.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/status.h"
#include "commands.h"
#include "engine_options.h"
#include "engine_state.h"
#include "interrupt.h"
#include "listener.h"
#include "os/os_clock.h"
#include "os/os_file.h"
#include "os/os_thread.h"
#include "report.h"
#include "server.h"
#include "sluice/map.h"
#include "voice_dir.h"

#define LOOK_NS     UINT64_C(50000000)
#define KEY_MOST    4096u
#define KEY_LEAST   8u
#define API_KEY_VAR "SLUICE_API_KEY"

typedef struct serve_opts {
    engine_options engine;
    const char *host;
    int32_t port;
    const char *voice_dir;
    const char *voice;
    const char *api_key_file;
    const char *cors;
    const char *allow_host;
    const char *sleep_after;
    const char *stop_timeout;
    const char *stall_timeout;
    const char *queue_timeout;
    const char *head_timeout;
    int32_t queue;
    int32_t connections;
    int32_t voices;
    int32_t segment_bytes;
    int32_t max_frames;
    int32_t max_reference;
    uint64_t max_text;
    uint64_t max_body;
    uint64_t buffer;
    bool quiet;
    bool verbose;
} serve_opts;

#define STR(n, field, a, h, d)                                                                     \
    {                                                                                              \
        .name = (n), .kind = OPT_STR, .offset = offsetof(serve_opts, field), .arg = (a),           \
        .help = (h), .def = (d)                                                                    \
    }
#define NUM(n, k, field, a, h, d, lo, hi)                                                          \
    {                                                                                              \
        .name = (n), .kind = (k), .offset = offsetof(serve_opts, field), .arg = (a), .help = (h),  \
        .def = (d), .min = (lo), .max = (hi)                                                       \
    }

static const opt_def defs[] = {
        ENGINE_OPTION_ROWS(serve_opts, engine),
        STR("host", host, "ADDRESS",
                "Where to listen; other than this machine's own addresses it needs an API key.",
                "127.0.0.1"),
        NUM("port", OPT_I32, port, "N", "Port to listen on; 0 is any that is free.", "3030", 0,
                65535),
        STR("voice-dir", voice_dir, "DIR", VOICE_DIR_HELP, NULL),
        STR("voice", voice, "NAME",
                "Saved voice for requests that name none, or one of the OpenAI API's.", NULL),
        STR("api-key-file", api_key_file, "FILE",
                "The key that clients must send; default: the variable " API_KEY_VAR
                ", else none is asked for.",
                NULL),
        STR("cors", cors, "ORIGIN", "Let pages of this origin use the server; '*' is all of them.",
                NULL),
        STR("allow-host", allow_host, "NAME",
                "A host name, besides localhost, by which clients may call the server.", NULL),
        STR("sleep-after", sleep_after, "LIST",
                "Idle times and sleep levels: 1 gives scratch back, 2 the devices' memory, 3 the "
                "page "
                "cache; 'never' is none.",
                "60s:1,300s:2,900s:3"),
        NUM("queue", OPT_I32, queue, "N", "Requests that may wait.", "32", 1, 100000),
        STR("queue-timeout", queue_timeout, "TIME",
                "A request waits at most; 0 is as long as its client does.", "300s"),
        STR("stall-timeout", stall_timeout, "TIME",
                "A client that does not read its sound is dropped after, six times sooner while "
                "others wait.",
                "30s"),
        STR("head-timeout", head_timeout, "TIME", "A request must have arrived within.", "30s"),
        STR("stop-timeout", stop_timeout, "TIME",
                "What runs may go on for so long once the server is told to stop.", "4s"),
        NUM("connections", OPT_I32, connections, "N", "Connections at a time.", "256", 1, 10000),
        NUM("max-voices", OPT_I32, voices, "N", "Voices that may be saved.", "1000", 0, 1 << 20),
        NUM("max-frames", OPT_I32, max_frames, "N",
                "Longest speech of one piece that requests may ask for, in frames.", "8192", 1,
                1 << 24),
        NUM("max-reference", OPT_I32, max_reference, "SECONDS", "Longest recording of a voice.",
                "120", 1, 3600),
        NUM("max-text", OPT_BYTES, max_text, "BYTES", "Longest text of a request.", "64K", 1,
                1 << 26),
        NUM("max-upload", OPT_BYTES, max_body, "BYTES", "Largest file that is uploaded.", "32M",
                1024, 1 << 30),
        NUM("buffer", OPT_BYTES, buffer, "BYTES",
                "Sound that waits for a client; then its speech pauses.", "4M", 65536, 1 << 30),
        NUM("segment", OPT_I32, segment_bytes, "BYTES",
                "Longer text is spoken in pieces, cut at sentence ends; 0 is never.", "400", 0,
                1 << 24),
        {.name = "quiet",
                .short_name = 'q',
                .kind = OPT_FLAG,
                .offset = offsetof(serve_opts, quiet),
                .help = "Print nothing but errors and warnings."},
        {.name = "verbose",
                .short_name = 'v',
                .kind = OPT_FLAG,
                .offset = offsetof(serve_opts, verbose),
                .help = "Print what is being done."},
};

static const opt_rule rules[] = {
        {OPT_EXCLUDES, "quiet", "verbose"},
        PLACE_OPTION_RULES,
};

const opt_command cmd_serve_table = {
        .name = "serve",
        .summary = "speak for clients: an HTTP server and a page",
        .synopsis = "-m MODEL.gguf [OPTIONS]",
        .about = "Serves speech over HTTP: the OpenAI API's /v1/audio/speech, the form API's "
                 "/generate, "
                 "a page at /, and /health, /metrics and /residency. Listens on this machine alone "
                 "unless told otherwise. The first interrupt lets running requests end.",
        .opts = defs,
        .n_opts = sizeof defs / sizeof defs[0],
        .rules = rules,
        .n_rules = sizeof rules / sizeof rules[0],
};

typedef struct serving {
    const serve_opts *opts;
    const opt_result *line;
    server_opts server;
    char *voice_dir;
    char *api_key;
    char *model_name;
    engine_state *engine;
} serving;

static void log_line(void *ud, sl_log_level level, const char *msg)
{
    const serving *s = ud;
    sl_log_level most = s->opts->verbose ? SL_LOG_DEBUG : SL_LOG_INFO;
    most = s->opts->quiet ? SL_LOG_WARN : most;
    if (level <= SL_LOG_WARN) {
        report_warning("serve", "%s", msg);
    } else if (level <= most) {
        fprintf(stderr, "sluice serve: %s\n", msg);
    }
}

/* The first line of a file or the variable, checked; NULL stays NULL if there is none. */
static int read_api_key(const serve_opts *opts, char **ret_key, sl_error *reterr)
{
    char *text = NULL;
    size_t n = 0;
    /* Nothing here sets variables. */
    const char *variable = getenv(API_KEY_VAR); /* NOLINT(concurrency-mt-unsafe) */
    if (opts->api_key_file) {
        int r = sl__read_file(opts->api_key_file, "API key", KEY_MOST, &text, &n, reterr);
        if (r < 0) {
            return r;
        }
    } else if (variable && *variable) {
        text = sl__strndup(variable, strlen(variable));
        if (!text) {
            return sl__fail_nomem(reterr, strlen(variable), "the API key");
        }
    } else {
        return SL_OK;
    }
    text[strcspn(text, "\r\n")] = '\0';
    for (n = 0; text[n] > ' ' && text[n] < 0x7f; n++) {
    }
    if (n < KEY_LEAST || text[n] != '\0') {
        sl__free(text);
        return sl__fail(reterr, SL_EINVAL,
                "%s: the API key must be one line of %u or more printable characters without "
                "blanks",
                opts->api_key_file ? "--api-key-file" : API_KEY_VAR, KEY_LEAST);
    }
    *ret_key = text;
    return SL_OK;
}

/* "demo-voice-q8_0" of "models/demo/demo-voice-q8_0.gguf". */
static char *name_of_model(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    size_t n = strlen(name);
    if (n > 5 && strcmp(name + n - 5, ".gguf") == 0) {
        n -= 5;
    }
    return sl__strndup(name, n);
}

static int read_times(const serve_opts *opts, server_opts *to, sl_error *reterr)
{
    int r = sleep_plan_parse(opts->sleep_after, &to->sleep, reterr);
    if (r == 0) {
        r = duration_parse(opts->stop_timeout, "--stop-timeout", &to->stop_ns, reterr);
    }
    if (r == 0) {
        r = duration_parse(opts->stall_timeout, "--stall-timeout", &to->limits.stall_ns, reterr);
    }
    if (r == 0) {
        r = duration_parse(opts->queue_timeout, "--queue-timeout", &to->limits.queue_ns, reterr);
    }
    if (r == 0) {
        r = duration_parse(opts->head_timeout, "--head-timeout", &to->limits.head_ns, reterr);
    }
    return r;
}

static int check_voice(const serving *s, sl_error *reterr)
{
    const char *name = s->opts->voice;
    char *path = NULL;
    s2_voice voice = {0};
    if (!name) {
        return SL_OK;
    }
    int r = s2_voice_path(s->voice_dir, name, &path, reterr);
    if (r == 0) {
        r = s2_voice_load(path, &voice, reterr);
    }
    s2_voice_path_free(path);
    s2_voice_done(&voice);
    return r;
}

static int prepare(serving *s, sl_error *reterr)
{
    const serve_opts *opts = s->opts;
    server_opts *to = &s->server;
    to->log = (sl_logger){.fn = log_line, .ud = s};
    to->limits = server_default_limits();
    to->limits.text_bytes = (size_t)opts->max_text;
    to->limits.body_bytes = (size_t)opts->max_body;
    to->limits.buffer_bytes = (size_t)opts->buffer;
    to->limits.n_waiting = (size_t)opts->queue;
    to->limits.n_connections = (size_t)opts->connections;
    to->limits.n_voices = (size_t)opts->voices;
    to->limits.max_frames = (uint32_t)opts->max_frames;
    to->limits.recording_seconds = opts->max_reference;
    to->segment_bytes = (uint32_t)opts->segment_bytes;
    to->cors_origin = opts->cors;
    to->allow_host = opts->allow_host;
    to->default_voice = opts->voice;
    to->version = SLUICE_VERSION;
    int r = read_times(opts, to, reterr);
    if (r == 0) {
        r = voice_dir(opts->voice_dir, &s->voice_dir, reterr);
    }
    if (r == 0) {
        r = check_voice(s, reterr);
    }
    if (r == 0) {
        r = read_api_key(opts, &s->api_key, reterr);
    }
    if (r < 0) {
        return r;
    }
    s->model_name = name_of_model(opts->engine.model);
    if (!s->model_name) {
        return sl__fail_nomem(reterr, strlen(opts->engine.model), "a name");
    }
    s2_engine_opts engine = engine_options_get(&opts->engine, s->line, to->log);
    /* What is to stay on its device may as well come at once. */
    engine.expects_speech = engine.place.policy == SL_POLICY_KEEP;
    r = engine_state_create(&engine, &s->engine, reterr);
    to->voice_dir = s->voice_dir;
    to->api_key = s->api_key;
    to->model_name = s->model_name;
    to->model_path = opts->engine.model;
    const char *slash = strrchr(opts->engine.model, '/');
    to->n_model_dir = slash ? (size_t)(slash - opts->engine.model) : 0;
    to->engine = engine_state_speaker(s->engine);
    return r;
}

/* A file that is not there is said before anything is promised; whether it is a model shows when it is opened. */
static int check_model(const serve_opts *opts, sl_error *reterr)
{
    sl_map *map = NULL;
    int r = sl_map_open(opts->engine.model, &map, reterr);
    sl_map_close(&map);
    return r;
}

static int find_listener(serving *s, listener *ret, sl_error *reterr)
{
    int r = listener_inherit(ret, reterr);
    s->server.is_listener_shared = r > 0;
    if (r == 0) {
        r = listener_open(s->opts->host, (uint16_t)s->opts->port, ret, reterr);
    }
    if (r < 0) {
        return r;
    }
    s->server.listen_fd = ret->fd;
    s->server.is_loopback = ret->is_loopback;
    if (!ret->is_loopback && !s->api_key) {
        report_warning("serve",
                "%s is reached by others and asks for no API key; set one with --api-key-file",
                ret->url);
    }
    return SL_OK;
}

/* Without a terminal a hang-up means nothing; see the head of this file. */
static void arrange_signals(void)
{
    if (!isatty(STDERR_FILENO) && !isatty(STDIN_FILENO)) {
        (void)sigaction(SIGHUP, &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
    }
    /* A log that may not grow any more is no reason to end. */
    (void)sigaction(SIGXFSZ, &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
    interrupt_catch();
}

/* Until an interrupt, or until the model turns out not to open. */
static int serve_until_stopped(server *running, sl_error *reterr)
{
    bool is_told = false;
    sl_error failure = {0};
    while (!interrupt_seen()) {
        if (server_has_failed(running, &failure)) {
            *reterr = failure;
            return failure.code;
        }
        if (!is_told && server_is_ready(running)) {
            is_told = true;
            listener_notify("READY=1");
        }
        sl__sleep_ns(LOOK_NS);
    }
    listener_notify("STOPPING=1");
    return SL_OK;
}

static int serve(serving *s, sl_error *reterr)
{
    listener at = {.fd = -1};
    server *running = NULL;
    int r = prepare(s, reterr);
    if (r == 0) {
        r = check_model(s->opts, reterr);
    }
    if (r == 0) {
        r = find_listener(s, &at, reterr);
    }
    if (r == 0) {
        r = server_open(&s->server, &running, reterr);
    }
    if (r == 0) {
        printf("listening on %s\n", at.url);
        (void)fflush(stdout);
        r = serve_until_stopped(running, reterr);
    }
    server_close(&running);
    return r;
}

int cmd_serve(int argc, char **argv)
{
    serve_opts opts = {0};
    opt_result line;
    sl_error err = {0};
    serving s = {.opts = &opts, .line = &line};
    int status = opt_parse(&cmd_serve_table, argc, argv, &opts, &line);
    if (status != OPT_RUN) {
        return status;
    }
    if (!opts.engine.model) {
        return report_usage("serve", "no model; name one with -m MODEL.gguf");
    }
    arrange_signals();
    status = serve(&s, &err) < 0 ? report_error("serve", &err) : 0;
    engine_state_free(&s.engine);
    sl__free(s.model_name);
    sl__free(s.api_key);
    sl__free(s.voice_dir);
    return status;
}
