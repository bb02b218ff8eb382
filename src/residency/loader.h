/*
 * Brings a unit's bytes from its files into buffers of a device, or takes them where they are mapped.
 *
 * Threads: one at a time. Belongs to a worker; no lock is held.
 */
#ifndef SL_RESIDENCY_LOADER_H
#define SL_RESIDENCY_LOADER_H

#include "device/transfer.h"
#include "residency/unit.h"
#include "sluice/device.h"

/* `transfer` is made by the first load that copies, from `opts`, and kept. Zeroed memory is "none". */
typedef struct sl__loader {
    sl_device *device;
    sl__transfer_opts opts;
    sl__transfer *transfer;
} sl__loader;

/* One load. The hooks are those of sl__transfer_run. */
typedef struct sl__load_job {
    const char *unit_name;
    const sl_model *model;
    const sl__unit_layout *layout;
    bool is_in_place;
    sl_buffer **buffers; /* [layout->n_buffers], NULL at the begin */
    sl__transfer_hooks hooks;
} sl__load_job;

/* What a load was like. `route` is what most bytes took, or "in place": a static name, NULL for a unit without bytes. */
typedef struct sl__load_figures {
    const char *route;
    uint64_t n_bytes;  /* of the file that were moved; 0 in place */
    uint64_t ns;       /* all of the load */
    uint64_t n_stalls; /* those of sl__transfer_stats */
} sl__load_figures;

/*
 * Allocates the buffers and fills them, or wraps the mapping. On failure the buffers allocated so far are left in
 * the job for the caller to free; no copy uses them any more. *ret_figures is set on success only.
 * Errors: those of sl__transfer_create, sl_buffer_alloc, sl_buffer_wrap and sl__transfer_run.
 */
int sl__loader_load(sl__loader *loader, const sl__load_job *job, sl__load_figures *ret_figures,
        sl_error *reterr) SL_MUST_CHECK;

/* Frees the transfer. Accepts zeroed memory. */
void sl__loader_done(sl__loader *loader);

#endif
