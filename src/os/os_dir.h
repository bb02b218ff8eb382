/*
 * Folders: what is in them, and making them. Any thread.
 */
#ifndef SL_OS_DIR_H
#define SL_OS_DIR_H

#include <stddef.h>

#include "base/status.h"

typedef enum sl__path_kind {
    SL_PATH_NONE, /* nothing there, or not visible to us */
    SL_PATH_FILE, /* regular file */
    SL_PATH_DIR,
    SL_PATH_SYMLINK, /* whatever it points at */
    SL_PATH_OTHER    /* FIFO, socket, device */
} sl__path_kind;

/* What the path names; the last component is not followed if it is a symbolic link. */
sl__path_kind sl__path_kind_of(const char *path);

/*
 * Names of the regular files in a folder, in no order: no sub-folders, symbolic links or devices. Free each
 * name and the array with sl__dir_names_free.
 * Errors: SL_ENOENT, SL_EACCES, SL_ENOMEM, SL_EIO.
 */
int sl__dir_list(
        const char *path, char ***ret_names, size_t *ret_n, sl_error *reterr) SL_MUST_CHECK;
void sl__dir_names_free(char **names, size_t n);

/*
 * Makes the folder and what is missing above it, each with mode 0700. Returns 1 if it made the folder, 0 if
 * it was there. Errors: SL_EACCES, SL_ENOSPC, SL_EINVAL (a component is no folder), SL_ENOMEM, SL_EIO.
 */
int sl__dir_create(const char *path, sl_error *reterr) SL_MUST_CHECK;

#endif
