/*
 * Stands between a program and mmap. When the program maps a GGUF file, MAP_POPULATE is taken off, and what is worth
 * it is populated within the RAM budget instead: once for each file, beside the program or before it goes on. Advice
 * to read all of such a mapping ahead, which is what programs give beside MAP_POPULATE, is left out likewise.
 * Every other call is passed on as it is.
 *
 * This lives in somebody else's process, so: system calls instead of the next mmap in line, which an allocator or
 * a constructor may ask for before anything is ready; no work but comparing numbers for calls that are not about
 * files; errno as the program's call leaves it; nothing of ours is entered twice by one thread, since our own
 * calls come by here too; a process that has locked itself in with seccomp is left alone.
 */
#define _GNU_SOURCE

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/status.h"
#include "gguf_maps.h"
#include "known_files.h"
#include "notice.h"
#include "os/os_thread.h"
#include "preload_job.h"
#include "source/gguf_head.h"
#include "source/map_os.h"

#define EXPORTED __attribute__((visibility("default")))

/* Descriptors of ours are kept away from the numbers that programs count on. */
#define FIRST_DESCRIPTOR 200
#define MIN_GGUF_BYTES   24

#ifdef SYS_mmap2
#define MMAP_UNIT 4096 /* what its offset counts in */
#else
#define MMAP_UNIT 1
#endif

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif

/* All that the process has of it. */
static struct {
    sl__mutex files_lock;
    known_files files;      /* under files_lock, as the next three */
    shim_settings settings; /* constant once is_ready */
    bool is_ready;
    bool is_broken; /* it could not be made ready: everything is passed on */
    sl__mutex run_lock;
    sl__ram_purse purse; /* under run_lock once is_ready */
    sl__mutex queue_lock;
    shim_job *queue; /* under queue_lock, as the next */
    bool has_worker;
    sl__mutex maps_lock;
    gguf_maps maps; /* under maps_lock */
    atomic_bool has_maps;
    int seccomp_mode; /* at the beginning */
} shim = {
        .files_lock = SL_MUTEX_INITIALIZER,
        .run_lock = SL_MUTEX_INITIALIZER,
        .queue_lock = SL_MUTEX_INITIALIZER,
        .maps_lock = SL_MUTEX_INITIALIZER,
};

/* This thread is in code of ours. Initial exec: no allocation the first time. */
static _Thread_local bool is_inside __attribute__((tls_model("initial-exec")));

static void *system_mmap(void *addr, size_t n, int prot, int flags, int fd, int64_t offset)
{
#ifdef SYS_mmap2
    return (void *)syscall(SYS_mmap2, addr, n, prot, flags, fd, (long)(offset / MMAP_UNIT));
#else
    return (void *)syscall(SYS_mmap, addr, n, prot, flags, fd, (long)(offset / MMAP_UNIT));
#endif
}

/* What a call about n bytes is about: whole pages, and no more than there are addresses. */
static live_part pages_of(const void *addr, size_t n)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    const uintptr_t begin = (uintptr_t)addr;
    const uintptr_t most = (UINTPTR_MAX - begin) / page * page;
    return (live_part){begin, begin + (n < most ? (n + page - 1) / page * page : most)};
}

/* These addresses are something else now; no allocation, since allocators unmap. */
static void lose_maps(live_part part)
{
    if (atomic_load(&shim.has_maps)) {
        sl__mutex_lock(&shim.maps_lock);
        gguf_maps_lose(&shim.maps, part);
        sl__mutex_unlock(&shim.maps_lock);
    }
}

static void add_map(live_part part)
{
    sl__mutex_lock(&shim.maps_lock);
    gguf_maps_lose(&shim.maps, part); /* of a mapping that this one lies over */
    gguf_maps_add(&shim.maps, part);
    sl__mutex_unlock(&shim.maps_lock);
    atomic_store(&shim.has_maps, true);
}

static void before_fork(void)
{
    sl__mutex_lock(&shim.files_lock);
    sl__mutex_lock(&shim.queue_lock);
    sl__mutex_lock(&shim.maps_lock);
    shim_jobs_lock();
}

