/*
 * Version 2: cpu.max ("QUOTA PERIOD" or "max PERIOD") in the group and each of its ancestors. Version 1:
 * cpu.cfs_quota_us (-1 = none) and cpu.cfs_period_us. A path that is not below the mount (another namespace)
 * leaves the mount's own files, which are then this container's.
 */
#define _GNU_SOURCE

#include "os/os_cpu_quota.h"

#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "os/os_file.h"

#define MAX_BYTES (64u << 10)

static char *read_text(const char *path)
{
    char *text = NULL;
    size_t n = 0;
    return sl__read_file(path, "cgroup file", MAX_BYTES, &text, &n, NULL) < 0 ? NULL : text;
}

/* A decimal number at *s, which moves behind it; false if there is none or it is absurdly long. */
static bool scan_u64(const char **s, uint64_t *ret)
{
    const char *p = *s + strspn(*s, " \t");
    size_t n_digits = strspn(p, "0123456789");
    uint64_t v = 0;
    if (n_digits == 0 || n_digits > 18) {
        return false;
    }
    for (size_t i = 0; i < n_digits; i++) {
        v = v * 10 + (uint64_t)(p[i] - '0');
    }
    *s = p + n_digits;
    *ret = v;
    return true;
}

static unsigned whole_cpus(uint64_t quota, uint64_t period)
{
    if (quota == 0 || period == 0) {
        return 0;
    }
    uint64_t n = (quota - 1) / period + 1;
    return n < INT_MAX ? (unsigned)n : 0;
}

static unsigned tighter(unsigned a, unsigned b)
{
    return a == 0 || (b != 0 && b < a) ? b : a;
}

/* Reads n numbers from the start of FOLDER/NAME; false if they are not all there. */
static bool read_numbers(const char *folder, const char *name, uint64_t *ret, size_t n)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    char *text = read_text(path);
    const char *at = text ? text : "";
    size_t n_read = 0;
    while (n_read < n && scan_u64(&at, &ret[n_read])) {
        n_read++;
    }
    sl__free(text);
    return n_read == n;
}

static unsigned quota_v2(const char *folder)
{
    uint64_t v[2]; /* quota and period */
    return read_numbers(folder, "cpu.max", v, 2) ? whole_cpus(v[0], v[1]) : 0;
}

static unsigned quota_v1(const char *folder)
{
    uint64_t quota = 0;
    uint64_t period = 0;
    bool is_bound = read_numbers(folder, "cpu.cfs_quota_us", &quota, 1) &&
                    read_numbers(folder, "cpu.cfs_period_us", &period, 1);
    return is_bound ? whole_cpus(quota, period) : 0;
}

/* The tightest bound of a group and its ancestors up to the mount. */
static unsigned walk_up(
        const char *mount, const char *group, size_t n_group, unsigned (*read_quota)(const char *))
{
    char folder[PATH_MAX];
    size_t n_mount = strlen(mount);
    if (n_mount + n_group >= sizeof folder) {
        return read_quota(mount);
    }
    memcpy(folder, mount, n_mount);
    memcpy(folder + n_mount, group, n_group);
    size_t n = n_mount + n_group;
    unsigned best = 0;
    while (n > n_mount) {
        folder[n] = '\0';
        best = tighter(best, read_quota(folder));
        n--;
        while (n > n_mount && folder[n] != '/') {
            n--;
        }
    }
    folder[n_mount] = '\0';
    return tighter(best, read_quota(folder));
}

/* True if the comma-separated list holds "cpu". */
static bool has_cpu(const char *list, size_t n)
{
    size_t i = 0;
    while (i < n) {
        size_t n_word = 0;
        while (i + n_word < n && list[i + n_word] != ',') {
            n_word++;
        }
        if (n_word == 3 && memcmp(list + i, "cpu", 3) == 0) {
            return true;
        }
        i += n_word + 1;
    }
    return false;
}

/* One line of proc/self/cgroup: "ID:CONTROLLERS:/GROUP"; the group may hold colons. */
static unsigned quota_of_line(const char *root, const char *line, size_t n)
{
    static const char *const v2_mounts[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"};
    static const char *const v1_mounts[] = {
            "/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct", "/sys/fs/cgroup/cpuacct,cpu"};
    char mount[PATH_MAX];
    const char *list = memchr(line, ':', n);
    const char *group = list ? memchr(list + 1, ':', n - (size_t)(list + 1 - line)) : NULL;
    if (!group) {
        return 0;
    }
    size_t n_list = (size_t)(group - list) - 1;
    size_t n_group = n - (size_t)(group + 1 - line);
    bool is_v2 = n_list == 0;
    unsigned best = 0;
    size_t n_mounts =
            is_v2 ? sizeof v2_mounts / sizeof v2_mounts[0] : sizeof v1_mounts / sizeof v1_mounts[0];
    if (!is_v2 && !has_cpu(list + 1, n_list)) {
        return 0;
    }
    for (size_t i = 0; i < n_mounts; i++) {
        snprintf(mount, sizeof mount, "%s%s", root, is_v2 ? v2_mounts[i] : v1_mounts[i]);
        best = tighter(best, walk_up(mount, group + 1, n_group, is_v2 ? quota_v2 : quota_v1));
    }
    return best;
}

unsigned sl__cpu_quota(const char *root)
{
    char path[PATH_MAX];
    unsigned best = 0;
    snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
    char *text = read_text(path);
    const char *line = text ? text : "";
    while (*line) {
        size_t n = strcspn(line, "\n");
        best = tighter(best, quota_of_line(root, line, n));
        line += n + (line[n] == '\n');
    }
    sl__free(text);
    return best;
}
