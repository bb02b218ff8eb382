/*
 * A program that maps files in one way or another, to be run with and without libsluice-preload.so in front of it.
 * It knows nothing of Sluice and is built without sanitizers.
 *
 *   shim_probe make FILE VERSION MIB...   writes a GGUF (sparse) with tensors of these sizes
 *   shim_probe MODE FILE [WANTED]         maps the file, then prints one letter for every 4 MiB of it: '#' in the
 *                                         page cache, '.' not, '+' partly. With WANTED it looks until it sees that,
 *                                         for two seconds at most
 *   shim_probe deny SYSCALL,... COMMAND   runs a command for which these system calls fail with EPERM
 */
#define _GNU_SOURCE

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif

#define MIB       ((size_t)1 << 20)
#define LETTER    (4 * MIB)
#define N_THREADS 8

static const char *file_path;
static size_t file_bytes;
static const char *early_path; /* SHIM_PROBE_EARLY: mapped by a constructor */
static int exit_status;

static void die(const char *what)
{
    fprintf(stderr, "shim_probe: %s: errno %d\n", what, errno);
    _exit(99);
}

static void put(FILE *f, const void *p, size_t n)
{
    if (fwrite(p, 1, n, f) != n) {
        die("write");
    }
}

static void put_u32(FILE *f, uint32_t v)
{
    put(f, &v, sizeof v);
}

static void put_u64(FILE *f, uint64_t v)
{
    put(f, &v, sizeof v);
}

static unsigned number(const char *text)
{
    unsigned n = 0;
    for (; *text >= '0' && *text <= '9'; text++) {
        n = n * 10 + (unsigned)(*text - '0');
    }
    return n;
}

static void make(const char *path, uint32_t version, char **mib, size_t n)
{
    FILE *f = fopen(path, "wb");
    uint64_t offset = 0;
    if (!f) {
        die(path);
    }
    put(f, "GGUF", 4);
    put_u32(f, version);
    put_u64(f, n);
    put_u64(f, 0);
    for (size_t i = 0; i < n; i++) {
        uint64_t bytes = number(mib[i]) * MIB;
        char name = (char)('a' + i);
        put_u64(f, 1);
        put(f, &name, 1);
        put_u32(f, 1);         /* dimension */
        put_u64(f, bytes / 4); /* of it */
        put_u32(f, 0);         /* F32 */
        put_u64(f, offset);
        offset += bytes;
    }
    long at = ftell(f);
    uint64_t total = ((uint64_t)at + 31) / 32 * 32 + offset;
    if (fflush(f) != 0 || ftruncate(fileno(f), (off_t)total) != 0 || fsync(fileno(f)) != 0) {
        die("truncate");
    }
    fclose(f);
}

static int open_file(void)
{
    struct stat st;
    int fd = open(file_path, O_RDONLY);
    if (fd < 0 || fstat(fd, &st) != 0) {
        die(file_path);
    }
    file_bytes = (size_t)st.st_size;
    return fd;
}

/* n = 0: all of the file. */
static void *map(int prot, int flags, int fd, size_t n, off_t offset)
{
    void *p = mmap(NULL, n > 0 ? n : file_bytes, prot, flags, fd, offset);
    if (p == MAP_FAILED) {
        die("mmap");
    }
    return p;
}

/* Past the shim: looking must not bring pages in. */
static void *map_unseen(size_t n)
{
    int fd = open(file_path, O_RDONLY);
    void *p = (void *)syscall(SYS_mmap, NULL, n, PROT_READ, MAP_SHARED, fd, 0L);
    close(fd);
    return p;
}

