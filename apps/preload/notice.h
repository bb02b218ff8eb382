/*
 * Lines on the standard error of a program that is not ours: each is one write, so that lines of several threads
 * do not mix, and none is written once descriptor 2 has become something else.
 *
 * Threads: any.
 */
#ifndef PRELOAD_NOTICE_H
#define PRELOAD_NOTICE_H

#include "base/status.h"

/* Remembers what standard error is. Call it before the program can change it. */
void shim_notice_begin(void);

/* "sluice run: " and the line. */
void shim_notice(const char *fmt, ...) SL_PRINTF(1, 2);

#endif
