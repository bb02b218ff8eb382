/* Control groups on machines laid out in a folder, each layout as it was seen in a public failure. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "fake_machine.h"
#include "process_state.h"
#include "test_support.h"

#define JOB "/user.slice/app.slice/job-1.scope"

static void lay_out_nested_v2(const fake_machine *m)
{
    fake_groups(m, "0::" JOB "\n", CGROUP2_LINE);
    fake_put(m, V2 JOB "/memory.max", "max\n");
    fake_put(m, V2 "/user.slice/app.slice/memory.max", "2147483648\n");
    fake_put(m, V2 "/user.slice/app.slice/memory.current", "536870912\n");
    fake_put(m, V2 "/user.slice/memory.max", "max\n");
    fake_put(m, "/proc/meminfo",
            "MemTotal: 33554432 kB\nMemFree: 1 kB\nMemAvailable: 16777216 kB\n");
}

static void test_G2_01_the_limit_sits_on_an_ancestor(void **state)
{
    fake_machine *m = *state;
    lay_out_nested_v2(m);
    const char *source = fake_expect(m, 2 * GIB, 3 * GIB / 2);
    assert_string_equal(source, V2 "/user.slice/app.slice/memory.max");
    assert_int_equal(m->budget.n_bounds, 2);
    assert_int_equal(m->budget.budget_bytes, 0);
    assert_int_equal(sl_ram_decided(&m->budget)->reserve_bytes, 2 * GIB);
    assert_int_equal(fake_n_warnings(m), 0);
}

/* Limits far apart at every level: the smallest remainder wins, not the smallest limit. */
static void test_G2_01_every_level_counts(void **state)
{
    fake_machine *m = *state;
    fake_groups(m, "0::/a/b\n", CGROUP2_LINE);
    fake_put(m, V2 "/a/b/memory.max", "17179869184\n"); /* 16 GiB, 1 used */
    fake_put(m, V2 "/a/b/memory.current", "1073741824\n");
    fake_put(m, V2 "/a/memory.max", "21474836480\n"); /* 20 GiB, 10 used */
    fake_put(m, V2 "/a/memory.current", "10737418240\n");
    fake_put(m, V2 "/memory.max", "30064771072\n");
    assert_string_equal(fake_expect(m, 16 * GIB, 10 * GIB), V2 "/a/memory.max");
    assert_int_equal(m->budget.budget_bytes, 8 * GIB);
    fake_put(m, V2 "/memory.max", "3221225472\n"); /* 3 GiB at the mount point itself */
    assert_string_equal(fake_expect(m, 3 * GIB, 3 * GIB), V2 "/memory.max");
}

static void test_G2_03_contents_of_memory_max(void **state)
{
    static const struct {
        const char *text;
        bool is_limit;
        uint64_t limit;
        size_t n_warnings; /* one more for a limit whose use is not known */
    } rows[] = {
            {"max\n", false, 0, 0},
            {"max", false, 0, 0},
            {" max \n", false, 0, 0},
            {"1073741824\n", true, GIB, 1},
            {"1073741824", true, GIB, 1},
            {"1073741824\r\n", true, GIB, 1},
            {" 4096 \n", true, 4096, 1},
            {"0\n", true, 0, 1},
            {"18446744073709551615\n", false, 0, 0},
            {"99999999999999999999\n", false, 0, 0},
            {"", false, 0, 1},
            {"-1\n", false, 0, 1},
            {"12x\n", false, 0, 1},
    };
    fake_machine *m = *state;
    fake_groups(m, "0::/a/b\n", CGROUP2_LINE);
    fake_put(m, V2 "/a/memory.max", "8589934592\n");
    fake_put(m, V2 "/a/memory.current", "0\n");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        fake_put(m, V2 "/a/b/memory.max", rows[i].text);
        /* The next level is looked at in any case. */
        uint64_t limit = rows[i].is_limit ? rows[i].limit : 8 * GIB;
        fake_expect(m, limit, limit);
        if (fake_n_warnings(m) != rows[i].n_warnings) {
            fail_msg("row %zu: %zu warnings", i, fake_n_warnings(m));
        }
    }
    char digits[4097];
    memset(digits, '7', 4096);
    digits[4096] = '\0';
    fake_put(m, V2 "/a/b/memory.max", digits);
    fake_expect(m, 8 * GIB, 8 * GIB);
}

