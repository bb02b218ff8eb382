/*
 * How the library fills an sl_error, inside the project.
 *
 * Each function returns `code`, so that `return sl__fail(reterr, SL_EFORMAT, "...")` reads as one sentence.
 * Messages name the file or flag first, then the value found, then the value needed, then what to do.
 * Text from outside (paths, keys) goes through sl__quote first.
 */
#ifndef SL_BASE_STATUS_H
#define SL_BASE_STATUS_H

#include <stddef.h>

#include "sluice/error.h"

#if defined(__GNUC__)
#define SL_PRINTF(fmt_index, first) __attribute__((format(printf, fmt_index, first)))
#define SL_MUST_CHECK               __attribute__((warn_unused_result))
#else
#define SL_PRINTF(fmt_index, first)
#define SL_MUST_CHECK
#endif

/* Fills `reterr` (may be NULL) and returns `code`, which must be negative. */
int sl__fail(sl_error *reterr, int code, const char *fmt, ...) SL_PRINTF(3, 4);

/* The same with a byte offset in the file at fault. */
int sl__fail_at(sl_error *reterr, int code, uint64_t offset, const char *fmt, ...) SL_PRINTF(4, 5);

/* The same for a failed system call: the code follows from `os_errno`, and its text is appended. */
int sl__fail_os(sl_error *reterr, int os_errno, const char *fmt, ...) SL_PRINTF(3, 4);

/* SL_E... that corresponds to an errno value. */
int sl__code_from_errno(int os_errno);

/* "out of memory: needed N bytes for WHAT". Returns SL_ENOMEM. */
int sl__fail_nomem(sl_error *reterr, size_t n_bytes, const char *what);

#ifdef __clang_analyzer__
/* Tells the analyzer what every caller relies on: the result is negative. */
static inline int sl__negative(int code)
{
    if (code >= 0) {
        __builtin_unreachable();
    }
    return code;
}
#define sl__fail(...)       sl__negative((sl__fail)(__VA_ARGS__))
#define sl__fail_at(...)    sl__negative((sl__fail_at)(__VA_ARGS__))
#define sl__fail_os(...)    sl__negative((sl__fail_os)(__VA_ARGS__))
#define sl__fail_nomem(...) sl__negative((sl__fail_nomem)(__VA_ARGS__))
#endif

/*
 * Writes `text` (length-counted, any bytes) into `buf` for a message: valid printable UTF-8 stays, every
 * other byte becomes \xNN, and a text that is too long ends in "...". Always terminates; returns `buf`.
 */
const char *sl__quote(char *buf, size_t buf_bytes, const char *text, size_t text_bytes);

#endif
