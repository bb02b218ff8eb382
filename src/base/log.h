/* Formatting front end of sl_logger, inside the project. */
#ifndef SL_BASE_LOG_H
#define SL_BASE_LOG_H

#include "base/status.h"
#include "sluice/log.h"

/* Formats one line and hands it to the logger; does nothing for NULL or a logger without a function. */
void sl__log(const sl_logger *log, sl_log_level level, const char *fmt, ...) SL_PRINTF(3, 4);

#endif
