/*
 * Voices as files of a folder: names, paths, lists. The bytes inside are voice_format.c's.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "engine/voice/voice_format.h"
#include "os/os_dir.h"
#include "os/os_file.h"
#include "os/os_out_file.h"
#include "os/os_path.h"
#include "s2/voice.h"

#define QUOTE_BYTES 256

void s2_voice_done(s2_voice *voice)
{
    if (voice) {
        sl__free(voice->text);
        sl__free(voice->codes);
        memset(voice, 0, sizeof *voice);
    }
}

int s2_voice_load(const char *path, s2_voice *ret_voice, sl_error *reterr)
{
    char shown[QUOTE_BYTES + 8] = "voice ";
    char *bytes = NULL;
    size_t n = 0;
    int r = sl__read_file(path, "voice", S2_VOICE_MAX_BYTES, &bytes, &n, reterr);
    if (r < 0) {
        return r;
    }
    sl__quote(shown + strlen(shown), QUOTE_BYTES, path, strlen(path));
    r = s2_voice_parse(bytes, n, shown, ret_voice, reterr);
    sl__free(bytes);
    return r;
}

/* Makes the folder that `path` lies in; 1 if it was missing. */
static int create_folder_of(const char *path, sl_error *reterr)
{
    const char *slash = strrchr(path, '/');
    if (!slash || slash == path) {
        return 0;
    }
    char *folder = sl__strndup(path, (size_t)(slash - path));
    if (!folder) {
        return sl__fail_nomem(reterr, (size_t)(slash - path) + 1, "the path of a folder");
    }
    int r = sl__dir_create(folder, reterr);
    sl__free(folder);
    return r;
}

int s2_voice_save(const char *path, const s2_voice *voice, sl_error *reterr)
{
    char *bytes = NULL;
    size_t n = 0;
    sl__out_file *file = NULL;
    int r = s2_voice_encode(voice, &bytes, &n, reterr);
    if (r < 0) {
        return r;
    }
    int created = create_folder_of(path, reterr);
    r = created < 0 ? created : sl__out_file_open(path, 0600, &file, reterr);
    if (r == 0) {
        r = sl__out_file_write(file, bytes, n, reterr);
    }
    if (r == 0) {
        r = sl__out_file_commit(&file, reterr);
    }
    sl__out_file_discard(&file);
    sl__free(bytes);
    return r < 0 ? r : created;
}

static bool is_name_char(char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
}

/* For the bytes of names, where setting this bit makes no letter of another character. */
static bool is_same_letter(char a, char b)
{
    return (a | 0x20) == (b | 0x20);
}

/* CON, PRN, AUX, NUL, COM0 to COM9, LPT0 to LPT9, which Windows opens as devices with any suffix. */
static bool is_device_name(const char *name, size_t n)
{
    static const char *const plain[] = {"CON", "PRN", "AUX", "NUL"};
    static const char *const numbered[] = {"COM", "LPT"};
    bool is_numbered = n == 4 && name[3] >= '0' && name[3] <= '9';
    const char *const *devices = is_numbered ? numbered : plain;
    size_t n_devices = is_numbered ? 2 : 4;
    if (n != 3 && !is_numbered) {
        return false;
    }
    for (size_t i = 0; i < n_devices; i++) {
        if (is_same_letter(name[0], devices[i][0]) && is_same_letter(name[1], devices[i][1]) &&
                is_same_letter(name[2], devices[i][2])) {
            return true;
        }
    }
    return false;
}

bool s2_voice_name_is_valid(const char *name, size_t n_bytes)
{
    if (n_bytes == 0 || n_bytes > S2_VOICE_NAME_MAX_BYTES) {
        return false;
    }
    for (size_t i = 0; i < n_bytes; i++) {
        if (!is_name_char(name[i])) {
            return false;
        }
    }
    return !is_device_name(name, n_bytes);
}

int s2_voice_path(const char *dir, const char *name, char **ret_path, sl_error *reterr)
{
    char shown[QUOTE_BYTES];
    size_t n_dir = strlen(dir);
    size_t n_name = strlen(name);
    sl__quote(shown, sizeof shown, name, n_name);
    if (!s2_voice_name_is_valid(name, n_name)) {
        return sl__fail(reterr, SL_EINVAL,
                "voice \"%s\" is not a name: use 1 to %d of the letters A-Z and a-z, digits, _ and "
                "-, and no device name such as CON",
                shown, S2_VOICE_NAME_MAX_BYTES);
    }
    size_t n_path = n_dir + 1 + n_name + sizeof S2_VOICE_SUFFIX;
    char *path = sl__alloc(n_path, 1);
    if (!path) {
        return sl__fail_nomem(reterr, n_path, "the path of a voice");
    }
    snprintf(path, n_path, "%s/%s%s", dir, name, S2_VOICE_SUFFIX);
    if (sl__is_symlink(path)) {
        sl__quote(shown, sizeof shown, path, n_path - 1);
        sl__free(path);
        return sl__fail(reterr, SL_EACCES,
                "voice %s is a symbolic link, which could lead out of the folder; copy the file "
                "there, or give its own path",
                shown);
    }
    *ret_path = path;
    return 0;
}

void s2_voice_path_free(char *path)
{
    sl__free(path);
}

static int compare_names(const void *a, const void *b)
{
    const char *const *x = a;
    const char *const *y = b;
    return strcmp(*x, *y);
}

/* Cuts the suffix off a voice's file name; false if it is not one. */
static bool cut_to_name(char *file_name)
{
    size_t n = strlen(file_name);
    size_t n_suffix = sizeof S2_VOICE_SUFFIX - 1;
    if (n <= n_suffix || strcmp(file_name + n - n_suffix, S2_VOICE_SUFFIX) != 0 ||
            !s2_voice_name_is_valid(file_name, n - n_suffix)) {
        return false;
    }
    file_name[n - n_suffix] = '\0';
    return true;
}

int s2_voice_list(const char *dir, char ***ret_names, size_t *ret_n, sl_error *reterr)
{
    char **names = NULL;
    size_t n_files = 0;
    size_t n = 0;
    sl_error err;
    int r = sl__dir_list(dir, &names, &n_files, &err);
    if (r < 0 && r != SL_ENOENT) {
        if (reterr) {
            *reterr = err;
        }
        return r;
    }
    for (size_t i = 0; i < n_files; i++) {
        if (cut_to_name(names[i])) {
            names[n] = names[i];
            n++;
        } else {
            sl__free(names[i]);
        }
    }
    if (n > 1) {
        qsort(names, n, sizeof *names, compare_names);
    }
    *ret_names = names;
    *ret_n = n;
    return 0;
}

void s2_voice_list_free(char **names, size_t n)
{
    sl__dir_names_free(names, n);
}
