/* The reads that a route from the disk is set against: all bytes, whatever the threads, and one line when they fail. */
#include "bench_disk.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "test_support.h"

#define PIECES      5
#define PIECE_BYTES ((1 << 20) + 4097) /* two reads */
#define FILE_BYTES  (PIECES * PIECE_BYTES)

static const size_t thread_counts[] = {1, 2, 3, 8};
#define N_COUNTS (sizeof thread_counts / sizeof thread_counts[0])

typedef struct files {
    char *dir;
    char path[512];
    sl_map *map;
} files;

static int set_up(void **state)
{
    files *f = calloc(1, sizeof *f);
    char *bytes = calloc(FILE_BYTES, 1);
    sl_error err = {0};
    assert_non_null(f);
    assert_non_null(bytes);
    f->dir = test_dir_create();
    test_path(f->path, sizeof f->path, f->dir, "weights.bin");
    test_write_file(f->path, bytes, FILE_BYTES);
    free(bytes);
    assert_ok(sl_map_open(f->path, &f->map, &err), &err);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    files *f = *state;
    sl_map_close(&f->map);
    test_dir_remove(f->dir);
    free(f);
    return 0;
}

/* Reads the whole file, the piece at its end as the one with this number. */
static int read_file(const files *f, size_t n_threads, size_t i_last, bool (*is_cancelled)(void *),
        sl_error *err)
{
    sl__piece pieces[PIECES];
    sl__slice slices[PIECES];
    bench_disk *disk = NULL;
    const sl__transfer_hooks hooks = {.is_cancelled = is_cancelled};
    for (size_t i = 0; i < PIECES; i++) {
        size_t i_place = (i + PIECES - 1 - i_last) % PIECES;
        pieces[i] = (sl__piece){.map = f->map,
                .offset = (uint64_t)i_place * PIECE_BYTES,
                .n_bytes = PIECE_BYTES,
                .buffer_offset = (uint64_t)i * PIECE_BYTES};
        slices[i] = (sl__slice){.pieces = &pieces[i], .n_pieces = 1};
    }
    assert_ok(bench_disk_create(n_threads, &disk, err), err);
    int r = bench_disk_run(disk, slices, PIECES, &hooks, err);
    bench_disk_free(&disk);
    assert_null(disk);
    return r;
}

static void test_a_whole_file(void **state)
{
    sl_error err = {0};
    for (size_t i = 0; i < N_COUNTS; i++) {
        assert_ok(read_file(*state, thread_counts[i], PIECES - 1, NULL, &err), &err);
    }
}

/* Whichever piece has the byte that is gone: so each is read to its end. */
static void test_a_file_that_was_cut(void **state)
{
    const files *f = *state;
    char sizes[100];
    snprintf(sizes, sizeof sizes, "had %d bytes when it was opened and has %d now", FILE_BYTES,
            FILE_BYTES - 1);
    assert_int_equal(truncate(f->path, FILE_BYTES - 1), 0);
    for (size_t i = 0; i < N_COUNTS; i++) {
        for (size_t k = 0; k < PIECES; k++) {
            sl_error err = {0};
            assert_int_equal(read_file(f, thread_counts[i], k, NULL, &err), SL_ECHANGED);
            assert_int_equal(err.code, SL_ECHANGED);
            assert_non_null(strstr(err.msg, f->path));
            assert_non_null(strstr(err.msg, sizes));
            assert_null(strchr(err.msg, '\n'));
        }
    }
}

static bool yes(void *ud)
{
    (void)ud;
    return true;
}

static void test_cancelled(void **state)
{
    sl_error err = {0};
    assert_int_equal(read_file(*state, 1, 0, yes, &err), SL_ECANCELLED);
}

/* What failed once reads again. */
static void test_again(void **state)
{
    const files *f = *state;
    sl__piece piece = {.map = f->map, .offset = FILE_BYTES, .n_bytes = 1};
    const sl__slice slice = {.pieces = &piece, .n_pieces = 1};
    const sl__transfer_hooks hooks = {0};
    bench_disk *disk = NULL;
    sl_error err = {0};
    assert_ok(bench_disk_create(2, &disk, &err), &err);
    assert_int_equal(bench_disk_run(disk, &slice, 1, &hooks, &err), SL_EINVAL);
    piece.offset--;
    assert_ok(bench_disk_run(disk, &slice, 1, &hooks, &err), &err);
    bench_disk_free(&disk);
}

static void test_no_memory(void **state)
{
    (void)state;
    for (long n = 0; n < 3; n++) {
        bench_disk *disk = NULL;
        sl_error err = {0};
        sl__mem_fail_after(n);
        int r = bench_disk_create(2, &disk, &err);
        sl__mem_fail_after(-1);
        assert_int_equal(r, SL_ENOMEM);
        assert_null(disk);
        assert_non_null(strstr(err.msg, "needed"));
    }
    bench_disk_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test_setup_teardown(test_a_whole_file, set_up, tear_down),
            cmocka_unit_test_setup_teardown(test_a_file_that_was_cut, set_up, tear_down),
            cmocka_unit_test_setup_teardown(test_cancelled, set_up, tear_down),
            cmocka_unit_test_setup_teardown(test_again, set_up, tear_down),
            cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
