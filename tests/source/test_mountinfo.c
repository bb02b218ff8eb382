#include <stdio.h>
#include <string.h>

#include "test_support.h"

#include "base/mem.h"
#include "source/mountinfo.h"

static sl_span span(const char *text)
{
    return (sl_span){text, strlen(text)};
}

static void expect_mount(const char *line, const char *root, const char *point, const char *type,
        const char *options)
{
    sl__mount mount = {0};
    sl_span rest = span(line);
    if (!sl__mountinfo_next(&rest, &mount)) {
        fail_msg("no mount: %s", line);
    }
    assert_true(sl__span_is(mount.root, root));
    assert_true(sl__span_is(mount.point, point));
    assert_true(sl__span_is(mount.fs_type, type));
    assert_true(sl__span_is(mount.super_options, options));
    assert_false(sl__mountinfo_next(&rest, &mount));
}

static void test_G2_13_fields(void **state)
{
    (void)state;
    expect_mount("36 25 0:31 /system.slice/docker-AAAA.scope /m rw - cgroup cgroup rw,memory\n",
            "/system.slice/docker-AAAA.scope", "/m", "cgroup", "rw,memory");
    expect_mount("36 25 0:31 / /m rw,relatime - cgroup cgroup memory,rw\n", "/", "/m", "cgroup",
            "memory,rw");
    expect_mount("36 25 0:31 / /m rw shared:9 master:3 propagate_from:2 - cgroup2 c rw\r\n", "/",
            "/m", "cgroup2", "rw");
    expect_mount("36 25 0:31 / /m rw - tmpfs  rw", "/", "/m", "tmpfs", "rw");
    expect_mount("36 25 0:31 / /m rw - cgroup2 cgroup2 rw,nsdelegate,memory_recursiveprot", "/",
            "/m", "cgroup2", "rw,nsdelegate,memory_recursiveprot");
    /* Cut behind the type. */
    expect_mount("36 25 0:31 / /m rw - cgroup2", "/", "/m", "cgroup2", "");
}

static void test_lines_that_are_no_mounts_are_skipped(void **state)
{
    static const char *const bad[] = {"", "\n", "36", "36 25 0:31 / /m rw\n",
            "36 25 0:31 / /m rw -\n", "36 25 0:31 / /m rw shared:9\n",
            "36 25 0:31 root /m rw - cgroup2 c rw\n", "36 25 0:31 / m rw - cgroup2 c rw\n",
            "- - - - - - - - -\n", "36 25 0:31 / /m rw --- cgroup2 c rw"};
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char text[200];
        sl__mount mount = {0};
        sl_span rest = span(bad[i]);
        if (sl__mountinfo_next(&rest, &mount)) {
            fail_msg("taken for a mount: %s", bad[i]);
        }
        snprintf(text, sizeof text, "%s\n1 2 3:4 / /good rw - x y z\n", bad[i]);
        rest = span(text);
        assert_true(sl__mountinfo_next(&rest, &mount));
        assert_true(sl__span_is(mount.point, "/good"));
    }
    sl__mount mount;
    sl_span nul = {"1 2 3:4 / /a\0b rw - x y z", 25};
    assert_false(sl__mountinfo_next(&nul, &mount));
    sl_span empty = {NULL, 0};
    assert_false(sl__mountinfo_next(&empty, &mount));
}

static void expect_decoded(const char *field, const char *want)
{
    char *got = sl__mountinfo_decode(span(field));
    assert_non_null(got);
    if (strcmp(got, want) != 0) {
        fail_msg("'%s' gives '%s', need '%s'", field, got, want);
    }
    sl__free(got);
}

static void test_octal_escapes(void **state)
{
    (void)state;
    expect_decoded("/plain", "/plain");
    expect_decoded("/a\\040b\\011c\\012x\\134e", "/a b\tc\nx\\e");
    expect_decoded("\\134x2d", "\\x2d");
    expect_decoded("/\\303\\251", "/\xC3\xA9");
    /* What is no escape stays. */
    expect_decoded("/a\\", "/a\\");
    expect_decoded("/a\\04", "/a\\04");
    expect_decoded("/a\\089", "/a\\089");
    expect_decoded("/a\\777", "/a\\777");
    expect_decoded("/a\\000b", "/a\\000b");
    expect_decoded("", "");
    sl__mem_fail_after(0);
    char *none = sl__mountinfo_decode(span("/a"));
    sl__mem_fail_after(-1);
    assert_null(none);
}

static void test_words(void **state)
{
    (void)state;
    assert_true(sl__span_has_word(span("rw,memory"), "memory"));
    assert_true(sl__span_has_word(span("memory,rw"), "memory"));
    assert_true(sl__span_has_word(span("cpu,memory,hugetlb"), "memory"));
    assert_false(sl__span_has_word(span("rw,memory_recursiveprot"), "memory"));
    assert_false(sl__span_has_word(span("rw,name=memory"), "memory"));
    assert_false(sl__span_has_word(span(""), "memory"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_G2_13_fields),
            cmocka_unit_test(test_lines_that_are_no_mounts_are_skipped),
            cmocka_unit_test(test_octal_escapes),
            cmocka_unit_test(test_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
