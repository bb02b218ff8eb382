/* Populating one file, on this kernel and on kernels that stand-ins play. */
#define _DEFAULT_SOURCE /* struct rusage has its counts of faults */

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "page_fixture.h"
#include "process_state.h"
#include "test_support.h"

#include "os/os_page_cache.h"
#include "os/os_thread.h"
#include "source/map_os.h"
#include "source/populate_run.h"

#define N_PAGES 8192 /* 32 MiB */
#define PAGE    4096
#define KIB     UINT64_C(1024)

typedef struct fixture {
    page_file f;
    sl_ranges set;
    sl_populate_opts opts;
    sl_populate_result res;
    sl_error err;
} fixture;

/* What the stand-ins do and saw: they have no other place, since they play the kernel. */
static struct {
    int result;  /* of the call */
    int n_times; /* how often, then the kernel's own */
    int n_calls;
    int n_read_ahead;
    uint64_t largest;          /* window */
    uint64_t read_ahead_bytes; /* of the disk; 0 = the system does not say: as 8 MiB */
} fake;

/* Several threads populate at once. */
static pthread_mutex_t fake_lock = PTHREAD_MUTEX_INITIALIZER;

/* Our handler of SIGBUS. cmocka puts its own over it at the start of each test. */
static struct sigaction guard_action;

static int set_up(void **state)
{
    fixture *x = calloc(1, sizeof *x);
    assert_non_null(x);
    page_file_open(&x->f, (uint64_t)N_PAGES * PAGE);
    x->opts = (sl_populate_opts){.budget_bytes = UINT64_MAX, .n_threads = 1};
    memset(&fake, 0, sizeof fake);
    *state = x;
    return 0;
}

static int tear_down(void **state)
{
    fixture *x = *state;
    sl_ranges_done(&x->set);
    page_file_close(&x->f);
    free(x);
    return 0;
}

static void add(fixture *x, uint64_t first_page, uint64_t behind)
{
    assert_int_equal(sl_ranges_add(&x->set, first_page * x->f.page, behind * x->f.page), 0);
}

static int run(fixture *x, const sl__populate_calls *calls)
{
    sl_populate_file file = {.map = x->f.map, .ranges = &x->set};
    memset(&x->err, 0, sizeof x->err);
    return sl__populate_with(calls, &file, 1, &x->opts, &x->res, &x->err);
}

static int fake_populate(const sl__os_map *map, uint64_t begin, uint64_t end)
{
    pthread_mutex_lock(&fake_lock);
    bool is_faked = fake.n_times > 0;
    int result = fake.result;
    fake.n_calls++;
    fake.largest = end - begin > fake.largest ? end - begin : fake.largest;
    fake.n_times -= is_faked;
    pthread_mutex_unlock(&fake_lock);
    return is_faked ? result : sl__os_populate(map, begin, end);
}

static void fake_read_ahead(const sl__os_map *map, uint64_t begin, uint64_t end)
{
    pthread_mutex_lock(&fake_lock);
    fake.n_read_ahead++;
    pthread_mutex_unlock(&fake_lock);
    sl__os_read_ahead(map, begin, end);
}

static uint64_t fake_read_ahead_bytes(const sl__os_map *map)
{
    (void)map;
    return fake.read_ahead_bytes;
}

static const sl__populate_calls fake_calls = {.populate = fake_populate,
        .read_ahead = fake_read_ahead,
        .touch = sl__os_touch,
        .read_ahead_bytes = fake_read_ahead_bytes};

static void expect_exact(const fixture *x)
{
    size_t n = 0;
    unsigned char *marks = page_file_cached(&x->f, &n);
    page_expect(&x->f, marks, &x->set);
    free(marks);
    marks = page_file_present(&x->f, &n);
    page_expect(&x->f, marks, &x->set);
    free(marks);
}

static void test_exactly_the_pages_asked_for(void **state)
{
    fixture *x = *state;
    add(x, 0, 1);
    add(x, 7, 1000);
    add(x, 1001, 1002);
    add(x, 4000, 6000);
    add(x, N_PAGES - 1, N_PAGES);
    assert_ok(run(x, &sl__populate_system), &x->err);
    expect_exact(x);
    assert_int_equal(x->res.end, SL_POPULATE_DONE);
    assert_int_equal(x->res.populated_bytes, sl_ranges_bytes(&x->set));
    assert_int_equal(x->res.charged_bytes, sl_ranges_bytes(&x->set));
    assert_int_equal(x->res.cached_bytes, 0);
}

