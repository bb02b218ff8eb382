/* What a process has open, and work done in another process. */
#ifndef TEST_PROCESS_STATE_H
#define TEST_PROCESS_STATE_H

#include <stdbool.h>
#include <stddef.h>

/* Open file descriptors of this process. */
size_t process_n_fds(void);

/* True if a mapping of this process names a path that holds `part`. */
bool process_maps(const char *part);

/* Runs fn(arg) in a child and returns its wait status; a child of root gives up root first if asked to. */
int process_in_child(int (*fn)(void *arg), void *arg, bool as_nobody);

#endif
