/*
 * A file takes its name only when it is whole. A stream has no second chance, so its bytes go out as they
 * come; both share one buffer, so that small writes cost no system call each.
 *
 * Signals that a failed write would raise (SIGPIPE, SIGXFSZ) are held back in the writing thread and taken
 * off again: the error is reported by the call, and the process keeps its own handlers.
 */
#define _GNU_SOURCE /* sigtimedwait and friends beyond plain C11 */

#include "os/os_out_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "os/os_clock.h"

#define BUFFER_BYTES (64u << 10)
#define MAX_LINKS    40
#define MAX_TRIES    100

struct sl__out_file {
    int fd;
    bool is_stream;
    bool is_stdout;
    char *shown;  /* for messages */
    char *target; /* the name it will get; NULL for a stream */
    char *temp;   /* the name it has; NULL for a stream */
    uint64_t n_bytes;
    int failed; /* first error of a write: a file with a hole is never committed */
    size_t n_buf;
    char buf[BUFFER_BYTES];
};

static int fail_out(const sl__out_file *file, int os_errno, const char *what, sl_error *reterr)
{
    return sl__fail_os(reterr, os_errno, "%s: %s", file->shown, what);
}

/* Holds SIGPIPE and SIGXFSZ back; *ret_old is for let_signals. */
static void hold_signals(sigset_t *ret_old)
{
    sigset_t held;
    sigemptyset(&held);
    sigaddset(&held, SIGPIPE);
    sigaddset(&held, SIGXFSZ);
    pthread_sigmask(SIG_BLOCK, &held, ret_old);
}

/* Takes the signal of a failed write off the thread, unless it was blocked before: then it is not ours. */
static void let_signals(const sigset_t *old, int os_errno)
{
    int number = os_errno == EPIPE ? SIGPIPE : SIGXFSZ;
    if ((os_errno == EPIPE || os_errno == EFBIG) && sigismember(old, number) == 0) {
        struct timespec now = {0};
        sigset_t raised;
        sigemptyset(&raised);
        sigaddset(&raised, number);
        while (sigtimedwait(&raised, NULL, &now) < 0 && errno == EINTR) {
        }
    }
    pthread_sigmask(SIG_SETMASK, old, NULL);
}

/* Writes everything; offset < 0 appends. 0 or -errno. */
static int write_all(int fd, const char *data, size_t n, int64_t offset)
{
    sigset_t old;
    int os_errno = 0;
    hold_signals(&old);
    while (n > 0 && os_errno == 0) {
        size_t part = n < (1u << 30) ? n : 1u << 30;
        ssize_t done = offset < 0 ? write(fd, data, part) : pwrite(fd, data, part, (off_t)offset);
        if (done >= 0) {
            data += done;
            n -= (size_t)done;
            offset += offset < 0 ? 0 : done;
        } else if (errno == EAGAIN) {
            struct pollfd p = {.fd = fd, .events = POLLOUT};
            os_errno = poll(&p, 1, -1) < 0 ? errno : 0;
        } else {
            os_errno = errno;
        }
    }
    let_signals(&old, os_errno);
    return -os_errno;
}

/* Follows links to the last path, which need not exist; sl__free it. */
static int follow_links(const char *path, char **ret, sl_error *reterr)
{
    char link[PATH_MAX];
    char *at = sl__strndup(path, strlen(path));
    for (int i = 0; at && i < MAX_LINKS; i++) {
        ssize_t n = readlink(at, link, sizeof link - 1);
        if (n < 0) {
            *ret = at;
            return 0;
        }
        const char *slash = strrchr(at, '/');
        size_t n_folder = link[0] == '/' || !slash ? 0 : (size_t)(slash - at) + 1;
        char *next = sl__alloc(n_folder + (size_t)n + 1, 1);
        if (next) {
            memcpy(next, at, n_folder);
            memcpy(next + n_folder, link, (size_t)n);
        }
        sl__free(at);
        at = next;
    }
    if (!at) {
        return sl__fail_nomem(reterr, strlen(path), "a path");
    }
    sl__free(at);
    char shown[256];
    return sl__fail_os(reterr, ELOOP, "%s", sl__quote(shown, sizeof shown, path, strlen(path)));
}

