/*
 * How the program says what went wrong: one line on standard error, and the status to exit with. Text from
 * outside is escaped by whoever made the message. And how it says what was found to other programs.
 */
#ifndef CLI_REPORT_H
#define CLI_REPORT_H

#include "base/json_writer.h"
#include "base/status.h"

/* "sluice COMMAND: message; see 'sluice COMMAND --help'". An empty command is the program. Returns 2. */
int report_usage(const char *command, const char *fmt, ...) SL_PRINTF(2, 3);

/* "sluice COMMAND: err->msg". Returns the exit status of the error's code. */
int report_error(const char *command, const sl_error *err);

/* "sluice COMMAND: warning: message". */
void report_warning(const char *command, const char *fmt, ...) SL_PRINTF(2, 3);

/* What a command was asked to say as JSON: a line on standard output. Frees it. Errors: SL_ENOMEM. */
int report_json(sl__json *j, sl_error *reterr) SL_MUST_CHECK;

#endif
