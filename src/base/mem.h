/*
 * Heap memory and arithmetic that cannot wrap.
 *
 * Every allocation of the project goes through sl__alloc and sl__realloc, so that a test can make the n-th
 * one fail (sl__mem_fail_after). sl__free accepts NULL.
 *
 * Threads: any. The failure counter is process wide and meant for tests alone.
 */
#ifndef SL_BASE_MEM_H
#define SL_BASE_MEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* n * size zeroed bytes, or NULL (also when the product wraps). n * size == 0 gives a valid pointer. */
void *sl__alloc(size_t n, size_t size);

/* Resizes a block of sl__alloc (or NULL) to n * size bytes; NULL and the old block intact on failure. */
void *sl__realloc(void *p, size_t n, size_t size);

void sl__free(void *p);

/* Copy of n bytes with a NUL behind them, or NULL. The caller frees it. */
char *sl__strndup(const char *s, size_t n);

/* Tests only: lets n allocations succeed and fails the following one; a negative n turns it off. */
void sl__mem_fail_after(long n);

/*
 * Makes room for `need` elements of `size` bytes in a growing array: *p has room for *cap elements, and
 * both are changed only on success. Grows by half, so that pushing is linear. False = out of memory.
 */
bool sl__grow(void **p, size_t *cap, size_t need, size_t size);

/* Checked arithmetic: false if the result does not fit, and *ret is then left alone. */
bool sl__add_u64(uint64_t a, uint64_t b, uint64_t *ret);
bool sl__mul_u64(uint64_t a, uint64_t b, uint64_t *ret);

/* Rounds up to a multiple of `align` (a power of two); false on overflow. */
bool sl__align_up_u64(uint64_t a, uint64_t align, uint64_t *ret);

#endif
