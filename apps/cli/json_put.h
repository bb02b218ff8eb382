/* A key and its value in one call; see base/json_writer.h. */
#ifndef CLI_JSON_PUT_H
#define CLI_JSON_PUT_H

#include <stdio.h>

#include "base/json_writer.h"
#include "base/status.h"

static inline void put_u64(sl__json *j, const char *key, uint64_t v)
{
    sl__json_key(j, key);
    sl__json_u64(j, v);
}

static inline void put_u64_or_null(sl__json *j, const char *key, bool has, uint64_t v)
{
    sl__json_key(j, key);
    if (has) {
        sl__json_u64(j, v);
    } else {
        sl__json_null(j);
    }
}

static inline void put_f64(sl__json *j, const char *key, double v)
{
    sl__json_key(j, key);
    sl__json_f64(j, v);
}

static inline void put_bool(sl__json *j, const char *key, bool v)
{
    sl__json_key(j, key);
    sl__json_bool(j, v);
}

static inline void put_str(sl__json *j, const char *key, const char *s, size_t n)
{
    sl__json_key(j, key);
    sl__json_str(j, s, n);
}

static inline void put_cstr(sl__json *j, const char *key, const char *s)
{
    sl__json_key(j, key);
    sl__json_cstr(j, s);
}

/* Writes what there is as a line to standard output, and frees it. Errors: SL_ENOMEM. */
static inline int put_out(sl__json *j, sl_error *reterr)
{
    const char *text = sl__json_text(j, NULL);
    if (text) {
        printf("%s\n", text);
    }
    sl__json_done(j);
    return text ? SL_OK : sl__fail(reterr, SL_ENOMEM, "out of memory while writing JSON");
}

#endif
