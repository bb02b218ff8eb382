/*
 * The beginning of a file in private memory, in front of as much address space as the whole file would take, which
 * reads as zeros. Who reads behind the beginning gets nonsense instead of a signal, and needs no handler for one.
 *
 * Threads: one at a time.
 */
#ifndef SL_OS_HEAD_H
#define SL_OS_HEAD_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* Zeroed memory is "no head". */
typedef struct sl__os_head {
    char *data;
    uint64_t n_bytes; /* of address space */
    uint64_t n_read;  /* of the file; zeros follow */
} sl__os_head;

/*
 * Reads the first n_head bytes (or all, if there are fewer) of the n_bytes of a file. `name` stands in messages.
 * Errors: SL_ENOMEM, SL_ELIMIT (too large for the address space), SL_ECHANGED (the file is shorter), SL_EIO.
 */
int sl__os_head_read(int fd, const char *name, uint64_t n_bytes, uint64_t n_head,
        sl__os_head *ret_head, sl_error *reterr) SL_MUST_CHECK;
void sl__os_head_done(sl__os_head *head);

#endif