static void after_fork(void)
{
    shim_jobs_unlock();
    sl__mutex_unlock(&shim.maps_lock);
    sl__mutex_unlock(&shim.queue_lock);
    sl__mutex_unlock(&shim.files_lock);
}

/* The worker and its jobs stay behind; what they have brought into the cache is the child's too. */
static void after_fork_in_child(void)
{
    shim_jobs_forget();
    shim.files_lock = (sl__mutex)SL_MUTEX_INITIALIZER;
    shim.run_lock = (sl__mutex)SL_MUTEX_INITIALIZER;
    shim.queue_lock = (sl__mutex)SL_MUTEX_INITIALIZER;
    shim.maps_lock = (sl__mutex)SL_MUTEX_INITIALIZER;
    shim.queue = NULL;
    shim.has_worker = false;
}

__attribute__((constructor)) static void begin(void)
{
    shim.seccomp_mode = prctl(PR_GET_SECCOMP);
    shim_notice_begin();
    if (sl__at_fork(before_fork, after_fork, after_fork_in_child, NULL) < 0) {
        shim.is_broken = true;
    }
}

/* Settings and budget, once, before the first file is mapped. Under files_lock. */
static bool get_ready(void)
{
    sl_error err = {0};
    if (shim.is_ready || shim.is_broken) {
        return shim.is_ready;
    }
    shim.settings = shim_settings_read();
    if (shim.settings.bad) {
        shim_notice("%s is no number of bytes; going on without it", shim.settings.bad);
    }
    if (sl__ram_purse_fill(&shim.settings.ram, &shim.purse, &err) < 0) {
        shim_notice("%s; files are mapped as the program asks for", err.msg);
        shim.is_broken = true;
        return false;
    }
    shim.is_ready = true;
    return true;
}

/* The path behind a descriptor, for messages. */
static const char *path_of(int fd, char *buf, size_t buf_bytes)
{
    char link[40];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, buf, buf_bytes - 1);
    if (n < 0) {
        snprintf(buf, buf_bytes, "descriptor %d", fd);
        return buf;
    }
    buf[n] = '\0';
    return buf;
}

/* Reads which bytes of a file are worth being present. */
static int read_wanted(int fd, const char *path, known_file *file, sl_error *reterr)
{
    sl__gguf_head head = {0};
    int r = sl__gguf_head_open(fd, path, file->id.size_bytes, &head, reterr);
    if (r < 0) {
        return r;
    }
    for (uint64_t i = 0; i < sl_gguf_n_tensors(head.gguf) && r >= 0; i++) {
        const sl_gguf_tensor *t = sl_gguf_tensor_at(head.gguf, i);
        if (t->n_bytes <= shim.settings.lazy_over_bytes) {
            r = sl_ranges_add(&file->wanted, t->offset, t->offset + t->n_bytes);
        }
    }
    if (r < 0) {
        sl__fail_nomem(reterr, file->wanted.n * sizeof(sl_range), "the pages to populate");
    }
    sl__gguf_head_done(&head);
    return r;
}

/* A mapping of our own, on a descriptor of our own. */
static int map_again(int fd, const char *path, sl_map **ret_map, sl_error *reterr)
{
    int own = fcntl(fd, F_DUPFD_CLOEXEC, FIRST_DESCRIPTOR);
    if (own < 0) {
        own = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    }
    if (own < 0) {
        return sl__fail_os(reterr, errno, "%s: no descriptor", path);
    }
    int r = sl__map_adopt(own, path, ret_map, reterr);
    if (r < 0) {
        close(own);
    }
    return r;
}

