/*
 * Writes JSON into a growing buffer: values in order, commas and escapes done here.
 *
 * Misuse (a value without a key inside an object, an end without a begin) is an assertion. A failed
 * allocation makes the writer dead: everything later does nothing and sl__json_text returns NULL.
 * Strings that are not UTF-8 are written with U+FFFD for every bad byte. Numbers that JSON lacks (NaN,
 * infinities) are written as null.
 *
 * Threads: one thread at a time. Zeroed memory is an empty writer.
 */
#ifndef SL_BASE_JSON_WRITER_H
#define SL_BASE_JSON_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SL_JSON_MAX_DEPTH 32

typedef struct sl__json {
    char *buf;
    size_t n;
    size_t cap;
    bool is_dead;
    bool has_key; /* a key waits for its value */
    int depth;
    bool in_object[SL_JSON_MAX_DEPTH];
    bool has_items[SL_JSON_MAX_DEPTH];
} sl__json;

void sl__json_done(sl__json *j);

void sl__json_object(sl__json *j);
void sl__json_array(sl__json *j);
void sl__json_end(sl__json *j); /* of the innermost object or array */

void sl__json_key(sl__json *j, const char *key);
void sl__json_str(sl__json *j, const char *s, size_t n);
void sl__json_cstr(sl__json *j, const char *s); /* NULL writes null */
void sl__json_u64(sl__json *j, uint64_t v);
void sl__json_i64(sl__json *j, int64_t v);
void sl__json_f64(sl__json *j, double v); /* shortest text that reads back equal */
void sl__json_bool(sl__json *j, bool v);
void sl__json_null(sl__json *j);

/* A key and its value in one call. */
void sl__json_put_str(sl__json *j, const char *key, const char *s, size_t n);
void sl__json_put_cstr(sl__json *j, const char *key, const char *s);
void sl__json_put_u64(sl__json *j, const char *key, uint64_t v);
void sl__json_put_u64_or_null(sl__json *j, const char *key, bool has, uint64_t v);
void sl__json_put_f64(sl__json *j, const char *key, double v);
void sl__json_put_bool(sl__json *j, const char *key, bool v);

/* The text so far with a NUL behind it, valid until the next call; NULL if memory ran out. */
const char *sl__json_text(sl__json *j, size_t *ret_n);

#endif
