/*
 * Residency: which units are on their devices, who uses them, and who moves them.
 *
 * A unit is a named set of tensors that is loaded and evicted as one:
 *
 *     absent -> loading -> resident -> evicting -> absent
 *
 * A load that fails goes from loading to evicting to absent: memory is returned, the error is kept in the unit and
 * given to whoever waited, and the next request tries again. Only a lease gives pointers; a unit is evicted
 * when no lease holds it. One worker for each device moves units, needed ones first.
 *
 * If memory is short, a request evicts what no lease and no waiting request holds, then tries the unit's second
 * place, then fails with SL_EBUDGET (the budget) or SL_ENOMEM (the device). It never waits for somebody else to
 * release a lease, so requests cannot block each other.
 *
 * Does not promise: that a device has the memory of its budget. Copies of weights in RAM are never made; a unit that its
 * device uses in place is not copied at all and counts 0 bytes.
 *
 * Threads: any thread may call, except that open, close, add_unit and freeing a lease, phase or scratch are done
 * by one thread at a time for each object. No callback runs under a lock.
 * Lifetime: models and devices outlive the residency; leases, phases and scratch are released before close.
 */
#ifndef SLUICE_RESIDENCY_H
#define SLUICE_RESIDENCY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sluice/api.h"
#include "sluice/device.h"
#include "sluice/error.h"
#include "sluice/log.h"
#include "sluice/model.h"
#include "sluice/plan.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sl_residency sl_residency;
typedef struct sl_lease sl_lease;
typedef struct sl_phase sl_phase;
typedef struct sl_scratch sl_scratch;

typedef enum sl_unit_state {
    SL_UNIT_ABSENT,
    SL_UNIT_LOADING,
    SL_UNIT_RESIDENT,
    SL_UNIT_EVICTING,
    SL_UNIT_STATE_COUNT
} sl_unit_state;

typedef struct sl_residency_place {
    sl_device *device;
    uint64_t budget_bytes;
} sl_residency_place;

typedef struct sl_residency_opts {
    const sl_residency_place *places;
    size_t n_places;
    sl_policy policy;
    uint64_t slice_bytes; /* 0 = a 24th of a unit, from 1 to 64 MiB */
    size_t ring_bytes;    /* of host memory for each worker's copies; 0 = 64 MiB */
    size_t n_trace;       /* events that are kept; 0 = 4096 */
    bool is_stepped; /* no threads: work is done by the calls that wait for it. For one thread */
    sl_logger log;
} sl_residency_opts;

/* How a wait is given up: asked every few milliseconds while waiting. NULL anywhere = never. */
typedef struct sl_wait {
    bool (*is_cancelled)(void *ud);
    void *ud;
} sl_wait;

typedef struct sl_unit_spec {
    const char *name; /* copied */
    const sl_model *model;
    const sl_tensor *const *tensors; /* copied; the order in which they arrive */
    size_t n_tensors;
    size_t i_place;
    size_t i_second; /* or SL_PLAN_NONE */
    /* Room that a tensor takes on a place, at least its bytes; NULL = its bytes. */
    uint64_t (*room)(void *ud, size_t i_place, const sl_tensor *tensor);
    void *ud;
} sl_unit_spec;

/* Errors: SL_EINVAL, SL_ENOMEM, those of sl_device_describe. */
SL_API int sl_residency_open(
        const sl_residency_opts *opts, sl_residency **ret_residency, sl_error *reterr);

/* Ends all waits with SL_ECANCELLED and refuses new requests. Any thread; sl_residency_close follows. */
SL_API void sl_residency_shut(sl_residency *residency);

/* Shuts, joins the workers, evicts everything, frees, and sets *residency to NULL. Accepts NULL. */
SL_API void sl_residency_close(sl_residency **residency);

/*
 * Adds a unit; its index follows those before. Nothing is allocated on a device.
 * Errors: SL_EINVAL; SL_ELIMIT (a tensor is larger than the largest allocation of the device), which is no
 * error if the unit has a second place where it fits: that is then its place.
 */
SL_API int sl_residency_add_unit(
        sl_residency *residency, const sl_unit_spec *spec, size_t *ret_unit, sl_error *reterr);

/* Bytes that a unit takes on a place that it was given; for plans. 0 if used in place. */
SL_API uint64_t sl_residency_unit_bytes(
        const sl_residency *residency, size_t i_unit, size_t i_place);

/* A unit as it is now. */
typedef struct sl_unit_status {
    const char *name; /* lives as long as the residency */
    sl_unit_state state;
    size_t wanted_place;
    size_t actual_place; /* where it is or goes; SL_PLAN_NONE while absent */
    uint64_t n_bytes;    /* on the actual place */
    size_t n_leases;
    uint64_t epoch;     /* successful loads so far */
    uint64_t n_loads;   /* begun */
    uint64_t n_evicted; /* successful and failed loads that ended */
    size_t n_slices;
    size_t n_arrived;
    sl_error last_error; /* of the last load; code 0 after a success */
    /*
     * The latest load that succeeded; a failed one changes nothing here. `route` is what most of its bytes took: "plain",
     * "pread", "memcpy", "registered", or "in place" if none had to move; a static string. It is NULL before the
     * first load, and for a unit without bytes.
     */
    const char *route;
    uint64_t
            load_ns; /* nanoseconds; allocating is part of it, and in the first load making the ring */
    uint64_t load_bytes;  /* moved, of the file; 0 in place */
    uint64_t load_stalls; /* times that nothing was on the link because the ring was being filled */
} sl_unit_status;
SL_API void sl_residency_unit_status(
        sl_residency *residency, size_t i_unit, sl_unit_status *ret_status);

