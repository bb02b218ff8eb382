/* Split sets: groups G1-27, G1-28 and G1-30. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gguf_bytes.h"
#include "process_state.h"

#include "base/mem.h"
#include "source/split_set.h"

#include "sluice/model.h"

#define N_SHARDS 3

/* A number as metadata: absent, an integer of some type, or text. */
typedef struct number {
    int type; /* -1 = absent */
    const char *text;
    int64_t v;
} number;

typedef struct shard {
    number count;
    number no;
    number tensors;
    const char *arch; /* NULL = absent */
    uint32_t alignment;
    unsigned first; /* number of its first tensor */
    unsigned n;
} shard;

typedef struct fixture {
    char *dir;
    char paths[N_SHARDS][4200];
    shard shards[N_SHARDS];
    sl_model *model;
} fixture;

static void put_number(gguf_bytes *g, const char *key, number v)
{
    if (v.type < 0) {
        return;
    }
    gb_key(g, key, (uint32_t)v.type);
    if (v.type == SL_GGUF_STR) {
        gb_str(g, v.text);
    } else if (v.type == SL_GGUF_U64 || v.type == SL_GGUF_I64) {
        gb_u64(g, (uint64_t)v.v);
    } else if (v.type == SL_GGUF_U16) {
        gb_u16(g, (unsigned)v.v & 0xFFFF);
    } else if (v.type == SL_GGUF_U8) {
        gb_u8(g, (unsigned)v.v & 0xFF);
    } else {
        gb_u32(g, (uint32_t)v.v);
    }
}

static void write_shard(const char *path, const shard *s)
{
    const uint64_t ne[] = {4};
    gguf_bytes g = gb_start(3, s->n,
            (uint64_t)(s->count.type >= 0) + (s->no.type >= 0) + (s->tensors.type >= 0) +
                    (s->arch != NULL) + (s->alignment != 32));
    put_number(&g, "split.count", s->count);
    put_number(&g, "split.no", s->no);
    put_number(&g, "split.tensors.count", s->tensors);
    if (s->arch) {
        gb_key_str(&g, "general.architecture", s->arch);
    }
    if (s->alignment != 32) {
        gb_key_u32(&g, "general.alignment", s->alignment);
    }
    for (unsigned i = 0; i < s->n; i++) {
        char name[16];
        snprintf(name, sizeof name, "t%u", s->first + i);
        gb_tensor(&g, name, 1, ne, 0, (uint64_t)i * s->alignment);
    }
    for (unsigned i = 0; i < s->n; i++) {
        gb_pad(&g, s->alignment);
        gb_fill(&g, (int)(s->first + i + 1), 16);
    }
    test_write_file(path, g.p, g.n);
    gb_done(&g);
}

/* Three shards with 3 + 2 + 2 tensors, written in the order 3, 1, 2. */
static void write_set(fixture *f)
{
    write_shard(f->paths[2], &f->shards[2]);
    write_shard(f->paths[0], &f->shards[0]);
    write_shard(f->paths[1], &f->shards[1]);
}

static int set_up(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    f->dir = test_dir_create();
    for (unsigned i = 0; i < N_SHARDS; i++) {
        snprintf(f->paths[i], sizeof f->paths[i], "%s/m-%05u-of-00003.gguf", f->dir, i + 1);
        f->shards[i] = (shard){
                .count = {SL_GGUF_U16, NULL, 3},
                .no = {SL_GGUF_U16, NULL, i},
                .tensors = {SL_GGUF_I32, NULL, 7},
                .arch = "test",
                .alignment = 32,
                .first = i == 0 ? 0 : 1 + 2 * i,
                .n = i == 0 ? 3 : 2,
        };
    }
    write_set(f);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    fixture *f = *state;
    sl_model_close(&f->model);
    test_dir_remove(f->dir);
    free(f);
    return 0;
}