static void test_G2_03_what_is_no_readable_file(void **state)
{
    fake_machine *m = *state;
    char path[4200];
    fake_groups(m, "0::/a/b\n", CGROUP2_LINE);
    fake_put(m, V2 "/a/memory.max", "8589934592\n");
    fake_put(m, V2 "/a/b/memory.max/x", "a folder where a file should be");
    fake_expect(m, 8 * GIB, 8 * GIB);
    assert_non_null(fake_line(m, "unreadable"));
    assert_string_equal(fake_line(m, "unreadable")->source, V2 "/a/b/memory.max");
    fake_put(m, V2 "/a/b/x", "");
    snprintf(path, sizeof path, "%s" V2 "/a/b/memory.high", m->root);
    assert_int_equal(mkfifo(path, 0600), 0);
    fake_expect(m, 8 * GIB, 8 * GIB);
}

static void test_G2_04_version_1_writes_unlimited_as_a_number(void **state)
{
    static const char *const texts[] = {"9223372036854771712\n", "9223372036854710272\n",
            "9223372036854775807\n", "9223372036854771712", "-1\n", "68719476736\n",
            "68719476737\n"};
    fake_machine *m = *state;
    fake_groups(m, "4:memory:/a\n", CGROUP1_LINE);
    fake_put(m, V1 "/a/memory.usage_in_bytes", "34359738368\n");
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        fake_put(m, V1 "/a/memory.limit_in_bytes", texts[i]);
        fake_expect_unbounded(m);
        assert_int_equal(m->budget.available_bytes, 32 * GIB);
        assert_int_equal(m->budget.budget_bytes, 28 * GIB);
    }
    /* One byte below MemTotal is a limit. */
    fake_put(m, V1 "/a/memory.limit_in_bytes", "68719476735\n");
    fake_expect(m, 64 * GIB - 1, 32 * GIB - 1);
}

#define HYBRID_GROUPS                                                                              \
    "9:name=systemd:/\n8:pids:/\n4:memory:/sandbox/0123abcd\n3:cpuset:/\n2:cpuacct:/\n1:cpu:/"     \
    "\n0::/\n"
#define HYBRID_MOUNTS                                                                              \
    "34 30 0:31 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"                   \
    "40 30 0:37 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n"

static void test_G2_05_hybrid_host(void **state)
{
    fake_machine *m = *state;
    fake_groups(m, HYBRID_GROUPS, HYBRID_MOUNTS);
    fake_put(m, "/sys/fs/cgroup/unified/cgroup.controllers", "hugetlb\n");
    fake_put(m, V1 "/memory.limit_in_bytes", "9223372036854771712\n");
    fake_put(m, V1 "/sandbox/0123abcd/memory.limit_in_bytes", "9223372036854771712\n");
    fake_expect_unbounded(m);
    fake_put(m, V1 "/sandbox/0123abcd/memory.limit_in_bytes", "1610612736\n");
    fake_put(m, V1 "/sandbox/0123abcd/memory.usage_in_bytes", "0\n");
    assert_string_equal(
            fake_expect(m, 1536 * MIB, 1536 * MIB), V1 "/sandbox/0123abcd/memory.limit_in_bytes");
    assert_int_equal(fake_n_warnings(m), 0);
    /* Limits in both trees: the smaller one. */
    fake_put(m, "/sys/fs/cgroup/unified/memory.max", "1073741824\n");
    assert_string_equal(fake_expect(m, GIB, GIB), "/sys/fs/cgroup/unified/memory.max");
    fake_put(m, V1 "/sandbox/0123abcd/memory.limit_in_bytes", "536870912\n");
    fake_expect(m, 512 * MIB, 512 * MIB);
}

