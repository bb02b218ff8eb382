/*
 * Whole small files from untrusted places.
 */
#ifndef SL_OS_FILE_H
#define SL_OS_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/*
 * Reads a regular file of at most max_bytes into memory (sl__free it), with a NUL behind the last byte.
 * "-" reads standard input. `what` names the kind of file in messages ("tokenizer", "voice").
 * A directory, FIFO, socket or device is refused without blocking.
 * Errors: SL_ENOENT, SL_EACCES, SL_EINVAL, SL_ELIMIT (too large: both sizes), SL_ENOMEM, SL_EIO.
 */
int sl__read_file(const char *path, const char *what, uint64_t max_bytes, char **ret_data,
        size_t *ret_bytes, sl_error *reterr) SL_MUST_CHECK;

#endif
