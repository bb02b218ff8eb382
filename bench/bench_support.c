#include "bench_support.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "os/os_clock.h"
#include "os/os_process.h"

#define MAX_THREADS 256

void bench_ok(int r, const sl_error *err)
{
    if (r < 0) {
        fprintf(stderr, "bench: %s\n", err->msg);
        _Exit(1);
    }
}

void *bench_alloc(size_t n_bytes)
{
    void *p = calloc(1, n_bytes ? n_bytes : 1);
    if (!p) {
        fprintf(stderr, "bench: out of memory: needed %zu bytes\n", n_bytes);
        _Exit(1);
    }
    return p;
}

unsigned bench_number(int argc, char **argv, int i, unsigned otherwise)
{
    unsigned v = 0;
    if (i >= argc) {
        return otherwise;
    }
    for (const char *p = argv[i]; *p; p++) {
        bool is_digit = *p >= '0' && *p <= '9';
        v = is_digit ? v * 10 + (unsigned)(*p - '0') : 0;
        if (v == 0 || v > 1000000) {
            fprintf(stderr, "bench: argument %d is '%s', need a number from 1\n", i, argv[i]);
            _Exit(2);
        }
    }
    return v;
}

void bench_print_machine(void)
{
    char line[256];
    char model[128] = "unknown processor";
    FILE *f = fopen("/proc/cpuinfo", "re");
    while (f && fgets(line, sizeof line, f)) {
        const char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) == 0 && colon) {
            snprintf(model, sizeof model, "%.*s", (int)strcspn(colon + 2, "\n"), colon + 2);
            break;
        }
    }
    if (f) {
        fclose(f);
    }
    printf("# machine: %s, %u processors, %.1f GiB\n", model, sl__n_cpus(),
            (double)sysconf(_SC_PHYS_PAGES) * (double)sl__page_bytes() / (double)(1 << 30));
}

typedef struct part {
    pthread_t thread;
    const uint64_t *words;
    size_t n_words;
    uint64_t sum;
} part;

static void *read_part(void *arg)
{
    part *p = arg;
    /* Eight sums, so that the loop waits for memory and not for itself. */
    uint64_t s[8] = {0};
    size_t n = p->n_words / 8 * 8;
    for (size_t i = 0; i < n; i += 8) {
        for (size_t k = 0; k < 8; k++) {
            s[k] += p->words[i + k];
        }
    }
    for (size_t k = 0; k < 8; k++) {
        p->sum += s[k];
    }
    return NULL;
}

double bench_read_bandwidth(const void *data, uint64_t n_bytes, unsigned n_threads)
{
    uint64_t total = 0;
    part parts[MAX_THREADS] = {0};
    n_threads = n_threads < MAX_THREADS ? n_threads : MAX_THREADS;
    size_t n_words = (size_t)(n_bytes / 8 / n_threads);
    uint64_t begin = sl__now_ns();
    for (unsigned i = 0; i < n_threads; i++) {
        parts[i].words = (const uint64_t *)data + (size_t)i * n_words;
        parts[i].n_words = n_words;
        if (pthread_create(&parts[i].thread, NULL, read_part, &parts[i]) != 0) {
            fprintf(stderr, "bench: cannot start %u threads\n", n_threads);
            _Exit(1);
        }
    }
    for (unsigned i = 0; i < n_threads; i++) {
        pthread_join(parts[i].thread, NULL);
        total += parts[i].sum;
    }
    double seconds = (double)(sl__now_ns() - begin) * 1e-9;
    /* Looked at, so that the reads are not optimised away. */
    volatile uint64_t sink = total;
    (void)sink;
    return (double)n_words * 8 * n_threads / seconds;
}
