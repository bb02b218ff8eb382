#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>

const char *sl_log_level_name(sl_log_level level)
{
    static const char *const names[SL_LOG_LEVEL_COUNT] = {
            [SL_LOG_ERROR] = "error",
            [SL_LOG_WARN] = "warn",
            [SL_LOG_INFO] = "info",
            [SL_LOG_DEBUG] = "debug",
    };
    return (unsigned)level < SL_LOG_LEVEL_COUNT ? names[level] : "unknown";
}

void sl__log(const sl_logger *log, sl_log_level level, const char *fmt, ...)
{
    char line[1024];
    va_list ap;

    if (!log || !log->fn) {
        return;
    }
    va_start(ap, fmt);
    vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    log->fn(log->ud, level, line);
}