static void test_G2_07_the_mount_root_equals_the_path(void **state)
{
    fake_machine *m = *state;
    fake_groups(m, "2:memory:/kubepods/besteffort/podAAAA/CCCC\n",
            "396 394 0:21 /kubepods/besteffort/podAAAA/CCCC /sys/fs/cgroup/memory ro,relatime - "
            "cgroup "
            "cgroup rw,memory\n");
    fake_put(m, V1 "/memory.limit_in_bytes", "314572800\n");
    /* Where joining without stripping would look. */
    fake_put(m, V1 "/kubepods/besteffort/podAAAA/CCCC/memory.limit_in_bytes", "1\n");
    fake_expect(m, 300 * MIB, 300 * MIB);
}

static void test_G2_09_a_path_that_leads_out(void **state)
{
    fake_machine *m = *state;
    fake_groups(m, "0::/../../../../../../test\n", CGROUP2_LINE);
    fake_put(m, "/test/memory.max", "1\n");
    fake_put(m, V2 "/test/memory.max", "1\n");
    fake_expect_unbounded(m);
    assert_non_null(fake_line(m, "leads out"));
    fake_put(m, V2 "/memory.max", "314572800\n");
    assert_string_equal(fake_expect(m, 300 * MIB, 300 * MIB), V2 "/memory.max");
    assert_int_equal(m->budget.n_bounds, 2);
}

static void test_G2_10_a_nested_job_of_version_1(void **state)
{
    fake_machine *m = *state;
    fake_groups(m,
            "11:blkio:/\n10:memory:/slurm/uid_5000/job_77/step_0\n9:freezer:/slurm/uid_5000/job_77/"
            "step_0\n"
            "3:devices:/slurm/uid_5000/job_77/step_0/task_0\n2:cpuacct,cpu:/\n"
            "1:name=systemd:/system.slice/slurmd.service\n",
            CGROUP1_LINE);
    fake_put(m, V1 "/memory.limit_in_bytes", "9223372036854771712\n");
    fake_put(m, V1 "/slurm/uid_5000/job_77/memory.limit_in_bytes", "4294967296\n");
    fake_put(m, V1 "/slurm/uid_5000/job_77/step_0/memory.limit_in_bytes", "2147483648\n");
    assert_string_equal(fake_expect(m, 2 * GIB, 2 * GIB),
            V1 "/slurm/uid_5000/job_77/step_0/memory.limit_in_bytes");
    assert_int_equal(m->budget.n_bounds, 3);
}

static void test_G2_11_colons_and_long_lines(void **state)
{
    fake_machine *m = *state;
    fake_groups(m, "no colons\n5:one\n8:memory:/foo:bar\n", CGROUP1_LINE);
    fake_put(m, V1 "/foo:bar/memory.limit_in_bytes", "1073741824\n");
    fake_expect(m, GIB, GIB);
    fake_groups(m, "0::/kubepods-podAAAA.slice:cri-containerd:BBBB", CGROUP2_LINE);
    fake_put(m, V2 "/kubepods-podAAAA.slice:cri-containerd:BBBB/memory.max", "536870912\n");
    fake_expect(m, 512 * MIB, 512 * MIB);
    /* A path that no call takes any more: its ancestors still count, and so do the lines behind it. */
    char text[6000] = "4:cpu:";
    for (size_t i = 0; i < 50; i++) {
        size_t n = strlen(text);
        memset(text + n, 'x', 99);
        text[n] = '/';
    }
    strncat(text, "\n0::/b", 10);
    for (size_t i = 0; i < 5; i++) {
        size_t n = strlen(text);
        memset(text + n, 'y', 150);
        text[n] = '/';
    }
    fake_put(m, "/proc/self/cgroup", text);
    fake_put(m, V2 "/b/memory.max", "268435456\n");
    fake_expect(m, 256 * MIB, 256 * MIB);
}

