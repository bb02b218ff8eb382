/*
 * The index of a GGUF file that is read, not mapped: for those who may not touch pages that could vanish, since
 * the process and its signals are somebody else's.
 *
 * Threads: one at a time.
 */
#ifndef SL_SOURCE_GGUF_HEAD_H
#define SL_SOURCE_GGUF_HEAD_H

#include "os/os_head.h"
#include "sluice/gguf.h"

/* Zeroed memory is "nothing open". */
typedef struct sl__gguf_head {
    sl__os_head bytes;
    sl_gguf *gguf; /* its spans point into bytes */
} sl__gguf_head;

/*
 * Reads as much of the file's beginning as its index takes. `name` stands in messages.
 * Errors: those of sl_gguf_open and sl__os_head_read.
 */
int sl__gguf_head_open(int fd, const char *name, uint64_t n_bytes, sl__gguf_head *ret_head,
        sl_error *reterr) SL_MUST_CHECK;
void sl__gguf_head_done(sl__gguf_head *head);

#endif