/* A new file beside the target under a name that nobody has. */
static int open_temp(sl__out_file *file, unsigned mode, sl_error *reterr)
{
    const char *slash = strrchr(file->target, '/');
    size_t n_folder = slash ? (size_t)(slash - file->target) + 1 : 0;
    size_t cap = n_folder + 64;
    file->temp = sl__alloc(cap, 1);
    if (!file->temp) {
        return sl__fail_nomem(reterr, cap, "a path");
    }
    memcpy(file->temp, file->target, n_folder);
    for (int i = 0; i < MAX_TRIES; i++) {
        snprintf(file->temp + n_folder, cap - n_folder, ".sluice-%ld-%" PRIx64 "-%d.part",
                (long)getpid(), sl__now_ns(), i);
        file->fd = open(file->temp, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, (mode_t)mode);
        if (file->fd >= 0) {
            return 0;
        }
        if (errno != EEXIST) {
            break;
        }
    }
    int os_errno = errno;
    sl__free(file->temp);
    file->temp = NULL;
    return fail_out(file, os_errno, "cannot create a file in its folder", reterr);
}

static int open_stream(sl__out_file *file, const char *path, sl_error *reterr)
{
    file->is_stream = true;
    file->fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
    return file->fd < 0 ? fail_out(file, errno, "cannot open for writing", reterr) : 0;
}

/* Replaces a regular file, or makes one where nothing is. `st` is NULL if nothing is. */
static int open_regular(sl__out_file *file, const char *path, const struct stat *st, unsigned mode,
        sl_error *reterr)
{
    struct stat found;
    int r = follow_links(path, &file->target, reterr);
    if (r < 0) {
        return r;
    }
    size_t n = strlen(file->target);
    if (n > 0 && file->target[n - 1] == '/') {
        return sl__fail(reterr, SL_EINVAL, "%s: this names a folder, need a file", file->shown);
    }
    if (st && (stat(file->target, &found) != 0 || found.st_dev != st->st_dev ||
                      found.st_ino != st->st_ino)) {
        /* A link of /proc/self/fd whose file has no name any more: it can only be written as it is. */
        sl__free(file->target);
        file->target = NULL;
        return open_stream(file, path, reterr);
    }
    if (st && access(file->target, W_OK) != 0) {
        return fail_out(file, errno, "cannot replace it", reterr);
    }
    r = open_temp(file, mode, reterr);
    if (r >= 0 && st && fchmod(file->fd, st->st_mode & 0777) != 0) {
        return fail_out(file, errno, "cannot set its permissions", reterr);
    }
    return r;
}

static int open_path(sl__out_file *file, const char *path, unsigned mode, sl_error *reterr)
{
    struct stat st;
    if (strcmp(path, "-") == 0) {
        file->is_stream = true;
        file->is_stdout = true;
        file->fd = STDOUT_FILENO;
        return 0;
    }
    if (stat(path, &st) != 0) {
        if (errno != ENOENT || path[0] == '\0') {
            return fail_out(file, errno, "cannot open for writing", reterr);
        }
        return open_regular(file, path, NULL, mode, reterr);
    }
    if (S_ISDIR(st.st_mode)) {
        return sl__fail(reterr, SL_EINVAL, "%s: this is a directory, need a file", file->shown);
    }
    if (S_ISREG(st.st_mode)) {
        return open_regular(file, path, &st, mode, reterr);
    }
    return open_stream(file, path, reterr);
}

int sl__out_file_open(const char *path, unsigned mode, sl__out_file **ret_file, sl_error *reterr)
{
    char shown[256];
    sl__out_file *file = sl__alloc(1, sizeof *file);
    if (!file) {
        return sl__fail_nomem(reterr, sizeof *file, "an output file");
    }
    int r;
    file->fd = -1;
    sl__quote(shown, sizeof shown, path, strlen(path));
    file->shown = strcmp(path, "-") == 0 ? sl__strndup("standard output", 15)
                                         : sl__strndup(shown, strlen(shown));
    r = file->shown ? open_path(file, path, mode, reterr)
                    : sl__fail_nomem(reterr, sizeof shown, "a path");
    if (r < 0) {
        sl__out_file_discard(&file);
        return r;
    }
    *ret_file = file;
    return 0;
}

