#define _GNU_SOURCE /* MAP_ANONYMOUS */
#include "os/os_head.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static int fill(int fd, const char *shown, sl__os_head *head, uint64_t n, sl_error *reterr)
{
    while (head->n_read < n) {
        size_t left = (size_t)(n - head->n_read);
        ssize_t got = pread(fd, head->data + head->n_read, left, (off_t)head->n_read);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return sl__fail_os(reterr, errno, "%s: cannot read at %" PRIu64, shown, head->n_read);
        }
        if (got == 0) {
            return sl__fail_at(reterr, SL_ECHANGED, head->n_read,
                    "%s: the file ends at %" PRIu64 " although it had %" PRIu64
                    " bytes; it was cut meanwhile",
                    shown, head->n_read, head->n_bytes);
        }
        head->n_read += (uint64_t)got;
    }
    return 0;
}

int sl__os_head_read(int fd, const char *name, uint64_t n_bytes, uint64_t n_head,
        sl__os_head *ret_head, sl_error *reterr)
{
    char shown[256];
    sl__os_head head = {.n_bytes = n_bytes};
    sl__quote(shown, sizeof shown, name, strlen(name));
    if (n_bytes == 0 || n_bytes > SIZE_MAX / 2) {
        return sl__fail(reterr, n_bytes == 0 ? SL_EFORMAT : SL_ELIMIT, "%s: the file is %s", shown,
                n_bytes == 0 ? "empty" : "too large for this machine's addresses");
    }
    /* Only what is written counts against the limit of committed memory: the rest may not be written to. */
    void *data = mmap(NULL, (size_t)n_bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED) {
        return sl__fail_os(
                reterr, errno, "%s: no %" PRIu64 " bytes of address space", shown, n_bytes);
    }
    head.data = data;
    uint64_t n = n_head < n_bytes ? n_head : n_bytes;
    int r = 0;
    if (mprotect(data, (size_t)n, PROT_READ | PROT_WRITE) != 0) {
        r = sl__fail_os(reterr, errno, "%s: no memory for %" PRIu64 " bytes", shown, n);
    }
    if (r == 0) {
        r = fill(fd, shown, &head, n, reterr);
    }
    if (r < 0) {
        sl__os_head_done(&head);
        return r;
    }
    *ret_head = head;
    return 0;
}

void sl__os_head_done(sl__os_head *head)
{
    if (head->data) {
        munmap(head->data, (size_t)head->n_bytes);
        memset(head, 0, sizeof *head);
    }
}
