/*
 * A file takes its name only when it is whole. Until then it has none at all where the file system can do that, so that
 * nothing is left of a process that is killed; elsewhere it has one that nobody else has. A stream has no second
 * chance, so its bytes go out as they come; both share one buffer, so that small writes cost no system call each.
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
#define NAME_BYTES   64

struct sl__out_file {
    int fd;
    bool is_stream;
    bool is_stdout;
    char *shown;     /* for messages */
    char *target;    /* the name it will get; NULL for a stream */
    char *temp;      /* the name it has until then, if is_named; NULL for a stream */
    size_t n_folder; /* bytes of `temp` up to the slash behind its folder, which is the target's */
    bool is_named;
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

static int sync_file(sl__out_file *file, sl_error *reterr)
{
    /* EINVAL: this file system has nothing to sync. */
    return fsync(file->fd) == 0 || errno == EINVAL
                   ? 0
                   : fail_out(file, errno, "cannot make it durable", reterr);
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

/* Room for a name beside the target; until it is taken, `temp` is the folder. */
static int prepare_name(sl__out_file *file, sl_error *reterr)
{
    const char *slash = strrchr(file->target, '/');
    file->n_folder = slash ? (size_t)(slash - file->target) + 1 : 0;
    file->temp = sl__alloc(file->n_folder + NAME_BYTES, 1);
    if (!file->temp) {
        return sl__fail_nomem(reterr, file->n_folder + NAME_BYTES, "a path");
    }
    memcpy(file->temp, file->target, file->n_folder);
    file->temp[file->n_folder] = '.';
    return 0;
}

/*
 * Takes a name beside the target by `make`, which fails with EEXIST while somebody has it. Returns what `make` did, or
 * -errno.
 */
static int take_name(sl__out_file *file, int (*make)(const sl__out_file *, unsigned), unsigned mode)
{
    int made = -1;
    for (int i = 0; i < MAX_TRIES && made < 0; i++) {
        snprintf(file->temp + file->n_folder, NAME_BYTES, ".sluice-%ld-%" PRIx64 "-%d.part",
                (long)getpid(), sl__now_ns(), i);
        made = make(file, mode);
        if (made < 0 && errno != EEXIST) {
            break;
        }
    }
    file->is_named = made >= 0;
    return made >= 0 ? made : -errno;
}

static int make_named(const sl__out_file *file, unsigned mode)
{
    return open(file->temp, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, (mode_t)mode);
}

/* A new file beside the target under a name that nobody has. */
static int open_named(sl__out_file *file, unsigned mode, sl_error *reterr)
{
    int fd = take_name(file, make_named, mode);
    if (fd < 0) {
        return fail_out(file, -fd, "cannot create a file in its folder", reterr);
    }
    file->fd = fd;
    return 0;
}

#ifdef O_TMPFILE
/* The path by which a file without a name is reached: the one way that needs no privilege. */
static const char *path_of_fd(int fd, char path[40])
{
    snprintf(path, 40, "/proc/self/fd/%d", fd);
    return path;
}

/* A new file in the target's folder without a name; false if this system cannot have it, or not give it one later. */
static bool open_nameless(sl__out_file *file, unsigned mode)
{
    char path[40];
    struct stat st;
    int fd = open(file->temp, O_TMPFILE | O_RDWR | O_CLOEXEC, (mode_t)mode);
    if (fd >= 0 && stat(path_of_fd(fd, path), &st) != 0) {
        close(fd);
        fd = -1;
    }
    file->fd = fd;
    return fd >= 0;
}

static int make_link(const sl__out_file *file, unsigned mode)
{
    char path[40];
    (void)mode;
    return linkat(AT_FDCWD, path_of_fd(file->fd, path), AT_FDCWD, file->temp, AT_SYMLINK_FOLLOW);
}

/* The bytes once more, under a name, where a rule of the system forbids links. The buffer must be empty. */
static int copy_to_named(sl__out_file *file, sl_error *reterr)
{
    struct stat st;
    uint64_t at = 0;
    int from = file->fd;
    int r = fstat(from, &st) == 0 ? open_named(file, 0600, reterr)
                                  : fail_out(file, errno, "cannot put it in place", reterr);
    if (r >= 0 && fchmod(file->fd, st.st_mode & 0777) != 0) {
        r = fail_out(file, errno, "cannot set its permissions", reterr);
    }
    while (r >= 0 && at < file->n_bytes) {
        ssize_t n = pread(from, file->buf, sizeof file->buf, (off_t)at);
        r = n > 0 ? write_or_fail(file, file->buf, (size_t)n, -1, reterr)
                  : fail_out(file, n < 0 ? errno : EIO, "cannot read it again", reterr);
        at += n > 0 ? (uint64_t)n : 0;
    }
    if (file->fd != from) {
        close(from);
    }
    return r < 0 ? r : sync_file(file, reterr);
}

/* Gives a file that has no name one beside the target. */
static int give_name(sl__out_file *file, sl_error *reterr)
{
    int os_error = take_name(file, make_link, 0);
    if (os_error == -ENOSPC || os_error == -EDQUOT || os_error == -EROFS) {
        return fail_out(file, -os_error, "cannot put it in place", reterr);
    }
    return os_error < 0 ? copy_to_named(file, reterr) : 0;
}
#else
static bool open_nameless(sl__out_file *file, unsigned mode)
{
    (void)file;
    (void)mode;
    return false;
}

static int give_name(sl__out_file *file, sl_error *reterr)
{
    return fail_out(file, ENOTSUP, "cannot put it in place", reterr);
}
#endif

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
    r = prepare_name(file, reterr);
    if (r >= 0 && !open_nameless(file, mode)) {
        r = open_named(file, mode, reterr);
    }
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

/* What is durable gets its name: to itself first, then in place of what is there. */
static int put_in_place(sl__out_file *file, sl_error *reterr)
{
    int r = file->is_named ? 0 : give_name(file, reterr);
    if (r >= 0) {
        r = close_fd(file, reterr);
    }
    if (r >= 0 && rename(file->temp, file->target) != 0) {
        r = fail_out(file, errno, "cannot put it in place", reterr);
    }
    if (r >= 0) {
        file->is_named = false;
        sync_folder(file->target);
    }
    return r;
}

static int commit(sl__out_file *file, sl_error *reterr)
{
    int r = sl__out_file_flush(file, reterr);
    if (r >= 0 && file->target) {
        r = sync_file(file, reterr);
    }
    if (r >= 0) {
        r = file->target ? put_in_place(file, reterr) : close_fd(file, reterr);
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
    if (f->is_named) {
        unlink(f->temp);
    }
    sl__free(f->temp);
    sl__free(f->target);
    sl__free(f->shown);
    sl__free(f);
    *file = NULL;
}
