/*
 * POST /generate: the multipart API of the existing engine, with its names, defaults and headers. What it asks for
 * and what makes no difference here (this decoder is exact and needs no windows) is checked and taken without effect.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include <jansson.h>

#include "app.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "multipart.h"
#include "os/os_clock.h"

#define START_MS_OF_PCM 3000 /* of a live stream of bare samples, as the clients know it */
#define PAUSE_MS        180  /* between them */
#define MAX_PAUSE_MS    10000
#define SENTENCE_BYTES  200 /* pieces of a text that is to be spoken by sentences */

typedef struct params {
    int64_t max_new_tokens;
    int64_t top_k;
    int64_t min_tokens;
    int64_t ignored;
    int64_t start_ms; /* -1 = not given */
    int64_t pause_ms;
    int64_t segment_chars;
    double temperature;
    double top_p;
    bool is_stream;
    bool is_live;
    bool is_segmented;
    bool is_fast;
    bool ignored_flag;
    const char *voice;
    size_t n_voice;
    const char *format;
} params;

static bool fail_type(reply *answer, const char *name, const char *need)
{
    api_fail_form(answer, 400, "Invalid params JSON: %s must be %s", name, need);
    return false;
}

static bool get_int(const json_t *object, const char *name, int64_t *ret, reply *answer)
{
    const json_t *value = json_object_get(object, name);
    if (value && !json_is_integer(value)) {
        return fail_type(answer, name, "a whole number");
    }
    if (value) {
        int64_t number = json_integer_value(value);
        *ret = number < 0 ? 0 : (number > INT32_MAX ? INT32_MAX : number);
    }
    return true;
}

static bool get_float(const json_t *object, const char *name, double *ret, reply *answer)
{
    const json_t *value = json_object_get(object, name);
    if (value && !json_is_number(value)) {
        return fail_type(answer, name, "a number");
    }
    if (value) {
        double number = json_number_value(value);
        *ret = number > 0 ? number : 0;
    }
    return true;
}

static bool get_bool(const json_t *object, const char *name, bool *ret, reply *answer)
{
    const json_t *value = json_object_get(object, name);
    if (value && !json_is_boolean(value)) {
        return fail_type(answer, name, "true or false");
    }
    if (value) {
        *ret = json_is_true(value);
    }
    return true;
}

static bool get_string(
        const json_t *object, const char *name, const char **ret, size_t *ret_n, reply *answer)
{
    const json_t *value = json_object_get(object, name);
    if (value && !json_is_string(value)) {
        return fail_type(answer, name, "a string");
    }
    if (value) {
        *ret = json_string_value(value);
        *ret_n = json_string_length(value);
    }
    return true;
}

/* Members that decide something. */
static bool get_effective(const json_t *object, params *p, reply *answer)
{
    size_t n = 0;
    return get_int(object, "max_new_tokens", &p->max_new_tokens, answer) &&
           get_int(object, "top_k", &p->top_k, answer) &&
           get_int(object, "min_tokens_before_end", &p->min_tokens, answer) &&
           get_int(object, "stream_start_buffer_ms", &p->start_ms, answer) &&
           get_int(object, "sentence_pause_ms", &p->pause_ms, answer) &&
           get_int(object, "segment_max_chars", &p->segment_chars, answer) &&
           get_float(object, "temperature", &p->temperature, answer) &&
           get_float(object, "top_p", &p->top_p, answer) &&
           get_bool(object, "stream", &p->is_stream, answer) &&
           get_bool(object, "realtime", &p->is_live, answer) &&
           get_bool(object, "chunked", &p->is_live, answer) &&
           get_bool(object, "segment_sentences", &p->is_segmented, answer) &&
           get_bool(object, "low_latency", &p->is_fast, answer) &&
           get_string(object, "voice_id", &p->voice, &p->n_voice, answer) &&
           get_string(object, "voice", &p->voice, &p->n_voice, answer) &&
           get_string(object, "output_format", &p->format, &n, answer);
}

