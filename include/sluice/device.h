/*
 * Devices: memory that weights are moved into, behind one table of functions.
 *
 * A device is a place with memory and one queue of copies. `host` is the computer's own memory, used in place;
 * `sim` is memory with a size, a link and failures to order; others (ggml's back ends, or your own) come in by
 * a table of functions. Copies into a device run in the order they were asked for; an event marks a point in
 * that order.
 *
 * Does not promise: that free bytes stay free (other programs use the device too), that an allocation below
 * the limits succeeds, or that a copy has happened before an event behind it was waited for. Nothing here
 * keeps a budget: see plan and residency for that. A buffer is never split: an allocation above
 * max_alloc_bytes is refused.
 *
 * Threads: describe, alloc, wrap, free, pinned memory, registrations, event create/wait/query/free: any thread.
 * upload, download, event record and synchronize are the queue: one thread at a time for each device.
 * One object (buffer, event) is used by one thread at a time, except that many may wait for an event.
 * Lifetime: buffers, events, pinned memory and registrations are freed before their device.
 *
 * Errors, unless a function says otherwise: SL_EINVAL (arguments), SL_ENOMEM (this device or the heap has no
 * memory left; another attempt may succeed after something was freed), SL_ELIMIT (above max_alloc_bytes; another
 * attempt will not succeed), SL_EDEVICE (the device failed or is lost), SL_EUNSUPPORTED (it has no such function).
 * Messages begin with the device's name.
 */
#ifndef SLUICE_DEVICE_H
#define SLUICE_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sluice/api.h"
#include "sluice/error.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sl_device sl_device;
typedef struct sl_buffer sl_buffer; /* a range of device memory */
typedef struct sl_event sl_event;   /* a point in a device's queue */
typedef struct sl_registration
        sl_registration; /* host memory that the device may copy from by itself */

typedef enum sl_device_kind {
    SL_DEVICE_HOST,       /* the computer's memory; a CPU computes */
    SL_DEVICE_GPU,        /* memory of its own behind a link */
    SL_DEVICE_INTEGRATED, /* a GPU in the computer's memory */
    SL_DEVICE_OTHER,      /* an accelerator of another kind */
    SL_DEVICE_SIM,        /* simulated: host memory with limits */
    SL_DEVICE_KIND_COUNT,
} sl_device_kind;

/* "host", "gpu", "integrated", "other", "sim"; "unknown" for anything else. Static string. */
SL_API const char *sl_device_kind_name(sl_device_kind kind);

/* What a device says of itself. Sizes in bytes. */
typedef struct sl_device_info {
    char name[64];         /* short, as on a command line: "cpu", "vulkan0", "sim" */
    char description[128]; /* for people: the model of the card, the limits of a simulation */
    sl_device_kind kind;
    uint64_t total_bytes; /* 0 = unknown */
    uint64_t free_bytes;  /* as of this call, and of all programs; 0 with total_bytes 0 = unknown */
    uint64_t max_alloc_bytes; /* the largest single buffer; 0 = unknown, try */
    uint64_t alignment;       /* of tensors in a buffer: a power of two, at least 1 */
    bool can_wrap;            /* sl_buffer_wrap works: host memory is used in place */
    bool is_unified;          /* its memory is the computer's RAM: never count it twice */
    bool is_async;            /* sl_buffer_upload returns before the copy is done */
    bool has_pinned;   /* sl_pinned_alloc gives memory that the device copies from directly */
    bool can_register; /* sl_register may work */
    bool can_query;    /* sl_event_query answers without waiting */
} sl_device_info;

/*
 * The functions of a device that you bring yourself. `self` is your device; buffers, events and registrations
 * are pointers of yours that come back in later calls; a success with a NULL one is a mistake. Arguments were
 * checked before a function is called: ranges lie within the buffer, sizes are above 0. Functions return 0 or a
 * negative SL_E... with reterr filled (reterr may be NULL), and follow the thread rules above.
 * Those marked optional may be NULL.
 */