static void test_exactly_the_pages_asked_for_by_four_threads(void **state)
{
    fixture *x = *state;
    x->opts.n_threads = 4;
    x->opts.window_bytes = 64 * PAGE;
    for (uint64_t i = 0; i < 16; i++) {
        add(x, i * 512 + 3, i * 512 + 300);
    }
    assert_ok(run(x, &sl__populate_system), &x->err);
    expect_exact(x);
    assert_int_equal(x->res.populated_bytes, sl_ranges_bytes(&x->set));
}

/* A range long enough for the kernel's own read-ahead, which must not go on into what lies behind. */
static void test_a_long_range_ends_where_it_ends(void **state)
{
    fixture *x = *state;
    page_file_close(&x->f);
    page_file_open(&x->f, UINT64_C(72) << 20);
    add(x, 0, (48u << 20) / PAGE);
    for (unsigned n_threads = 1; n_threads <= 4; n_threads += 3) {
        page_drop(x->f.map);
        x->opts.n_threads = n_threads;
        assert_ok(run(x, &sl__populate_system), &x->err);
        expect_exact(x);
    }
}

static void test_windows_are_bounded(void **state)
{
    fixture *x = *state;
    add(x, 0, N_PAGES); /* a whole file: in order, whatever the disk reads ahead */
    x->opts.window_bytes = 256 * PAGE + 1;
    assert_ok(run(x, &fake_calls), &x->err);
    assert_int_equal(fake.largest, 256 * PAGE);
    assert_int_equal(fake.n_calls, N_PAGES / 256);
    assert_int_equal(fake.n_read_ahead, 0);
    page_drop(x->f.map);
    x->opts.window_bytes = UINT64_MAX;
    fake.largest = 0;
    assert_ok(run(x, &fake_calls), &x->err);
    assert_true(fake.largest <= 64u << 20);
    expect_exact(x);
}

static void test_G2_28_a_kernel_without_the_call(void **state)
{
    static const int results[] = {-EINVAL, -ENOSYS};
    fixture *x = *state;
    add(x, 5, 3000);
    add(x, 5000, 5100);
    for (size_t i = 0; i < 2; i++) {
        page_drop(x->f.map);
        memset(&fake, 0, sizeof fake);
        fake.result = results[i];
        fake.n_times = 1000;
        x->opts.window_bytes = 64 * PAGE;
        assert_ok(run(x, &fake_calls), &x->err);
        assert_int_equal(fake.n_calls, 1); /* asked once, then remembered */
        assert_true(fake.n_read_ahead > 0);
        assert_true(x->res.is_fallback);
        assert_int_equal(x->res.end, SL_POPULATE_DONE);
        expect_exact(x);
    }
}

static void test_G2_28_busy_kernels_are_asked_again(void **state)
{
    fixture *x = *state;
    add(x, 0, 100);
    fake.result = -EAGAIN;
    fake.n_times = 2;
    assert_ok(run(x, &fake_calls), &x->err);
    assert_int_equal(fake.n_calls, 3);
    fake.result = -EINTR;
    fake.n_times = 2;
    assert_ok(run(x, &fake_calls), &x->err);
    /* But not for ever. */
    fake.result = -EAGAIN;
    fake.n_times = 1000;
    fake.n_calls = 0;
    assert_true(run(x, &fake_calls) < 0);
    assert_true(fake.n_calls < 20);
    assert_int_equal(x->res.end, SL_POPULATE_FAILED);
}

static void expect_error(fixture *x, uint64_t read_ahead_bytes, int result, int code)
{
    memset(&fake, 0, sizeof fake);
    fake.read_ahead_bytes = read_ahead_bytes;
    fake.result = result;
    fake.n_times = 1000;
    assert_int_equal(run(x, &fake_calls), code);
    assert_int_equal(x->err.code, code);
    assert_non_null(strstr(x->err.msg, x->f.path));
    assert_int_equal(x->res.end, SL_POPULATE_FAILED);
    assert_int_equal(x->res.populated_bytes, 0);
    assert_false(x->res.is_fallback);
    assert_true(fake.n_calls < 20); /* the first window ended it */
}

static void test_G2_28_real_errors(void **state)
{
    static const struct {
        int result;
        int code;
    } rows[] = {{-EFAULT, SL_ECHANGED}, {-EIO, SL_EIO}, {-EHWPOISON, SL_EIO}, {-ENOMEM, SL_ENOMEM}};
    fixture *x = *state;
    add(x, 16, 2000);
    x->opts.window_bytes = 64 * PAGE;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        bool has_offset = rows[i].code != SL_ENOMEM;
        expect_error(x, 0, rows[i].result, rows[i].code);
        assert_true(!has_offset || x->err.offset == 16 * PAGE);
        /* Where the range has a middle, that is tried first. */
        expect_error(x, 128 * KIB, rows[i].result, rows[i].code);
        assert_true(!has_offset || x->err.offset == 16 * PAGE + 128 * KIB);
    }
}

