/*
 * The guard behind mapped files: reading a page that the file no longer has gives zeros and a mark instead
 * of a signal that ends the process.
 *
 * The first call of sl__guard_add installs a handler of SIGBUS for the whole process, which stays. A fault
 * outside every guarded mapping goes on to the handler that was there before. Does not promise: anything
 * once another handler of SIGBUS was put over ours without calling it, or in a thread that blocks SIGBUS.
 * Reads by the kernel (write(2) from mapped memory) get EFAULT as ever. A file that ends inside a page reads
 * as zeros to the end of that page without a fault: only its size tells.
 *
 * Threads: any.
 */
#ifndef SL_OS_GUARD_H
#define SL_OS_GUARD_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

#define SL_GUARD_INTACT UINT64_MAX

typedef struct sl__guard sl__guard;

/*
 * Guards a mapping of `fd` that begins at `base` (page aligned). The descriptor stays open until
 * sl__guard_remove, which comes before the mapping is undone.
 * Errors: SL_ENOMEM, SL_EIO (the handler could not be installed).
 */
int sl__guard_add(const void *base, size_t n_bytes, int fd, sl__guard **ret_guard,
        sl_error *reterr) SL_MUST_CHECK;

/* Sets *guard to NULL; accepts NULL. */
void sl__guard_remove(sl__guard **guard);

/* Offset of the first page that a reader missed so far, or SL_GUARD_INTACT. */
uint64_t sl__guard_first_lost(const sl__guard *guard);

#endif