static void test_G2_11_a_path_of_5000_characters(void **state)
{
    fake_machine *m = *state;
    char text[5200] = "0::/b";
    for (size_t i = 0; i < 50; i++) {
        size_t n = strlen(text);
        memset(text + n, 'y', 100);
        text[n] = '/';
    }
    fake_groups(m, text, CGROUP2_LINE);
    fake_put(m, V2 "/b/memory.max", "268435456\n");
    fake_expect(m, 256 * MIB, 256 * MIB);
}

static void test_G2_13_field_traps(void **state)
{
    static const char *const mounts[] = {
            "1 2 3:4 /system.slice/docker-AAAA.scope /sys/fs/cgroup/memory rw - cgroup cgroup "
            "rw,memory",
            "1 2 3:4 /system.slice/docker-AAAA.scope /sys/fs/cgroup/memory rw,relatime - cgroup "
            "cgroup memory,rw\n",
            "1 2 3:4 /system.slice/docker-AAAA.scope /sys/fs/cgroup/memory rw shared:9 master:3 "
            "propagate_from:2 - cgroup cgroup rw,hugetlb,memory\n",
            "5 2 3:4 / /run rw - tmpfs  rw\n"
            "1 2 3:4 /system.slice/docker-AAAA.scope /sys/fs/cgroup/memory rw - cgroup  "
            "rw,memory\r\n",
    };
    fake_machine *m = *state;
    fake_put(m, V1 "/memory.limit_in_bytes", "314572800\n");
    for (size_t i = 0; i < sizeof mounts / sizeof mounts[0]; i++) {
        fake_groups(m, "3:memory:/system.slice/docker-AAAA.scope", mounts[i]);
        fake_expect(m, 300 * MIB, 300 * MIB);
    }
    /* The controller is a word, not a part of one. */
    fake_groups(
            m, "3:memory:/x\n", "1 2 3:4 /x /sys/fs/cgroup/memory rw - cgroup cgroup rw,memoryx\n");
    fake_expect_unbounded(m);
}

static void test_G2_13_escaped_mounts(void **state)
{
    fake_machine *m = *state;
    fake_groups(m, "0::/a b\\x2dc/d\n",
            "1 2 3:4 /a\\040b\\134x2dc /sys/fs/cgroup/my\\040mount rw - cgroup2 cgroup2 rw\n");
    fake_put(m, "/sys/fs/cgroup/my mount/d/memory.max", "314572800\n");
    assert_string_equal(
            fake_expect(m, 300 * MIB, 300 * MIB), "/sys/fs/cgroup/my mount/d/memory.max");
}

#define OWN_MOUNT  "1 2 3:4 /kubepods/podA/C1 /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
#define HOST_MOUNT "1 2 3:4 / /hostfs/sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
#define ZZ_MOUNT                                                                                   \
    "1 2 3:4 /docker/ZZ /hostfs/var/lib/docker/overlay2/XX/merged/sys/fs/cgroup/memory rw - "      \
    "cgroup cgroup rw,memory\n"

