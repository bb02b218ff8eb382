/*
 * The slots of a transfer and the threads that fill them.
 *
 * Jobs are chunks, numbered from 0 in the order of the bytes; job j lives in slot j % n_slots. A job is taken
 * (its slot is reserved and its bytes fetched), then filled, then released (the device has its bytes). Threads
 * take and fill; the thread of the run consumes in order and releases in order. To fill a job of the registered route
 * is to register the window that its bytes are in.
 *
 * Threads: begin, end, ready, release and fill_one are for the thread of the run.
 */
#ifndef SL_DEVICE_SLOT_RING_H
#define SL_DEVICE_SLOT_RING_H

#include "device/map_windows.h"
#include "device/transfer_walk.h"
#include "os/os_thread.h"

typedef struct sl__slot {
    sl__chunk chunk;
    const unsigned char *src; /* the bytes: in the ring, or in a mapping */
    sl_event *event;          /* recorded behind the upload */
    bool is_filled;
    bool has_window; /* src is in this one */
    size_t i_window;
} sl__slot;

typedef enum sl__ring_state {
    SL__RING_READY,    /* the next job is filled: upload it */
    SL__RING_MAY_FILL, /* a job may be taken, and nobody but the caller does */
    SL__RING_BUSY,     /* threads are filling the next job */
    SL__RING_FULL,     /* no slot is free: release one */
    SL__RING_END,      /* every job was consumed */
    SL__RING_FAILED,   /* a job could not be filled */
} sl__ring_state;

typedef struct sl__slot_ring {
    /* Set before init, constant from then on. */
    sl_device *device;
    size_t n_slots;
    size_t slot_bytes;
    size_t n_threads; /* 0: fill_one does it all */
    size_t n_windows; /* that may be registered at once */
    uint64_t window_bytes;
    sl__read_fn read;
    void *read_ud;

    sl__slot *slots;
    sl_pinned memory;
    sl__thread *threads;
    sl__mutex lock;
    sl__cond can_take;
    sl__cond changed;
    bool has_locks;

    /* The run; under the lock. */
    bool stops;
    bool is_running; /* between begin and end */
    bool is_direct;  /* nothing is copied: src points into the mapping */
    bool has_help;   /* threads fill */
    size_t max_jobs; /* taken and not released */
    sl__route route;
    sl__walk walk;
    sl__cursor cursor;
    bool is_exhausted; /* the cursor is at the end */
    uint64_t n_taken;
    uint64_t n_consumed;
    uint64_t n_released;
    size_t n_filling;
    uint64_t failed_job; /* UINT64_MAX = none */
    sl_error error;      /* of failed_job */
    uint64_t n_fills;    /* ever */
    sl__map_windows windows;
} sl__slot_ring;

int sl__slot_ring_init(sl__slot_ring *ring, sl_error *reterr) SL_MUST_CHECK;

/* Joins the threads and frees everything. Accepts what a failed init left, and zeroed memory. */
void sl__slot_ring_done(sl__slot_ring *ring);

/* Starts filling. The slices stay valid until end. */
void sl__slot_ring_begin(sl__slot_ring *ring, const sl__walk *walk, sl__route route);

/* No more jobs are taken; returns when no thread touches a slot or a slice any more. */
void sl__slot_ring_end(sl__slot_ring *ring);

/* What the caller should do next; with SL__RING_READY, *ret_slot is consumed. */
sl__ring_state sl__slot_ring_next(sl__slot_ring *ring, sl__slot **ret_slot);

/* Waits while the next job is being filled by threads (SL__RING_BUSY). */
void sl__slot_ring_wait(sl__slot_ring *ring);

/* Takes and fills one job in this thread (SL__RING_MAY_FILL). */
void sl__slot_ring_fill_one(sl__slot_ring *ring);

/* The oldest consumed job that is not released; NULL if there is none. */
sl__slot *sl__slot_ring_oldest(sl__slot_ring *ring);
void sl__slot_ring_release(sl__slot_ring *ring);

/* Consumed and not released: at most this many uploads are in flight. */
size_t sl__slot_ring_n_in_flight(sl__slot_ring *ring);

/* The error behind SL__RING_FAILED. */
int sl__slot_ring_error(sl__slot_ring *ring, sl_error *reterr);

#endif
