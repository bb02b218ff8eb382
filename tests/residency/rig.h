/*
 * Three small units of one model on a simulated GPU, with the computer's memory beside it, driven step by step
 * in one thread: every call of the device is counted and can be made to fail.
 */
#ifndef TEST_RIG_H
#define TEST_RIG_H

#include <stdbool.h>

#include "device/sim.h"
#include "residency/residency_impl.h"

#define RIG_N_UNITS 3
#define RIG_GPU     0
#define RIG_CPU     1

/* Device bytes of the units: the tensors' bytes rounded up to the alignment of 32. */
#define RIG_A_BYTES 160
#define RIG_B_BYTES 96
#define RIG_C_BYTES 64

typedef struct rig_model {
    char *dir;
    char path[512];
    sl_model *model;
    const sl_tensor *tensors[RIG_N_UNITS][4];
    size_t n_tensors[RIG_N_UNITS];
} rig_model;

typedef struct rig_opts {
    uint64_t budget_bytes; /* of the GPU; 0 = 1024 */
    uint64_t device_bytes; /* 0 = 4096 */
    uint64_t max_alloc_bytes;
    uint64_t link_bytes_s;
    uint64_t slice_bytes; /* 0 = 64 */
    sl_policy policy;
    bool b_has_second; /* unit b may be on the CPU */
    bool has_threads;
    const sl__sim_fault *faults;
    size_t n_faults;
    sl_logger log;
} rig_opts;

typedef struct rig {
    const rig_model *m;
    sl_device *devices[2];
    sl_residency *r;
    sl_lease *leases[RIG_N_UNITS];
    sl_scratch *scratch;
    size_t n_threads_before;
} rig;

void rig_model_open(rig_model *m);
void rig_model_close(rig_model *m);

/* For a group of tests: opens and closes the model that they share. */
extern rig_model rig_toy;
int rig_set_up(void **state);
int rig_tear_down(void **state);

void rig_open(rig *g, const rig_model *m, const rig_opts *opts);
/* Releases what is held, closes, and expects that the devices hold nothing but what they lost. */
void rig_close(rig *g);

/* Acquires a unit; the lease is kept in the rig. Returns the result. */
int rig_acquire(rig *g, size_t i_unit, bool is_streaming, sl_error *err);
void rig_release(rig *g, size_t i_unit);
int rig_settle(rig *g);

sl_unit_state rig_state(rig *g, size_t i_unit);
uint64_t rig_used(rig *g);  /* ledger of the GPU */
uint64_t rig_live(rig *g);  /* what the GPU says */
void rig_no_faults(rig *g); /* from now on nothing fails */

/* The bytes of a leased unit on its device are those of the file. */
void rig_expect_bytes(rig *g, size_t i_unit);

/* The rules that hold at every moment; `is_settled`: ledger and device agree to the byte. */
void rig_expect_rules(rig *g, bool is_settled);

/* Nothing fails any more: every unit can be loaded, holds its bytes, and leaves. */
void rig_expect_usable(rig *g);

#endif
