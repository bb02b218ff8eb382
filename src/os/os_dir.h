/*
 * Folders: what is in them, and making them. Any thread.
 */
#ifndef SL_OS_DIR_H
#define SL_OS_DIR_H

#include <stddef.h>

#include "base/status.h"

/*
 * Names of the regular files in a folder, in no order: no sub-folders, symbolic links or devices. Free each
 * name and the array with sl__dir_names_free.
 * Errors: SL_ENOENT (nothing there), SL_EINVAL (no folder), SL_EACCES, SL_ENOMEM, SL_EIO.
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
