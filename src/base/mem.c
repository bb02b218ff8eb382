#include "base/mem.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Allocations that still succeed; negative = never fail. */
static atomic_long n_left = -1;

void sl__mem_fail_after(long n)
{
    atomic_store(&n_left, n);
}

static bool must_fail(void)
{
    if (atomic_load_explicit(&n_left, memory_order_relaxed) < 0) {
        return false;
    }
    return atomic_fetch_sub(&n_left, 1) == 0;
}

void *sl__alloc(size_t n, size_t size)
{
    if (must_fail()) {
        return NULL;
    }
    return n == 0 || size == 0 ? calloc(1, 1) : calloc(n, size);
}

void *sl__realloc(void *p, size_t n, size_t size)
{
    uint64_t total;
    if (must_fail() || !sl__mul_u64(n, size, &total) || total > SIZE_MAX) {
        return NULL;
    }
    return realloc(p, total == 0 ? 1 : (size_t)total);
}

void sl__free(void *p)
{
    free(p);
}

char *sl__strndup(const char *s, size_t n)
{
    char *copy = n < SIZE_MAX ? sl__alloc(n + 1, 1) : NULL;
    if (copy && n > 0) {
        memcpy(copy, s, n);
    }
    return copy;
}

bool sl__grow(void **p, size_t *cap, size_t need, size_t size)
{
    if (need <= *cap) {
        return true;
    }
    size_t want = *cap + *cap / 2;
    if (want < need) {
        want = need;
    }
    if (want < 16) {
        want = 16;
    }
    void *grown = sl__realloc(*p, want, size);
    if (!grown) {
        return false;
    }
    *p = grown;
    *cap = want;
    return true;
}

bool sl__add_u64(uint64_t a, uint64_t b, uint64_t *ret)
{
    if (a > UINT64_MAX - b) {
        return false;
    }
    *ret = a + b;
    return true;
}

bool sl__mul_u64(uint64_t a, uint64_t b, uint64_t *ret)
{
    if (b != 0 && a > UINT64_MAX / b) {
        return false;
    }
    *ret = a * b;
    return true;
}

bool sl__align_up_u64(uint64_t a, uint64_t align, uint64_t *ret)
{
    uint64_t sum;
    if (!sl__add_u64(a, align - 1, &sum)) {
        return false;
    }
    *ret = sum & ~(align - 1);
    return true;
}
