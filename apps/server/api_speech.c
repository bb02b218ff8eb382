/* POST /v1/audio/speech as the OpenAI API has it, and our own fields; GET /v1/models. */
#include <string.h>
#include <strings.h>
#include <sys/random.h>

#include <jansson.h>

#include "api_json.h"
#include "app.h"
#include "base/mem.h"
#include "os/os_clock.h"

#define OPENAI_PCM_RATE 24000u /* clients of headerless samples take it for granted */

static const char *const known_fields[] = {"model", "input", "voice", "response_format", "speed",
        "stream_format", "stream", "instructions", "seed", "temperature", "top_p", "top_k",
        "max_frames", "min_frames", "segment", NULL};

uint64_t app_any_seed(void)
{
    uint32_t seed = 0;
    if (getrandom(&seed, sizeof seed, GRND_NONBLOCK) != (ssize_t)sizeof seed) {
        seed = (uint32_t)(sl__now_ns() >> 10);
    }
    return seed;
}

job_speech app_speech_defaults(const app *a)
{
    s2_speak_opts defaults = s2_speak_defaults();
    job_speech speech = {
            .temperature = defaults.temperature,
            .top_p = defaults.top_p,
            .top_k = defaults.top_k,
            .max_frames = defaults.max_frames < a->opts.limits.max_frames
                                  ? defaults.max_frames
                                  : a->opts.limits.max_frames,
            .segment_bytes = a->opts.segment_bytes,
            .seed = app_any_seed(),
    };
    return speech;
}

bool app_take_text(
        const app *a, const char *text, size_t n, const char *param, job *j, reply *answer)
{
    if (n > a->opts.limits.text_bytes) {
        api_fail(answer, 413, param, "too_long", "%s has %zu bytes, at most %zu are spoken", param,
                n, a->opts.limits.text_bytes);
        return false;
    }
    j->speech.text = sl__strndup(text, n);
    j->speech.text_bytes = n;
    if (!j->speech.text) {
        api_fail(answer, 503, NULL, NULL, "out of memory");
        return false;
    }
    return true;
}

static bool take_input(const app *a, const json_t *object, job *j, reply *answer)
{
    const char *text = NULL;
    size_t n = 0;
    if (!api_json_string(object, "input", &text, &n, answer)) {
        return false;
    }
    if (!text || n == 0) {
        api_fail(answer, 400, "input", "missing", "input is missing; it is the text to speak");
        return false;
    }
    return app_take_text(a, text, n, "input", j, answer);
}

/* A name, or an object with an id, as newer clients send it. */
static bool take_voice(const app *a, const json_t *object, job *j, reply *answer)
{
    const json_t *value = json_object_get(object, "voice");
    const char *name = NULL;
    size_t n = 0;
    if (json_is_object(value)) {
        if (!api_json_string(value, "id", &name, &n, answer)) {
            return false;
        }
    } else if (!api_json_string(object, "voice", &name, &n, answer)) {
        return false;
    }
    return app_take_voice(a, name, n, j, answer);
}

static bool take_format(const json_t *object, job *j, reply *answer)
{
    const char *name = "mp3";
    size_t n = 3;
    char quoted[48];
    if (!api_json_string(object, "response_format", &name, &n, answer)) {
        return false;
    }
    if (strlen(name) != n || !s2_audio_format_parse(name, &j->speech.format)) {
        api_fail(answer, 400, "response_format", "unsupported_format",
                "response_format is '%s'; mp3, opus, flac, wav and pcm are possible",
                sl__quote(quoted, sizeof quoted, name, n));
        return false;
    }
    if (j->speech.format == S2_AUDIO_PCM) {
        j->speech.rate = OPENAI_PCM_RATE;
    }
    return true;
}

static bool take_framing(const json_t *object, job *j, reply *answer)
{
    const char *framing = "audio";
    size_t n = 5;
    bool is_stream = true;
    if (!api_json_string(object, "stream_format", &framing, &n, answer) ||
            !api_json_bool(object, "stream", &is_stream, answer)) {
        return false;
    }
    if (strcmp(framing, "sse") == 0) {
        j->speech.framing = FRAMING_EVENTS;
    } else if (strcmp(framing, "audio") == 0) {
        j->speech.framing = is_stream ? FRAMING_STREAM : FRAMING_WHOLE;
    } else {
        api_fail(answer, 400, "stream_format", "invalid_value", "stream_format is audio or sse");
        return false;
    }
    return true;
}