/* Members that only have to be of their type. */
static bool check_ineffective(const json_t *object, params *p, reply *answer)
{
    static const char *const ints[] = {"n_threads", "stream_decode_stride_frames",
            "stream_decode_stride", "stream_holdback_frames", "codec_decode_context_frames",
            "codec_context_frames"};
    static const char *const bools[] = {"codec_follow_backend", "codec_auto_backend", "verbose"};
    for (size_t i = 0; i < sizeof ints / sizeof ints[0]; i++) {
        if (!get_int(object, ints[i], &p->ignored, answer)) {
            return false;
        }
    }
    for (size_t i = 0; i < sizeof bools / sizeof bools[0]; i++) {
        if (!get_bool(object, bools[i], &p->ignored_flag, answer)) {
            return false;
        }
    }
    if (json_object_get(object, "voice_dir")) {
        api_fail_text(answer, 400,
                "voice_dir is chosen where the server is started, not by requests; leave it out");
        return false;
    }
    return true;
}

/* The object that *ret_object holds must live as long as *ret. */
static bool read_params(const multipart_part *part, params *ret, json_t **ret_object, reply *answer)
{
    json_error_t err;
    *ret_object = NULL;
    if (!part || part->n == 0) {
        return true;
    }
    json_t *object = json_loadb(part->data, part->n, JSON_REJECT_DUPLICATES, &err);
    *ret_object = object;
    if (!object) {
        api_fail_form(answer, 400, "JSON parse error");
        return false;
    }
    if (!json_is_object(object)) {
        api_fail_form(answer, 400, "Params JSON must be an object");
        return false;
    }
    return get_effective(object, ret, answer) && check_ineffective(object, ret, answer);
}

static bool is_pcm(const char *format)
{
    static const char *const names[] = {"pcm", "pcm16", "pcm_s16le", "s16le"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcasecmp(format, names[i]) == 0) {
            return true;
        }
    }
    return false;
}

static bool apply_format(const params *p, job_speech *s, reply *answer)
{
    char quoted[40];
    bool is_parts = p->is_stream || p->is_segmented;
    bool is_bare = is_pcm(p->format);
    if (!is_bare && strcasecmp(p->format, "wav") != 0) {
        api_fail_text(answer, 400, "output_format is '%s'; wav and pcm_s16le are possible",
                sl__quote(quoted, sizeof quoted, p->format, strlen(p->format)));
        return false;
    }
    s->format = is_bare && is_parts ? S2_AUDIO_PCM : S2_AUDIO_WAV;
    s->framing = is_parts && p->is_live ? FRAMING_STREAM : FRAMING_WHOLE;
    s->is_float = !is_parts;
    if (s->framing == FRAMING_STREAM) {
        int64_t usual = s->format == S2_AUDIO_PCM && !p->is_fast ? START_MS_OF_PCM : 0;
        s->start_ms = (uint32_t)(p->start_ms >= 0 ? p->start_ms : usual);
    }
    return true;
}

static bool apply_params(const app *a, const params *p, job_speech *s, reply *answer)
{
    if (p->max_new_tokens < 1 || p->max_new_tokens > a->opts.limits.max_frames) {
        api_fail_text(answer, 400, "max_new_tokens is %" PRId64 ", need 1 to %" PRIu32,
                p->max_new_tokens, a->opts.limits.max_frames);
        return false;
    }
    s->max_frames = (uint32_t)p->max_new_tokens;
    s->min_frames =
            (uint32_t)(p->min_tokens < p->max_new_tokens ? p->min_tokens : p->max_new_tokens);
    s->temperature = (float)(p->temperature < 100 ? p->temperature : 100);
    s->top_p = (float)(p->top_p < 1 ? p->top_p : 1);
    s->top_k = (int32_t)(p->top_k < 1 << 20 ? p->top_k : 1 << 20);
    if (p->is_segmented) {
        s->segment_bytes = (uint32_t)(p->segment_chars > 0 ? p->segment_chars : SENTENCE_BYTES);
        s->pause_ms = (uint32_t)(p->pause_ms < MAX_PAUSE_MS ? p->pause_ms : MAX_PAUSE_MS);
    }
    return apply_format(p, s, answer);
}

