#define _GNU_SOURCE /* O_TMPFILE */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "process_state.h"
#include "test_support.h"

#include "base/mem.h"
#include "os/os_out_file.h"

typedef struct fixture {
    char *dir;
    char path[4200];
    sl__out_file *file;
} fixture;

static int set_up(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    f->dir = test_dir_create();
    test_path(f->path, sizeof f->path, f->dir, "out");
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    fixture *f = *state;
    sl__out_file_discard(&f->file);
    test_dir_remove(f->dir);
    free(f);
    return 0;
}

static size_t n_entries(const char *dir)
{
    size_t n = 0;
    DIR *d = opendir(dir);
    assert_non_null(d);
    for (struct dirent *e = readdir(d); e; e = readdir(d)) {
        n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
    }
    closedir(d);
    return n;
}

static void open_out(fixture *f, const char *path)
{
    sl_error err = {0};
    assert_ok(sl__out_file_open(path, 0640, &f->file, &err), &err);
}

static void write_text(fixture *f, const char *text)
{
    sl_error err = {0};
    assert_ok(sl__out_file_write(f->file, text, strlen(text), &err), &err);
}

static void commit(fixture *f)
{
    sl_error err = {0};
    assert_ok(sl__out_file_commit(&f->file, &err), &err);
    assert_null(f->file);
}

static void expect_content(const char *path, const char *text)
{
    size_t n = 0;
    char *data = test_read_file(path, &n);
    assert_string_equal(data, text);
    assert_int_equal(n, strlen(text));
    free(data);
}

static void test_a_file_appears_when_it_is_whole(void **state)
{
    fixture *f = *state;
    open_out(f, f->path);
    assert_false(sl__out_file_is_stream(f->file));
    write_text(f, "hello ");
    write_text(f, "");
    assert_int_equal(access(f->path, F_OK), -1);
    write_text(f, "world");
    commit(f);
    expect_content(f->path, "hello world");
    assert_int_equal(n_entries(f->dir), 1);
}

