/*
 * Where the library's messages go.
 *
 * Does not promise: that a message is ever produced. Without a logger the library is silent, and it never
 * writes to a stream by itself.
 *
 * Threads: `fn` may be called from any thread that uses the object that was opened with the logger, also
 * from several at once. It is never called with a lock of the library held.
 * Lifetime: the logger is copied at open; `ud` must outlive the object.
 */
#ifndef SLUICE_LOG_H
#define SLUICE_LOG_H

#include "sluice/api.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum sl_log_level {
    SL_LOG_ERROR,
    SL_LOG_WARN,
    SL_LOG_INFO,
    SL_LOG_DEBUG,
    SL_LOG_LEVEL_COUNT
} sl_log_level;

typedef struct sl_logger {
    void (*fn)(void *ud, sl_log_level level,
            const char *msg); /* msg: one line, no line end; NULL fn = silent */
    void *ud;
} sl_logger;

/* "error", "warn", "info" or "debug". Static string. */
SL_API const char *sl_log_level_name(sl_log_level level);

#ifdef __cplusplus
}
#endif

#endif
