#define _GNU_SOURCE

#include "os/os_process.h"

#include <errno.h>
#include <sched.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/mem.h"
#include "os/os_cpu_quota.h"
#include "os/os_file.h"

#define STATUS_MAX_BYTES (64u << 10)
#define MAX_CPUS         65536u

/* The figure of a line "NAME:   123 kB" in bytes, 0 if there is no such line. */
static uint64_t find_kib(const char *status, const char *name)
{
    size_t n_name = strlen(name);
    for (const char *line = status; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        if (strncmp(line, name, n_name) == 0 && line[n_name] == ':') {
            uint64_t kib = 0;
            const char *at = line + n_name + 1;
            for (at += strspn(at, " \t"); *at >= '0' && *at <= '9'; at++) {
                kib = kib * 10 + (uint64_t)(*at - '0');
            }
            return kib << 10;
        }
    }
    return 0;
}

sl__rss sl__process_rss(void)
{
    sl__rss rss = {0};
    char *status = NULL;
    size_t n = 0;
    if (sl__read_file("/proc/self/status", "status", STATUS_MAX_BYTES, &status, &n, NULL) >= 0) {
        rss.anon_bytes = find_kib(status, "RssAnon");
        rss.file_bytes = find_kib(status, "RssFile");
        rss.peak_bytes = find_kib(status, "VmHWM");
        sl__free(status);
    }
    return rss;
}

/* Processors in the affinity mask, 0 if it cannot be read. */
static unsigned n_affine_cpus(void)
{
    /* The call fails with EINVAL while the set is smaller than the kernel's own. */
    for (size_t n = 1024; n <= MAX_CPUS; n *= 2) {
        size_t n_bytes = CPU_ALLOC_SIZE(n);
        cpu_set_t *set = sl__alloc(n_bytes, 1);
        if (!set) {
            return 0;
        }
        int r = sched_getaffinity(0, n_bytes, set);
        int count = r == 0 ? CPU_COUNT_S(n_bytes, set) : 0;
        bool is_too_small = r != 0 && errno == EINVAL;
        sl__free(set);
        if (!is_too_small) {
            return (unsigned)count;
        }
    }
    return 0;
}

unsigned sl__n_cpus(void)
{
    unsigned n = n_affine_cpus();
    unsigned quota = sl__cpu_quota("");
    if (n == 0) {
        long online = sysconf(_SC_NPROCESSORS_ONLN);
        n = online > 0 ? (unsigned)online : 1;
    }
    return quota > 0 && quota < n ? quota : n;
}

size_t sl__page_bytes(void)
{
    long n = sysconf(_SC_PAGESIZE);
    return n > 0 ? (size_t)n : 4096;
}

void sl__advise_large_pages(void *data, size_t n_bytes)
{
    uintptr_t page = sl__page_bytes();
    uintptr_t begin = ((uintptr_t)data + page - 1) & ~(page - 1);
    uintptr_t end = ((uintptr_t)data + n_bytes) & ~(page - 1);
    if (begin < end) {
        madvise((unsigned char *)data + (begin - (uintptr_t)data), end - begin, MADV_HUGEPAGE);
    }
}