static void draw(char *letters)
{
    size_t n_pages = (file_bytes + 4095) / 4096;
    unsigned char *marks = calloc(n_pages, 1);
    void *p = map_unseen(file_bytes);
    if (!marks || mincore(p, file_bytes, marks) != 0) {
        die("mincore");
    }
    syscall(SYS_munmap, p, file_bytes);
    size_t n = 0;
    for (size_t at = 0; at < file_bytes; at += LETTER) {
        size_t n_in = 0;
        size_t last = at + LETTER < file_bytes ? at + LETTER : file_bytes;
        size_t all = (last - at + 4095) / 4096;
        for (size_t i = at / 4096; i < at / 4096 + all; i++) {
            n_in += marks[i] & 1;
        }
        letters[n++] = n_in == 0 ? '.' : n_in == all ? '#' : '+';
    }
    letters[n] = '\0';
    free(marks);
}

static void sleep_ms(long ms)
{
    struct timespec t = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&t, NULL);
}

static void print_picture(const char *wanted)
{
    char letters[8192];
    draw(letters);
    for (int i = 0; wanted && strcmp(letters, wanted) != 0 && i < 200; i++) {
        sleep_ms(10);
        draw(letters);
    }
    printf("%s\n", letters);
}

static void map_whole(void)
{
    map(PROT_READ, MAP_SHARED | MAP_POPULATE, open_file(), 0, 0);
}

static void *map_whole_in_thread(void *ud)
{
    pthread_barrier_wait(ud);
    map_whole();
    return NULL;
}

static void mode_threads(void)
{
    pthread_t threads[N_THREADS];
    pthread_barrier_t barrier;
    close(open_file());
    pthread_barrier_init(&barrier, NULL, N_THREADS);
    for (int i = 0; i < N_THREADS; i++) {
        if (pthread_create(&threads[i], NULL, map_whole_in_thread, &barrier) != 0) {
            die("pthread_create");
        }
    }
    for (int i = 0; i < N_THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
}

static void mode_writable(void)
{
    char *p = map(PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_POPULATE, open_file(), 0, 0);
    p[file_bytes - 1] = 7; /* a copy of the page, not the file */
}

static void mode_hidden(void)
{
    map(PROT_NONE, MAP_PRIVATE, open_file(), 0, 0);
}

static void mode_duplicate(void)
{
    int fd = open_file();
    int other = dup2(fd, 77);
    close(fd);
    map(PROT_READ, MAP_SHARED, other, file_bytes, 0);
    close(other);
}

static void mode_twice(void)
{
    map_whole();
    map_whole();
    mode_writable();
}

/* The first half, then all of it. */
static void mode_parts(void)
{
    int fd = open_file();
    size_t half = file_bytes / 2 / 65536 * 65536;
    map(PROT_READ, MAP_SHARED, fd, half, 0);
    map(PROT_READ, MAP_SHARED, fd, file_bytes - half, (off_t)half);
}

static void mode_mmap64(void)
{
    int fd = open_file();
    if (mmap64(NULL, file_bytes, PROT_READ, MAP_SHARED | MAP_POPULATE, fd, 0) == MAP_FAILED) {
        die("mmap64");
    }
}

/* As llama.cpp does it: all of the file, and then each of its halves, is to be read ahead. */
static void mode_advise(void)
{
    char *p = map(PROT_READ, MAP_SHARED | MAP_POPULATE, open_file(), 0, 0);
    size_t half = file_bytes / 2 / 65536 * 65536;
    errno = 1234;
    if (posix_madvise(p, file_bytes, POSIX_MADV_WILLNEED) != 0 ||
            madvise(p, file_bytes, MADV_WILLNEED) != 0 ||
            madvise(p, half + MIB, MADV_WILLNEED) != 0 ||
            madvise(p, file_bytes, MADV_POPULATE_READ) != 0 || errno != 1234) {
        die("advice");
    }
}

/* A MiB here and there: a program that knows what it needs. */
static void mode_advise_parts(void)
{
    char *p = map(PROT_READ, MAP_SHARED, open_file(), 0, 0);
    for (size_t at = 0; at + MIB <= file_bytes; at += MIB) {
        if (madvise(p + at, MIB, MADV_POPULATE_READ) != 0) {
            die("advice");
        }
    }
}

/* Gives the addresses to something else at once, again and again. */
static void mode_unmap(void)
{
    int fd = open_file();
    for (int i = 0; i < 50; i++) {
        char *p = map(PROT_READ, MAP_SHARED, fd, file_bytes, 0);
        munmap(p + LETTER, LETTER);
        char *q = mmap(p + LETTER, LETTER, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
        memset(q, 5, LETTER);
        if (q[LETTER - 1] != 5) {
            die("memory is not ours");
        }
        munmap(p, file_bytes);
    }
    map(PROT_READ, MAP_SHARED, fd, file_bytes, 0);
}

static void mode_fork(void)
{
    map_whole();
    for (int i = 0; i < 20; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            map_whole();
            void *p = mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            munmap(p, MIB);
            _exit(0);
        }
        int status = 0;
        if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0) {
            die("a child failed");
        }
    }
}

