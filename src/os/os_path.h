/* Questions about paths, and opening what is behind them. Any thread. */
#ifndef SL_OS_PATH_H
#define SL_OS_PATH_H

#include <stdbool.h>

#include "base/status.h"

/*
 * Opens a regular file for reading. A directory, FIFO, socket or device is refused by name, without being
 * opened and so without blocking.
 * Errors: SL_ENOENT, SL_EACCES, SL_EINVAL (no regular file), SL_ELIMIT, SL_EIO; the path in the message.
 */
int sl__open_regular(const char *path, int *ret_fd, sl_error *reterr) SL_MUST_CHECK;

/* True if the path names a symbolic link. */
bool sl__is_symlink(const char *path);

/*
 * The path with every symbolic link resolved; sl__free it.
 * Errors: SL_ENOENT, SL_EACCES, SL_EINVAL (a loop), SL_ENOMEM, SL_EIO.
 */
int sl__real_path(const char *path, char **ret_path, sl_error *reterr) SL_MUST_CHECK;

#endif
