#include <string.h>

#include "test_support.h"

#include "base/mem.h"
#include "source/cgroup.h"
#include "source/mountinfo.h"

static sl_span span(const char *text)
{
    return (sl_span){text, strlen(text)};
}

/* `want` NULL: there is no such line. */
static void expect_path(const char *text, bool is_v1, const char *want)
{
    sl_span path = {0};
    bool found = sl__cgroup_path(span(text), is_v1, &path);
    if (found != (want != NULL) || (want && !sl__span_is(path, want))) {
        fail_msg("'%s' gives '%.*s'", text, (int)path.n, path.p ? path.p : "");
    }
}

static void test_G2_11_lines(void **state)
{
    (void)state;
    expect_path("8:memory:/foo:bar\n", true, "/foo:bar");
    expect_path("0::/system.slice/kubepods-podAAAA.slice:cri-containerd:BBBB", false,
            "/system.slice/kubepods-podAAAA.slice:cri-containerd:BBBB");
    expect_path("garbage\n:\n::\n5:memory\n0::\n0::relative\n0::/good\n", false, "/good");
    expect_path("\xEF\xBB\xBF"
                "0::/x\r\n",
            false, "/x");
    expect_path("x::/no\n-1::/no\n1::/no\n", false, NULL);
    expect_path("4:memory_hot:/no\n5:name=memory:/no\n6:cpu,memory:/yes\n", true, "/yes");
    expect_path("4:memory:/\n", false, NULL);
    expect_path("0::/\n", true, NULL);
    expect_path("", true, NULL);
    sl_span path;
    assert_false(sl__cgroup_path((sl_span){"0::/a\0b\n", 8}, false, &path));
}

static void test_G2_10_the_line_is_chosen_by_controller(void **state)
{
    const char *text = "11:blkio:/\n10:memory:/slurm/uid_5000/job_77/step_0\n"
                       "3:devices:/slurm/uid_5000/job_77/step_0/task_0\n2:cpuacct,cpu:/\n"
                       "1:name=systemd:/system.slice/slurmd.service\n";
    (void)state;
    expect_path(text, true, "/slurm/uid_5000/job_77/step_0");
    expect_path(text, false, NULL);
}

/* Pairs of point and below, in order. */
static void expect_places(
        const char *mountinfo, const char *path, bool is_v1, const char *const *want, size_t n)
{
    sl__cgroup_places places = {0};
    assert_int_equal(sl__cgroup_find_places(span(mountinfo), span(path), is_v1, &places), 0);
    assert_int_equal(places.n, n);
    for (size_t i = 0; i < n; i++) {
        assert_string_equal(places.items[i].point, want[2 * i]);
        assert_string_equal(places.items[i].below, want[2 * i + 1]);
    }
    sl__cgroup_places_done(&places);
}

#define PLACES(mountinfo, path, is_v1, ...)                                                        \
    do {                                                                                           \
        static const char *const want[] = {__VA_ARGS__};                                           \
        expect_places(mountinfo, path, is_v1, want, sizeof want / sizeof want[0] / 2);             \
    } while (0)

static void test_mount_roots_are_stripped_by_component(void **state)
{
    const char *m = "1 2 3:4 /pods/a /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n";
    (void)state;
    PLACES(m, "/pods/a", true, "/sys/fs/cgroup/memory", "");
    PLACES(m, "/pods/a/b/c", true, "/sys/fs/cgroup/memory", "/b/c");
    PLACES(m, "//pods/./a//b/", true, "/sys/fs/cgroup/memory", "/b");
    /* A name that only begins alike is another group: the mount's own files are all there is. */
    PLACES(m, "/pods/ab", true, "/sys/fs/cgroup/memory", "");
    PLACES(m, "/", true, "/sys/fs/cgroup/memory", "");
    expect_places(m, "/pods/a", false, NULL, 0);
}

static void test_a_path_never_leaves_the_mount(void **state)
{
    const char *m = "1 2 3:4 / /sys/fs/cgroup rw - cgroup2 c rw\n";
    (void)state;
    PLACES(m, "/../../test", false, "/sys/fs/cgroup", "");
    PLACES(m, "/a/../../test", false, "/sys/fs/cgroup", "");
    PLACES(m, "/..a/b..", false, "/sys/fs/cgroup", "/..a/b..");
    PLACES("1 2 3:4 /.. /sys/fs/cgroup rw - cgroup2 c rw\n", "/", false, "/sys/fs/cgroup", "");
    expect_places("1 2 3:4 / /sys/../etc rw - cgroup2 c rw\n", "/a", false, NULL, 0);
}

static void test_escapes_are_decoded_in_mountinfo_alone(void **state)
{
    const char *m = "1 2 3:4 /a\\040b\\134x2d /sys/fs/cgroup/x\\040y rw - cgroup2 c rw\n";
    (void)state;
    PLACES(m, "/a b\\x2d/c\\040d", false, "/sys/fs/cgroup/x y", "/c\\040d");
}

static void test_order_of_places(void **state)
{
    const char *m = "1 2 3:4 /other /sys/fs/cgroup/foreign rw - cgroup2 c rw\n"
                    "1 2 3:4 / /host/sys/fs/cgroup rw - cgroup2 c rw\n"
                    "1 2 3:4 /other /host/elsewhere rw - cgroup2 c rw\n"
                    "1 2 3:4 /a /sys/fs/cgroup rw - cgroup2 c rw\n";
    (void)state;
    PLACES(m, "/a/b", false, "/sys/fs/cgroup", "/b", "/host/sys/fs/cgroup", "/a/b",
            "/sys/fs/cgroup/foreign", "");
}

static void test_covered_mounts(void **state)
{
    (void)state;
    PLACES("1 2 3:4 / /sys/fs/cgroup rw - cgroup2 c rw\n1 2 3:4 /a /sys/fs/cgroup rw - cgroup2 c "
           "rw\n",
            "/a/b", false, "/sys/fs/cgroup", "/b");
    expect_places("1 2 3:4 / /sys/fs/cgroup rw - cgroup2 c rw\n1 2 3:4 / /sys/fs/cgroup rw - tmpfs "
                  "t rw\n",
            "/a", false, NULL, 0);
}

static void test_memory_may_run_out(void **state)
{
    const char *m = "1 2 3:4 / /x rw - cgroup2 c rw\n1 2 3:4 /a /sys/fs/cgroup rw - cgroup2 c rw\n";
    int n_failed = 0;
    (void)state;
    for (long i = 0;; i++) {
        sl__cgroup_places places = {0};
        sl__mem_fail_after(i);
        int r = sl__cgroup_find_places(span(m), span("/a/b"), false, &places);
        sl__mem_fail_after(-1);
        if (r == 0) {
            assert_int_equal(places.n, 2);
            sl__cgroup_places_done(&places);
            break;
        }
        assert_int_equal(r, SL_ENOMEM);
        assert_null(places.items);
        n_failed++;
    }
    assert_true(n_failed > 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_G2_11_lines),
            cmocka_unit_test(test_G2_10_the_line_is_chosen_by_controller),
            cmocka_unit_test(test_mount_roots_are_stripped_by_component),
            cmocka_unit_test(test_a_path_never_leaves_the_mount),
            cmocka_unit_test(test_escapes_are_decoded_in_mountinfo_alone),
            cmocka_unit_test(test_order_of_places),
            cmocka_unit_test(test_covered_mounts),
            cmocka_unit_test(test_memory_may_run_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
