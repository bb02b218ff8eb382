#include "os/os_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"

#define QUOTE_BYTES 256

sl__path_kind sl__path_kind_of(const char *path)
{
    struct stat st;
    if (lstat(path, &st) != 0) {
        return SL_PATH_NONE;
    }
    if (S_ISREG(st.st_mode)) {
        return SL_PATH_FILE;
    }
    if (S_ISDIR(st.st_mode)) {
        return SL_PATH_DIR;
    }
    return S_ISLNK(st.st_mode) ? SL_PATH_SYMLINK : SL_PATH_OTHER;
}

void sl__dir_names_free(char **names, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        sl__free(names[i]);
    }
    sl__free(names);
}

static bool is_regular(DIR *dir, const char *name)
{
    struct stat st;
    return fstatat(dirfd(dir), name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode);
}

typedef struct name_vec {
    char **names;
    size_t n;
    size_t cap;
} name_vec;

static bool push_name(name_vec *vec, const char *name)
{
    void *p = vec->names;
    if (!sl__grow(&p, &vec->cap, vec->n + 1, sizeof *vec->names)) {
        return false;
    }
    vec->names = p;
    vec->names[vec->n] = sl__strndup(name, strlen(name));
    if (!vec->names[vec->n]) {
        return false;
    }
    vec->n++;
    return true;
}

static int read_names(DIR *dir, const char *shown, name_vec *vec, sl_error *reterr)
{
    for (;;) {
        errno = 0;
        const struct dirent *entry = readdir(dir); /* safe: nobody else has this stream */
        if (!entry) {
            return errno == 0 ? 0 : sl__fail_os(reterr, errno, "folder %s: cannot read it", shown);
        }
        if (is_regular(dir, entry->d_name) && !push_name(vec, entry->d_name)) {
            return sl__fail_nomem(reterr, (vec->n + 1) * sizeof(char *), "names of files");
        }
    }
}

int sl__dir_list(const char *path, char ***ret_names, size_t *ret_n, sl_error *reterr)
{
    char shown[QUOTE_BYTES];
    name_vec vec = {0};
    sl__quote(shown, sizeof shown, path, strlen(path));
    DIR *dir = opendir(path);
    if (!dir) {
        return sl__fail_os(reterr, errno, "folder %s: cannot open it", shown);
    }
    int r = read_names(dir, shown, &vec, reterr);
    closedir(dir);
    if (r < 0) {
        sl__dir_names_free(vec.names, vec.n);
        return r;
    }
    *ret_names = vec.names;
    *ret_n = vec.n;
    return 0;
}

/* 1 = made, 0 = was there, else -1 with errno. */
static int make_one(const char *path)
{
    struct stat st;
    if (mkdir(path, 0700) == 0) {
        return 1;
    }
    if (errno != EEXIST || stat(path, &st) != 0) {
        return -1;
    }
    if (!S_ISDIR(st.st_mode)) {
        errno = ENOTDIR;
        return -1;
    }
    return 0;
}

int sl__dir_create(const char *path, sl_error *reterr)
{
    char shown[QUOTE_BYTES];
    size_t n = strlen(path);
    int r = 0;
    char *partial = sl__strndup(path, n);
    if (!partial) {
        return sl__fail_nomem(reterr, n + 1, "the path of a folder");
    }
    for (size_t i = 1; i <= n && r >= 0; i++) {
        bool is_component_end = (path[i] == '/' || path[i] == '\0') && path[i - 1] != '/';
        if (is_component_end) {
            partial[i] = '\0';
            r = make_one(partial);
            partial[i] = path[i];
        }
    }
    int make_errno = errno;
    sl__free(partial);
    if (r < 0) {
        sl__quote(shown, sizeof shown, path, n);
        return sl__fail_os(reterr, make_errno, "folder %s: cannot create it", shown);
    }
    return r;
}
