#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "s2/voice.h"
#include "test_support.h"
#include "voice_sample.h"

static int make_dir(void **state)
{
    *state = test_dir_create();
    return 0;
}

static int drop_dir(void **state)
{
    test_dir_remove(*state);
    return 0;
}

static bool exists(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0;
}

static void save(const char *path, const s2_voice *voice, int want)
{
    sl_error err;
    int r = s2_voice_save(path, voice, &err);
    assert_ok(r, &err);
    assert_int_equal(r, want);
}

static void expect_sample_at(const char *path)
{
    s2_voice voice = {0};
    sl_error err;
    assert_ok(s2_voice_load(path, &voice, &err), &err);
    voice_expect_sample(&voice);
    s2_voice_done(&voice);
}

static void test_save_and_load(void **state)
{
    char path[4096];
    struct stat st;
    s2_voice voice = voice_sample();
    test_path(path, sizeof path, *state, "a/b/anna.s2voice");
    save(path, &voice, 1); /* it made the folder, and says so */
    save(path, &voice, 0);
    expect_sample_at(path);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    assert_int_equal(stat(test_path(path, sizeof path, *state, "a/b"), &st), 0);
    assert_int_equal(st.st_mode & 07777, 0700);
}

static void test_save_replaces_whole_files_only(void **state)
{
    char path[4096];
    char **names = NULL;
    size_t n = 0;
    sl_error err;
    s2_voice voice = voice_sample();
    test_path(path, sizeof path, *state, "anna.s2voice");
    save(path, &voice, 0);
    voice.n_frames = 0; /* refused: the old file stays */
    assert_int_equal(s2_voice_save(path, &voice, &err), SL_EINVAL);
    expect_sample_at(path);
    voice = voice_sample();
    voice.sample_rate = 24000;
    save(path, &voice, 0);
    assert_ok(s2_voice_load(path, &voice, &err), &err);
    assert_int_equal(voice.sample_rate, 24000);
    s2_voice_done(&voice);
    assert_ok(s2_voice_list(*state, &names, &n, &err), &err);
    assert_int_equal(n, 1);
    s2_voice_list_free(names, n);
}

/* The smallest disk there is; needs the right to mount. */
static void test_full_disk_keeps_the_old_voice(void **state)
{
    char disk[4096];
    char path[4200];
    char filler[4200];
    static char junk[65536];
    sl_error err;
    s2_voice voice = voice_sample();
    test_path(disk, sizeof disk, *state, "disk");
    assert_int_equal(mkdir(disk, 0700), 0);
    if (mount("tmpfs", disk, "tmpfs", 0, "size=32k") != 0) {
        print_message("skipped: mounting a small tmpfs is not allowed here\n");
        skip();
    }
    save(test_path(path, sizeof path, disk, "anna.s2voice"), &voice, 0);
    FILE *f = fopen(test_path(filler, sizeof filler, disk, "filler"), "wb");
    assert_non_null(f);
    setvbuf(f, NULL, _IONBF, 0);
    assert_true(fwrite(junk, 1, sizeof junk, f) < sizeof junk);
    fclose(f);
    int r = s2_voice_save(path, &voice, &err);
    s2_voice old = {0};
    int r_old = s2_voice_load(path, &old, NULL);
    char **names = NULL;
    size_t n = 0;
    int r_list = s2_voice_list(disk, &names, &n, NULL);
    assert_int_equal(umount(disk), 0);
    assert_int_equal(r, SL_ENOSPC);
    assert_non_null(strstr(err.msg, "anna.s2voice"));
    assert_int_equal(r_old, 0);
    voice_expect_sample(&old);
    s2_voice_done(&old);
    assert_int_equal(r_list, 0);
    assert_int_equal(n, 1);
    s2_voice_list_free(names, n);
}

