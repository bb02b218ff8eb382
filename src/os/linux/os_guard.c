/*
 * The table of live mappings is read inside a signal handler, so it has no lock there: a list of blocks that
 * only grows, whose slots carry a sequence number that is odd while a slot changes. Writers take a mutex.
 * This table and the saved handler are the one piece of process-wide state in the library: a signal handler
 * has no other place to look.
 *
 * The handler calls fstat, which POSIX lists as safe in handlers, and the system call behind mmap, past
 * whatever else may have been put over the C function.
 */
#define _GNU_SOURCE

#include "os/os_guard.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/mem.h"
#include "os/os_process.h"

#define SLOTS_IN_BLOCK 64

#ifdef SYS_mmap2 /* 32-bit systems, where SYS_mmap takes its arguments otherwise */
#define MMAP_NUMBER SYS_mmap2
#else
#define MMAP_NUMBER SYS_mmap
#endif

struct sl__guard {
    atomic_uint seq; /* odd while the fields below change */
    atomic_uintptr_t begin;
    atomic_uintptr_t end; /* 0 = free slot */
    atomic_int fd;
    _Atomic uint64_t first_lost;
};

typedef struct guard_block {
    sl__guard slots[SLOTS_IN_BLOCK];
    _Atomic(struct guard_block *) next;
} guard_block;

static guard_block first_block;
static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static bool is_installed; /* under table_lock */
static struct sigaction previous;
static uintptr_t page_bytes; /* written before the handler is installed */

/* What a slot says, if `addr` lies in it at one moment. */
typedef struct hit {
    sl__guard *slot;
    uintptr_t begin;
    uintptr_t end;
    int fd;
} hit;

static bool slot_holds(sl__guard *slot, uintptr_t addr, hit *ret)
{
    unsigned before = atomic_load(&slot->seq);
    ret->slot = slot;
    ret->begin = atomic_load(&slot->begin);
    ret->end = atomic_load(&slot->end);
    ret->fd = atomic_load(&slot->fd);
    return before % 2 == 0 && atomic_load(&slot->seq) == before && addr >= ret->begin &&
           addr < ret->end;
}

static bool find_hit(uintptr_t addr, hit *ret)
{
    for (guard_block *b = &first_block; b; b = atomic_load(&b->next)) {
        for (size_t i = 0; i < SLOTS_IN_BLOCK; i++) {
            if (slot_holds(&b->slots[i], addr, ret)) {
                return true;
            }
        }
    }
    return false;
}

static void mark_lost(sl__guard *slot, uint64_t offset)
{
    uint64_t seen = atomic_load(&slot->first_lost);
    while (offset < seen && !atomic_compare_exchange_weak(&slot->first_lost, &seen, offset)) {
    }
}

/* Puts zeros where the file has nothing any more: one page, or all that lies behind a new end. */
static bool replace_pages(const hit *h, uintptr_t addr)
{
    uintptr_t page = addr & ~(page_bytes - 1);
    size_t n_bytes = page_bytes;
    struct stat st;
    if (fstat(h->fd, &st) == 0 && (uint64_t)st.st_size <= page - h->begin) {
        n_bytes = h->end - page;
    }
    mark_lost(h->slot, page - h->begin);
    return syscall(MMAP_NUMBER, page, n_bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
                   -1, 0) == (long)page;
}

/* A fault that is not ours goes to whoever handled it before us. */
static void pass_on(int number, siginfo_t *info, void *context)
{
    if (previous.sa_flags & SA_SIGINFO) {
        previous.sa_sigaction(number, info, context);
        return;
    }
    if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN) {
        previous.sa_handler(number);
        return;
    }
    bool is_fault = info->si_code > 0;
    if (previous.sa_handler == SIG_IGN && !is_fault) {
        return;
    }
    /* Back to the default: a fault happens again on return, a sent signal is sent again. */
    struct sigaction dfl = {.sa_handler = SIG_DFL};
    sigaction(number, &dfl, NULL);
    if (!is_fault) {
        raise(number);
    }
}

static void on_sigbus(int number, siginfo_t *info, void *context)
{
    int saved_errno = errno;
    hit h;
    uintptr_t addr = (uintptr_t)info->si_addr;
    bool is_fault = info->si_code > 0;
    if (!is_fault || !find_hit(addr, &h) || !replace_pages(&h, addr)) {
        pass_on(number, info, context);
    }
    errno = saved_errno;
}

/* Caller holds table_lock. */
static int install_handler(sl_error *reterr)
{
    if (is_installed) {
        return 0;
    }
    struct sigaction ours = {.sa_sigaction = on_sigbus, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigemptyset(&ours.sa_mask);
    page_bytes = sl__page_bytes();
    if (sigaction(SIGBUS, NULL, &previous) != 0 || sigaction(SIGBUS, &ours, NULL) != 0) {
        return sl__fail_os(reterr, errno, "cannot install the handler of SIGBUS");
    }
    is_installed = true;
    return 0;
}

/* A slot that nobody uses, in a new block if need be; NULL = out of memory. Caller holds table_lock. */
static sl__guard *free_slot(void)
{
    guard_block *b = &first_block;
    for (;;) {
        for (size_t i = 0; i < SLOTS_IN_BLOCK; i++) {
            if (atomic_load(&b->slots[i].end) == 0) {
                return &b->slots[i];
            }
        }
        guard_block *next = atomic_load(&b->next);
        if (!next) {
            next = sl__alloc(1, sizeof *next);
            if (!next) {
                return NULL;
            }
            atomic_store(&b->next, next);
        }
        b = next;
    }
}

static void set_slot(sl__guard *slot, uintptr_t begin, uintptr_t end, int fd)
{
    atomic_fetch_add(&slot->seq, 1);
    atomic_store(&slot->begin, begin);
    atomic_store(&slot->end, end);
    atomic_store(&slot->fd, fd);
    atomic_store(&slot->first_lost, SL_GUARD_INTACT);
    atomic_fetch_add(&slot->seq, 1);
}

int sl__guard_add(const void *base, size_t n_bytes, int fd, sl__guard **ret_guard, sl_error *reterr)
{
    pthread_mutex_lock(&table_lock);
    int r = install_handler(reterr);
    if (r >= 0) {
        sl__guard *slot = free_slot();
        if (slot) {
            /* The last page is guarded whole. */
            uintptr_t begin = (uintptr_t)base;
            uintptr_t end = (begin + n_bytes + page_bytes - 1) & ~(page_bytes - 1);
            set_slot(slot, begin, end, fd);
            *ret_guard = slot;
        } else {
            r = sl__fail_nomem(reterr, sizeof(guard_block), "the table of mapped files");
        }
    }
    pthread_mutex_unlock(&table_lock);
    return r;
}

void sl__guard_remove(sl__guard **guard)
{
    if (guard && *guard) {
        pthread_mutex_lock(&table_lock);
        set_slot(*guard, 0, 0, -1);
        pthread_mutex_unlock(&table_lock);
        *guard = NULL;
    }
}

uint64_t sl__guard_first_lost(const sl__guard *guard)
{
    return atomic_load(&guard->first_lost);
}