static void test_G2_15_the_tree_of_the_host_is_visible(void **state)
{
    static const char *const orders[] = {OWN_MOUNT HOST_MOUNT ZZ_MOUNT,
            ZZ_MOUNT HOST_MOUNT OWN_MOUNT, HOST_MOUNT OWN_MOUNT ZZ_MOUNT};
    fake_machine *m = *state;
    fake_put(m, V1 "/memory.limit_in_bytes", "1073741824\n");
    fake_put(m, "/hostfs/sys/fs/cgroup/memory/memory.limit_in_bytes", "4096\n");
    fake_put(m,
            "/hostfs/var/lib/docker/overlay2/XX/merged/sys/fs/cgroup/memory/memory.limit_in_bytes",
            "1\n");
    for (size_t i = 0; i < sizeof orders / sizeof orders[0]; i++) {
        fake_groups(m, "4:memory:/kubepods/podA/C1\n", orders[i]);
        assert_string_equal(fake_expect(m, GIB, GIB), V1 "/memory.limit_in_bytes");
        assert_int_equal(m->budget.n_bounds, 2);
    }
    /* Our own mount has no file: the host's view of our group is next. */
    fake_remove(m, V1 "/memory.limit_in_bytes");
    fake_put(m, "/hostfs/sys/fs/cgroup/memory/kubepods/podA/C1/memory.limit_in_bytes",
            "2147483648\n");
    fake_put(m, "/hostfs/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    fake_expect(m, 2 * GIB, 2 * GIB);
    /* A mount of another container's is nobody's bound. */
    fake_groups(m, "4:memory:/kubepods/podA/C1\n", ZZ_MOUNT);
    fake_expect_unbounded(m);
}

static void test_G2_15_a_second_mount_of_version_2_comes_first(void **state)
{
    fake_machine *m = *state;
    fake_groups(m, "0::/\n", "1 2 3:4 /.. /cgroup-in rw - cgroup2 cgroup2 rw\n" CGROUP2_LINE);
    fake_put(m, "/cgroup-in/memory.max", "1\n");
    fake_put(m, V2 "/memory.max", "1073741824\n");
    fake_expect(m, GIB, GIB);
}

static int expect_denied_files_are_skipped(void *arg)
{
    fake_machine *m = arg;
    sl_ram_budget b = {0};
    sl_ram_opts opts = {.root = m->root};
    if (sl_ram_budget_read(&opts, &b, NULL) < 0) {
        return 1;
    }
    bool is_right = b.limit_bytes == 2 * GIB && b.available_bytes == 2 * GIB;
    sl_ram_budget_done(&b);
    return is_right ? 0 : 2;
}

static void test_G2_15_files_that_may_not_be_read(void **state)
{
    fake_machine *m = *state;
    char path[4200];
    fake_groups(m, "0::/a/b\n", CGROUP2_LINE);
    fake_put(m, V2 "/a/b/memory.max", "1\n");
    fake_put(m, V2 "/a/memory.max", "2147483648\n");
    snprintf(path, sizeof path, "%s" V2 "/a/b/memory.max", m->root);
    assert_int_equal(chmod(path, 0), 0);
    /* The child is nobody, and the folders are ours alone. */
    static const char *const folders[] = {"", "/proc", "/proc/self", "/sys", "/sys/fs",
            "/sys/fs/cgroup", "/sys/fs/cgroup/a", "/sys/fs/cgroup/a/b"};
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        snprintf(path, sizeof path, "%s%s", m->root, folders[i]);
        assert_int_equal(chmod(path, 0755), 0);
    }
    int status = process_in_child(expect_denied_files_are_skipped, m, true);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77) {
        skip();
    }
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void test_G2_17_a_left_over_line_of_version_1(void **state)
{
    fake_machine *m = *state;
    fake_groups(m, "1:net_cls:/\n0::/\n",
            "1 2 3:4 / /sys/fs/cgroup/net_cls rw - cgroup cgroup rw,net_cls\n" CGROUP2_LINE);
    fake_put(m, V2 "/memory.max", "536870912\n");
    fake_expect(m, 512 * MIB, 512 * MIB);
}

static void test_G2_18_proc_cgroups_is_not_consulted(void **state)
{
    fake_machine *m = *state;
    lay_out_nested_v2(m);
    fake_put(m, "/proc/cgroups", "#subsys_name\thierarchy\tnum_cgroups\tenabled\ncpu 0 1 1\n");
    fake_expect(m, 2 * GIB, 3 * GIB / 2);
}

static void test_G2_24_memory_high_below_memory_max(void **state)
{
    fake_machine *m = *state;
    fake_groups(m, "0::/a\n", CGROUP2_LINE);
    fake_put(m, V2 "/a/memory.max", "4294967296\n");
    fake_put(m, V2 "/a/memory.high", "1073741824\n");
    fake_put(m, V2 "/a/memory.current", "0\n");
    assert_string_equal(fake_expect(m, GIB, GIB), V2 "/a/memory.high");
    assert_int_equal(sl_ram_decided(&m->budget)->kind, SL_RAM_CGROUP_HIGH);
    fake_put(m, V2 "/a/memory.high", "max\n");
    assert_string_equal(fake_expect(m, 4 * GIB, 4 * GIB), V2 "/a/memory.max");
    fake_remove(m, V2 "/a/memory.high");
    fake_expect(m, 4 * GIB, 4 * GIB);
}