typedef struct sl_device_ops {
    /* Any thread, often. Fills every field of *ret, which is zeroed before. */
    int (*describe)(void *self, sl_device_info *ret, sl_error *reterr);
    int (*alloc)(void *self, uint64_t n_bytes, void **ret_buffer, sl_error *reterr);
    /* Optional. The memory stays the caller's and is only read. */
    int (*wrap)(
            void *self, const void *data, uint64_t n_bytes, void **ret_buffer, sl_error *reterr);
    /* Whatever it returns, the buffer is gone for the caller. */
    int (*free)(void *self, void *buffer, sl_error *reterr);
    /* Optional. Host address of the buffer's first byte, NULL if the host cannot reach it. */
    void *(*host_data)(void *self, void *buffer);

    int (*upload)(void *self, void *buffer, uint64_t offset, const void *src, size_t n_bytes,
            sl_error *reterr);
    int (*download)(
            void *self, void *buffer, uint64_t offset, void *dst, size_t n_bytes, sl_error *reterr);
    int (*synchronize)(void *self, sl_error *reterr);

    int (*event_create)(void *self, void **ret_event, sl_error *reterr);
    int (*event_record)(void *self, void *event, sl_error *reterr);
    int (*event_wait)(void *self, void *event, sl_error *reterr);
    int (*event_query)(void *self, void *event, sl_error *reterr); /* optional: 1 = done, 0 = not */
    void (*event_free)(void *self, void *event);

    /* Optional, both or none. Memory that the device copies from directly, aligned to 32 bytes. */
    int (*pinned_alloc)(
            void *self, size_t n_bytes, void **ret_data, void **ret_impl, sl_error *reterr);
    void (*pinned_free)(void *self, void *impl);

    /* Optional, both or none. The range need not be page aligned. A failure leaves nothing registered. */
    int (*register_host)(
            void *self, const void *data, uint64_t n_bytes, void **ret_impl, sl_error *reterr);
    void (*unregister_host)(void *self, void *impl);

    void (*destroy)(void *self); /* optional: called by sl_device_free */
} sl_device_ops;

/*
 * Makes a device of your functions. `ops` is not copied and must outlive the device. On success the device owns
 * `self` and destroys it at sl_device_free; on failure it stays yours.
 * Errors: SL_EINVAL (a function that is not optional is missing), SL_ENOMEM.
 */
SL_API int sl_device_create(
        const sl_device_ops *ops, void *self, sl_device **ret_device, sl_error *reterr);

/*
 * The computer's own memory. A buffer can wrap a mapping; uploads are plain copies and done when they return.
 * Total and free bytes are reported as unknown: the RAM budget is the authority on RAM.
 */
SL_API int sl_device_create_host(sl_device **ret_device, sl_error *reterr);

/*
 * A simulated device from a text, for tests and for anyone without a GPU:
 *
 *     sim:4G,link=12G,max-alloc=256M,fail=alloc:3
 *
 * The first part is the memory's size; then, separated by commas and each at most once unless noted:
 *   link=BYTES         bytes a second of the link to it; default: copies take no time
 *   max-alloc=BYTES    the largest buffer; default: no limit of its own
 *   align=BYTES        alignment, a power of two up to 1M; default 256
 *   pinned=yes|no      default yes
 *   register=yes|no    default no
 *   keep-pages=yes|no  default no: freed memory goes back to the system. With yes it stays with the device until that
 *                      is freed, and a load does not wait for new pages, as on a real device
 *   fail=KIND:N        the N-th call of a kind (from 1) fails; repeatable up to 8 times
 *   slow=KIND:N        it takes a second longer; as fail
 *   lost=KIND:N        from that call on the device is lost; as fail
 *   short=read:N       the file ends too early; as fail
 * BYTES is a whole number with K, M, G or T behind it (powers of 1024) or none. KIND is one of alloc, free,
 * upload, copy (an upload that fails in the queue, seen at the next wait), event, record, wait, pin, register,
 * read (of the file, by the transfer).
 * Copies run on a thread of the device and really take the time of the link.
 * Errors: SL_EINVAL names the part of the text that is wrong and what may stand there; SL_ENOMEM.
 */
SL_API int sl_device_create_sim(const char *spec, sl_device **ret_device, sl_error *reterr);

/*
 * Waits for the queue and destroys the device; sets *device to NULL. Accepts NULL and a pointer to NULL. All
 * its buffers, events, pinned memory and registrations must have been freed.
 */
SL_API void sl_device_free(sl_device **device);

/* What the device says of itself now. Costs a call into the driver: not for inner loops. */
SL_API int sl_device_describe(sl_device *device, sl_device_info *ret_info, sl_error *reterr);

/* Name as in sl_device_info, taken at creation. Owned by the device. */
SL_API const char *sl_device_name(const sl_device *device);

/* The table and the object given to sl_device_create; tells one's own devices from others. */
SL_API const sl_device_ops *sl_device_get_ops(const sl_device *device);
SL_API void *sl_device_get_self(const sl_device *device);

/*
 * Device memory of n_bytes (at least 1), aligned to the device's alignment, with undefined content. Never split
 * and never placed elsewhere. May cost milliseconds.
 */
SL_API int sl_buffer_alloc(
        sl_device *device, uint64_t n_bytes, sl_buffer **ret_buffer, sl_error *reterr);

/*
 * A buffer over host memory that exists, for instance a part of a mapping: nothing is copied, and the memory is
 * only read. `data` stays the caller's and is valid until sl_buffer_free. Some devices want it page aligned.
 * Errors: SL_EUNSUPPORTED unless can_wrap.
 */
SL_API int sl_buffer_wrap(sl_device *device, const void *data, uint64_t n_bytes,
        sl_buffer **ret_buffer, sl_error *reterr);

