#define _GNU_SOURCE /* sched_setaffinity */

#include <sched.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "process_state.h"
#include "test_support.h"

#include "os/os_process.h"

static void test_private_memory_grows_with_touched_heap(void **state)
{
    const size_t n = 64u << 20;
    (void)state;
    sl__rss before = sl__process_rss();
    char *block = malloc(n);
    assert_non_null(block);
    volatile char *touched = block;
    for (size_t i = 0; i < n; i += 4096) {
        touched[i] = 1;
    }
    sl__rss after = sl__process_rss();
    free(block);
    assert_true(before.anon_bytes > 0 && before.file_bytes > 0);
    assert_true(after.anon_bytes >= before.anon_bytes + n / 2);
    assert_true(after.peak_bytes >= after.anon_bytes);
    /* The peak is remembered; the kernel's counters are exact to a few pages. */
    assert_true(sl__process_rss().peak_bytes >= before.anon_bytes + n / 2);
}

static int count_on_one_cpu(void *arg)
{
    cpu_set_t all;
    cpu_set_t one;
    (void)arg;
    CPU_ZERO(&all);
    CPU_ZERO(&one);
    if (sched_getaffinity(0, sizeof all, &all) != 0) {
        return 2;
    }
    for (size_t i = 0; i < CPU_SETSIZE; i++) {
        if (CPU_ISSET(i, &all)) {
            CPU_SET(i, &one);
            break;
        }
    }
    return sched_setaffinity(0, sizeof one, &one) == 0 && sl__n_cpus() == 1 ? 0 : 1;
}

static void test_processors_follow_the_affinity(void **state)
{
    (void)state;
    assert_true(sl__n_cpus() >= 1);
    assert_int_equal(process_in_child(count_on_one_cpu, NULL, false), 0);
}

static void test_pages(void **state)
{
    size_t n = sl__page_bytes();
    (void)state;
    assert_true(n >= 4096 && (n & (n - 1)) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_private_memory_grows_with_touched_heap),
            cmocka_unit_test(test_processors_follow_the_affinity),
            cmocka_unit_test(test_pages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
