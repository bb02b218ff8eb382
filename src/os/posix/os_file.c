/*
 * Files are read to their end, not to the size that they claim: those of /proc claim none, and a pipe has
 * none.
 */
#include "os/os_file.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "os/os_path.h"

#define FIRST_BYTES 4096

typedef struct source {
    const char *what;
    const char *path;
    int fd;
    uint64_t max_bytes;
    sl_error *reterr;
} source;

static int fail_limit(const source *s, uint64_t n_bytes, const char *more)
{
    char shown[256];
    return sl__fail(s->reterr, SL_ELIMIT,
            "%s %s: %" PRIu64 " bytes%s, at most %" PRIu64 " are read", s->what,
            sl__quote(shown, sizeof shown, s->path, strlen(s->path)), n_bytes, more, s->max_bytes);
}

static int fail_read(const source *s, int os_errno)
{
    char shown[256];
    return sl__fail_os(s->reterr, os_errno, "%s %s: cannot read", s->what,
            sl__quote(shown, sizeof shown, s->path, strlen(s->path)));
}

/* One read that waits if the descriptor does not; bytes, 0 at the end, or -errno. */
static ssize_t read_some(int fd, char *buf, size_t n)
{
    for (;;) {
        ssize_t got = read(fd, buf, n);
        if (got >= 0) {
            return got;
        }
        if (errno != EAGAIN) {
            return -errno;
        }
        struct pollfd p = {.fd = fd, .events = POLLIN};
        if (poll(&p, 1, -1) < 0) {
            return -errno;
        }
    }
}

/* Reads to the end of the file; *buf is the caller's to free in any case. */
static int read_all(const source *s, size_t first_bytes, char **buf, size_t *ret_n)
{
    size_t cap = 0;
    size_t n = 0;
    size_t want = first_bytes;
    for (;;) {
        if (!sl__grow((void **)buf, &cap, want, 1)) {
            return sl__fail_nomem(s->reterr, want, s->what);
        }
        /* The last byte is kept for the NUL. */
        ssize_t got = read_some(s->fd, *buf + n, cap - 1 - n);
        if (got < 0) {
            return fail_read(s, (int)-got);
        }
        n += (size_t)got;
        if (n > s->max_bytes) {
            return fail_limit(s, n, " or more");
        }
        if (got == 0) {
            break;
        }
        want = n + 1 < cap ? cap : cap + 1;
    }
    (*buf)[n] = '\0';
    *ret_n = n;
    return 0;
}

static int read_source(const source *s, char **ret_data, size_t *ret_bytes)
{
    struct stat st;
    char *buf = NULL;
    size_t n = 0;
    size_t first_bytes = FIRST_BYTES;
    if (fstat(s->fd, &st) != 0) {
        return fail_read(s, errno);
    }
    if (S_ISREG(st.st_mode) && st.st_size > 0) {
        if ((uint64_t)st.st_size > s->max_bytes) {
            return fail_limit(s, (uint64_t)st.st_size, "");
        }
        first_bytes = (size_t)st.st_size + 2; /* one to see the end, one for the NUL */
    }
    int r = read_all(s, first_bytes, &buf, &n);
    if (r < 0) {
        sl__free(buf);
        return r;
    }
    *ret_data = buf;
    *ret_bytes = n;
    return 0;
}

int sl__read_file(const char *path, const char *what, uint64_t max_bytes, char **ret_data,
        size_t *ret_bytes, sl_error *reterr)
{
    source s = {.what = what, .path = path, .fd = STDIN_FILENO, .max_bytes = max_bytes};
    sl_error inner = {0};
    s.reterr = reterr;
    if (strcmp(path, "-") == 0) {
        s.path = "standard input";
        return read_source(&s, ret_data, ret_bytes);
    }
    int r = sl__open_regular(path, &s.fd, &inner);
    if (r < 0) {
        sl__fail(reterr, r, "%s %s", what, inner.msg);
        if (reterr) {
            reterr->os_errno = inner.os_errno;
        }
        return r;
    }
    r = read_source(&s, ret_data, ret_bytes);
    close(s.fd);
    return r;
}