static void expect_whole(fixture *f, const char *path)
{
    sl_error err = {0};
    assert_ok(sl_model_open(path, &f->model, &err), &err);
    assert_int_equal(sl_model_n_files(f->model), N_SHARDS);
    assert_int_equal(sl_model_n_tensors(f->model), 7);
    for (unsigned i = 0; i < 7; i++) {
        char name[16];
        unsigned char data[16];
        snprintf(name, sizeof name, "t%u", i);
        memset(data, (int)i + 1, sizeof data);
        const sl_tensor *t = sl_model_find(f->model, name);
        assert_non_null(t);
        assert_ptr_equal(t, sl_model_tensor_at(f->model, i));
        assert_memory_equal(sl_model_data(f->model, t), data, sizeof data);
    }
    sl_model_close(&f->model);
}

/* Refused through every shard, with all needles in the message and nothing left open. */
static void expect_refused_one(fixture *f, const char *path, const char *a, const char *b)
{
    sl_error err = {0};
    size_t n_fds = process_n_fds();
    int r = sl_model_open(path, &f->model, &err);
    if (r >= 0) {
        fail_msg("accepted, but should say '%s'", a);
    }
    assert_null(f->model);
    expect_good_message(&err, a, b);
    assert_int_equal(process_n_fds(), n_fds);
    assert_false(process_maps(f->dir));
}

static void expect_refused(fixture *f, const char *a, const char *b)
{
    for (unsigned i = 0; i < N_SHARDS; i++) {
        expect_refused_one(f, f->paths[i], a, b);
    }
}

static void test_G1_27_opened_through_any_shard(void **state)
{
    fixture *f = *state;
    for (unsigned i = 0; i < N_SHARDS; i++) {
        expect_whole(f, f->paths[i]);
    }
    expect_refused_one(f, f->dir, "a directory", "");
}

static void test_G1_27_junk_beside_the_shards_changes_nothing(void **state)
{
    const char *const junk[] = {"m-00004-of-00003.gguf", "m-00001-of-00002.gguf",
            "a-00001-of-00003.gguf", "m-00002-of-00003.gguf.part", "m.gguf"};
    fixture *f = *state;
    for (size_t i = 0; i < sizeof junk / sizeof junk[0]; i++) {
        char path[4200];
        test_write_file(test_path(path, sizeof path, f->dir, junk[i]), "junk", 4);
    }
    expect_whole(f, f->paths[1]);
}

static void test_G1_28_relative_paths_and_other_folders(void **state)
{
    fixture *f = *state;
    char path[4300];
    int here = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(here >= 0);
    assert_int_equal(chdir("/"), 0);
    expect_whole(f, f->paths[0]);
    snprintf(path, sizeof path, "..%s", f->paths[1]);
    expect_whole(f, path);
    assert_int_equal(chdir(f->dir), 0);
    expect_whole(f, "m-00002-of-00003.gguf");
    expect_whole(f, "./m-00003-of-00003.gguf");
    assert_int_equal(fchdir(here), 0);
    close(here);
}

static void make_link(const char *dir, const char *name, const char *target, char *path)
{
    test_path(path, 4200, dir, name);
    assert_int_equal(symlink(target, path), 0);
}

static void test_G1_28_links_to_a_shard(void **state)
{
    fixture *f = *state;
    char path[4200];
    char second[4200];
    char *other = test_dir_create();
    make_link(other, "m-00002-of-00003.gguf", f->paths[1], path);
    expect_whole(f, path);
    /* A link of any name: the target's name and folder count. */
    make_link(other, "anything", f->paths[2], path);
    expect_whole(f, path);
    /* A link to a link. */
    make_link(other, "chain", "anything", second);
    expect_whole(f, second);
    /* Links with shard names to files without: the folder of the links counts. */
    char moved[4300];
    for (unsigned i = 0; i < N_SHARDS; i++) {
        char name[32];
        snprintf(moved, sizeof moved, "%s/blob%u", f->dir, i);
        assert_int_equal(rename(f->paths[i], moved), 0);
        snprintf(name, sizeof name, "n-%05u-of-00003.gguf", i + 1);
        make_link(other, name, moved, path);
    }
    expect_whole(f, path);
    /* Both places together: one shard beside the link, the others beside its target. */
    test_dir_remove(other);
}