static void test_modes(void **state)
{
    fixture *f = *state;
    struct stat st;
    mode_t mask = umask(027);
    open_out(f, f->path);
    commit(f);
    umask(mask);
    assert_int_equal(stat(f->path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0640);
    assert_int_equal(chmod(f->path, 0604), 0);
    open_out(f, f->path);
    commit(f);
    assert_int_equal(stat(f->path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0604);
}

static void test_a_discarded_file_leaves_the_old_one(void **state)
{
    fixture *f = *state;
    test_write_file(f->path, "old", 3);
    open_out(f, f->path);
    write_text(f, "new");
    sl__out_file_discard(&f->file);
    sl__out_file_discard(&f->file);
    sl__out_file_discard(NULL);
    expect_content(f->path, "old");
    assert_int_equal(n_entries(f->dir), 1);
    open_out(f, f->path);
    write_text(f, "new");
    expect_content(f->path, "old");
    commit(f);
    expect_content(f->path, "new");
    assert_int_equal(n_entries(f->dir), 1);
}

/* Sizes around the buffer, in writes of many sizes, with a patch into each part. */
static void test_every_byte_arrives_in_order(void **state)
{
    const size_t n = 300001;
    const size_t steps[] = {1, 7, 4096, 65535, 65536, 65537, 200000};
    fixture *f = *state;
    unsigned char *made = malloc(n);
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        sl_error err = {0};
        size_t step = steps[i];
        for (size_t k = 0; k < n; k++) {
            made[k] = (unsigned char)(k * 31 + step);
        }
        open_out(f, f->path);
        for (size_t k = 0; k < n; k += step) {
            size_t part = n - k < step ? n - k : step;
            assert_ok(sl__out_file_write(f->file, made + k, part, &err), &err);
        }
        const size_t at[] = {0, 65530, n - 4};
        for (size_t k = 0; k < 3; k++) {
            memset(made + at[k], 0xDE, 4);
            assert_ok(sl__out_file_patch(f->file, at[k], made + at[k], 4, &err), &err);
        }
        assert_int_equal(sl__out_file_patch(f->file, n - 3, "DEEP", 4, &err), SL_EINVAL);
        assert_int_equal(sl__out_file_patch(f->file, UINT64_MAX, "DEEP", 4, &err), SL_EINVAL);
        commit(f);
        size_t n_read = 0;
        char *data = test_read_file(f->path, &n_read);
        assert_int_equal(n_read, n);
        assert_memory_equal(data, made, n);
        free(data);
    }
    free(made);
}

static void test_links_are_followed(void **state)
{
    fixture *f = *state;
    char link[4200];
    char second[4200];
    struct stat st;
    char *other = test_dir_create();
    test_path(link, sizeof link, other, "link");
    test_path(second, sizeof second, other, "second");
    assert_int_equal(symlink(f->path, link), 0);
    assert_int_equal(symlink("link", second), 0);
    /* The target does not exist yet; then it does. */
    for (int i = 0; i < 2; i++) {
        open_out(f, second);
        write_text(f, i == 0 ? "first" : "again");
        assert_int_equal(n_entries(other), 2);
        commit(f);
        expect_content(f->path, i == 0 ? "first" : "again");
        assert_int_equal(lstat(second, &st), 0);
        assert_true(S_ISLNK(st.st_mode));
        assert_int_equal(n_entries(f->dir), 1);
    }
    test_dir_remove(other);
}

static void expect_open_fails(const char *path, int code, const char *needle)
{
    sl__out_file *file = NULL;
    sl_error err = {0};
    size_t n_fds = process_n_fds();
    assert_int_equal(sl__out_file_open(path, 0644, &file, &err), code);
    assert_null(file);
    if (!strstr(err.msg, needle)) {
        fail_msg("'%s' does not say '%s'", err.msg, needle);
    }
    assert_int_equal(process_n_fds(), n_fds);
}

static void test_paths_that_cannot_be_written(void **state)
{
    fixture *f = *state;
    char path[4200];
    expect_open_fails("", SL_ENOENT, "");
    expect_open_fails(f->dir, SL_EINVAL, "a directory");
    expect_open_fails(test_path(path, sizeof path, f->dir, "none/out"), SL_ENOENT, path);
    expect_open_fails(test_path(path, sizeof path, f->dir, "new/"), SL_EINVAL, "names a folder");
    test_path(path, sizeof path, f->dir, "loop");
    assert_int_equal(symlink("loop", path), 0);
    expect_open_fails(path, SL_EINVAL, "loop");
    test_write_file(f->path, "x", 1);
    expect_open_fails(test_path(path, sizeof path, f->dir, "out/below"), SL_ENOENT, path);
    char *longest = calloc(1, 10001);
    memset(longest, 'a', 10000);
    expect_open_fails(longest, SL_EINVAL, "...");
    free(longest);
}

static int open_protected(void *path)
{
    sl__out_file *file = NULL;
    return sl__out_file_open(path, 0644, &file, NULL) == SL_EACCES ? 0 : 1;
}

static void test_a_file_without_write_permission_is_kept(void **state)
{
    fixture *f = *state;
    test_write_file(f->path, "keep", 4);
    assert_int_equal(chmod(f->path, 0444), 0);
    assert_int_equal(chmod(f->dir, 0777), 0);
    assert_int_equal(process_in_child(open_protected, f->path, true), 0);
    expect_content(f->path, "keep");
    assert_int_equal(n_entries(f->dir), 1);
}

static void test_devices_are_streams(void **state)
{
    fixture *f = *state;
    sl_error err = {0};
    open_out(f, "/dev/null");
    assert_true(sl__out_file_is_stream(f->file));
    write_text(f, "gone");
    assert_int_equal(sl__out_file_patch(f->file, 0, "x", 1, &err), SL_EINVAL);
    commit(f);
    open_out(f, "/dev/full");
    write_text(f, "gone");
    assert_int_equal(sl__out_file_flush(f->file, &err), SL_ENOSPC);
    assert_non_null(strstr(err.msg, "/dev/full"));
    assert_int_equal(sl__out_file_write(f->file, "x", 1, &err), SL_ENOSPC);
    assert_int_equal(sl__out_file_commit(&f->file, &err), SL_ENOSPC);
    assert_null(f->file);
    open_out(f, "/dev/full");
    write_text(f, "gone");
    assert_int_equal(sl__out_file_commit(&f->file, &err), SL_ENOSPC);
    struct stat st;
    assert_int_equal(stat("/dev/null", &st), 0);
    assert_true(S_ISCHR(st.st_mode));
}

static void test_a_fifo_is_written_as_it_is(void **state)
{
    fixture *f = *state;
    char buf[16] = {0};
    sl_error err = {0};
    assert_int_equal(mkfifo(f->path, 0600), 0);
    int fd = open(f->path, O_RDONLY | O_NONBLOCK);
    assert_true(fd >= 0);
    open_out(f, f->path);
    write_text(f, "through");
    assert_int_equal(read(fd, buf, sizeof buf), 0 - 1);
    assert_ok(sl__out_file_flush(f->file, &err), &err);
    assert_int_equal(read(fd, buf, sizeof buf), 7);
    assert_string_equal(buf, "through");
    /* The reader goes away: an error, no signal. */
    close(fd);
    write_text(f, "lost");
    assert_int_equal(sl__out_file_commit(&f->file, &err), SL_EIO);
    struct stat st;
    assert_int_equal(stat(f->path, &st), 0);
    assert_true(S_ISFIFO(st.st_mode));
}

static int write_to_closed_pipe(void *arg)
{
    int ends[2];
    static const char block[1 << 17];
    sl__out_file *file = NULL;
    sl_error err = {0};
    struct sigaction dfl = {.sa_handler = SIG_DFL};
    sigset_t pending;
    (void)arg;
    sigaction(SIGPIPE, &dfl, NULL);
    if (pipe(ends) != 0 || dup2(ends[1], STDOUT_FILENO) < 0 || close(ends[0]) != 0 ||
            sl__out_file_open("-", 0644, &file, NULL) < 0) {
        return 2;
    }
    int r = sl__out_file_write(file, block, sizeof block, &err);
    sl__out_file_discard(&file);
    sigpending(&pending);
    bool is_open = fcntl(STDOUT_FILENO, F_GETFD) >= 0;
    return r == SL_EIO && strstr(err.msg, "standard output") && is_open &&
                           !sigismember(&pending, SIGPIPE)
                   ? 0
                   : 1;
}

static void test_a_closed_pipe_is_an_error_and_no_signal(void **state)
{
    (void)state;
    assert_int_equal(process_in_child(write_to_closed_pipe, NULL, false), 0);
}

static int write_over_the_limit(void *path)
{
    struct rlimit limit = {.rlim_cur = 1000, .rlim_max = 1000};
    char block[4096] = {0};
    sl__out_file *file = NULL;
    sl_error err = {0};
    struct sigaction dfl = {.sa_handler = SIG_DFL};
    sigaction(SIGXFSZ, &dfl, NULL);
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0 || sl__out_file_open(path, 0644, &file, NULL) < 0 ||
            sl__out_file_write(file, block, sizeof block, NULL) < 0) {
        return 2;
    }
    int r = sl__out_file_commit(&file, &err);
    return r == SL_ELIMIT && strstr(err.msg, path) && !file ? 0 : 1;
}