/* The account of a place. */
typedef struct sl_place_status {
    const char *name;
    uint64_t budget_bytes;
    uint64_t used[SL_MEM_KIND_COUNT];
    uint64_t peak[SL_MEM_KIND_COUNT];
    uint64_t used_total;
    uint64_t peak_total;
    uint64_t lost_bytes; /* part of used: the device did not take them back */
    uint64_t
            device_bytes; /* what the device says that this process took since open; 0 if it does not know */
} sl_place_status;
SL_API int sl_residency_place_status(
        sl_residency *residency, size_t i_place, sl_place_status *ret_status, sl_error *reterr);
SL_API void sl_residency_reset_peaks(sl_residency *residency);

/*
 * Loads n units, all or none, and holds them. With `is_streaming` it returns when all of them have their memory,
 * and sl_lease_wait says when a tensor has arrived. Wakes from sleep.
 * Errors: SL_EINVAL, SL_ECANCELLED, SL_EBUDGET, and those of loading: the error of the first unit that failed.
 */
SL_API int sl_lease_acquire(sl_residency *residency, const size_t *units, size_t n,
        bool is_streaming, const sl_wait *wait, sl_lease **ret_lease, sl_error *reterr);

/*
 * Gives the units back and sets *lease to NULL. The device must have finished with them: everything that computes
 * with them was waited for. Accepts NULL.
 */
SL_API void sl_lease_release(sl_lease **lease);

/* Waits until a tensor of a leased unit has arrived; NULL = all of the unit. Errors: those of its load. */
SL_API int sl_lease_wait(sl_lease *lease, size_t i_unit, const sl_tensor *tensor,
        const sl_wait *wait, sl_error *reterr);

/* Where a tensor is. */
typedef struct sl_tensor_at {
    sl_buffer *buffer; /* NULL for a tensor of no bytes */
    uint64_t offset;
    size_t i_place;
    uint64_t epoch; /* of the unit: graphs built on another one are void */
} sl_tensor_at;

/*
 * Errors: SL_EINVAL (the unit is not in the lease, or the tensor not in the unit), SL_EBUSY (not arrived yet: see
 * sl_lease_wait), the error of the load if it failed since the lease was given.
 */
SL_API int sl_lease_tensor(sl_lease *lease, size_t i_unit, const sl_tensor *tensor,
        sl_tensor_at *ret_at, sl_error *reterr);

/* Asks for a unit to be loaded when nobody needs the worker and the memory. Never evicts. */
SL_API void sl_residency_prefetch(sl_residency *residency, size_t i_unit);

/* Asks for a unit to leave as soon as no lease and no waiting request holds it. A later request takes it back. */
SL_API void sl_residency_evict(sl_residency *residency, size_t i_unit);

/* Waits until no worker has anything to do. Errors: SL_ECANCELLED. */
SL_API int sl_residency_settle(sl_residency *residency, const sl_wait *wait, sl_error *reterr);

/*
 * Begins step i_step of a feasible plan whose places and units are those of the residency, in order: units
 * without a role leave, scratch is booked, needed units are leased, and units ahead are fetched. The plan must
 * live until sl_phase_end. One phase at a time.
 * Errors: SL_EBUSY (a phase is active), those of sl_lease_acquire; nothing is held then.
 */
SL_API int sl_phase_begin(sl_residency *residency, const sl_plan *plan, size_t i_step,
        const char *name, bool is_streaming, const sl_wait *wait, sl_phase **ret_phase,
        sl_error *reterr);

/* Lease of the needed units; released by sl_phase_end. */
SL_API sl_lease *sl_phase_lease(sl_phase *phase);

/* Ends a phase under the policy and sets *phase to NULL. Accepts NULL. */
SL_API void sl_phase_end(sl_phase **phase);

/*
 * Books n_bytes of scratch on a place, within what the active phase has booked and beyond it while the budget
 * lasts. With `is_allocated` the device memory comes with it (see sl_scratch_buffer); otherwise the caller
 * allocates after this call and frees before the release.
 * Errors: SL_EINVAL, SL_EBUDGET, SL_ECANCELLED, those of sl_buffer_alloc.
 */
SL_API int sl_scratch_acquire(sl_residency *residency, size_t i_place, sl_mem_kind kind,
        uint64_t n_bytes, bool is_allocated, const sl_wait *wait, sl_scratch **ret_scratch,
        sl_error *reterr);
SL_API sl_buffer *sl_scratch_buffer(const sl_scratch *scratch); /* NULL unless allocated */
SL_API void sl_scratch_release(sl_scratch **scratch);

/*
 * Sleep levels: 0 awake; 1 scratch that phases left behind is released; 2 all weights are off the devices.
 * Errors: SL_EBUSY (a phase is active, or for level 2 a unit is leased), SL_EINVAL, SL_ECANCELLED.
 */
SL_API int sl_residency_sleep(
        sl_residency *residency, unsigned level, const sl_wait *wait, sl_error *reterr);
SL_API unsigned sl_residency_sleep_level(sl_residency *residency);

/*
 * Writes the latest events (moves, leases, phases, stalls) as Chrome trace JSON, which Perfetto opens.
 * Errors: SL_ENOMEM, those of writing the file.
 */
SL_API int sl_residency_write_trace(sl_residency *residency, const char *path, sl_error *reterr);

SL_API const char *sl_unit_state_name(sl_unit_state state); /* "absent", ...; static */

#ifdef __cplusplus
}
#endif

#endif