/* Finds or reads the file of a call that is about to be made; NULL if the call is none of our business. */
static known_file *look_up(int fd, const sl_file_id *id, sl_map **ret_map)
{
    char path[512];
    sl_error err = {0};
    known_file *file = known_files_find(&shim.files, id);
    int r = 0;
    path_of(fd, path, sizeof path);
    if (!file) {
        r = known_files_add(&shim.files, id, &file, &err);
        if (r >= 0 && !shim.settings.is_off) {
            r = read_wanted(fd, path, file, &err);
        }
    }
    if (r >= 0 && !file->is_left_alone && file->wanted.n > 0) {
        r = map_again(fd, path, ret_map, &err);
    }
    if (r < 0) {
        shim_notice("%s; it is mapped as the program asks for", err.msg);
        if (file) {
            file->is_left_alone = true;
        }
    }
    return file && !file->is_left_alone ? file : NULL;
}

static void work(void *ud)
{
    (void)ud;
    is_inside = true;
    for (;;) {
        sl__mutex_lock(&shim.queue_lock);
        shim_job *job = shim.queue;
        if (job) {
            shim.queue = job->next;
        } else {
            shim.has_worker = false;
        }
        sl__mutex_unlock(&shim.queue_lock);
        if (!job) {
            return;
        }
        sl__mutex_lock(&shim.run_lock);
        shim_job_run(job, &shim.purse, &shim.settings);
        sl__mutex_unlock(&shim.run_lock);
        shim_job_free(job);
    }
}

static void run_aside(shim_job *job)
{
    sl__thread worker = {.is_running = false};
    sl__mutex_lock(&shim.queue_lock);
    shim_job **last = &shim.queue;
    while (*last) {
        last = &(*last)->next;
    }
    *last = job;
    bool starts = !shim.has_worker;
    shim.has_worker = true;
    sl__mutex_unlock(&shim.queue_lock);
    if (starts && sl__thread_start(&worker, "sl-populate", work, NULL, NULL) < 0) {
        /* No thread to be had: the program waits instead. */
        work(NULL);
    }
    sl__thread_detach(&worker);
}

static void run_now(shim_job *job)
{
    sl__mutex_lock(&shim.run_lock);
    shim_job_run(job, &shim.purse, &shim.settings);
    sl__mutex_unlock(&shim.run_lock);
    shim_job_free(job);
}

/* A call that is about to be made, and what goes with it. */
typedef struct call {
    size_t n;
    int prot;
    int flags;
    int fd;
    int64_t offset;
} call;

/* A limit of the address space: neither our mapping nor a thread's stack may be there while the program goes on. */
static bool has_few_addresses(void)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
}

/* The mapping is there: what it asks for is made a job. */
static void follow(const call *c, const sl_file_id *id, void *data, sl_map **map)
{
    sl_ranges want = {0};
    shim_job *job = NULL;
    live_map live = {
            .all = {(uintptr_t)data, (uintptr_t)data + c->n},
            .offset = (uint64_t)c->offset,
            .is_gone = (c->prot & PROT_READ) == 0,
    };
    sl__mutex_lock(&shim.files_lock);
    known_file *file = known_files_find(&shim.files, id);
    uint64_t begin = (uint64_t)c->offset;
    int r = file ? known_file_take(file, begin, begin + c->n, &want, NULL) : 0;
    sl__mutex_unlock(&shim.files_lock);
    if (r >= 0 && want.n > 0) {
        job = shim_job_create(map, &want, &live);
    }
    if (job && (shim.settings.is_waiting || has_few_addresses())) {
        run_now(job);
    } else if (job) {
        run_aside(job);
    }
    sl_ranges_done(&want);
}

static void *map_gguf(void *addr, const call *c, const sl_file_id *id)
{
    sl_map *map = NULL;
    int errno_before = errno;
    sl__mutex_lock(&shim.files_lock);
    bool is_ours = get_ready() && look_up(c->fd, id, &map) != NULL;
    sl__mutex_unlock(&shim.files_lock);
    int flags = is_ours ? c->flags & ~MAP_POPULATE : c->flags;
    void *data = system_mmap(addr, c->n, c->prot, flags, c->fd, c->offset);
    if (data == MAP_FAILED && map) {
        /* Perhaps for want of the addresses that ours takes. */
        sl_map_close(&map);
        data = system_mmap(addr, c->n, c->prot, c->flags, c->fd, c->offset);
    }
    int errno_after = data == MAP_FAILED ? errno : errno_before;
    if (data != MAP_FAILED && is_ours) {
        add_map(pages_of(data, c->n));
    }
    if (data != MAP_FAILED && map) {
        follow(c, id, data, &map);
    }
    sl_map_close(&map);
    errno = errno_after;
    return data;
}

