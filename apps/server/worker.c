#include "worker.h"

#include <stdatomic.h>

#include "app.h"
#include "base/log.h"
#include "base/mem.h"
#include "os/os_clock.h"
#include "os/os_thread.h"
#include "speech.h"

struct worker {
    const server_opts *opts;
    job_queue *queue;
    metrics *metrics;
    sl__thread thread;
    sl__mutex lock;   /* of state and error */
    sl__mutex asking; /* held while others ask the engine, so that it is not closed then */
    worker_state state;
    sl_error err;
    s2_engine_info info;
    _Atomic(reply *) current; /* whose client is asked for while the engine works */
    atomic_bool is_cut;
    atomic_bool is_busy;
    atomic_int activity; /* a job_kind while busy */
    atomic_uint level;
    uint64_t idle_since_ns;
};

const char *worker_state_name(worker_state state)
{
    static const char *const names[WORKER_STATE_COUNT] = {"loading", "ready", "failed"};
    return (unsigned)state < WORKER_STATE_COUNT ? names[state] : "unknown";
}

/* Asked by the engine in the middle of its work. */
static bool should_stop(void *ud)
{
    worker *w = ud;
    reply *current = atomic_load(&w->current);
    return atomic_load(&w->is_cut) || (current && reply_is_cancelled(current));
}

static void set_state(worker *w, worker_state state)
{
    sl__mutex_lock(&w->lock);
    w->state = state;
    sl__mutex_unlock(&w->lock);
}

static int open_engine(worker *w)
{
    sl_error err = {0};
    const speaker *engine = &w->opts->engine;
    uint64_t begin_ns = sl__now_ns();
    engine->ops->set_stop(engine->ud, should_stop, w);
    int r = engine->ops->open(engine->ud, &err);
    sl__mutex_lock(&w->lock);
    w->state = r == 0 ? WORKER_READY : WORKER_FAILED;
    w->err = err;
    if (r == 0) {
        w->info = engine->ops->info(engine->ud);
    }
    sl__mutex_unlock(&w->lock);
    if (r == 0) {
        sl__log(&w->opts->log, SL_LOG_INFO, "ready: the model took %.1f s to open",
                (double)(sl__now_ns() - begin_ns) * 1e-9);
    }
    return r;
}

/* Takes the engine to a level; 0 wakes it. */
static int change_level(worker *w, unsigned level, sl_error *reterr)
{
    const speaker *engine = &w->opts->engine;
    int r = engine->ops->sleep(engine->ud, level, reterr);
    if (r == 0) {
        if (level > 0) {
            atomic_fetch_add(&w->metrics->n_sleeps, 1);
        }
        atomic_store(&w->level, level);
        sl__log(&w->opts->log, SL_LOG_INFO, level > 0 ? "asleep, level %u" : "awake", level);
    }
    return r;
}

static void run_sleep(worker *w, job *j)
{
    sl_error err = {0};
    if (change_level(w, j->level, &err) < 0) {
        api_fail_error(w->opts, j->answer, DIALECT_OPENAI, "level", &err);
        return;
    }
    sl__json json = {0};
    sl__json_object(&json);
    sl__json_put_u64(&json, "sleep_level", j->level);
    sl__json_end(&json);
    api_send_json(j->answer, 200, &json);
}

static int run_job(worker *w, job *j)
{
    int r = SL_OK;
    const speech_context context = {
            .opts = w->opts,
            .metrics = w->metrics,
            .n_waiting = job_queue_n_waiting(w->queue),
    };
    uint64_t begin_ns = sl__now_ns();
    metrics_time(&w->metrics->wait, begin_ns - j->queued_ns);
    atomic_store(&w->current, j->answer);
    atomic_store(&w->activity, (int)j->kind);
    atomic_store(&w->is_busy, true);
    if (reply_is_cancelled(j->answer)) {
        atomic_fetch_add(&w->metrics->n_cancelled, 1);
    } else if (j->kind == JOB_SLEEP) {
        run_sleep(w, j);
    } else {
        atomic_store(&w->level, 0);
        r = j->kind == JOB_SPEAK ? speech_run(&context, j) : voice_run(&context, j);
    }
    atomic_store(&w->is_busy, false);
    atomic_store(&w->current, NULL);
    w->idle_since_ns = sl__now_ns();
    atomic_fetch_add(&w->metrics->busy_us, (w->idle_since_ns - begin_ns) / 1000);
    return r;
}

/* The level that idleness asks for by now, if it is a deeper one. */
static void sleep_if_idle(worker *w)
{
    sl_error err = {0};
    unsigned level = sleep_plan_level(&w->opts->sleep, sl__now_ns() - w->idle_since_ns);
    if (level > atomic_load(&w->level) && change_level(w, level, &err) < 0) {
        sl__log(&w->opts->log, SL_LOG_WARN, "cannot go to sleep: %s", err.msg);
        w->idle_since_ns = sl__now_ns();
    }
}