static void test_load_of_what_is_no_voice(void **state)
{
    char path[4096];
    s2_voice voice = {0};
    sl_error err;
    assert_int_equal(
            s2_voice_load(test_path(path, sizeof path, *state, "none"), &voice, &err), SL_ENOENT);
    assert_int_equal(s2_voice_load(*state, &voice, &err), SL_EINVAL);
    test_path(path, sizeof path, *state, "fifo");
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(s2_voice_load(path, &voice, &err), SL_EINVAL); /* and does not wait */
    test_path(path, sizeof path, *state, "empty");
    test_write_file(path, "", 0);
    assert_int_equal(s2_voice_load(path, &voice, &err), SL_EFORMAT);
    assert_non_null(strstr(err.msg, path));
    test_path(path, sizeof path, *state, "huge");
    test_write_file(path, "S2VOICE", 8);
    assert_int_equal(truncate(path, (off_t)1 << 40), 0); /* sparse */
    assert_int_equal(s2_voice_load(path, &voice, &err), SL_ELIMIT);
    assert_null(voice.text);
}

static void test_G4_20_names(void **state)
{
    static const char *const good[] = {"a", "Z", "0", "_", "-", "anna", "Anna-2_b", "CONSOLE",
            "COM", "COM10", "COMx", "LPT", "nul-1",
            "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"};
    static const char *const bad[] = {"../../etc/passwd", "..%2fx", "/abs", "a/b", "a\\b", ".",
            "..", "", "a.b", ".hidden", "a b", " a", "a\n", "a:b", "~", "$HOME", "\xC3\xA9", "\xFF",
            "CON", "con", "nUl", "Aux", "PRN", "COM1", "lpt9",
            "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"};
    char long_name[301];
    memset(long_name, 'a', 300);
    long_name[300] = '\0';
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        assert_true(s2_voice_name_is_valid(good[i], strlen(good[i])));
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_false(s2_voice_name_is_valid(bad[i], strlen(bad[i])));
    }
    assert_false(s2_voice_name_is_valid(long_name, 300));
    assert_false(s2_voice_name_is_valid("v\0x", 3));
    assert_true(s2_voice_name_is_valid("ab/c", 2)); /* only the counted bytes */
}

static void test_G4_20_lookups_create_nothing(void **state)
{
    static const char *const bad[] = {
            "../../etc/passwd", "..%2fx", "/abs", "a/b", "a\\b", ".", "", "CON", "v\x01x"};
    char dir[4096];
    char *path = NULL;
    sl_error err;
    test_path(dir, sizeof dir, *state, "voices");
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(s2_voice_path(dir, bad[i], &path, &err), SL_EINVAL);
        assert_non_null(strstr(err.msg, "A-Z"));
        assert_null(strchr(err.msg, '\x01'));
        assert_null(path);
    }
    assert_ok(s2_voice_path(dir, "anna", &path, &err), &err);
    assert_int_equal(strncmp(path, dir, strlen(dir)), 0);
    assert_string_equal(path + strlen(dir), "/anna.s2voice");
    s2_voice voice = {0};
    assert_int_equal(s2_voice_load(path, &voice, &err), SL_ENOENT);
    s2_voice_path_free(path);
    s2_voice_path_free(NULL);
    assert_false(exists(dir));
}

static void test_G4_20_links_out_of_the_folder(void **state)
{
    char dir[4096];
    char secret[4200];
    char link_path[4200];
    char *path = NULL;
    char **names = NULL;
    size_t n = 0;
    sl_error err;
    s2_voice voice = voice_sample();
    test_path(dir, sizeof dir, *state, "voices");
    assert_int_equal(mkdir(dir, 0700), 0);
    save(test_path(secret, sizeof secret, *state, "secret.s2voice"), &voice, 0);
    save(test_path(link_path, sizeof link_path, dir, "real.s2voice"), &voice, 0);
    test_path(link_path, sizeof link_path, dir, "out.s2voice");
    assert_int_equal(symlink("../secret.s2voice", link_path), 0);
    assert_int_equal(s2_voice_path(dir, "out", &path, &err), SL_EACCES);
    assert_non_null(strstr(err.msg, "symbolic link"));
    test_path(link_path, sizeof link_path, dir, "gone.s2voice");
    assert_int_equal(symlink("nowhere", link_path), 0);
    assert_int_equal(s2_voice_path(dir, "gone", &path, &err), SL_EACCES);
    assert_null(path);
    assert_ok(s2_voice_list(dir, &names, &n, &err), &err);
    assert_int_equal(n, 1);
    assert_string_equal(names[0], "real");
    s2_voice_list_free(names, n);
}