static int write_or_fail(
        sl__out_file *file, const void *data, size_t n, int64_t offset, sl_error *reterr)
{
    int os_error = write_all(file->fd, data, n, offset);
    if (os_error < 0) {
        file->failed = fail_out(file, -os_error, "cannot write", reterr);
        return file->failed;
    }
    return 0;
}

static int check_alive(const sl__out_file *file, sl_error *reterr)
{
    return file->failed < 0
                   ? sl__fail(reterr, file->failed, "%s: an earlier write failed", file->shown)
                   : 0;
}

int sl__out_file_flush(sl__out_file *file, sl_error *reterr)
{
    int r = check_alive(file, reterr);
    if (r >= 0 && file->n_buf > 0) {
        r = write_or_fail(file, file->buf, file->n_buf, -1, reterr);
        file->n_buf = 0;
    }
    return r;
}

int sl__out_file_write(sl__out_file *file, const void *data, size_t n_bytes, sl_error *reterr)
{
    int r = check_alive(file, reterr);
    if (r >= 0 && n_bytes > BUFFER_BYTES - file->n_buf) {
        r = sl__out_file_flush(file, reterr);
    }
    if (r >= 0 && n_bytes >= BUFFER_BYTES) {
        r = write_or_fail(file, data, n_bytes, -1, reterr);
    } else if (r >= 0 && n_bytes > 0) {
        memcpy(file->buf + file->n_buf, data, n_bytes);
        file->n_buf += n_bytes;
    }
    if (r >= 0) {
        file->n_bytes += n_bytes;
    }
    return r;
}

int sl__out_file_patch(
        sl__out_file *file, uint64_t offset, const void *data, size_t n_bytes, sl_error *reterr)
{
    if (file->is_stream) {
        return sl__fail(
                reterr, SL_EINVAL, "%s: a stream cannot be changed afterwards", file->shown);
    }
    if (offset > file->n_bytes || n_bytes > file->n_bytes - offset) {
        return sl__fail(reterr, SL_EINVAL, "%s: %zu bytes at %" PRIu64 " were never written",
                file->shown, n_bytes, offset);
    }
    int r = sl__out_file_flush(file, reterr);
    return r < 0 ? r : write_or_fail(file, data, n_bytes, (int64_t)offset, reterr);
}

bool sl__out_file_is_stream(const sl__out_file *file)
{
    return file->is_stream;
}

/* Makes the new name itself durable. A system that cannot sync a folder still has the file. */
static void sync_folder(const char *target)
{
    const char *slash = strrchr(target, '/');
    size_t n = slash ? (size_t)(slash - target) + 1 : 1;
    char *folder = sl__strndup(slash ? target : ".", n);
    int fd = folder ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (fd >= 0) {
        (void)fsync(fd);
        close(fd);
    }
    sl__free(folder);
}

static int close_fd(sl__out_file *file, sl_error *reterr)
{
    int fd = file->fd;
    file->fd = -1;
    if (file->is_stdout || close(fd) == 0 || errno == EINTR) {
        return 0;
    }
    return fail_out(file, errno, "cannot finish", reterr);
}

static int commit(sl__out_file *file, sl_error *reterr)
{
    int r = sl__out_file_flush(file, reterr);
    /* EINVAL: this file system has nothing to sync. */
    if (r >= 0 && !file->is_stream && fsync(file->fd) != 0 && errno != EINVAL) {
        r = fail_out(file, errno, "cannot make it durable", reterr);
    }
    if (r >= 0) {
        r = close_fd(file, reterr);
    }
    if (r >= 0 && file->temp && rename(file->temp, file->target) != 0) {
        r = fail_out(file, errno, "cannot put it in place", reterr);
    }
    if (r >= 0 && file->temp) {
        sl__free(file->temp);
        file->temp = NULL;
        sync_folder(file->target);
    }
    return r;
}

int sl__out_file_commit(sl__out_file **file, sl_error *reterr)
{
    int r = commit(*file, reterr);
    sl__out_file_discard(file);
    return r;
}

void sl__out_file_discard(sl__out_file **file)
{
    if (!file || !*file) {
        return;
    }
    sl__out_file *f = *file;
    if (f->fd >= 0 && !f->is_stdout) {
        close(f->fd);
    }
    if (f->temp) {
        unlink(f->temp);
    }
    sl__free(f->temp);
    sl__free(f->target);
    sl__free(f->shown);
    sl__free(f);
    *file = NULL;
}
