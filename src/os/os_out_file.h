/*
 * An output file that is complete or absent.
 *
 * Bytes go to a file in the folder of `path` (of its target, if it is a symbolic link) that has no name, or, on file
 * systems that cannot have such, a temporary one; commit makes them durable and renames them into place, so that an
 * existing file is replaced only by a complete one. A path that exists and is no regular file (a terminal, FIFO,
 * /dev/null) is written directly, as a stream; "-" is standard output.
 *
 * Threads: one thread at a time. A process that is killed leaves nothing of a file without a name, unless it happens
 * between the two system calls of a commit that give it the last one: then, as in the other case, .sluice-*.part.
 */
#ifndef SL_OS_OUT_FILE_H
#define SL_OS_OUT_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef struct sl__out_file sl__out_file;

/* mode: permission bits of a new file, before the umask. Errors name the path. */
int sl__out_file_open(
        const char *path, unsigned mode, sl__out_file **ret_file, sl_error *reterr) SL_MUST_CHECK;

/* Appends n_bytes. Errors: SL_ENOSPC, SL_EIO (also a closed pipe), with the path. */
int sl__out_file_write(
        sl__out_file *file, const void *data, size_t n_bytes, sl_error *reterr) SL_MUST_CHECK;

/* Overwrites n_bytes at `offset`, which were written before; SL_EINVAL on a stream. */
int sl__out_file_patch(sl__out_file *file, uint64_t offset, const void *data, size_t n_bytes,
        sl_error *reterr) SL_MUST_CHECK;

/* True if bytes leave at once and cannot be patched (standard output, FIFO, device). */
bool sl__out_file_is_stream(const sl__out_file *file);

/* Hands buffered bytes of a stream on to its reader. */
int sl__out_file_flush(sl__out_file *file, sl_error *reterr) SL_MUST_CHECK;

/* Makes the file durable under its name, closes it and sets *file to NULL. On error nothing remains. */
int sl__out_file_commit(sl__out_file **file, sl_error *reterr) SL_MUST_CHECK;

/* Closes and removes what was written, and sets *file to NULL. Accepts NULL. */
void sl__out_file_discard(sl__out_file **file);

#endif
