/* Where voices are kept: the folder that was asked for, or the user's. */
#ifndef CLI_VOICE_DIR_H
#define CLI_VOICE_DIR_H

#include "base/status.h"

/* Help text of the option --voice-dir, which several commands have. */
#define VOICE_DIR_HELP                                                                             \
    "Folder of the saved voices; default: sluice/voices in $XDG_DATA_HOME or in ~/.local/share."

/*
 * `asked` as a new string, or the default if it is NULL; free with sl__free. Nothing is created.
 * Errors: SL_EINVAL (no home folder is known), SL_ENOMEM.
 */
int voice_dir(const char *asked, char **ret_dir, sl_error *reterr) SL_MUST_CHECK;

/*
 * Path of the voice that `word` means, free with sl__free: a valid name stands for a file in `dir`, anything
 * else is a path. Errors: SL_ENOMEM.
 */
int voice_path_of(
        const char *dir, const char *word, char **ret_path, sl_error *reterr) SL_MUST_CHECK;

#endif
