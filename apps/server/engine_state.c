#include "engine_state.h"

#include "base/mem.h"

struct engine_state {
    s2_engine_opts opts;
    s2_engine *engine;
};

static int open_engine(void *ud, sl_error *reterr)
{
    engine_state *s = ud;
    return s2_engine_open(&s->opts, &s->engine, reterr);
}

static void close_engine(void *ud)
{
    engine_state *s = ud;
    s2_engine_close(&s->engine);
}

static s2_engine_info get_info(void *ud)
{
    engine_state *s = ud;
    return s2_engine_get_info(s->engine);
}

static void set_stop(void *ud, bool (*should_stop)(void *stop_ud), void *stop_ud)
{
    engine_state *s = ud;
    s2_engine_set_stop(s->engine, should_stop, stop_ud);
}

static int speak(void *ud, const s2_speak_opts *opts, s2_stats *ret_stats, sl_error *reterr)
{
    engine_state *s = ud;
    return s2_engine_speak(s->engine, opts, ret_stats, reterr);
}

static int make_voice(void *ud, const float *samples, size_t n_samples, const char *text,
        s2_voice *ret_voice, sl_error *reterr)
{
    engine_state *s = ud;
    return s2_engine_make_voice(s->engine, samples, n_samples, text, ret_voice, reterr);
}

static int go_to_sleep(void *ud, unsigned level, sl_error *reterr)
{
    (void)ud;
    (void)level;
    (void)reterr;
    return SL_OK;
}

static void get_status(void *ud, speaker_status *ret_status)
{
    (void)ud;
    *ret_status = (speaker_status){0};
}

static void describe(void *ud, sl__json *json)
{
    (void)ud;
    sl__json_key(json, "units");
    sl__json_array(json);
    sl__json_end(json);
    sl__json_key(json, "places");
    sl__json_array(json);
    sl__json_end(json);
}

static const speaker_ops ops = {
        .open = open_engine,
        .close = close_engine,
        .info = get_info,
        .set_stop = set_stop,
        .speak = speak,
        .make_voice = make_voice,
        .sleep = go_to_sleep,
        .status = get_status,
        .describe = describe,
};

int engine_state_create(const s2_engine_opts *opts, engine_state **ret_state, sl_error *reterr)
{
    engine_state *s = sl__alloc(1, sizeof *s);
    if (!s) {
        return sl__fail_nomem(reterr, sizeof *s, "an engine");
    }
    s->opts = *opts;
    *ret_state = s;
    return SL_OK;
}

void engine_state_free(engine_state **state)
{
    if (state) {
        sl__free(*state);
        *state = NULL;
    }
}

speaker engine_state_speaker(engine_state *state)
{
    return (speaker){.ops = &ops, .ud = state};
}