static void test_a_full_quota_leaves_nothing(void **state)
{
    fixture *f = *state;
    test_write_file(f->path, "old", 3);
    assert_int_equal(process_in_child(write_over_the_limit, f->path, false), 0);
    expect_content(f->path, "old");
    assert_int_equal(n_entries(f->dir), 1);
}

static void test_a_folder_that_takes_the_name_meanwhile(void **state)
{
    fixture *f = *state;
    sl_error err = {0};
    open_out(f, f->path);
    write_text(f, "text");
    assert_int_equal(mkdir(f->path, 0700), 0);
    int r = sl__out_file_commit(&f->file, &err);
    assert_int_equal(r, SL_EINVAL);
    assert_non_null(strstr(err.msg, f->path));
    assert_int_equal(n_entries(f->dir), 1);
}

static void test_every_failing_allocation(void **state)
{
    fixture *f = *state;
    char link[4200];
    int r = SL_ENOMEM;
    test_path(link, sizeof link, f->dir, "link");
    assert_int_equal(symlink("out", link), 0);
    for (long n = 0; r == SL_ENOMEM; n++) {
        sl_error err = {0};
        sl__mem_fail_after(n);
        r = sl__out_file_open(link, 0644, &f->file, &err);
        sl__mem_fail_after(-1);
        assert_int_equal(err.code, r);
        assert_true(n_entries(f->dir) == 1 || r == 0);
    }
    assert_int_equal(r, 0);
    write_text(f, "text");
    sl__mem_fail_after(0);
    r = sl__out_file_commit(&f->file, NULL);
    sl__mem_fail_after(-1);
    assert_int_equal(r, 0);
    expect_content(f->path, "text");
}

/* What a system without files that have no name says, and one that forbids links. */
enum {
    NO_NAMELESS = 1,
    NO_LINKS = 2
};

#define FAIL_WITH(e) BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (e))