static void wait_for_the_end_of_input(void)
{
    static const char ready[] = "ready\n";
    char c;
    if (write(1, ready, strlen(ready)) < 0) {
        die("write");
    }
    while (read(0, &c, 1) > 0) {
    }
}

/* Every page is in this process's page table until its input ends. */
static void mode_hold(void)
{
    map_whole();
    wait_for_the_end_of_input();
}

/* The same for a MiB in the middle, locked. */
static void mode_lock(void)
{
    char *p = map(PROT_READ, MAP_SHARED, open_file(), 0, 0);
    if (mlock(p + file_bytes / 2 / MIB * MIB, MIB) != 0) {
        _exit(77);
    }
    wait_for_the_end_of_input();
}

/* What must come back as the system says it. */
static void mode_errors(void)
{
    int fd = open_file();
    errno = 0;
    if (mmap(NULL, 0, PROT_READ, MAP_SHARED, fd, 0) != MAP_FAILED || errno != EINVAL ||
            mmap(NULL, MIB, PROT_READ, MAP_SHARED, fd, 1) != MAP_FAILED || errno != EINVAL ||
            mmap(NULL, MIB, PROT_READ, MAP_SHARED, 9999, 0) != MAP_FAILED || errno != EBADF ||
            mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) != MAP_FAILED ||
            errno != EACCES || munmap((void *)1, 1) != -1 || errno != EINVAL) {
        die("another error than the system's");
    }
    char *q = map(PROT_READ, MAP_SHARED, fd, file_bytes, 0);
    errno = 0;
    if (madvise(q + 1, file_bytes - MIB, MADV_WILLNEED) != -1 || errno != EINVAL ||
            madvise(q, SIZE_MAX, MADV_WILLNEED) != -1 || errno != EINVAL ||
            madvise(q, MIB, 9999) != -1 || errno != EINVAL) {
        die("another error than the system's for advice");
    }
    errno = 0;
    munmap(q, file_bytes);
    if (posix_madvise(q, file_bytes, POSIX_MADV_WILLNEED) != ENOMEM ||
            posix_madvise(q + 1, MIB, POSIX_MADV_WILLNEED) != EINVAL ||
            posix_madvise(q, MIB, POSIX_MADV_DONTNEED) != 0 || errno != 0) {
        die("another error than the C library's for advice");
    }
    errno = 1234;
    map_whole();
    void *p = mmap(NULL, MIB, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(p, MIB);
    if (errno != 1234) {
        die("errno was changed");
    }
}

/* Standard error becomes a file of the program: nothing may be written into it. */
static void mode_stderr(void)
{
    int fd = open_file();
    close(2);
    int own = open("/dev/null", O_WRONLY);
    char name[] = "/tmp/shim-probe-XXXXXX";
    int file = mkstemp(name);
    unlink(name);
    dup2(file, 2);
    map(PROT_READ, MAP_SHARED | MAP_POPULATE, fd, file_bytes, 0);
    sleep_ms(300);
    exit_status = lseek(2, 0, SEEK_END) == 0 ? 0 : 98;
    close(own);
}

