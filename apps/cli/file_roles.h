/* Files of one command line must not get into each other's way. */
#ifndef CLI_FILE_ROLES_H
#define CLI_FILE_ROLES_H

#include <stdbool.h>
#include <stddef.h>

/* A file and what the command does with it. */
typedef struct file_role {
    const char *name; /* "--output", for messages */
    const char *path; /* NULL if there is none */
    bool is_output;
} file_role;

/*
 * Refuses an output that is an input or another output (the same file by whatever name, or '-' twice), two
 * inputs on '-', and an output whose folder does not exist or cannot be written. Returns OPT_RUN, or the
 * status to exit with after one line.
 */
int file_roles_check(const char *command, const file_role *roles, size_t n);

#endif
