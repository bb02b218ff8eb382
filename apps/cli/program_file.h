/*
 * What would be run for a command, and whether a library can be put in front of it.
 *
 * Threads: any.
 */
#ifndef CLI_PROGRAM_FILE_H
#define CLI_PROGRAM_FILE_H

#include <stddef.h>

typedef enum program_kind {
    PROGRAM_FINE,      /* or nothing is known against it */
    PROGRAM_MISSING,   /* there is no such file */
    PROGRAM_FORBIDDEN, /* there is one that may not be run */
    PROGRAM_STATIC,    /* linked statically: it loads no libraries */
    PROGRAM_FOREIGN,   /* of another machine or another C library than this program */
    PROGRAM_PRIVILEGED, /* runs with other rights than ours: the system preloads nothing of ours then */
    PROGRAM_KIND_COUNT
} program_kind;

/*
 * Looks for a command as execvp does and at what it is; scripts are followed to their interpreter. `ret_path` gets
 * the file that would be run (of the script, not of its interpreter), cut to fit.
 */
program_kind program_look(const char *command, char *ret_path, size_t path_bytes);

/* Half a sentence about a kind: "is linked statically", ... Static string. */
const char *program_kind_text(program_kind kind);

#endif
