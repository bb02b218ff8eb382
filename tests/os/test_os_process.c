#define _GNU_SOURCE /* sched_setaffinity */

#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

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

/* Whether the kernel was asked for large pages behind exactly this memory: a mapping with the flag hg. */
static bool has_advice(const unsigned char *begin, const unsigned char *end)
{
    char line[512];
    char range[64];
    bool is_here = false;
    bool has_flag = false;
    FILE *f = fopen("/proc/self/smaps", "re");
    assert_non_null(f);
    snprintf(range, sizeof range, "%" PRIxPTR "-%" PRIxPTR " ", (uintptr_t)begin, (uintptr_t)end);
    while (fgets(line, sizeof line, f)) {
        is_here = is_here || strncmp(line, range, strlen(range)) == 0;
        if (is_here && strncmp(line, "VmFlags:", 8) == 0) {
            has_flag = strstr(line, " hg") != NULL;
            break;
        }
    }
    fclose(f);
    return has_flag;
}

static void test_large_pages_are_asked_for_inside_the_memory_alone(void **state)
{
    (void)state;
    const size_t n = 8u << 20;
    size_t page = sl__page_bytes();
    unsigned char *data = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(data != MAP_FAILED);
    sl__advise_large_pages(data + 1, page); /* no whole page in it */
    assert_false(has_advice(data, data + page));
    sl__advise_large_pages(data + page + 1, n - 3 * page);
    bool can = access("/sys/kernel/mm/transparent_hugepage/enabled", F_OK) == 0;
    assert_int_equal(has_advice(data + 2 * page, data + n - 2 * page), can);
    memset(data, 0x5a, n);
    assert_int_equal(data[n / 2], 0x5a);
    munmap(data, n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_private_memory_grows_with_touched_heap),
            cmocka_unit_test(test_processors_follow_the_affinity),
            cmocka_unit_test(test_pages),
            cmocka_unit_test(test_large_pages_are_asked_for_inside_the_memory_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
