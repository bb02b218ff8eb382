/* Interrupts of the process, for commands that end in order. */
#ifndef CLI_INTERRUPT_H
#define CLI_INTERRUPT_H

#include <stdbool.h>

/*
 * From now on the first SIGINT, SIGTERM or SIGHUP is noted, and one that comes half a second later or more ends the
 * program. What nohup or a shell's background job ignores stays ignored.
 */
void interrupt_catch(void);

/* True once one has come. Any thread. */
bool interrupt_seen(void);

#endif
