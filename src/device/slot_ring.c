/*
 * One lock for the counters, none for the bytes: a slot that was taken belongs to its filler until it is
 * filled, then to the thread of the run until it is released.
 */
#include "device/slot_ring.h"

#include <string.h>

#include "base/mem.h"

enum {
    MAX_SLOTS = 4096,
    MAX_THREADS = 256
};

static bool can_take(const sl__slot_ring *ring)
{
    return ring->is_running && !ring->is_exhausted && ring->failed_job == UINT64_MAX &&
           ring->n_taken - ring->n_released < ring->max_jobs;
}

static const unsigned char *map_bytes(const sl_map *map, uint64_t offset)
{
    return (const unsigned char *)sl_map_data(map) + offset;
}

/* Copies the bytes of a chunk into a slot; gaps become zeros. */
static int copy_chunk(
        const sl__slot_ring *ring, const sl__chunk *chunk, unsigned char *dst, sl_error *reterr)
{
    sl__cursor cursor = chunk->start;
    sl__segment segment;
    size_t at = 0;
    size_t end = 0;
    int r = 0;
    while (r == 0 && sl__walk_segment(&ring->walk, chunk, &cursor, &at, &segment)) {
        memset(dst + end, 0, segment.at - end);
        end = segment.at + segment.n_bytes;
        if (ring->route == SL__ROUTE_MEMCPY) {
            memcpy(dst + segment.at, map_bytes(segment.map, segment.offset), segment.n_bytes);
        } else {
            r = ring->read(ring->read_ud, segment.map, dst + segment.at, segment.offset,
                    segment.n_bytes, reterr);
        }
    }
    return r;
}

/* Gets the bytes of a slot's chunk; without the lock. */
static int fill(const sl__slot_ring *ring, size_t i_slot, sl_error *reterr)
{
    sl__slot *slot = &ring->slots[i_slot];
    sl__cursor cursor = slot->chunk.start;
    sl__segment segment;
    size_t at = 0;
    if (ring->is_direct) {
        bool has_bytes = sl__walk_segment(&ring->walk, &slot->chunk, &cursor, &at, &segment);
        slot->src = has_bytes ? map_bytes(segment.map, segment.offset) : NULL;
        return 0;
    }
    unsigned char *dst = (unsigned char *)ring->memory.data + i_slot * ring->slot_bytes;
    slot->src = dst;
    return copy_chunk(ring, &slot->chunk, dst, reterr);
}

/* Holds the window of a chunk of the registered route for its slot; the lock is released meanwhile. */
static void get_window(sl__slot_ring *ring, sl__slot *slot)
{
    const sl__piece *piece =
            &ring->walk.slices[slot->chunk.i_slice].pieces[slot->chunk.start.i_piece];
    uint64_t offset = piece->offset + slot->chunk.start.n_done;
    bool is_new;
    slot->i_window = sl__map_windows_hold(&ring->windows, piece->map, offset, &is_new);
    slot->has_window = true;
    sl__window *window = &ring->windows.items[slot->i_window];
    if (is_new) {
        sl__mutex_unlock(&ring->lock);
        sl__map_windows_register(&ring->windows, slot->i_window);
        sl__mutex_lock(&ring->lock);
        window->is_busy = false;
        ring->windows.n_registered += window->registration != NULL;
        ring->windows.n_refused += window->registration == NULL;
        sl__cond_broadcast(&ring->changed);
    }
    while (window->is_busy) {
        sl__cond_wait(&ring->changed, &ring->lock);
    }
}

/* Takes the next job and fills it; the caller holds the lock, which is released meanwhile. */
static void take_and_fill(sl__slot_ring *ring)
{
    sl__chunk chunk;
    sl_error error = {0};
    if (!sl__walk_next(&ring->walk, &ring->cursor, &chunk)) {
        ring->is_exhausted = true;
        sl__cond_broadcast(&ring->changed);
        return;
    }
    uint64_t job = ring->n_taken++;
    size_t i_slot = (size_t)(job % ring->n_slots);
    ring->slots[i_slot].chunk = chunk;
    ring->n_filling++;
    if (ring->route == SL__ROUTE_REGISTERED && chunk.n_bytes > 0) {
        get_window(ring, &ring->slots[i_slot]);
    }
    sl__mutex_unlock(&ring->lock);
    int r = fill(ring, i_slot, &error);
    sl__mutex_lock(&ring->lock);
    ring->n_filling--;
    ring->n_fills += ring->is_direct ? 0 : 1;
    ring->slots[i_slot].is_filled = r == 0;
    if (r < 0 && job < ring->failed_job) {
        ring->failed_job = job;
        ring->error = error;
        ring->error.code = r; /* whether or not the reader filled it */
    }
    sl__cond_broadcast(&ring->changed);
}