/*
 * Returns the memory and sets *buffer to NULL, in every case. Nothing queued may still use it: wait for an event
 * behind the last copy first. Accepts NULL and a pointer to NULL.
 * Errors: SL_EDEVICE if the device could not take it back; its memory is then lost until the device is freed.
 */
SL_API int sl_buffer_free(sl_buffer **buffer, sl_error *reterr);

SL_API uint64_t sl_buffer_size(const sl_buffer *buffer);
SL_API sl_device *sl_buffer_device(const sl_buffer *buffer);

/* The buffer as its device knows it: what ops->alloc or ops->wrap returned. */
SL_API void *sl_buffer_get_impl(const sl_buffer *buffer);

/* Host address of the first byte (devices in host memory), or NULL. Valid until sl_buffer_free. */
SL_API void *sl_buffer_host_data(const sl_buffer *buffer);

/*
 * Queues a copy of n_bytes from host memory to `offset` in the buffer, behind all that was queued before. `src`
 * must stay valid and unchanged until an event recorded after this call was waited for. n_bytes 0 does nothing.
 * From pinned or registered memory the copy is asynchronous on devices with is_async; from other memory the
 * call may take as long as the copy. A failure may also show only at a later wait. A wrapped buffer is refused.
 * Errors: SL_EINVAL (range outside the buffer, wrapped buffer), SL_EDEVICE.
 */
SL_API int sl_buffer_upload(
        sl_buffer *buffer, uint64_t offset, const void *src, size_t n_bytes, sl_error *reterr);

/*
 * Waits for everything queued, then copies n_bytes from `offset` of the buffer to host memory and returns when
 * it is there. For checks, not for speed.
 */
SL_API int sl_buffer_download(
        sl_buffer *buffer, uint64_t offset, void *dst, size_t n_bytes, sl_error *reterr);

/* An event, not recorded yet: waiting for it returns at once. Cheap, but an allocation: create them ahead. */
SL_API int sl_event_create(sl_device *device, sl_event **ret_event, sl_error *reterr);

/* Marks the present end of the queue. Recording again moves the mark; nobody may be waiting for the old one. */
SL_API int sl_event_record(sl_event *event, sl_error *reterr);

/*
 * Blocks until everything queued before the mark is done. An error means that copies before the mark may not
 * have happened, and that none of them is still reading its source.
 */
SL_API int sl_event_wait(sl_event *event, sl_error *reterr);

/* 1 = done, 0 = not yet, or an error as sl_event_wait. Waits instead on devices without can_query. */
SL_API int sl_event_query(sl_event *event, sl_error *reterr);

/* Sets *event to NULL. Accepts NULL and a pointer to NULL. Does not wait. */
SL_API void sl_event_free(sl_event **event);

/* Its device, and the event as the device knows it: what ops->event_create returned. */
SL_API sl_device *sl_event_device(const sl_event *event);
SL_API void *sl_event_get_impl(const sl_event *event);

/*
 * Blocks until the queue is empty. Errors as sl_event_wait, for all copies since the last synchronize; they are
 * forgotten then, so that the next copies start afresh (a lost device stays lost).
 */
SL_API int sl_device_synchronize(sl_device *device, sl_error *reterr);

/* Host memory to copy from. Zeroed memory is a valid "none". */
typedef struct sl_pinned {
    void *data;     /* aligned to 32 bytes at least */
    size_t n_bytes; /* as asked for */
    bool is_pinned; /* false: plain memory, since the device has none or refused */
    sl_device *device;
    void *impl; /* of the device */
} sl_pinned;

/*
 * Page-locked host memory if the device has it and gives it, else plain memory: *ret says which. Pinning costs
 * about 1.7 GB/s and takes RAM from everybody: few, small, and kept. Counts against the RAM budget.
 * Errors: SL_EINVAL (n_bytes 0), SL_ENOMEM (not even plain memory).
 */
SL_API int sl_pinned_alloc(sl_device *device, size_t n_bytes, sl_pinned *ret, sl_error *reterr);

/* Frees and zeroes *pinned. Accepts NULL and zeroed memory. No copy may still read it. */
SL_API void sl_pinned_free(sl_pinned *pinned);

/*
 * Lets the device copy directly from existing host memory, for instance a mapping of a file (its pages are read
 * and locked: never more than the RAM budget allows). The range is widened to whole pages. A failure leaves
 * nothing registered and the device usable: fall back to copies through pinned memory.
 * Errors: SL_EUNSUPPORTED, SL_ENOMEM, SL_EEXIST (already registered), SL_EDEVICE.
 */
SL_API int sl_register(sl_device *device, const void *data, uint64_t n_bytes,
        sl_registration **ret_registration, sl_error *reterr);

/* Sets *registration to NULL. Accepts NULL and a pointer to NULL. No copy may still read the range. */
SL_API void sl_unregister(sl_registration **registration);

#ifdef __cplusplus
}
#endif

#endif
