#include "engine_state.h"

#include "base/log.h"
#include "base/mem.h"
#include "residency_json.h"

struct engine_state {
    s2_engine_opts opts;
    s2_engine *engine;
    s2_plan *plan; /* NULL if none could be made */
    size_t n_units;
};

/* Without a plan there is nothing to show; speaking goes on. */
static void make_plan(engine_state *s)
{
    sl_error err = {0};
    const s2_plan_opts opts = {
            .model_path = s->opts.model_path,
            .place = s->opts.place,
            .n_threads = s->opts.n_threads,
            .n_frames = s->opts.expected_frames,
            .wants_sound_early = true,
    };
    if (s2_plan_make(&opts, &s->plan, &err) < 0) {
        sl__log(&s->opts.log, SL_LOG_WARN, "/residency has no plan to show: %s", err.msg);
        return;
    }
    s->n_units = s2_plan_request(s->plan)->n_units;
}

static int open_engine(void *ud, sl_error *reterr)
{
    engine_state *s = ud;
    int r = s2_engine_open(&s->opts, &s->engine, reterr);
    if (r == 0) {
        make_plan(s);
    }
    return r;
}

static void close_engine(void *ud)
{
    engine_state *s = ud;
    s2_plan_free(&s->plan);
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
    s->opts.should_stop = should_stop;
    s->opts.stop_ud = stop_ud;
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

/*
 * Awake is what the next request makes it anyway; to fetch what the first phase of speaking needs spares it the wait.
 * Without room for that, it will see for itself.
 */
static int wake(engine_state *s, sl_error *reterr)
{
    const sl_wait wait = {.is_cancelled = s->opts.should_stop, .ud = s->opts.stop_ud};
    size_t units[SPEAKER_MAX_UNITS];
    size_t n = 0;
    sl_lease *lease = NULL;
    for (size_t i = 0; i < s->n_units && n < SPEAKER_MAX_UNITS; i++) {
        if (sl_plan_unit_role(s2_plan_solved(s->plan), 0, i) == SL_PLAN_NEEDED) {
            units[n++] = i;
        }
    }
    if (n == 0) {
        return SL_OK;
    }
    int r = sl_lease_acquire(
            s2_engine_residency(s->engine), units, n, false, &wait, &lease, reterr);
    sl_lease_release(&lease);
    return r;
}

static int change_level(void *ud, unsigned level, sl_error *reterr)
{
    engine_state *s = ud;
    return level > 0 ? s2_engine_sleep(s->engine, level, reterr) : wake(s, reterr);
}

static const char *place_name(const engine_state *s, size_t i_place)
{
    const s2_placement *placement = s2_engine_placement(s->engine);
    return i_place < s2_placement_n_places(placement) ? s2_placement_place(placement, i_place)->name
                                                      : "";
}

static void get_status(void *ud, speaker_status *ret_status)
{
    engine_state *s = ud;
    sl_residency *residency = s2_engine_residency(s->engine);
    size_t n_places = s2_placement_n_places(s2_engine_placement(s->engine));
    speaker_status status = {0};
    for (size_t i = 0; i < s->n_units && i < SPEAKER_MAX_UNITS; i++) {
        sl_unit_status u;
        sl_residency_unit_status(residency, i, &u);
        status.units[status.n_units++] = (speaker_unit){
                .name = u.name,
                .state = sl_unit_state_name(u.state),
                .wanted = place_name(s, u.wanted_place),
                .actual = place_name(s, u.actual_place),
                .n_bytes = u.n_bytes,
                .n_loads = u.n_loads,
                .route = u.route,
                .load_bytes_per_s = residency_load_speed(&u),
                .load_stalls = u.load_stalls,
        };
    }
    for (size_t i = 0; i < n_places; i++) {
        sl_place_status p;
        if (sl_residency_place_status(residency, i, &p, NULL) == 0) {
            status.places[status.n_places++] = (speaker_place){
                    .name = place_name(s, i),
                    .budget_bytes = p.budget_bytes == UINT64_MAX ? 0 : p.budget_bytes,
                    .used_bytes = p.used_total,
                    .peak_bytes = p.peak_total,
            };
        }
    }
    *ret_status = status;
}

static void describe(void *ud, sl__json *json)
{
    engine_state *s = ud;
    residency_put_json(
            json, s2_engine_residency(s->engine), s->n_units, s2_engine_placement(s->engine));
    sl__json_key(json, "plan");
    if (s->plan) {
        residency_put_plan(json, s->plan);
    } else {
        sl__json_null(json);
    }
}

static const speaker_ops ops = {
        .open = open_engine,
        .close = close_engine,
        .info = get_info,
        .set_stop = set_stop,
        .speak = speak,
        .make_voice = make_voice,
        .sleep = change_level,
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