/* True for a regular file that begins like a GGUF. */
static bool is_gguf(int fd, sl_file_id *ret_id)
{
    char magic[4];
    struct stat st;
    if (prctl(PR_GET_SECCOMP) != shim.seccomp_mode || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) ||
            st.st_size < MIN_GGUF_BYTES || pread(fd, magic, sizeof magic, 0) != sizeof magic ||
            memcmp(magic, "GGUF", 4) != 0) {
        return false;
    }
    const sl__os_map file = {.fd = fd};
    return sl__os_map_id(&file, ret_id) == 0;
}

static void *map_any(void *addr, const call *c)
{
    sl_file_id id;
    void *data = MAP_FAILED;
    if (is_inside || shim.is_broken) {
        return system_mmap(addr, c->n, c->prot, c->flags, c->fd, c->offset);
    }
    is_inside = true;
    int os_error = errno;
    if ((c->flags & MAP_FIXED) != 0) {
        shim_jobs_lose(pages_of(addr, c->n));
    }
    bool is_file = c->fd >= 0 && (c->flags & MAP_ANONYMOUS) == 0 && c->n > 0;
    bool is_ours = is_file && is_gguf(c->fd, &id);
    errno = os_error;
    if (is_ours) {
        data = map_gguf(addr, c, &id);
    } else {
        data = system_mmap(addr, c->n, c->prot, c->flags, c->fd, c->offset);
        if (data != MAP_FAILED) {
            /* By a fixed address, or where one was that has been moved away. */
            lose_maps(pages_of(data, c->n));
        }
    }
    is_inside = false;
    return data;
}

EXPORTED void *mmap(void *addr, size_t n, int prot, int flags, int fd, off_t offset)
{
    const call c = {n, prot, flags, fd, offset};
    return map_any(addr, &c);
}

EXPORTED void *mmap64(void *addr, size_t n, int prot, int flags, int fd, off64_t offset)
{
    const call c = {n, prot, flags, fd, offset};
    return map_any(addr, &c);
}

EXPORTED int munmap(void *addr, size_t n)
{
    if (!is_inside) {
        const live_part part = pages_of(addr, n);
        shim_jobs_lose(part);
        lose_maps(part);
    }
    return (int)syscall(SYS_munmap, addr, n);
}

/*
 * All of a GGUF file, or so much of it that it is no hint of what is needed next, is not read ahead: that would bring
 * in what is lazy or beyond the budget. What is worth it is on its way already.
 */
static bool is_left_out(const void *addr, size_t n, int advice)
{
    bool is_bulk = false;
    if ((advice == MADV_WILLNEED || advice == MADV_POPULATE_READ) && !is_inside &&
            atomic_load(&shim.has_maps)) {
        sl__mutex_lock(&shim.maps_lock);
        is_bulk = gguf_maps_is_bulk(&shim.maps, pages_of(addr, n));
        sl__mutex_unlock(&shim.maps_lock);
    }
    return is_bulk;
}

/* Advice of no bytes is checked by the system, and done. */
static int system_madvise(void *addr, size_t n, int advice)
{
    return (int)syscall(SYS_madvise, addr, is_left_out(addr, n, advice) ? 0 : n, advice);
}

EXPORTED int madvise(void *addr, size_t n, int advice)
{
    return system_madvise(addr, n, advice);
}

/* As the C library does it: an error is returned, and this way of forgetting pages does nothing. */
EXPORTED int posix_madvise(void *addr, size_t n, int advice)
{
    int errno_before = errno;
    int os_error = 0;
    if (advice != POSIX_MADV_DONTNEED && system_madvise(addr, n, advice) != 0) {
        os_error = errno;
        errno = errno_before;
    }
    return os_error;
}
