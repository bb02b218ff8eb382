/*
 * The GGUF files that the program has mapped so far: what of each is worth being present, and what has been seen
 * to. The same file counts once, by whatever path or descriptor it comes; a file that was written to since is
 * another one.
 *
 * Threads: under the lock of the owner.
 */
#ifndef PRELOAD_KNOWN_FILES_H
#define PRELOAD_KNOWN_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "sluice/map.h"
#include "sluice/ranges.h"

typedef struct known_file {
    sl_file_id id;
    sl_ranges wanted; /* bytes of tensors that are not lazy */
    sl_ranges done;   /* of them, what a mapping was made for */
    bool is_left_alone; /* it cannot be read as a GGUF: the program's calls are passed on as they are */
} known_file;

/* Zeroed memory is empty. */
typedef struct known_files {
    known_file *items;
    size_t n;
    size_t cap;
} known_files;

/* NULL if the file is not known. Valid until the next add. */
known_file *known_files_find(known_files *files, const sl_file_id *id);

/* Adds a file that is not known yet. Errors: SL_ENOMEM. */
int known_files_add(
        known_files *files, const sl_file_id *id, known_file **ret, sl_error *reterr) SL_MUST_CHECK;

/*
 * What bytes begin..end of the file, as they are mapped now, ask for in addition to earlier mappings; they count
 * as done from here on. Errors: SL_ENOMEM, nothing is done then.
 */
int known_file_take(known_file *file, uint64_t begin, uint64_t end, sl_ranges *ret_ranges,
        sl_error *reterr) SL_MUST_CHECK;

void known_files_done(known_files *files);

#endif