static void test_G2_24_the_soft_limit_is_advisory(void **state)
{
    fake_machine *m = *state;
    fake_groups(m, "4:memory:/a\n", CGROUP1_LINE);
    fake_put(m, V1 "/a/memory.limit_in_bytes", "4294967296\n");
    fake_put(m, V1 "/a/memory.soft_limit_in_bytes", "1073741824\n");
    fake_expect(m, 4 * GIB, 4 * GIB);
    const sl_ram_line *line = fake_line(m, "soft limit");
    assert_non_null(line);
    assert_int_equal(line->bytes, GIB);
    assert_string_equal(line->source, V1 "/a/memory.soft_limit_in_bytes");
}

static void test_use_of_version_1(void **state)
{
    fake_machine *m = *state;
    fake_groups(m, "4:memory:/a\n", CGROUP1_LINE);
    fake_put(m, V1 "/a/memory.limit_in_bytes", "10737418240\n");
    fake_put(m, V1 "/a/memory.usage_in_bytes", "6442450944\n"); /* 6 GiB */
    fake_put(m, V1 "/a/memory.stat",
            "inactive_file 1\nactive_file 1\nhierarchical_memory_limit 10737418240\n"
            "total_inactive_file 2147483648\ntotal_active_file 1073741824\ntotal_dirty 536870912\n"
            "total_writeback 536870912\n");
    fake_expect(m, 10 * GIB, 6 * GIB);
    assert_int_equal(sl_ram_decided(&m->budget)->used_bytes, 6 * GIB);
    assert_int_equal(sl_ram_decided(&m->budget)->reclaimable_bytes, 2 * GIB);
    assert_int_equal(m->budget.budget_bytes, 4 * GIB);
    /* A kernel without the sums over the groups below. */
    fake_put(m, V1 "/a/memory.stat", "inactive_file 2147483648\nactive_file 0\n");
    fake_expect(m, 10 * GIB, 6 * GIB);
}

/* A pod's limit above a container that has none of its own: only memory.stat tells. */
static void test_a_limit_above_the_mount(void **state)
{
    fake_machine *m = *state;
    fake_groups(m, "2:memory:/pods/a/c\n",
            "1 2 3:4 /pods/a/c /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n");
    fake_put(m, V1 "/memory.limit_in_bytes", "9223372036854771712\n");
    fake_put(m, V1 "/memory.usage_in_bytes", "1073741824\n");
    fake_put(m, V1 "/memory.stat", "hierarchical_memory_limit 4294967296\ntotal_inactive_file 0\n");
    assert_string_equal(fake_expect(m, 4 * GIB, 3 * GIB), V1 "/memory.stat");
    assert_non_null(fake_line(m, "cannot be seen"));
    /* No news: the limit of our own group, or none at all. */
    fake_put(m, V1 "/memory.limit_in_bytes", "4294967296\n");
    assert_string_equal(fake_expect(m, 4 * GIB, 3 * GIB), V1 "/memory.limit_in_bytes");
    assert_int_equal(m->budget.n_bounds, 2);
    fake_put(m, V1 "/memory.limit_in_bytes", "9223372036854771712\n");
    static const char *const none[] = {"hierarchical_memory_limit 9223372036854771712\n",
            "hierarchical_memory_limit 68719476736\n", "hierarchical_memory_limit 0\n",
            "hierarchical_memory_limit x\n", "hierarchical_memory_limit 99999999999999999999\n"};
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) {
        fake_put(m, V1 "/memory.stat", none[i]);
        fake_expect_unbounded(m);
    }
}

