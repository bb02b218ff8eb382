/*
 * The simulated device from inside: what a test can ask for, watch and break.
 *
 * Memory is host memory with an account. Copies are done in order by a thread of the device, or by hand
 * (is_stepped). Time is real (a copy lasts as long as the link needs) or a virtual clock that only counts. Each
 * kind of call is counted; a script says which call fails.
 *
 * Copies from memory that is neither pinned nor registered are waited for in the upload itself, as drivers do.
 *
 * Threads: as sluice/device.h says; the functions below may be called from any thread.
 */
#ifndef SL_DEVICE_SIM_H
#define SL_DEVICE_SIM_H

#include "base/status.h"
#include "sluice/device.h"
#include "sluice/map.h"

typedef enum sl__sim_call {
    SL__SIM_ALLOC,
    SL__SIM_FREE,   /* fails: the device keeps the memory */
    SL__SIM_UPLOAD, /* fails at the call */
    SL__SIM_COPY,   /* fails in the queue */
    SL__SIM_EVENT,  /* create */
    SL__SIM_RECORD, /* of an event */
    SL__SIM_WAIT,   /* for an event, or synchronize: waits, then fails once */
    SL__SIM_PIN,    /* fails: sl_pinned_alloc falls back to plain memory */
    SL__SIM_REGISTER,
    SL__SIM_READ, /* sl__sim_read */
    SL__SIM_CALL_COUNT,
} sl__sim_call;

/* "alloc", "free", ... as in the text of a device. Static string. */
const char *sl__sim_call_name(sl__sim_call call);

typedef enum sl__sim_fault_kind {
    SL__SIM_FAIL,
    SL__SIM_SLOW,  /* takes a second longer, and works */
    SL__SIM_LOST,  /* fails, and so does every later call */
    SL__SIM_SHORT, /* read only: the file ends too early */
    SL__SIM_FAULT_COUNT,
} sl__sim_fault_kind;

/* What happens at the n-th call (from 1) of a kind. */
typedef struct sl__sim_fault {
    sl__sim_fault_kind kind;
    sl__sim_call call;
    uint64_t n;
} sl__sim_fault;

enum {
    SL__SIM_MAX_FAULTS = 8
};

typedef struct sl__sim_spec {
    uint64_t n_bytes;         /* of memory */
    uint64_t link_bytes_s;    /* 0 = copies take no time */
    uint64_t max_alloc_bytes; /* 0 = no limit of its own */
    uint64_t alignment;       /* a power of two */
    bool has_pinned;
    bool can_register;
    bool keeps_pages; /* freed memory stays for later buffers of the same size */
    sl__sim_fault faults[SL__SIM_MAX_FAULTS];
    size_t n_faults;
    /* Not in the text: */
    bool has_virtual_clock; /* time only counts */
    bool is_stepped;        /* no thread: copies happen in sl__sim_step and in waits */
    bool poisons;           /* new memory holds 0xA5, freed memory 0xDD */
} sl__sim_spec;

/*
 * Reads a text as sl_device_create_sim describes it. Pure.
 * Errors: SL_EINVAL that names the part at fault and what may stand there.
 */
int sl__sim_parse(const char *text, sl__sim_spec *ret_spec, sl_error *reterr) SL_MUST_CHECK;

int sl__sim_create(
        const sl__sim_spec *spec, sl_device **ret_device, sl_error *reterr) SL_MUST_CHECK;

/* Whether the device is a simulated one: the functions below are for those alone. */
bool sl__sim_is(const sl_device *device);

typedef struct sl__sim_stats {
    uint64_t n_calls[SL__SIM_CALL_COUNT];
    uint64_t
            live_bytes; /* of buffers, rounded up to the alignment; with those that a failed free left */
    uint64_t peak_bytes;
    uint64_t lost_bytes; /* part of live_bytes that a failed free left */
    uint64_t pinned_bytes;
    uint64_t registered_bytes;
    uint64_t copied_bytes;
    uint64_t n_plain_uploads; /* from memory that was neither pinned nor registered */
    uint64_t n_events;        /* that exist */
    uint64_t n_queued;        /* copies not done yet */
    uint64_t n_misuses;       /* memory freed or unregistered under a queued copy */
    uint64_t now_ns;          /* of the virtual clock */
    bool is_lost;
} sl__sim_stats;
void sl__sim_get_stats(const sl_device *device, sl__sim_stats *ret);

/* A new script; the counts of calls start again, a lost device is found again. At most SL__SIM_MAX_FAULTS. */
void sl__sim_set_faults(sl_device *device, const sl__sim_fault *faults, size_t n_faults);

/* Does up to n queued copies of a stepped device; returns how many. */
size_t sl__sim_step(sl_device *device, size_t n);

/* sl_map_pread with counts and faults; `sim_device` is a simulated sl_device. */
int sl__sim_read(
        void *sim, const sl_map *map, void *buf, uint64_t offset, size_t n_bytes, sl_error *reterr);

#endif
