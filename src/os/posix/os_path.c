#define _XOPEN_SOURCE 700 /* realpath, S_ISSOCK */

#include "os/os_path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"

static int check_kind(const char *path, mode_t mode, sl_error *reterr)
{
    char shown[256];
    const char *kind = "a special file";
    if (S_ISREG(mode)) {
        return 0;
    }
    if (S_ISDIR(mode)) {
        kind = "a directory";
    } else if (S_ISFIFO(mode)) {
        kind = "a FIFO";
    } else if (S_ISSOCK(mode)) {
        kind = "a socket";
    } else if (S_ISCHR(mode) || S_ISBLK(mode)) {
        kind = "a device";
    }
    return sl__fail(reterr, SL_EINVAL, "%s: this is %s, need a regular file",
            sl__quote(shown, sizeof shown, path, strlen(path)), kind);
}

static int fail_path(const char *path, int os_errno, sl_error *reterr)
{
    char shown[256];
    return sl__fail_os(reterr, os_errno, "%s", sl__quote(shown, sizeof shown, path, strlen(path)));
}

int sl__open_regular(const char *path, int *ret_fd, sl_error *reterr)
{
    struct stat st;
    if (stat(path, &st) != 0) {
        return fail_path(path, errno, reterr);
    }
    int r = check_kind(path, st.st_mode, reterr);
    if (r < 0) {
        return r;
    }
    /* The path may have come to name a FIFO since: do not wait for its writer. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0) {
        return fail_path(path, errno, reterr);
    }
    r = fstat(fd, &st) == 0 ? check_kind(path, st.st_mode, reterr) : fail_path(path, errno, reterr);
    if (r < 0) {
        close(fd);
        return r;
    }
    *ret_fd = fd;
    return 0;
}

bool sl__is_symlink(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0 && S_ISLNK(st.st_mode);
}

int sl__real_path(const char *path, char **ret_path, sl_error *reterr)
{
    char *resolved = realpath(path, NULL);
    if (!resolved) {
        return fail_path(path, errno, reterr);
    }
    char *copy = sl__strndup(resolved, strlen(resolved));
    free(resolved);
    if (!copy) {
        return sl__fail_nomem(reterr, strlen(path), "a path");
    }
    *ret_path = copy;
    return 0;
}