/* What this model cannot do is refused: sound that is not what was asked for would be worse. */
static bool check_refused(const json_t *object, reply *answer)
{
    float speed = 1.0f;
    const char *text = "";
    size_t n = 0;
    if (!api_json_float(object, "speed", 0.25, 4.0, &speed, answer) ||
            !api_json_string(object, "instructions", &text, &n, answer) ||
            !api_json_string(object, "model", &text, &n, answer)) {
        return false;
    }
    if (speed < 1.0f || speed > 1.0f) {
        api_fail(answer, 400, "speed", "unsupported_value",
                "speed is %g; this model speaks at its own speed, so only 1 is possible",
                (double)speed);
        return false;
    }
    text = "";
    n = 0;
    if (api_json_string(object, "instructions", &text, &n, answer) && n > 0) {
        api_fail(answer, 400, "instructions", "unsupported_value",
                "instructions are not understood; write tags such as [whisper] into the input");
        return false;
    }
    return true;
}

static bool take_numbers(const app *a, const json_t *object, job_speech *s, reply *answer)
{
    int64_t seed = (int64_t)s->seed;
    int64_t top_k = s->top_k;
    int64_t max_frames = s->max_frames;
    int64_t min_frames = 0;
    int64_t segment = s->segment_bytes;
    bool is_ok =
            api_json_float(object, "temperature", 0.0, 100.0, &s->temperature, answer) &&
            api_json_float(object, "top_p", 0.0, 1.0, &s->top_p, answer) &&
            api_json_int(object, "top_k", 0, 1 << 20, &top_k, answer) &&
            api_json_int(object, "seed", 0, INT64_MAX, &seed, answer) &&
            api_json_int(object, "max_frames", 1, a->opts.limits.max_frames, &max_frames, answer) &&
            api_json_int(object, "min_frames", 0, max_frames, &min_frames, answer) &&
            api_json_int(object, "segment", 0, 1 << 24, &segment, answer);
    if (is_ok) {
        s->seed = (uint64_t)seed;
        s->top_k = (int32_t)top_k;
        s->max_frames = (uint32_t)max_frames;
        s->min_frames = (uint32_t)min_frames;
        s->segment_bytes = (uint32_t)segment;
    }
    return is_ok;
}

void api_speech(app *a, const http_request *request, reply *answer)
{
    job *j = NULL;
    json_t *object = api_json_object(request, answer);
    if (!object) {
        return;
    }
    if (job_create(JOB_SPEAK, answer, &j, NULL) < 0) {
        api_fail(answer, 503, NULL, NULL, "out of memory");
        api_json_free(object);
        return;
    }
    j->speech = app_speech_defaults(a);
    api_json_note_unknown(object, known_fields, answer);
    bool is_ok = check_refused(object, answer) && take_format(object, j, answer) &&
                 take_framing(object, j, answer) && take_numbers(a, object, &j->speech, answer) &&
                 take_input(a, object, j, answer) && take_voice(a, object, j, answer);
    api_json_free(object);
    if (is_ok) {
        app_submit(a, j);
    } else {
        job_free(&j);
    }
}

static void put_model(const app *a, sl__json *json)
{
    sl__json_object(json);
    sl__json_put_cstr(json, "id", a->opts.model_name);
    sl__json_put_cstr(json, "object", "model");
    sl__json_put_u64(json, "created", 0);
    sl__json_put_cstr(json, "owned_by", "sluice");
    sl__json_end(json);
}

void api_models(app *a, const http_request *request, reply *answer)
{
    sl__json json = {0};
    (void)request;
    sl__json_object(&json);
    sl__json_put_cstr(&json, "object", "list");
    sl__json_key(&json, "data");
    sl__json_array(&json);
    put_model(a, &json);
    sl__json_end(&json);
    sl__json_end(&json);
    api_send_json(answer, 200, &json);
}

void api_model(app *a, const http_request *request, reply *answer)
{
    static const char prefix[] = "/v1/models/";
    sl__json json = {0};
    if (strcmp(request->path + sizeof prefix - 1, a->opts.model_name) != 0) {
        api_fail(answer, 404, "model", "model_not_found",
                "there is no such model; GET /v1/models lists the one that is served");
        return;
    }
    put_model(a, &json);
    api_send_json(answer, 200, &json);
}