static void test_G1_28_shards_in_both_folders_of_a_link(void **state)
{
    fixture *f = *state;
    char path[4200];
    char link[4200];
    char *other = test_dir_create();
    make_link(other, "m-00001-of-00003.gguf", f->paths[0], link);
    test_path(path, sizeof path, other, "m-00002-of-00003.gguf");
    assert_int_equal(rename(f->paths[1], path), 0);
    expect_whole(f, link);
    assert_int_equal(unlink(path), 0);
    expect_refused_one(f, link, "1 of 3 shards cannot be opened", path);
    test_dir_remove(other);
}

static void test_G1_28_missing_shards_are_all_named(void **state)
{
    fixture *f = *state;
    assert_int_equal(unlink(f->paths[0]), 0);
    expect_refused_one(f, f->paths[1], f->paths[0], "No such file");
    assert_int_equal(mkdir(f->paths[0], 0700), 0);
    expect_refused_one(f, f->paths[1], f->paths[0], "a directory");
    assert_int_equal(unlink(f->paths[2]), 0);
    assert_int_equal(mkfifo(f->paths[2], 0600), 0);
    expect_refused_one(f, f->paths[1], "2 of 3 shards cannot be opened", f->paths[0]);
    expect_refused_one(f, f->paths[1], f->paths[2], "a FIFO");
    test_write_file(f->paths[1], "", 0);
    expect_refused_one(f, f->paths[1], f->paths[1], "file too short: have 0");
}

static void test_G1_28_an_empty_and_a_damaged_sibling(void **state)
{
    fixture *f = *state;
    test_write_file(f->paths[1], "", 0);
    expect_refused_one(f, f->paths[0], "1 of 3 shards", f->paths[1]);
    test_write_file(f->paths[1], "not a model", 11);
    expect_refused_one(f, f->paths[0], f->paths[1], "not a GGUF");
    write_shard(f->paths[1], &f->shards[1]);
    struct stat st;
    assert_int_equal(stat(f->paths[1], &st), 0);
    assert_int_equal(truncate(f->paths[1], st.st_size - 1), 0);
    expect_refused(f, f->paths[1], "truncated");
}

static int open_set_with_unreadable_shard(void *arg)
{
    fixture *f = arg;
    sl_error err = {0};
    int r = sl_model_open(f->paths[0], &f->model, &err);
    return r == SL_EACCES && strstr(err.msg, f->paths[1]) && strstr(err.msg, "Permission denied")
                   ? 0
                   : 1;
}

static void test_G1_28_an_unreadable_shard(void **state)
{
    fixture *f = *state;
    assert_int_equal(chmod(f->dir, 0755), 0);
    assert_int_equal(chmod(f->paths[1], 0), 0);
    assert_int_equal(process_in_child(open_set_with_unreadable_shard, f, true), 0);
}

static void test_G1_28_more_missing_shards_than_a_line_holds(void **state)
{
    fixture *f = *state;
    char path[4200];
    shard s = f->shards[0];
    s.count.v = 60000;
    test_path(path, sizeof path, f->dir, "big-00007-of-60000.gguf");
    s.no.v = 6;
    write_shard(path, &s);
    sl_error err = {0};
    assert_int_equal(sl_model_open(path, &f->model, &err), SL_ENOENT);
    expect_good_message(&err, "59999 of 60000 shards cannot be opened", "big-00001-of-60000.gguf");
    expect_good_message(&err, "also shards ", ", ...");
}

static void test_G1_30_a_first_shard_without_tensors(void **state)
{
    fixture *f = *state;
    f->shards[0].n = 0;
    f->shards[1].first = 0;
    f->shards[1].n = 5;
    write_set(f);
    expect_whole(f, f->paths[0]);
    expect_whole(f, f->paths[2]);
}

