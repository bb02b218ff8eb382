/* /v1/audio/voices: what is there, a new voice from a recording, and one less. Names are never paths. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "api_json.h"
#include "app.h"
#include "base/mem.h"
#include "base64.h"
#include "multipart.h"
#include "speech.h"

#define HELD_UPLOADS 4u /* of the largest size, that may wait at a time */

/* Voices that clients of the OpenAI API name without anybody having made them here. */
static const char *const usual_names[] = {"alloy", "ash", "ballad", "cedar", "coral", "default",
        "echo", "fable", "marin", "nova", "onyx", "sage", "shimmer", "verse", NULL};

static bool is_usual(const char *name)
{
    const char *const *at = usual_names;
    while (*at && strcmp(*at, name) != 0) {
        at++;
    }
    return *at != NULL;
}

static bool check_name(const char *name, size_t n, const char *param, reply *answer)
{
    char quoted[80];
    if (!s2_voice_name_is_valid(name, n)) {
        api_fail(answer, 400, param, "invalid_voice",
                "%s is '%s'; a voice's name has 1 to 64 letters, digits, '_' and '-'", param,
                sl__quote(quoted, sizeof quoted, name, n));
        return false;
    }
    return true;
}

static bool load_voice(const app *a, const char *name, job *j, reply *answer)
{
    char *path = NULL;
    sl_error err = {0};
    int r = s2_voice_path(a->opts.voice_dir, name, &path, &err);
    if (r == 0) {
        r = s2_voice_load(path, &j->speech.voice, &err);
    }
    s2_voice_path_free(path);
    j->speech.has_voice = r == 0;
    if (r == SL_ENOENT) {
        api_fail(answer, 404, "voice", "voice_not_found",
                "there is no voice '%s'; GET /v1/audio/voices lists those there are", name);
    } else if (r < 0) {
        api_fail_error(&a->opts, answer, j->dialect, "voice", &err);
    }
    return r == 0;
}

bool app_take_voice(const app *a, const char *name, size_t n, job *j, reply *answer)
{
    if (!name) {
        name = a->opts.default_voice ? a->opts.default_voice : "default";
        n = strlen(name);
    }
    if (!check_name(name, n, "voice", answer)) {
        return false;
    }
    if (is_usual(name) && !voice_exists(a->opts.voice_dir, name)) {
        return a->opts.default_voice ? load_voice(a, a->opts.default_voice, j, answer) : true;
    }
    return load_voice(a, name, j, answer);
}

void api_voices_list(app *a, const http_request *request, reply *answer)
{
    char **names = NULL;
    size_t n = 0;
    sl_error err = {0};
    sl__json json = {0};
    (void)request;
    if (s2_voice_list(a->opts.voice_dir, &names, &n, &err) < 0) {
        api_fail_error(&a->opts, answer, DIALECT_OPENAI, NULL, &err);
        return;
    }
    sl__json_object(&json);
    sl__json_put_cstr(&json, "object", "list");
    sl__json_key(&json, "data");
    sl__json_array(&json);
    for (size_t i = 0; i < n; i++) {
        sl__json_object(&json);
        sl__json_put_cstr(&json, "id", names[i]);
        sl__json_put_cstr(&json, "object", "voice");
        sl__json_put_cstr(&json, "name", names[i]);
        sl__json_end(&json);
    }
    sl__json_end(&json);
    sl__json_key(&json, "voices");
    sl__json_array(&json);
    for (size_t i = 0; i < n; i++) {
        sl__json_cstr(&json, names[i]);
    }
    sl__json_end(&json);
    sl__json_end(&json);
    s2_voice_list_free(names, n);
    api_send_json(answer, 200, &json);
}

/* ---- a new one ---- */

static bool fail_memory(reply *answer)
{
    api_fail(answer, 503, NULL, NULL, "out of memory");
    return false;
}

static bool take_name(const char *name, size_t n, job *j, reply *answer)
{
    if (!name || n == 0) {
        api_fail(answer, 400, "name", "missing", "name is missing");
        return false;
    }
    if (!check_name(name, n, "name", answer)) {
        return false;
    }
    memcpy(j->voice.name, name, n);
    j->voice.name[n] = '\0';
    return true;
}

static bool take_transcript(const char *text, size_t n, job *j, reply *answer)
{
    if (!text || n == 0 || memchr(text, '\0', n)) {
        api_fail(answer, 400, "transcript", "missing",
                "transcript is missing; it is what the recording says, word by word");
        return false;
    }
    if (n >= S2_VOICE_MAX_TEXT_BYTES) {
        api_fail(answer, 413, "transcript", "too_long", "transcript has %zu bytes, at most %u", n,
                S2_VOICE_MAX_TEXT_BYTES - 1);
        return false;
    }
    j->voice.text = sl__strndup(text, n);
    return j->voice.text ? true : fail_memory(answer);
}

static bool has_sound(size_t n, reply *answer)
{
    if (n == 0) {
        api_fail(answer, 400, "file", "missing",
                "file is missing; it is the recording (WAV, FLAC, Ogg or MP3)");
    }
    return n > 0;
}

unsigned char *app_copy_sound(const char *bytes, size_t n, reply *answer)
{
    unsigned char *sound = sl__alloc(n + 1, 1);
    if (sound) {
        memcpy(sound, bytes, n);
    } else {
        fail_memory(answer);
    }
    return sound;
}

bool app_take_sound(app *a, unsigned char *sound, size_t n, job *j, reply *answer)
{
    size_t most = HELD_UPLOADS * a->opts.limits.body_bytes;
    if (!sound) {
        return false;
    }
    j->voice.sound = sound;
    j->voice.n_sound = n;
    j->voice.n_held = &a->n_held;
    if (atomic_fetch_add(&a->n_held, n) + n > most) {
        reply_add_header(answer, "Retry-After", "1");
        api_fail(answer, 503, NULL, "busy", "too many recordings wait already; try again later");
        return false;
    }
    return true;
}

