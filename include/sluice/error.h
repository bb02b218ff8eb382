/*
 * Status codes and the error record of Sluice.
 *
 * Does not promise: translated text, or stability of the wording of `msg`. Test `code`, show `msg`.
 *
 * Every action of the library returns `int`: 0 for success, a positive count where the function says so,
 * or one of the negative codes below. A function that takes `sl_error *reterr` fills it when it returns a
 * negative code and leaves it alone otherwise; NULL is allowed.
 *
 * Threads: pure functions and plain values; an sl_error belongs to its caller.
 */
#ifndef SLUICE_ERROR_H
#define SLUICE_ERROR_H

#include <stdint.h>

#include "sluice/api.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The one list of codes: X(name, value, text, process exit status, HTTP status).
 * Exit status: 2 for a command line that must be corrected, 1 for everything else, 130 for an interrupt.
 */
#define SL_ERROR_MAP(X)                                                                            \
    X(EINVAL, -1, "invalid argument", 2, 400)                                                      \
    X(ENOMEM, -2, "out of memory", 1, 503)                                                         \
    X(EIO, -3, "input/output error", 1, 500)                                                       \
    X(ENOENT, -4, "not found", 1, 404)                                                             \
    X(EACCES, -5, "permission denied", 1, 403)                                                     \
    X(EFORMAT, -6, "malformed data", 1, 400)                                                       \
    X(EUNSUPPORTED, -7, "not supported", 1, 400)                                                   \
    X(ELIMIT, -8, "limit exceeded", 1, 413)                                                        \
    X(ECHANGED, -9, "file changed while in use", 1, 500)                                           \
    X(ENOSPC, -10, "no space left", 1, 507)                                                        \
    X(EBUDGET, -11, "memory budget exceeded", 1, 503)                                              \
    X(EDEVICE, -12, "device error", 1, 503)                                                        \
    X(ECANCELLED, -13, "cancelled", 130, 499)                                                      \
    X(EBUSY, -14, "busy", 1, 503)                                                                  \
    X(EEXIST, -15, "already exists", 1, 409)                                                       \
    X(EINTERNAL, -16, "internal error", 1, 500)

enum {
    SL_OK = 0,
#define SL_ERROR_ENUM(name, value, text, exit_status, http_status) SL_##name = (value),
    SL_ERROR_MAP(SL_ERROR_ENUM)
#undef SL_ERROR_ENUM
};

/* What went wrong, for programs and for people. Zeroed memory is a valid "no error". */
typedef struct sl_error {
    int code;        /* SL_E..., or 0 */
    int os_errno;    /* errno of the failed system call, or 0 */
    uint64_t offset; /* byte offset in the file that is at fault, or 0 */
    char msg[512];   /* one line of UTF-8 without line end; control bytes of names are escaped */
} sl_error;

/* Short name of a code ("EFORMAT"), or "UNKNOWN". Static string. */
SL_API const char *sl_err_name(int code);

/* Text of a code ("malformed data"), or "unknown error". Static string. */
SL_API const char *sl_err_text(int code);

/* Exit status of a program that ends because of `code`; 0 for a code >= 0. */
SL_API int sl_err_exit_status(int code);

/* HTTP status that reports `code`; 200 for a code >= 0, 500 for an unknown one. */
SL_API int sl_err_http_status(int code);

#ifdef __cplusplus
}
#endif

#endif
