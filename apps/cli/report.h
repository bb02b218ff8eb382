/*
 * How the program says what went wrong: one line on standard error, and the status to exit with. Text from
 * outside is escaped by whoever made the message.
 */
#ifndef CLI_REPORT_H
#define CLI_REPORT_H

#include "base/status.h"

/* "sluice COMMAND: message; see 'sluice COMMAND --help'". An empty command is the program. Returns 2. */
int report_usage(const char *command, const char *fmt, ...) SL_PRINTF(2, 3);

/* "sluice COMMAND: err->msg". Returns the exit status of the error's code. */
int report_error(const char *command, const sl_error *err);

/* "sluice COMMAND: warning: message". */
void report_warning(const char *command, const char *fmt, ...) SL_PRINTF(2, 3);

#endif
