/* Each message leaves in one write, so that lines of several processes do not mix. */
#include "report.h"

#include <stdarg.h>
#include <stdio.h>

#define MSG_BYTES 1024

int report_usage(const char *command, const char *fmt, ...)
{
    char msg[MSG_BYTES];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(msg, sizeof msg, fmt, ap);
    va_end(ap);
    const char *space = *command ? " " : "";
    fprintf(stderr, "sluice%s%s: %s; see 'sluice%s%s --help'\n", space, command, msg, space,
            command);
    return sl_err_exit_status(SL_EINVAL);
}

int report_error(const char *command, const sl_error *err)
{
    fprintf(stderr, "sluice %s: %s\n", command, err->msg[0] ? err->msg : sl_err_text(err->code));
    return sl_err_exit_status(err->code);
}

void report_warning(const char *command, const char *fmt, ...)
{
    char msg[MSG_BYTES];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(msg, sizeof msg, fmt, ap);
    va_end(ap);
    fprintf(stderr, "sluice %s: warning: %s\n", command, msg);
}

int report_json(sl__json *j, sl_error *reterr)
{
    const char *text = sl__json_text(j, NULL);
    if (text) {
        printf("%s\n", text);
    }
    sl__json_done(j);
    return text ? SL_OK : sl__fail(reterr, SL_ENOMEM, "out of memory while writing JSON");
}
