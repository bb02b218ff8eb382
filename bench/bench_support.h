/*
 * What every benchmark needs. Benchmarks are programs for one thread unless they say otherwise; a failure
 * ends them with a message and status 1.
 */
#ifndef BENCH_SUPPORT_H
#define BENCH_SUPPORT_H

#include <stddef.h>
#include <stdint.h>

#include "sluice/error.h"

/* Ends the program with the error's message unless r >= 0. */
void bench_ok(int r, const sl_error *err);

/* Zeroed memory, or the end of the program; free() it. */
void *bench_alloc(size_t n_bytes);

/* Argument i as a number from 1 to a million, or `otherwise` if there is none. */
unsigned bench_number(int argc, char **argv, int i, unsigned otherwise);

/* "# machine: ..." with processor, cores and memory. */
void bench_print_machine(void);

/*
 * Bytes a second at which n_threads threads read n_bytes at `data` once, each its own part in order. The pages
 * should be present.
 */
double bench_read_bandwidth(const void *data, uint64_t n_bytes, unsigned n_threads);

#endif