/* The system refuses what is named; false if it cannot be made to. */
static bool refuse(int what)
{
    struct sock_filter f[] = {
            BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
            BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_linkat, 0, 1),
            (what & NO_LINKS) != 0
                    ? (struct sock_filter)FAIL_WITH(EPERM)
                    : (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
            BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 3),
            /* The low half: all that this machine's flags have. */
            BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
            BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, O_TMPFILE & ~O_DIRECTORY, 0, 1),
            (what & NO_NAMELESS) != 0
                    ? (struct sock_filter)FAIL_WITH(EOPNOTSUPP)
                    : (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {.len = sizeof f / sizeof f[0], .filter = f};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

typedef struct refusal {
    const char *path;
    const char *dir;
    int what;
    size_t n_meanwhile; /* names in the folder while the file is written */
} refusal;

#define N_BYTES 200000

static int write_refused(void *arg)
{
    const refusal *c = arg;
    sl__out_file *file = NULL;
    sl_error err = {0};
    static char bytes[N_BYTES];
    for (size_t i = 0; i < sizeof bytes; i++) {
        bytes[i] = (char)(i * 7 >> 3);
    }
    if (!refuse(c->what)) {
        return 77;
    }
    umask(022);
    if (sl__out_file_open(c->path, 0666, &file, &err) < 0 ||
            sl__out_file_write(file, bytes, sizeof bytes, &err) < 0 ||
            n_entries(c->dir) != c->n_meanwhile) {
        return 2;
    }
    return sl__out_file_commit(&file, &err) == 0 ? 0 : 3;
}

/* The same file, whatever the system can do; and whether there is one already or not. */
static void test_systems_without_nameless_files_or_links(void **state)
{
    fixture *f = *state;
    static const struct {
        int what;
        size_t n_more;
    } rows[] = {{NO_LINKS, 0}, {NO_NAMELESS, 1}, {NO_NAMELESS | NO_LINKS, 1}, {0, 0}};
    for (size_t i = 0; i < 2 * sizeof rows / sizeof rows[0]; i++) {
        size_t n = 0;
        struct stat st;
        refusal c = {f->path, f->dir, rows[i / 2].what, rows[i / 2].n_more + i % 2};
        if (i % 2 == 0) {
            unlink(f->path);
        }
        int status = process_in_child(write_refused, &c, false);
        if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
            skip();
        }
        assert_int_equal(status, 0);
        char *bytes = test_read_file(f->path, &n);
        assert_int_equal(n, N_BYTES);
        for (size_t k = 0; k < n; k++) {
            assert_true(bytes[k] == (char)(k * 7 >> 3));
        }
        free(bytes);
        assert_int_equal(stat(f->path, &st), 0);
        assert_int_equal(st.st_mode & 0777, 0644);
        assert_int_equal(n_entries(f->dir), 1);
    }
}

static int write_and_be_killed(void *path)
{
    sl__out_file *file = NULL;
    sl_error err = {0};
    static const char bytes[N_BYTES];
    if (sl__out_file_open(path, 0666, &file, &err) == 0 &&
            sl__out_file_write(file, bytes, sizeof bytes, &err) == 0) {
        kill(getpid(), SIGKILL);
    }
    return 1;
}

static void test_nothing_is_left_of_a_process_that_is_killed(void **state)
{
    fixture *f = *state;
    int fd = open(f->dir, O_TMPFILE | O_RDWR, 0600);
    if (fd < 0) {
        skip(); /* this file system must give it a name */
    }
    close(fd);
    test_write_file(f->path, "old", 3);
    int status = process_in_child(write_and_be_killed, f->path, false);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    expect_content(f->path, "old");
    assert_int_equal(n_entries(f->dir), 1);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
            TEST(test_a_file_appears_when_it_is_whole),
            TEST(test_modes),
            TEST(test_a_discarded_file_leaves_the_old_one),
            TEST(test_every_byte_arrives_in_order),
            TEST(test_links_are_followed),
            TEST(test_paths_that_cannot_be_written),
            TEST(test_a_file_without_write_permission_is_kept),
            TEST(test_devices_are_streams),
            TEST(test_a_fifo_is_written_as_it_is),
            TEST(test_a_closed_pipe_is_an_error_and_no_signal),
            TEST(test_a_full_quota_leaves_nothing),
            TEST(test_a_folder_that_takes_the_name_meanwhile),
            TEST(test_every_failing_allocation),
            TEST(test_systems_without_nameless_files_or_links),
            TEST(test_nothing_is_left_of_a_process_that_is_killed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
