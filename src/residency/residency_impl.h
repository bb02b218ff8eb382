/*
 * What the parts of residency share: residency.c (the object), lease.c, phase.c, and mover.c (the workers).
 *
 * One lock guards everything here except what a busy worker uses of its unit: buffers, layout and loader. One
 * condition says "something changed"; everybody who waits tests again. That is a few wake-ups too many and no
 * lost one.
 */
#ifndef SL_RESIDENCY_RESIDENCY_IMPL_H
#define SL_RESIDENCY_RESIDENCY_IMPL_H

#include "os/os_thread.h"
#include "residency/ledger.h"
#include "residency/loader.h"
#include "residency/trace.h"
#include "sluice/residency.h"

/* A place that a unit may be on: the wanted one, then the second. */
typedef struct sl__choice {
    size_t i_place;
    bool is_in_place;
    sl__unit_layout layout;
} sl__choice;

typedef struct sl__unit {
    char *name;
    const sl_model *model;
    size_t wanted_place;
    sl__choice choices[2];
    size_t n_choices;
    size_t i_choice;     /* of the present load, unless absent */
    sl_buffer **buffers; /* room for the layout of either choice */
    sl_unit_state state;
    bool is_busy;      /* a worker uses it without the lock */
    bool is_abandoned; /* its load is to end: nobody wants it any more */
    bool has_failed;   /* its load failed: it is on its way to absent */
    bool must_leave;   /* evict it as soon as nobody holds it */
    bool is_ahead;     /* load it when there is room, without a request */
    size_t n_leases;   /* that were given */
    size_t n_wants;    /* requests that wait for it */
    uint64_t job_seq;
    uint64_t last_use;
    sl_plan_role role; /* in the active phase */
    uint64_t epoch;
    uint64_t n_loads;
    uint64_t n_failed; /* counted when the rollback is complete */
    uint64_t n_evicted;
    size_t n_arrived;
    sl_error last_error;
    sl__load_figures load; /* of the latest load that succeeded */
} sl__unit;

typedef struct sl__mover {
    sl_residency *residency;
    size_t i_place;
    sl__thread thread;
    sl__loader loader;
} sl__mover;

struct sl_residency {
    sl__mutex lock;
    sl__cond changed;
    uint64_t n_changes;
    uint64_t seq;
    sl_logger log;
    sl_policy policy;
    uint64_t slice_bytes;
    bool is_stepped;
    bool is_closing;
    size_t n_calls; /* inside functions that wait */
    unsigned sleep_level;
    const void *turn; /* whoever books memory for several units at once */
    sl_device **devices;
    sl_device_info *infos; /* as of open */
    uint64_t *lost_bytes;
    sl__mover *movers;
    size_t n_places;
    sl__ledger ledger;
    sl__unit **units;
    size_t n_units;
    size_t cap_units;
    bool has_phase;
    uint64_t phase_id;
    uint64_t *
            pool; /* [n_places][SL_MEM_KIND_COUNT]: booked by the phase, not drawn by scratch yet */
    uint64_t *drawn; /* likewise: drawn by scratch that is not released */
    sl__trace trace;
};

/* mover.c */

/* Does one piece of work of a worker, if there is any; false if not. The lock is held, and released meanwhile. */
bool sl__mover_step(sl__mover *mover);
/* The same for any worker. */
bool sl__mover_step_any(sl_residency *r);
void sl__mover_thread(void *mover);

/* residency.c; the lock is held in all of these. */

void sl__changed(sl_residency *r);
/* Waits until something changed. Errors: SL_ECANCELLED; SL_EINTERNAL if nothing can change (stepped). */
int sl__wait_change(sl_residency *r, const sl_wait *wait, sl_error *reterr) SL_MUST_CHECK;
void sl__enter(sl_residency *r); /* takes the lock */
void sl__leave(sl_residency *r); /* releases it */

const sl__choice *sl__choice_of(const sl__unit *u); /* of the present load */
bool sl__is_free(const sl__unit *u);                /* no lease and no request holds it */
/* Starts the load of an absent unit whose memory on choice u->i_choice is booked. */
void sl__begin_load(sl_residency *r, sl__unit *u);
/* Starts the way to absent of a unit that nobody holds. */
void sl__send_away(sl_residency *r, sl__unit *u);
/* Sends a unit away if it must leave or its load is of no use any more. */
void sl__let_go(sl_residency *r, sl__unit *u);
/* True if bytes on a place will come free without a lease being released. */
bool sl__is_coming_free(const sl_residency *r, size_t i_place);
/*
 * Sends units away until n_bytes are free on a place, once those on their way are gone; false, and nothing
 * changes, if that is not possible. UINT64_MAX sends away all that can be; false if that is none.
 */
bool sl__make_room(sl_residency *r, size_t i_place, uint64_t n_bytes);

/* lease.c; the lock is held. */

/* Makes a lease that counts as a waiting request on its units; errors: SL_EINVAL, SL_ENOMEM, SL_ECANCELLED. */
int sl__lease_pin(sl_residency *r, const size_t *units, size_t n, bool is_streaming,
        sl_lease **ret_lease, sl_error *reterr) SL_MUST_CHECK;
/* Loads what is pinned. `note` is filled with a line for the log, or is empty. */
int sl__lease_load(
        sl_lease *lease, const sl_wait *wait, char note[256], sl_error *reterr) SL_MUST_CHECK;
/* Gives everything back and frees. */
void sl__lease_drop(sl_lease *lease);

/* phase.c; the lock is held. Returns what the last phase left booked. */
void sl__pool_release(sl_residency *r);

#endif
