/*
 * Fields of a JSON body: each getter leaves the default where the field is absent or null, and answers with 400
 * and the field's name where it is something else than it must be. Those return false then.
 */
#ifndef SERVER_API_JSON_H
#define SERVER_API_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "http.h"

struct json_t;

/* The body as an object, or NULL after an answer. Free with api_json_free. */
struct json_t *api_json_object(const http_request *request, reply *answer);
void api_json_free(struct json_t *object);

/* The string lives as long as the object. */
bool api_json_string(const struct json_t *object, const char *name, const char **ret, size_t *ret_n,
        reply *answer);
bool api_json_float(const struct json_t *object, const char *name, double min, double max,
        float *ret, reply *answer);
bool api_json_int(const struct json_t *object, const char *name, int64_t min, int64_t max,
        int64_t *ret, reply *answer);
bool api_json_bool(const struct json_t *object, const char *name, bool *ret, reply *answer);

/* Tells the client in a header which fields mean nothing here; `known` ends with NULL. */
void api_json_note_unknown(const struct json_t *object, const char *const *known, reply *answer);

#endif