static uint64_t next_sleep_ns(const worker *w)
{
    uint64_t idle_ns = sleep_plan_next_ns(&w->opts->sleep, atomic_load(&w->level));
    return idle_ns == UINT64_MAX ? UINT64_MAX : w->idle_since_ns + idle_ns;
}

static void close_engine(worker *w)
{
    const speaker *engine = &w->opts->engine;
    set_state(w, WORKER_LOADING);
    sl__mutex_lock(&w->asking);
    engine->ops->close(engine->ud);
    sl__mutex_unlock(&w->asking);
}

/* Runs a job; an engine that its file was changed under is opened anew. False if that fails. */
static bool run_and_mend(worker *w, job *j)
{
    int r = run_job(w, j);
    job_free(&j);
    if (r != SL_ECHANGED) {
        return true;
    }
    sl__log(&w->opts->log, SL_LOG_WARN, "the model's file has changed: opening it anew");
    close_engine(w);
    return open_engine(w) == 0;
}

static void work(void *ud)
{
    worker *w = ud;
    bool goes_on = open_engine(w) == 0;
    w->idle_since_ns = sl__now_ns();
    while (goes_on && !atomic_load(&w->is_cut)) {
        job *j = job_queue_pop(w->queue, next_sleep_ns(w));
        if (j) {
            goes_on = run_and_mend(w, j);
        } else if (job_queue_is_closed(w->queue)) {
            goes_on = false;
        } else {
            sleep_if_idle(w);
        }
    }
}

int worker_create(const server_opts *opts, job_queue *queue, metrics *m, worker **ret_worker,
        sl_error *reterr)
{
    worker *w = sl__alloc(1, sizeof *w);
    if (!w) {
        return sl__fail_nomem(reterr, sizeof *w, "a worker");
    }
    w->opts = opts;
    w->queue = queue;
    w->metrics = m;
    atomic_init(&w->current, NULL);
    atomic_init(&w->is_cut, false);
    atomic_init(&w->is_busy, false);
    atomic_init(&w->activity, 0);
    atomic_init(&w->level, 0);
    int r = sl__mutex_init(&w->lock, reterr);
    if (r < 0) {
        sl__free(w);
        return r;
    }
    r = sl__mutex_init(&w->asking, reterr);
    if (r < 0) {
        sl__mutex_done(&w->lock);
        sl__free(w);
        return r;
    }
    r = sl__thread_start(&w->thread, "synthesis", work, w, reterr);
    if (r < 0) {
        worker_free(&w);
        return r;
    }
    *ret_worker = w;
    return SL_OK;
}

void worker_cut(worker *w)
{
    atomic_store(&w->is_cut, true);
    job_queue_poke(w->queue);
}

void worker_free(worker **w)
{
    if (w && *w) {
        sl__thread_join(&(*w)->thread);
        if ((*w)->state == WORKER_READY) {
            close_engine(*w);
        }
        sl__mutex_done(&(*w)->asking);
        sl__mutex_done(&(*w)->lock);
        sl__free(*w);
        *w = NULL;
    }
}

void worker_get_status(worker *w, speaker_status *ret_status)
{
    const speaker *engine = &w->opts->engine;
    *ret_status = (speaker_status){0};
    sl__mutex_lock(&w->asking);
    if (worker_get_state(w) == WORKER_READY) {
        engine->ops->status(engine->ud, ret_status);
    }
    sl__mutex_unlock(&w->asking);
}

bool worker_describe(worker *w, sl__json *json)
{
    const speaker *engine = &w->opts->engine;
    sl__mutex_lock(&w->asking);
    bool is_open = worker_get_state(w) == WORKER_READY;
    if (is_open) {
        engine->ops->describe(engine->ud, json);
    }
    sl__mutex_unlock(&w->asking);
    return is_open;
}

worker_state worker_get_state(worker *w)
{
    sl__mutex_lock(&w->lock);
    worker_state state = w->state;
    sl__mutex_unlock(&w->lock);
    return state;
}

void worker_get_error(worker *w, sl_error *ret_error)
{
    sl__mutex_lock(&w->lock);
    *ret_error = w->err;
    sl__mutex_unlock(&w->lock);
}

bool worker_is_busy(worker *w)
{
    return atomic_load(&w->is_busy);
}

const char *worker_activity(worker *w)
{
    static const char *const names[JOB_KIND_COUNT] = {
            [JOB_SPEAK] = "speech", [JOB_VOICE] = "voice", [JOB_SLEEP] = "sleep"};
    return atomic_load(&w->is_busy) ? names[atomic_load(&w->activity)] : "idle";
}

unsigned worker_sleep_level(worker *w)
{
    return atomic_load(&w->level);
}

s2_engine_info worker_get_info(worker *w)
{
    sl__mutex_lock(&w->lock);
    s2_engine_info info = w->info;
    sl__mutex_unlock(&w->lock);
    return info;
}
