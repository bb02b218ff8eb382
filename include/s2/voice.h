/*
 * Voices: a transcript and the codes of its recording, as a value and as a `.s2voice` file.
 *
 * File (little endian): "S2VOICE\0" | u32 version 1 | i32 n_codebooks | i32 n_frames | i32 sample_rate |
 * i32 codebook_size | u64 transcript bytes with its NUL | u64 codes bytes | transcript | i32 codes,
 * [n_codebooks][n_frames]. Every field is checked against the others and the file's size when read.
 *
 * Names of voices match [A-Za-z0-9_-]{1,64} and are none of the device names of Windows (CON, NUL, COM1, ...,
 * in any case), so that a folder of voices can be carried anywhere: a name is never a path. Files are written
 * atomically, mode 0600.
 *
 * A voice of a folder is a regular file in it. A symbolic link there is neither listed nor opened by name,
 * because it could lead out of the folder; whoever can place links in the folder between the check and the
 * use can place voices as well. A path given as such (s2_voice_load) may be a link.
 *
 * Threads: a voice belongs to one thread at a time; the folder functions may be called from any.
 */
#ifndef S2_VOICE_H
#define S2_VOICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sluice/error.h"

#ifdef __cplusplus
extern "C" {
#endif

#define S2_VOICE_MAX_FRAMES        65536    /* 50 minutes of S2 Pro; a longer file is refused */
#define S2_VOICE_MAX_CODEBOOKS     32       /* as a model may have */
#define S2_VOICE_MAX_CODEBOOK_SIZE 1048576  /* entries */
#define S2_VOICE_MAX_TEXT_BYTES    1048576u /* with the NUL */
#define S2_VOICE_NAME_MAX_BYTES    64
#define S2_VOICE_SUFFIX            ".s2voice"

typedef struct s2_voice {
    uint32_t n_codebooks;
    uint32_t n_frames;
    uint32_t sample_rate;   /* Hz */
    uint32_t codebook_size; /* codes are 0..codebook_size-1 */
    char *text;             /* transcript, UTF-8, NUL-terminated, not empty */
    int32_t *codes;         /* [n_codebooks][n_frames] */
} s2_voice;

/* Frees the contents and zeroes the voice. Accepts NULL and zeroed memory. */
void s2_voice_done(s2_voice *voice);

/*
 * Reads and checks a file. Errors: SL_ENOENT, SL_EACCES, SL_EINVAL (no regular file), SL_EFORMAT (what and
 * where), SL_ELIMIT (too large), SL_ENOMEM, SL_EIO.
 */
int s2_voice_load(const char *path, s2_voice *ret_voice, sl_error *reterr);

/*
 * Writes a file atomically: a file of that name is replaced only by a complete one. Makes the folder (mode
 * 0700) if there is none, and returns 1 then so that the caller can say so; else 0.
 * Errors: SL_EINVAL (inconsistent voice), SL_ENOSPC, SL_EACCES, SL_ENOENT, SL_ENOMEM, SL_EIO.
 */
int s2_voice_save(const char *path, const s2_voice *voice, sl_error *reterr);

/* True for a name that may stand for a voice. `name` need not end with a NUL, and one inside is refused. */
bool s2_voice_name_is_valid(const char *name, size_t n_bytes);

/*
 * DIR/NAME.s2voice as a new string (free with s2_voice_path_free); nothing is created.
 * Errors: SL_EINVAL for a name that is not valid, SL_EACCES if that file is a symbolic link, SL_ENOMEM.
 */
int s2_voice_path(const char *dir, const char *name, char **ret_path, sl_error *reterr);
void s2_voice_path_free(char *path);

/*
 * Names in a folder, sorted by byte; a folder that does not exist has none. Files are not opened: one that
 * is listed may still be refused by s2_voice_load. Free with s2_voice_list_free.
 * Errors: SL_EINVAL (no folder), SL_EACCES, SL_ENOMEM, SL_EIO.
 */
int s2_voice_list(const char *dir, char ***ret_names, size_t *ret_n, sl_error *reterr);
void s2_voice_list_free(char **names, size_t n);

#ifdef __cplusplus
}
#endif

#endif