/* The first page that fails is found within its window. */
static int bad_page_777(const sl__os_map *map, uint64_t begin, uint64_t end)
{
    return begin <= 777 * PAGE && end > 777 * PAGE ? -EFAULT : sl__os_populate(map, begin, end);
}

static void test_G2_26_the_offset_of_the_bad_page(void **state)
{
    static const sl__populate_calls calls = {.populate = bad_page_777,
            .read_ahead = sl__os_read_ahead,
            .touch = sl__os_touch,
            .read_ahead_bytes = sl__os_read_ahead_bytes};
    fixture *x = *state;
    add(x, 3, 3000);
    assert_int_equal(run(x, &calls), SL_ECHANGED);
    assert_int_equal(x->err.offset, 777 * PAGE);
}

static void expect_cut(fixture *x, const sl__populate_calls *calls)
{
    for (unsigned n_threads = 1; n_threads <= 4; n_threads += 3) {
        page_file_reopen(&x->f);
        x->opts.n_threads = n_threads;
        assert_int_equal(truncate(x->f.path, 4196), 0);
        assert_int_equal(run(x, calls), SL_ECHANGED);
        assert_int_equal(x->err.offset, 4196);
        assert_non_null(strstr(x->err.msg, x->f.path));
        assert_int_equal(x->res.end, SL_POPULATE_FAILED);
        assert_int_equal(truncate(x->f.path, (off_t)x->f.size), 0);
    }
}

static void test_G2_26_a_file_shorter_than_its_mapping(void **state)
{
    fixture *x = *state;
    add(x, 0, N_PAGES);
    x->opts.window_bytes = 64 * PAGE;
    expect_cut(x, &sl__populate_system);
}

static void test_G2_26_a_file_shorter_than_its_mapping_on_an_old_kernel(void **state)
{
    fixture *x = *state;
    add(x, 0, N_PAGES);
    x->opts.window_bytes = 64 * PAGE;
    fake.result = -EINVAL;
    fake.n_times = 1 << 20;
    assert_int_equal(sigaction(SIGBUS, &guard_action, NULL), 0);
    expect_cut(x, &fake_calls);
}

typedef struct watcher {
    uint64_t cancel_at;
    uint64_t last;
    uint64_t total;
    int n_calls;
} watcher;

static int watch(void *ud, uint64_t done, uint64_t total)
{
    watcher *w = ud;
    assert_true(done >= w->last && done <= total);
    w->last = done;
    w->total = total;
    w->n_calls++;
    return done >= w->cancel_at;
}

static void test_G2_29_progress_and_cancel(void **state)
{
    fixture *x = *state;
    for (unsigned n_threads = 1; n_threads <= 4; n_threads++) {
        /* Where others help, they may be through before this thread is asked again. */
        watcher w = {.cancel_at = n_threads == 1 ? (uint64_t)N_PAGES * PAGE / 4 : 0};
        page_drop(x->f.map);
        sl_ranges_done(&x->set);
        add(x, 0, N_PAGES);
        x->opts.n_threads = n_threads;
        x->opts.window_bytes = 64 * PAGE;
        x->opts.progress = (sl_progress){watch, &w};
        assert_int_equal(run(x, &sl__populate_system), SL_ECANCELLED);
        assert_int_equal(x->res.end, SL_POPULATE_CANCELLED);
        assert_int_equal(w.total, (uint64_t)N_PAGES * PAGE);
        assert_true(x->res.populated_bytes >= w.cancel_at);
        w = (watcher){.cancel_at = UINT64_MAX};
        assert_ok(run(x, &sl__populate_system), &x->err);
        assert_true(w.n_calls >= 1);
        assert_int_equal(x->res.populated_bytes, (uint64_t)N_PAGES * PAGE);
    }
}

static void test_cancelled_before_the_first_page(void **state)
{
    fixture *x = *state;
    watcher w = {.cancel_at = 0};
    add(x, 0, N_PAGES);
    x->opts.progress = (sl_progress){watch, &w};
    assert_int_equal(run(x, &fake_calls), SL_ECANCELLED);
    assert_int_equal(fake.n_calls, 0);
    assert_int_equal(w.n_calls, 1);
}

/* Files of /proc, whole; free() it. */
static char *read_proc(const char *path)
{
    size_t n = 0;
    size_t cap = 1u << 20;
    char *text = calloc(1, cap);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    assert_non_null(text);
    while (n + 1 < cap && fgets(text + n, (int)(cap - n), f)) {
        n += strlen(text + n);
    }
    fclose(f);
    return text;
}