static void serve(void *ud)
{
    sl__slot_ring *ring = ud;
    sl__mutex_lock(&ring->lock);
    while (!ring->stops) {
        if (can_take(ring) && ring->has_help) {
            take_and_fill(ring);
        } else {
            sl__cond_wait(&ring->can_take, &ring->lock);
        }
    }
    sl__mutex_unlock(&ring->lock);
}

static int make_locks(sl__slot_ring *ring, sl_error *reterr)
{
    int r = sl__mutex_init(&ring->lock, reterr);
    if (r < 0) {
        return r;
    }
    r = sl__cond_init(&ring->can_take, reterr);
    if (r < 0) {
        goto out_lock;
    }
    r = sl__cond_init(&ring->changed, reterr);
    if (r < 0) {
        goto out_cond;
    }
    ring->has_locks = true;
    return 0;
out_cond:
    sl__cond_done(&ring->can_take);
out_lock:
    sl__mutex_done(&ring->lock);
    return r;
}

static int make_slots(sl__slot_ring *ring, sl_error *reterr)
{
    if (ring->n_slots > MAX_SLOTS || ring->n_threads > MAX_THREADS ||
            ring->slot_bytes > SIZE_MAX / ring->n_slots) {
        return sl__fail(reterr, SL_EINVAL,
                "a ring of %zu slots of %zu bytes with %zu threads was asked for; at most %d slots "
                "and %d threads are possible",
                ring->n_slots, ring->slot_bytes, ring->n_threads, MAX_SLOTS, MAX_THREADS);
    }
    ring->slots = sl__alloc(ring->n_slots, sizeof *ring->slots);
    ring->threads = sl__alloc(ring->n_threads, sizeof *ring->threads);
    if (!ring->slots || !ring->threads) {
        return sl__fail_nomem(reterr, ring->n_slots * sizeof *ring->slots, "slots of a transfer");
    }
    ring->windows.device = ring->device;
    ring->windows.window_bytes = ring->window_bytes;
    int r = sl__map_windows_init(&ring->windows, ring->n_windows, reterr);
    if (r < 0) {
        return r;
    }
    r = sl_pinned_alloc(ring->device, ring->n_slots * ring->slot_bytes, &ring->memory, reterr);
    for (size_t i = 0; i < ring->n_slots && r == 0; i++) {
        r = sl_event_create(ring->device, &ring->slots[i].event, reterr);
    }
    return r;
}

int sl__slot_ring_init(sl__slot_ring *ring, sl_error *reterr)
{
    ring->failed_job = UINT64_MAX;
    int r = make_locks(ring, reterr);
    if (r == 0) {
        r = make_slots(ring, reterr);
    }
    for (size_t i = 0; i < ring->n_threads && r == 0; i++) {
        r = sl__thread_start(&ring->threads[i], "sluice-fill", serve, ring, reterr);
    }
    return r;
}

void sl__slot_ring_done(sl__slot_ring *ring)
{
    if (ring->has_locks) {
        sl__mutex_lock(&ring->lock);
        ring->stops = true;
        sl__cond_broadcast(&ring->can_take);
        sl__mutex_unlock(&ring->lock);
    }
    for (size_t i = 0; ring->threads && i < ring->n_threads; i++) {
        sl__thread_join(&ring->threads[i]);
    }
    for (size_t i = 0; ring->slots && i < ring->n_slots; i++) {
        sl_event_free(&ring->slots[i].event);
    }
    sl__map_windows_done(&ring->windows);
    sl_pinned_free(&ring->memory);
    if (ring->has_locks) {
        sl__cond_done(&ring->changed);
        sl__cond_done(&ring->can_take);
        sl__mutex_done(&ring->lock);
    }
    sl__free(ring->threads);
    sl__free(ring->slots);
    memset(ring, 0, sizeof *ring);
}

