#include "os/os_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"

#define QUOTE_BYTES 256

/* ENOTDIR alone would read as "not found". */
static int fail_folder(sl_error *reterr, int os_errno, const char *path, const char *what)
{
    char shown[QUOTE_BYTES];
    sl__quote(shown, sizeof shown, path, strlen(path));
    if (os_errno == ENOTDIR) {
        return sl__fail(
                reterr, SL_EINVAL, "folder %s: it, or something above it, is a file", shown);
    }
    return sl__fail_os(reterr, os_errno, "folder %s: cannot %s it", shown, what);
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

static int read_names(DIR *dir, const char *path, name_vec *vec, sl_error *reterr)
{
    for (;;) {
        errno = 0;
        /* Nobody else has this stream. NOLINTNEXTLINE(concurrency-mt-unsafe) */
        const struct dirent *entry = readdir(dir);
        if (!entry) {
            return errno == 0 ? 0 : fail_folder(reterr, errno, path, "read");
        }
        if (is_regular(dir, entry->d_name) && !push_name(vec, entry->d_name)) {
            return sl__fail_nomem(reterr, (vec->n + 1) * sizeof(char *), "names of files");
        }
    }
}

int sl__dir_list(const char *path, char ***ret_names, size_t *ret_n, sl_error *reterr)
{
    name_vec vec = {0};
    DIR *dir = opendir(path);
    if (!dir) {
        return fail_folder(reterr, errno, path, "open");
    }
    int r = read_names(dir, path, &vec, reterr);
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
        return fail_folder(reterr, make_errno, path, "create");
    }
    return r;
}