/* Somebody who may lock nothing. */
static int populate_without_locks(void *arg)
{
    fixture *x = arg;
    const struct rlimit none = {0, 0};
    if (setrlimit(RLIMIT_MEMLOCK, &none) != 0 || run(x, &sl__populate_system) != 0) {
        return 1;
    }
    char *status = read_proc("/proc/self/status");
    const char *locked = strstr(status, "VmLck:");
    bool is_none = locked && locked[strspn(locked, "VmLck: \t")] == '0';
    free(status);
    return is_none && x->res.end == SL_POPULATE_DONE ? 0 : 1;
}

static void test_G2_31_nothing_is_locked(void **state)
{
    fixture *x = *state;
    size_t n = 0;
    add(x, 0, N_PAGES);
    assert_int_equal(process_in_child(populate_without_locks, x, true), 0);
    unsigned char *marks = page_file_cached(&x->f, &n);
    page_expect(&x->f, marks, &x->set);
    free(marks);
}

/* The flags that the kernel has for the mapping: "rd mr sr ...". Of the caller; free() it. */
static char *flags_of(const sl_map *map)
{
    char begin[40];
    char *smaps = read_proc("/proc/self/smaps");
    snprintf(begin, sizeof begin, "%lx-", (unsigned long)(uintptr_t)sl_map_data(map));
    const char *at = strstr(smaps, begin);
    at = at ? strstr(at, "VmFlags:") : NULL;
    assert_non_null(at);
    char *flags = strndup(at, strcspn(at, "\n"));
    free(smaps);
    return flags;
}

/* A page read for itself is one major fault; read ahead, 32 of them are one, or what little the disk is set to. */
static void test_G2_33_reads_are_large(void **state)
{
    fixture *x = *state;
    struct rusage before;
    struct rusage after;
    uint64_t at_once = sl__os_read_ahead_bytes(sl__map_os(x->f.map));
    at_once = at_once > 0 && at_once < 128 * KIB ? at_once : 128 * KIB;
    char *flags = flags_of(x->f.map);
    assert_null(strstr(flags, " rr"));
    free(flags);
    add(x, 0, N_PAGES);
    assert_int_equal(getrusage(RUSAGE_SELF, &before), 0);
    assert_ok(run(x, &sl__populate_system), &x->err);
    assert_int_equal(getrusage(RUSAGE_SELF, &after), 0);
    assert_in_range(after.ru_majflt - before.ru_majflt, 0, x->f.size / at_once);
    /* The first pass reads nothing any more. */
    volatile const char *data = sl_map_data(x->f.map);
    unsigned sum = 0;
    for (size_t i = 0; i < N_PAGES; i++) {
        sum += (unsigned char)data[i * PAGE];
    }
    assert_true(sum > 0);
    assert_int_equal(getrusage(RUSAGE_SELF, &before), 0);
    assert_int_equal(before.ru_majflt, after.ru_majflt);
}

/* One call over all of it would stop after a read-ahead window; what was asked for in pieces comes whole. */
static void test_G2_36_read_ahead_goes_to_the_end(void **state)
{
    fixture *x = *state;
    uint64_t cached = 0;
    add(x, 0, N_PAGES);
    sl__os_read_ahead(sl__map_os(x->f.map), 0, x->f.size);
    for (int i = 0; i < 1000 && cached < x->f.size; i++) {
        sl__sleep_ns(10000000);
        assert_ok(sl_page_cache_cached(x->f.map, 0, x->f.size, &cached, &x->err), &x->err);
    }
    assert_int_equal(cached, x->f.size);
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
            CASE(test_exactly_the_pages_asked_for),
            CASE(test_exactly_the_pages_asked_for_by_four_threads),
            CASE(test_a_long_range_ends_where_it_ends),
            CASE(test_windows_are_bounded),
            CASE(test_G2_28_a_kernel_without_the_call),
            CASE(test_G2_28_busy_kernels_are_asked_again),
            CASE(test_G2_28_real_errors),
            CASE(test_G2_26_the_offset_of_the_bad_page),
            CASE(test_G2_26_a_file_shorter_than_its_mapping),
            CASE(test_G2_26_a_file_shorter_than_its_mapping_on_an_old_kernel),
            CASE(test_G2_29_progress_and_cancel),
            CASE(test_cancelled_before_the_first_page),
            CASE(test_G2_31_nothing_is_locked),
            CASE(test_G2_33_reads_are_large),
            CASE(test_G2_36_read_ahead_goes_to_the_end),
    };
    if (!page_files_can_be_dropped()) {
        return 77;
    }
    sl_map *first = NULL;
    if (sl_map_open("/proc/self/exe", &first, NULL) < 0 ||
            sigaction(SIGBUS, NULL, &guard_action) != 0) {
        return 1;
    }
    sl_map_close(&first);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