static bool take_form(app *a, const http_request *request, job *j, reply *answer)
{
    static const char *const name_names[] = {"name", "id", "voice", NULL};
    static const char *const text_names[] = {
            "transcript", "text", "reference_text", "ref_text", "prompt_text", NULL};
    static const char *const file_names[] = {"file", "audio", "audio_sample", "reference",
            "reference_audio", "ref_audio", "prompt_audio", NULL};
    static const char *const replace_names[] = {"overwrite", NULL};
    multipart form;
    sl_error err = {0};
    if (multipart_parse(request->header(request->ud, "Content-Type"), request->body,
                request->n_body, &form, &err) < 0) {
        api_fail(answer, err.code == SL_EUNSUPPORTED ? 415 : 400, NULL, "invalid_form", "%s",
                err.msg);
        return false;
    }
    const multipart_part *name = multipart_find(&form, name_names);
    const multipart_part *text = multipart_find(&form, text_names);
    const multipart_part *file = multipart_find(&form, file_names);
    const multipart_part *replace = multipart_find(&form, replace_names);
    j->voice.may_replace = replace && replace->n == 4 && memcmp(replace->data, "true", 4) == 0;
    return take_name(name ? name->data : NULL, name ? name->n : 0, j, answer) &&
           take_transcript(text ? text->data : NULL, text ? text->n : 0, j, answer) &&
           has_sound(file ? file->n : 0, answer) &&
           app_take_sound(a, app_copy_sound(file->data, file->n, answer), file->n, j, answer);
}

static bool decode_sound(app *a, const char *text, size_t n, job *j, reply *answer)
{
    size_t n_sound = 0;
    unsigned char *sound = sl__alloc(n / 4 + 1, 3);
    if (!sound) {
        return fail_memory(answer);
    }
    if (!base64_decode(text, n, sound, &n_sound)) {
        sl__free(sound);
        api_fail(answer, 400, "file", "invalid_base64", "file is not base64");
        return false;
    }
    return app_take_sound(a, sound, n_sound, j, answer) && has_sound(n_sound, answer);
}

static bool take_json(app *a, const http_request *request, job *j, reply *answer)
{
    const char *name = NULL;
    const char *text = NULL;
    const char *sound = "";
    size_t n_name = 0;
    size_t n_text = 0;
    size_t n_sound = 0;
    json_t *object = api_json_object(request, answer);
    bool is_ok = object && api_json_string(object, "name", &name, &n_name, answer) &&
                 api_json_string(object, "transcript", &text, &n_text, answer) &&
                 api_json_string(object, "file", &sound, &n_sound, answer) &&
                 api_json_bool(object, "overwrite", &j->voice.may_replace, answer) &&
                 take_name(name, n_name, j, answer) && take_transcript(text, n_text, j, answer) &&
                 decode_sound(a, sound, n_sound, j, answer);
    api_json_free(object);
    return is_ok;
}

/* Early answers for what the worker would find out after the work. */
static bool check_room(const app *a, const job *j, reply *answer)
{
    char **names = NULL;
    size_t n = 0;
    bool exists = voice_exists(a->opts.voice_dir, j->voice.name);
    if (exists && !j->voice.may_replace) {
        api_fail(answer, 409, "name", "voice_exists",
                "there is a voice '%s' already; remove it first, or send overwrite=true",
                j->voice.name);
        return false;
    }
    if (s2_voice_list(a->opts.voice_dir, &names, &n, NULL) == 0) {
        s2_voice_list_free(names, n);
    }
    if (!exists && n >= a->opts.limits.n_voices) {
        api_fail(answer, 409, NULL, "too_many_voices",
                "there are %zu voices, which is the limit; remove one first", n);
        return false;
    }
    return true;
}

void api_voices_add(app *a, const http_request *request, reply *answer)
{
    job *j = NULL;
    const char *type = request->header(request->ud, "Content-Type");
    bool is_json = type && strncmp(type, "application/json", 16) == 0;
    if (job_create(JOB_VOICE, answer, &j, NULL) < 0) {
        fail_memory(answer);
        return;
    }
    bool is_ok = is_json ? take_json(a, request, j, answer) : take_form(a, request, j, answer);
    if (is_ok && check_room(a, j, answer)) {
        app_submit(a, j);
    } else {
        job_free(&j);
    }
}

/* ---- one less ---- */

void api_voices_remove(app *a, const http_request *request, reply *answer)
{
    static const char prefix[] = "/v1/audio/voices/";
    const char *name = request->path + sizeof prefix - 1;
    char *path = NULL;
    sl_error err = {0};
    sl__json json = {0};
    if (!check_name(name, strlen(name), "voice", answer)) {
        return;
    }
    int r = s2_voice_path(a->opts.voice_dir, name, &path, &err);
    if (r == 0 && unlink(path) != 0) {
        r = sl__fail_os(&err, errno, "voice '%s'", name);
    }
    s2_voice_path_free(path);
    if (r == SL_ENOENT) {
        api_fail(answer, 404, "voice", "voice_not_found", "there is no voice '%s'", name);
        return;
    }
    if (r < 0) {
        api_fail_error(&a->opts, answer, DIALECT_OPENAI, "voice", &err);
        return;
    }
    sl__json_object(&json);
    sl__json_put_cstr(&json, "id", name);
    sl__json_put_cstr(&json, "object", "voice");
    sl__json_put_bool(&json, "deleted", true);
    sl__json_end(&json);
    api_send_json(answer, 200, &json);
}
