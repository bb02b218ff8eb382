/*
 * Memory of the simulated device: the pages of its buffers, and what its queue reads by itself, pinned (allocated
 * here) or registered (the caller's).
 * Copies from all other memory are waited for in the upload, so that a caller who forgets to pin is seen.
 */
#include "device/sim_impl.h"

#include <stdlib.h>

#include "base/mem.h"
#include "os/os_process.h"

/* New memory is paid for by the page, which a device's is not: in few pages it hardly shows. */
#define LARGE_PAGE_BYTES ((size_t)2 << 20)

/* At least n_bytes of whole pages, or NULL; free() them. */
static void *new_pages(uint64_t n_bytes)
{
    uint64_t n_whole;
    size_t page = n_bytes < LARGE_PAGE_BYTES ? sl__page_bytes() : LARGE_PAGE_BYTES;
    bool fits = sl__align_up_u64(n_bytes, page, &n_whole) && n_whole <= SIZE_MAX / 2;
    void *data = fits ? aligned_alloc(page, (size_t)n_whole) : NULL;
    if (data && page == LARGE_PAGE_BYTES) {
        sl__advise_large_pages(data, (size_t)n_whole);
    }
    return data;
}

void *sl__sim_take_pages(sl__sim *s, uint64_t n_bytes)
{
    sl__mutex_lock(&s->queue.lock);
    sl__sim_spare **at = &s->spares;
    while (*at && (*at)->n_bytes != n_bytes) {
        at = &(*at)->next;
    }
    sl__sim_spare *spare = *at;
    if (spare) {
        *at = spare->next;
    }
    sl__mutex_unlock(&s->queue.lock);
    return spare ? (void *)spare : new_pages(n_bytes);
}

void sl__sim_give_pages(sl__sim *s, void *data, uint64_t n_bytes)
{
    if (!s->spec.keeps_pages || n_bytes < sizeof(sl__sim_spare)) {
        free(data);
        return;
    }
    sl__sim_spare *spare = data;
    spare->n_bytes = n_bytes;
    sl__mutex_lock(&s->queue.lock);
    spare->next = s->spares;
    s->spares = spare;
    sl__mutex_unlock(&s->queue.lock);
}

void sl__sim_free_spares(sl__sim *s)
{
    while (s->spares) {
        sl__sim_spare *next = s->spares->next;
        free(s->spares);
        s->spares = next;
    }
}

bool sl__sim_is_pinned(const sl__sim *s, const void *data, uint64_t n_bytes)
{
    uintptr_t at = (uintptr_t)data;
    for (const sl__sim_range *range = s->ranges; range; range = range->next) {
        uintptr_t start = (uintptr_t)range->data;
        if (at >= start && n_bytes <= range->n_bytes && at - start <= range->n_bytes - n_bytes) {
            return true;
        }
    }
    return false;
}

/* Whether any of the bytes is in a range. */
static bool overlaps_range(const sl__sim *s, const void *data, uint64_t n_bytes)
{
    uintptr_t at = (uintptr_t)data;
    for (const sl__sim_range *range = s->ranges; range; range = range->next) {
        uintptr_t start = (uintptr_t)range->data;
        if (at < start + range->n_bytes && start < at + n_bytes) {
            return true;
        }
    }
    return false;
}

/* Adds a range whose memory is there already. */
static int add_range(sl__sim *s, sl__sim_range range, void **ret_impl, sl_error *reterr)
{
    sl__sim_range *added = sl__alloc(1, sizeof *added);
    if (!added) {
        return sl__fail_nomem(reterr, sizeof *added, "memory to copy from");
    }
    *added = range;
    sl__mutex_lock(&s->queue.lock);
    added->next = s->ranges;
    s->ranges = added;
    *(range.to_free ? &s->stats.pinned_bytes : &s->stats.registered_bytes) += range.n_bytes;
    sl__mutex_unlock(&s->queue.lock);
    *ret_impl = added;
    return 0;
}

void sl__sim_remove_range(void *self, void *impl)
{
    sl__sim *s = self;
    sl__sim_range *range = impl;
    sl__mutex_lock(&s->queue.lock);
    if (sl__sim_queue_reads(&s->queue, range->data, range->n_bytes)) {
        s->stats.n_misuses++;
        sl__sim_queue_wait(&s->queue, s->queue.n_ever);
    }
    sl__sim_range **at = &s->ranges;
    while (*at != range) {
        at = &(*at)->next;
    }
    *at = range->next;
    *(range->to_free ? &s->stats.pinned_bytes : &s->stats.registered_bytes) -= range->n_bytes;
    sl__mutex_unlock(&s->queue.lock);
    free(range->to_free);
    sl__free(range);
}

static int enter_unlocked(sl__sim *s, sl__sim_call call, sl_error *reterr)
{
    sl__mutex_lock(&s->queue.lock);
    int r = sl__sim_enter(s, call, reterr);
    sl__mutex_unlock(&s->queue.lock);
    return r;
}

int sl__sim_pinned_alloc(
        void *self, size_t n_bytes, void **ret_data, void **ret_impl, sl_error *reterr)
{
    sl__sim *s = self;
    int r = enter_unlocked(s, SL__SIM_PIN, reterr);
    if (r < 0) {
        return r;
    }
    void *data = new_pages(n_bytes);
    if (!data) {
        return sl__fail_nomem(reterr, n_bytes, "pinned memory");
    }
    r = add_range(s, (sl__sim_range){.data = data, .n_bytes = n_bytes, .to_free = data}, ret_impl,
            reterr);
    if (r < 0) {
        free(data);
        return r;
    }
    *ret_data = data;
    return 0;
}

int sl__sim_register(
        void *self, const void *data, uint64_t n_bytes, void **ret_impl, sl_error *reterr)
{
    sl__sim *s = self;
    sl__mutex_lock(&s->queue.lock);
    int r = sl__sim_enter(s, SL__SIM_REGISTER, reterr);
    if (r == 0 && overlaps_range(s, data, n_bytes)) {
        r = sl__fail(reterr, SL_EEXIST, "sim: this memory is registered already");
    }
    sl__mutex_unlock(&s->queue.lock);
    if (r < 0) {
        return r;
    }
    return add_range(s, (sl__sim_range){.data = data, .n_bytes = n_bytes}, ret_impl, reterr);
}
