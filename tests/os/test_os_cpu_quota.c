/* Control groups laid out in a folder that stands for the machine. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "test_support.h"

#include "os/os_cpu_quota.h"

typedef struct entry {
    const char *path;
    const char *text;
} entry;

/* Writes a file with all folders above it. */
static void put(const char *root, const entry *e)
{
    char path[4200];
    snprintf(path, sizeof path, "%s/%s", root, e->path);
    for (char *p = path + strlen(root) + 1; *p; p++) {
        if (*p == '/') {
            *p = '\0';
            mkdir(path, 0700);
            *p = '/';
        }
    }
    test_write_file(path, e->text, strlen(e->text));
}

#define GROUP "proc/self/cgroup"
#define MOUNT "sys/fs/cgroup/"

static void test_layouts(void **state)
{
    static const struct {
        unsigned n;
        entry entries[5];
    } rows[] = {
            {0, {{NULL, NULL}}},
            {0, {{GROUP, "0::/\n"}}},
            {0, {{GROUP, "0::/\n"}, {MOUNT "cpu.max", "max 100000\n"}}},
            {2, {{GROUP, "0::/\n"}, {MOUNT "cpu.max", "200000 100000\n"}}},
            {2, {{GROUP, "0::/\n"}, {MOUNT "cpu.max", "150000 100000"}}},
            {1, {{GROUP, "0::/\n"}, {MOUNT "cpu.max", "1000 100000\n"}}},
            /* The bound sits on an ancestor. */
            {3, {{GROUP, "0::/a/b/c\n"}, {MOUNT "a/cpu.max", "300000 100000\n"},
                        {MOUNT "a/b/c/cpu.max", "max 100000\n"}}},
            {3, {{GROUP, "0::/a/b\n"}, {MOUNT "a/cpu.max", "300000 100000\n"},
                        {MOUNT "a/b/cpu.max", "900000 100000\n"}}},
            /* A private namespace: the path leads nowhere, the mount is the container's own. */
            {4, {{GROUP, "0::/../elsewhere\n"}, {MOUNT "cpu.max", "400000 100000\n"}}},
            {4, {{GROUP, "0::/a:b\n"}, {MOUNT "a:b/cpu.max", "400000 100000\n"}}},
            /* Version 1. */
            {2, {{GROUP, "5:memory:/x\n4:cpu,cpuacct:/x\n"},
                        {MOUNT "cpu,cpuacct/x/cpu.cfs_quota_us", "150000\n"},
                        {MOUNT "cpu,cpuacct/x/cpu.cfs_period_us", "100000\n"}}},
            {0, {{GROUP, "4:cpu:/\n"}, {MOUNT "cpu/cpu.cfs_quota_us", "-1\n"},
                        {MOUNT "cpu/cpu.cfs_period_us", "100000\n"}}},
            {0, {{GROUP, "4:cpuset:/\n"}, {MOUNT "cpu/cpu.cfs_quota_us", "100000\n"},
                        {MOUNT "cpu/cpu.cfs_period_us", "100000\n"}}},
            /* Absurd files are no bound. */
            {0, {{GROUP, "0::/\n"}, {MOUNT "cpu.max", ""}}},
            {0, {{GROUP, "0::/\n"}, {MOUNT "cpu.max", "100000 0\n"}}},
            {0, {{GROUP, "0::/\n"}, {MOUNT "cpu.max", "0 100000\n"}}},
            {0, {{GROUP, "0::/\n"}, {MOUNT "cpu.max", "99999999999999999999999999 1\n"}}},
            {0, {{GROUP, "0::/\n"}, {MOUNT "cpu.max", "999999999999999999 1\n"}}},
            {0, {{GROUP, "0::/\n"}, {MOUNT "cpu.max", "x y\n"}}},
            {0, {{GROUP, "no colons here\n\n:\n::\n"}}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char *root = test_dir_create();
        for (size_t k = 0; k < 5 && rows[i].entries[k].path; k++) {
            put(root, &rows[i].entries[k]);
        }
        unsigned n = sl__cpu_quota(root);
        test_dir_remove(root);
        if (n != rows[i].n) {
            fail_msg("layout %zu gives %u, need %u", i, n, rows[i].n);
        }
    }
}

static void test_this_machine_gives_an_answer(void **state)
{
    (void)state;
    assert_true(sl__cpu_quota("") < 1u << 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_layouts),
            cmocka_unit_test(test_this_machine_gives_an_answer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
