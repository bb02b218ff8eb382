/*
 * The handler of a process is tested in children: each starts without ours, with the handler that the case
 * wants before it. Wait statuses tell how the child ended.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "process_state.h"
#include "test_support.h"

#include "base/mem.h"
#include "os/os_guard.h"
#include "os/os_process.h"

enum {
    CAUGHT_BEFORE = 42,
    SURVIVED = 7
};

typedef struct file_map {
    char *data;
    size_t n;
    int fd;
} file_map;

/* A mapping of n pages whose file is then cut to nothing. */
static file_map vanished_map(size_t n_pages)
{
    char name[] = "/tmp/sluice-guard-XXXXXX";
    file_map m = {.n = n_pages * sl__page_bytes(), .fd = mkstemp(name)};
    if (m.fd < 0 || unlink(name) != 0 || ftruncate(m.fd, (off_t)m.n) != 0) {
        _exit(3);
    }
    m.data = mmap(NULL, m.n, PROT_READ, MAP_SHARED, m.fd, 0);
    if (m.data == MAP_FAILED || ftruncate(m.fd, 0) != 0) {
        _exit(4);
    }
    return m;
}

static int touch(const file_map *m, size_t at)
{
    return *(const volatile char *)(m->data + at);
}

static void on_info(int number, siginfo_t *info, void *context)
{
    (void)context;
    _exit(number == SIGBUS && info->si_addr ? CAUGHT_BEFORE : 5);
}

static void on_plain(int number)
{
    _exit(number == SIGBUS ? CAUGHT_BEFORE : 5);
}

static void handle_before(void (*handler)(int))
{
    struct rlimit no_core = {0};
    struct sigaction action = {.sa_handler = handler};
    setrlimit(RLIMIT_CORE, &no_core);
    sigaction(SIGBUS, &action, NULL);
}

static sl__guard *add(const file_map *m)
{
    sl__guard *guard = NULL;
    if (sl__guard_add(m->data, m->n, m->fd, &guard, NULL) < 0) {
        _exit(6);
    }
    return guard;
}

static int guarded_pages_read_as_zeros(void *arg)
{
    (void)arg;
    handle_before(SIG_DFL);
    file_map m = vanished_map(4);
    sl__guard *guard = add(&m);
    if (sl__guard_first_lost(guard) != SL_GUARD_INTACT) {
        return 10;
    }
    size_t page = sl__page_bytes();
    if (touch(&m, 2 * page + 5) != 0 || sl__guard_first_lost(guard) != 2 * page) {
        return 11;
    }
    if (touch(&m, 3 * page) != 0 || touch(&m, 0) != 0 || sl__guard_first_lost(guard) != 0) {
        return 12;
    }
    sl__guard_remove(&guard);
    sl__guard_remove(&guard);
    sl__guard_remove(NULL);
    return guard == NULL ? SURVIVED : 13;
}

static void test_G1_22_guarded_pages_read_as_zeros(void **state)
{
    (void)state;
    int status = process_in_child(guarded_pages_read_as_zeros, NULL, false);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), SURVIVED);
}

/* More mappings than a block of the table holds; slots are used again. */
static int many_mappings(void *arg)
{
    enum {
        N_MAPS = 200
    };
    static file_map maps[N_MAPS];
    static sl__guard *guards[N_MAPS];
    (void)arg;
    handle_before(SIG_DFL);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < N_MAPS; i++) {
            maps[i] = vanished_map(1);
            guards[i] = add(&maps[i]);
        }
        for (int i = N_MAPS - 1; i >= 0; i--) {
            if (touch(&maps[i], 0) != 0 || sl__guard_first_lost(guards[i]) != 0) {
                return 10;
            }
            sl__guard_remove(&guards[i]);
            munmap(maps[i].data, maps[i].n);
            close(maps[i].fd);
        }
    }
    return SURVIVED;
}

static void test_many_mappings(void **state)
{
    (void)state;
    int status = process_in_child(many_mappings, NULL, false);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), SURVIVED);
}

/* A fault outside guarded mappings, with one guarded mapping alive. */
static int fault_elsewhere(void *before)
{
    struct sigaction with_info = {.sa_sigaction = on_info, .sa_flags = SA_SIGINFO};
    handle_before(before ? on_plain : SIG_DFL);
    if (before && *(const char *)before == 'i') {
        sigaction(SIGBUS, &with_info, NULL);
    }
    file_map mine = vanished_map(1);
    file_map other = vanished_map(1);
    sl__guard *guard = add(&mine);
    (void)touch(&mine, 0);
    (void)touch(&other, 0);
    sl__guard_remove(&guard);
    return SURVIVED;
}

static void test_other_faults_go_to_the_handler_before(void **state)
{
    char info[] = "info";
    char plain[] = "plain";
    (void)state;
    int status = process_in_child(fault_elsewhere, info, false);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), CAUGHT_BEFORE);
    status = process_in_child(fault_elsewhere, plain, false);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), CAUGHT_BEFORE);
}

static void test_other_faults_end_the_process_as_ever(void **state)
{
    (void)state;
    int status = process_in_child(fault_elsewhere, NULL, false);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGBUS);
}

static int removed_guard(void *arg)
{
    (void)arg;
    handle_before(SIG_DFL);
    file_map m = vanished_map(1);
    sl__guard *guard = add(&m);
    sl__guard_remove(&guard);
    return touch(&m, 0) == 0 ? SURVIVED : 10;
}

static void test_a_removed_mapping_is_guarded_no_more(void **state)
{
    (void)state;
    int status = process_in_child(removed_guard, NULL, false);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGBUS);
}

/* SIGBUS that somebody sent is no fault. */
static int sent_signal(void *ignored)
{
    handle_before(ignored ? SIG_IGN : SIG_DFL);
    file_map m = vanished_map(1);
    sl__guard *guard = add(&m);
    kill(getpid(), SIGBUS);
    sl__guard_remove(&guard);
    return SURVIVED;
}

static void test_sent_signals_do_what_they_did(void **state)
{
    char yes[] = "yes";
    (void)state;
    int status = process_in_child(sent_signal, yes, false);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), SURVIVED);
    status = process_in_child(sent_signal, NULL, false);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGBUS);
}

static int out_of_memory(void *arg)
{
    enum {
        N_MAPS = 65
    };
    sl__guard *guards[N_MAPS];
    sl_error err = {0};
    (void)arg;
    handle_before(SIG_DFL);
    file_map m = vanished_map(1);
    for (int i = 0; i < N_MAPS - 1; i++) {
        guards[i] = add(&m);
    }
    sl__mem_fail_after(0);
    int r = sl__guard_add(m.data, m.n, m.fd, &guards[N_MAPS - 1], &err);
    sl__mem_fail_after(-1);
    return r == SL_ENOMEM && err.code == r ? SURVIVED : 10;
}

static void test_no_memory_for_the_table(void **state)
{
    (void)state;
    int status = process_in_child(out_of_memory, NULL, false);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), SURVIVED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_G1_22_guarded_pages_read_as_zeros),
            cmocka_unit_test(test_many_mappings),
            cmocka_unit_test(test_other_faults_go_to_the_handler_before),
            cmocka_unit_test(test_other_faults_end_the_process_as_ever),
            cmocka_unit_test(test_a_removed_mapping_is_guarded_no_more),
            cmocka_unit_test(test_sent_signals_do_what_they_did),
            cmocka_unit_test(test_no_memory_for_the_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