static void test_G1_30_integers_of_any_width(void **state)
{
    const int types[] = {
            SL_GGUF_U8, SL_GGUF_U16, SL_GGUF_U32, SL_GGUF_I32, SL_GGUF_U64, SL_GGUF_I64};
    fixture *f = *state;
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        for (unsigned k = 0; k < N_SHARDS; k++) {
            f->shards[k].count.type = types[i];
            f->shards[k].no.type = types[(i + 1) % 6];
            f->shards[k].tensors.type = types[(i + 2) % 6];
        }
        write_set(f);
        expect_whole(f, f->paths[i % N_SHARDS]);
    }
}

static void test_G1_30_numbers_of_another_type(void **state)
{
    fixture *f = *state;
    f->shards[1].count = (number){SL_GGUF_STR, "3", 0};
    write_set(f);
    expect_refused(f, "split.count", "string");
    f->shards[1].count = (number){SL_GGUF_I32, NULL, -3};
    write_set(f);
    expect_refused(f, "split.count", "-3");
    f->shards[1].count = (number){SL_GGUF_F32, NULL, 3};
    write_set(f);
    expect_refused(f, "split.count", "f32");
    f->shards[1].count = (number){SL_GGUF_U16, NULL, 3};
    f->shards[1].no = (number){SL_GGUF_STR, "1", 0};
    write_set(f);
    expect_refused(f, "split.no", "string");
    f->shards[1].no = (number){SL_GGUF_U16, NULL, 1};
    f->shards[2].tensors = (number){SL_GGUF_STR, "7", 0};
    write_set(f);
    expect_refused(f, "split.tensors.count", "string");
}

static void test_G1_30_numbers_that_disagree(void **state)
{
    fixture *f = *state;
    f->shards[2].no.v = 1;
    write_set(f);
    expect_refused(f, "split.no is 1, need 2", f->paths[2]);
    f->shards[2].no.v = 3;
    write_set(f);
    expect_refused(f, "split.no is 3, need 2", f->paths[2]);
    f->shards[2].no.v = 2;
    f->shards[1].count.v = 2;
    write_set(f);
    expect_refused(f, "split.count is 2, need 3", f->paths[1]);
    f->shards[1].count.v = 0;
    write_set(f);
    expect_refused(f, "split.count is 0, need 3", f->paths[1]);
    f->shards[1].count.v = 3;
    f->shards[0].tensors.v = 8;
    write_set(f);
    expect_refused(f, "split.tensors.count is 8, need 7", f->paths[0]);
}

static void test_G1_30_numbers_that_are_missing(void **state)
{
    fixture *f = *state;
    f->shards[1].count.type = -1;
    write_set(f);
    expect_refused(f, "'split.count' is missing", f->paths[1]);
    f->shards[1].count.type = SL_GGUF_U16;
    f->shards[1].no.type = -1;
    write_set(f);
    expect_refused(f, "'split.no' is missing", f->paths[1]);
    f->shards[1].no.type = SL_GGUF_U16;
    for (unsigned i = 0; i < N_SHARDS; i++) {
        f->shards[i].tensors.type = -1;
    }
    write_set(f);
    expect_whole(f, f->paths[1]);
}

static void test_G1_30_alignment_is_each_shards_own(void **state)
{
    fixture *f = *state;
    f->shards[1].alignment = 64;
    f->shards[2].alignment = 4096;
    write_set(f);
    expect_whole(f, f->paths[0]);
}

static void test_G1_30_architectures(void **state)
{
    fixture *f = *state;
    f->shards[1].arch = NULL;
    write_set(f);
    expect_whole(f, f->paths[1]);
    f->shards[1].arch = "other";
    write_set(f);
    expect_refused(f, "general.architecture is 'other', but 'test'", f->paths[1]);
}