static void test_absurd_use(void **state)
{
    fake_machine *m = *state;
    fake_groups(m, "0::/a\n", CGROUP2_LINE);
    fake_put(m, V2 "/a/memory.max", "4294967296\n");
    fake_put(m, V2 "/a/memory.current", "17179869184\n"); /* more than the limit */
    fake_expect(m, 4 * GIB, 0);
    /* More cache than use. */
    fake_put(m, V2 "/a/memory.current", "1073741824\n");
    fake_put(m, V2 "/a/memory.stat",
            "inactive_file 18446744073709551615\nactive_file 18446744073709551615\n");
    fake_expect(m, 4 * GIB, 4 * GIB);
    /* More dirty than cache. */
    fake_put(m, V2 "/a/memory.stat",
            "inactive_file 5\nactive_file 5\nfile_dirty 18446744073709551615\n");
    fake_expect(m, 4 * GIB, 3 * GIB);
    fake_put(m, V2 "/a/memory.current", "x\n");
    fake_expect(m, 4 * GIB, 4 * GIB);
    assert_non_null(fake_line(m, "no use is known"));
}

static void test_files_of_proc_that_are_missing_or_cut(void **state)
{
    fake_machine *m = *state;
    fake_expect_unbounded(m);
    fake_put(m, V2 "/memory.max", "1\n");
    fake_put(m, "/proc/self/cgroup", "0::/\n");
    fake_expect_unbounded(m);
    fake_put(m, "/proc/self/mountinfo", "");
    fake_expect_unbounded(m);
    fake_put(m, "/proc/self/mountinfo", "35 24 0:30 / /sys/fs/cgr");
    fake_expect_unbounded(m);
    fake_put(m, "/proc/self/mountinfo", "35 24 0:30 / /sys/fs/cgroup rw - ");
    fake_expect_unbounded(m);
    fake_put(m, "/proc/self/mountinfo", "35 24 0:30 / /sys/fs/cgroup rw - cgroup2");
    fake_expect(m, 1, 1);
    fake_remove(m, "/proc/self/cgroup");
    fake_expect_unbounded(m);
}

static void test_a_line_of_a_megabyte(void **state)
{
    fake_machine *m = *state;
    size_t n = 1 << 20;
    char *text = malloc(n + 200);
    assert_non_null(text);
    memset(text, 'x', n);
    snprintf(text + n, 200, "\n%s", CGROUP2_LINE);
    fake_groups(m, "0::/\n", text);
    free(text);
    fake_put(m, V2 "/memory.max", "1073741824\n");
    fake_expect(m, GIB, GIB);
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, fake_set_up, fake_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
            CASE(test_G2_01_the_limit_sits_on_an_ancestor),
            CASE(test_G2_01_every_level_counts),
            CASE(test_G2_03_contents_of_memory_max),
            CASE(test_G2_03_what_is_no_readable_file),
            CASE(test_G2_04_version_1_writes_unlimited_as_a_number),
            CASE(test_G2_05_hybrid_host),
            CASE(test_G2_07_the_mount_root_equals_the_path),
            CASE(test_G2_09_a_path_that_leads_out),
            CASE(test_G2_10_a_nested_job_of_version_1),
            CASE(test_G2_11_colons_and_long_lines),
            CASE(test_G2_11_a_path_of_5000_characters),
            CASE(test_G2_13_field_traps),
            CASE(test_G2_13_escaped_mounts),
            CASE(test_G2_15_the_tree_of_the_host_is_visible),
            CASE(test_G2_15_a_second_mount_of_version_2_comes_first),
            CASE(test_G2_15_files_that_may_not_be_read),
            CASE(test_G2_17_a_left_over_line_of_version_1),
            CASE(test_G2_18_proc_cgroups_is_not_consulted),
            CASE(test_G2_24_memory_high_below_memory_max),
            CASE(test_G2_24_the_soft_limit_is_advisory),
            CASE(test_use_of_version_1),
            CASE(test_a_limit_above_the_mount),
            CASE(test_absurd_use),
            CASE(test_files_of_proc_that_are_missing_or_cut),
            CASE(test_a_line_of_a_megabyte),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
