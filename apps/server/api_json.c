#include "api_json.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <jansson.h>

#include "app.h"

json_t *api_json_object(const http_request *request, reply *answer)
{
    json_error_t err;
    char quoted[128];
    const char *type = request->header(request->ud, "Content-Type");
    if (type && strncmp(type, "application/json", 16) != 0) {
        api_fail(answer, 415, NULL, "unsupported_media_type",
                "Content-Type is '%s', need application/json",
                sl__quote(quoted, sizeof quoted, type, strlen(type)));
        return NULL;
    }
    json_t *object = json_loadb(request->body, request->n_body, JSON_REJECT_DUPLICATES, &err);
    if (!object) {
        sl__quote(quoted, sizeof quoted, err.text, strlen(err.text));
        api_fail(answer, 400, NULL, "invalid_json", "the body is no JSON: line %d, column %d: %s",
                err.line, err.column, quoted);
        return NULL;
    }
    if (!json_is_object(object)) {
        json_decref(object);
        api_fail(answer, 400, NULL, "invalid_json", "the body must be a JSON object");
        return NULL;
    }
    return object;
}

void api_json_free(json_t *object)
{
    json_decref(object);
}

/* The value, or NULL where the default holds. */
static json_t *get(const json_t *object, const char *name)
{
    json_t *value = json_object_get(object, name);
    return json_is_null(value) ? NULL : value;
}

bool api_json_string(
        const json_t *object, const char *name, const char **ret, size_t *ret_n, reply *answer)
{
    const json_t *value = get(object, name);
    if (value && !json_is_string(value)) {
        api_fail(answer, 400, name, "invalid_type", "%s must be a string", name);
        return false;
    }
    if (value) {
        *ret = json_string_value(value);
        *ret_n = json_string_length(value);
    }
    return true;
}

bool api_json_float(
        const json_t *object, const char *name, double min, double max, float *ret, reply *answer)
{
    const json_t *value = get(object, name);
    if (!value) {
        return true;
    }
    double number = json_number_value(value);
    if (!json_is_number(value) || !(number >= min && number <= max)) {
        api_fail(answer, 400, name, "invalid_value", "%s must be a number from %g to %g", name, min,
                max);
        return false;
    }
    *ret = (float)number;
    return true;
}

bool api_json_int(const json_t *object, const char *name, int64_t min, int64_t max, int64_t *ret,
        reply *answer)
{
    const json_t *value = get(object, name);
    if (!value) {
        return true;
    }
    json_int_t number = json_integer_value(value);
    if (!json_is_integer(value) || number < min || number > max) {
        api_fail(answer, 400, name, "invalid_value",
                "%s must be a whole number from %" PRId64 " to %" PRId64, name, min, max);
        return false;
    }
    *ret = number;
    return true;
}

bool api_json_bool(const json_t *object, const char *name, bool *ret, reply *answer)
{
    const json_t *value = get(object, name);
    if (value && !json_is_boolean(value)) {
        api_fail(answer, 400, name, "invalid_type", "%s must be true or false", name);
        return false;
    }
    if (value) {
        *ret = json_is_true(value);
    }
    return true;
}

static bool is_known(const char *name, const char *const *known)
{
    while (*known && strcmp(*known, name) != 0) {
        known++;
    }
    return *known != NULL;
}

/* Only names that may stand in a header. */
static bool is_plain(const char *name)
{
    size_t n = strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-");
    return n > 0 && n <= 40 && name[n] == '\0';
}

void api_json_note_unknown(const json_t *object, const char *const *known, reply *answer)
{
    char list[150];
    size_t n = 0;
    for (void *i = json_object_iter((json_t *)(uintptr_t)object); i;
            i = json_object_iter_next((json_t *)(uintptr_t)object, i)) {
        const char *name = json_object_iter_key(i);
        if (!is_known(name, known) && is_plain(name) && n + strlen(name) + 3 < sizeof list) {
            n += (size_t)snprintf(list + n, sizeof list - n, "%s%s", n > 0 ? ", " : "", name);
        }
    }
    if (n > 0) {
        reply_add_header(answer, "X-Ignored-Fields", "%s", list);
    }
}