static void test_G1_30_a_tensor_in_two_shards(void **state)
{
    fixture *f = *state;
    f->shards[2].first = 4;
    write_set(f);
    expect_refused(f, "tensor 't4' is in two shards", f->paths[1]);
}

static void test_G1_30_names_that_disagree_with_the_metadata(void **state)
{
    fixture *f = *state;
    char path[4200];
    sl_error err = {0};
    test_path(path, sizeof path, f->dir, "renamed.gguf");
    assert_int_equal(rename(f->paths[0], path), 0);
    expect_refused_one(f, path, "split.count is 3", "-of-00003.gguf");
    /* Shard 1 under the name of shard 2 of another count. */
    char other[4200];
    test_path(other, sizeof other, f->dir, "m-00002-of-00004.gguf");
    assert_int_equal(rename(path, other), 0);
    expect_refused_one(f, other, "split.count is 3, need 4", "as its name says");
    /* A set of one is a file like any other, whatever it is called. */
    f->shards[0].count.v = 1;
    f->shards[0].tensors.v = 3;
    test_path(path, sizeof path, f->dir, "single.gguf");
    write_shard(path, &f->shards[0]);
    assert_ok(sl_model_open(path, &f->model, &err), &err);
    assert_int_equal(sl_model_n_files(f->model), 1);
    sl_model_close(&f->model);
    test_path(path, sizeof path, f->dir, "single-00001-of-00001.gguf");
    write_shard(path, &f->shards[0]);
    assert_ok(sl_model_open(path, &f->model, &err), &err);
}

static void test_every_failing_allocation(void **state)
{
    fixture *f = *state;
    char link[4200];
    make_link(f->dir, "link", f->paths[1], link);
    int r = SL_ENOMEM;
    long n = 0;
    size_t n_fds = process_n_fds();
    for (; r == SL_ENOMEM; n++) {
        sl_error err = {0};
        sl__mem_fail_after(n);
        r = sl_model_open(link, &f->model, &err);
        sl__mem_fail_after(-1);
        assert_int_equal(err.code, r);
        assert_int_equal(process_n_fds(), n_fds + (r == 0 ? N_SHARDS : 0));
    }
    assert_int_equal(r, 0);
    assert_true(n > 20);
}

static void test_a_set_can_be_closed_twice(void **state)
{
    fixture *f = *state;
    sl__split_set set = {0};
    sl_error err = {0};
    sl__split_set_done(&set);
    assert_ok(sl__split_set_open(f->paths[0], &set, &err), &err);
    assert_int_equal(set.n_files, N_SHARDS);
    sl__split_set_done(&set);
    sl__split_set_done(&set);
    assert_int_equal(set.n_files, 0);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
            TEST(test_G1_27_opened_through_any_shard),
            TEST(test_G1_27_junk_beside_the_shards_changes_nothing),
            TEST(test_G1_28_relative_paths_and_other_folders),
            TEST(test_G1_28_links_to_a_shard),
            TEST(test_G1_28_shards_in_both_folders_of_a_link),
            TEST(test_G1_28_missing_shards_are_all_named),
            TEST(test_G1_28_an_empty_and_a_damaged_sibling),
            TEST(test_G1_28_an_unreadable_shard),
            TEST(test_G1_28_more_missing_shards_than_a_line_holds),
            TEST(test_G1_30_a_first_shard_without_tensors),
            TEST(test_G1_30_integers_of_any_width),
            TEST(test_G1_30_numbers_of_another_type),
            TEST(test_G1_30_numbers_that_disagree),
            TEST(test_G1_30_numbers_that_are_missing),
            TEST(test_G1_30_alignment_is_each_shards_own),
            TEST(test_G1_30_architectures),
            TEST(test_G1_30_a_tensor_in_two_shards),
            TEST(test_G1_30_names_that_disagree_with_the_metadata),
            TEST(test_every_failing_allocation),
            TEST(test_a_set_can_be_closed_twice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