static long number_of(const char *name, size_t n)
{
    static const struct {
        const char *name;
        long number;
    } known[] = {
            {"madvise", SYS_madvise},
            {"mincore", SYS_mincore},
            {"cachestat", 451},
            {"pread64", SYS_pread64},
            {"fadvise64", SYS_fadvise64},
            {"clone3", 435},
            {"clone", SYS_clone},
            {"mprotect", SYS_mprotect},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (strlen(known[i].name) == n && memcmp(known[i].name, name, n) == 0) {
            return known[i].number;
        }
    }
    errno = 0;
    die("no such system call in the list");
    return -1;
}

/* Refuses the named calls with `action`. */
static void deny(const char *names, uint32_t action)
{
    struct sock_filter f[40] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0)};
    unsigned short n = 1;
    for (const char *s = names; n < 36;) {
        size_t k = strcspn(s, ",");
        f[n++] = (struct sock_filter)BPF_JUMP(
                BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)number_of(s, k), 0, 1);
        f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, action);
        if (!s[k]) {
            break;
        }
        s += k + 1;
    }
    f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = {n, f};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
            prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
        _exit(77);
    }
}

/* A program that locks itself in, and dies of any call that it does not know. */
static void mode_locked_in(void)
{
    int fd = open_file();
    deny("madvise,pread64,cachestat,fadvise64,mprotect", SECCOMP_RET_KILL_PROCESS);
    void *p = mmap(NULL, file_bytes, PROT_READ, MAP_SHARED, fd, 0);
    static const char yes[] = "alive\n";
    if (p == MAP_FAILED || write(1, yes, strlen(yes)) < 0) {
        _exit(97);
    }
    _exit(0);
}

static void mode_signal(void)
{
    map_whole();
    raise(SIGTERM);
}

static void mode_status(void)
{
    map_whole();
    exit_status = 42;
}

__attribute__((constructor)) static void early(void)
{
    early_path = getenv("SHIM_PROBE_EARLY");
    if (early_path) {
        file_path = early_path;
        map_whole();
    }
}

static void mode_nothing(void)
{
    close(open_file());
}

static const struct {
    const char *name;
    void (*run)(void);
} modes[] = {
        {"whole", map_whole},
        {"threads", mode_threads},
        {"writable", mode_writable},
        {"hidden", mode_hidden},
        {"duplicate", mode_duplicate},
        {"twice", mode_twice},
        {"parts", mode_parts},
        {"mmap64", mode_mmap64},
        {"advise", mode_advise},
        {"advise-parts", mode_advise_parts},
        {"unmap", mode_unmap},
        {"fork", mode_fork},
        {"errors", mode_errors},
        {"hold", mode_hold},
        {"lock", mode_lock},
        {"stderr", mode_stderr},
        {"locked-in", mode_locked_in},
        {"signal", mode_signal},
        {"status", mode_status},
        {"nothing", mode_nothing},
};

int main(int argc, char **argv)
{
    if (argc > 4 && strcmp(argv[1], "make") == 0) {
        make(argv[2], number(argv[3]), argv + 4, (size_t)argc - 4);
        return 0;
    }
    if (argc > 3 && strcmp(argv[1], "deny") == 0) {
        deny(argv[2], SECCOMP_RET_ERRNO | EPERM);
        execvp(argv[3], argv + 3);
        die(argv[3]);
    }
    for (size_t i = 0; argc > 2 && i < sizeof modes / sizeof modes[0]; i++) {
        if (strcmp(argv[1], modes[i].name) == 0) {
            file_path = argv[2];
            modes[i].run();
            print_picture(argc > 3 ? argv[3] : NULL);
            return exit_status;
        }
    }
    fprintf(stderr, "shim_probe: what?\n");
    return 2;
}