static void test_list(void **state)
{
    static const char *const files[] = {"b.s2voice", "a.s2voice", "Z.s2voice", "a-1.s2voice",
            "a.s2voice.tmp", ".s2voice", "x.wav", "bad name.s2voice", "10.s2voice", "9.s2voice",
            "CON.s2voice", "a.S2VOICE"};
    static const char *const want[] = {"10", "9", "Z", "a", "a-1", "b"};
    char path[4096];
    char **names = NULL;
    size_t n = 7;
    sl_error err;
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        test_write_file(test_path(path, sizeof path, *state, files[i]), "x", 1);
    }
    assert_int_equal(mkdir(test_path(path, sizeof path, *state, "folder.s2voice"), 0700), 0);
    assert_ok(s2_voice_list(*state, &names, &n, &err), &err);
    assert_int_equal(n, sizeof want / sizeof want[0]);
    for (size_t i = 0; i < n; i++) {
        assert_string_equal(names[i], want[i]);
    }
    s2_voice_list_free(names, n);
}

static void test_list_of_no_folder(void **state)
{
    char path[4096];
    char **names = NULL;
    size_t n = 7;
    sl_error err;
    test_path(path, sizeof path, *state, "none");
    assert_ok(s2_voice_list(path, &names, &n, &err), &err);
    assert_int_equal(n, 0);
    s2_voice_list_free(names, n);
    assert_false(exists(path));
    test_write_file(path, "x", 1);
    assert_int_equal(s2_voice_list(path, &names, &n, &err), SL_EINVAL);
    assert_non_null(strstr(err.msg, "is a file"));
}

static void test_save_where_no_folder_can_be(void **state)
{
    char path[4096];
    sl_error err;
    s2_voice voice = voice_sample();
    test_write_file(test_path(path, sizeof path, *state, "file"), "x", 1);
    test_path(path, sizeof path, *state, "file/sub/anna.s2voice");
    assert_int_equal(s2_voice_save(path, &voice, &err), SL_EINVAL);
    assert_non_null(strstr(err.msg, "is a file"));
}

static void test_failed_allocations(void **state)
{
    char path[4096];
    s2_voice voice = voice_sample();
    int r = SL_ENOMEM;
    test_path(path, sizeof path, *state, "v/anna.s2voice");
    for (long i = 0; r == SL_ENOMEM && i < 100; i++) {
        sl__mem_fail_after(i);
        r = s2_voice_save(path, &voice, NULL);
        sl__mem_fail_after(-1);
        assert_int_equal(exists(path), r >= 0);
    }
    assert_true(r >= 0);
    r = SL_ENOMEM;
    for (long i = 0; r == SL_ENOMEM && i < 100; i++) {
        char **names = NULL;
        size_t n = 0;
        sl__mem_fail_after(i);
        r = s2_voice_list(path, &names, &n, NULL);
        sl__mem_fail_after(-1);
        assert_null(names);
    }
    assert_int_equal(r, SL_EINVAL);
}

#define dir_test(f) cmocka_unit_test_setup_teardown(f, make_dir, drop_dir)

int main(void)
{
    const struct CMUnitTest tests[] = {
            dir_test(test_save_and_load),
            dir_test(test_save_replaces_whole_files_only),
            dir_test(test_full_disk_keeps_the_old_voice),
            dir_test(test_load_of_what_is_no_voice),
            cmocka_unit_test(test_G4_20_names),
            dir_test(test_G4_20_lookups_create_nothing),
            dir_test(test_G4_20_links_out_of_the_folder),
            dir_test(test_list),
            dir_test(test_list_of_no_folder),
            dir_test(test_save_where_no_folder_can_be),
            dir_test(test_failed_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