void sl__slot_ring_begin(sl__slot_ring *ring, const sl__walk *walk, sl__route route)
{
    sl__mutex_lock(&ring->lock);
    ring->route = route;
    ring->is_direct = route == SL__ROUTE_PLAIN || route == SL__ROUTE_REGISTERED;
    ring->walk = *walk;
    ring->walk.joins = !ring->is_direct;
    ring->walk.max_bytes = ring->slot_bytes;
    ring->walk.window_bytes = 0;
    ring->max_jobs = ring->n_slots;
    ring->has_help = ring->n_threads > 0 && route != SL__ROUTE_PLAIN;
    if (route == SL__ROUTE_REGISTERED) {
        ring->walk.max_bytes = (size_t)ring->window_bytes;
        ring->walk.window_bytes = ring->window_bytes;
        ring->max_jobs = ring->n_slots < ring->windows.n ? ring->n_slots : ring->windows.n;
    }
    ring->cursor = (sl__cursor){0};
    ring->is_exhausted = false;
    ring->n_taken = 0;
    ring->n_consumed = 0;
    ring->n_released = 0;
    ring->failed_job = UINT64_MAX;
    ring->is_running = true;
    sl__cond_broadcast(&ring->can_take);
    sl__mutex_unlock(&ring->lock);
}

static void empty(sl__slot_ring *ring, sl__slot *slot)
{
    if (slot->has_window) {
        sl__map_windows_let_go(&ring->windows, slot->i_window);
    }
    slot->has_window = false;
    slot->is_filled = false;
}

void sl__slot_ring_end(sl__slot_ring *ring)
{
    sl__mutex_lock(&ring->lock);
    ring->is_running = false;
    while (ring->n_filling > 0) {
        sl__cond_wait(&ring->changed, &ring->lock);
    }
    for (size_t i = 0; i < ring->n_slots; i++) {
        empty(ring, &ring->slots[i]);
    }
    sl__mutex_unlock(&ring->lock);
}

/* The caller holds the lock. */
static sl__ring_state state_of(const sl__slot_ring *ring)
{
    const sl__slot *next = &ring->slots[ring->n_consumed % ring->n_slots];
    bool is_taken = ring->n_consumed < ring->n_taken;
    if (ring->failed_job <= ring->n_consumed) {
        return SL__RING_FAILED;
    }
    if (is_taken && next->is_filled) {
        return SL__RING_READY;
    }
    if (!is_taken && ring->is_exhausted) {
        return SL__RING_END;
    }
    if (can_take(ring) && !ring->has_help) {
        return SL__RING_MAY_FILL;
    }
    if (is_taken || can_take(ring)) {
        return SL__RING_BUSY;
    }
    return SL__RING_FULL;
}

sl__ring_state sl__slot_ring_next(sl__slot_ring *ring, sl__slot **ret_slot)
{
    sl__mutex_lock(&ring->lock);
    sl__ring_state state = state_of(ring);
    if (state == SL__RING_READY) {
        *ret_slot = &ring->slots[ring->n_consumed % ring->n_slots];
        ring->n_consumed++;
    }
    sl__mutex_unlock(&ring->lock);
    return state;
}

void sl__slot_ring_wait(sl__slot_ring *ring)
{
    sl__mutex_lock(&ring->lock);
    while (state_of(ring) == SL__RING_BUSY) {
        sl__cond_wait(&ring->changed, &ring->lock);
    }
    sl__mutex_unlock(&ring->lock);
}

void sl__slot_ring_fill_one(sl__slot_ring *ring)
{
    sl__mutex_lock(&ring->lock);
    if (can_take(ring)) {
        take_and_fill(ring);
    }
    sl__mutex_unlock(&ring->lock);
}

size_t sl__slot_ring_n_in_flight(sl__slot_ring *ring)
{
    sl__mutex_lock(&ring->lock);
    size_t n = (size_t)(ring->n_consumed - ring->n_released);
    sl__mutex_unlock(&ring->lock);
    return n;
}

sl__slot *sl__slot_ring_oldest(sl__slot_ring *ring)
{
    sl__mutex_lock(&ring->lock);
    bool has_one = ring->n_released < ring->n_consumed;
    sl__slot *slot = &ring->slots[ring->n_released % ring->n_slots];
    sl__mutex_unlock(&ring->lock);
    return has_one ? slot : NULL;
}

void sl__slot_ring_release(sl__slot_ring *ring)
{
    sl__mutex_lock(&ring->lock);
    empty(ring, &ring->slots[ring->n_released % ring->n_slots]);
    ring->n_released++;
    sl__cond_signal(&ring->can_take);
    sl__mutex_unlock(&ring->lock);
}

int sl__slot_ring_error(sl__slot_ring *ring, sl_error *reterr)
{
    sl__mutex_lock(&ring->lock);
    int r = ring->error.code;
    if (reterr) {
        *reterr = ring->error;
    }
    sl__mutex_unlock(&ring->lock);
    return r;
}
