/*
 * One line of progress on a terminal, overwritten in place; nothing at all in a pipe or file, on a dumb
 * terminal, or when asked to be quiet.
 *
 * The line is cut to the width of the terminal as it is now and shown at most ten times a second. Whoever
 * writes anything else to the same stream calls tty_progress_clear first.
 *
 * Threads: one thread at a time.
 */
#ifndef CLI_TTY_H
#define CLI_TTY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/status.h"

typedef struct tty_progress {
    FILE *out;
    bool is_on;
    bool is_shown;    /* a line is on the screen */
    uint64_t next_ns; /* no update before */
} tty_progress;

void tty_progress_init(tty_progress *p, FILE *out, bool is_quiet);

/* Shows a line; dropped if the last one is too young. */
void tty_progress_show(tty_progress *p, const char *fmt, ...) SL_PRINTF(2, 3);

/* Removes the line. */
void tty_progress_clear(tty_progress *p);

/* Columns of the terminal behind `out`, 80 if it does not say. */
size_t tty_columns(FILE *out);

/* Bytes of UTF-8 `text` that fit into `columns` (every character counts one column). Pure. */
size_t tty_fit(const char *text, size_t columns);

#endif