static const multipart_part *find_voice(const multipart *form, const params *p)
{
    static const char *const names[] = {"voice", "voice_id", "voice_profile", NULL};
    return p->voice ? NULL : multipart_find(form, names);
}

static bool take_voice(const app *a, const multipart *form, const params *p, job *j, reply *answer)
{
    static const char *const dir_names[] = {"voice_dir", NULL};
    const multipart_part *part = find_voice(form, p);
    const multipart_part *dir = multipart_find(form, dir_names);
    const char *name = part ? part->data : p->voice;
    size_t n = part ? part->n : p->n_voice;
    if (dir && dir->n > 0) {
        api_fail_text(answer, 400,
                "voice_dir is chosen where the server is started, not by requests; leave it out");
        return false;
    }
    if (!name || n == 0) {
        return app_take_voice(a, NULL, 0, j, answer);
    }
    /* Names are copied so that they end with a NUL; what is longer is none. */
    char copy[S2_VOICE_NAME_MAX_BYTES + 2];
    size_t n_copy = n < sizeof copy - 1 ? n : sizeof copy - 1;
    memcpy(copy, name, n_copy);
    copy[n_copy] = '\0';
    return app_take_voice(a, copy, n_copy, j, answer);
}

static bool take_reference(app *a, const multipart *form, job *j, reply *answer)
{
    static const char *const file_names[] = {
            "reference", "reference_audio", "prompt_audio", "ref_audio", NULL};
    static const char *const text_names[] = {"reference_text", "ref_text", "prompt_text", NULL};
    const multipart_part *file = multipart_find(form, file_names);
    const multipart_part *text = multipart_find(form, text_names);
    if (!file || file->n == 0) {
        return true;
    }
    if (!text || text->n == 0 || sl__utf8_valid_prefix(text->data, text->n) != text->n ||
            memchr(text->data, '\0', text->n)) {
        api_fail_text(answer, 400,
                "a reference needs its transcript: reference_text (or ref_text, prompt_text), in "
                "UTF-8");
        return false;
    }
    j->voice.text = sl__strndup(text->data, text->n);
    j->has_recording = true;
    if (!j->voice.text) {
        api_fail_text(answer, 503, "out of memory");
        return false;
    }
    return app_take_sound(a, app_copy_sound(file->data, file->n, answer), file->n, j, answer);
}

static bool fill_job(app *a, const multipart *form, const params *p, job *j, reply *answer)
{
    static const char *const text_names[] = {"text", NULL};
    const multipart_part *text = multipart_find(form, text_names);
    if (!text) {
        api_fail_form(answer, 400, "No text field in multipart form");
        return false;
    }
    return app_take_text(a, text->data, text->n, "text", j, answer) &&
           apply_params(a, p, &j->speech, answer) && take_reference(a, form, j, answer) &&
           (j->has_recording || take_voice(a, form, p, j, answer));
}

void api_generate(app *a, const http_request *request, reply *answer)
{
    static const char *const params_names[] = {"params", NULL};
    multipart form;
    sl_error err = {0};
    job *j = NULL;
    json_t *object = NULL;
    params p = {.start_ms = -1, .pause_ms = PAUSE_MS, .format = "wav"};
    reply_add_header(answer, "X-Request-Start", "%" PRIu64, sl__now_ns() / 1000000);
    if (multipart_parse(request->header(request->ud, "Content-Type"), request->body,
                request->n_body, &form, &err) < 0) {
        api_fail_text(answer, 400, "%s", err.msg);
        return;
    }
    if (job_create(JOB_SPEAK, answer, &j, NULL) < 0) {
        api_fail_text(answer, 503, "out of memory");
        return;
    }
    j->dialect = DIALECT_FORM;
    j->speech = app_speech_defaults(a);
    p.max_new_tokens = j->speech.max_frames;
    p.temperature = (double)j->speech.temperature;
    p.top_p = (double)j->speech.top_p;
    p.top_k = j->speech.top_k;
    bool is_ok = read_params(multipart_find(&form, params_names), &p, &object, answer) &&
                 fill_job(a, &form, &p, j, answer);
    json_decref(object);
    if (is_ok) {
        app_submit(a, j);
    } else {
        job_free(&j);
    }
}
